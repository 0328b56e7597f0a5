"""A wrong path or option is reported before anything that takes long is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "sentence_transformers", "onnxruntime", "lancedb", "sklearn", "matplotlib", "pyarrow")
HEAVY += ("scipy", "bm25s", "httpx2", "ray", "jinja2")
RUN = f"""
import sys
from idiograph.cli import main
try:
    main()
finally:
    print(*(name for name in {HEAVY!r} if name in sys.modules))
"""
TYPOS = {
    "verify a.txt nowhere.txt": "there is no file 'nowhere.txt'",
    "verify a.txt a.txt --patch ngrm:2": "did you mean 'ngram:2'",
    "verify a.txt a.txt --preset papr": "did you mean 'paper'",
    "verify a.txt a.txt --corpus nowhere": "there is no corpus folder 'nowhere'",
    "explain a.txt a.txt --model ./nowhere": "there is no model folder './nowhere'",
    "explain a.txt a.txt --html nowhere/page.html": "there is no folder 'nowhere' for 'page.html'",
    "attribute nowhere a.txt": "there is no index folder 'nowhere'",
    "attribute records a.txt": "'records' is a folder of records, not an index",
    "attribute index a.txt --by sett": "unknown unit 'sett'; choose from author, set",
    "search index nowhere.txt": "there is no file 'nowhere.txt'",
    "index nowhere -o out": "there is no file or folder 'nowhere'",
    "index corpus -o index": "'index' is there already; choose another -o, or pass --overwrite",
    "index corpus -o out --dtype int5": "but got 'int5'",
    "corpus a.txt -o corpus": "'corpus' is there already",
    "corpus nowhere -o out": "there is no file or folder 'nowhere'",
    "mine index -o out": "'index' is an index, not a corpus",
    "mine corpus -o index": "'index' is there already",
    "train nowhere -o out": "there is no folder of triplets 'nowhere'",
    "train corpus -o out --patch ngrm:2": "did you mean 'ngram:2'",
    "train corpus -o out --backbone ./nowhere": "there is no model folder './nowhere'",
    "train corpus -o corpus": "'corpus' is there already",
    "tune corpus -o out --space nowhere.toml": "there is no file 'nowhere.toml'",
    "average corpus -o corpus": "'corpus' is there already",
    "evaluate bm25 nowhere": "there is no folder of triplets 'nowhere'",
    "evaluate default corpus --patch ngrm:2": "did you mean 'ngram:2'",
    "evaluate default corpus --split vald": "but got 'vald'",
    "study nowhere -o out": "there is no file or folder 'nowhere'",
    "calibrate default nowhere": "there is no file or folder 'nowhere'",
    "download corpus -o out": "'corpus' is a corpus, not a folder of records",
    "extract nowhere -o out": "there is no folder 'nowhere' with PDFs",
    "demo -o a.txt": "'a.txt' is a file; choose a folder for -o",
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A text, and finished folders of three kinds as their manifests describe them."""
    from idiograph.store import Manifest, seal

    folder = tmp_path_factory.mktemp("desk")
    (folder / "a.txt").write_text("Some words that are never read. " * 30)
    for kind in ("corpus", "index", "records"):
        (folder / kind).mkdir()
        seal(folder / kind, Manifest(kind))
    return folder


@pytest.mark.parametrize("typed", TYPOS)
def test_a_typo_is_answered_before_anything_heavy_is_loaded(desk, typed):
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-c", RUN, *typed.split()]
    ran = subprocess.run(
        command, cwd=desk, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert TYPOS[typed] in ran.stderr
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
    assert ran.stdout.split() == []
    assert sorted(p.name for p in desk.iterdir()) == ["a.txt", "corpus", "index", "records"]
