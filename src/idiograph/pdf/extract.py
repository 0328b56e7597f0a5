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
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from idiograph.errors import ArtifactError, InputError
from idiograph.pdf import Extraction, Extractor
from idiograph.pdf.grobid import Grobid
from idiograph.pdf.sandbox import EmbeddedExtractor, embedded_name, extract_one
from idiograph.recipe import ExtractRecipe
from idiograph.runner import Failure, Progress, Workers, shard
from idiograph.store import (
    MANIFEST,
    Ledger,
    Manifest,
    digest,
    explain_failed_writes,
    locked_folder,
    make_folder,
    read_manifest,
    timestamp,
    write_json,
    write_whole_file,
)

KIND = "tei"
MAKE = "idiograph extract PDFS -o FOLDER"
LEDGER = "ledger.jsonl"
WORK = ".work"  # a folder per shard, with its lock, its ledger and the file that is being written
STATUSES = (200, 204, 400, 404, 408, 409, 413, 429, 500, 502, 503, 504, 507)
SUFFIX = ".grobid.tei.xml"


@dataclass(frozen=True, slots=True)
class ExtractEntry:
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
    mine = list(shard(sizes, part, key=str))
    work = out / WORK / part.replace("/", "-of-")
    with explain_failed_writes(out), locked_folder(work):
        done = extract_entries(out)
        orphans = [entry for name, entry in done.items() if name not in sizes]
        remove_orphans(out, orphans, recipe.prune)
        again = {name for name, entry in done.items() if entry.passing or (recipe.retry and entry.status != 200)}
        todo = [n for n in mine if n in again or not is_settled(out, n, sizes[n], done.get(n))]
        if not todo and not orphans and (out / MANIFEST).is_file():
            return read_manifest(out, KIND, MAKE)
        if todo:
            refuse_mixture(out, "grobid" if recipe.grobid else embedded_name(), done.values())
            shift = Shift(pdfs, out, work, ExtractProgress(len(mine), len(mine) - len(todo), progress))
            shift.run({name: sizes[name] for name in todo}, recipe)
        return conclude_extraction(out, sizes, recipe, source(pdfs))


def source(pdfs: Path) -> dict[str, str]:
    """The fingerprint of the PDFs, if `download` made them."""
    made = (pdfs / MANIFEST).is_file()
    return {"pdf": read_manifest(pdfs, "pdf", "idiograph download RECORDS -o FOLDER").fingerprint} if made else {}


def remove_orphans(out: Path, orphans: list[ExtractEntry], prune: bool) -> None:
    if orphans and not prune:
        first = min(entry.name for entry in orphans)
        raise ArtifactError(
            f"'{out}' has results of {len(orphans)} PDFs that are not there any more, such as '{first}'; remove them with"
            " --prune, or choose another -o"
        )
    for entry in orphans:
        (out / result_name(entry.name, entry.status)).unlink(missing_ok=True)


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


def result_name(name: str, status: int) -> str:
    """Where the result of a PDF goes, be it TEI or the reason why there is none."""
    return tei_name(name) if status == 200 else f"{name[: -len('.pdf')]}_{status}.txt"


def extract_entries(out: Path) -> dict[str, ExtractEntry]:
    """The last word on each PDF, from the ledger of a finished folder and those of its shards."""
    paths = [out / LEDGER, *sorted((out / WORK).glob(f"*/{LEDGER}"))]
    return {entry.name: entry for path in paths if path.is_file() for entry in extract_lines(path)}


def extract_lines(path: Path) -> Iterator[ExtractEntry]:
    """The whole lines of a ledger, which another process may be writing."""
    with path.open("rb") as file:
        yield from (ExtractEntry(**json.loads(line)) for line in file if line.endswith(b"\n"))


def is_settled(out: Path, name: str, size: int, entry: ExtractEntry | None) -> bool:
    """Whether a PDF has not changed since its result was noted, and the result is still there."""
    if entry is None or entry.bytes != size:
        return False
    return (out / result_name(name, entry.status)).is_file()


def refuse_mixture(out: Path, name: str, done: Iterable[ExtractEntry]) -> None:
    """One folder, one extractor: their texts differ, and a style model would learn the difference."""
    others = {entry.by for entry in done if entry.by.split()[0] != name.split()[0]}
    if others:
        raise ArtifactError(f"'{out}' was extracted by {min(others)}, not by {name}; choose another -o")


@dataclass(slots=True)
class ExtractProgress:
    """How far a run is, and whom to tell."""

    total: int
    done: int
    progress: Progress | None

    def count(self, name: str) -> None:
        self.done += 1
        if self.progress:
            self.progress(self.done, self.total, name)


class Shift:
    """Works off one shard, and keeps each result as it comes."""

    def __init__(self, pdfs: Path, out: Path, work: Path, tally: ExtractProgress) -> None:
        self.pdfs, self.out, self.work, self.tally = pdfs, out, work, tally
        self.ledger, self.lock, self.stop = Ledger(work / LEDGER), threading.Lock(), threading.Event()

    def run(self, todo: Mapping[str, int], recipe: ExtractRecipe) -> None:
        for leftover in self.work.glob("*.partial"):
            leftover.unlink()
        if recipe.runner == "ray" and not recipe.grobid:
            self.on_cluster(todo, recipe)
            return
        extractor: Extractor = Grobid(recipe) if recipe.grobid else EmbeddedExtractor(recipe)
        try:
            self.by_threads(todo, extractor)
        finally:
            extractor.close()

    def by_threads(self, todo: Mapping[str, int], extractor: Extractor) -> None:
        """As many at a time as the extractor has places; the first error that is not a document's own stops all."""
        queue = iter(todo.items())
        with ThreadPoolExecutor(extractor.slots) as pool:
            jobs = {pool.submit(self.one, *item, extractor) for item in islice(queue, 2 * extractor.slots)}
            try:
                while jobs:
                    finished, jobs = wait(jobs, return_when=FIRST_COMPLETED)
                    jobs |= {pool.submit(self.one, *item, extractor) for item in islice(queue, len(finished))}
                    for job in finished:
                        self.tally.count(job.result())
            except BaseException:
                self.stop.set()
                extractor.close()
                raise

    def on_cluster(self, todo: Mapping[str, int], recipe: ExtractRecipe) -> None:
        paths = (self.pdfs.resolve() / name for name in todo)
        work = partial(extract_one, settings=recipe.model_dump_json())
        results = Workers("ray", recipe.workers or None, recipe.address or None).map(work, paths)
        for (name, size), result in zip(todo.items(), results, strict=True):
            lost = isinstance(result, Failure)
            self.keep(
                name, size, Extraction(500, reason=result.reason, passing=True) if lost else result, embedded_name()
            )
            self.tally.count(name)

    def one(self, name: str, size: int, extractor: Extractor) -> str:
        """See to one document, unless the run has been stopped meanwhile."""
        if not self.stop.is_set():
            outcome = extractor(self.pdfs / name)
            if not self.stop.is_set():
                self.keep(name, size, outcome, extractor.name)
        return name

    def keep(self, name: str, size: int, outcome: Extraction, by: str) -> None:
        """Save a result, then note it; from now on the folder is unfinished."""
        (self.out / MANIFEST).unlink(missing_ok=True)
        whole = outcome.status == 200
        data = outcome.tei if whole else f"{outcome.reason}: {outcome.detail}\n".encode()
        self.save(name, outcome.status, data)
        checksum = hashlib.sha256(data).hexdigest() if whole else ""
        what = (outcome.reason, outcome.detail, outcome.passing)
        with self.lock:
            self.ledger.add(asdict(ExtractEntry(name, size, outcome.status, by, checksum, *what)))

    def save(self, name: str, status: int, data: bytes) -> None:
        """Put a result in its place, whole; what an earlier run may have put there goes."""
        target = self.out / result_name(name, status)
        make_folder(target.parent)
        unfinished = self.work / f"{threading.get_ident()}.partial"
        with unfinished.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for other in STATUSES:
            if other != status:
                (self.out / result_name(name, other)).unlink(missing_ok=True)
        unfinished.replace(target)


def conclude_extraction(
    out: Path, sizes: Mapping[str, int], recipe: ExtractRecipe, inputs: Mapping[str, str]
) -> Manifest:
    """Seal the folder if every PDF has been seen to, whoever did it."""
    with extraction_lock(out):
        found = extract_entries(out)
        seen = [entry for name, size in sizes.items() if (entry := found.get(name)) and entry.bytes == size]
        dropped = Counter(entry.reason for entry in seen if entry.status != 200)
        counts = {"pdfs": len(sizes), "tei": len(seen) - dropped.total()}
        manifest = Manifest(KIND, recipe.model_dump(mode="json"), inputs, counts, dict(sorted(dropped.items())))
        if len(seen) < len(sizes):
            return manifest
        return seal_extraction(out, seen, manifest)


def seal_extraction(out: Path, seen: Iterable[ExtractEntry], manifest: Manifest) -> Manifest:
    """One ledger in the order of names for the shards' own; its digest, which covers every file's, is the fingerprint."""
    lines = (json.dumps(asdict(entry), ensure_ascii=False, sort_keys=True) + "\n" for entry in seen)
    write_whole_file(out / LEDGER, "".join(lines).encode())
    done = replace(manifest, fingerprint=digest(out / LEDGER)[:16], created=timestamp())
    write_json(out / MANIFEST, asdict(done))
    for ledger in (out / WORK).glob(f"*/{LEDGER}"):
        ledger.unlink(missing_ok=True)
    return done


@contextmanager
def extraction_lock(out: Path) -> Iterator[None]:
    """Shards that end at the same time conclude one after another."""
    with (out / WORK / ".turn").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
