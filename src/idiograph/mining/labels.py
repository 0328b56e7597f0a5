"""Who counts as the writer of a document: the author-set that makes two documents a positive pair."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from idiograph.types import fold

Authors = Sequence[Mapping[str, Any]]  # {"name": …, "id": …} each, in the order of the byline
Labeller = Callable[[Authors, bool], frozenset[str]]
NOBODY: frozenset[str] = frozenset()


def key_of(author: Mapping[str, Any], ids: bool) -> str | None:
    """What stands for a person: the id in a corpus that has ids, else the folded name."""
    return author["id"] if ids else fold(author["name"])


def is_identified(authors: Authors, ids: bool) -> frozenset[str]:
    """All authors, provided that each is identified: {A, unknown} is not {A}.

    >>> sorted(is_identified([{"name": "Ada", "id": "1"}, {"name": "Ben", "id": None}], ids=True))
    []
    """
    keys = [key_of(author, ids) for author in authors]
    return frozenset(filter(None, keys)) if all(keys) else NOBODY


def known_set(authors: Authors, ids: bool) -> frozenset[str]:
    """The identified authors; others are passed over, as in the published protocol."""
    return frozenset(filter(None, (key_of(author, ids) for author in authors)))


def first_author(authors: Authors, ids: bool) -> frozenset[str]:
    return is_identified(authors[:1], ids)


def last_author(authors: Authors, ids: bool) -> frozenset[str]:
    return is_identified(authors[-1:], ids)


def single_author(authors: Authors, ids: bool) -> frozenset[str]:
    return is_identified(authors, ids) if len(authors) == 1 else NOBODY


LABELS: dict[str, Labeller] = {
    "first": first_author,
    "identified": is_identified,
    "last": last_author,
    "set": known_set,
    "single": single_author,
}
