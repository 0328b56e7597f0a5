"""A library of texts whose writers are known, as rankers learn from it, and what a ranker can say once it has learned.

A ranker that learns is asked about every text of the library in turn as if that text were not there: that is how an answer
knows how often it is right. So `score` is told which text of the library a question was taken from, and nothing that
it has learned may then depend on that text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

NOT_IN_LIBRARY = -1
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Library:
    """Texts and who wrote each: what is equal in `authors` is by one hand. `lang` is "" where it is not known."""

    texts: tuple[str, ...]
    authors: tuple[str, ...]
    lang: str = ""

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, which: Sequence[int]) -> "Library":
        """Some of the texts, in the order asked for."""
        texts, authors = (tuple(values[at] for at in which) for values in (self.texts, self.authors))
        return replace(self, texts=texts, authors=authors)


class LearnedRanker(Protocol):
    """Knows a library, and how near a text is to each text of it."""

    @property
    def name(self) -> str: ...

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """(texts, library): the higher, the nearer; only the order and the distances within a row mean something.

        `left_out[i]` is the place in the library of the text that question i was taken from, or `NOT_IN_LIBRARY`; None: no
        question was. Row i has NaN there, and is what it would be if the library did not have that text.
        """
        ...


class PairRanker(LearnedRanker, Protocol):
    """Can also compare texts that the library does not have, by what it has learned from the library."""

    def between(self, texts: Sequence[str], others: Sequence[str]) -> Scores:
        """(texts, others): as `score` would find if the library had the others as well."""
        ...


class PlacingRanker(PairRanker, Protocol):
    """Knows texts by points, the cosine of two of which is their score."""

    def placer(self) -> Callable[[Sequence[str]], Scores]:
        """From texts to points (texts, features), by what was learned from the library."""
        ...


class LearningRanker(Protocol):
    """Learns from a library what there is to know before a question is asked."""

    @property
    def name(self) -> str: ...

    def learn(self, library: Library) -> LearnedRanker: ...
