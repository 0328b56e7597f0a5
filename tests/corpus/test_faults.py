"""Building a corpus is killed, starved, poisoned and started twice; what comes out is what an undisturbed run gives."""

import csv
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hardship import as_nobody, context, make, unwritable, without
from pdfs import article

from idiograph.corpus.build import paper_sources
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.readers import UnreadableSource
from idiograph.errors import ArtifactError
from idiograph.pdf.extract import extract
from idiograph.recipe import CorpusRecipe, ExtractRecipe
from idiograph.runner import Workers
from idiograph.store import lock_place
from idiograph.synth.anthology import anthology
from idiograph.types import Author, Document

PLAIN = CorpusRecipe(citations="keep", filters=False, language="depositor", duplicates="keep")
WORLD = "synth:documents=200,seed=3"


def finish(out: Path) -> float:
    """Run to the end in a process of its own, and how long that took."""
    begin = time.monotonic()
    assert not killed(out, after=120)
    return time.monotonic() - begin


def killed(out: Path, after: float) -> bool:
    """Whether a build had to be killed after so many seconds."""
    process = context.Process(target=make, args=(WORLD, out))
    process.start()
    process.join(after)
    process.kill()
    process.join()
    assert process.exitcode in (0, -9)
    return process.exitcode == -9


def contents(folder: Path) -> dict[str, Any]:
    """Every byte of a corpus; when it was made does not count."""
    files: dict[str, Any] = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    manifest = json.loads(files.pop("manifest.json"))
    return {**files, "manifest": {key: value for key, value in manifest.items() if key != "created"}}


def kill_many(kills: int, home: Path) -> None:
    """Kill builds at random moments, a few times each folder; the run that is left alone makes what it should."""
    took = finish(home / "calm")
    expected, luck, done, turn = contents(home / "calm"), random.Random(11), 0, 0
    while done < kills:
        out = home / f"killed-{(turn := turn + 1)}"
        while not out.exists() and done < kills:
            done += killed(out, after=luck.uniform(0.02, 1.1) * took)
        if not out.exists():
            finish(out)
        assert contents(out) == expected
        names = {
            path.name for path in home.iterdir() if path.suffix != ".lock"
        }  # of a run that was killed at its very end
        assert names == {"calm", *(f"killed-{n}" for n in range(1, turn + 1))}


def test_a_killed_build_leaves_nothing_or_all_and_the_next_one_is_whole(tmp_path: Path) -> None:
    kill_many(3, tmp_path)


@pytest.mark.slow
def test_a_corpus_killed_fifty_times_ends_in_the_same_bytes(tmp_path: Path) -> None:
    kill_many(50, tmp_path)


def test_a_second_build_of_one_folder_is_refused(tmp_path: Path) -> None:
    with (
        lock_place(tmp_path / "c"),
        pytest.raises(ArtifactError, match=r"another run is writing .*wait for it"),
    ):
        build_corpus(anthology(), tmp_path / "c")


def test_a_folder_that_may_not_be_written_is_named() -> None:
    with unwritable() as folder:
        said = without(as_nobody, 65534, build_corpus, [], folder / "c")
    assert said == f"ArtifactError: cannot write '{folder}/c': Permission denied"


FULL_DISK = """
import os, sys, subprocess
from pathlib import Path
from idiograph.corpus.build import paper_sources
from idiograph.corpus.corpus import build_corpus
from idiograph.pdf.extract import extract
from idiograph.errors import ArtifactError
from idiograph.recipe import ExtractRecipe
disk, pdfs, world = sys.argv[1:]

def size(kilobytes):
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", disk], check=True)

subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", disk], check=True)
jobs = [lambda: extract(Path(pdfs), Path(disk) / "tei", ExtractRecipe(workers=1)).fingerprint,
        lambda: build_corpus(paper_sources([world]), Path(disk) / "corpus").documents]
for job in jobs:
    try:
        job()
    except ArtifactError as error:
        print(error)
    print(*sorted(os.listdir(disk)))
    size(16_000)
    print(job())
    taken = os.statvfs(disk)
    size((taken.f_blocks - taken.f_bfree) * taken.f_frsize // 1024 + 100)
"""


def test_a_full_disk_costs_neither_extraction_nor_corpus(tmp_path: Path) -> None:
    """On a real disk of a few kilobytes, which is enlarged after the complaint."""
    if os.getuid() or not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "true"]).returncode:
        pytest.skip("only root can mount a small disk, and only where namespaces are allowed")
    (tmp_path / "pdf").mkdir()
    for number in range(12):
        (tmp_path / "pdf" / f"hal-{number:02}.pdf").write_bytes(article(number, pages=2))
    calm = extract(tmp_path / "pdf", tmp_path / "calm", ExtractRecipe(workers=1))
    (tmp_path / "disk").mkdir()
    command = ["unshare", "--mount", sys.executable, "-c", FULL_DISK, *map(str, (tmp_path / "disk", tmp_path / "pdf"))]
    done = subprocess.run([*command, WORLD], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    first, left, print_, second, rest, documents = done.stdout.splitlines()
    assert "tei': No space left on device; run the same command again when that is mended: it goes on" in first
    assert "corpus': No space left on device; mend that and run the same command again" in second
    assert (left, rest) == ("tei", "tei")  # nothing half-written stays
    assert (print_, documents) == (calm.fingerprint, "200")


class Deadly(str):
    """A text that kills whoever cleans it."""

    def replace(self, *_: object) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""


def test_a_document_that_kills_its_worker_is_lost_alone(tmp_path: Path) -> None:
    some = [Document(f"d{n}", f"Text number {n}, in a few words.", (Author("A"),), lang="en") for n in range(6)]
    items = [*some[:3], Document("deadly", Deadly("Do not read this."), (Author("A"),), lang="en"), *some[3:]]
    built = build_corpus(items, tmp_path / "c", PLAIN, workers=Workers("processes", 1))
    assert [document.id for document in Corpus(tmp_path / "c")] == [f"d{n}" for n in range(6)]
    assert built.failures == (UnreadableSource("deadly", "its worker died"),)


def test_a_jumping_clock_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It jumps by years between any two looks at it."""
    build_corpus(anthology(), tmp_path / "calm")
    truth, jumps = time.time(), iter(range(1, 1_000_000))
    monkeypatch.setattr(time, "time", lambda: truth + (-1) ** next(jumps) * 3e8)
    build_corpus(anthology(), tmp_path / "jumped")
    assert contents(tmp_path / "jumped") == contents(tmp_path / "calm")


@pytest.mark.parametrize("lang", ["../../../escaped", "/etc", "..", "a/b", "en\0", "klingon", "x" * 300])
def test_a_language_that_is_none_names_no_folder(tmp_path: Path, lang: str) -> None:
    text = "The tide has been measured at this harbour for as long as anyone can remember, and so it will be."
    build_corpus([Document("a", text, (Author("A"),), lang=lang)], tmp_path / "home" / "c", PLAIN)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert [path.name for path in (tmp_path / "home" / "c").iterdir() if path.is_dir()] == ["en"]


def test_hostile_files_are_lines_in_the_list_and_the_build_goes_on(tmp_path: Path) -> None:
    tei = tmp_path / "tei"
    tei.mkdir()
    words = "<p>The tide has been measured at this harbour for as long as anyone can remember.</p>"
    people = "<author><persName><forename>Ann</forename><surname>Ong</surname></persName></author>"
    crowd = "<author><persName><surname>Name{}</surname></persName></author>"
    shape = (
        '<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader xml:lang="en"><fileDesc><sourceDesc><biblStruct><analytic>'
        "{}</analytic></biblStruct></sourceDesc></fileDesc></teiHeader><text><body><div>{}</div></body></text></TEI>"
    )
    files = {
        "good": shape.format(people, words).encode(),
        "crowd": shape.format("".join(map(crowd.format, range(100_000))), words).encode(),
        "bomb": b'<!DOCTYPE TEI [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + shape.format(people, "&b;").encode(),
        "outside": b'<!DOCTYPE TEI [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + shape.format(people, "&x;").encode(),
        "bytes": shape.format(people, "<p>caf\xe9</p>").encode("latin-1"),
        "cut": shape.format(people, words).encode()[:200],
        "empty": b"",
    }
    for name, data in files.items():
        (tei / f"{name}.tei.xml").write_bytes(data)
    with (tei / "giant.tei.xml").open("wb") as file:  # a text node of a gigabyte; the disk is spared
        file.write(b"<TEI><text><body><p>")
        file.truncate(1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    built = build_corpus(paper_sources([str(tei)]), tmp_path / "c")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes: the giant was not read
    assert {document.id for document in Corpus(tmp_path / "c")} == {"good"}
    with (tmp_path / "c" / "left_out.csv").open() as file:
        said = {row["id"]: (row["reason"], row["detail"]) for row in csv.DictReader(file)}
    assert said.pop("crowd") == ("more than 20000 authors", "")
    assert said.keys() == {f"{name}.tei.xml" for name in ("bomb", "bytes", "cut", "empty", "giant", "outside")}
    assert all(reason == "unreadable" and detail for reason, detail in said.values())
    assert "1,073,741,824 bytes" in said["giant.tei.xml"][1]
    assert built.dropped == {"more than 20000 authors": 1, "unreadable": 6}
