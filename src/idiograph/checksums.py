"""Whether the files of a folder are what they were when it was finished. Knows nothing of manifests, nor of what is in a file.

Names and sizes are compared every time. Contents are read the first time that a folder is opened, and again when a file's
size, times or inode say that it may be another one; what was found is remembered in the user's cache, so that a folder that
nobody may write to is read once, too. A disk that changes bytes behind the back of its file system is found by reading all of
it again: `idiograph check`.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

MANIFEST = "manifest.json"
COMPILED = "__pycache__"  # Python puts it beside the code that travels with a model
SECONDS_UNTIL_SETTLED = 2.0  # a file that is younger may change once more within one tick of its clock
CHECKSUMS = "checked"  # what the user's cache calls the checksums of folders
THREADS = 8  # that read at once; more than a disk has use for
Files = Mapping[str, Mapping[str, Any]]  # name → sha256, bytes and, where that says something, rows
Stamp = tuple[int, int, int, int]


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_files(folder: Path) -> list[str]:
    """The names of a folder's files, in the order of their paths; hidden ones, compiled ones and the manifest do not count."""
    return sorted(visible_files(folder, ""), key=lambda name: name.split("/"))


def visible_files(folder: Path, within: str) -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:  # another process may remove it meanwhile
        for entry in entries:
            name = within + entry.name
            if entry.name.startswith(".") or name == MANIFEST or entry.name == COMPILED:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from visible_files(folder / entry.name, f"{name}/")
            elif entry.is_file():
                yield name


def describe_files(
    folder: Path, known: Mapping[str, str] | None = None, old: Files | None = None, since: int = 0
) -> dict[str, Any]:
    """Size, checksum and rows of every file. A checksum that is `known` is not worked out again, and a file that is in `old`
    with its size, and was written before the moment `since`, is taken to be the same one."""
    known, old = known or {}, old or {}
    stamps = {name: stamp for name in list_files(folder) if (stamp := stamp_of(folder / name))}
    kept = {
        name: dict(old[name])
        for name, at in stamps.items()
        if name in old and at[:1] == (old[name]["bytes"],) and at[1] < since
    }
    unknown = [name for name in stamps if name not in kept and name not in known]
    digests = {**known, **dict(zip(unknown, digest_all(folder, unknown), strict=True))}
    return {name: kept.get(name) or describe_file(folder / name, digests[name]) for name in stamps}


def describe_file(path: Path, checksum: str) -> dict[str, Any]:
    rows = count_rows(path)
    return {"sha256": checksum, "bytes": size_of(path)} | ({} if rows is None else {"rows": rows})


def count_rows(path: Path) -> int | None:
    """The rows of a Parquet file or the lines of a .jsonl file; None for any other."""
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.read_metadata(path).num_rows
        except pa.ArrowException:
            return None
    if path.suffix == ".jsonl":
        with path.open("rb") as file:
            return sum(1 for _ in file)
    return None


def size_of(path: Path) -> int:
    return path.stat().st_size


def digest_all(folder: Path, names: Iterable[str]) -> list[str]:
    """The checksums of files; several are read at a time."""
    names = list(names)
    if len(names) < 2:
        return [digest(folder / name) for name in names]
    with ThreadPoolExecutor(min(THREADS, len(names), os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda name: digest(folder / name), names))


def fingerprint_of_files(files: Files) -> str:
    """A short hash over names and contents."""
    whole = hashlib.sha256()
    for name in sorted(files, key=lambda name: name.split("/")):
        whole.update(f"{name}\0{files[name]['sha256']}\n".encode("utf-8", "surrogatepass"))
    return whole.hexdigest()[:16]


def list_changes(folder: Path, files: Files, *, anew: bool = False, since: int | None = None) -> Iterator[str]:
    """What is wrong with a folder that should hold these files; nothing if it is as it was. `anew` reads all contents
    whatever is remembered. In a folder that is being changed `since` a moment, files may be missing, new or written anew."""
    there = list_files(folder)
    if since is None:
        yield from (f"{name} is missing" for name in sorted(files.keys() - set(there)))
        yield from (f"{name} does not belong to it" for name in sorted(set(there) - files.keys()))
    stamps = {name: stamp for name in there if name in files and (stamp := stamp_of(folder / name))}
    stamps = {name: stamp for name, stamp in stamps.items() if since is None or stamp[1] < since}
    cut = {name: stamp[0] for name, stamp in stamps.items() if stamp[0] != files[name]["bytes"]}
    yield from (f"{name} has {size:,} bytes and not {files[name]['bytes']:,}" for name, size in cut.items())
    found = read_digests(folder, {name: stamp for name, stamp in stamps.items() if name not in cut}, anew)
    changed = (name for name, checksum in found.items() if checksum != files[name]["sha256"])
    yield from (f"the content of {name} has changed" for name in changed)


def read_digests(folder: Path, stamps: Mapping[str, Stamp], anew: bool = False) -> dict[str, str]:
    """The checksum of every file, from memory where the file has not changed since."""
    memory = {} if anew else remembered_files(folder)
    known = {name: memory[name][4] for name, stamp in stamps.items() if memory.get(name, [])[:4] == list(stamp)}
    unknown = [name for name in stamps if name not in known]
    found = known | dict(zip(unknown, digest_all(folder, unknown), strict=True))
    if unknown:
        remember_files(folder, {name: [*stamp, found[name]] for name, stamp in stamps.items() if is_settled(stamp)})
    return found


def fingerprint(folder: Path, anew: bool = False) -> str:
    """The fingerprint of what lies in a folder now."""
    stamps = {name: stamp for name in list_files(folder) if (stamp := stamp_of(folder / name))}
    return fingerprint_of_files({name: {"sha256": found} for name, found in read_digests(folder, stamps, anew).items()})


def stamp_of(path: Path) -> Stamp | None:
    """What changes with a file: its size, its times and its inode; None if another process has just removed it."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino


def is_settled(stamp: Stamp) -> bool:
    return time.time() - max(stamp[1:3]) / 1e9 > SECONDS_UNTIL_SETTLED


def remember_derived(folder: Path, names: Sequence[str], derive: Callable[[], str], what: str) -> str:
    """What follows from some files of a folder alone: worked out once, and remembered until one of them changes."""
    stamps = {name: stamp for name in names if (stamp := stamp_of(folder / name))}
    memory = remembered_files(folder, what)
    if stamps and all(memory.get(name, [])[:4] == list(stamp) for name, stamp in stamps.items()):
        return str(memory[names[0]][4])
    found = derive()
    if len(stamps) == len(names) and all(map(is_settled, stamps.values())):
        remember_files(folder, {name: [*stamp, found] for name, stamp in stamps.items()}, what)
    return found


def memory_of(folder: Path, what: str = CHECKSUMS) -> Path:
    """The file in the user's cache that remembers what was found in a folder."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    return Path.home() / ".cache" / "idiograph" / what / f"{name}.json"


def remembered_files(folder: Path, what: str = CHECKSUMS) -> dict[str, Any]:
    """What an earlier opening found; nothing if that cannot be read."""
    try:
        found = json.loads(memory_of(folder, what).read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):  # a user without a home directory
        return {}
    right = isinstance(found, dict) and all(isinstance(each, list) and len(each) == 5 for each in found.values())
    return found if right else {}


def remember_files(folder: Path, found: Mapping[str, Any], what: str = CHECKSUMS) -> None:
    """Keep what was found. Where there is no place for it, the contents are read again next time."""
    try:
        path = memory_of(folder, what)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{uuid4().hex}")
        partial.write_text(json.dumps(found), encoding="utf-8")
        partial.replace(path)
    except (OSError, RuntimeError):
        return
