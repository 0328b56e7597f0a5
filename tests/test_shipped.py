"""The model that comes with the package."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import idiograph
from idiograph.errors import ModelError
from idiograph.loading import default_folder, folder_of, general_folder, terms
from idiograph.neural import modules

LIMIT = 65_000_000  # bytes
TEACHERS = {"minilm, for a teacher", "variant, for a teacher"}


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
    assert any(piece.startswith("##") for piece in style.encoder.model.tokenizer.get_vocab())  # pyright: ignore
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


def test_its_manifest_names_the_runs_it_was_made_from():
    manifest = json.loads((default_folder() / "manifest.json").read_text())
    runs = json.loads((default_folder() / "runs.json").read_text())
    assert set(manifest["inputs"]) == {"first", "second", "third", "fourth"} == set(runs) - {*TEACHERS, "fifth"}
    assert manifest["recipe"]["taught"] == "fifth"
    for run in ("first", "second", "third", "fifth"):
        assert all(len(digest) == 64 for digest in runs[run]["triplets, sha256"].values())
    for part in ("fourth@", "minilm'@", "variant@", "ngrams"):
        assert part in runs["fifth"]["settings"]["teacher"]


def test_the_shipped_model_answers_to_its_own_name_unless_a_folder_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert folder_of("idiograph-small") == default_folder()
    (tmp_path / "idiograph-small").mkdir()
    assert folder_of("idiograph-small") == "idiograph-small"


def test_the_commands_on_its_card_are_ones_that_there_are():
    from typer.main import get_command

    from idiograph.cli import build

    card = (default_folder() / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^\$ idiograph (.*?)(?:  #.*)?$", card, re.M)
    assert [line.split()[0] for line in lines].count("train") == 4
    known = get_command(build())
    for line in lines:
        name, *rest = shlex.split(line)
        command = known.commands[name]
        command.make_parser(command.context_class(command)).parse_args(rest)  # an option that is not there raises
        if "--teacher" in rest:
            assert len(terms(rest[rest.index("--teacher") + 1])) == 4
