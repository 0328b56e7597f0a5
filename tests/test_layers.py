"""Who may import whom, read from the sources. A rule without a test is a hope."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "idiograph"
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if "models" not in path.parts
)  # what travels with a model is a copy
# From the top down; a module may import from its own layer's package or from any lower layer, never from a higher one.
LAYERS = [
    {"__main__"},
    {"cli", "serve"},
    {"demo", "study"},
    {"loading"},
    {"neural", "evaluate", "answer", "standin"},
    {"style", "baselines", "corpus"},
    {"runner", "store", "recipe", "presets", "spec", "types", "errors", "pages"},
]
ONLY_IN = {
    "torch": {"neural"},
    "transformers": {"neural"},
    "sentence_transformers": {"neural"},
    "matplotlib": {"evaluate.plots"},
    "typer": {"cli"},
    "click": {"cli"},
    "rich": {"cli"},
    "fastapi": {"serve"},
    "httpx2": {"corpus.harvest", "corpus.download", "corpus.extract", "corpus.grobid", "corpus.fetch", "corpus.pace"},
    "ray": {"runner", "neural.launch"},
    "lancedb": {"answer.shelf"},
    "jinja2": {"pages"},
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """The modules that a file imports, at the top or inside a function, but not for type checking alone."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layer(name: str) -> int | None:
    return next((at for at, names in enumerate(LAYERS) if name.split(".")[0] in names), None)


def test_every_module_has_a_layer():
    assert [name_of(p) for p in MODULES if p.name != "__init__.py" and layer(name_of(p)) is None] == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_down_and_not_sideways(path):
    name = name_of(path)
    mine = layer(name)
    for imported in imports(path):
        if not imported.startswith("idiograph.") or mine is None:
            continue
        other = imported.removeprefix("idiograph.")
        theirs = layer(other)
        if theirs is None:  # a public name of the package itself, such as __version__
            assert mine <= 1, f"{name} imports {imported}"
            continue
        same_package = other.split(".")[0] == name.split(".")[0]
        bottom = mine == len(LAYERS) - 1
        assert theirs > mine or same_package or bottom, f"{name} may not import {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_libraries_stay_in_their_rooms(path):
    name = name_of(path)
    for imported in imports(path):
        rooms = ONLY_IN.get(imported.split(".")[0])
        assert rooms is None or any(name == r or name.startswith(r + ".") for r in rooms), f"{name} imports {imported}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_edges_print_and_read_the_environment(path):
    if name_of(path).split(".")[0] in ("cli", "serve"):
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    reads = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not calls & {"print", "input", "os.getenv"}
    assert "os.environ" not in reads
    caught = {ast.unparse(h.type) for h in ast.walk(tree) if isinstance(h, ast.ExceptHandler) and h.type}
    assert "IdiographError" not in caught


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_and_functions_stay_small(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno <= 60, f"{node.name} is too long"


@pytest.mark.parametrize("path", [p for p in MODULES if p.read_text(encoding="utf-8").strip()], ids=name_of)
def test_a_module_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_importing_the_package_is_cheap():
    import subprocess
    import sys

    code = (
        "import sys, idiograph; print(sorted(m for m in ('torch', 'numpy', 'polars', 'pydantic') if m in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_opening_a_ranker_does_not_wake_what_takes_a_gpu_for_itself():
    import subprocess
    import sys

    code = "import sys; from idiograph.loading import load_ranker; load_ranker('bm25+ngrams'); print('bm25s' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
