"""A folder of PDFs → a folder of TEI, by GROBID servers or by the embedded extractor. Reads no text itself.

`a/b.pdf` becomes `a/b.grobid.tei.xml`, or `a/b_STATUS.txt` with the reason: the names of GROBID's own client, so that
both can be mixed. Each document is noted in a ledger when it is done; a second call goes on, and tries again what failed
for a passing reason. Shards (`part` i/n) may fill one folder from several machines; the one that comes last seals it.
"""

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from idiograph.errors import ArtifactError, InputError
from idiograph.pdf import Extraction, Extractor
from idiograph.pdf.grobid import Grobid
from idiograph.pdf.sandbox import EmbeddedExtractor, embedded_name, extract_alone
from idiograph.recipe import ExtractRecipe
from idiograph.runner import Failure, Progress, Workers, shard
from idiograph.store import MANIFEST, Manifest, ShardedFolder, find_stage, make_folder, new_file, read_manifest

KIND = "tei"
MAKE = "idiograph extract PDFS -o FOLDER"
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

    @property
    def key(self) -> str:
        return self.name


TeiFolder = ShardedFolder[ExtractEntry]


def extract(
    pdfs: Path, out: Path, recipe: ExtractRecipe, part: str = "1/1", progress: Progress | None = None
) -> Manifest:
    """Extract every PDF of this part. The manifest has no fingerprint while other parts are to come."""
    sizes = find_pdfs(pdfs)
    mine = list(shard(sizes, part, key=str))
    folder = ShardedFolder(out, part, ExtractEntry)
    with folder.lock_shard():
        done = folder.entries()
        orphans = [entry for name, entry in done.items() if name not in sizes]
        remove_orphans(out, orphans, recipe.prune)
        again = {name for name, entry in done.items() if entry.passing or (recipe.retry and entry.status != 200)}
        todo = [n for n in mine if n in again or not is_unchanged(out, n, sizes[n], done.get(n))]
        if not todo and not orphans and (out / MANIFEST).is_file():
            return read_manifest(out, KIND, MAKE)
        if todo:
            refuse_mixture(out, "grobid" if recipe.grobid else embedded_name(), done.values())
            tally = ExtractProgress(len(mine), len(mine) - len(todo), progress)
            ShardExtraction(pdfs, folder, tally).run({name: sizes[name] for name in todo}, recipe)
        return conclude_extraction(folder, sizes, recipe, pdf_fingerprint(pdfs))


def pdf_fingerprint(pdfs: Path) -> dict[str, str]:
    """The fingerprint of the PDFs, if `download` made them."""
    manifest = find_stage(pdfs)
    return {manifest.kind: manifest.fingerprint} if manifest else {}


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
    sizes: dict[str, int] = {}
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.lower().endswith(".pdf") and not name.startswith(".") and (path := Path(where, name)).is_file():
                sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
    if not sizes:
        raise InputError(f"'{folder}' has no PDFs; their names must end in .pdf")
    refuse_clashes(sizes)
    return dict(sorted(sizes.items()))


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


def is_unchanged(out: Path, name: str, size: int, entry: ExtractEntry | None) -> bool:
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


class ShardExtraction:
    """Extracts the PDFs of one shard, and keeps each result as it comes."""

    def __init__(self, pdfs: Path, folder: TeiFolder, tally: ExtractProgress) -> None:
        self.pdfs, self.folder, self.tally, self.stop = pdfs, folder, tally, threading.Event()

    def run(self, todo: Mapping[str, int], recipe: ExtractRecipe) -> None:
        if recipe.runner == "ray" and not recipe.grobid:
            self.extract_on_cluster(todo, recipe)
            return
        extractor: Extractor = Grobid(recipe) if recipe.grobid else EmbeddedExtractor(recipe)
        try:
            self.extract_in_threads(todo, extractor)
        finally:
            extractor.close()

    def extract_in_threads(self, todo: Mapping[str, int], extractor: Extractor) -> None:
        """As many at a time as the extractor has places; the first error that is not a document's own stops all."""
        queue = iter(todo.items())
        with ThreadPoolExecutor(extractor.slots) as pool:
            jobs = {pool.submit(self.extract_one, *item, extractor) for item in islice(queue, 2 * extractor.slots)}
            try:
                while jobs:
                    finished, jobs = wait(jobs, return_when=FIRST_COMPLETED)
                    jobs |= {pool.submit(self.extract_one, *item, extractor) for item in islice(queue, len(finished))}
                    for job in finished:
                        self.tally.count(job.result())
            except BaseException:
                self.stop.set()
                extractor.close()
                raise

    def extract_on_cluster(self, todo: Mapping[str, int], recipe: ExtractRecipe) -> None:
        paths = (self.pdfs.resolve() / name for name in todo)
        work = partial(extract_alone, settings=recipe.model_dump_json())
        results = Workers("ray", recipe.workers or None, recipe.address or None).map(work, paths)
        for (name, size), result in zip(todo.items(), results, strict=True):
            lost = isinstance(result, Failure)
            self.keep(
                name, size, Extraction(500, reason=result.reason, passing=True) if lost else result, embedded_name()
            )
            self.tally.count(name)

    def extract_one(self, name: str, size: int, extractor: Extractor) -> str:
        """Extract one document, unless the run has been stopped meanwhile."""
        if not self.stop.is_set():
            outcome = extractor(self.pdfs / name)
            if not self.stop.is_set():
                self.keep(name, size, outcome, extractor.name)
        return name

    def keep(self, name: str, size: int, outcome: Extraction, by: str) -> None:
        """Save a result, then note it; from now on the folder is unfinished."""
        self.folder.unseal()
        whole = outcome.status == 200
        data = outcome.tei if whole else f"{outcome.reason}: {outcome.detail}\n".encode()
        self.save(name, outcome.status, data)
        checksum = hashlib.sha256(data).hexdigest() if whole else ""
        what = (outcome.reason, outcome.detail, outcome.passing)
        self.folder.add(ExtractEntry(name, size, outcome.status, by, checksum, *what))

    def save(self, name: str, status: int, data: bytes) -> None:
        """Put a result in its place, whole; what an earlier run may have put there goes."""
        out = self.folder.path
        target = out / result_name(name, status)
        make_folder(target.parent)
        with new_file(target, self.folder.work / f"{threading.get_ident()}.partial") as file:
            file.write(data)
            for other in STATUSES:
                if other != status:
                    (out / result_name(name, other)).unlink(missing_ok=True)


def conclude_extraction(
    folder: TeiFolder, sizes: Mapping[str, int], recipe: ExtractRecipe, inputs: Mapping[str, str]
) -> Manifest:
    """Seal the folder if there is a result for every PDF, whoever made it."""
    with folder.lock_whole():
        entries = folder.entries()
        done = [entry for name, size in sizes.items() if (entry := entries.get(name)) and entry.bytes == size]
        dropped = Counter(entry.reason for entry in done if entry.status != 200)
        counts = {"pdfs": len(sizes), "tei": len(done) - dropped.total()}
        manifest = Manifest(KIND, recipe.as_stored(), inputs, counts, dict(sorted(dropped.items())))
        if len(done) < len(sizes):
            return manifest
        known = {result_name(entry.name, entry.status): entry.sha256 for entry in done if entry.sha256}
        sealed = folder.seal(done, manifest, known)
        folder.forget_shards()
        return sealed
