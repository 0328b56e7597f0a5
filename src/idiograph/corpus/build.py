"""From what was read to what goes into a corpus: parse, clean, name the language, filter. Pure: one item in, one out.

A worker writes what it has prepared into a part, a file of its own, and says in a few lines what is in it: who has the
whole to look after never sees a text. `write_shard` makes shards of parts, on a worker, too.
"""

import csv
import io
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from idiograph.corpus.article import Article
from idiograph.corpus.clean import clean_text
from idiograph.corpus.duplicates import DedupEntry, WorkPrint, work_prints
from idiograph.corpus.filters import document_fault
from idiograph.corpus.formats import decode, written_files
from idiograph.corpus.jats import read_jats
from idiograph.corpus.readers import (
    UnreadableSource,
    check_regular,
    check_text,
    is_text_folder,
    read_documents,
    read_text_file,
    text_name,
)
from idiograph.corpus.tei import read_tei
from idiograph.errors import InputError
from idiograph.hal.metadata import MAX_AUTHORS
from idiograph.hal.records import KIND as RECORDS
from idiograph.hal.records import Record, RecordLookup, pdf_name
from idiograph.recipe import CorpusRecipe
from idiograph.store import find_stage, new_file
from idiograph.text.cells import FORMULA, disarm
from idiograph.text.language import identify
from idiograph.types import Author, Document
from idiograph.xml import check_size

TEI, JATS = (".tei.xml", ".tei"), (".nxml", ".jats.xml", ".jats")
PLAIN_XML = (".xml",)  # either, which is seen inside
SUFFIXES = (".grobid.tei.xml", *TEI, *JATS, *PLAIN_XML, ".txt")  # the longer before those that they end with
NO_LIST: Mapping[str, "ListedPaper"] = MappingProxyType({})
SNIFFED = 4096  # bytes at the beginning of a file that say which of the two it is
NO_AUTHOR = "no author"
SURE = 0.9  # of the detector, before it may contradict the depositor


@dataclass(frozen=True, slots=True)
class PaperSource:
    """A TEI or JATS file that is yet to be parsed, with the record that describes it, if there is one.

    `name` is where it lies in the folder that was given, without the ending: its id, where neither a record nor the file
    gives one.
    """

    path: Path
    record: Record | None = None
    name: str = ""
    listed: "ListedPaper | None" = None

    @property
    def place(self) -> str:
        """The name, be it given or not."""
        return self.name or bare_name(self.path.name)


@dataclass(frozen=True, slots=True)
class ListedPaper:
    """What somebody has written down about a paper whose file does not say who wrote it."""

    title: str
    authors: tuple[Author, ...]
    year: int | None = None
    lang: str = ""
    domains: tuple[str, ...] = ()
    licence: str = ""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A document that is not kept, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class PaperByItsOwnId:
    """A document under the id that its file gives it. Where another has that id, it goes by its file's name."""

    document: Document
    name: str


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text that somebody put into a folder as it is: filters that look for what extraction left of a paper are not for it."""

    document: Document

    @property
    def id(self) -> str:
        return self.document.id


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text of a folder that is yet to be read, which takes long for a PDF."""

    path: Path
    folder: Path

    @property
    def id(self) -> str:
        return text_name(self.path, self.folder)

    def read(self) -> WrittenText | UnreadableSource:
        found = read_text_file(self.path, self.folder)
        return WrittenText(found) if isinstance(found, Document) else found


AUTHOR = pa.struct([("name", pa.string()), ("id", pa.string()), ("affiliations", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("id", "title", "lang", "url", "licence", "source", "container", "text")]
    + [("year", pa.int32()), ("domains", pa.list_(pa.string())), ("authors", pa.list_(AUTHOR))]
)
ROW_GROUP = 256  # documents


@dataclass(frozen=True, slots=True)
class PartTask:
    """Items to prepare, and the file for what comes of them."""

    path: Path
    items: list["Raw"]


@dataclass(frozen=True, slots=True)
class ReadyDocument:
    """What is said of a document in a part: where it is, and what decides whether it stays. Not its text."""

    id: str
    row: int
    lang: str
    name: str = ""  # of its file, where the id is from inside it
    work: WorkPrint | None = None


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Which documents of which parts a shard is made of, and under which ids."""

    path: Path
    rows: list[tuple[Path, list[int]]]
    ids: list[str]


Raw = Document | UnreadableSource | PaperSource | WrittenText | TextFile
ReadRaw = Document | UnreadableSource | PaperSource | WrittenText
Prepared = Document | PaperByItsOwnId | UnreadableSource | Dropped
Line = ReadyDocument | UnreadableSource | Dropped  # what a worker says of an item


def paper_sources(sources: Iterable[str], listed: Mapping[str, ListedPaper] = NO_LIST) -> Iterator[Raw]:
    """What the sources hold. Folders of records, and a list by file names, describe the TEI and JATS files of the others."""
    sources = list(sources)
    record_folders = [source for source in sources if is_records(Path(source))]
    lookups = [RecordLookup(Path(source), lambda halid: Path(pdf_name(halid)).stem) for source in record_folders]
    for source in sources:
        if source not in record_folders:
            papers = paper_files(Path(source))
            first = next(papers, None)
            if first is None:
                yield from read_texts(source)
            else:
                for path in chain([first], papers):
                    place, record = bare_place(path, Path(source)), described_in(lookups, bare_name(path.name))
                    yield PaperSource(path, record, place, listed.get(place))


def read_texts(source: str) -> Iterator[Raw]:
    """The documents of a source that holds no XML; a folder of texts file by file, for workers to read."""
    if is_text_folder(Path(source)):
        return (TextFile(path, Path(source)) for path in written_files(Path(source)))
    return read_documents(source)


def described_in(lookups: Iterable[RecordLookup], key: str) -> Record | None:
    """What the last folder of records that knows a paper says of it."""
    return next((record for lookup in reversed(list(lookups)) if (record := lookup.get(key))), None)


def is_records(folder: Path) -> bool:
    """Is it a folder of records? Any folder of ours must be finished, and as it was written."""
    manifest = find_stage(folder)
    return manifest is not None and manifest.kind == RECORDS


def paper_files(source: Path) -> Iterator[Path]:
    """The TEI and JATS files of a source. Names that end in .xml alone count where there are neither others nor texts."""
    files = xml_files(source)
    first = next(files, None)
    if first is not None:
        return chain([first], files)
    return iter(()) if is_text_folder(source) else xml_files(source, PLAIN_XML)


def xml_files(path: Path, endings: tuple[str, ...] = (*TEI, *JATS)) -> Iterator[Path]:
    """The files with such an ending under a folder in the order of their names, or the one that was named."""
    if path.is_file() and path.name.endswith(endings):
        yield path
    for name in sorted(os.listdir(path)) if path.is_dir() else ():
        inner = path / name
        if name.endswith(endings) or (inner.is_dir() and not inner.is_symlink()):
            yield from xml_files(inner, endings)


def bare_name(name: str) -> str:
    """The name of a file without an ending that is known; other full stops belong to the name.

    >>> bare_name("1706.03762v5.tei.xml"), bare_name("2020.acl-main.207.grobid.tei.xml"), bare_name("jose.00090.jats.xml")
    ('1706.03762v5', '2020.acl-main.207', 'jose.00090')
    """
    ending = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(ending) or name


def bare_place(path: Path, source: Path) -> str:
    """Where a file lies in its source, without its ending: two of one name in two folders are two papers."""
    inner = path.name if path == source else path.relative_to(source).as_posix()
    return bare_name(inner)


def prepare_papers(work: tuple[list[Raw], CorpusRecipe]) -> list[Prepared]:
    """Each item ready for the corpus, or the reason why not."""
    items, recipe = work
    unfiltered = recipe.model_copy(update={"filters": False})
    prepared: list[Prepared] = []
    for given in items:
        item = given.read() if isinstance(given, TextFile) else given
        each = ready_paper(item, recipe)
        if isinstance(each, Document):
            each = place_paper(each, unfiltered if isinstance(item, WrittenText) else recipe)
        prepared.append(keep_file_name(each, item))
    return prepared


def keep_file_name(each: Document | UnreadableSource | Dropped, item: ReadRaw) -> Prepared:
    """A document whose id is from inside its file, with the name of the file beside it."""
    if isinstance(each, Document) and isinstance(item, PaperSource) and not item.record and each.id != item.place:
        return PaperByItsOwnId(each, item.place)
    return each


def prepare_part(task: PartTask, recipe: CorpusRecipe) -> list[Line]:
    """Write the documents that came of some items into a part, and return a line for each item."""
    prepared = prepare_papers((task.items, recipe))
    documents = [each for each in map(document_of, prepared) if each]
    hidden = task.path.with_name(f".{task.path.name}-{uuid4().hex}")  # whoever was killed here is no part
    with pa.ipc.new_file(str(hidden), SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(pa.Table.from_pylist(list(map(document_row, documents)), SCHEMA))
    hidden.replace(task.path)
    works = iter(work_prints(list(map(dedup_entry, documents))) if recipe.duplicates == "collapse" else [])
    rows = count()
    return [
        ReadyDocument(document.id, next(rows), document.lang, getattr(each, "name", ""), next(works, None))
        if (document := document_of(each))
        else each
        for each in prepared
    ]  # pyright: ignore[reportReturnType]


def document_of(prepared: Prepared) -> Document | None:
    if isinstance(prepared, PaperByItsOwnId):
        return prepared.document
    return prepared if isinstance(prepared, Document) else None


def free_id(line: ReadyDocument, taken: Container[str]) -> str:
    """Its own id, or the name of its file where a proceedings' one identifier stands in every paper."""
    return line.name if line.name and line.id in taken else line.id


def document_row(document: Document) -> dict[str, Any]:
    people = [{"name": a.name, "id": a.id, "affiliations": list(a.affiliations)} for a in document.authors]
    plain = {name: getattr(document, name) for name in SCHEMA.names if name not in ("authors", "domains")}
    return {**plain, "domains": list(document.domains), "authors": people}


def write_shard(task: ShardTask) -> int:
    """Make a shard of rows of parts, a row group at a time; returns how many documents are in it."""
    task.path.parent.mkdir(exist_ok=True)
    hidden = task.path.with_name(f".{task.path.name}-{uuid4().hex}")
    with new_file(task.path, hidden) as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        done = 0
        for table in tables_of_size(part_tables(task.rows), ROW_GROUP):
            ids = pa.array(task.ids[done : done + len(table)], pa.string())
            writer.write_table(table.set_column(0, "id", ids))
            done += len(table)
    return done


def part_tables(rows: Iterable[tuple[Path, list[int]]]) -> Iterator[pa.Table]:
    for path, wanted in rows:
        with pa.OSFile(str(path)) as file:
            yield pa.ipc.open_file(file).read_all().take(wanted)


def tables_of_size(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """The rows of all tables in tables of one size, but for the last."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        while sum(map(len, waiting)) >= size:
            joined = pa.concat_tables(waiting)
            yield joined.slice(0, size).combine_chunks()
            waiting = [joined.slice(size)]
    rest = pa.concat_tables(waiting)
    if len(rest):
        yield rest.combine_chunks()


def ready_paper(item: ReadRaw, recipe: CorpusRecipe) -> Document | UnreadableSource | Dropped:
    """One item parsed and cleaned."""
    if isinstance(item, UnreadableSource):
        return item
    try:
        document = check_document(parse_raw(item, recipe))
        cleaned = replace(document, text=clean_text(document.text, recipe.citations))
    except (InputError, OSError) as error:
        return UnreadableSource(str(item.path) if isinstance(item, PaperSource) else item.id, str(error))
    except RecursionError:
        return UnreadableSource(str(item.path) if isinstance(item, PaperSource) else item.id, "nested too deeply")
    reason = unusable(cleaned)
    return Dropped(cleaned.id, reason) if reason else cleaned


def parse_raw(item: Document | PaperSource | WrittenText, recipe: CorpusRecipe) -> Document:
    if isinstance(item, PaperSource):
        return parse_paper(item, recipe)
    return item.document if isinstance(item, WrittenText) else item


def parse_paper(paper: PaperSource, recipe: CorpusRecipe) -> Document:
    article = parse_article(paper, recipe)
    text = article.text(abstract=recipe.abstract)
    if not text.strip():
        raise InputError("no running text in it")
    return describe_paper(article, text, paper)


def parse_article(paper: PaperSource, recipe: CorpusRecipe) -> Article:
    """The article in a file, whichever of the two it is."""
    check_regular(paper.path)
    check_size(paper.path.stat().st_size)
    data = paper.path.read_bytes()
    is_tei = paper.path.name.endswith(TEI) or (not paper.path.name.endswith(JATS) and b"<TEI" in data[:SNIFFED])
    return (read_tei if is_tei else read_jats)(data, recipe.citations, recipe.formulae)


def describe_paper(article: Article, text: str, paper: PaperSource) -> Document:
    """An article with what the record says; without a record, with what the file says of itself."""
    record = paper.record
    if paper.listed:
        return describe_listed(article, text, paper.place, paper.listed)
    if record is None:
        return Document(
            article.id or paper.place,
            text,
            article.authors,
            (),
            article.lang,
            article.title,
            article.year,
            licence=article.licence,
        )
    return Document(
        id=record.halid,
        text=text,
        authors=tuple(person.author for person in record.authors),
        domains=record.domain,
        lang=record.lang,
        title=record.title,
        year=record.year,
        url=record.url,
        licence=record.licence,
        source="HAL",
    )


def describe_listed(article: Article, text: str, place: str, listed: ListedPaper) -> Document:
    """An article with what the list says of it; what the list leaves open is as in the file."""
    return Document(
        id=place,
        text=text,
        authors=listed.authors or article.authors,
        domains=listed.domains,
        lang=listed.lang or article.lang,
        title=listed.title or article.title,
        year=listed.year or article.year,
        licence=listed.licence or article.licence,
    )


COLUMNS = ("id", "title", "authors", "suggested", "year", "lang", "domain", "licence")
SEPARATOR = ";"  # between the authors, or the domains, of one paper


def write_paper_list(sources: Iterable[str], path: Path) -> int:
    """Write a list of the papers in these folders to be filled in, and return how many they are.

    Authors that a file names are there already; those in the properties of a PDF stand beside, for a person to judge.
    """
    papers = [item for item in paper_sources(sources) if isinstance(item, PaperSource)]
    with path.open("x", encoding="utf-8-sig", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        rows.writerows(map(disarm, paper_row(paper)) for paper in papers)
    return len(papers)


def paper_row(paper: PaperSource) -> tuple[str, ...]:
    """What a file says of itself; nothing where it cannot be read."""
    try:
        article = parse_article(paper, CorpusRecipe())
    except (InputError, OSError):
        article = Article()
    authors = f"{SEPARATOR} ".join(author.name for author in article.authors)
    year = str(article.year or "")
    return (paper.place, article.title, authors, article.suggested, year, article.lang, "", article.licence)


def read_paper_list(path: Path) -> dict[str, ListedPaper]:
    """A list of papers by their files' names; it needs the columns `id` and `authors`."""
    raw = path.read_bytes()
    text = decode(raw)
    first = text.split("\n", 1)[0]
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=";" if first.count(";") > first.count(",") else ",")
    names = {(name or "").strip().lower() for name in rows.fieldnames or ()}
    if not {"id", "authors"} <= names:
        raise InputError(f"'{path}' has the columns {', '.join(sorted(names))}; it needs id and authors")
    listed = {}
    for row in rows:
        cells = {(name or "").strip().lower(): arm_cell(str(cell or "")) for name, cell in row.items()}
        listed[cells["id"]] = listed_paper(cells)
    return listed


def arm_cell(text: str) -> str:
    bare = text.strip()
    return bare[1:] if bare.startswith("'") and bare[1:].startswith(FORMULA) else bare


def listed_paper(cells: Mapping[str, str]) -> ListedPaper:
    names, domains = (
        [p.strip() for p in cells.get(k, "").split(SEPARATOR) if p.strip()] for k in ("authors", "domain")
    )
    year = cells.get("year", "")
    return ListedPaper(
        cells.get("title", ""),
        tuple(map(Author, names)),
        int(year) if re.fullmatch(r"[12]\d{3}", year) else None,
        cells.get("lang", "").lower(),
        tuple(domains),
        cells.get("licence", ""),
    )


def check_document(document: Document) -> Document:
    """A document whose texts and numbers a file of ours can hold, whoever read it."""
    texts = [document.id, document.title, document.url, document.licence, document.container, *document.domains]
    texts += [text for a in document.authors for text in (a.name, a.id or "", *a.affiliations)]
    for text in texts:
        check_text("its name or what is known of it", text)
    if document.year is not None and not 0 < document.year < 10_000:
        return replace(document, year=None)
    return document


def unusable(document: Document) -> str | None:
    if not any(author.key for author in document.authors):
        return NO_AUTHOR
    if len(document.authors) > MAX_AUTHORS:
        return f"more than {MAX_AUTHORS} authors"
    return None if any(c.isalpha() for c in document.text[:10_000]) else "no words"


def place_paper(document: Document, recipe: CorpusRecipe) -> Document | Dropped:
    """The document under its language, if depositor, detector and filters have nothing against it."""
    detected, sure = identify(document.text)
    declared = language_code(document.lang)
    if recipe.language == "agree" and declared and declared != detected and sure > SURE:
        return Dropped(document.id, "language is not the one that was declared")
    lang = detected if recipe.language == "detector" or not declared else declared
    if recipe.filters and (reason := document_fault(document.text, lang)):
        return Dropped(document.id, reason)
    return replace(document, lang=lang)


def language_code(declared: str) -> str:
    """The language that a source declares; empty if that is no code, since it will be the name of a folder.

    >>> language_code("en-GB"), language_code("../../etc")
    ('en', '')
    """
    bare = declared.lower().partition("-")[0]
    return bare if re.fullmatch(r"[a-z]{2,3}", bare) else ""


def dedup_entry(document: Document) -> DedupEntry:
    return DedupEntry(document.id, document.title, frozenset(a.key for a in document.authors), document.text)
