"""Folders are whole or absent."""

import json
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass

import pytest

from idiograph import checksums
from idiograph.errors import ArtifactError
from idiograph.store import (
    Ledger,
    Manifest,
    ShardedFolder,
    add_sealed_json,
    change_folder,
    draft,
    find_manifest,
    fingerprint,
    locked_folder,
    read_manifest,
    read_sealed_json,
    seal,
    verify_folder,
)


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
        assert list(folder.iterdir()) == []
        (folder / "whole").write_text("x")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["whole"]


OVERWRITE = """
import os, signal, sys
from pathlib import Path
from idiograph.store import Manifest, draft, seal

def write(target, word, overwrite):
    with draft(target, overwrite) as folder:
        for name in "abc":
            (folder / name).write_text(word)
        seal(folder, Manifest("thing"))

target, last = Path(sys.argv[1]), int(sys.argv[2])
write(target, "old", False)
steps = 0

def count(event, args):
    global steps
    if event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
write(target, "new", True)
print("done")
"""


def test_a_kill_at_any_step_of_overwriting_leaves_the_old_folder_or_the_new_one_whole(tmp_path):
    seen, killed = set(), 0
    for step in range(1, 50):
        target = tmp_path / str(step) / "out"
        ran = subprocess.run([sys.executable, "-c", OVERWRITE, str(target), str(step)], capture_output=True, text=True)
        if ran.stdout:
            break
        killed += 1
        read_manifest(target, "thing", "make it")
        words = {(target / name).read_text() for name in "abc"}
        assert len(words) == 1
        seen |= words
        with draft(target, overwrite=True) as folder:
            seal(folder, Manifest("thing"))
        assert [path.name for path in target.parent.iterdir()] == ["out"]
    assert killed > 8  # renames, and the removal of each file of the old folder
    assert seen == {"old", "new"}


def test_of_two_overwriting_runs_the_second_is_refused_even_while_the_first_exchanges(tmp_path, monkeypatch):
    with draft(tmp_path / "out") as folder:
        seal(folder, Manifest("thing"))
    arrived, go_on = threading.Event(), threading.Event()
    remove = shutil.rmtree

    def remove_slowly(path, *options, **more):
        arrived.set()
        assert go_on.wait(60)
        remove(path, *options, **more)

    def overwrite():
        with draft(tmp_path / "out", overwrite=True) as folder:
            (folder / "data").write_text("first")
            seal(folder, Manifest("thing"))

    monkeypatch.setattr("idiograph.store.shutil.rmtree", remove_slowly)
    first = threading.Thread(target=overwrite)
    first.start()
    assert arrived.wait(60)
    with pytest.raises(ArtifactError, match="another run is writing"), draft(tmp_path / "out", overwrite=True):
        pass
    go_on.set()
    first.join()
    assert (tmp_path / "out" / "data").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("read", [find_manifest, lambda folder: read_manifest(folder, "thing", "make it")])
def test_a_reader_puts_back_what_a_killed_run_has_left_aside(tmp_path, read):
    seal(make(tmp_path / ".out.old", a="x"), Manifest("thing"))
    assert read(tmp_path / "out").files["a"]["bytes"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nobody_changes_a_folder_that_is_about_to_be_replaced(tmp_path):
    seal(make(tmp_path / "out"), Manifest("thing"))
    with draft(tmp_path / "out", overwrite=True) as folder:
        with pytest.raises(ArtifactError, match="another run is writing"), locked_folder(tmp_path / "out"):
            pass
        seal(folder, Manifest("thing"))


def make(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


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


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: (folder / "a").unlink(), "a is missing"),
        (lambda folder: (folder / "c").touch(), "c does not belong to it"),
        (lambda folder: (folder / "a").write_text("other"), "a has 5 bytes and not 4"),
        (lambda folder: (folder / "a").write_text("nano"), "the content of a has changed"),
        (lambda folder: (folder / "a").rename(folder / ".a"), "a is missing"),
    ],
)
def test_what_happened_to_a_finished_folder_is_said_with_how_to_make_it_again(tmp_path, harm, said):
    seal(make(tmp_path / "f", a="mano", b="x"), Manifest("thing"))
    harm(tmp_path / "f")
    with pytest.raises(ArtifactError, match=rf"f' is damaged \({said}\); make it again: idiograph thing"):
        read_manifest(tmp_path / "f", "thing", "idiograph thing")


def test_a_changed_manifest_is_noticed(tmp_path):
    seal(make(tmp_path / "f"), Manifest("thing", counts={"rows": 12}))
    path = tmp_path / "f" / "manifest.json"
    path.write_text(path.read_text().replace("12", "13"))
    with pytest.raises(ArtifactError, match="has changed since it was written"):
        read_manifest(tmp_path / "f", "thing", "make it")


def test_contents_are_read_once_and_again_when_a_file_may_be_another(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("idiograph.checksums.SECONDS_UNTIL_SETTLED", -1)
    seal(make(tmp_path / "f", a="mano", b="x"), Manifest("thing"))
    read, digest = [], checksums.digest
    monkeypatch.setattr("idiograph.checksums.digest", lambda path: read.append(path.name) or digest(path))
    for _ in range(2):
        read_manifest(tmp_path / "f", "thing", "make it")
    assert sorted(read) == ["a", "b"]
    read.clear()
    os.utime(tmp_path / "f" / "a", (1, 1))
    read_manifest(tmp_path / "f", "thing", "make it")
    assert read == ["a"]
    read.clear()
    assert verify_folder(tmp_path / "f")[1] == []
    assert sorted(read) == ["a", "b"]


def test_a_file_that_is_younger_than_its_clock_can_tell_is_not_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("idiograph.checksums.SECONDS_UNTIL_SETTLED", 3600)
    seal(make(tmp_path / "f", a="mano"), Manifest("thing"))
    read_manifest(tmp_path / "f", "thing", "make it")
    assert checksums.remembered_files(tmp_path / "f") == {}


def test_a_folder_is_checked_where_nothing_can_be_remembered(tmp_path, monkeypatch):
    (tmp_path / "home").write_text("a file, where no folder can be made")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    seal(make(tmp_path / "f", a="mano"), Manifest("thing"))
    assert read_manifest(tmp_path / "f", "thing", "make it").kind == "thing"


def test_a_folder_of_the_first_format_is_compared_by_its_fingerprint(tmp_path):
    make(tmp_path / "f", a="mano")
    old = {"kind": "thing", "fingerprint": fingerprint(tmp_path / "f"), "format": 1}
    (tmp_path / "f" / "manifest.json").write_text(json.dumps(old))
    assert read_manifest(tmp_path / "f", "thing", "make it").files == {}
    (tmp_path / "f" / "a").write_text("nano")
    with pytest.raises(ArtifactError, match="a file has changed since it was written"):
        read_manifest(tmp_path / "f", "thing", "make it")


def test_a_change_to_a_finished_folder_is_part_of_it_afterwards(tmp_path):
    folder = make(tmp_path / "f", a="mano", b="x")
    seal(folder, Manifest("thing"))
    with locked_folder(folder), change_folder(folder):
        (folder / "b").write_text("y")
        (folder / "c").write_text("new")
    assert read_manifest(folder, "thing", "make it").files.keys() == {"a", "b", "c"}


def test_a_reader_of_a_folder_that_is_being_changed_takes_what_is_there(tmp_path):
    folder = make(tmp_path / "f", a="mano", b="x")
    seal(folder, Manifest("thing"))
    with locked_folder(folder), change_folder(folder):
        (folder / "c").write_text("new")
        (folder / "b").unlink()
        assert read_manifest(folder, "thing", "make it").files.keys() == {"a", "b"}
        damage(folder / "a")
        with pytest.raises(ArtifactError, match="the content of a has changed"):
            read_manifest(folder, "thing", "make it")


def damage(path):
    """What a disk does: another byte, and the times as they were."""
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_text("nano")
    os.utime(path, ns=times)


def test_a_change_does_not_bless_what_was_damaged_before(tmp_path):
    folder = make(tmp_path / "f", a="mano")
    seal(folder, Manifest("thing"))
    damage(folder / "a")
    with pytest.raises(ArtifactError, match="the content of a has changed"), change_folder(folder):
        pass


def test_what_is_damaged_in_a_change_is_noticed_after_it(tmp_path):
    folder = make(tmp_path / "f", a="mano")
    seal(folder, Manifest("thing"))
    with locked_folder(folder), change_folder(folder):
        damage(folder / "a")
    with pytest.raises(ArtifactError, match="the content of a has changed"):
        read_manifest(folder, "thing", "make it")


def test_a_folder_that_a_kill_left_in_a_change_is_brought_in_order_by_its_next_reader(tmp_path):
    folder = make(tmp_path / "f", a="mano")
    seal(folder, Manifest("thing"))
    (folder / ".changing").touch()
    (folder / "c").touch()
    assert read_manifest(folder, "thing", "make it").files.keys() == {"a", "c"}
    assert not (folder / ".changing").exists()


def test_a_manifest_of_somebody_else_is_none_of_ours(tmp_path):
    (tmp_path / "manifest.json").write_text('{"name": "a web page"}')
    assert find_manifest(tmp_path) is None


def test_a_damaged_line_of_a_ledger_is_named(tmp_path):
    (tmp_path / "ledger.jsonl").write_text('{"name": "a"}\n{"name": \n')
    with pytest.raises(ArtifactError, match=r"ledger.jsonl:2' is damaged .*remove that line"):
        list(Ledger(tmp_path / "ledger.jsonl"))
    folder = ShardedFolder(tmp_path, "1/1", Outcome)
    (tmp_path / "ledger.jsonl").write_text('{"surname": "a"}\n')
    with pytest.raises(ArtifactError, match="has a line that is none of its own"):
        folder.entries()


def test_a_name_that_is_not_utf8_goes_through_ledger_and_manifest(tmp_path):
    name = os.fsdecode(b"caf\xe9")
    note(tmp_path / "f", "1/1", Outcome(name))
    (tmp_path / "f" / name).touch()
    folder = ShardedFolder(tmp_path / "f", "1/1", Outcome)
    folder.seal(folder.entries().values(), Manifest("thing"))
    assert name in read_manifest(tmp_path / "f", "thing", "make it").files


def test_what_is_kept_beside_a_sealed_folder_is_part_of_it_and_has_its_own_checksum(tmp_path):
    folder = make(tmp_path / "f", a="mano")
    seal(folder, Manifest("model"))
    for value in (1.5, 2.5):
        add_sealed_json(folder / "calibration.json", {"bound": value})
        assert set(read_manifest(folder, "model", "make it").files) == {"a", "calibration.json"}
        assert read_sealed_json(folder / "calibration.json", "make it") == {"bound": value}
    path = folder / "calibration.json"
    path.write_text(path.read_text().replace("2.5", "3.5"))
    with pytest.raises(ArtifactError, match="has changed since it was written; make it"):
        read_sealed_json(path, "make it")
    with pytest.raises(ArtifactError, match="the content of calibration.json has changed"):
        read_manifest(folder, "model", "make it")


def test_what_follows_from_files_is_worked_out_anew_when_one_of_them_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("idiograph.checksums.is_settled", lambda _: True)  # however young
    folder, asked = tmp_path / "folder", list[str]()
    folder.mkdir()

    def derive() -> str:
        asked.append((folder / "a").read_text())
        return asked[-1].upper()

    for text in ("x", "yy"):
        (folder / "a").write_text(text)
        for _ in range(2):
            assert checksums.remember_derived(folder, ["a"], derive, "tests") == text.upper()
    assert asked == ["x", "yy"]
