"""A folder of PDFs → a folder of TEI, by GROBID servers or by the embedded extractor. Reads no text itself.

`a/b.pdf` becomes `a/b.grobid.tei.xml`, or `a/b_STATUS.txt` with the reason: the names of GROBID's own client, so that
both can be mixed. Each document is noted in a ledger when it is done; a second call goes on, and tries again what failed
for a passing reason. Shards (`part` i/n) may fill one folder from several machines; the one that comes last seals it.
"""

import fcntl
import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from idiograph import runner
from idiograph.corpus.extractor import Extractor, ExtractRecipe
from idiograph.corpus.grobid import Grobid
from idiograph.corpus.records import write_whole, writing
from idiograph.corpus.workers import Embedded
from idiograph.errors import ArtifactError, InputError
from idiograph.store import MANIFEST, Ledger, Manifest, digest, locked, make_folder, now, read_manifest, write_json

KIND = "tei"
MAKE = "idiograph extract PDFS -o FOLDER"
LEDGER = "ledger.jsonl"
WORK = ".work"  # a folder per shard, with its lock, its ledger and the file that is being written
STATUSES = (200, 204, 400, 404, 408, 409, 413, 429, 500, 502, 503, 504, 507)
SUFFIX = ".grobid.tei.xml"

Progress = Callable[[int, int | None, str], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one PDF: `bytes` is its size, by which a changed file is known, `sha256` the digest of its TEI."""

    name: str
    bytes: int
    status: int
    by: str
    sha256: str = ""
    reason: str = ""
    detail: str = ""
    passing: bool = False


def extract(
    pdfs: Path, out: Path, recipe: ExtractRecipe, part: str = "1/1", progress: Progress | None = None
) -> Manifest:
    """Extract every PDF of this part. The manifest has no fingerprint while other parts are to come."""
    sizes = find_pdfs(pdfs)
    mine = list(runner.shard(sizes, part, key=str))
    work = out / WORK / part.replace("/", "-of-")
    with writing(out), locked(work):
        done = entries(out)
        orphans = [entry for name, entry in done.items() if name not in sizes]
        remove_orphans(out, orphans, recipe.prune)
        again = {name for name, entry in done.items() if entry.passing or (recipe.retry and entry.status != 200)}
        todo = [n for n in mine if n in again or not is_settled(out, n, sizes[n], done.get(n))]
        if not todo and not orphans and (out / MANIFEST).is_file():
            return read_manifest(out, KIND, MAKE)
        if todo:
            with opened(recipe) as extractor:
                refuse_mixture(out, extractor.name, done.values())
                (out / MANIFEST).unlink(missing_ok=True)
                Shift(pdfs, out, work, extractor).run(todo, sizes, len(mine), progress)
        return conclude(out, sizes, recipe, source(pdfs))


def source(pdfs: Path) -> dict[str, str]:
    """The fingerprint of the PDFs, if `download` made them."""
    made = (pdfs / MANIFEST).is_file()
    return {"pdf": read_manifest(pdfs, "pdf", "idiograph download RECORDS -o FOLDER").fingerprint} if made else {}


def remove_orphans(out: Path, orphans: list[Entry], prune: bool) -> None:
    if orphans and not prune:
        first = min(entry.name for entry in orphans)
        raise ArtifactError(
            f"'{out}' has results of {len(orphans)} PDFs that are not there any more, such as '{first}'; remove them with"
            " --prune, or choose another -o"
        )
    for entry in orphans:
        (out / file_name(entry.name, entry.status)).unlink(missing_ok=True)


def find_pdfs(folder: Path) -> dict[str, int]:
    """The PDFs under a folder by relative name, in the order of names, with their sizes."""
    if not folder.is_dir():
        raise InputError(f"there is no folder '{folder}' with PDFs; make one: idiograph download RECORDS -o {folder}")
    found: dict[str, int] = {}
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.lower().endswith(".pdf") and not name.startswith(".") and (path := Path(where, name)).is_file():
                found[path.relative_to(folder).as_posix()] = path.stat().st_size
    if not found:
        raise InputError(f"'{folder}' has no PDFs; their names must end in .pdf")
    refuse_clashes(found)
    return dict(sorted(found.items()))


def refuse_clashes(names: Iterable[str]) -> None:
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(tei_name(name), name)
        if other != name:
            raise InputError(f"'{other}' and '{name}' would both become '{tei_name(name)}'; rename one of them")


def tei_name(name: str) -> str:
    """Where the TEI of a PDF goes.

    >>> tei_name("2019/hal-02498602.pdf")
    '2019/hal-02498602.grobid.tei.xml'
    """
    return name[: -len(".pdf")] + SUFFIX


def file_name(name: str, status: int) -> str:
    """Where the result of a PDF goes, be it TEI or the reason why there is none."""
    return tei_name(name) if status == 200 else f"{name[: -len('.pdf')]}_{status}.txt"


def entries(out: Path) -> dict[str, Entry]:
    """The last word on each PDF, from the ledger of a finished folder and those of its shards."""
    paths = [out / LEDGER, *sorted((out / WORK).glob(f"*/{LEDGER}"))]
    return {entry.name: entry for path in paths if path.is_file() for entry in noted(path)}


def noted(path: Path) -> Iterator[Entry]:
    """The whole lines of a ledger, which another process may be writing."""
    with path.open("rb") as file:
        yield from (Entry(**json.loads(line)) for line in file if line.endswith(b"\n"))


def is_settled(out: Path, name: str, size: int, entry: Entry | None) -> bool:
    """Whether a PDF has not changed since its result was noted, and the result is still there."""
    if entry is None or entry.bytes != size:
        return False
    return (out / file_name(name, entry.status)).is_file()


@contextmanager
def opened(recipe: ExtractRecipe) -> Iterator[Extractor]:
    extractor: Extractor = Grobid(recipe) if recipe.grobid else Embedded(recipe)
    try:
        yield extractor
    finally:
        extractor.close()


def refuse_mixture(out: Path, name: str, done: Iterable[Entry]) -> None:
    """One folder, one extractor: their texts differ, and a style model would learn the difference."""
    others = {entry.by for entry in done if entry.by.split()[0] != name.split()[0]}
    if others:
        raise ArtifactError(f"'{out}' was extracted by {min(others)}, not by {name}; choose another -o")


class Shift:
    """Works off one shard: as many threads as the extractor has places, each writing what it gets."""

    def __init__(self, pdfs: Path, out: Path, work: Path, extractor: Extractor) -> None:
        self.pdfs, self.out, self.work, self.extractor = pdfs, out, work, extractor
        self.ledger, self.lock, self.stop = Ledger(work / LEDGER), threading.Lock(), threading.Event()

    def run(self, todo: list[str], sizes: dict[str, int], total: int, progress: Progress | None) -> None:
        """Extract them all; the first error that is not a document's own stops every thread."""
        for leftover in self.work.glob("*.partial"):
            leftover.unlink()
        done, queue = total - len(todo), iter(todo)
        with ThreadPoolExecutor(self.extractor.slots) as pool:
            jobs = {pool.submit(self.one, name, sizes[name]) for name in islice(queue, 2 * self.extractor.slots)}
            try:
                while jobs:
                    finished, jobs = wait(jobs, return_when=FIRST_COMPLETED)
                    jobs |= {pool.submit(self.one, name, sizes[name]) for name in islice(queue, len(finished))}
                    for job in finished:
                        done, name = done + 1, job.result()
                        if progress:
                            progress(done, total, name)
            except BaseException:
                self.stop.set()
                self.extractor.close()
                raise

    def one(self, name: str, size: int) -> str:
        """See to one document, unless the run has been stopped meanwhile."""
        if self.stop.is_set():
            return name
        outcome = self.extractor(self.pdfs / name)
        if self.stop.is_set():
            return name
        data = outcome.tei if outcome.status == 200 else f"{outcome.reason}: {outcome.detail}\n".encode()
        self.save(name, outcome.status, data)
        checksum = hashlib.sha256(data).hexdigest() if outcome.status == 200 else ""
        what = (outcome.reason, outcome.detail, outcome.passing)
        with self.lock:
            self.ledger.add(asdict(Entry(name, size, outcome.status, self.extractor.name, checksum, *what)))
        return name

    def save(self, name: str, status: int, data: bytes) -> None:
        """Put a result in its place, whole; what an earlier run may have put there goes."""
        target = self.out / file_name(name, status)
        make_folder(target.parent)
        partial = self.work / f"{threading.get_ident()}.partial"
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for other in STATUSES:
            if other != status:
                (self.out / file_name(name, other)).unlink(missing_ok=True)
        partial.replace(target)


def conclude(out: Path, sizes: Mapping[str, int], recipe: ExtractRecipe, inputs: Mapping[str, str]) -> Manifest:
    """Seal the folder if every PDF has been seen to, whoever did it."""
    with turn(out):
        found = entries(out)
        seen = [entry for name, size in sizes.items() if (entry := found.get(name)) and entry.bytes == size]
        dropped = Counter(entry.reason for entry in seen if entry.status != 200)
        counts = {"pdfs": len(sizes), "tei": len(seen) - dropped.total()}
        manifest = Manifest(KIND, recipe.model_dump(mode="json"), inputs, counts, dict(sorted(dropped.items())))
        if len(seen) < len(sizes):
            return manifest
        return finish(out, seen, manifest)


def finish(out: Path, seen: Iterable[Entry], manifest: Manifest) -> Manifest:
    """One ledger in the order of names for the shards' own; its digest, which covers every file's, is the fingerprint."""
    lines = (json.dumps(asdict(entry), ensure_ascii=False, sort_keys=True) + "\n" for entry in seen)
    write_whole(out / LEDGER, "".join(lines).encode())
    done = replace(manifest, fingerprint=digest(out / LEDGER)[:16], created=now())
    write_json(out / MANIFEST, asdict(done))
    for ledger in (out / WORK).glob(f"*/{LEDGER}"):
        ledger.unlink(missing_ok=True)
    return done


@contextmanager
def turn(out: Path) -> Iterator[None]:
    """Shards that end at the same time conclude one after another."""
    with (out / WORK / ".turn").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
