"""Habits that are stable in a writer and differ between writers, learned from a library whose writers are known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idiograph.rankers.counts import Doubles, LetterFeatures, WordFeatures, most_frequent
from idiograph.rankers.library import Library
from idiograph.rankers.rates import LearnedRates, Transform, fit_z_scores, table_of

LETTERS_IN_A_ROW = 3
LEAST_DIFFERENCE, SMOOTHING = 0.05, 0.2  # of the variance between writers, where all of the variance is 1


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
