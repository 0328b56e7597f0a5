"""From a folder of PDFs to a folder of TEI with the embedded extractor: names, ledgers, limits, shards, hostile files."""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest
from pdfs import Sheet, article, bomb, encrypted, endless, looping, pdf, torrent

from idiograph.corpus.tei import read_tei
from idiograph.errors import ArtifactError, InputError, ServiceError, SpecError
from idiograph.pdf import Extraction
from idiograph.pdf.extract import extract
from idiograph.pdf.sandbox import EmbeddedExtractor
from idiograph.recipe import ExtractRecipe
from idiograph.store import locked_folder, read_manifest
from tests.standin.grobid import GrobidStandIn

ONE = ExtractRecipe(workers=1)
HOSTILE = {
    "crowd.pdf": (endless(60), 400, "too many pages"),
    "cut.pdf": (article()[:900], 400, "not a readable PDF"),
    "empty.pdf": (b"", 400, "not a readable PDF"),
    "html.pdf": (b"<!DOCTYPE html><html>One moment, please.</html>", 400, "not a readable PDF"),
    "locked.pdf": (encrypted(), 400, "not a readable PDF"),
    "loop.pdf": (looping(), 204, "no text"),
    "scan.pdf": (pdf([Sheet()]), 204, "no text"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "pdf", 6)


def fill(pdfs: Path, count: int) -> Path:
    for number in range(count):
        path = pdfs / f"{number % 2}" / f"hal-{number:02}.pdf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(article(number, pages=1))
    return pdfs


def contents(out: Path) -> dict[str, bytes]:
    """All files that a reader sees, but for the manifest, which has the time in it."""
    files = [p for p in out.rglob("*") if p.is_file() and ".work" not in p.parts and p.name != "manifest.json"]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def ledger(out: Path) -> dict[str, dict]:
    return {entry["name"]: entry for entry in map(json.loads, (out / "ledger.jsonl").read_text().splitlines())}


def test_each_pdf_becomes_tei_under_the_name_that_grobids_client_gives(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    manifest = extract(folder, out, ONE)
    names = {f"{number % 2}/hal-{number:02}.grobid.tei.xml" for number in range(6)}
    assert set(contents(out)) == names | {"ledger.jsonl"}
    assert manifest.counts == {"pdfs": 6, "tei": 6}
    assert read_manifest(out, "tei", "").fingerprint == manifest.fingerprint != ""


def test_our_tei_is_read_by_the_reader_of_grobids_tei(folder: Path, tmp_path: Path) -> None:
    extract(folder, tmp_path / "tei", ONE)
    read = read_tei((tmp_path / "tei/1/hal-01.grobid.tei.xml").read_bytes())
    assert read.title == "On the harbour, part 1"
    assert [section.head for section in read.sections] == ["1 Section of part 1"]
    assert read.sections[0].paragraphs[0].startswith("Every ledger that the clerks kept was copied by hand")


def test_hostile_files_are_entries_with_a_reason_and_the_run_goes_on(folder: Path, tmp_path: Path) -> None:
    for name, (data, _, _) in HOSTILE.items():
        (folder / name).write_bytes(data)
    out = tmp_path / "tei"
    manifest = extract(folder, out, ExtractRecipe(workers=2, max_pages=50))
    found = {name: (entry["status"], entry["reason"]) for name, entry in ledger(out).items() if name in HOSTILE}
    assert found == {name: (status, reason) for name, (_, status, reason) in HOSTILE.items()}
    assert manifest.counts == {"pdfs": 6 + len(HOSTILE), "tei": 6}
    assert ledger(out)["locked.pdf"]["detail"] == "incorrect password error"
    assert (out / "crowd_400.txt").read_text() == "too many pages: 60, more than 50\n"


@pytest.mark.parametrize(
    ("data", "changes", "status", "reason"),
    [
        (bomb(900_000_000), {"memory": 256}, 500, "worker died"),
        (torrent(3_000_000), {"timeout": 0.5}, 408, "took too long"),
        (article(), {"max_bytes": 100}, 400, "too large"),
    ],
)
def test_a_document_over_a_limit_costs_itself_alone(
    folder: Path, tmp_path: Path, data: bytes, changes: dict, status: int, reason: str
) -> None:
    embedded = EmbeddedExtractor(ExtractRecipe(**{"workers": 1, **changes}))
    (folder / "greedy.pdf").write_bytes(data)
    try:
        outcome = embedded(folder / "greedy.pdf")
        assert (outcome.status, outcome.reason) == (status, reason)
        assert embedded(folder / "0/hal-00.pdf").status == 200 or changes.get("max_bytes")
    finally:
        embedded.close()


@pytest.mark.parametrize("workers", [2, 4])
def test_results_do_not_depend_on_the_number_of_workers(folder: Path, tmp_path: Path, workers: int) -> None:
    one = extract(folder, tmp_path / "one", ONE)
    many = extract(folder, tmp_path / "many", ExtractRecipe(workers=workers))
    assert contents(tmp_path / "one") == contents(tmp_path / "many")
    assert one.fingerprint == many.fingerprint


def test_shards_fill_one_folder_and_the_last_one_seals_it(folder: Path, tmp_path: Path) -> None:
    extract(folder, tmp_path / "whole", ONE)
    out = tmp_path / "parts"
    for part in ("3/3", "1/3"):
        assert extract(folder, out, ONE, part).fingerprint == ""
        assert not (out / "manifest.json").exists()
    assert extract(folder, out, ONE, "2/3").counts == {"pdfs": 6, "tei": 6}
    assert contents(out) == contents(tmp_path / "whole")


def test_a_whole_run_goes_on_from_shards(folder: Path, tmp_path: Path) -> None:
    out, seen = tmp_path / "tei", []
    extract(folder, out, ONE, "1/2")
    done = len(list(out.rglob("*.tei.xml")))
    extract(folder, out, ONE, progress=lambda *told: seen.append(told))
    assert 0 < done < 6
    assert len(seen) == 6 - done


def test_a_finished_folder_is_left_alone(folder: Path, tmp_path: Path) -> None:
    out, seen = tmp_path / "tei", []
    first = extract(folder, out, ONE)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.xml")}
    again = extract(folder, out, ONE, progress=lambda *told: seen.append(told))
    assert seen == []
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.xml")} == before
    assert again == first


def test_new_changed_and_lost_documents_are_done_again(folder: Path, tmp_path: Path) -> None:
    out, seen = tmp_path / "tei", set()
    extract(folder, out, ONE)
    (folder / "new.pdf").write_bytes(article(9, pages=1))
    (folder / "0/hal-00.pdf").write_bytes(article(17, pages=2))
    (out / "1/hal-01.grobid.tei.xml").unlink()
    extract(folder, out, ONE, progress=lambda done, total, name: seen.add(name))
    assert seen == {"new.pdf", "0/hal-00.pdf", "1/hal-01.pdf"}
    fresh = tmp_path / "fresh"
    extract(folder, fresh, ONE)
    assert contents(out) == contents(fresh)


def test_a_failure_gives_way_to_a_success(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    (folder / "late.pdf").write_bytes(b"%PDF-1.5")
    extract(folder, out, ONE)
    assert (out / "late_400.txt").is_file()
    (folder / "late.pdf").write_bytes(article(5, pages=1))
    extract(folder, out, ONE)
    assert not (out / "late_400.txt").exists()
    assert (out / "late.grobid.tei.xml").is_file()


def test_lasting_failures_are_done_again_on_demand(folder: Path, tmp_path: Path) -> None:
    out, seen = tmp_path / "tei", []
    (folder / "long.pdf").write_bytes(article(pages=3))
    assert extract(folder, out, ExtractRecipe(workers=1, max_pages=2)).dropped == {"too many pages": 1}
    assert extract(folder, out, ONE).dropped == {"too many pages": 1}
    again = ExtractRecipe(workers=1, retry=True)
    assert extract(folder, out, again, progress=lambda done, total, name: seen.append(name)).dropped == {}
    assert seen == ["long.pdf"]


def test_results_of_pdfs_that_are_gone_are_an_error_until_they_are_pruned(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    extract(folder, out, ONE)
    (folder / "0/hal-02.pdf").unlink()
    with pytest.raises(ArtifactError, match=r"results of 1 PDFs that are not there any more, such as '0/hal-02\.pdf'"):
        extract(folder, out, ONE)
    assert extract(folder, out, ExtractRecipe(workers=1, prune=True)).counts == {"pdfs": 5, "tei": 5}
    assert "0/hal-02.grobid.tei.xml" not in contents(out)


def test_one_folder_holds_the_work_of_one_extractor(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    extract(folder, out, ONE)
    (folder / "new.pdf").write_bytes(article(9, pages=1))
    with GrobidStandIn() as server, pytest.raises(ArtifactError, match=r"was extracted by idiograph .*, not by grobid"):
        extract(folder, out, ExtractRecipe(grobid=(server.url,)))


def test_a_second_run_on_one_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    with locked_folder(tmp_path / "tei/.work/1-of-1"), pytest.raises(ArtifactError, match="another run is writing"):
        extract(folder, tmp_path / "tei", ONE)


def test_what_is_not_a_folder_of_pdfs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder '.*nowhere' with PDFs; make one: idiograph download"):
        extract(tmp_path / "nowhere", tmp_path / "tei", ONE)
    (tmp_path / "notes.txt").write_text("no PDF")
    with pytest.raises(InputError, match=r"has no PDFs; their names must end in \.pdf"):
        extract(tmp_path, tmp_path / "tei", ONE)


def test_two_pdfs_that_would_become_one_tei_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "0/hal-00.PDF").write_bytes(article())
    with pytest.raises(InputError, match=r"would both become '0/hal-00\.grobid\.tei\.xml'; rename one of them"):
        extract(folder, tmp_path / "tei", ONE)


def test_an_unknown_shard_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="unknown shard '4/3'"):
        extract(folder, tmp_path / "tei", ONE, "4/3")


def test_hidden_files_are_not_documents(folder: Path, tmp_path: Path) -> None:
    (folder / "._hal-00.pdf").write_bytes(b"resource fork")
    (folder / ".work").mkdir()
    (folder / ".work/part.pdf").write_bytes(article())
    assert extract(folder, tmp_path / "tei", ONE).counts["pdfs"] == 6


def test_progress_counts_up_to_the_number_of_documents(folder: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    extract(
        folder, tmp_path / "tei", ExtractRecipe(workers=2), progress=lambda done, total, _: seen.append((done, total))
    )
    assert seen == [(number, 6) for number in range(1, 7)]


def test_damaged_files_are_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    luck, whole, path = Random(3), article(pages=1), tmp_path / "damaged.pdf"
    embedded = EmbeddedExtractor(ExtractRecipe(workers=1, timeout=20))
    try:
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(luck.choice((1, 8, 64))):
                data[luck.randrange(len(data))] = luck.randrange(256)
            path.write_bytes(bytes(data[: luck.choice((len(data), luck.randrange(len(data))))]))
            assert embedded(path).status in (200, 204, 400)
    finally:
        embedded.close()


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A file that never ends to open: whoever reads it hangs."""
    os.mkfifo(tmp_path / "hanging.pdf")
    return tmp_path / "hanging.pdf"


def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.pdf"
    path.write_bytes(article())
    return path


def test_a_worker_that_hangs_is_killed_and_replaced(fifo: Path, tmp_path: Path) -> None:
    embedded = EmbeddedExtractor(ExtractRecipe(workers=1, timeout=1))
    try:
        assert embedded(fifo) == Extraction(408, reason="took too long", detail="more than 1 seconds")
        assert embedded(sound(tmp_path)).status == 200
    finally:
        embedded.close()


def in_work(embedded: EmbeddedExtractor, pdf: Path, outcomes: list[Extraction]) -> threading.Thread:
    """A thread in which the only worker, which has been started before, is at work on a document."""
    thread = threading.Thread(target=lambda: outcomes.append(embedded(pdf)))
    thread.start()
    while embedded.pool.workers[0].served < 2:
        time.sleep(0.005)
    return thread


def test_a_worker_that_crashes_costs_its_document_alone(fifo: Path, tmp_path: Path) -> None:
    embedded, outcomes = EmbeddedExtractor(ExtractRecipe(workers=1, timeout=60)), []
    try:
        assert embedded(sound(tmp_path)).status == 200
        worker = embedded.pool.workers[0].child
        assert worker is not None
        thread = in_work(embedded, fifo, outcomes)
        worker.process.send_signal(signal.SIGSEGV)
        thread.join()
        assert outcomes == [Extraction(500, reason="worker died", detail="killed by SIGSEGV")]
        assert embedded(sound(tmp_path)).status == 200
    finally:
        embedded.close()


def test_closing_ends_the_workers_even_in_the_middle_of_a_document(fifo: Path, tmp_path: Path) -> None:
    embedded, outcomes = EmbeddedExtractor(ExtractRecipe(workers=1, timeout=60)), []
    assert embedded(sound(tmp_path)).status == 200
    worker = embedded.pool.workers[0].child
    assert worker is not None
    thread = in_work(embedded, fifo, outcomes)
    embedded.close()
    thread.join()
    assert worker.process.poll() is not None
    assert [outcome.reason for outcome in outcomes] == ["worker died"]


def test_a_worker_that_cannot_start_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(
        ServiceError, match=r"a worker of the extractor did not start \(exit code 1\); see why: python -m"
    ):
        EmbeddedExtractor(ExtractRecipe(workers=1))(sound(tmp_path))


def test_an_interruption_leaves_no_process_and_no_half_file(folder: Path, tmp_path: Path) -> None:
    out, before = tmp_path / "tei", set(children(os.getpid()))  # earlier tests may have left a process of Python's own

    def interrupt(done: int, total: int | None, name: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(folder, out, ExtractRecipe(workers=2), progress=interrupt)
    assert not (out / "manifest.json").exists()
    assert not set(children(os.getpid())) - before
    extract(folder, out, ONE)
    extract(folder, tmp_path / "fresh", ONE)
    assert contents(out) == contents(tmp_path / "fresh")


def children(pid: int) -> list[str]:
    for _ in range(100):  # a thread that ends while they are being listed takes its list with it
        with contextlib.suppress(FileNotFoundError):
            tasks = Path(f"/proc/{pid}/task").iterdir()
            return [kid for task in tasks for kid in (task / "children").read_text().split()]
    raise AssertionError("threads end faster than they can be listed")
