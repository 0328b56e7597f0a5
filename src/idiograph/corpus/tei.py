"""GROBID's TEI → `Article`. Body and abstract only: figures, tables, notes and the back matter are left out."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from idiograph.corpus.article import (
    Article,
    ArticleSection,
    Formulae,
    Treatment,
    bare_doi,
    is_dropped,
    prose,
    require_tei,
    year_in,
)
from idiograph.corpus.citations import Citations, mark_citation
from idiograph.errors import InputError
from idiograph.types import Author
from idiograph.xml import Element, child_element, children, element_text, inner_parts, parse_xml, tag_name

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_ARXIV = re.compile(r"\d{4}\.\d{4,5}(?:v\d{1,3})?|[a-z.-]{2,20}/\d{7}(?:v\d{1,3})?", re.I)
# A number after a plain word, or after the stop that ends its sentence. Bounded, so that no long word costs more than its length.
_STUCK = re.compile(r"(?P<word>(?<![\w-])[^\W\dA-Z_]{4,30}(?:[.,;:!?)”»]{1,2})?)(?P<n>[1-9]\d?)(?=[.,;:)]?(?:\s|$))")
_LEFT_OUT = frozenset({"figure", "table", "note", "graphic", "head", "label", "figDesc", "listBibl", "biblStruct"})
_SPACED: dict[str, str] = dict.fromkeys(("lb", "pb", "cb", "s", "item"), " ")


def read_tei(data: bytes, citations: Citations = "mask", formulae: Formulae = "mask") -> Article:
    """The article in a TEI file as GROBID writes it."""
    root = parse_xml(data)
    if tag_name(root) != "TEI":
        raise InputError(f"not TEI: the root element is <{tag_name(root)}>, not <TEI>")
    treatment = Treatment(citations, formulae)
    sections, dropped = _tei_sections(root, treatment)
    sections = without_note_calls(sections, max(_note_numbers(root), default=0))
    header = child_element(root, "teiHeader")
    doi = bare_doi(_idnos(header).get("doi", ""))
    article = Article(
        title=element_text(child_element(header, "fileDesc", "titleStmt", "title")) or _property(header, "title"),
        abstract=prose(_tei_paragraphs(child_element(header, "profileDesc", "abstract"), treatment)),
        sections=sections,
        lang=_lang(root),
        authors=tuple(_tei_authors(root)),
        year=_tei_year(header),
        doi=doi,
        id=doi or _archive_number(header),
        licence=_tei_licence(header),
        dropped=dropped,
        suggested=_property(header, "author"),
    )
    return require_tei(article, "TEI")


def _tei_sections(root: Element, treatment: Treatment) -> tuple[tuple[ArticleSection, ...], tuple[str, ...]]:
    """The sections that are prose, and the headings of the others."""
    sections, dropped = [], []
    body = child_element(root, "text", "body")
    for div in [*_loose_body(body), *inner_parts(body, "div")]:
        head = element_text(child_element(div, "head"))
        if is_dropped(head):
            dropped.append(head)
            continue
        paragraphs = prose(_tei_paragraphs(div, treatment))
        if paragraphs:
            sections.append(ArticleSection(head, paragraphs))
    return tuple(sections), tuple(dropped)


def _loose_body(body: Element | None) -> list[Element]:
    """The body itself if it has paragraphs outside any division."""
    return [body] if body is not None and next(children(body, "p"), None) is not None else []


def _tei_paragraphs(div: Element | None, treatment: Treatment) -> list[str]:
    """The paragraphs right under a division; a displayed formula joins the two halves of its sentence."""
    paragraphs: list[str] = []
    waiting = ""  # the formula that the last paragraph runs into
    for part in _blocks(div):
        if tag_name(part) == "formula":
            waiting = _displayed(part, treatment) if paragraphs and not _is_finished(paragraphs[-1]) else ""
            continue
        paragraph = treatment.finish_paragraph(element_text(part, lambda inner: _tei_swap(inner, treatment), _SPACED))
        if waiting and paragraphs and paragraph[:1].islower():
            paragraphs[-1] = " ".join(f"{paragraphs[-1]}{waiting}{paragraph}".split())
        elif paragraph:
            if waiting and paragraphs:
                paragraphs[-1] = f"{paragraphs[-1]}{waiting}".rstrip()
            paragraphs.append(paragraph)
        waiting = ""
    return paragraphs


def _note_numbers(root: Element) -> Iterator[int]:
    """The numbers of the footnotes that the file has apart; GROBID does not find all of them."""
    for note in inner_parts(child_element(root, "text"), "note"):
        number = note.get("n", "")
        if note.get("place") == "foot" and number.isascii() and number.isdigit():
            yield int(number[:3])


def without_note_calls(sections: tuple[ArticleSection, ...], notes: int) -> tuple[ArticleSection, ...]:
    """The sections without the numbers of footnotes that are stuck to the words before them: "the corpus2 was", "done.3 We".

    Such a number occurs once in this place, and it is one of footnotes that are there, or it follows on those before it
    from 1 on. "Level2" that comes again, "H2O" and "mp3" are names.
    """
    calls = list(chain.from_iterable(_STUCK.finditer(p) for section in sections for p in section.paragraphs))
    often = Counter(call[0] for call in calls)
    numbers = [int(call["n"]) for call in calls if often[call[0]] == 1]
    known = {number for number in numbers if number <= notes} | set(count_up(numbers))

    def cut(call: re.Match[str]) -> str:
        return call["word"] if often[call[0]] == 1 and int(call["n"]) in known else call[0]

    if not known:
        return sections
    return tuple(ArticleSection(each.head, tuple(_STUCK.sub(cut, p) for p in each.paragraphs)) for each in sections)


def count_up(numbers: list[int]) -> list[int]:
    """The numbers from 1 on that come in order, if 1, 2 and 3 do.

    >>> count_up([1, 7, 2, 3, 5]), count_up([2, 19])
    ([1, 2, 3], [])
    """
    reached = 0
    for number in numbers:
        reached += number == reached + 1
    return list(range(1, reached + 1)) if reached >= 3 else []


def _blocks(div: Element | None) -> Iterator[Element]:
    """Paragraphs, list items and displayed formulae in order, without those of inner divisions."""
    for part in children(div, "p", "formula", "list", "ab", "div"):
        if tag_name(part) == "list":
            yield from children(part, "item")
        elif tag_name(part) == "div":
            if div is not None and tag_name(div) == "abstract":
                yield from _blocks(part)
        else:
            yield part


def _displayed(formula: Element, treatment: Treatment) -> str:
    """What stands for a displayed formula, with the full stop that ends it."""
    stop = "." if element_text(formula, _unlabelled).endswith(".") else ""
    return f"{treatment.formula.rstrip()}{stop} "


def _unlabelled(element: Element) -> str | None:
    return "" if tag_name(element) == "label" else None


def _is_finished(paragraph: str) -> bool:
    return paragraph.endswith((".", "!", "?"))


def _tei_swap(element: Element, treatment: Treatment) -> str | None:
    """What stands for an element inside a paragraph."""
    tag = tag_name(element)
    if tag == "ref":
        return _tei_reference(element)
    if tag == "formula":
        return treatment.formula
    return " " if tag in _LEFT_OUT else None


def _tei_reference(ref: Element) -> str | None:
    """A citation is marked, a call of a footnote goes, a pointer to a figure or table stays as it is printed."""
    kind = ref.get("type", "")
    if kind == "bibr":
        return mark_citation(element_text(ref))
    return "" if kind in ("foot", "note") else None


def _lang(root: Element) -> str:
    body, header = child_element(root, "text"), child_element(root, "teiHeader")
    declared = [each.get(LANG, "") for each in (body, header) if each is not None]
    return next((lang.lower() for lang in declared if lang), "")


def _tei_authors(root: Element) -> Iterator[Author]:
    """The persons in the header; an author without a name is a leftover affiliation and does not count."""
    for author in children(
        child_element(root, "teiHeader", "fileDesc", "sourceDesc", "biblStruct", "analytic"), "author"
    ):
        person = child_element(author, "persName")
        full = " ".join(element_text(part) for part in children(person, "forename", "surname"))
        if full.strip():
            orcid = next((element_text(idno) for idno in children(author, "idno") if idno.get("type") == "ORCID"), "")
            yield Author(" ".join(full.split()), orcid or None)


def _tei_year(header: Element | None) -> int | None:
    dates = [
        *inner_parts(child_element(header, "fileDesc", "publicationStmt"), "date"),
        *inner_parts(child_element(header, "fileDesc"), "date"),
    ]
    return next((year for date in dates if (year := year_in(date.get("when") or element_text(date)))), None)


def _idnos(header: Element | None) -> dict[str, str]:
    """The first identifier of each type that the header gives of the paper; not those of its authors or journal."""
    file = child_element(header, "fileDesc")
    source = child_element(file, "sourceDesc", "biblStruct")
    places = (child_element(file, "publicationStmt"), source, child_element(source, "analytic"))
    found = [idno for place in places for idno in children(place, "idno")]
    return {idno.get("type", "").lower(): element_text(idno) for idno in reversed(found)}


def _property(header: Element | None, name: str) -> str:
    """What the PDF says of itself, as our extractor notes it."""
    notes = children(child_element(header, "fileDesc", "notesStmt"), "note")
    return next((element_text(note) for note in notes if note.get("type") == f"pdf-{name}"), "")


def _archive_number(header: Element | None) -> str:
    """The number under which arXiv or HAL has the paper, without what GROBID leaves behind it."""
    numbers = _idnos(header)
    arxiv = _ARXIV.search(numbers.get("arxiv", ""))
    return f"arXiv:{arxiv[0]}" if arxiv else numbers.get("halid", "")


def _tei_licence(header: Element | None) -> str:
    licence = child_element(header, "fileDesc", "publicationStmt", "availability", "licence")
    return "" if licence is None else licence.get("target") or element_text(licence)
