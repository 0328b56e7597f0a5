"""What tells the writers of a library apart, learned from who wrote each text.

Habits that are stable in a writer and differ between writers; and ridge regression of letters or words onto all writers at once.
With regression a text that is merely near to many gains nothing by it, and that is where the nearest text goes wrong: what all
texts of a library share, or all of one topic, is shared out among them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from idiograph.rankers.counts import Doubles, FrequentFeatures, LetterFeatures, Places, WordFeatures, most_frequent
from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores
from idiograph.rankers.rates import (
    Coordinates,
    LearnedRates,
    Transform,
    fit_z_scores,
    name_parts,
    table_of,
    unit_rows,
)
from idiograph.rankers.tfidf import learn_tfidf

LETTERS_IN_A_ROW = 3
LEAST_DIFFERENCE, SMOOTHING = 0.05, 0.2  # of the variance between writers, where all of the variance is 1
RIDGE = 0.3  # how hard the parts are drawn towards 0, where a text's length is 1; a third or three times as much does as well
NEAREST_TEXTS = 200  # of the library have a part in a question; in a larger library the others count for nothing
TEXTS_WITH_A_WORD = 2  # of the library, so that the word counts


@dataclass(frozen=True, slots=True)
class Stable:
    """Cosine of the z-scores of frequent words and letters, each worth what it tells between writers and not within one.

    First each habit by itself: it is divided by how much it varies within one writer's texts, and multiplied by how much it
    differs between writers. Then all together, as within-class normalisation does in speaker recognition: what goes up and
    down together in the texts of one writer counts less. Where there are few texts of known writers both are drawn towards
    no difference at all, as if `prior` more texts had shown none (and, for all together, `joint_prior` times the number of
    features); a library with one text of each writer gives plain z-scores. Both were chosen on Hungarian novels and on the
    training parts of PAN14.
    """

    words: int = 500
    letters: int = 2000
    prior: float = 5.0
    joint_prior: float = 0.12

    @property
    def name(self) -> str:
        return "stable"

    def learn(self, library: Library) -> LearnedRates:
        """Count a library; what is stable in its writers is learned without the text that is asked about."""
        words = table_of(most_frequent(library.texts, WordFeatures(), self.words))
        letters = table_of(most_frequent(library.texts, LetterFeatures(LETTERS_IN_A_ROW), self.letters))
        return LearnedRates(self.name, library, (words, letters), self.fit)

    def fit(self, rates: Doubles, authors: Sequence[str]) -> Transform:
        """From rates to z-scores in which what is stable counts most."""
        standard = fit_z_scores(rates, authors)
        known = standard(rates)
        scale = scale_by_stability(differences_within(known, authors), len(known) - len(set(authors)), self.prior)
        flatten = flatten_within(differences_within(known * scale, authors), self.joint_prior * max(known.shape[1], 1))
        return lambda rows: flatten(standard(rows) * scale)


def differences_within(rows: Doubles, authors: Sequence[str]) -> Doubles:
    """How each text differs from the mean of its writer, for the writers with several texts."""
    names, owner, sizes = np.unique(authors, return_inverse=True, return_counts=True)
    member = (owner == np.arange(len(names))[:, None]) / sizes[:, None]  # (authors, texts)
    several = sizes[owner] > 1
    return rows[several] - (member @ rows)[owner[several]]


def scale_by_stability(differences: Doubles, degrees: int, prior: float) -> Doubles:
    """What each z-score is worth: the spread between writers over the spread within one."""
    within = ((differences**2).sum(axis=0) + prior) / (degrees + prior)
    between = np.maximum(1 + SMOOTHING - within, LEAST_DIFFERENCE)
    return np.sqrt(between / within)


def flatten_within(differences: Doubles, prior: float) -> Transform:
    """Shorten the directions in which texts of one writer differ, so that they differ alike in all directions.

    The inverse root of `differences.T @ differences + prior`, up to a factor, by way of the much smaller
    `differences @ differences.T`.
    """
    squares, turns = np.linalg.eigh(differences @ differences.T)  # (texts), (texts, texts)
    seen = squares > 1e-9 * max(squares.max(initial=0), 1e-9)
    directions = (turns[:, seen] / np.sqrt(squares[seen])).T @ differences  # (directions, features), of length 1
    shorter = 1 / np.sqrt(1 + squares[seen] / prior) - 1
    return lambda rows: rows + ((rows @ directions.T) * shorter) @ directions


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
