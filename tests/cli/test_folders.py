"""The command that reads finished folders again."""

import json
import os
import shutil

import pytest

from idiograph.corpus.corpus import build_corpus
from idiograph.synth.anthology import anthology


@pytest.fixture
def corpus(tmp_path):
    build_corpus(anthology(), tmp_path / "corpus")
    return tmp_path / "corpus"


def flip_last_byte(path):
    """What a disk does: no size and no time shows it."""
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=times)


def test_a_folder_that_is_as_it_was_is_said_to_be(idiograph, corpus):
    status, out, _ = idiograph("check", corpus)
    assert status == 0
    assert "a corpus" in out
    assert "as it was written" in out


def test_everything_that_has_changed_is_named(idiograph, corpus, tmp_path):
    shutil.copytree(corpus, tmp_path / "other")
    (shard,) = sorted(corpus.glob("en/train-*.parquet"))
    flip_last_byte(shard)
    (corpus / "README.md").unlink()
    status, out, err = idiograph("check", corpus, tmp_path / "other")
    assert status == 1
    assert f"the content of en/{shard.name} has changed" in out
    assert "README.md is missing" in out
    assert "other: a corpus" in out
    assert err.endswith("is damaged; make it again: idiograph corpus TEXTS -o FOLDER\n")
    found = json.loads(idiograph("check", corpus, "--json")[1])
    assert len(found[0]["faults"]) == 2


def test_a_folder_without_a_manifest_is_nothing_to_check(idiograph, tmp_path):
    status, _, err = idiograph("check", tmp_path)
    assert status == 1
    assert "has no manifest.json: it is unfinished, or nothing that idiograph made" in err


def test_a_damaged_corpus_is_not_mined(idiograph, corpus, tmp_path):
    shutil.rmtree(corpus / "en")
    status, _, err = idiograph("mine", corpus, "-o", tmp_path / "triplets")
    assert status == 1
    assert "is missing); make it again: idiograph corpus" in err


def test_triplets_whose_train_split_is_gone_are_not_audited(idiograph, corpus, tmp_path):
    assert idiograph("mine", corpus, "-o", tmp_path / "triplets", "--per-document", 1)[0] == 0
    for path in (tmp_path / "triplets").glob("base-4/train-*"):
        path.unlink()
    status, _, err = idiograph("audit", tmp_path / "triplets")
    assert status == 1
    assert "is damaged (base-4/train-00000-of-00001.parquet is missing)" in err
