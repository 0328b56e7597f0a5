"""Everybody who may have written a text: author-sets, or single authors over all their sets, and how near each is.

A candidate's score is read against the scores of all the others for the same question (a z-score): a text that resembles
everybody a little resembles nobody in particular.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import InputError, SpecError
from idiograph.index.index import Index
from idiograph.spec import unknown_choice
from idiograph.style.patches import ragged_rows
from idiograph.style.tokens import Ints
from idiograph.types import fold

BY = ("set", "author")
MIN_CANDIDATES_TO_STANDARDIZE = 5  # with no more there is nobody to compare with: scores are taken as they are
SOFT_MAXIMUM_SHARPNESS = 20.0  # 0 is the plain mean of the documents, infinity the nearest alone; see docs/decisions.md
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class IndexAuthors:
    """Candidates with their documents. Candidates, documents and passages go by number."""

    keys: tuple[tuple[str, ...], ...]
    names: tuple[tuple[str, ...], ...]
    documents: tuple[str, ...]
    owner: Ints  # the document of each passage
    members: Ints  # the documents of the first candidate, then of the second, …
    sizes: Ints  # how many each candidate has

    @cached_property
    def starts(self) -> Ints:
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def _by_document(self) -> tuple[Ints, Ints, Ints]:
        """The passages in the order of their documents; where each document begins among them, and how many it has."""
        lengths = np.bincount(self.owner, minlength=len(self.documents))
        return np.argsort(self.owner, kind="stable"), np.cumsum(lengths) - lengths, lengths

    @cached_property
    def _number(self) -> dict[str, int]:
        return {doc: at for at, doc in enumerate(self.documents)}

    @cached_property
    def _of_person(self) -> dict[str, list[int]]:
        candidates: dict[str, list[int]] = {}
        for at, key in enumerate(self.keys):
            for person in key:
                candidates.setdefault(person, []).append(at)
        return candidates

    def of_people(self, people: frozenset[str]) -> Bools:
        """Which candidates consist of some of these people alone."""
        wanted = np.zeros(len(self.keys), bool)
        wanted[
            [at for person in people for at in self._of_person.get(person, ()) if people.issuperset(self.keys[at])]
        ] = True
        return wanted

    def documents_of(self, who: int) -> Ints:
        return self.members[self.starts[who] : self.starts[who] + self.sizes[who]]

    def passages_of(self, documents: Sequence[int] | Ints) -> Ints:
        """The passages of these documents, one document after the other."""
        which = np.asarray(documents, np.int64)
        order, starts, lengths = self._by_document
        return order[ragged_rows(starts[which], lengths[which])] if len(which) else which

    def numbers(self, documents: Sequence[str]) -> list[int]:
        """The numbers of those of these documents that are here."""
        return [self._number[doc] for doc in documents if doc in self._number]

    def near(self, passages: Ints, scores: NDArray[np.float32]) -> Floats:
        """How near each document is: its best passage for each part of the text, averaged. NaN: no passage was scored.

        `scores` is (parts of the text, passages).
        """
        owner = self.owner[passages]
        order = np.argsort(owner, kind="stable")
        seen, first = np.unique(owner[order], return_index=True)
        nearness = np.full(len(self.documents), np.nan)
        nearness[seen] = np.maximum.reduceat(scores[:, order], first, axis=1).mean(axis=0, dtype=np.float64)
        return nearness

    def scores(self, near: Floats) -> Floats:
        """How near each candidate is; NaN for one without a document that counts.

        Documents are averaged softly, near ones counting more: a writer need not be alike everywhere. It is a mean all the
        same, so that a prolific author has no advantage.
        """
        each = near[self.members]
        counts = ~np.isnan(each)
        best = np.maximum.reduceat(np.where(counts, each, -np.inf), self.starts)
        with np.errstate(invalid="ignore", divide="ignore"):
            odds = np.where(counts, np.exp(SOFT_MAXIMUM_SHARPNESS * (each - np.repeat(best, self.sizes))), 0.0)
            share = np.add.reduceat(odds, self.starts) / np.add.reduceat(counts, self.starts, dtype=np.int64)
            return best + np.log(share) / SOFT_MAXIMUM_SHARPNESS

    def with_names(self, wanted: Iterable[str]) -> Bools:
        """Which candidates are among the people asked about, by id or by name."""
        names = set(map(fold, wanted))
        mine = zip(self.keys, self.names, strict=True)
        return np.array([any(fold(name) in names for name in (*key, *shown)) for key, shown in mine], bool)


def author_sets_of(index: Index, by: str = "set") -> IndexAuthors:
    """The candidates of an index."""
    if by not in BY:
        raise SpecError(unknown_choice("kind of candidate", by, BY))
    return index.once(f"authors {by}", lambda: gather_authors(index, by))


def gather_authors(index: Index, by: str) -> IndexAuthors:
    documents_of: dict[tuple[str, ...], list[int]] = {}
    names: dict[tuple[str, ...], tuple[str, ...]] = {}
    for at, document in enumerate(index.documents):
        people = list(zip(document.authors, document.names, strict=True))
        for group in [people] if by == "set" else [[one] for one in people]:
            key = tuple(author for author, _ in group)
            names.setdefault(key, tuple(name for _, name in group))
            documents_of.setdefault(key, []).append(at)
    if not documents_of:
        raise InputError(f"no document of index '{index.where}' names an author")
    members = np.array([at for rows in documents_of.values() for at in rows], np.int64)
    sizes = np.array([len(rows) for rows in documents_of.values()], np.int64)
    ids = tuple(document.id for document in index.documents)
    return IndexAuthors(
        tuple(documents_of), tuple(names[key] for key in documents_of), ids, index.owner, members, sizes
    )


@dataclass(frozen=True, slots=True)
class AuthorBest:
    """The scores of everybody for one question, as far as they are needed: how many, their sum, the sum of their squares."""

    count: float
    total: float
    squares: float

    @classmethod
    def of(cls, scores: Floats) -> "AuthorBest":
        return cls(len(scores), float(scores.sum()), float((scores**2).sum()))

    def standing(self, scores: Floats) -> Floats:
        """Scores against those of all the others: (score − mean of the others) / their spread."""
        if self.count <= MIN_CANDIDATES_TO_STANDARDIZE:
            return scores
        mean = (self.total - scores) / (self.count - 1)
        square = (self.squares - scores**2) / (self.count - 1)
        return (scores - mean) / np.sqrt(np.maximum(square - mean**2, 1e-12))
