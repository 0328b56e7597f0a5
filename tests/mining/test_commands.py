"""`idiograph mine`, `audit` and `topic`: every option reaches the recipe, and the exit status tells a leak."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from idiograph.corpus.corpus import build_corpus
from idiograph.mining.catalog import HELD_OUT_ELSEWHERE
from idiograph.recipe import CorpusRecipe
from idiograph.synth.synth import synth

WORLD = "synth:documents=240,authors=40,topics=3,coauthors=0.4,sentences=9"
AS_GIVEN = CorpusRecipe(citations="keep", filters=False, language="depositor", duplicates="keep")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "corpus"
    shelved = (replace(d, container="one book" if at % 3 else "") for at, d in enumerate(synth(WORLD)))
    build_corpus(shelved, folder, AS_GIVEN)
    return folder


def settings_of(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())["recipe"]


OPTIONS = {
    "rule": (("--rule", "unrestricted", "--rule", "ict"), ["unrestricted", "ict"]),
    "sentences": (("--sentences", 2, "--sentences", 3), [2, 3]),
    "per_document": (("--per-document", 2), 2),
    "label": (("--label", "last"), "last"),
    "negatives": (("--negatives", "matched"), "matched"),
    "positives": (("--positives", "far"), "far"),
    "candidates": (("--candidates", 7, "--negatives", "lexical"), 7),
    "containers": (("--containers", "any"), "any"),
    "seed": (("--seed", 3), 3),
    "split": (("--preset", "paper", "--per-document", 4, "--sentences", 2), "triplet"),
}


@pytest.mark.parametrize("key", OPTIONS)
def test_an_option_of_mine_is_what_the_manifest_says(idiograph, corpus, tmp_path, key):
    given, expected = OPTIONS[key]
    status, out, err = idiograph("mine", corpus, "-o", tmp_path / "out", "--sentences", 2, "--json", *given)
    assert status == 0, err
    assert sum(sum(splits.values()) for splits in json.loads(out).values()) > 0
    found = settings_of(tmp_path / "out")[key]
    assert found == expected or (key == "sentences" and set(expected) <= set(found))


def test_mine_keeps_apart_from_other_triplets(idiograph, corpus, tmp_path):
    given = ("mine", corpus, "--sentences", 2, "--json")
    idiograph(*given, "-o", tmp_path / "a", "--label", "last")
    status, _, _ = idiograph(*given, "-o", tmp_path / "b", "--label", "first", "--apart", tmp_path / "a")
    assert status == 0
    assert f"apart from {tmp_path / 'a'}" in json.loads((tmp_path / "b" / "manifest.json").read_text())["inputs"]
    status, _, err = idiograph(*given, "-o", tmp_path / "c", "--apart", tmp_path / "nowhere")
    assert status == 1
    assert "there is no folder of triplets" in err
    assert not (tmp_path / "c").exists()


def test_a_dry_run_says_what_would_be_lost_and_writes_nothing(idiograph, corpus, tmp_path):
    status, out, _ = idiograph("mine", corpus, "--dry-run", "--json")
    assert status == 0
    found = json.loads(out)
    assert set(found["sizes"]) == {"all", "train", "valid", "test"}
    assert found["lost"] == found["dropped"].get("document: authors are in several splits", 0) / found["documents"]
    kept = sum(found["sizes"][split]["documents"] for split in ("train", "valid", "test"))
    assert kept == found["documents"] - sum(found["dropped"].values())
    assert list(tmp_path.iterdir()) == []


def test_mine_says_what_is_lost_before_it_draws(idiograph, corpus, tmp_path):
    """Also where nothing can be drawn in the end."""
    status, _, err = idiograph("mine", corpus, "-o", tmp_path / "out", "--sentences", 50)
    assert status == 1
    assert err.index("are lost because their authors are in several splits") < err.index("no triplet can be drawn")


def test_mine_without_a_folder_says_what_to_type(idiograph, corpus):
    status, _, err = idiograph("mine", corpus)
    assert status == 1
    assert "-o FOLDER" in err
    assert "--dry-run" in err


def test_splits_are_taken_over_beside_apart(idiograph, corpus, tmp_path):
    given = ("mine", corpus, "--sentences", 2, "--json")
    idiograph(*given, "-o", tmp_path / "a", "--label", "last")
    others = ("--splits-from", tmp_path / "a", "--apart", tmp_path / "a")
    status, _, err = idiograph(*given, "-o", tmp_path / "b", "--label", "first", "--seed", 3, *others)
    assert status == 0, err
    made = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert f"splits from {tmp_path / 'a'}" in made["inputs"]
    assert HELD_OUT_ELSEWHERE not in made["dropped"]  # who is held out there is held out here


@pytest.mark.parametrize("option", ["--rule", "--label", "--negatives", "--positives", "--containers", "--runner"])
def test_a_value_that_an_option_does_not_know_is_named_in_one_line(idiograph, corpus, tmp_path, option):
    status, _, err = idiograph("mine", corpus, "-o", tmp_path / "out", option, "bogus")
    assert status == 1
    assert "bogus" in err or option.lstrip("-") in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_audit_passes_what_is_sound_and_fails_the_published_protocol(idiograph, corpus, tmp_path):
    for preset in ("sound", "paper"):
        idiograph("mine", corpus, "-o", tmp_path / preset, "--sentences", 2, "--per-document", 4, "--preset", preset)
    assert idiograph("audit", tmp_path / "sound")[0] == 0
    status, out, _ = idiograph("audit", tmp_path / "paper", "--json")
    assert status == 1
    found = json.loads(out)
    assert not found["sound"]
    assert all(pair[what] for pair in found["overlaps"] for what in ("authors", "documents", "sentences"))


def test_topic_writes_a_page_and_json_with_both_forms_of_bm25(idiograph, corpus, tmp_path):
    rules = ("--rule", "base", "--rule", "unrestricted", "--sentences", 2)
    idiograph("mine", corpus, "-o", tmp_path / "t", *rules)
    status, out, _ = idiograph("topic", tmp_path / "t", "--split", "all", "-o", tmp_path / "page", "--json")
    assert status == 0
    checked = json.loads(out)["checked"]
    assert [each["name"] for each in checked] == ["base-2", "unrestricted-2"]
    assert [row["measure"] for row in checked[0]["accuracy"]][:2] == ["BM25 (Okapi)", "BM25 (bm25s)"]
    assert (tmp_path / "page" / "topic.html").is_file()
    assert json.loads((tmp_path / "page" / "topic.json").read_text())["checked"][0]["paper"] == 60.24


def test_without_any_field_negatives_come_from_all_and_the_user_is_told(idiograph, tmp_path):
    build_corpus((replace(d, domains=()) for d in synth(WORLD)), tmp_path / "corpus", AS_GIVEN)
    status, _, err = idiograph("mine", tmp_path / "corpus", "-o", tmp_path / "out", "--sentences", 2)
    assert status == 0
    assert "no document names its field" in err
    assert settings_of(tmp_path / "out")["negatives"] == "any"


def test_a_ray_cluster_that_is_not_there_is_named_at_once(idiograph, corpus, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'idiograph[ray]'")
    where = ("--runner", "ray", "--address", "127.0.0.1:9")
    status, _, err = idiograph("mine", corpus, "-o", tmp_path / "out", *where)
    assert status == 1
    assert "no Ray cluster answers at '127.0.0.1:9'" in err
