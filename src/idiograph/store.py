"""Folders that are whole or absent: shards and a manifest that is written last. Knows nothing of what is in them.

A stage that makes its output in one go uses `draft`: it works in a hidden folder beside the target and renames it at the
end, so that a kill or Ctrl-C leaves the old state. A stage that goes on for days works in its target under `locked`, notes
each finished item in a `Ledger`, and calls `seal` when all is done. A folder without `manifest.json` is unfinished.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from idiograph.errors import ArtifactError

FORMAT = 1
MANIFEST = "manifest.json"


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
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1, default=str)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Declare a folder finished."""
    done = Manifest(**{**asdict(manifest), "fingerprint": fingerprint(folder), "created": timestamp()})
    write_json(folder / MANIFEST, asdict(done))
    return done


def timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_manifest(folder: Path, kind: str, make: str) -> Manifest:
    """The manifest of a finished `kind` folder; `make` is the command that would make one."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise ArtifactError(f"there is no {kind} folder '{folder}'; make one: {make}")
    if not path.is_file():
        raise ArtifactError(f"'{folder}' is not a finished {kind} (no {MANIFEST}); make it: {make}")
    try:
        found = Manifest(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ArtifactError(f"'{path}' cannot be read ({error}); make the {kind} again: {make}") from error
    if found.kind != kind:
        raise ArtifactError(f"'{folder}' is a {found.kind}, not a {kind}; make one: {make}")
    if found.format > FORMAT:
        raise ArtifactError(f"'{folder}' has format {found.format}, this idiograph reads {FORMAT}; upgrade idiograph")
    return found


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
    hidden = target.parent / f".{target.name}.partial"
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
        if self.path.is_file():
            with self.path.open(encoding="utf-8") as file:
                yield from map(json.loads, file)

    def add(self, item: Mapping[str, Any]) -> None:
        """Note one item; it is on disk when this returns."""
        line = json.dumps(item, ensure_ascii=False, sort_keys=True) + "\n"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def write_whole_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, even after a power cut."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
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
