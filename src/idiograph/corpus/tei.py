"""GROBID's TEI → `Article`. Body and abstract only: figures, tables, notes and the back matter are left out."""

from collections.abc import Iterator

from idiograph.corpus.article import Article, Formulae, Section, Treatment, is_dropped, prose, require, year
from idiograph.corpus.citations import Citations, mark
from idiograph.corpus.markup import Element, child, children, inside, name, parse, text
from idiograph.errors import InputError
from idiograph.types import Author

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_LEFT_OUT = frozenset({"figure", "table", "note", "graphic", "head", "label", "figDesc", "listBibl", "biblStruct"})
_SPACED: dict[str, str] = dict.fromkeys(("lb", "pb", "cb", "s", "item"), " ")


def read_tei(data: bytes, citations: Citations = "mask", formulae: Formulae = "mask") -> Article:
    """The article in a TEI file as GROBID writes it."""
    root = parse(data)
    if name(root) != "TEI":
        raise InputError(f"not TEI: the root element is <{name(root)}>, not <TEI>")
    treatment = Treatment(citations, formulae)
    sections, dropped = _sections(root, treatment)
    header = child(root, "teiHeader")
    article = Article(
        title=text(child(header, "fileDesc", "titleStmt", "title")),
        abstract=prose(_paragraphs(child(header, "profileDesc", "abstract"), treatment)),
        sections=sections,
        lang=_lang(root),
        authors=tuple(_authors(root)),
        year=_year(header),
        doi=_doi(header),
        licence=_licence(header),
        dropped=dropped,
    )
    return require(article, "TEI")


def _sections(root: Element, treatment: Treatment) -> tuple[tuple[Section, ...], tuple[str, ...]]:
    """The sections that are prose, and the headings of the others."""
    kept, dropped = [], []
    body = child(root, "text", "body")
    for div in [*_loose(body), *inside(body, "div")]:
        head = text(child(div, "head"))
        if is_dropped(head):
            dropped.append(head)
            continue
        paragraphs = prose(_paragraphs(div, treatment))
        if paragraphs:
            kept.append(Section(head, paragraphs))
    return tuple(kept), tuple(dropped)


def _loose(body: Element | None) -> list[Element]:
    """The body itself if it has paragraphs outside any division."""
    return [body] if body is not None and next(children(body, "p"), None) is not None else []


def _paragraphs(div: Element | None, treatment: Treatment) -> list[str]:
    """The paragraphs right under a division; a displayed formula joins the two halves of its sentence."""
    found: list[str] = []
    waiting = ""  # the formula that the last paragraph runs into
    for part in _blocks(div):
        if name(part) == "formula":
            waiting = _displayed(part, treatment) if found and not _is_finished(found[-1]) else ""
            continue
        paragraph = treatment.settle(text(part, lambda inner: _swap(inner, treatment), _SPACED))
        if waiting and found and paragraph[:1].islower():
            found[-1] = " ".join(f"{found[-1]}{waiting}{paragraph}".split())
        elif paragraph:
            if waiting and found:
                found[-1] = f"{found[-1]}{waiting}".rstrip()
            found.append(paragraph)
        waiting = ""
    return found


def _blocks(div: Element | None) -> Iterator[Element]:
    """Paragraphs, list items and displayed formulae in order, without those of inner divisions."""
    for part in children(div, "p", "formula", "list", "ab", "div"):
        if name(part) == "list":
            yield from children(part, "item")
        elif name(part) == "div":
            if div is not None and name(div) == "abstract":
                yield from _blocks(part)
        else:
            yield part


def _displayed(formula: Element, treatment: Treatment) -> str:
    """What stands for a displayed formula, with the full stop that ends it."""
    stop = "." if text(formula, _unlabelled).endswith(".") else ""
    return f"{treatment.formula.rstrip()}{stop} "


def _unlabelled(element: Element) -> str | None:
    return "" if name(element) == "label" else None


def _is_finished(paragraph: str) -> bool:
    return paragraph.endswith((".", "!", "?"))


def _swap(element: Element, treatment: Treatment) -> str | None:
    """What stands for an element inside a paragraph."""
    tag = name(element)
    if tag == "ref":
        return _reference(element)
    if tag == "formula":
        return treatment.formula
    return " " if tag in _LEFT_OUT else None


def _reference(ref: Element) -> str | None:
    """A citation is marked, a call of a footnote goes, a pointer to a figure or table stays as it is printed."""
    kind = ref.get("type", "")
    if kind == "bibr":
        return mark(text(ref))
    return "" if kind in ("foot", "note") else None


def _lang(root: Element) -> str:
    body, header = child(root, "text"), child(root, "teiHeader")
    found = [each.get(LANG, "") for each in (body, header) if each is not None]
    return next((lang.lower() for lang in found if lang), "")


def _authors(root: Element) -> Iterator[Author]:
    """The persons in the header; an author without a name is a leftover affiliation and does not count."""
    for author in children(child(root, "teiHeader", "fileDesc", "sourceDesc", "biblStruct", "analytic"), "author"):
        person = child(author, "persName")
        full = " ".join(text(part) for part in children(person, "forename", "surname"))
        if full.strip():
            orcid = next((text(idno) for idno in children(author, "idno") if idno.get("type") == "ORCID"), "")
            yield Author(" ".join(full.split()), orcid or None)


def _year(header: Element | None) -> int | None:
    dates = [*inside(child(header, "fileDesc", "publicationStmt"), "date"), *inside(child(header, "fileDesc"), "date")]
    return next((found for date in dates if (found := year(date.get("when") or text(date)))), None)


def _doi(header: Element | None) -> str:
    source = child(header, "fileDesc", "sourceDesc", "biblStruct")
    return next((text(idno) for idno in inside(source, "idno") if idno.get("type") == "DOI"), "")


def _licence(header: Element | None) -> str:
    licence = child(header, "fileDesc", "publicationStmt", "availability", "licence")
    return "" if licence is None else licence.get("target") or text(licence)
