"""The model that comes with the package."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import idiograph
from idiograph.errors import ModelError
from idiograph.loading import default_folder, folder_of, general_folder, is_shipped, terms, torch_has_gpu
from idiograph.neural import layers as modules
from tests.test_layers import loaded_by

LIMIT = 65_000_000  # bytes


def test_the_shipped_model_is_the_default_and_reads_text():
    style = idiograph.load()
    assert style.name.startswith("idiograph-small")
    assert style.patch == "ngram:3"
    same, other = style.compare(
        ["We thank the keeper; the tide was late."], ["We thank the keeper; the tide was late.", "lol no"]
    )[0]
    assert same == pytest.approx(1, abs=1e-5)
    assert other < same


def test_it_is_small_and_says_what_it_is():
    folder = default_folder()
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < LIMIT
    card = (folder / "README.md").read_text(encoding="utf-8")
    for said in ("license: apache-2.0", "granite-embedding-30m-english", "Limits", "sha256"):
        assert said in card


def test_the_code_that_travels_with_it_is_ours_of_today():
    assert (default_folder() / "idiograph_patches.py").read_text() == Path(modules.__file__).read_text()


def test_a_word_of_several_tokens_is_one_patch_though_its_vocabulary_has_pieces_of_number_signs():
    style = idiograph.load(patch="word")
    assert any(piece.startswith("##") for piece in style.encoder.tokenizer.get_vocab())  # pyright: ignore
    text = "Cartographers re-measured the siltation."
    found = style.encode([text])
    words = [text[start:end] for start, end in found.chars.tolist()]
    assert words == ["Cartographers", "re", "-", "measured", "the", "siltation", "."]


def test_it_opens_in_plain_sentence_transformers_and_gives_the_same_patches():
    from sentence_transformers import MultiVectorEncoder

    text = "However, the measurements were (we think) taken twice."
    plain = MultiVectorEncoder(str(default_folder()), trust_remote_code=True, device="cpu").encode_document([text])[0]
    ours = idiograph.load().encode([text])
    assert np.allclose(np.asarray(plain), ours.vectors, atol=1e-5)


def test_it_reads_and_compares_without_torch():
    code = "import idiograph; idiograph.load().compare(['We thank the keeper.'], ['The tide was late.'])"
    assert loaded_by(code, ("torch", "transformers", "sentence_transformers", "sklearn")) == []
    assert loaded_by(code, ("onnxruntime",)) == ["onnxruntime"]


def test_torch_reads_it_where_it_is_asked_for():
    ours, theirs = idiograph.load(), idiograph.load(runtime="torch")
    assert [type(style.encoder).__name__ for style in (ours, theirs)] == ["OnnxEncoder", "TorchEncoder"]
    assert ours.fingerprint == theirs.fingerprint


def test_torch_is_not_looked_at_where_there_is_no_driver_of_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr("idiograph.loading.CUDA_DRIVERS", (tmp_path / "none",))
    monkeypatch.setattr("idiograph.loading.find_spec", None)  # any look would fail
    assert not torch_has_gpu()


def test_torch_reads_it_where_it_has_a_gpu(monkeypatch):
    monkeypatch.setattr("idiograph.loading.torch_has_gpu", lambda: True)
    assert type(idiograph.load().encoder).__name__ == "TorchEncoder"


def test_other_models_and_all_layers_are_read_by_torch(tmp_path):
    assert not is_shipped("minilm")
    (tmp_path / "link").symlink_to(default_folder())
    assert is_shipped(tmp_path / "link")
    with pytest.raises(ModelError, match="layers of its own"):
        idiograph.load(layers="mean")


def test_its_weights_are_in_16_bits():
    from safetensors import safe_open

    with safe_open(str(default_folder() / "model.safetensors"), "np") as file:
        assert {str(file.get_slice(name).get_dtype()) for name in file.keys()} == {"F16"}  # noqa: SIM118


def test_names_stand_for_folders():
    assert folder_of(None) == folder_of("default") == default_folder()
    assert folder_of("minilm") == general_folder()
    assert folder_of("somebody/model") == "somebody/model"


def test_a_package_without_its_model_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("idiograph.loading.__file__", str(tmp_path / "loading.py"))
    with pytest.raises(ModelError, match="install idiograph again"):
        default_folder()


def test_what_it_was_made_of_can_be_followed_to_the_triplets():
    """Every run names the fingerprints of what it began with, and `runs.json` has all of these."""
    manifest = json.loads((default_folder() / "manifest.json").read_text())
    runs = json.loads((default_folder() / "runs.json").read_text())
    made = {one["fingerprint"]: name for name, one in runs["models"].items()}
    line, to_do = set[str](), [manifest["inputs"]]
    while to_do:
        for name, fingerprint in to_do.pop().items():
            if name in runs["triplets"]:
                assert runs["triplets"][name]["fingerprint"] == fingerprint
                assert all(len(digest) == 64 for digest in runs["triplets"][name]["sha256"].values())
            else:
                assert made[fingerprint] == name
                to_do += [] if name in line else [runs["models"][name].get("inputs", {})]
                to_do += [{b: runs["models"][b]["fingerprint"] for b in begun_with(runs["models"][name]["recipe"])}]
                line.add(name)
    assert line == {"first", "second", "mean", "third", "fourth", "variant", "minilm-authors", "fifth"}
    corpora = {one["fingerprint"] for one in runs["corpora"].values()}
    assert {one["inputs"]["corpus"] for one in runs["triplets"].values()} <= corpora


def begun_with(recipe: dict) -> list[str]:
    """The models of ours that a run began with or was taught by."""
    named = [recipe.get("backbone", ""), *(r.partition("@")[0] for _, r in terms(recipe.get("teacher") or "ngrams"))]
    return [name for name in named if name not in ("", "granite", "minilm", "ngrams")]


def test_the_shipped_model_answers_to_its_own_name_unless_a_folder_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert folder_of("idiograph-small") == default_folder()
    (tmp_path / "idiograph-small").mkdir()
    assert folder_of("idiograph-small") == "idiograph-small"


def commands(work: Path) -> list[list[str]]:
    """What the recipe runs, each command once, with folders by their names and all triplets as T."""
    (work / "record.py").write_text("import json, sys; print(json.dumps(sys.argv[1:]))")
    environment = {**os.environ, "IDIOGRAPH": f"{sys.executable} {work / 'record.py'}"}
    script = Path(__file__).parents[1] / "recipes" / "idiograph-small" / "train.sh"
    ran = subprocess.run(["sh", script, work, "granite"], env=environment, capture_output=True, text=True, check=True)
    elsewhere = re.compile(rf"{re.escape(str(work))}/\w+/|{re.escape(str(script.parent))}/")
    found: list[list[str]] = []
    for line in ran.stdout.splitlines():
        words = [elsewhere.sub("", word) for word in json.loads(line)]
        if words[0] == "train":
            words[1 : words.index("-o")] = ["T"]
        found += [words] if words not in found else []  # the mean is made by whatever needs it
    return found


def test_the_commands_on_its_card_are_those_of_the_recipe(tmp_path):
    card = (default_folder() / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    told = [shlex.split(line) for line in re.findall(r"^\$ idiograph (.*)$", card, re.M)]
    assert [line[0] for line in told].count("train") == 6
    assert told == commands(tmp_path)
