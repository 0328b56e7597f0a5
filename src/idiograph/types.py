"""The values that flow through the system: authors, documents, spans and triplets. Frozen; no behaviour but naming."""

from collections.abc import Iterable
from dataclasses import dataclass
from unicodedata import combining, normalize

AuthorSet = frozenset[str]

HAL_FIELDS = frozenset("shs info sdv spi phys math chim sde sdu scco stat qfin nlin".split())


def fold(name: str) -> str:
    """A name without case, accents and extra spaces, so that two spellings of one name agree.

    >>> fold("  Éloïse  DU PONT ")
    'eloise du pont'
    """
    bare = "".join(c for c in normalize("NFKD", name) if not combining(c))
    return " ".join(bare.casefold().split())


def hal_code(domain: str) -> str:
    """A domain of HAL in one spelling, lower case and without its level; other labels as they are.

    >>> hal_code("1.phys.meca"), hal_code("SDV.BBM"), hal_code("cs.CL")
    ('phys.meca', 'sdv.bbm', 'cs.CL')
    """
    bare = domain.strip()
    level, dot, rest = bare.partition(".")
    code = (rest if dot and level.isascii() and level.isdigit() else bare).lower()
    return code if code.partition(".")[0] in HAL_FIELDS else bare


def field_of(domain: str) -> str:
    """The field that a domain of a document is in: the first part of HAL's codes however spelled, other labels as they are.

    >>> field_of("shs.langue"), field_of("0.phys"), field_of("SDV.BBM"), field_of("cs.CL")
    ('shs', 'phys', 'sdv', 'cs.CL')
    """
    code = hal_code(domain)
    top = code.partition(".")[0]
    return top if top in HAL_FIELDS else code


def fields_of(domains: Iterable[str]) -> list[str]:
    """The fields of a document, each once, the primary one first.

    >>> fields_of(["phys.meca.acou", "0.phys", "spi.acou"])
    ['phys', 'spi']
    """
    return list(dict.fromkeys(field_of(domain) for domain in domains if domain.strip()))


@dataclass(frozen=True, slots=True)
class Author:
    """A person as the metadata name them. `id` is None where nobody has identified them."""

    name: str
    id: str | None = None
    affiliations: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What stands for this person in an author-set: the id, or else the folded name."""
        return self.id or fold(self.name)


@dataclass(frozen=True, slots=True)
class Document:
    """One text with what is known about it."""

    id: str
    text: str
    authors: tuple[Author, ...] = ()
    domains: tuple[str, ...] = ()
    lang: str = ""
    title: str = ""
    year: int | None = None
    url: str = ""
    licence: str = ""
    source: str = ""
    container: str = ""  # the book or volume that it appeared in, where two chapters share more than their writer

    @property
    def author_set(self) -> AuthorSet:
        return frozenset(author.key for author in self.authors)


@dataclass(frozen=True, slots=True)
class Span:
    """A passage of a document: `text` is `document.text[start:end]`."""

    doc_id: str
    start: int
    end: int
    text: str
    authors: AuthorSet
    domains: frozenset[str] = frozenset()
    year: int | None = None


@dataclass(frozen=True, slots=True)
class Triplet:
    """An anchor, a positive by the same author-set, and a negative by nobody of them."""

    anchor: Span
    positive: Span
    negative: Span
