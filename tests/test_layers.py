"""Who may import whom, read from the sources. A rule without a test is a hope."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "idiograph"
MODULES = sorted(
    path for path in SOURCE.rglob("*.py") if "models" not in path.parts
)  # what travels with a model is a copy
# From the top down, as the design has it: a module imports from its own package or from lower floors. Packages on one floor do
# not import each other; the modules of the ground floor, which are no packages, may. Two differences: `synth` is a floor
# below `corpus`, which reads `anthology` and `synth:…` like any other source of documents; and `index` is a floor above
# `loading`, as an index opens the model that it was made with.
FLOORS = [
    {"__main__", "cli", "serve"},
    {"demo", "study"},
    {"answer", "evaluate", "explore"},
    {"index"},
    {"loading"},
    {"neural"},
    {"mining"},
    {"corpus", "rankers", "encoder"},
    {"hal", "pdf", "style", "synth"},
    {"text", "measures", "plots"},
    {
        "runner",
        "store",
        "checksums",
        "recipe",
        "presets",
        "spec",
        "seeded",
        "types",
        "errors",
        "extras",
        "html",
        "xml",
        "identity",
    },
]
ONLY_IN = {
    "torch": {"neural"},
    "transformers": {"neural"},
    "sentence_transformers": {"neural"},
    "matplotlib": {"plots"},
    "typer": {"cli"},
    "click": {"cli"},
    "rich": {"cli"},
    "fastapi": {"serve"},
    "httpx2": {"hal", "pdf.grobid", "pdf.extract"},
    "ray": {"runner", "neural.training.distributed"},
    "onnxruntime": {"encoder"},
    "tokenizers": {"encoder", "text.subwords"},
    "lancedb": {"index.remote"},
    "jinja2": {"html"},
}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules that a file imports, at the top or inside a function, but not for type checking alone."""
    typing_only = {
        inner
        for node in nodes_of(path)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import) and node not in typing_only:
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node not in typing_only:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def floor(name: str) -> int | None:
    return next((at for at, names in enumerate(FLOORS) if name.split(".")[0] in names), None)


NAMES = frozenset(map(name_of, MODULES))


def module_of(imported: str) -> str:
    """The module that an imported name lives in."""
    parts = imported.removeprefix("idiograph.").split(".")
    return next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in NAMES), "")


def own_imports(path: Path) -> set[str]:
    return {module_of(name) for name in imports(path) if name.startswith("idiograph.")} - {""}


def test_every_module_has_a_floor():
    assert [name_of(p) for p in MODULES if p.name != "__init__.py" and floor(name_of(p)) is None] == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_down_and_not_sideways(path):
    name = name_of(path)
    mine = floor(name)
    for other in own_imports(path) if mine is not None else ():
        theirs = floor(other)
        assert theirs is not None, f"{name} imports {other}"
        if theirs == mine and mine < len(FLOORS) - 1:
            assert other.split(".")[0] == name.split(".")[0] or name == "__main__", f"{name} may not import {other}"
        else:
            assert theirs >= mine, f"{name} may not import {other}"


def test_no_modules_import_each_other_in_a_circle():
    waiting = {name_of(path): own_imports(path) - {name_of(path)} for path in MODULES}
    while done := {name for name, needs in waiting.items() if not needs & waiting.keys()}:
        waiting = {name: needs for name, needs in waiting.items() if name not in done}
    assert waiting == {}


def test_a_folder_holds_at_most_sixteen_modules():
    folders = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert {str(folder.relative_to(SOURCE)): count for folder, count in folders.items() if count > 16} == {}


def test_the_name_of_a_class_exists_once():
    classes = Counter(node.name for path in MODULES for node in tree_of(path).body if isinstance(node, ast.ClassDef))
    assert [name for name, count in classes.items() if count > 1] == []


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
    nodes = nodes_of(path)
    calls = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    reads = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    assert not calls & {"print", "input", "os.getenv"}
    assert "os.environ" not in reads
    caught = {ast.unparse(h.type) for h in nodes if isinstance(h, ast.ExceptHandler) and h.type}
    assert "IdiographError" not in caught


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_stay_small(path):
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno <= 60, f"{node.name} is too long"


@pytest.mark.parametrize("path", [p for p in MODULES if p.read_text(encoding="utf-8").strip()], ids=name_of)
def test_a_module_says_what_it_is_for(path):
    assert ast.get_docstring(tree_of(path))


HEAVY = ("torch", "transformers", "sentence_transformers", "lancedb", "matplotlib", "pyarrow.dataset", "pandas")
HEAVY += ("sklearn", "httpx2", "stamina", "ray", "bm25s", "onnxruntime")


def loaded_by(code: str, libraries: tuple[str, ...] = HEAVY) -> list[str]:
    """Which of these libraries are loaded after some lines of Python."""
    shown = f"{code}\nimport sys; print(*(m for m in {libraries!r} if m in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1].split()


def test_importing_the_package_is_cheap():
    assert loaded_by("import idiograph", (*HEAVY, "numpy", "pydantic")) == []


def test_the_names_that_answer_load_no_model_no_tables_and_no_http_client():
    assert loaded_by("from idiograph import Corpus, attribute, verify") == []
    assert loaded_by("from idiograph import Index, Style, explain, load") == []


def test_opening_a_ranker_does_not_wake_what_takes_a_gpu_for_itself():
    code = "from idiograph.loading import load_ranker; load_ranker('bm25+ngrams')"
    assert loaded_by(code, ("bm25s", "torch")) == []
