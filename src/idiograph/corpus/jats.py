"""JATS (PubMed Central, publishers, journals) → `Article`. Body and abstract; figures, tables, notes and back are left out."""

from collections.abc import Iterator, Mapping

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
from idiograph.xml import (
    MAX_DEPTH,
    Element,
    child_element,
    children,
    element_text,
    inner_parts,
    one_line,
    parse_xml,
    tag_name,
)

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
HREF = "{http://www.w3.org/1999/xlink}href"
# A block quotation is someone else's prose.
_LEFT_OUT = frozenset(
    """
    fig fig-group table-wrap table-wrap-group table fn fn-group graphic inline-graphic media supplementary-material
    inline-supplementary-material disp-quote verse-group code preformat def-list glossary ref-list boxed-text label
    object-id alternatives index-term array speech statement-title
    """.split()
)
_FORMULAE = frozenset({"disp-formula", "disp-formula-group", "inline-formula", "math", "tex-math", "chem-struct-wrap"})
_PARAGRAPH = "\x04"  # a control character, so that no XML can hold it
_APART = {"list-item": _PARAGRAPH, "list": _PARAGRAPH, "break": " "}
_RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")


def read_jats(data: bytes, citations: Citations = "mask", formulae: Formulae = "mask") -> Article:
    """The article in a JATS file; of a set of articles, the first."""
    root = parse_xml(data)
    found = root if tag_name(root) == "article" else next(inner_parts(root, "article"), None)
    if found is None:
        raise InputError(f"not JATS: the root element is <{tag_name(root)}> and holds no <article>")
    treatment = Treatment(citations, formulae)
    meta = child_element(found, "front", "article-meta")
    kept, dropped = _jats_sections(child_element(found, "body"), treatment)
    numbers = {each.get("pub-id-type"): element_text(each) for each in children(meta, "article-id")}
    doi = bare_doi(numbers.get("doi", ""))
    article = Article(
        title=element_text(child_element(meta, "title-group", "article-title"), _title_swap),
        abstract=_abstract(meta, treatment),
        sections=kept,
        lang=(found.get(LANG) or "").lower()[:2],
        authors=tuple(_jats_authors(meta)),
        year=_jats_year(meta),
        doi=doi,
        id=doi or _pmc_number(numbers),
        licence=_jats_licence(meta),
        dropped=dropped,
    )
    return require_tei(article, "JATS")


def _pmc_number(numbers: Mapping[str, str]) -> str:
    """The number in PubMed Central, as it is written everywhere: PMC5828200."""
    digits = (numbers.get("pmc") or numbers.get("pmcid") or "").upper().removeprefix("PMC")
    return f"PMC{digits}" if digits.isascii() and digits.isdigit() else ""


def _abstract(meta: Element | None, treatment: Treatment) -> tuple[str, ...]:
    """The plain abstract; teasers, graphical abstracts and translations do not count."""
    for abstract in children(meta, "abstract"):
        if not abstract.get("abstract-type"):
            parts = [abstract, *inner_parts(abstract, "sec")]
            return prose(paragraph for part in parts for paragraph in _jats_paragraphs(part, treatment))
    return ()


def _jats_sections(body: Element | None, treatment: Treatment) -> tuple[tuple[ArticleSection, ...], tuple[str, ...]]:
    """The sections that are prose, in order, and the headings of the others."""
    sections: list[ArticleSection] = []
    dropped: list[str] = []
    if body is not None:
        _walk(body, treatment, sections, dropped)
    return tuple(sections), tuple(dropped)


def _walk(
    part: Element, treatment: Treatment, sections: list[ArticleSection], dropped: list[str], depth: int = 0
) -> None:
    if depth > MAX_DEPTH:
        raise InputError(f"the XML is nested deeper than {MAX_DEPTH} elements")
    head = element_text(child_element(part, "title"), _title_swap)
    if is_dropped(head) or part.get("sec-type") == "supplementary-material":
        dropped.append(head)
        return
    if paragraphs := prose(_jats_paragraphs(part, treatment)):
        sections.append(ArticleSection(head, paragraphs))
    for inner in children(part, "sec"):
        _walk(inner, treatment, sections, dropped, depth + 1)


def _jats_paragraphs(part: Element, treatment: Treatment) -> Iterator[str]:
    """The paragraphs right under a section, and the items of its lists."""
    for block in children(part, "p", "list", "list-item", "statement"):
        if tag_name(block) == "p":
            raw = element_text(block, lambda inner: _jats_swap(inner, treatment), _APART)
            yield from (one_line(treatment.finish_paragraph(piece)) for piece in raw.split(_PARAGRAPH))
        else:
            yield from _jats_paragraphs(block, treatment)


def _jats_swap(element: Element, treatment: Treatment) -> str | None:
    """What stands for an element inside a paragraph."""
    tag = tag_name(element)
    if tag == "xref":
        return _jats_reference(element)
    if tag in _FORMULAE:
        return treatment.formula
    if tag in _LEFT_OUT:
        return " "
    return _raised(element) if tag == "sup" else None


def _jats_reference(xref: Element) -> str | None:
    """A citation is marked, a call of a footnote goes, a pointer to a figure or table stays as it is printed."""
    kind = xref.get("ref-type", "")
    if kind == "bibr":
        return mark_citation(element_text(xref))
    return "" if kind in ("fn", "table-fn", "aff", "corresp", "author-notes") else None


def _raised(sup: Element) -> str | None:
    """Raised digits stay raised, so that ten to the fifth is not a hundred and five."""
    digits = (sup.text or "").strip()
    plain = next(iter(sup), None) is None and digits and all(c in "0123456789+-−" for c in digits)
    return digits.translate(_RAISED) if plain else None


def _title_swap(element: Element) -> str | None:
    return "" if tag_name(element) in ("xref", "fn") else None


def _jats_authors(meta: Element | None) -> Iterator[Author]:
    for group in children(meta, "contrib-group"):
        for contrib in children(group, "contrib"):
            if contrib.get("contrib-type", "author") == "author":
                yield from _author(contrib)


def _author(contrib: Element) -> Iterator[Author]:
    person = next(inner_parts(contrib, "name", "string-name"), None)
    full = " ".join(
        element_text(part) for step in ("given-names", "surname", "suffix") for part in children(person, step)
    )
    if full.strip():
        ids = (element_text(each) for each in children(contrib, "contrib-id") if each.get("contrib-id-type") == "orcid")
        yield Author(" ".join(full.split()), next(ids, "").rstrip("/").rpartition("/")[2] or None)


def _jats_year(meta: Element | None) -> int | None:
    years = (year_in(element_text(child_element(date, "year"))) for date in children(meta, "pub-date"))
    return min((found for found in years if found), default=None)


def _jats_licence(meta: Element | None) -> str:
    licence = child_element(meta, "permissions", "license")
    if licence is None:
        return ""
    links = [licence.get(HREF), *(link.get(HREF) for link in inner_parts(licence, "ext-link")), element_text(licence)]
    return next((link for link in links if link), "")
