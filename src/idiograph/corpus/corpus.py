"""A corpus on disk: Parquet shards by language that any Hugging Face tool reads, and random access to every text."""

import json
import os
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import chain, groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from idiograph.corpus.build import (
    NO_AUTHOR,
    ROW_GROUP,
    SCHEMA,
    Dropped,
    Line,
    PaperSource,
    PartTask,
    Raw,
    ReadyDocument,
    ShardTask,
    document_row,
    free_id,
    prepare_part,
    write_shard,
)
from idiograph.corpus.card import write_card, write_croissant
from idiograph.corpus.duplicates import Signatures, WorkTable
from idiograph.corpus.readers import UnreadableSource
from idiograph.corpus.signals import write_signals
from idiograph.errors import ArtifactError, InputError, ServiceError
from idiograph.html import notebook_table
from idiograph.identity import Byline, Identities
from idiograph.recipe import CorpusRecipe
from idiograph.runner import Failure as Lost
from idiograph.runner import Workers, shard
from idiograph.seeded import hash_text
from idiograph.store import Manifest, draft, find_manifest, read_manifest, seal
from idiograph.text.cells import PeopleCsv
from idiograph.text.language import identify
from idiograph.types import Author, Document

SHARD, BATCH = 16_384, 64  # documents
PARTS = ".parts-"  # how the name of the folder begins in which workers write; it goes with the build
LEFT_OUT = "left_out.csv"  # not JSON: who reads the folder as texts would take its lines for documents
COPY = "near-duplicate of another document"
MAKE = "idiograph corpus TEXTS -o FOLDER"
ABOUT = "Documents and their authors, one configuration a language. Each document keeps its own licence."


@dataclass(frozen=True)
class Built:
    """What became of a corpus build."""

    documents: int
    languages: Mapping[str, int]
    dropped: Mapping[str, int]
    failures: tuple[UnreadableSource, ...]


@dataclass
class KeptDocuments:
    """The documents that can be used, in the order given: where each lies in the parts, and what language it is in."""

    parts: list[Path] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    part: "array[int]" = field(default_factory=lambda: array("I"))
    row: "array[int]" = field(default_factory=lambda: array("I"))
    numbers: "dict[str, array[int]]" = field(default_factory=dict)  # those of each language

    def add(self, identity: str, line: ReadyDocument) -> None:
        self.numbers.setdefault(line.lang, array("Q")).append(len(self.ids))
        self.ids.append(identity)
        self.part.append(len(self.parts) - 1)
        self.row.append(line.row)

    def without(self, copies: Container[str]) -> None:
        for lang, numbers in self.numbers.items():
            self.numbers[lang] = array("Q", (at for at in numbers if self.ids[at] not in copies))
        self.numbers = {lang: numbers for lang, numbers in self.numbers.items() if numbers}

    def shards(self, folder: Path) -> Iterator[ShardTask]:
        """The shards of all languages, under the names that the hub expects."""
        for lang, numbers in self.numbers.items():
            of = -(-len(numbers) // SHARD)
            for at in range(of):
                path = folder / lang / f"train-{at:05d}-of-{of:05d}.parquet"
                yield self._shard(path, numbers[at * SHARD : (at + 1) * SHARD])

    def _shard(self, path: Path, numbers: "array[int]") -> ShardTask:
        by_part = groupby(numbers, key=self.part.__getitem__)
        rows = [(self.parts[part], [self.row[at] for at in each]) for part, each in by_part]
        return ShardTask(path, rows, [self.ids[at] for at in numbers])


def build_corpus(
    items: Iterable[Raw],
    out: Path,
    recipe: CorpusRecipe | None = None,
    *,
    inputs: Mapping[str, str] | None = None,
    overwrite: bool = False,
    part: str = "1/1",
    workers: Workers | None = None,
) -> Built:
    """Write part `i/n` of the documents as a corpus. Items that cannot be used are counted by reason, and named in the result."""
    recipe, workers = recipe or CorpusRecipe(), workers or Workers()
    with draft(out, overwrite) as folder, name_folder_in_errors(out), open_left_out(folder / LEFT_OUT) as file:
        notes = Notes(PeopleCsv(file), Counter(), [])
        notes.ledger.row(["id", "reason", "detail"])
        with TemporaryDirectory(prefix=PARTS, dir=folder) as room:
            kept = keep_documents(shard(items, part, shard_key), recipe, workers, notes, Path(room).resolve())
            languages = write_shards(kept, folder.resolve(), workers)
        file.close()
        if recipe.signals:
            write_signals(sorted(folder.glob("*/train-*.parquet")), workers, recipe)
        write_card(folder, dict(languages))
        write_croissant(folder, {lang: {"train": n} for lang, n in sorted(languages.items())}, ABOUT, "corpus", SCHEMA)
        counts = {"documents": languages.total(), "languages": dict(sorted(languages.items()))}
        dropped = dict(sorted(notes.dropped.items()))
        seal(folder, Manifest("corpus", recipe.model_dump(), inputs or {}, counts, dropped))
    return Built(languages.total(), counts["languages"], dropped, tuple(notes.failures))


def open_left_out(path: Path) -> TextIO:
    """A text file for whatever a source may call its documents."""
    return path.open("w", newline="", encoding="utf-8", errors="backslashreplace")


@contextmanager
def name_folder_in_errors(out: Path) -> Iterator[None]:
    """Say which folder could not be written; nothing of it is left."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ArtifactError(f"cannot write '{out}': {reason}; mend that and run the same command again") from error


def keep_documents(
    items: Iterable[Raw], recipe: CorpusRecipe, workers: Workers, notes: "Notes", room: Path
) -> KeptDocuments:
    """The documents that can be used, each id and each work once, in parts that the workers have written."""
    kept, seen, works = KeptDocuments(), set[str](), WorkTable(Signatures(room))
    for path, lines in prepared_parts(items, recipe, workers, room):
        kept.parts.append(path)
        for line in lines:
            notes.count += 1
            if not isinstance(line, ReadyDocument):
                notes.add(line)
            elif (identity := free_id(line, seen)) in seen:
                notes.drop(identity, "id given twice")
            else:
                seen.add(identity)
                kept.add(identity, line)
                if line.work:
                    works.add(identity, line.work)
        workers.tell(notes.count, None, "reading")
    if not kept.ids:
        raise InputError(nothing_left(notes.failures, notes.dropped))
    copies = works.copies()
    for copy, other in sorted(copies.items()):
        notes.drop(copy, COPY, other)
    kept.without(copies)
    return kept


def write_shards(kept: KeptDocuments, folder: Path, workers: Workers) -> Counter[str]:
    """Let workers make shards of the parts; returns how many documents there are of each language."""
    languages: Counter[str] = Counter({lang: len(numbers) for lang, numbers in kept.numbers.items()})
    done = 0
    for task, count in zip(kept.shards(folder), workers.map(write_shard, kept.shards(folder)), strict=True):
        if isinstance(count, Lost):
            raise ServiceError(f"{task.path.name}: {count.reason} ({count.detail}); run it again")
        done += count
        workers.tell(done, languages.total(), "writing")
    return languages


def prepared_parts(
    items: Iterable[Raw], recipe: CorpusRecipe, workers: Workers, room: Path
) -> Iterator[tuple[Path, list[Line]]]:
    """The parts that workers have written, in the order of the items, and what is in each."""
    tasks = (PartTask(room / f"{at:08d}.arrow", batch) for at, batch in enumerate(cut_batches(items, BATCH)))
    work = partial(prepare_part, recipe=recipe)
    for at, lines in enumerate(workers.map(work, tasks)):
        if isinstance(lines, Lost):
            yield from one_by_one(lines, work, workers)
        else:
            yield room / f"{at:08d}.arrow", lines


def one_by_one(
    lost: Lost, work: Callable[[PartTask], list[Line]], workers: Workers
) -> Iterator[tuple[Path, list[Line]]]:
    """The items of a batch that killed its worker, so that only the guilty one is lost."""
    path, items = lost.item.path, lost.item.items
    alone = [PartTask(path.with_name(f"{path.stem}-{at:02d}.arrow"), [item]) for at, item in enumerate(items)]
    for task, lines in zip(alone, workers.map(work, alone), strict=True):
        failed = isinstance(lines, Lost)
        yield task.path, [UnreadableSource(shard_key(task.items[0]), lines.reason)] if failed else lines


def shard_key(item: Raw) -> str:
    """What decides which shard an item is in."""
    if isinstance(item, PaperSource):
        return item.path.name
    return item.where if isinstance(item, UnreadableSource) else item.id


def cut_batches(items: Iterable[Raw], size: int) -> Iterator[list[Raw]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


@dataclass
class Notes:
    """What is left out on the way, and why."""

    ledger: PeopleCsv
    dropped: Counter[str]
    failures: list[UnreadableSource]
    count: int = 0

    def add(self, result: UnreadableSource | Dropped) -> None:
        if isinstance(result, UnreadableSource):
            self.failures.append(result)
            self.drop(Path(result.where).name, "unreadable", result.reason)  # whichever folder it lies in
        else:
            self.drop(result.where, result.reason)

    def drop(self, where: str, reason: str, detail: str = "") -> None:
        """Count a document that is left out, and enter it in the list."""
        self.dropped[reason] += 1
        self.ledger.row([where, reason, detail])


def store_documents(folder: Path) -> Iterator[Document]:
    """The documents of shards that are on disk."""
    for path in sorted(folder.glob("*/train-*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(batch_size=ROW_GROUP):
            yield from map(document_of_row, batch.to_pylist())


def nothing_left(failures: list[UnreadableSource], dropped: Mapping[str, int]) -> str:
    """Why there is no document, and what to type next."""
    if dropped.get(NO_AUTHOR):
        hint = "write down who wrote them: --authors authors.csv makes a list to fill in, and then reads it"
        return f"{dropped[NO_AUTHOR]} documents do not say who wrote them; {hint}"
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

    @classmethod
    def read(cls, source: str | Path) -> "Corpus | TextLibrary":
        """A corpus folder as it is, or texts of known writers that are no corpus yet: read into memory.

        A folder of texts (txt, docx, odt, epub, html, pdf, tei) named `Author_title` or `author/title`; JSON lines
        (`.jsonl`, `.jsonl.gz`, `.jsonl.zst`), Parquet; `anthology` for the built-in essays. A text that cannot be read is
        an error that names it.
        """
        found = read_library(str(source))
        if isinstance(found, Corpus):
            return found
        library = TextLibrary(tuple(map(name_language, found)), str(source))
        if not library.documents:
            raise InputError(f"there is no text in '{source}'; give files named Author_title.txt, or author/title.txt")
        return library

    @property
    def fingerprint(self) -> str:
        return self.manifest.fingerprint

    def __str__(self) -> str:
        languages = ", ".join(f"{lang} {count}" for lang, count in self.manifest.counts["languages"].items())
        return f"corpus '{self.folder}': {len(self)} documents ({languages})"

    def __len__(self) -> int:
        return int(self.manifest.counts["documents"])

    @cached_property
    def table(self) -> pa.Table:
        """Everything but the texts, one row a document, in the order of the shards."""
        columns = [name for name in SCHEMA.names if name != "text"]
        try:
            return pa.concat_tables([pq.ParquetFile(path).read(columns=columns) for path in self.paths])
        except (OSError, pa.ArrowException) as error:
            raise ArtifactError(f"corpus '{self.folder}' is damaged ({error}); make it again: {MAKE}") from error

    def __iter__(self) -> Iterator[Document]:
        """Every document, in the order of `table`; a few hundred are in memory at a time."""
        return map(self.identities.identify, store_documents(self.folder))

    @cached_property
    def identities(self) -> Identities:
        """Who is the same person under different ids, or with and without one."""
        return Identities.of(chain.from_iterable(map(read_bylines, self.paths)))

    def text(self, at: int) -> str:
        """The text of the document in row `at` of `table`."""
        return self.document(at).text

    def document(self, at: int) -> Document:
        path, group, row_at = self._locate(at)
        return self.identities.identify(document_of_row(read_group(path, group)[row_at]))

    @cached_property
    def _groups(self) -> list[tuple[int, Path, int]]:
        """(first row, shard, row group) of every row group."""
        groups, first = [], 0
        for path in self.paths:
            meta = pq.read_metadata(path)
            for group in range(meta.num_row_groups):
                groups.append((first, path, group))
                first += meta.row_group(group).num_rows
        return groups

    def _locate(self, at: int) -> tuple[Path, int, int]:
        first, path, group = self._groups[bisect_right(self._groups, at, key=lambda g: g[0]) - 1]
        return path, group, at - first


def read_bylines(path: Path) -> list[Byline]:
    """The authors of each document of a shard, if any of them has an id."""
    columns = ["authors.list.element.name", "authors.list.element.id"]
    authors = pq.ParquetFile(path).read(columns=columns).column("authors")
    numbers = [chunk.flatten().field("id") for chunk in authors.chunks]
    return authors.to_pylist() if any(part.null_count < len(part) for part in numbers) else []


@lru_cache(maxsize=64)
def read_group(path: Path, group: int) -> list[dict[str, Any]]:
    return pq.ParquetFile(path).read_row_group(group).to_pylist()


def document_of_row(row: Mapping[str, Any]) -> Document:
    people = tuple(Author(a["name"], a["id"], tuple(a["affiliations"] or ())) for a in row["authors"])
    rest = {key: value for key, value in row.items() if key not in ("authors", "domains")}
    return Document(**rest, authors=people, domains=tuple(row["domains"]))


@dataclass(frozen=True)
class TextLibrary:
    """Texts of known writers in memory, as `Corpus.read` gives them."""

    documents: tuple[Document, ...]
    source: str = ""

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    @property
    def fingerprint(self) -> str:
        """Of the texts and who wrote them."""
        rows = "\n".join(json.dumps(document_row(document), sort_keys=True) for document in self.documents)
        return f"{hash_text(rows):016x}"

    @property
    def authors(self) -> dict[str, int]:
        """How many texts each author, or set of authors, has; the most first."""
        names = Counter(" & ".join(author.name for author in document.authors) for document in self.documents)
        return dict(sorted(names.items(), key=lambda each: (-each[1], each[0])))

    @property
    def languages(self) -> dict[str, int]:
        """How many texts are in each language, the most first."""
        return dict(Counter(document.lang for document in self.documents).most_common())

    def to_json(self) -> dict[str, Any]:
        """What is in it, without the texts."""
        about = {"source": self.source, "texts": len(self), "authors": self.authors, "languages": self.languages}
        return {**about, "documents": [{**document_row(each), "text": None} for each in self.documents]}

    def to_frame(self) -> pa.Table:
        """A row a document, with its text, in the columns of a corpus."""
        return pa.Table.from_pylist([document_row(document) for document in self.documents], SCHEMA)

    def __str__(self) -> str:
        languages = ", ".join(f"{lang} {count}" for lang, count in self.languages.items())
        most = ", ".join(f"{name} {count}" for name, count in islice(self.authors.items(), 5))
        more = f" and {len(self.authors) - 5} more" if len(self.authors) > 5 else ""
        return f"{self.source}: {len(self)} texts ({languages}) by {len(self.authors)} authors: {most}{more}"

    def _repr_html_(self) -> str:
        return notebook_table(str(self), ("author", "texts"), list(self.authors.items()))


def name_language(document: Document) -> Document:
    """A document that says which language it is in."""
    return document if document.lang else replace(document, lang=identify(document.text)[0])


def read_library(source: str | Path | Iterable[Document]) -> Iterable[Document]:
    """The documents of a corpus folder, or of texts that are not a corpus yet; a text that cannot be read is an error.

    Documents that are in memory already are given back as they are.
    """
    from idiograph.corpus.readers import read_documents

    if not isinstance(source, str | Path):
        return source
    if find_manifest(Path(source)):
        return Corpus(Path(source))
    return (whole_document(item) for item in read_documents(str(source)))


def whole_document(item: Raw) -> Document:
    if isinstance(item, UnreadableSource):
        raise InputError(f"'{item.where}': {item.reason}; mend or remove it, or make a corpus without it: {MAKE}")
    if not isinstance(item, Document):
        raise InputError(f"'{getattr(item, 'where', 'a text')}' cannot be compared as it is; make a corpus: {MAKE}")
    return item
