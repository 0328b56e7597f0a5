"""The PDFs of harvested records, fetched politely. Reads no PDF beyond its first bytes and its end.

A file is written under a hidden name and renamed when it is whole; then it is noted in a ledger with its checksum, or
with the reason why there is none. A second call keeps what is there and tries again what failed for a passing reason.
Shards (`part` i/n) may fill one folder from several machines; the one that comes last seals it.

Inline, a thread for each connection that a site allows does the work; with the other runners, processes on this machine
or on a cluster do. Whoever it is, a site is asked at one pace: threads share it in memory, processes and shards by files
in the folder that they all write to.
"""

import shutil
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import httpx2

from idiograph.errors import ServiceError
from idiograph.hal.fetch import PASSING, FetchEntry, Fetcher, Stopped, WantedFile, fetch_one
from idiograph.hal.licence import permits
from idiograph.hal.ratelimit import SharedRate, SiteRate, Tell, site
from idiograph.hal.records import KIND as RECORDS
from idiograph.hal.records import MAKE as HARVEST
from idiograph.hal.records import pdf_name, read_records
from idiograph.recipe import DownloadRecipe, without_passwords
from idiograph.runner import Failure, Progress, Workers, shard
from idiograph.store import Manifest, ShardedFolder, read_manifest

KIND = "pdf"
SITES = "sites"  # where processes agree on the pace of a site
RULES = frozenset({"no file", "licence not chosen", "under embargo", "not a web address"})  # looked at anew each time
SIZES = frozenset({"too large", "too small"})  # another recipe may think otherwise

PdfFolder = ShardedFolder[FetchEntry]


def download(
    records: Path,
    out: Path,
    recipe: DownloadRecipe,
    part: str = "1/1",
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Manifest:
    """Fetch the PDF of every record of this part. The manifest has no fingerprint while other parts are to come."""
    source = read_manifest(records, RECORDS, HARVEST).fingerprint
    wanted = [
        WantedFile(r.halid, r.version, without_passwords(r.url), r.licence, r.embargo) for r in read_records(records)
    ]
    mine = list(shard(wanted, part, key=lambda one: one.halid))
    folder = ShardedFolder(out, part, FetchEntry)
    with folder.lock_shard():
        folder.absorb_other_cuts()
        todo = open_items(folder, mine, recipe)
        if todo:
            folder.unseal()
            ShardDownload(folder, recipe, len(mine), progress, tell).run(todo)
        return conclude_download(folder, wanted, recipe, source)


def open_items(folder: PdfFolder, mine: Iterable[WantedFile], recipe: DownloadRecipe) -> list[WantedFile]:
    """What is still to be fetched. A file that the rules no longer let us have is removed."""
    done, items = download_entries(folder), []
    for wanted in mine:
        if refuse_file(wanted, recipe):
            (folder.path / pdf_name(wanted.halid)).unlink(missing_ok=True)
        elif is_open(done.get(wanted.halid), wanted, folder.path):
            items.append(wanted)
    return items


def is_open(entry: FetchEntry | None, wanted: WantedFile, out: Path) -> bool:
    """Whether a file is still to be fetched: new, changed, gone, or failed for a passing reason."""
    if entry is None or (entry.version, entry.url) != (wanted.version, wanted.url):
        return True
    if entry.reason in PASSING | SIZES:
        return True
    path = out / entry.file
    return bool(entry.file) and not (path.is_file() and path.stat().st_size == entry.bytes)


def refuse_file(wanted: WantedFile, recipe: DownloadRecipe) -> FetchEntry | None:
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


def download_entries(folder: PdfFolder) -> dict[str, FetchEntry]:
    """The last word on each record that was asked for."""
    return {halid: entry for halid, entry in folder.entries().items() if entry.reason not in RULES}


def conclude_download(folder: PdfFolder, wanted: Iterable[WantedFile], recipe: DownloadRecipe, source: str) -> Manifest:
    """Seal the folder if there is an outcome for every record, whoever noted it."""
    with folder.lock_whole():
        entries = download_entries(folder)
        outcomes = [refuse_file(one, recipe) or entries.get(one.halid) for one in wanted]
        done = [entry for entry in outcomes if entry]
        dropped = Counter(entry.reason for entry in done if entry.reason)
        counts = {"records": len(outcomes), "files": len(done) - dropped.total(), "bytes": sum(e.bytes for e in done)}
        manifest = Manifest(KIND, recipe.as_stored(), {"records": source}, counts, dict(dropped))
        if len(done) < len(outcomes):
            return manifest
        sealed = folder.seal(done, manifest, {entry.file: entry.sha256 for entry in done if entry.file})
        shutil.rmtree(folder.work.parent / SITES, ignore_errors=True)
        return sealed


class ShardDownload:
    """Downloads the files of one shard, some sites at a time, and notes what comes."""

    def __init__(
        self, folder: PdfFolder, recipe: DownloadRecipe, total: int, progress: Progress | None, tell: Tell | None = None
    ) -> None:
        self.folder, self.recipe, self.total, self.progress, self.tell = folder, recipe, total, progress, tell
        self.sites, self.lock = folder.work.parent / SITES, threading.Lock()
        self.failures: Counter[str] = Counter()  # in a row, by site
        self.given_up: dict[str, str] = {}
        self.done = 0

    def run(self, todo: list[WantedFile]) -> None:
        self.done = self.total - len(todo)
        queues: defaultdict[str, deque[WantedFile]] = defaultdict(deque)
        for wanted in todo:
            queues[site(wanted.url)].append(wanted)
        if self.recipe.runner == "inline":
            self.fetch_in_threads(queues.values())
        else:
            self.fetch_in_workers(queues.values())
        if self.given_up:
            hint = "run the same command again later: it goes on where it stopped"
            raise ServiceError(f"{'; '.join(self.given_up.values())}; {hint}")

    def fetch_in_threads(self, queues: Iterable[deque[WantedFile]]) -> None:
        """The first error that is neither a file's own nor a site's stops every thread."""
        stop = threading.Event()
        fetcher = Fetcher(self.folder.path, self.folder.work, self.recipe, self.pace(stop), stop)
        fetcher.tell = self.tell
        connections = [queue for queue in queues for _ in range(min(self.recipe.per_host, len(queue)))]
        with fetcher.client, ThreadPoolExecutor(self.recipe.workers) as pool:
            jobs = [pool.submit(self.fetch_queue, fetcher, queue) for queue in connections]
            try:
                for job in as_completed(jobs):
                    job.result()
            except BaseException:
                stop.set()
                raise

    def pace(self, stop: threading.Event) -> SiteRate:
        """Shared by files if another shard of this cut may be at work, else in memory."""
        alone = self.folder.part == "1/1"
        return (
            SiteRate(self.recipe.interval, stop.wait) if alone else SharedRate(self.recipe.interval, self.sites, stop)
        )

    def fetch_queue(self, fetcher: Fetcher, queue: deque[WantedFile]) -> None:
        """Fetch what is queued for a site over one connection, until nothing is left or the run stops."""
        while queue and not fetcher.stop.is_set():
            try:
                wanted = queue.popleft()
            except IndexError:  # another connection to this site took the last one
                return
            try:
                entry = fetcher.fetch(wanted)
            except Stopped:
                return
            self.note(entry)
            if site(wanted.url) in self.given_up:
                queue.clear()

    def fetch_in_workers(self, queues: Iterable[deque[WantedFile]]) -> None:
        """A file is an item. Only its outcome comes back: the worker has put it in its place."""
        sent: deque[WantedFile] = deque()
        places = {"out": self.folder.path, "work": self.folder.work, "sites": self.sites}
        absolute = {name: place.resolve() for name, place in places.items()}
        work = partial(fetch_one, **absolute, settings=self.recipe.model_dump_json())
        items = (sent.append(wanted) or wanted for wanted in self.alternate_sites(queues))
        workers = Workers(self.recipe.runner, self.recipe.workers, self.recipe.address or None)
        for outcome in workers.map(work, items):
            wanted = sent.popleft()
            if isinstance(outcome, Failure):
                lost = FetchEntry(wanted.halid, wanted.version, wanted.url)
                outcome = replace(lost, reason=outcome.reason, detail=outcome.detail)
            self.note(outcome)

    def alternate_sites(self, queues: Iterable[deque[WantedFile]]) -> Iterator[WantedFile]:
        """One of each site, then the next of each, so that no site keeps the others waiting."""
        rest = deque(queues)
        while rest:
            queue = rest.popleft()
            if site(queue[0].url) not in self.given_up:
                yield queue.popleft()
                rest.extend([queue] if queue else [])

    def note(self, entry: FetchEntry) -> None:
        """Enter an outcome; leave a site alone that fails again and again, the others go on."""
        with self.lock:
            if entry.reason:
                (self.folder.path / pdf_name(entry.halid)).unlink(missing_ok=True)
            self.folder.add(entry)
            self.done += 1
            where, why = site(entry.url), entry.detail or entry.reason
            self.failures[where] = self.failures[where] + 1 if entry.reason in PASSING else 0
            if self.failures[where] == self.recipe.give_up:
                count = self.failures[where]
                self.given_up[where] = f"{where} failed for {count} files in a row, at last with: {why}"
            if self.progress:
                self.progress(self.done, self.total, "files")
