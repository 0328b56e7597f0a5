"""The PDFs of harvested records, fetched politely. Reads no PDF beyond its first bytes and its end.

A file is written under a hidden name and renamed when it is whole; then it is noted in a ledger with its checksum, or
with the reason why there is none. A second call keeps what is there and tries again what failed for a passing reason.
Shards (`part` i/n) may fill one folder from several machines, and together ask a site no more often than one would; the
one that comes last seals it.
"""

import fcntl
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import httpx2

from idiograph import runner
from idiograph.hal.courier import SITES, PoliteClient
from idiograph.hal.fetch import LEDGER, PASSING, FetchEntry, WantedFile
from idiograph.hal.licence import permits
from idiograph.hal.records import KIND as RECORDS
from idiograph.hal.records import MAKE as HARVEST
from idiograph.hal.records import pdf_name, read_records
from idiograph.recipe import DownloadRecipe
from idiograph.runner import Progress
from idiograph.store import (
    MANIFEST,
    Manifest,
    digest,
    explain_failed_writes,
    locked_folder,
    read_manifest,
    timestamp,
    write_json,
    write_whole_file,
)

KIND = "pdf"
WORK = ".work"  # a folder per shard: its lock, its ledger and the file that is being written
RULES = frozenset({"no file", "licence not chosen", "under embargo", "not a web address"})  # looked at anew each time
SIZES = frozenset({"too large", "too small"})  # another recipe may think otherwise


def download(
    records: Path, out: Path, recipe: DownloadRecipe, part: str = "1/1", progress: Progress | None = None
) -> Manifest:
    """Fetch the PDF of every record of this part. The manifest has no fingerprint while other parts are to come."""
    source = read_manifest(records, RECORDS, HARVEST).fingerprint
    wanted = [WantedFile(r.halid, r.version, r.url, r.licence, r.embargo) for r in read_records(records)]
    mine = list(runner.shard(wanted, part, key=lambda one: one.halid))
    work = out / WORK / part.replace("/", "-of-")
    with explain_failed_writes(out), locked_folder(work):
        absorb_ledgers(out, part)
        todo = open_items(out, mine, recipe)
        if todo:
            (out / MANIFEST).unlink(missing_ok=True)
            PoliteClient(out, work, recipe, len(mine), progress).run(todo, alone=part == "1/1")
        return conclude_download(out, wanted, recipe, source)


def open_items(out: Path, mine: Iterable[WantedFile], recipe: DownloadRecipe) -> list[WantedFile]:
    """What is still to be fetched. A file that the rules no longer let us have is removed."""
    done, items = download_entries(out), []
    for wanted in mine:
        if barred(wanted, recipe):
            (out / pdf_name(wanted.halid)).unlink(missing_ok=True)
        elif unsettled(done.get(wanted.halid), wanted, out):
            items.append(wanted)
    return items


def unsettled(entry: FetchEntry | None, wanted: WantedFile, out: Path) -> bool:
    """Whether a record is still to be seen to: new, changed, failed for a passing reason, or its file is gone."""
    if entry is None or (entry.version, entry.url) != (wanted.version, wanted.url):
        return True
    if entry.reason in PASSING | SIZES:
        return True
    path = out / entry.file
    return bool(entry.file) and not (path.is_file() and path.stat().st_size == entry.bytes)


def barred(wanted: WantedFile, recipe: DownloadRecipe) -> FetchEntry | None:
    """Why a file is not even asked for, if so."""
    plain = FetchEntry(wanted.halid, wanted.version, wanted.url)
    if not wanted.url:
        return replace(plain, reason="no file")
    if not permits(recipe.licence, wanted.licence):
        return replace(plain, reason="licence not chosen", detail=wanted.licence)
    if wanted.embargo > datetime.now(UTC).date().isoformat():
        return replace(plain, reason="under embargo", detail=wanted.embargo)
    return None if is_web(wanted.url) else replace(plain, reason="not a web address")


def is_web(url: str) -> bool:
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        return False
    return parts.scheme in ("http", "https") and bool(parts.host)


def download_entries(out: Path) -> dict[str, FetchEntry]:
    """The last word on each record, from the ledger of a finished folder and those of its shards."""
    paths = [out / LEDGER, *sorted((out / WORK).glob(f"*/{LEDGER}"))]
    found = (entry for path in paths if path.is_file() for entry in download_lines(path))
    return {entry.halid: entry for entry in found if entry.reason not in RULES}


def download_lines(path: Path) -> Iterator[FetchEntry]:
    """The whole lines of a ledger, which another process may be writing."""
    with path.open("rb") as file:
        yield from (FetchEntry(**json.loads(line)) for line in file if line.endswith(b"\n"))


def absorb_ledgers(out: Path, part: str) -> None:
    """Take over what shards of another cut have done; refuse if one of them is at work."""
    cut = part.partition("/")[2]
    with download_lock(out):
        others = [path for path in (out / WORK).glob("*-of-*") if path.name.partition("-of-")[2] != cut]
        for other in others:
            with locked_folder(other):
                write_ledger(out, download_entries(out).values())
                shutil.rmtree(other)


def conclude_download(out: Path, wanted: Iterable[WantedFile], recipe: DownloadRecipe, source: str) -> Manifest:
    """Seal the folder if every record has been seen to, whoever did it."""
    with download_lock(out):
        found = download_entries(out)
        settled = [barred(one, recipe) or found.get(one.halid) for one in wanted]
        seen = [entry for entry in settled if entry]
        dropped = Counter(entry.reason for entry in seen if entry.reason)
        counts = {"records": len(settled), "files": len(seen) - dropped.total(), "bytes": sum(e.bytes for e in seen)}
        manifest = Manifest(KIND, recipe.model_dump(mode="json"), {"records": source}, counts, dict(dropped))
        if len(seen) < len(settled):
            return manifest
        write_ledger(out, seen)
        return seal_download(out, manifest)


def seal_download(out: Path, manifest: Manifest) -> Manifest:
    """Seal with the ledger's digest, which covers every file's: a terabyte of PDFs is not read again for it."""
    done = replace(manifest, fingerprint=digest(out / LEDGER)[:16], created=timestamp())
    write_json(out / MANIFEST, asdict(done))
    shutil.rmtree(out / WORK / SITES, ignore_errors=True)
    return done


def write_ledger(out: Path, seen: Iterable[FetchEntry]) -> None:
    """The ledger of the whole folder, in the order of the ids: the same whoever came first."""
    ordered = sorted(seen, key=lambda entry: entry.halid)
    lines = (json.dumps(asdict(entry), ensure_ascii=False, sort_keys=True) + "\n" for entry in ordered)
    write_whole_file(out / LEDGER, "".join(lines).encode())


@contextmanager
def download_lock(out: Path) -> Iterator[None]:
    """Shards that end at the same time conclude one after another."""
    with (out / WORK / ".turn").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
