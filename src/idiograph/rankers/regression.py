"""Ridge regression of frequent letters onto the writers of a library: what tells each writer from all the others at once.

A text that is merely near to many gains nothing by it, and that is where the nearest text goes wrong: what all texts of a
library share, or all of one topic, is shared out among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idiograph.rankers.counts import Doubles, LetterFeatures, Places, most_frequent
from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores
from idiograph.rankers.rates import LearnedRates, fit_z_scores, name_parts, table_of, unit_rows

NEAREST_TEXTS = 400  # of the library have a part in a question; in a larger library the others count for nothing


@dataclass(frozen=True, slots=True)
class Regression:
    """A question is written as a sum of the library's texts; an author scores the parts of all texts by the author.

    Texts are z-scores of frequent character n-grams, of length 1. Their size and number and how hard the parts are drawn
    towards 0 were chosen on Hungarian novels and the Federalist papers, where adding words gave no more.
    """

    size: int = 4
    features: int = 6000
    ridge: float = 0.3

    @property
    def name(self) -> str:
        return "regression"

    def learn(self, library: Library) -> "LearnedRegression":
        """Count a library; which n-grams are the most frequent, means, spreads and parts leave out what is asked about."""
        table = table_of(most_frequent(library.texts, LetterFeatures(self.size), self.features))
        rates = LearnedRates(self.name, library, (table,), fit_z_scores)
        _, owner = np.unique(library.authors, return_inverse=True)
        return LearnedRegression(
            rates, 1.0 * (owner == np.arange(len(set(library.authors)))[:, None]), owner, self.ridge
        )


@dataclass(frozen=True, slots=True)
class LearnedRegression:
    """A library as rates of n-grams, and which author has which text."""

    rates: LearnedRates
    member: Doubles  # (authors, texts): 1 or 0
    owner: Places  # of each text
    ridge: float

    @property
    def name(self) -> str:
        return self.rates.name

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """(texts, library): the share of each text's author; a text with none of the features scores 0."""
        scores = np.zeros((len(texts), len(self.owner)))
        for place, which, questions, known, _ in self.rates.coordinates(texts, left_out):
            points, asked = points_without(known, place), unit_rows(questions)
            for rows, some in self._neighbours(asked @ points.T):
                parts = asked[rows] @ self._directions(points, some).T  # (questions, authors)
                scores[which[rows]] = parts[:, self.owner]
            if place != NOT_IN_LIBRARY:
                scores[which, place] = np.nan
        return scores

    def shares(self, text: str, place: int, left_out: int = NOT_IN_LIBRARY) -> list[tuple[str, float]]:
        """What each n-gram adds to what the author of the text at `place` scores, the largest first; they sum to it."""
        ((_, _, questions, known, _),) = self.rates.coordinates([text], [left_out])
        points, (asked,) = points_without(known, left_out), unit_rows(questions)
        ((_, some),) = self._neighbours((points @ asked)[None])
        parts = asked * self._directions(points, some)[self.owner[place]]
        table = self.rates.tables[0].frequent
        texts = [text, self.rates.library.texts[place], *self.rates.library.texts]
        return name_parts(parts, [(table, table.choose(left_out))], texts)

    def _neighbours(self, near: Doubles) -> list[tuple[Places, Places]]:
        """Questions with the texts that may have a part in them; all together where these are all the texts."""
        count = near.shape[1]
        if count <= NEAREST_TEXTS:
            return [(np.arange(len(near)), np.arange(count))]
        nearest = np.argpartition(-near, NEAREST_TEXTS, axis=1)[:, :NEAREST_TEXTS]
        return [(np.array([at]), some) for at, some in enumerate(nearest)]

    def _directions(self, points: Doubles, some: Places) -> Doubles:
        """What a question is multiplied with to have the score of each author: (authors, features)."""
        mine = points[some]
        kernel = mine @ mine.T + self.ridge * np.eye(len(some))
        return np.linalg.solve(kernel, self.member[:, some].T).T @ mine


def points_without(known: Doubles, place: int) -> Doubles:
    """Texts as points at distance 1; the one that is left out is nowhere, and has no part in anything."""
    points = unit_rows(known)
    if place != NOT_IN_LIBRARY:
        points[place] = 0.0
    return points
