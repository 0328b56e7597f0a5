"""Folders that are whole or absent: shards and a manifest that is written last. Knows nothing of what is in them.

A stage that makes its output in one go uses `draft`: it works in a hidden folder beside the target and renames it at the
end, so that a kill or Ctrl-C leaves the old state. A stage that goes on for days works in its target under a lock, notes
each finished item in a `Ledger`, and seals the folder when all is done; where several machines share the work it is a
`ShardedFolder`. A folder without `manifest.json` is unfinished.
"""

import fcntl
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, Protocol, TypeVar

from idiograph.errors import ArtifactError

FORMAT = 1
MANIFEST = "manifest.json"
LEDGER = "ledger.jsonl"
WORK = ".work"  # of a sharded folder: a folder per shard, with its lock, its ledger and what is half written
NOUNS = {
    "pdf": "folder of PDFs",
    "records": "folder of records",
    "tei": "folder of TEI",
    "triplets": "folder of triplets",
}


@dataclass(frozen=True)
class Manifest:
    """What a finished folder says about itself."""

    kind: str
    recipe: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    fingerprint: str = ""
    created: str = ""
    format: int = FORMAT


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(folder: Path) -> str:
    """A short hash over the names and contents of a folder's data files; hidden files and the manifest do not count."""
    whole = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name != MANIFEST and not any(part.startswith(".") for part in name.split("/")):
            whole.update(f"{name}\0{digest(path)}\n".encode())
    return whole.hexdigest()[:16]


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part."""
    text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    with new_file(path, hidden_name(path)) as file:
        file.write(text.encode())


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Declare a folder finished."""
    return write_manifest(folder, manifest, fingerprint(folder))


def write_manifest(folder: Path, manifest: Manifest, mark: str) -> Manifest:
    """Write what makes a folder finished, with its fingerprint and the time."""
    done = replace(manifest, fingerprint=mark, created=timestamp())
    write_json(folder / MANIFEST, asdict(done))
    return done


def timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_manifest(folder: Path, kind: str, make: str) -> Manifest:
    """The manifest of a finished `kind` folder; `make` is the command that would make one."""
    path, noun = folder / MANIFEST, NOUNS.get(kind, kind)
    if not folder.is_dir():
        raise ArtifactError(f"there is no {kind} folder '{folder}'; make one: {make}")
    if not path.is_file():
        raise ArtifactError(f"'{folder}' is not a finished {noun} (no {MANIFEST}); make it: {make}")
    try:
        manifest = Manifest(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ArtifactError(f"'{path}' cannot be read ({error}); make the {noun} again: {make}") from error
    if manifest.kind != kind:
        raise ArtifactError(f"'{folder}' is {one_of_kind(manifest.kind)}, not {one_of_kind(kind)}; make one: {make}")
    if manifest.format > FORMAT:
        raise ArtifactError(
            f"'{folder}' has format {manifest.format}, this idiograph reads {FORMAT}; upgrade idiograph"
        )
    return manifest


def one_of_kind(kind: str) -> str:
    """A kind of folder with its article.

    >>> one_of_kind("index"), one_of_kind("corpus"), one_of_kind("triplets")
    ('an index', 'a corpus', 'a folder of triplets')
    """
    noun = NOUNS.get(kind, kind)
    return f"{'an' if noun[:1] in tuple('aeiou') else 'a'} {noun}"


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold a folder for one writer; a second one is refused at once. The lock dies with the process."""
    make_folder(folder)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArtifactError(f"another run is writing '{folder}'; wait for it, or choose another -o") from None
        yield


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(f"cannot make the folder '{folder}': {error.strerror}") from error


@contextmanager
def draft(target: Path, overwrite: bool = False) -> Iterator[Path]:
    """A hidden folder to fill; renamed to `target` if the body ends well, removed if it does not."""
    check_free(target, overwrite)
    hidden = hidden_name(target)
    make_folder(target.parent)
    with locked_folder(hidden):
        clear_folder(hidden)
        try:
            yield hidden
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        (hidden / ".lock").unlink()
        if target.exists():
            shutil.rmtree(target)
        hidden.rename(target)


def check_free(target: Path, overwrite: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise ArtifactError(f"'{target}' is a file; choose a folder for -o")
    if any(target.iterdir()) and not overwrite:
        raise ArtifactError(f"'{target}' is there already; choose another -o, or pass --overwrite")
    if overwrite and any(target.iterdir()) and not (target / MANIFEST).is_file():
        raise ArtifactError(f"'{target}' was not made by idiograph (no {MANIFEST}): it is not overwritten")


def clear_folder(folder: Path) -> None:
    """Remove what an earlier, killed run left in a hidden folder."""
    for path in folder.iterdir():
        if path.name != ".lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


class Ledger:
    """An append-only list of finished items, one JSON object a line; survives a kill in the middle of a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mend()

    def _mend(self) -> None:
        """Cut off a last line that a kill left unfinished."""
        if self.path.is_file():
            raw = self.path.read_bytes()
            whole = raw.rfind(b"\n") + 1
            if whole < len(raw):
                os.truncate(self.path, whole)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return read_ledger(self.path)

    def add(self, item: Mapping[str, Any]) -> None:
        """Note one item; it is on disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(ledger_line(item))
            file.flush()
            os.fsync(file.fileno())


def read_ledger(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a ledger, which another process may be writing; nothing if there is none."""
    if path.is_file():
        with path.open("rb") as file:
            yield from (json.loads(line) for line in file if line.endswith(b"\n"))


def write_ledger(path: Path, items: Iterable[Mapping[str, Any]]) -> None:
    """Replace a ledger by another one."""
    write_whole_file(path, "".join(map(ledger_line, items)).encode())


def ledger_line(item: Mapping[str, Any]) -> str:
    return json.dumps(item, ensure_ascii=False, sort_keys=True) + "\n"


class LedgerEntry(Protocol):
    """A dataclass that says what became of one item, whose name is its `key`."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def key(self) -> str: ...


Entry = TypeVar("Entry", bound=LedgerEntry)


class ShardedFolder(Generic[Entry]):
    """A folder that several runs fill together, each its shard `i/n` of the items, with what became of each item.

    A run works under a lock in a folder of its own, and notes each item in a ledger there. Whoever comes last joins the
    ledgers to one for the whole folder and seals it with that one's digest, which covers every file's checksum: a
    terabyte is not read again for it.
    """

    ledger: Ledger  # of this shard, once it is locked

    def __init__(self, path: Path, part: str, entry: Callable[..., Entry]) -> None:
        self.path, self.part, self.entry = path, part, entry
        self.work = path / WORK / part.replace("/", "-of-")
        self._lock = threading.Lock()

    @contextmanager
    def lock_shard(self) -> Iterator[None]:
        """Keep every other run out of this shard, and remove what one that was killed has left half written."""
        with explain_failed_writes(self.path), locked_folder(self.work):
            for leftover in self.work.glob("*.partial"):
                leftover.unlink()
            self.ledger = Ledger(self.work / LEDGER)
            yield

    @contextmanager
    def lock_whole(self) -> Iterator[None]:
        """Shards that end at the same time conclude one after another."""
        with (self.path / WORK / ".turn").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def unseal(self) -> None:
        """Declare the folder unfinished, before anything in it changes."""
        (self.path / MANIFEST).unlink(missing_ok=True)

    def add(self, entry: Entry) -> None:
        """Note what became of an item; any thread may call this."""
        with self._lock:
            self.ledger.add(asdict(entry))

    def entries(self) -> dict[str, Entry]:
        """The last word on each item, from the ledger of the folder when it was finished and those of the shards."""
        paths = [self.path / LEDGER, *sorted((self.path / WORK).glob(f"*/{LEDGER}"))]
        entries = (self.entry(**line) for path in paths for line in read_ledger(path))
        return {entry.key: entry for entry in entries}

    def absorb_other_cuts(self) -> None:
        """Take over what shards of another number have done; refuse if one of them is at work."""
        number = self.part.partition("/")[2]
        with self.lock_whole():
            for other in (self.path / WORK).glob("*-of-*"):
                if other.name.partition("-of-")[2] != number:
                    with locked_folder(other):
                        self.write_entries(self.entries().values())
                        shutil.rmtree(other)

    def forget_shards(self) -> None:
        """Remove the ledgers of the shards: what is in them is in that of the folder."""
        for ledger in (self.path / WORK).glob(f"*/{LEDGER}"):
            ledger.unlink(missing_ok=True)

    def write_entries(self, entries: Iterable[Entry]) -> None:
        """The ledger of the whole folder, in the order of the keys: the same whoever came first."""
        write_ledger(self.path / LEDGER, map(asdict, sorted(entries, key=lambda entry: entry.key)))

    def seal(self, entries: Iterable[Entry], manifest: Manifest) -> Manifest:
        """Declare the folder finished."""
        self.write_entries(entries)
        return write_manifest(self.path, manifest, digest(self.path / LEDGER)[:16])


@contextmanager
def new_file(target: Path, partial: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is whole and on disk; if the body fails, there is none."""
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def hidden_name(path: Path) -> Path:
    return path.parent / f".{path.name}.partial"


def write_whole_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, even after a power cut."""
    with new_file(path, hidden_name(path)) as file:
        file.write(data)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def explain_failed_writes(folder: Path) -> Iterator[None]:
    """Say which folder could not be written, and that nothing is lost."""
    try:
        yield
    except OSError as error:
        hint = "run the same command again when that is mended: it goes on where it stopped"
        raise ArtifactError(f"cannot write to '{folder}': {error.strerror or error}; {hint}") from error
