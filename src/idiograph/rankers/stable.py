"""Habits that are stable in a writer and differ between writers, learned from a library whose writers are known."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from idiograph.rankers.counts import Doubles, LetterFeatures, WordFeatures, most_frequent
from idiograph.rankers.library import Library
from idiograph.rankers.rates import LearnedRates, Transform, fit_z_scores, table_of


class Stable:
    """Cosine of the z-scores of frequent words and letters, each scaled by how little it varies within one writer's texts.

    As within-class normalisation does in speaker recognition. The variation within writers is drawn towards that of the
    whole library as if `prior` further texts had shown it; a library with one text of each writer gives plain z-scores.
    """

    name = "stable"

    def __init__(self, words: int = 500, letters: int = 2000, prior: float = 20.0) -> None:
        self.words, self.letters, self.prior = words, letters, prior

    def learn(self, library: Library) -> LearnedRates:
        """Count a library; what is stable in its writers is learned without the text that is asked about."""
        words = table_of(most_frequent(library.texts, WordFeatures(), self.words))
        letters = table_of(most_frequent(library.texts, LetterFeatures(3), self.letters))
        return LearnedRates(self.name, library, (words, letters), partial(fit_stable, prior=self.prior))


def fit_stable(rates: Doubles, authors: Sequence[str], prior: float = 20.0) -> Transform:
    """Z-scores, divided by how much they vary within the texts of one writer."""
    standard = fit_z_scores(rates, authors)
    within, degrees = variation_within(standard(rates), authors)
    scale = 1 / np.sqrt((within + prior) / (degrees + prior))
    return lambda rows: standard(rows) * scale


def variation_within(rows: Doubles, authors: Sequence[str]) -> tuple[Doubles, int]:
    """The sum of squares around each author's mean, and from how many free differences it comes."""
    names, owner, sizes = np.unique(authors, return_inverse=True, return_counts=True)
    member = (owner == np.arange(len(names))[:, None]) / sizes[:, None]  # (authors, texts)
    return ((rows - (member @ rows)[owner]) ** 2).sum(axis=0), len(rows) - len(names)
