"""Extraction is killed, starved and started twice; what comes out in the end is what an undisturbed run gives."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hardship import as_nobody, unwritable, without
from pdfs import Sheet, article, pdf

from idiograph.errors import ArtifactError
from idiograph.pdf.extract import extract
from idiograph.recipe import ExtractRecipe
from tests.standin.grobid import GrobidFault, GrobidStandIn

RUN = """
import resource, sys
from pathlib import Path
from idiograph.pdf.extract import extract
from idiograph.recipe import ExtractRecipe
from idiograph.errors import IdiographError
pdfs, out, grobid, limit, part = sys.argv[1:]
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    extract(Path(pdfs), Path(out), ExtractRecipe(workers=2, grobid=tuple(grobid.split()), wait=0.01, ready=5), part)
except IdiographError as error:
    sys.exit(str(error))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sound papers and some that fail."""
    pdfs = tmp_path_factory.mktemp("pdfs")
    for number in range(24):
        (pdfs / f"hal-{number:02}.pdf").write_bytes(article(number, pages=1 + number % 3))
    (pdfs / "broken.pdf").write_bytes(article()[:700])
    (pdfs / "scan.pdf").write_bytes(pdf([Sheet()]))
    return pdfs


def start(pdfs: Path, out: Path, grobid: str = "", limit: int = 0, part: str = "1/1") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(pdfs), str(out), grobid, str(limit), part]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(pdfs: Path, out: Path, grobid: str = "") -> float:
    """Run to the end, and how long that took."""
    begin = time.monotonic()
    process = start(pdfs, out, grobid)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    return time.monotonic() - begin


def contents(out: Path) -> dict[str, bytes]:
    files = [p for p in out.rglob("*") if p.is_file() and ".work" not in p.parts and p.name != "manifest.json"]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def kill_many(times: int, pdfs: Path, home: Path, grobid: str = "") -> None:
    """Kill runs at random moments, go on each time, begin anew when one is done; every folder ends up as it should."""
    took = finish(pdfs, home / "undisturbed", grobid)
    expected, luck, kills, turn = contents(home / "undisturbed"), random.Random(11), 0, 0
    while kills < times:
        out = home / f"killed-{(turn := turn + 1)}"
        for _ in range(6):
            process = start(pdfs, out, grobid)
            try:
                process.communicate(timeout=luck.uniform(0.1, 0.9) * took)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
        finish(pdfs, out, grobid)
        assert contents(out) == expected
        assert not list(out.glob(".work/*/*.partial"))


def test_a_killed_extraction_goes_on_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    kill_many(5, folder, tmp_path)


@pytest.mark.slow
def test_an_extraction_killed_fifty_times_goes_on_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    kill_many(50, folder, tmp_path)


@pytest.mark.slow
def test_an_extraction_by_grobid_killed_fifty_times_goes_on_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(pool=2) as server:
        kill_many(50, folder, tmp_path, server.url)


def test_no_worker_outlives_its_killed_parent(tmp_path: Path) -> None:
    pdfs = tmp_path / "pdf"
    pdfs.mkdir()
    (pdfs / "long.pdf").write_bytes(article(pages=900))
    process = start(pdfs, tmp_path / "tei")
    while not (workers := children(process.pid)):
        time.sleep(0.02)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children(pid: int) -> list[str]:
    return [kid for task in Path(f"/proc/{pid}/task").iterdir() for kid in (task / "children").read_text().split()]


def test_a_full_disk_stops_the_run_with_one_line_and_nothing_half_written(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    process = start(folder, out, limit=2500)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.strip() == (
        f"cannot write to '{out}': File too large; run the same command again when that is mended: it goes on where it"
        " stopped"
    )
    extract(folder, tmp_path / "undisturbed", ExtractRecipe(workers=2))
    expected = contents(tmp_path / "undisturbed")
    assert all(expected[name] == data for name, data in contents(out).items())
    finish(folder, out)
    assert contents(out) == expected


def test_an_output_that_cannot_be_a_folder_is_one_clear_error(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ArtifactError, match=r"cannot make the folder '.*file/\.work/1-of-1': Not a directory"):
        extract(folder, tmp_path / "file", ExtractRecipe(workers=1))


def test_a_folder_that_may_not_be_written_is_named() -> None:
    with unwritable() as out:
        pdfs = out.parent / "pdf"
        pdfs.mkdir()
        (pdfs / "a.pdf").write_bytes(article())
        said = without(as_nobody, 65534, extract, pdfs, out, ExtractRecipe(workers=1))
    assert said == f"ArtifactError: cannot make the folder '{out}/.work/1-of-1': Permission denied"


@pytest.mark.parametrize("by", ["us", "grobid"])
def test_a_jumping_clock_changes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """It jumps by years between any two looks at it: nobody is given up for it, nobody is waited for."""
    with GrobidStandIn(pool=2, faults=[GrobidFault("status:503", times=2)]) as server:
        where = (server.url,) if by == "grobid" else ()
        recipe = ExtractRecipe(workers=2, grobid=where, wait=0.01, ready=5, timeout=60)
        extract(folder, tmp_path / "calm", recipe)
        truth, jumps = time.time(), iter(range(1, 10_000_000))
        monkeypatch.setattr(time, "time", lambda: truth + (-1) ** next(jumps) * 3e8)
        extract(folder, tmp_path / "jumped", recipe)
    assert contents(tmp_path / "jumped") == contents(tmp_path / "calm")


def test_of_two_runs_on_one_folder_the_second_is_refused(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(faults=[GrobidFault("hang:3", times=99)]) as server:
        first = start(folder, tmp_path / "tei", server.url)
        while not server.seen:
            assert first.poll() is None
            time.sleep(0.02)
        second = start(folder, tmp_path / "tei", server.url)
        _, errors = second.communicate(timeout=60)
        first.kill()
        first.communicate()
    assert second.returncode == 1
    assert "another run is writing" in errors


def test_a_ledger_cut_in_the_middle_of_a_line_is_mended(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    extract(folder, out, ExtractRecipe(workers=2))
    expected = contents(out)
    work = out / ".work/1-of-1/ledger.jsonl"
    lines = (out / "ledger.jsonl").read_text().splitlines(keepends=True)
    work.write_text("".join(lines[:9]) + lines[9][:40])
    (out / "ledger.jsonl").unlink()
    (out / "manifest.json").unlink()
    redone: list[str] = []
    extract(folder, out, ExtractRecipe(workers=2), progress=lambda done, total, name: redone.append(name))
    assert len(redone) == len(lines) - 9
    assert contents(out) == expected


def test_shards_that_end_together_leave_one_sealed_folder(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    runs = [start(folder, out, part=f"{number}/3") for number in (1, 2, 3)]
    assert [(run.communicate(timeout=60)[1], run.returncode) for run in runs] == [("", 0)] * 3
    extract(folder, tmp_path / "undisturbed", ExtractRecipe(workers=2))
    assert contents(out) == contents(tmp_path / "undisturbed")
    assert json.loads((out / "manifest.json").read_text())["counts"] == {"pdfs": 26, "tei": 24}
