"""Who is the same person in a corpus: by id where there is one, else by the folded name.

Registries do not mix: an ORCID and a HAL number are never equal. They are one person where a name bears one of each and
no more. An author without an id joins the one person of that name who has one; where two people of the name have ids,
nobody can say which of them it is, and the author counts as not identified.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from idiograph.types import Document, fold

ORCID = re.compile(r"(?:https?://(?:www\.)?orcid\.org/|orcid:)?(\d{4}-\d{4}-\d{4}-\d{3}[\dxX])/?")
REGISTRIES = ("orcid", "number")  # which id of a person stands for all of them; others come after these

Byline = Sequence[Mapping[str, Any]]  # {"name": …, "id": …} each, in the order of the names


@lru_cache(maxsize=1 << 16)
def fold_name(name: str) -> str:
    return fold(name)


def registry_of(number: str) -> str:
    """Who gave an id: two ids of one registry are two people.

    >>> registry_of("https://orcid.org/0000-0002-6561-5888"), registry_of("17099"), registry_of("acl:ada-lovelace")
    ('orcid', 'number', 'acl')
    """
    if ORCID.fullmatch(number):
        return "orcid"
    return "number" if number.isascii() and number.isdigit() else number.partition(":")[0] if ":" in number else "other"


def bare_id(number: str) -> str:
    """An id in one spelling: an ORCID without its address."""
    found = ORCID.fullmatch(number)
    return found[1].upper() if found else number


@dataclass(frozen=True, slots=True)
class Identities:
    """What the ids of a corpus say about its names."""

    person: Mapping[str, str]  # of an id, the id that stands for its person where there are several
    named: Mapping[str, str]  # of a folded name, the one id that it bears; empty where it bears several people's

    @classmethod
    def of(cls, bylines: Iterable[Byline]) -> "Identities":
        """From everybody who signs in a corpus."""
        bearing: defaultdict[str, set[str]] = defaultdict(set)
        together: set[tuple[str, str]] = set()  # two ids of one name on one byline are two people
        for byline in bylines:
            here: defaultdict[str, set[str]] = defaultdict(set)
            for author in byline:
                if author["id"]:
                    here[fold_name(author["name"])].add(bare_id(author["id"]))
            for name, ids in here.items():
                bearing[name] |= ids
                together.update((a, b) for a in ids for b in ids if a < b)
        person = join_registries(bearing, together)
        chosen = {name: {person.get(number, number) for number in ids} for name, ids in bearing.items()}
        return cls(person, {name: next(iter(ids)) if len(ids) == 1 else "" for name, ids in chosen.items()})

    def keys(self, byline: Byline) -> list[str | None]:
        """What stands for each author: an id, a folded name, or None for somebody who may be one of several."""
        own = [self.id_of(author["id"]) if author["id"] else None for author in byline]
        return [number or self.key_of_name(fold_name(a["name"]), own) for number, a in zip(own, byline, strict=True)]

    def id_of(self, number: str) -> str:
        """The id that stands for the person with this one."""
        bare = bare_id(number)
        return self.person.get(bare, bare)

    def key_of_name(self, name: str, taken: Collection[str | None]) -> str | None:
        """The id of the one person with this name, unless that one is on the byline already; without any, the name."""
        if name not in self.named:
            return name or None
        number = self.named[name]
        return number if number and number not in taken else None

    def identify(self, document: Document) -> Document:
        """The document with each author under the id that stands for them."""
        if not self.named:
            return document
        byline = [{"name": author.name, "id": author.id} for author in document.authors]
        keys = self.keys(byline)
        people = zip(document.authors, keys, byline, strict=True)
        known = (replace(a, id=key if a.id or key != fold_name(a.name) else None) for a, key, _ in people)
        return replace(document, authors=tuple(known))


def join_registries(bearing: Mapping[str, set[str]], together: Collection[tuple[str, str]]) -> dict[str, str]:
    """For ids that belong to one person, the id that stands for them: where a name bears one of each registry."""
    members: dict[str, set[str]] = {}
    for name in sorted(name for name, ids in bearing.items() if len(ids) > 1):
        people = {frozenset(members.get(number, {number})) for number in bearing[name]}
        joined = frozenset().union(*people)
        registries = {registry_of(number) for number in joined}
        apart = any((a, b) in together for a in joined for b in joined if a < b)
        if len(registries) == len(joined) and not apart:
            for number in joined:
                members[number] = set(joined)
    return {number: min(ids, key=id_rank) for number, ids in members.items()}


def id_rank(number: str) -> tuple[int, str]:
    """Which of a person's ids comes first."""
    registry = registry_of(number)
    return REGISTRIES.index(registry) if registry in REGISTRIES else len(REGISTRIES), number
