"""From what was read to what goes into a corpus: parse, clean, name the language, filter. Pure: one item in, one out.

Near-duplicate works are found in a second pass over what was kept, by `without_copies`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from idiograph.corpus.article import Article
from idiograph.corpus.clean import clean_text
from idiograph.corpus.duplicates import near_duplicates
from idiograph.corpus.filters import document_fault
from idiograph.corpus.jats import read_jats
from idiograph.corpus.readers import UnreadableSource, is_text_folder, read_documents
from idiograph.corpus.tei import read_tei
from idiograph.errors import InputError
from idiograph.hal.metadata import MAX_AUTHORS
from idiograph.hal.records import KIND as RECORDS
from idiograph.hal.records import Record, RecordLookup, pdf_name
from idiograph.recipe import CorpusRecipe
from idiograph.store import MANIFEST
from idiograph.text.language import identify
from idiograph.types import Document
from idiograph.xml import check_size

TEI, JATS = (".tei.xml",), (".nxml", ".jats.xml", ".jats")
SURE = 0.9  # of the detector, before it may contradict the depositor


@dataclass(frozen=True, slots=True)
class PaperSource:
    """A TEI or JATS file that is yet to be parsed, with the record that describes it, if there is one."""

    path: Path
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A document that is not kept, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text that somebody put into a folder as it is: filters that look for what extraction left of a paper are not for it."""

    document: Document

    @property
    def id(self) -> str:
        return self.document.id


Raw = Document | UnreadableSource | PaperSource | WrittenText


def paper_sources(sources: Iterable[str]) -> Iterator[Raw]:
    """What the sources hold. Folders of records describe the TEI and JATS files of the others."""
    sources = list(sources)
    record_folders = [source for source in sources if is_records(Path(source))]
    lookups = [RecordLookup(Path(source), lambda halid: Path(pdf_name(halid)).stem) for source in record_folders]
    for source in sources:
        if source not in record_folders:
            papers = xml_files(Path(source))
            first = next(papers, None)
            if first is None:
                yield from read_texts(source)
            else:
                yield from (PaperSource(path, described_in(lookups, stem(path))) for path in chain([first], papers))


def read_texts(source: str) -> Iterator[Raw]:
    """The documents of a source that holds no XML; those of a folder of .txt files as written texts."""
    plain = is_text_folder(Path(source))
    for each in read_documents(source):
        yield WrittenText(each) if plain and isinstance(each, Document) else each


def described_in(lookups: Iterable[RecordLookup], key: str) -> Record | None:
    """What the last folder of records that knows a paper says of it."""
    return next((record for lookup in reversed(list(lookups)) if (record := lookup.get(key))), None)


def is_records(folder: Path) -> bool:
    manifest = folder / MANIFEST
    return manifest.is_file() and f'"kind": "{RECORDS}"' in manifest.read_text(encoding="utf-8")


def xml_files(path: Path) -> Iterator[Path]:
    """The TEI and JATS files under a folder in the order of their names, or the one that was named."""
    if path.is_file() and path.name.endswith((*TEI, *JATS)):
        yield path
    for name in sorted(os.listdir(path)) if path.is_dir() else ():
        inner = path / name
        if name.endswith((*TEI, *JATS)) or (inner.is_dir() and not inner.is_symlink()):
            yield from xml_files(inner)


def stem(path: Path) -> str:
    return path.name.partition(".")[0]


def prepare_papers(work: tuple[list[Raw], CorpusRecipe]) -> list[Document | UnreadableSource | Dropped]:
    """Each item ready for the corpus, or the reason why not."""
    items, recipe = work
    unfiltered = recipe.model_copy(update={"filters": False})
    readied = [(ready_paper(item, recipe), unfiltered if isinstance(item, WrittenText) else recipe) for item in items]
    return [place_paper(each, how) if isinstance(each, Document) else each for each, how in readied]


def ready_paper(item: Raw, recipe: CorpusRecipe) -> Document | UnreadableSource | Dropped:
    """One item parsed and cleaned."""
    if isinstance(item, UnreadableSource):
        return item
    try:
        document = parse_raw(item, recipe)
        cleaned = replace(document, text=clean_text(document.text, recipe.citations))
    except (InputError, OSError) as error:
        return UnreadableSource(str(item.path) if isinstance(item, PaperSource) else item.id, str(error))
    reason = unusable(cleaned)
    return Dropped(cleaned.id, reason) if reason else cleaned


def parse_raw(item: Document | PaperSource | WrittenText, recipe: CorpusRecipe) -> Document:
    if isinstance(item, PaperSource):
        return parse_paper(item, recipe)
    return item.document if isinstance(item, WrittenText) else item


def parse_paper(paper: PaperSource, recipe: CorpusRecipe) -> Document:
    check_size(paper.path.stat().st_size)
    reader = read_tei if paper.path.name.endswith(TEI) else read_jats
    article = reader(paper.path.read_bytes(), recipe.citations, recipe.formulae)
    text = article.text(abstract=recipe.abstract)
    if not text.strip():
        raise InputError("no running text in it")
    return describe_paper(article, text, paper)


def describe_paper(article: Article, text: str, paper: PaperSource) -> Document:
    """An article with what the record says; without a record, with what the file says of itself."""
    record = paper.record
    if record is None:
        return Document(
            stem(paper.path),
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


def unusable(document: Document) -> str | None:
    if not any(author.key for author in document.authors):
        return "no author"
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


def copies_of_documents(documents: Iterable[Document]) -> Mapping[str, str]:
    """The ids of near-duplicates, each with the id of the document that stands for it."""
    entries = ((d.id, d.title, [a.key for a in d.authors], d.text) for d in documents)
    return {one: other for one, other in near_duplicates(entries).items() if one != other}
