"""Folders that are whole or absent: shards and a manifest that is written last. Knows nothing of what is in them.

A stage that makes its output in one go uses `draft`: it works in a hidden folder beside the target and renames it at the
end, so that a kill or Ctrl-C leaves the old state. A stage that goes on for days works in its target under a lock, notes
each finished item in a `Ledger`, and seals the folder when all is done; where several machines share the work it is a
`ShardedFolder`. A folder without `manifest.json` is unfinished; `read_manifest` compares a finished one with its manifest.
"""

import fcntl
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import Field, asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, Protocol, TextIO, TypeVar

from idiograph.checksums import (
    MANIFEST,
    Files,
    describe_files,
    digest,
    fingerprint,
    fingerprint_of_files,
    list_changes,
)
from idiograph.errors import ArtifactError

FORMAT = 2  # 1 named no files
LEDGER = "ledger.jsonl"
WORK = ".work"  # of a sharded folder: a folder per shard, with its lock, its ledger and what is half written
CHANGING = ".changing"  # in a finished folder while it is changed, and after a kill on the way
NOUNS = {
    "pdf": "folder of PDFs",
    "records": "folder of records",
    "tei": "folder of TEI",
    "triplets": "folder of triplets",
}
MAKE = {
    "corpus": "idiograph corpus TEXTS -o FOLDER",
    "index": "idiograph index CORPUS -o INDEX",
    "model": "idiograph train TRIPLETS -o FOLDER",
    "pdf": "idiograph download RECORDS -o FOLDER",
    "records": "idiograph harvest -o FOLDER",
    "tei": "idiograph extract PDFS -o FOLDER",
    "triplets": "idiograph mine CORPUS -o FOLDER",
}
ITEM_BY_ITEM = frozenset({"pdf", "tei"})  # kinds of which a run makes again what is not there


@dataclass(frozen=True)
class Manifest:
    """What a finished folder says about itself. `checksum` is that of the manifest without it."""

    kind: str
    recipe: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    fingerprint: str = ""
    created: str = ""
    format: int = FORMAT
    files: Files = field(default_factory=dict)
    checksum: str = ""


def write_sealed_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object with its own checksum, for what is kept beside the files of a manifest."""
    plain = json.loads(json.dumps(value, ensure_ascii=False, default=str))
    write_json(path, plain | {"checksum": json_checksum(plain)})


def add_sealed_json(path: Path, value: Mapping[str, Any]) -> None:
    """The same for a folder that may be a finished one: its manifest then names the file."""
    if find_manifest(path.parent) is None:
        write_sealed_json(path, value)
        return
    with locked_folder(path.parent), change_folder(path.parent):
        write_sealed_json(path, value)


def read_sealed_json(path: Path, make: str) -> dict[str, Any]:
    """What `write_sealed_json` wrote, or an object of an earlier version that has no checksum."""
    try:
        plain = json.loads(path.read_bytes())
        if not isinstance(plain, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise ArtifactError(f"'{path}' cannot be read ({error}); {make}") from error
    checksum = plain.pop("checksum", None)
    if checksum is not None and checksum != json_checksum(plain):
        raise ArtifactError(f"'{path}' has changed since it was written; {make}")
    return plain


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part."""
    text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    with new_file(path, hidden_name(path)) as file:
        file.write(text.encode("utf-8", "surrogatepass"))  # a file's name need not be text


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Declare a folder finished."""
    files = describe_files(folder)
    return write_manifest(folder, manifest, fingerprint_of_files(files), files)


def write_manifest(folder: Path, manifest: Manifest, mark: str, files: Files) -> Manifest:
    """Write what makes a folder finished, with its fingerprint, the time and its files."""
    done = replace(manifest, fingerprint=mark, created=timestamp(), files=files, checksum="", format=FORMAT)
    plain = json.loads(json.dumps(asdict(done), ensure_ascii=False, default=str))
    write_json(folder / MANIFEST, plain | {"checksum": manifest_checksum(plain)})
    return replace(done, checksum=manifest_checksum(plain))


def manifest_checksum(plain: Mapping[str, Any]) -> str:
    """Of everything but the time: two runs that made the same say the same."""
    return json_checksum({key: value for key, value in plain.items() if key != "created"})


def json_checksum(plain: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in plain.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_manifest(folder: Path, kind: str, make: str) -> Manifest:
    """The manifest of a finished `kind` folder that is as it was written; `make` is the command that would make one."""
    settle_folder(folder)
    path, noun = folder / MANIFEST, NOUNS.get(kind, kind)
    if not folder.is_dir():
        raise ArtifactError(f"there is no {kind} folder '{folder}'; make one: {make}")
    if not path.is_file():
        raise ArtifactError(f"'{folder}' is not a finished {noun} (no {MANIFEST}); make it: {make}")
    manifest = parse_manifest(path, noun, make)
    if manifest.kind != kind:
        raise ArtifactError(f"'{folder}' is {one_of_kind(manifest.kind)}, not {one_of_kind(kind)}; make one: {make}")
    refuse_damage(folder, manifest, make)
    return manifest


def parse_manifest(path: Path, noun: str, make: str) -> Manifest:
    """A manifest whose own checksum is right, of a format that we read."""
    try:
        plain = json.loads(path.read_bytes())
        manifest = Manifest(**plain)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(f"'{path}' cannot be read ({error}); make the {noun} again: {make}") from error
    if type(manifest.format) is int and manifest.format > FORMAT:
        raise ArtifactError(
            f"'{path.parent}' has format {manifest.format}, this idiograph reads {FORMAT}; upgrade idiograph"
        )
    if (manifest.format != 1 or manifest.checksum) and manifest.checksum != manifest_checksum(plain):
        raise ArtifactError(f"'{path}' has changed since it was written; make the {noun} again: {make}")
    return manifest


def find_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder of ours that is as it was written; None for a folder of anybody else."""
    settle_folder(folder)
    path = folder / MANIFEST
    if not path.is_file():
        return None
    with suppress(OSError, ValueError, RecursionError):
        plain = json.loads(path.read_bytes())
        if not (isinstance(plain, dict) and plain.keys() & {"kind", "fingerprint", "checksum"}):
            return None
    kind = parse_manifest(path, "folder", "with the command that made it").kind
    return read_manifest(folder, kind, MAKE.get(kind, "with the command that made it"))


def find_stage(folder: Path) -> Manifest | None:
    """`find_manifest` for a folder that a stage fills item by item: one that has a ledger and no manifest is unfinished."""
    manifest = find_manifest(folder)
    if manifest is None and (folder / LEDGER).is_file():
        raise ArtifactError(f"'{folder}' is not finished (no {MANIFEST}); finish it with the command that began it")
    return manifest


def verify_folder(folder: Path) -> tuple[Manifest, list[str]]:
    """Read every byte of a finished folder again, whatever is remembered of it: its manifest, and all that has changed."""
    settle_folder(folder)
    if not (folder / MANIFEST).is_file():
        raise ArtifactError(f"'{folder}' has no {MANIFEST}: it is unfinished, or nothing that idiograph made")
    manifest = parse_manifest(folder / MANIFEST, "folder", "with the command that made it")
    return manifest, find_damage(folder, manifest, anew=True)


def refuse_damage(folder: Path, manifest: Manifest, make: str) -> None:
    """Say which file of a folder is not as it was written, and how to make it again."""
    if faults := find_damage(folder, manifest):
        hint = f"remove that file, then run: {make}" if manifest.kind in ITEM_BY_ITEM else f"make it again: {make}"
        raise ArtifactError(f"'{folder}' is damaged ({faults[0]}); {hint}")


def find_damage(folder: Path, manifest: Manifest, anew: bool = False) -> list[str]:
    """What is not as the manifest says. Only of a folder that nobody changed meanwhile: otherwise it is looked at again."""
    while True:
        since = begin_of_change(folder)
        try:
            faults = list(find_faults(folder, manifest, since, anew))
        except OSError as error:
            if since and isinstance(error, FileNotFoundError):
                continue  # removed between two looks
            faults = [f"{error.filename or 'a file'} cannot be read: {error.strerror or error}"]
        before, manifest = manifest, parse_manifest(folder / MANIFEST, "folder", "with the command that made it")
        if not faults or (before.checksum == manifest.checksum and since == begin_of_change(folder)):
            return faults


def find_faults(folder: Path, manifest: Manifest, since: int | None, anew: bool) -> Iterator[str]:
    """What is not as the manifest says. One of format 1 names no files: it has a fingerprint, which changes of an index or a
    calibration left as it was."""
    if manifest.format > 1:
        yield from list_changes(folder, manifest.files, anew=anew, since=since)
    elif manifest.kind in ITEM_BY_ITEM:
        if digest(folder / LEDGER)[:16] != manifest.fingerprint:
            yield f"the content of {LEDGER} has changed"
    elif manifest.kind not in ("index", "model") and fingerprint(folder, anew) != manifest.fingerprint:
        yield "a file has changed since it was written"


@contextmanager
def change_folder(folder: Path) -> Iterator[None]:
    """Change a finished folder by adding, removing and replacing files; the others are not read again. The caller holds its
    lock. While it lasts, and after a kill in it, a reader compares the files that were there before and still are."""
    old = parse_manifest(folder / MANIFEST, "folder", "with the command that made it")
    refuse_damage(folder, old, MAKE.get(old.kind, "with the command that made it"))
    since = begin_of_change(folder)
    if since is None:
        (folder / CHANGING).touch()
        since = begin_of_change(folder) or 0
    try:
        yield
    finally:
        write_manifest(folder, old, old.fingerprint, describe_files(folder, old=old.files, since=since))
        (folder / CHANGING).unlink()


def begin_of_change(folder: Path) -> int | None:
    """When a change to a folder began that has not ended, by the clock of its files; None if there is none."""
    try:
        return (folder / CHANGING).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def settle_folder(folder: Path) -> None:
    """Bring a folder in order that a killed run has left aside or in the middle of a change; not while a writer is at work,
    nor where nobody may write."""
    with suppress(ArtifactError, OSError):
        if not folder.exists() and name_aside(folder).exists():
            with lock_place(folder):
                settle_exchange(folder)
        if (folder / CHANGING).exists():
            with locked_folder(folder), change_folder(folder):
                pass


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
    with lock_file(folder / ".lock", folder):
        yield


@contextmanager
def lock_file(path: Path, folder: Path) -> Iterator[TextIO]:
    """Hold a file for one writer of a folder."""
    try:
        handle = path.open("w")
    except OSError as error:
        raise ArtifactError(f"cannot write '{folder}': {error.strerror or error}") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArtifactError(f"another run is writing '{folder}'; wait for it, or choose another -o") from None
        yield handle


@contextmanager
def lock_place(target: Path) -> Iterator[None]:
    """Hold the place of a folder, whatever lies there meanwhile. The file that is locked lies beside it and goes at the end;
    whoever has opened it before it went holds nothing, and tries again."""
    path = target.parent / f".{target.name}.lock"
    while True:
        with lock_file(path, target) as handle:
            if is_same_file(path, handle):
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return


def is_same_file(path: Path, handle: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle.fileno()))
    except FileNotFoundError:
        return False


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(f"cannot make the folder '{folder}': {error.strerror}") from error


@contextmanager
def draft(target: Path, overwrite: bool = False) -> Iterator[Path]:
    """A hidden folder to fill; put in the place of `target` if the body ends well, removed if it does not."""
    check_free(target, overwrite)
    make_folder(target.parent)
    hidden = hidden_name(target)
    with lock_place(target), lock_finished(target):
        settle_exchange(target)
        check_free(target, overwrite)
        make_folder(hidden)
        clear_folder(hidden)
        try:
            yield hidden
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            raise
        exchange_folders(hidden, target)


def lock_finished(target: Path) -> AbstractContextManager[None]:
    """Nobody changes a folder while another one is made for its place."""
    return locked_folder(target) if (target / MANIFEST).is_file() else nullcontext()


def exchange_folders(new: Path, target: Path) -> None:
    """Put a whole folder in the place of another one: the old one steps aside, the new one steps in, and then the old one
    goes. After a kill on the way `settle_exchange` leaves the old or the new one, whole. The caller holds the place."""
    settle_exchange(target)
    aside = name_aside(target)
    if target.exists():
        target.rename(aside)
    new.rename(target)
    if aside.exists():
        shutil.rmtree(aside)


def settle_exchange(target: Path) -> None:
    """Put a folder back that a killed run has left aside, or remove it where the new one is in its place."""
    aside = name_aside(target)
    if aside.exists():
        shutil.rmtree(aside) if target.exists() else aside.rename(target)


def name_aside(target: Path) -> Path:
    return target.parent / f".{target.name}.old"


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
        with self.path.open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.write(ledger_line(item))
            file.flush()
            os.fsync(file.fileno())


def read_ledger(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of a ledger, which another process may be writing; nothing if there is none."""
    if path.is_file():
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield parse_ledger_line(line, f"{path}:{number}")


def parse_ledger_line(line: bytes, where: str) -> dict[str, Any]:
    try:
        item = json.loads(line)
        if not isinstance(item, dict):
            raise ValueError("no JSON object")
        return item
    except (ValueError, RecursionError) as error:
        raise ArtifactError(
            f"'{where}' is damaged ({error}); remove that line, and what it was about is done again"
        ) from error


def write_ledger(path: Path, items: Iterable[Mapping[str, Any]]) -> None:
    """Replace a ledger by another one."""
    write_whole_file(path, "".join(map(ledger_line, items)).encode("utf-8", "surrogatepass"))


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
        entries = (self._entry(line, path) for path in paths for line in read_ledger(path))
        return {entry.key: entry for entry in entries}

    def _entry(self, line: Mapping[str, Any], path: Path) -> Entry:
        try:
            return self.entry(**line)
        except TypeError as error:
            raise ArtifactError(f"'{path}' has a line that is none of its own ({error}); remove that line") from error

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

    def seal(self, entries: Iterable[Entry], manifest: Manifest, known: Mapping[str, str] | None = None) -> Manifest:
        """Declare the folder finished; the checksums of its files are `known` to who wrote them."""
        self.write_entries(entries)
        files = describe_files(self.path, known)
        return write_manifest(self.path, manifest, files[LEDGER]["sha256"][:16], files)


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
