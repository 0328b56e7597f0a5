"""A corpus on disk: Parquet shards by language that any Hugging Face tool reads, and random access to every text."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from idiograph.corpus.card import write_card
from idiograph.corpus.language import identify
from idiograph.corpus.readers import Failure
from idiograph.errors import ArtifactError, InputError
from idiograph.store import Manifest, draft, read_manifest, seal
from idiograph.types import Author, Document

ROW_GROUP, SHARD = 256, 16_384  # documents
MAKE = "idiograph corpus TEXTS -o FOLDER"

AUTHOR = pa.struct([("name", pa.string()), ("id", pa.string()), ("affiliations", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("id", "title", "lang", "url", "licence", "source", "container", "text")]
    + [("year", pa.int32()), ("domains", pa.list_(pa.string())), ("authors", pa.list_(AUTHOR))]
)


@dataclass(frozen=True)
class Built:
    """What became of a corpus build."""

    documents: int
    languages: Mapping[str, int]
    dropped: Mapping[str, int]
    failures: tuple[Failure, ...]


class Shards:
    """One language's Parquet files, written a row group at a time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder, self.rows, self.paths = folder, [], []
        self.writer: pq.ParquetWriter | None = None
        self.held = 0

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if len(self.rows) == ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        if self.writer is None:
            self.paths.append(self.folder / f"train-{len(self.paths):05d}.parquet")
            self.writer = pq.ParquetWriter(self.paths[-1], SCHEMA, compression="zstd")
        self.writer.write_table(pa.Table.from_pylist(self.rows, SCHEMA))
        self.held += len(self.rows)
        self.rows = []
        if self.held >= SHARD:
            self.close()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer, self.held = None, 0

    def finish(self) -> None:
        """Close, and give the shards the names that the hub expects."""
        if self.rows:
            self.flush()
        self.close()
        for path in self.paths:
            path.rename(path.with_name(f"{path.stem}-of-{len(self.paths):05d}.parquet"))


def row(document: Document) -> dict[str, Any]:
    people = [{"name": a.name, "id": a.id, "affiliations": list(a.affiliations)} for a in document.authors]
    plain = {name: getattr(document, name) for name in SCHEMA.names if name not in ("authors", "domains")}
    return {**plain, "domains": list(document.domains), "authors": people}


def build(
    items: Iterable[Document | Failure],
    out: Path,
    *,
    recipe: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Built:
    """Write documents as a corpus. Items that cannot be used are counted by reason, and named in the result."""
    dropped: Counter[str] = Counter()
    failures: list[Failure] = []
    languages: Counter[str] = Counter()
    with draft(out, overwrite) as folder:
        shards: dict[str, Shards] = {}
        for item in admitted(items, dropped, failures):
            if item.lang not in shards:
                shards[item.lang] = Shards(folder / item.lang)
            shards[item.lang].add(row(item))
            languages[item.lang] += 1
            if progress:
                progress(languages.total())
        if not languages:
            raise InputError(nothing(failures))
        for shard in shards.values():
            shard.finish()
        write_card(folder, dict(languages))
        counts = {"documents": languages.total(), "languages": dict(languages)}
        seal(folder, Manifest("corpus", recipe or {}, inputs or {}, counts, dict(dropped)))
    return Built(languages.total(), dict(languages), dict(dropped), tuple(failures))


def admitted(items: Iterable[Document | Failure], dropped: Counter[str], failures: list[Failure]) -> Iterator[Document]:
    """The documents that have an author, words and an id of their own, with a language."""
    seen: set[str] = set()
    for item in items:
        if isinstance(item, Failure):
            dropped["unreadable"] += 1
            failures.append(item)
        elif reason := refusal(item, seen):
            dropped[reason] += 1
        else:
            seen.add(item.id)
            yield item if item.lang else replace(item, lang=identify(item.text)[0])


def refusal(document: Document, seen: set[str]) -> str | None:
    if not any(author.key for author in document.authors):
        return "no author"
    if document.id in seen:
        return "id given twice"
    return None if any(c.isalpha() for c in document.text[:10_000]) else "no words"


def nothing(failures: list[Failure]) -> str:
    if not failures:
        return "no document with an author was found; give Author_title.txt files, or JSON lines with 'authors'"
    first = failures[0]
    return f"nothing could be read; the first of {len(failures)} problems: '{first.where}': {first.reason}"


class Corpus:
    """A finished corpus. Metadata are in memory, texts on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder, "corpus", MAKE)
        self.paths = sorted(folder.glob("*/train-*.parquet"))

    def __len__(self) -> int:
        return int(self.manifest.counts["documents"])

    @cached_property
    def table(self) -> pl.DataFrame:
        """Everything but the texts, one row a document, in the order of the shards."""
        try:
            return pl.concat([pl.read_parquet(path).drop("text") for path in self.paths])
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ArtifactError(f"corpus '{self.folder}' is damaged ({error}); make it again: {MAKE}") from error

    def __iter__(self) -> Iterator[Document]:
        """Every document, in the order of `table`; a few hundred are in memory at a time."""
        for path in self.paths:
            for batch in pq.ParquetFile(path).iter_batches(batch_size=ROW_GROUP):
                yield from map(from_row, batch.to_pylist())

    def text(self, at: int) -> str:
        """The text of the document in row `at` of `table`."""
        return self.document(at).text

    def document(self, at: int) -> Document:
        path, group, row_at = self._locate(at)
        return from_row(read_group(path, group)[row_at])

    @cached_property
    def _groups(self) -> list[tuple[int, Path, int]]:
        """(first row, shard, row group) of every row group."""
        found, first = [], 0
        for path in self.paths:
            meta = pq.read_metadata(path)
            for group in range(meta.num_row_groups):
                found.append((first, path, group))
                first += meta.row_group(group).num_rows
        return found

    def _locate(self, at: int) -> tuple[Path, int, int]:
        from bisect import bisect_right

        first, path, group = self._groups[bisect_right(self._groups, at, key=lambda g: g[0]) - 1]
        return path, group, at - first


@lru_cache(maxsize=64)
def read_group(path: Path, group: int) -> list[dict[str, Any]]:
    return pq.ParquetFile(path).read_row_group(group).to_pylist()


def from_row(found: Mapping[str, Any]) -> Document:
    people = tuple(Author(a["name"], a["id"], tuple(a["affiliations"] or ())) for a in found["authors"])
    rest = {key: value for key, value in found.items() if key not in ("authors", "domains")}
    return Document(**rest, authors=people, domains=tuple(found["domains"]))
