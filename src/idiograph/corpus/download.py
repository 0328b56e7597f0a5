"""The PDFs of harvested records, fetched politely. Reads no PDF beyond its first bytes and its end.

A file is written under a hidden name and renamed when it is whole; then it is noted in a ledger with its checksum, or
with the reason why there is none. A second call keeps what is there and tries again what failed for a passing reason.
Shards (`part` i/n) may fill one folder from several machines; the one that comes last seals it.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import BinaryIO

import httpx2
import stamina
from pydantic import Field

from idiograph import runner
from idiograph.corpus.harvest import Again, worth_another
from idiograph.corpus.licence import permits
from idiograph.corpus.pace import Pace, agent, retry_after, site
from idiograph.corpus.records import KIND as RECORDS
from idiograph.corpus.records import MAKE as HARVEST
from idiograph.corpus.records import read_records, write_whole, writing
from idiograph.errors import ServiceError
from idiograph.recipe import Stage
from idiograph.store import MANIFEST, Ledger, Manifest, digest, locked, now, read_manifest, write_json

KIND = "pdf"
LEDGER = "ledger.jsonl"
WORK = ".work"  # a folder per shard: its lock, its ledger and the file that is being written
HOPS = 10
HEAD, TAIL = 1024, 4096  # where readers look for %PDF- and %%EOF
# Reasons that hold for now: the server's, ours (they are not kept but found anew each time), and a recipe's.
PASSING = frozenset({"server error", "too many requests", "no answer", "cut off"})
RULES = frozenset({"no file", "licence not chosen", "under embargo", "not a web address"})
SIZES = frozenset({"too large", "too small"})

Progress = Callable[[int, int | None, str], None]


class DownloadRecipe(Stage):
    """Which files are fetched, and how gently."""

    licence: str = "open"
    max_bytes: int = Field(200_000_000, ge=1)
    min_bytes: int = Field(500, ge=0)
    interval: float = Field(1.0, ge=0)
    per_host: int = Field(1, ge=1)
    workers: int = Field(4, ge=1)
    attempts: int = Field(5, ge=1)
    backoff: float = Field(2.0, ge=0)
    timeout: float = Field(60.0, gt=0)
    deadline: float = Field(1200.0, gt=0)
    give_up: int = Field(20, ge=1)
    contact: str = ""
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a record decides about its file."""

    halid: str
    version: int
    url: str
    licence: str
    embargo: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one record: a file with its checksum, or a reason."""

    halid: str
    version: int
    url: str
    file: str = ""
    bytes: int = 0
    sha256: str = ""
    reason: str = ""
    detail: str = ""


class Failed(Exception):
    """No file, and asking again would not help."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


class Stopped(Exception):
    """Another thread of this run has failed, or the user has interrupted it."""


def download(
    records: Path, out: Path, recipe: DownloadRecipe, part: str = "1/1", progress: Progress | None = None
) -> Manifest:
    """Fetch the PDF of every record of this part. The manifest has no fingerprint while other parts are to come."""
    source = read_manifest(records, RECORDS, HARVEST).fingerprint
    wanted = [Wanted(r.halid, r.version, r.url, r.licence, r.embargo) for r in read_records(records)]
    mine = list(runner.shard(wanted, part, key=lambda one: one.halid))
    work = out / WORK / part.replace("/", "-of-")
    with writing(out), locked(work):
        absorb(out, part)
        todo = open_items(out, mine, recipe)
        if todo:
            (out / MANIFEST).unlink(missing_ok=True)
            Fetcher(out, work, recipe).run(todo, len(mine), progress)
        return conclude(out, wanted, recipe, source)


def open_items(out: Path, mine: Iterable[Wanted], recipe: DownloadRecipe) -> list[Wanted]:
    """What is still to be fetched. A file that the rules no longer let us have is removed."""
    done, items = entries(out), []
    for wanted in mine:
        if barred(wanted, recipe):
            (out / file_name(wanted.halid)).unlink(missing_ok=True)
        elif unsettled(done.get(wanted.halid), wanted, out):
            items.append(wanted)
    return items


def unsettled(entry: Entry | None, wanted: Wanted, out: Path) -> bool:
    """Whether a record is still to be seen to: new, changed, failed for a passing reason, or its file is gone."""
    if entry is None or (entry.version, entry.url) != (wanted.version, wanted.url):
        return True
    if entry.reason in PASSING | SIZES:
        return True
    path = out / entry.file
    return bool(entry.file) and not (path.is_file() and path.stat().st_size == entry.bytes)


def barred(wanted: Wanted, recipe: DownloadRecipe) -> Entry | None:
    """Why a file is not even asked for, if so."""
    plain = Entry(wanted.halid, wanted.version, wanted.url)
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


def file_name(halid: str) -> str:
    """A name in the output folder and nowhere else, another one for each id.

    >>> file_name("hal-01956501"), file_name("../../etc/passwd")
    ('hal-01956501.pdf', '______etc_passwd~7d4aab6d1c.pdf')
    """
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", halid):
        return f"{halid}.pdf"
    safe = re.sub(r"[^a-z0-9_-]", "_", halid.lower())[:64]
    return f"{safe}~{hashlib.sha256(halid.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}.pdf"


def entries(out: Path) -> dict[str, Entry]:
    """The last word on each record, from the ledger of a finished folder and those of its shards."""
    paths = [out / LEDGER, *sorted((out / WORK).glob(f"*/{LEDGER}"))]
    found = (entry for path in paths if path.is_file() for entry in noted(path))
    return {entry.halid: entry for entry in found if entry.reason not in RULES}


def noted(path: Path) -> Iterator[Entry]:
    """The whole lines of a ledger, which another process may be writing."""
    with path.open("rb") as file:
        yield from (Entry(**json.loads(line)) for line in file if line.endswith(b"\n"))


def absorb(out: Path, part: str) -> None:
    """Take over what shards of another cut have done; refuse if one of them is at work."""
    cut = part.partition("/")[2]
    with turn(out):
        others = [path for path in (out / WORK).glob("*-of-*") if path.name.partition("-of-")[2] != cut]
        for other in others:
            with locked(other):
                write_ledger(out, entries(out).values())
                shutil.rmtree(other)


def conclude(out: Path, wanted: Iterable[Wanted], recipe: DownloadRecipe, source: str) -> Manifest:
    """Seal the folder if every record has been seen to, whoever did it."""
    with turn(out):
        found = entries(out)
        settled = [barred(one, recipe) or found.get(one.halid) for one in wanted]
        seen = [entry for entry in settled if entry]
        dropped = Counter(entry.reason for entry in seen if entry.reason)
        counts = {"records": len(settled), "files": len(seen) - dropped.total(), "bytes": sum(e.bytes for e in seen)}
        manifest = Manifest(KIND, recipe.model_dump(mode="json"), {"records": source}, counts, dict(dropped))
        if len(seen) < len(settled):
            return manifest
        write_ledger(out, seen)
        return finish(out, manifest)


def finish(out: Path, manifest: Manifest) -> Manifest:
    """Seal with the ledger's digest, which covers every file's: a terabyte of PDFs is not read again for it."""
    done = replace(manifest, fingerprint=digest(out / LEDGER)[:16], created=now())
    write_json(out / MANIFEST, asdict(done))
    return done


def write_ledger(out: Path, seen: Iterable[Entry]) -> None:
    """The ledger of the whole folder, in the order of the ids: the same whoever came first."""
    ordered = sorted(seen, key=lambda entry: entry.halid)
    lines = (json.dumps(asdict(entry), ensure_ascii=False, sort_keys=True) + "\n" for entry in ordered)
    write_whole(out / LEDGER, "".join(lines).encode())


@contextmanager
def turn(out: Path) -> Iterator[None]:
    """Shards that end at the same time conclude one after another."""
    with (out / WORK / ".turn").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class Fetcher:
    """Fetches the files of one shard, some sites at a time and each of them gently."""

    def __init__(self, out: Path, work: Path, recipe: DownloadRecipe) -> None:
        self.out, self.work, self.recipe = out, work, recipe
        self.ledger, self.lock, self.stop = Ledger(work / LEDGER), threading.Lock(), threading.Event()
        self.pace = Pace(recipe.interval, self.stop.wait)
        self.slots: defaultdict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(recipe.per_host))
        self.failures: Counter[str] = Counter()  # in a row, by site
        self.done = 0

    def run(self, todo: list[Wanted], total: int, progress: Progress | None) -> None:
        """Fetch them all; the first error that is not a file's own stops every thread."""
        for leftover in self.work.glob("*.partial"):
            leftover.unlink()
        self.done = total - len(todo)
        queues: defaultdict[str, deque[Wanted]] = defaultdict(deque)
        for wanted in todo:
            queues[site(wanted.url)].append(wanted)
        lanes = [queue for queue in queues.values() for _ in range(min(self.recipe.per_host, len(queue)))]
        with connect(self.recipe) as client, ThreadPoolExecutor(self.recipe.workers) as pool:
            jobs = [pool.submit(self.drain, client, lane, total, progress) for lane in lanes]
            try:
                for job in as_completed(jobs):
                    job.result()
            except BaseException:
                self.stop.set()
                raise

    def drain(self, client: httpx2.Client, queue: deque[Wanted], total: int, progress: Progress | None) -> None:
        """One lane: fetch what is queued for a site, until nothing is left or the run stops."""
        while queue and not self.stop.is_set():
            try:
                wanted = queue.popleft()
            except IndexError:  # another lane of this site took the last one
                return
            try:
                entry = self.fetch(client, wanted)
            except Stopped:
                return
            with self.lock:
                self.note(entry)
                if progress:
                    progress(self.done, total, "files")

    def note(self, entry: Entry) -> None:
        """Enter an outcome; a site that fails again and again is left alone."""
        if entry.reason:
            (self.out / file_name(entry.halid)).unlink(missing_ok=True)
        self.ledger.add(asdict(entry))
        self.done += 1
        where = site(entry.url)
        self.failures[where] = self.failures[where] + 1 if entry.reason in PASSING else 0
        if self.failures[where] >= self.recipe.give_up:
            why, hint = entry.detail or entry.reason, "run the same command again later: it goes on where it stopped"
            raise ServiceError(f"{where} failed for {self.failures[where]} files in a row, at last with: {why}; {hint}")

    def fetch(self, client: httpx2.Client, wanted: Wanted) -> Entry:
        """A file, or the reason why there is none."""
        wait, plain = self.recipe.backoff, Entry(wanted.halid, wanted.version, wanted.url)
        caller = stamina.RetryingCaller(self.recipe.attempts, None, wait, 30 * wait, wait)
        try:
            size, checksum = caller(worth_another, self.attempt, client, wanted)
        except Failed as error:
            return replace(plain, reason=error.reason, detail=error.detail)
        except Again as error:
            return replace(plain, reason=str(error), detail=error.detail)
        except httpx2.RemoteProtocolError as error:
            return replace(plain, reason="cut off", detail=str(error))
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            return replace(plain, reason="leads nowhere", detail=str(error))
        except httpx2.HTTPError as error:
            return replace(plain, reason="no answer", detail=str(error) or type(error).__name__)
        return replace(plain, file=file_name(wanted.halid), bytes=size, sha256=checksum)

    def attempt(self, client: httpx2.Client, wanted: Wanted) -> tuple[int, str]:
        """Follow the redirects, each at its own site's pace, and save what is at their end."""
        url = wanted.url
        for _ in range(HOPS):
            where = site(url)
            with self.slots[where]:
                self.pace.wait(where)
                if self.stop.is_set():
                    raise Stopped
                with client.stream("GET", url) as response:
                    if response.next_request is None:
                        self.check(response, where)
                        return self.save(response, file_name(wanted.halid))
                    url = str(response.next_request.url)
        raise Failed("too many redirects", url)

    def check(self, response: httpx2.Response, where: str) -> None:
        """Whether the status and the length promise a file that we want."""
        code, length = response.status_code, response.headers.get("content-length", "")
        if code == 429 or code == 503:
            self.pace.hold(retry_after(response.headers.get("retry-after")), where)
        if code == 429:
            raise Again("too many requests", detail=f"status {code}")
        if code in (408, 425) or code >= 500:
            raise Again("server error", detail=f"status {code}")
        if code != 200:
            raise Failed("not found" if code in (404, 410) else "refused", f"status {code}")
        if length.isdigit() and int(length) > self.recipe.max_bytes:
            raise Failed("too large", f"{length} bytes")

    def save(self, response: httpx2.Response, name: str) -> tuple[int, str]:
        """Write the file under a hidden name, and rename it when it is whole."""
        partial = self.work / f"{name}.partial"
        try:
            with partial.open("wb") as file:
                size, checksum = self.copy(response, file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.out / name)
        finally:
            partial.unlink(missing_ok=True)
        return size, checksum

    def copy(self, response: httpx2.Response, file: BinaryIO) -> tuple[int, str]:
        """The size and checksum of what came, if that is a whole PDF of a size that we want."""
        whole, size, head, tail = hashlib.sha256(), 0, b"", b""
        deadline, kind = monotonic() + self.recipe.deadline, response.headers.get("content-type", "")
        for chunk in response.iter_bytes():
            if len(head) < HEAD <= len(head := (head + chunk)[:HEAD]):
                check_head(head, kind)
            size, tail = size + len(chunk), (tail + chunk)[-TAIL:]
            if size > self.recipe.max_bytes:
                raise Failed("too large", f"more than {self.recipe.max_bytes} bytes")
            if monotonic() > deadline:
                raise Again("no answer", detail="a file that does not end")
            if self.stop.is_set():
                raise Stopped
            whole.update(chunk)
            file.write(chunk)
        check_head(head, kind)
        if "content-length" not in response.headers and b"%%EOF" not in tail:
            raise Again("cut off", detail="no %%EOF, and no length to compare with")
        if size < self.recipe.min_bytes:
            raise Failed("too small", f"{size} bytes")
        return size, whole.hexdigest()


def check_head(head: bytes, kind: str) -> None:
    """Whether a file begins like a PDF; some have a few bytes of junk before."""
    if b"%PDF-" not in head or head.lstrip()[:1] == b"<":
        raise Failed("not a PDF", kind)


def connect(recipe: DownloadRecipe) -> httpx2.Client:
    return httpx2.Client(
        headers={"User-Agent": agent(recipe.contact), "Accept": "application/pdf", "Accept-Encoding": "identity"},
        timeout=recipe.timeout,
        limits=httpx2.Limits(max_connections=recipe.workers * recipe.per_host),
        proxy=recipe.proxy or None,
        trust_env=False,
    )
