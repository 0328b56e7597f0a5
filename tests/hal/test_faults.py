"""Harvest and download against the world: killed at any moment, run twice, out of disk, out of rights."""

import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from hardship import as_nobody, context, short_files, unwritable, without

from idiograph.errors import ArtifactError
from idiograph.hal.download import download
from idiograph.hal.harvest import harvest
from idiograph.hal.records import read_records
from idiograph.recipe import DownloadRecipe, HarvestRecipe
from idiograph.store import locked_folder
from tests.standin.archive import make_archive
from tests.standin.hal import HalStandIn

DEPOSITS, ROWS = 120, 8
Job = tuple[Any, ...]


@pytest.fixture(scope="module")
def hal() -> Iterator[HalStandIn]:
    with HalStandIn(make_archive(DEPOSITS)) as server:
        yield server


@pytest.fixture(autouse=True)
def quiet(hal: HalStandIn) -> None:
    hal.before = lambda _: None
    hal.seen.clear()


def asking(hal: HalStandIn) -> HarvestRecipe:
    return HarvestRecipe(server=hal.url, interval=0, backoff=0, rows=ROWS, licence="any")


def fetching() -> DownloadRecipe:
    return DownloadRecipe(interval=0, backoff=0, per_host=2, licence="any", allow_private=True)


def content(folder: Path) -> dict[str, Any]:
    """All that a reader of the folder can see; when it was made does not count."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert not [path for path in files if path.suffix == ".partial"]
    shown = [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    seen: dict[str, Any] = {path.relative_to(folder).as_posix(): path.read_bytes() for path in shown}
    manifest = json.loads(seen.pop("manifest.json"))
    return {**seen, "manifest": {key: value for key, value in manifest.items() if key != "created"}}


def killed_after(hal: HalStandIn, process: BaseProcess, requests: int, delay: float) -> bool:
    """Let a process make so many requests, kill it `delay` seconds after the last of them came in."""
    countdown = iter(range(requests - 1, -1, -1))

    def watch(_: object) -> None:
        if next(countdown, -1) == 0:
            threading.Timer(delay, process.kill).start() if delay else process.kill()

    hal.before = watch
    process.start()
    process.join(60)
    hal.before = lambda _: None
    assert process.exitcode in (0, -9)
    return process.exitcode == -9


def kill_again_and_again(hal: HalStandIn, job: Callable[..., Any], arguments: Job, kills: int, most: int) -> int:
    """Kill a job at random moments until it ends all the same; how often it was killed."""
    draw = random.Random(f"{kills}/{arguments[-1]}")
    for count in range(kills):
        delay = draw.choice([0.0, draw.uniform(0.0005, 0.02)])
        process = context.Process(target=job, args=arguments)
        if not killed_after(hal, process, draw.randint(1, most), delay):
            return count
    job(*arguments)
    return kills


def kill_harvests(hal: HalStandIn, folder: Path, kills: int) -> None:
    harvest(folder / "calm", asking(hal))
    asked, done, trial = len(hal.seen), 0, 0
    while done < kills:
        trial += 1
        hal.seen.clear()
        count = kill_again_and_again(hal, harvest, (folder / f"out{trial}", asking(hal)), kills - done, most=5)
        assert content(folder / f"out{trial}") == content(folder / "calm")
        assert len(hal.seen) <= asked + count
        done += count


def kill_downloads(hal: HalStandIn, folder: Path, kills: int) -> None:
    records, done, trial = folder / "records", 0, 0
    harvest(records, asking(hal))
    hal.seen.clear()
    download(records, folder / "calm", fetching())
    asked = len(hal.seen)
    while done < kills:
        trial += 1
        hal.seen.clear()
        arguments = (records, folder / f"out{trial}", fetching())
        count = kill_again_and_again(hal, download, arguments, kills - done, most=40)
        assert content(folder / f"out{trial}") == content(folder / "calm")
        assert len(hal.seen) <= asked + fetching().per_host * count
        done += count


def test_a_killed_harvest_resumes_without_a_gap(hal: HalStandIn, tmp_path: Path) -> None:
    kill_harvests(hal, tmp_path, kills=6)


def test_a_killed_download_resumes_without_a_gap(hal: HalStandIn, tmp_path: Path) -> None:
    kill_downloads(hal, tmp_path, kills=6)


@pytest.mark.slow
def test_a_harvest_survives_fifty_kills(hal: HalStandIn, tmp_path: Path) -> None:
    kill_harvests(hal, tmp_path, kills=50)


@pytest.mark.slow
def test_a_download_survives_fifty_kills(hal: HalStandIn, tmp_path: Path) -> None:
    kill_downloads(hal, tmp_path, kills=50)


def test_a_killed_round_of_since_last_loses_nothing(hal: HalStandIn, tmp_path: Path) -> None:
    """Killed before its first page, between its pages and after them, the second round ends like an undisturbed one."""
    for name in ("calm", "out"):
        harvest(tmp_path / name, asking(hal))
    again = asking(hal).model_copy(update={"since": "last"})
    stamps = [doc["dateLastIndexed_tdate"] for doc in hal.archive.docs]
    for doc in hal.archive.docs[:40]:
        doc["dateLastIndexed_tdate"] = "2026-06-01T00:00:00Z"
    try:
        harvest(tmp_path / "calm", again)
        for requests in (1, 2, 3):
            assert killed_after(hal, context.Process(target=harvest, args=(tmp_path / "out", again)), requests, 0.0)
        with pytest.raises(ArtifactError, match="is not a finished folder of records"):
            read_records(tmp_path / "out")
        harvest(tmp_path / "out", again)
    finally:
        for doc, stamp in zip(hal.archive.docs, stamps, strict=True):
            doc["dateLastIndexed_tdate"] = stamp
    assert content(tmp_path / "out") == content(tmp_path / "calm")
    assert content(tmp_path / "out")["manifest"]["counts"]["rounds"] == 2


def test_an_unfinished_harvest_is_not_gone_on_with_by_another_query(hal: HalStandIn, tmp_path: Path) -> None:
    killed_after(hal, context.Process(target=harvest, args=(tmp_path / "out", asking(hal))), 4, 0.0)
    with pytest.raises(ArtifactError, match=r"holds an unfinished harvest with lang = \[\], not \['fr'\]; finish it"):
        harvest(tmp_path / "out", asking(hal).model_copy(update={"lang": ("fr",)}))


def test_an_unfinished_harvest_cannot_be_read(hal: HalStandIn, tmp_path: Path) -> None:
    killed_after(hal, context.Process(target=harvest, args=(tmp_path / "out", asking(hal))), 4, 0.0)
    with pytest.raises(ArtifactError, match="is not a finished folder of records"):
        read_records(tmp_path / "out")


def test_a_shard_that_a_power_cut_took_is_fetched_again(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "calm", asking(hal))
    killed_after(hal, context.Process(target=harvest, args=(tmp_path / "out", asking(hal))), 6, 0.0)
    (tmp_path / "out" / "001-000003.jsonl").write_bytes(b"")
    harvest(tmp_path / "out", asking(hal))
    assert content(tmp_path / "out") == content(tmp_path / "calm")


def test_a_second_harvest_into_one_folder_is_refused(hal: HalStandIn, tmp_path: Path) -> None:
    with locked_folder(tmp_path / "out"), pytest.raises(ArtifactError, match=r"another run is writing .*wait for it"):
        harvest(tmp_path / "out", asking(hal))
    assert hal.seen == []


@pytest.mark.parametrize("part", ["1-of-1", "2-of-3"])
def test_a_second_download_into_one_folder_is_refused(hal: HalStandIn, tmp_path: Path, part: str) -> None:
    harvest(tmp_path / "records", asking(hal))
    hal.seen.clear()
    with locked_folder(tmp_path / "out" / ".work" / part), pytest.raises(ArtifactError, match="another run is writing"):
        download(tmp_path / "records", tmp_path / "out", fetching())
    assert hal.seen == []


def test_a_run_at_the_same_time_is_refused_while_the_first_goes_on(hal: HalStandIn, tmp_path: Path) -> None:
    refusals: list[str] = []

    def intrude(_: object) -> None:
        hal.before = lambda _: None
        with pytest.raises(ArtifactError) as caught:
            harvest(tmp_path / "out", asking(hal))
        refusals.append(str(caught.value))

    hal.before = intrude
    harvest(tmp_path / "out", asking(hal))
    assert len(refusals) == 1
    harvest(tmp_path / "calm", asking(hal))
    assert content(tmp_path / "out") == content(tmp_path / "calm")


def test_a_harvest_that_cannot_write_says_so_and_goes_on_later(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "calm", asking(hal))
    said = without(short_files, 3000, harvest, tmp_path / "out", asking(hal))
    assert said.startswith(f"ArtifactError: cannot write to '{tmp_path / 'out'}': File too large; run the same command")
    assert not (tmp_path / "out" / "manifest.json").exists()
    harvest(tmp_path / "out", asking(hal))
    assert content(tmp_path / "out") == content(tmp_path / "calm")


def test_a_download_that_cannot_write_says_so_and_goes_on_later(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "records", asking(hal))
    download(tmp_path / "records", tmp_path / "calm", fetching())
    said = without(short_files, 4550, download, tmp_path / "records", tmp_path / "out", fetching())
    assert said.startswith(f"ArtifactError: cannot write to '{tmp_path / 'out'}': File too large; run the same command")
    assert all(
        path.read_bytes() == (tmp_path / "calm" / path.name).read_bytes() for path in (tmp_path / "out").glob("*.pdf")
    )
    download(tmp_path / "records", tmp_path / "out", fetching())
    assert content(tmp_path / "out") == content(tmp_path / "calm")


@pytest.fixture
def read_only() -> Iterator[Path]:
    with unwritable() as folder:
        yield folder


@pytest.mark.parametrize("below", ["", "records"])
def test_a_folder_that_may_not_be_written_is_named(hal: HalStandIn, read_only: Path, below: str) -> None:
    said = without(as_nobody, 65534, harvest, read_only / below, asking(hal))
    assert said.startswith("ArtifactError: cannot ")
    assert f"'{read_only / below}': Permission denied" in said
    assert hal.seen == []


def test_a_download_into_a_folder_that_may_not_be_written_is_named(hal: HalStandIn, read_only: Path) -> None:
    records = read_only.parent / "records"
    harvest(records, asking(hal))
    hal.seen.clear()
    said = without(as_nobody, 65534, download, records, read_only, fetching())
    assert said == f"ArtifactError: cannot make the folder '{read_only}/.work/1-of-1': Permission denied"
    assert hal.seen == []


FULL_DISK = """
import sys, subprocess
from pathlib import Path
from idiograph.hal.harvest import harvest
from idiograph.hal.download import download
from idiograph.recipe import DownloadRecipe
from idiograph.recipe import HarvestRecipe
from idiograph.errors import ArtifactError
disk, url = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
ask = HarvestRecipe(server=url, interval=0, backoff=0, rows=8, licence="any")
fetch = DownloadRecipe(interval=0, backoff=0, licence="any", allow_private=True)
records, pdf = Path(disk) / "records", Path(disk) / "pdf"
for job, size in ((lambda: harvest(records, ask), "256k"), (lambda: download(records, pdf, fetch), "8m")):
    try:
        job()
    except ArtifactError as error:
        print(error)
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
    job()
print(harvest(records, ask).fingerprint, download(records, pdf, fetch).fingerprint)
"""


def test_a_full_disk_loses_nothing(hal: HalStandIn, tmp_path: Path) -> None:
    """On a real disk of 64 kB, which is enlarged after the complaint."""
    harvest(tmp_path / "records", asking(hal))
    calm = download(tmp_path / "records", tmp_path / "pdf", fetching())
    (tmp_path / "disk").mkdir()
    command = ["unshare", "--mount", sys.executable, "-c", FULL_DISK, str(tmp_path / "disk"), hal.url]
    if os.getuid() or not shutil.which("unshare") or subprocess.run(["unshare", "--mount", "true"]).returncode:
        pytest.skip("only root can mount a small disk, and only where namespaces are allowed")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    first, second, fingerprints = done.stdout.splitlines()
    assert "records': No space left on device; run the same command again" in first
    assert "pdf': No space left on device; run the same command again" in second
    assert fingerprints.split() == [calm.inputs["records"], calm.fingerprint]
