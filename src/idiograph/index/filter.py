"""Which documents of an index a search may find: by field, year, language, author or id."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from idiograph.errors import InputError
from idiograph.types import fold


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """What an index knows of a document, apart from its text."""

    id: str
    title: str
    authors: tuple[str, ...]
    names: tuple[str, ...]
    domains: tuple[str, ...]
    year: int | None
    lang: str

    @property
    def people(self) -> set[str]:
        """The ids of the authors, and their names without case and accents."""
        return {*self.authors, *map(fold, self.names)}


@dataclass(frozen=True)
class Filter:
    """What must hold of a document. Years are inclusive; a domain stands for those below it; authors go by id or name.

    >>> Filter(domains=("info",), until=2019).admits(IndexedDocument("d", "", ("a",), ("A",), ("info.info-cl",), 2018, "en"))
    True
    """

    domains: tuple[str, ...] = ()
    langs: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    authors: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    exclude_authors: tuple[str, ...] = ()
    exclude_documents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since > self.until:
            raise InputError(f"no year is both since {self.since} and until {self.until}")

    def __bool__(self) -> bool:
        return self != Filter()

    def admits(self, document: IndexedDocument) -> bool:
        return (
            (not self.documents or document.id in self._documents)
            and document.id not in self._without
            and (not self.langs or document.lang in self.langs)
            and (not self.domains or any(self._covers(d) for d in document.domains))
            and self._dated(document.year)
            and (not self.authors or bool(self._people & document.people))
            and not (self.exclude_authors and self._strangers & document.people)
        )

    def _covers(self, domain: str) -> bool:
        return any(domain == wanted or domain.startswith(f"{wanted}.") for wanted in self.domains)

    def _dated(self, year: int | None) -> bool:
        """A document without a year passes only where no year is asked for."""
        if self.since is None and self.until is None:
            return True
        return year is not None and (self.since or year) <= year <= (self.until or year)

    @cached_property
    def _documents(self) -> frozenset[str]:
        return frozenset(self.documents)

    @cached_property
    def _without(self) -> frozenset[str]:
        return frozenset(self.exclude_documents)

    @cached_property
    def _people(self) -> set[str]:
        return ids_and_names(self.authors)

    @cached_property
    def _strangers(self) -> set[str]:
        return ids_and_names(self.exclude_authors)


def ids_and_names(people: Iterable[str]) -> set[str]:
    """Each author as an id and as a name without case and accents."""
    given = list(people)
    return {*given, *map(fold, given)}
