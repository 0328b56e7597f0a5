"""Ridge regression of letters or words onto the writers of a library: what tells each writer from all the others at once.

A text that is merely near to many gains nothing by it, and that is where the nearest text goes wrong: what all texts of a
library share, or all of one topic, is shared out among them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from idiograph.rankers.counts import Doubles, FrequentFeatures, LetterFeatures, Places, WordFeatures, most_frequent
from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores
from idiograph.rankers.rates import Coordinates, LearnedRates, fit_z_scores, name_parts, table_of, unit_rows
from idiograph.rankers.tfidf import learn_tfidf

RIDGE = 0.3  # how hard the parts are drawn towards 0, where a text's length is 1; a third or three times as much does as well
NEAREST_TEXTS = 200  # of the library have a part in a question; in a larger library the others count for nothing
TEXTS_WITH_A_WORD = 2  # of the library, so that the word counts


class LearnedPoints(Protocol):
    """A library as points that are learned without the text that is asked about."""

    @property
    def name(self) -> str: ...
    @property
    def library(self) -> Library: ...
    def coordinates(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Iterator[Coordinates]: ...
    def features_without(self, place: int) -> list[tuple[FrequentFeatures, Places]]: ...


@dataclass(frozen=True, slots=True)
class LetterRegression:
    """Regression of the z-scores of frequent character n-grams.

    That it is these, and words beside them, was chosen on Hungarian novels and the Federalist papers.
    """

    size: int = 4
    features: int = 6000

    @property
    def name(self) -> str:
        return "regression-letters"

    def learn(self, library: Library) -> "LearnedRegression":
        """Count a library; which n-grams are the most frequent, means, spreads and parts leave out what is asked about."""
        table = table_of(most_frequent(library.texts, LetterFeatures(self.size), self.features))
        return LearnedRegression.of(LearnedRates(self.name, library, (table,), fit_z_scores))


@dataclass(frozen=True, slots=True)
class WordRegression:
    """Regression of frequent words, weighted by TF-IDF."""

    features: int = 6000

    @property
    def name(self) -> str:
        return "regression-words"

    def learn(self, library: Library) -> "LearnedRegression":
        """Count a library; which words count, how rare they are and what has a part leaves out what is asked about."""
        frequent = most_frequent(library.texts, WordFeatures(), self.features)
        return LearnedRegression.of(learn_tfidf(self.name, library, frequent, TEXTS_WITH_A_WORD))


@dataclass(frozen=True, slots=True)
class LearnedRegression:
    """Every text is a point at distance 1. A question is written as a sum of the library's texts, and an author scores the
    parts of all texts by the author."""

    known: LearnedPoints
    member: Doubles  # (authors, texts): 1 or 0
    owner: Places  # of each text
    weighs_all: bool = True  # a text that everybody is near to has a small part in each

    @classmethod
    def of(cls, known: LearnedPoints) -> "LearnedRegression":
        names, owner = np.unique(known.library.authors, return_inverse=True)
        return cls(known, 1.0 * (owner == np.arange(len(names))[:, None]), owner)

    @property
    def name(self) -> str:
        return self.known.name

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """(texts, library): the share of each text's author; a text with none of the features scores 0."""
        scores = np.zeros((len(texts), len(self.owner)))
        for place, which, questions, known, _ in self.known.coordinates(texts, left_out):
            points, asked = points_without(known, place), unit_rows(questions)
            for rows, some in choose_nearest(asked @ points.T):
                mine = points[some]
                parts = np.linalg.solve(add_ridge(mine @ mine.T), mine @ asked[rows].T)  # (texts, questions)
                scores[which[rows]] = (self.member[:, some] @ parts).T[:, self.owner]
            if place != NOT_IN_LIBRARY:
                scores[which, place] = np.nan
        return scores

    def shares(self, text: str, place: int, left_out: int = NOT_IN_LIBRARY) -> list[tuple[str, float]]:
        """What each feature adds to what the author of the text at `place` scores, the largest first; they sum to it."""
        ((_, _, questions, known, _),) = self.known.coordinates([text], [left_out])
        points, (asked,) = points_without(known, left_out), unit_rows(questions)
        ((_, some),) = choose_nearest((points @ asked)[None])
        mine = points[some]
        direction = np.linalg.solve(add_ridge(mine @ mine.T), self.member[self.owner[place], some]) @ mine
        texts = [text, self.known.library.texts[place], *self.known.library.texts]
        return name_parts(asked * direction, self.known.features_without(left_out), texts)


def add_ridge(kernel: Doubles) -> Doubles:
    return kernel + RIDGE * np.eye(len(kernel))


def choose_nearest(near: Doubles) -> list[tuple[Places, Places]]:
    """Questions with the texts that may have a part in them; all together where these are all the texts."""
    count = near.shape[1]
    if count <= NEAREST_TEXTS:
        return [(np.arange(len(near)), np.arange(count))]
    nearest = np.argpartition(-near, NEAREST_TEXTS, axis=1)[:, :NEAREST_TEXTS]
    return [(np.array([at]), some) for at, some in enumerate(nearest)]


def points_without(known: Doubles, place: int) -> Doubles:
    """Texts as points at distance 1; the one that is left out is nowhere, and has no part in anything."""
    points = unit_rows(known)
    if place != NOT_IN_LIBRARY:
        points[place] = 0.0
    return points
