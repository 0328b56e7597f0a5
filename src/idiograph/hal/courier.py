"""Sends for files, some sites at a time, and notes what comes. Does not know how one is fetched, nor which are wanted.

Inline, a thread for each connection that a site allows does the work; with the other runners, processes on this machine
or on a cluster do. Whoever it is, a site is asked at one pace: threads share it in memory, processes and shards by files
in the folder that they all write to.
"""

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from idiograph.errors import ServiceError
from idiograph.hal.fetch import (
    LEDGER,
    PASSING,
    FetchEntry,
    Fetcher,
    Stopped,
    WantedFile,
    fetch_one,
)
from idiograph.hal.ratelimit import SharedRate, SiteRate, site
from idiograph.hal.records import pdf_name
from idiograph.recipe import DownloadRecipe
from idiograph.runner import Failure, Progress, Workers
from idiograph.store import Ledger

SITES = "sites"  # where processes agree on the pace of a site


class PoliteClient:
    """Sees to the files of one shard."""

    def __init__(self, out: Path, work: Path, recipe: DownloadRecipe, total: int, progress: Progress | None) -> None:
        self.out, self.work, self.recipe, self.total, self.progress = out, work, recipe, total, progress
        self.ledger, self.lock = Ledger(work / LEDGER), threading.Lock()
        self.failures: Counter[str] = Counter()  # in a row, by site
        self.given_up: dict[str, str] = {}
        self.done = 0

    def run(self, todo: list[WantedFile], alone: bool) -> None:
        """Fetch them all. `alone`: no other shard of this cut can be at work."""
        for leftover in self.work.glob("*.partial"):
            leftover.unlink()
        self.done = self.total - len(todo)
        queues: defaultdict[str, deque[WantedFile]] = defaultdict(deque)
        for wanted in todo:
            queues[site(wanted.url)].append(wanted)
        if self.recipe.runner == "inline":
            self.by_threads(queues.values(), alone)
        else:
            self.by_runner(queues.values())
        if self.given_up:
            hint = "run the same command again later: it goes on where it stopped"
            raise ServiceError(f"{'; '.join(self.given_up.values())}; {hint}")

    def by_threads(self, queues: Iterable[deque[WantedFile]], alone: bool) -> None:
        """The first error that is neither a file's own nor a site's stops every thread."""
        stop, interval = threading.Event(), self.recipe.interval
        pace = SiteRate(interval, stop.wait) if alone else SharedRate(interval, self.sites, stop)
        fetcher = Fetcher(self.out, self.work, self.recipe, pace, stop)
        lanes = [queue for queue in queues for _ in range(min(self.recipe.per_host, len(queue)))]
        with fetcher.client, ThreadPoolExecutor(self.recipe.workers) as pool:
            jobs = [pool.submit(self.drain, fetcher, lane) for lane in lanes]
            try:
                for job in as_completed(jobs):
                    job.result()
            except BaseException:
                stop.set()
                raise

    def drain(self, fetcher: Fetcher, queue: deque[WantedFile]) -> None:
        """One lane: fetch what is queued for a site, until nothing is left or the run stops."""
        while queue and not fetcher.stop.is_set():
            try:
                wanted = queue.popleft()
            except IndexError:  # another lane of this site took the last one
                return
            try:
                entry = fetcher.fetch(wanted)
            except Stopped:
                return
            self.note(entry)
            if site(wanted.url) in self.given_up:
                queue.clear()

    def by_runner(self, queues: Iterable[deque[WantedFile]]) -> None:
        """A file is an item. Only its outcome comes back: the worker has put it in its place."""
        sent: deque[WantedFile] = deque()
        places = {"out": self.out.resolve(), "work": self.work.resolve(), "sites": self.sites.resolve()}
        work = partial(fetch_one, **places, settings=self.recipe.model_dump_json())
        items = (sent.append(wanted) or wanted for wanted in self.in_turns(queues))
        pool = Workers(self.recipe.runner, self.recipe.workers, self.recipe.address or None)
        for found in pool.map(work, items):
            wanted = sent.popleft()
            lost = FetchEntry(wanted.halid, wanted.version, wanted.url)
            failed = isinstance(found, Failure)
            self.note(replace(lost, reason=found.reason, detail=found.detail) if failed else found)

    def in_turns(self, queues: Iterable[deque[WantedFile]]) -> Iterator[WantedFile]:
        """One of each site, then the next of each, so that no site keeps the others waiting."""
        rest = deque(queues)
        while rest:
            queue = rest.popleft()
            if site(queue[0].url) not in self.given_up:
                yield queue.popleft()
                rest.extend([queue] if queue else [])

    @property
    def sites(self) -> Path:
        return self.work.parent / SITES

    def note(self, entry: FetchEntry) -> None:
        """Enter an outcome; leave a site alone that fails again and again, the others go on."""
        with self.lock:
            if entry.reason:
                (self.out / pdf_name(entry.halid)).unlink(missing_ok=True)
            self.ledger.add(asdict(entry))
            self.done += 1
            where, why = site(entry.url), entry.detail or entry.reason
            self.failures[where] = self.failures[where] + 1 if entry.reason in PASSING else 0
            if self.failures[where] == self.recipe.give_up:
                count = self.failures[where]
                self.given_up[where] = f"{where} failed for {count} files in a row, at last with: {why}"
            if self.progress:
                self.progress(self.done, self.total, "files")
