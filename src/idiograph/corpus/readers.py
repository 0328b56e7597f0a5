"""What people have on disk, as documents: text folders, JSON lines, Parquet, Hugging Face datasets. UTF-8, NFC at the door.

A file or row that cannot be read becomes a `Failure` in the stream, with the reason; it does not end the reading.
"""

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from idiograph.corpus.formats import MAX_BYTES, check_regular, decode, read_file_text, stem_of, written_files
from idiograph.errors import InputError
from idiograph.synth.anthology import anthology
from idiograph.types import Author, Document


@dataclass(frozen=True, slots=True)
class UnreadableSource:
    """Something that could not be read, and why."""

    where: str
    reason: str


Read = Iterator[Document | UnreadableSource]


def text_folder(folder: Path) -> Read:
    """`Author_title.txt`, or `author/title.txt`, or any other format of a text; or a file that names its author itself."""
    return (read_text_file(path, folder) for path in written_files(folder))


def read_text_file(path: Path, folder: Path) -> Document | UnreadableSource:
    """One text of a folder."""
    inner = path.relative_to(folder)
    author, title = name_parts(inner)
    try:
        check_text("its name", inner.as_posix())
        found = read_file_text(path)
    except InputError as error:
        return UnreadableSource(str(path), str(error).removeprefix(f"'{path}': "))
    authors = (Author(author),) if author else found.authors
    if not authors:
        return UnreadableSource(str(path), "no author in its name: use Author_title.txt or author/title.txt")
    title = title if author else found.title or title
    return Document(text_name(path, folder), found.text, authors, title=title, source=folder.name)


def text_name(path: Path, folder: Path) -> str:
    """The id of a text: where it lies in its folder, without the ending."""
    inner = path.relative_to(folder)
    return inner.with_name(stem_of(inner)).as_posix()


def is_text_folder(path: Path) -> bool:
    """Does a folder hold texts, one a file, and no tables of documents?"""
    if not path.is_dir():
        return False
    names = [file.name for file in written_files(path)]
    tables = any(True for suffix in FILES for _ in path.rglob(f"*{suffix}"))
    return any(name.endswith(".txt") for name in names) or bool(names and not tables)


def name_parts(inner: Path) -> tuple[str, str]:
    """The author and the title that a file's name gives.

    >>> name_parts(Path("Eliot_Middle_march.txt")), name_parts(Path("eliot/middlemarch.txt"))
    (('Eliot', 'Middle march'), ('eliot', 'middlemarch'))
    """
    stem = stem_of(inner)
    if len(inner.parts) > 1:
        return inner.parts[0], stem.replace("_", " ")
    author, underscore, title = stem.partition("_")
    return (author.strip(), title.replace("_", " ")) if underscore else ("", stem)


def json_lines(path: Path) -> Read:
    """One document a line; `.gz` and `.zst` are unpacked on the way."""
    number = 0
    try:
        with unpack_file(path) as stream:
            for number, line in enumerate(bounded_lines(stream), 1):
                if line.strip():
                    yield from parse_row(line, f"{path}:{number}")
    except (EOFError, OSError, zlib.error) as error:
        yield damaged_file(path, f"line {number}", error)


def bounded_lines(stream: io.BufferedIOBase) -> Iterator[bytes]:
    """Lines, of which a giant is never held whole: what is read of it is enough to see that it is one."""
    while line := stream.readline(MAX_BYTES + 2):
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_BYTES)


def damaged_file(path: Path, after: str, error: Exception) -> UnreadableSource:
    """The rest of a file that cannot be read on."""
    return UnreadableSource(
        str(path), f"damaged after {after}: {next(iter(str(error).splitlines()), type(error).__name__)}"
    )


def unpack_file(path: Path) -> io.BufferedIOBase:
    if path.suffix == ".zst":
        return io.BufferedReader(pa.input_stream(str(path), compression="zstd"))  # pyright: ignore[reportArgumentType]
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def parse_row(line: bytes, where: str) -> Read:
    try:
        row = json.loads(decode(line))
        if not isinstance(row, dict):
            raise InputError("not a JSON object")
        yield document_from_row(row, where)
    except RecursionError:
        yield UnreadableSource(where, "not JSON: brackets are nested too deeply")
    except (InputError, ValueError) as error:
        yield UnreadableSource(where, f"not JSON: {error}" if not isinstance(error, InputError) else str(error))


def parquet(path: Path) -> Read:
    """Rows of a Parquet file."""
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        yield UnreadableSource(str(path), f"not Parquet: {str(error).splitlines()[0]}")
        return
    number = 0
    try:
        for batch in file.iter_batches(batch_size=500):
            yield from document_rows(batch, path, number)
            number += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        yield damaged_file(path, f"row {number}", error)


def arrow(path: Path) -> Read:
    """Rows of an Arrow stream, as `datasets.save_to_disk` writes them."""
    number = 0
    try:
        with pa.memory_map(str(path)) as source:
            for batch in pa.ipc.open_stream(source):
                yield from document_rows(batch, path, number)
                number += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        yield damaged_file(path, f"row {number}", error)


def document_rows(batch: pa.RecordBatch, path: Path, first: int) -> Read:
    for number, row in enumerate(batch.to_pylist(), first):
        try:
            yield document_from_row(row, f"{path}:{number}")
        except InputError as error:
            yield UnreadableSource(f"{path}:{number}", str(error))


def document_from_row(row: Mapping[str, Any], where: str) -> Document:
    """A row with the usual field names as a document; the error says which field is not what it should be."""
    text = first_of(row, "text", "body", "content", "abstract")
    if not isinstance(text, str):
        raise InputError("no field 'text'")
    plain = {name: text_of(row, name) for name in ("title", "url", "source", "container")}
    return Document(
        id=text_of(row, "id", "halid", "_id", "doc_id") or where,
        text=decode(text.encode("utf-8", "surrogatepass")),
        authors=authors_from(first_of(row, "authors", "author")),
        domains=texts_of("domains", first_of(row, "domains", "domain", "categories")),
        lang=text_of(row, "lang", "language").lower().partition("-")[0],
        year=year_from(first_of(row, "year")),
        licence=text_of(row, "licence", "license"),
        **plain,
    )


def text_of(row: Mapping[str, Any], *names: str) -> str:
    """A field as text: the first of these names that there is."""
    value = first_of(row, *names)
    if isinstance(value, Mapping | list | tuple):
        raise InputError(f"'{names[0]}' is {brief(value)}; give a text")
    return check_text(f"'{names[0]}'", str(value)) if value else ""


def texts_of(name: str, value: Any) -> tuple[str, ...]:
    """A field as texts, from one or a list."""
    if value is None:
        return ()
    if not isinstance(value, str | list | tuple):
        raise InputError(f"'{name}' is {brief(value)}; give a text or a list of texts")
    return tuple(check_text(f"'{name}'", str(each)) for each in ([value] if isinstance(value, str) else value))


def check_text(what: str, text: str) -> str:
    """A text that can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} is not UTF-8, or has half a character (a lone surrogate) in it") from None
    return text


def year_from(value: Any) -> int | None:
    """A year, as a number or as text; None where there is none, and for the 1 that HALvest writes for "unknown"."""
    given = int(value) if isinstance(value, float) and value.is_integer() else value
    digits = str(given) if isinstance(given, int | str) and not isinstance(given, bool) else ""
    if not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits.lstrip("0")) > 4:
        raise InputError(f"'year' is {brief(value)}; give one up to 9999, or none")
    return int(digits) if int(digits) > 1 else None


def brief(value: Any) -> str:
    """The beginning of what was given."""
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"


def first_of(row: Mapping[str, Any], *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def authors_from(value: Any) -> tuple[Author, ...]:
    """Authors from a name, a list of names, or a list of objects with `name` and perhaps `id`."""
    if value is None:
        return ()
    if isinstance(value, str | Mapping):
        value = [value]
    if not isinstance(value, list | tuple):
        raise InputError(f"'authors' is {brief(value)}; give a name, or a list of names or of objects with 'name'")
    return tuple(author(entry) for entry in value)


def author(entry: Any) -> Author:
    if isinstance(entry, str):
        return Author(check_text("a name", entry))
    if not isinstance(entry, Mapping):
        raise InputError(f"an author is {brief(entry)}; give a name, or an object with 'name'")
    number = first_of(entry, "id", "halauthorid")
    if isinstance(number, Mapping | list | tuple):
        raise InputError(f"the id of an author is {brief(number)}; give a text or a number")
    identified = check_text("the id of an author", str(number)) if number not in (None, "", "0", 0) else None
    return Author(text_of(entry, "name"), identified, texts_of("affiliations", entry.get("affiliations")))


def hub_dataset(folder: Path) -> Read:
    """A Hugging Face dataset: Parquet shards, JSON lines, or what `save_to_disk` left."""
    for suffix, reader in FILES.items():
        for path in sorted(folder.rglob(f"*{suffix}")):
            if not path.name.startswith("signals-"):  # numbers about the documents of a corpus of ours
                yield from read_with(reader, path)


def read_with(reader: Callable[[Path], Read], path: Path) -> Read:
    """A file, unless it is something that may never end."""
    try:
        check_regular(path)
    except InputError as error:
        yield UnreadableSource(str(path), str(error))
        return
    yield from reader(path)


FILES: dict[str, Callable[[Path], Read]] = {
    ".arrow": arrow,
    ".jsonl": json_lines,
    ".jsonl.gz": json_lines,
    ".jsonl.zst": json_lines,
    ".parquet": parquet,
}


def read_documents(source: str) -> Read:
    """The documents of a folder, a file, the built-in `anthology` or a simulated `synth:…` corpus."""
    if source == "anthology":
        yield from anthology()
    elif source == "synth" or source.startswith("synth:"):
        from idiograph.synth.synth import synth

        yield from synth(source)
    else:
        yield from choose_reader(Path(source))


def choose_reader(path: Path) -> Read:
    if not path.exists():
        raise InputError(f"there is no file or folder '{path}'")
    if path.is_dir():
        return text_folder(path) if is_text_folder(path) else hub_dataset(path)
    for suffix, reader in FILES.items():
        if path.name.endswith(suffix):
            return read_with(reader, path)
    raise InputError(f"'{path}': cannot tell what this is; give a folder of texts or one of {', '.join(FILES)}")


def read_all(sources: list[str]) -> Read:
    """Several sources, one after the other; an error names its source."""
    for source in sources:
        try:
            yield from read_documents(source)
        except OSError as error:
            raise InputError(f"'{source}' cannot be read: {error}") from error
