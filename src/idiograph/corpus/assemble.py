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
from idiograph.corpus.clean import clean
from idiograph.corpus.dedup import near_duplicates
from idiograph.corpus.fetch import file_name
from idiograph.corpus.filters import document_fault
from idiograph.corpus.hal import MAX_AUTHORS
from idiograph.corpus.jats import read_jats
from idiograph.corpus.language import identify_many
from idiograph.corpus.markup import check_size
from idiograph.corpus.readers import Failure, read
from idiograph.corpus.records import KIND as RECORDS
from idiograph.corpus.records import Drawer, Record
from idiograph.corpus.tei import read_tei
from idiograph.errors import InputError
from idiograph.recipe import CorpusRecipe
from idiograph.store import MANIFEST
from idiograph.types import Document

TEI, JATS = (".tei.xml",), (".nxml", ".jats.xml", ".jats")
SURE = 0.9  # of the detector, before it may contradict the depositor


@dataclass(frozen=True, slots=True)
class Paper:
    """A TEI or JATS file that is yet to be parsed, with the record that describes it, if there is one."""

    path: Path
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A document that is not kept, and why."""

    where: str
    reason: str


Raw = Document | Failure | Paper


def sources(given: Iterable[str]) -> Iterator[Raw]:
    """What the sources hold. Folders of records describe the TEI and JATS files of the others."""
    given = list(given)
    known = [source for source in given if is_records(Path(source))]
    drawers = [Drawer(Path(source), lambda halid: Path(file_name(halid)).stem) for source in known]
    for source in given:
        if source not in known:
            papers = xml_files(Path(source))
            first = next(papers, None)
            if first is None:
                yield from read(source)
            else:
                yield from (Paper(path, described_in(drawers, stem(path))) for path in chain([first], papers))


def described_in(drawers: Iterable[Drawer], key: str) -> Record | None:
    """What the last folder of records that knows a paper says of it."""
    return next((record for drawer in reversed(list(drawers)) if (record := drawer.get(key))), None)


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


def prepare(work: tuple[list[Raw], CorpusRecipe]) -> list[Document | Failure | Dropped]:
    """Each item ready for the corpus, or the reason why not. Languages are found together: that is several times faster."""
    items, recipe = work
    readied = [ready(item, recipe) for item in items]
    found = identify_many(each.text for each in readied if isinstance(each, Document))
    return [placed(each, next(found), recipe) if isinstance(each, Document) else each for each in readied]


def ready(item: Raw, recipe: CorpusRecipe) -> Document | Failure | Dropped:
    """One item parsed and cleaned."""
    if isinstance(item, Failure):
        return item
    try:
        document = parsed(item, recipe) if isinstance(item, Paper) else item
        cleaned = replace(document, text=clean(document.text, recipe.citations))
    except (InputError, OSError) as error:
        return Failure(str(item.path) if isinstance(item, Paper) else item.id, str(error))
    reason = unusable(cleaned)
    return Dropped(cleaned.id, reason) if reason else cleaned


def parsed(paper: Paper, recipe: CorpusRecipe) -> Document:
    check_size(paper.path.stat().st_size)
    reader = read_tei if paper.path.name.endswith(TEI) else read_jats
    article = reader(paper.path.read_bytes(), recipe.citations, recipe.formulae)
    text = article.text(abstract=recipe.abstract)
    if not text.strip():
        raise InputError("no running text in it")
    return described(article, text, paper)


def described(article: Article, text: str, paper: Paper) -> Document:
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


def placed(document: Document, detected: tuple[str, float], recipe: CorpusRecipe) -> Document | Dropped:
    """The document under its language, if depositor, detector and filters have nothing against it."""
    found, sure = detected
    said = code(document.lang)
    if recipe.language == "agree" and said and said != found and sure > SURE:
        return Dropped(document.id, "language is not the one that was declared")
    lang = found if recipe.language == "detector" or not said else said
    if recipe.filters and (reason := document_fault(document.text, lang)):
        return Dropped(document.id, reason)
    return replace(document, lang=lang)


def code(declared: str) -> str:
    """The language that a source declares; empty if that is no code, since it will be the name of a folder.

    >>> code("en-GB"), code("../../etc")
    ('en', '')
    """
    bare = declared.lower().partition("-")[0]
    return bare if re.fullmatch(r"[a-z]{2,3}", bare) else ""


def without_copies(documents: Iterable[Document]) -> Mapping[str, str]:
    """The ids of near-duplicates, each with the id of the document that stands for it."""
    entries = ((d.id, d.title, [a.key for a in d.authors], d.text) for d in documents)
    return {one: other for one, other in near_duplicates(entries).items() if one != other}
