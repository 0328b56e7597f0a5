"""Folders are whole or absent."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from idiograph.errors import ArtifactError
from idiograph.store import Ledger, Manifest, ShardedFolder, draft, fingerprint, locked_folder, read_manifest, seal


def test_a_finished_draft_is_there_and_reads_back(tmp_path):
    with draft(tmp_path / "a" / "b") as folder:
        (folder / "data.txt").write_text("x")
        seal(folder, Manifest("thing", {"k": 1}, {"in": "abc"}, {"rows": 2}, {"bad": 3}))
    found = read_manifest(tmp_path / "a" / "b", "thing", "make it")
    assert (found.counts, found.dropped, found.inputs) == ({"rows": 2}, {"bad": 3}, {"in": "abc"})
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["b"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_draft_that_fails_leaves_nothing(tmp_path, error):
    with pytest.raises(error), draft(tmp_path / "out") as folder:
        (folder / "data.txt").write_text("x")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_a_draft_that_fails_leaves_the_old_folder_as_it_was(tmp_path):
    with draft(tmp_path / "out") as folder:
        (folder / "data.txt").write_text("old")
        seal(folder, Manifest("thing"))
    with pytest.raises(ValueError, match="no"), draft(tmp_path / "out", overwrite=True) as folder:
        (folder / "data.txt").write_text("new")
        raise ValueError("no")
    assert (tmp_path / "out" / "data.txt").read_text() == "old"


def test_a_killed_draft_leaves_the_target_absent_and_the_next_run_succeeds(tmp_path):
    code = """
import os, signal, sys
from pathlib import Path
from idiograph.store import draft
with draft(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")], check=False)
    assert not (tmp_path / "out").exists()
    with draft(tmp_path / "out") as folder:
        assert [p.name for p in folder.iterdir()] == [".lock"]
        (folder / "whole").write_text("x")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["whole"]


def test_a_folder_of_somebody_else_is_never_overwritten(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ArtifactError, match="not made by idiograph"), draft(tmp_path, overwrite=True):
        pass
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_an_existing_folder_is_kept_unless_asked(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").touch()
    with pytest.raises(ArtifactError, match="there already; choose another -o, or pass --overwrite"):
        with draft(tmp_path / "out"):
            pass


def test_a_second_writer_is_refused(tmp_path):
    with locked_folder(tmp_path), pytest.raises(ArtifactError, match="another run is writing"), locked_folder(tmp_path):
        pass


def test_an_unfinished_folder_is_said_to_be_unfinished(tmp_path):
    with pytest.raises(ArtifactError, match="no manifest.json.*make it: idiograph corpus"):
        read_manifest(tmp_path, "corpus", "idiograph corpus")


def test_a_folder_of_another_kind_is_named(tmp_path):
    seal(tmp_path, Manifest("triplets"))
    with pytest.raises(ArtifactError, match="is a folder of triplets, not a corpus"):
        read_manifest(tmp_path, "corpus", "idiograph corpus")
    with pytest.raises(ArtifactError, match="is a folder of triplets, not an index"):
        read_manifest(tmp_path, "index", "idiograph index")


def test_a_damaged_manifest_is_an_error_on_one_line(tmp_path):
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_manifest(tmp_path, "corpus", "idiograph corpus")


def test_the_fingerprint_depends_on_names_and_contents_alone(tmp_path):
    for folder, when in (("a", 1), ("b", 2_000_000_000)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_text("same")
        os.utime(tmp_path / folder / "x", (when, when))
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    (tmp_path / "b" / "x").write_text("other")
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")


def test_a_ledger_survives_a_kill_in_the_middle_of_a_line(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.add({"id": 1})
    ledger.add({"id": 2})
    with (tmp_path / "ledger.jsonl").open("a") as file:
        file.write('{"id": 3, "half')
    again = Ledger(tmp_path / "ledger.jsonl")
    again.add({"id": 4})
    assert [item["id"] for item in again] == [1, 2, 4]
    assert all(json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines())


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    result: str = ""

    @property
    def key(self) -> str:
        return self.name


def note(path, part, *outcomes):
    """What a run on one shard does."""
    folder = ShardedFolder(path, part, Outcome)
    with folder.lock_shard():
        for outcome in outcomes:
            folder.add(outcome)
    return folder


def test_shards_end_in_one_ledger_in_the_order_of_the_keys(tmp_path):
    note(tmp_path, "2/2", Outcome("a", "good"), Outcome("c"))
    folder = note(tmp_path, "1/2", Outcome("b"))
    folder.seal(folder.entries().values(), Manifest("thing"))
    assert [json.loads(line)["name"] for line in (tmp_path / "ledger.jsonl").read_text().splitlines()] == [
        "a",
        "b",
        "c",
    ]
    assert read_manifest(tmp_path, "thing", "").fingerprint != ""


def test_the_last_word_on_an_item_of_a_sharded_folder_counts(tmp_path):
    folder = note(tmp_path, "1/1", Outcome("a", "bad"))
    folder.seal(folder.entries().values(), Manifest("thing"))
    assert note(tmp_path, "1/1", Outcome("a", "good")).entries() == {"a": Outcome("a", "good")}


def test_another_cut_is_absorbed_unless_one_of_its_shards_is_at_work(tmp_path):
    note(tmp_path, "1/3", Outcome("a"))
    folder = ShardedFolder(tmp_path, "1/2", Outcome)
    with folder.lock_shard():
        with locked_folder(tmp_path / ".work" / "1-of-3"), pytest.raises(ArtifactError, match="another run is writing"):
            folder.absorb_other_cuts()
        folder.absorb_other_cuts()
    assert folder.entries() == {"a": Outcome("a")}
    assert not (tmp_path / ".work" / "1-of-3").exists()


def test_a_shard_starts_without_the_half_files_of_a_killed_run(tmp_path):
    work = note(tmp_path, "1/1", Outcome("a")).work
    (work / "x.partial").touch()
    with (work / "ledger.jsonl").open("a") as file:
        file.write('{"name": "b", "res')
    assert note(tmp_path, "1/1", Outcome("c")).entries().keys() == {"a", "c"}
    assert not list(work.glob("*.partial"))
