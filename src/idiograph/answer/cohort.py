"""Everybody who may have written a text: author-sets, or single authors over all their sets, and how near each is.

A candidate's score is read against the scores of all the others for the same question (a z-score): a text that resembles
everybody a little resembles nobody in particular.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.index import Passage
from idiograph.errors import SpecError
from idiograph.spec import unknown
from idiograph.types import fold

BY = ("set", "author")
FEW = 5  # candidates under which there is nobody to compare with, and scores are taken as they are
SHARP = 20.0  # 0 is the plain mean of the documents, infinity the nearest alone; see docs/decisions.md
Rows = dict[str, list[int]]  # document → rows of its passages
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate for one question."""

    key: tuple[str, ...]
    names: tuple[str, ...]
    documents: Rows
    score: float
    z: float

    def named(self, wanted: Iterable[str]) -> bool:
        """Is this one of the people asked about, by id or by name?"""
        mine = {fold(name) for name in (*self.key, *self.names)}
        return any(fold(name) in mine for name in wanted)


@dataclass(frozen=True)
class Cohort:
    """Candidates with their documents."""

    keys: tuple[tuple[str, ...], ...]
    names: tuple[tuple[str, ...], ...]
    documents: tuple[Rows, ...]

    def scored(self, scores: NDArray[np.float32], exclude: Sequence[str] = ()) -> list[Entry]:
        """Everybody who has a document that counts, nearest first."""
        entries = []
        for key, names, documents in zip(self.keys, self.names, self.documents, strict=True):
            kept = {doc: rows for doc, rows in documents.items() if doc not in exclude} if exclude else documents
            if kept:
                entries.append((key, names, kept, set_score(scores, kept)))
        z = standing(np.array([score for *_, score in entries]))
        found = [
            Entry(key, names, kept, score, float(at)) for (key, names, kept, score), at in zip(entries, z, strict=True)
        ]
        return sorted(found, key=lambda e: -e.score)


def cohort(listed: Sequence[Passage], by: str = "set") -> Cohort:
    """The candidates of an index."""
    if by not in BY:
        raise SpecError(unknown("kind of candidate", by, BY))
    found: dict[tuple[str, ...], Rows] = defaultdict(lambda: defaultdict(list))
    names: dict[tuple[str, ...], tuple[str, ...]] = {}
    for at, passage in enumerate(listed):
        people = list(zip(passage.authors, passage.names, strict=True))
        for group in [people] if by == "set" else [[one] for one in people]:
            key = tuple(author for author, _ in group)
            names.setdefault(key, tuple(name for _, name in group))
            found[key][passage.doc_id].append(at)
    return Cohort(tuple(found), tuple(names[key] for key in found), tuple(dict(rows) for rows in found.values()))


def set_score(scores: NDArray[np.float32], documents: Rows) -> float:
    """How near a candidate is: each document gives its best passage for each part of the text. Documents are averaged
    softly, near ones counting more: a writer need not be alike everywhere. It is a mean all the same, so that a prolific
    author has no advantage."""
    near = np.array([scores[:, rows].max(axis=1).mean() for rows in documents.values()], np.float64)
    return float(near.max() + np.log(np.exp(SHARP * (near - near.max())).mean()) / SHARP)


def standing(scores: Floats) -> Floats:
    """Scores against those of all the others: (score − mean of the others) / their spread."""
    n = len(scores)
    if n <= FEW:
        return scores
    mean = (scores.sum() - scores) / (n - 1)
    square = ((scores**2).sum() - scores**2) / (n - 1)
    return (scores - mean) / np.sqrt(np.maximum(square - mean**2, 1e-12))
