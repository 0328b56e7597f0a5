"""The General Imposters method: are two texts nearer to each other than either is to a crowd of others, time and again?

Each round takes half of the features and a few of the others at random. The score of two texts alone is the share of rounds in
which the pair wins, from both sides; min-max similarity over the most frequent character n-grams, as in the literature (Koppel
and Winter, 2014; Kestemont and others, 2016). Among a library the cosine of z-scored rates takes its place: min-max similarity
puts whoever wrote at the question's length first, so that short questions to a library of novels had hardly an answer right.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.rankers.counts import Doubles, LetterFeatures, most_frequent
from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores
from idiograph.rankers.rates import LearnedRates, fit_z_scores, table_of
from idiograph.seeded import keys, uniform

Floats = NDArray[np.float32]
Called = NDArray[np.int64]
TIE = 1e-9  # nearer than this, two texts are equally near: sums in another order differ by less


class Impostors:
    """Verification against a crowd. `independent` says whether a text of the crowd may stand against a text of the pair."""

    name = "impostors"

    def __init__(
        self,
        crowd: Sequence[str] = (),
        *,
        rounds: int = 100,
        share: float = 0.5,
        called: int = 10,
        features: int = 2000,
        size: int = 4,
        independent: Callable[[str, str], bool] = str.__ne__,
        seed: int = 7,
    ) -> None:
        self.crowd = list(dict.fromkeys(crowd))
        self.rounds, self.share, self.called, self.features, self.size = rounds, share, called, features, size
        self.independent, self.seed = independent, seed

    def learn(self, library: Library) -> "LearnedImpostors":
        """Count a library; the impostors of one of its texts are the texts by other authors, and no other crowd."""
        table = table_of(most_frequent(library.texts, LetterFeatures(self.size), self.features))
        crowd = call_impostors(library, self.rounds, self.called, self.seed)
        rates = LearnedRates(self.name, library, (table,), fit_z_scores)
        return LearnedImpostors(rates, crowd, self.share, self.called, self.seed)

    @cached_property
    def _weigher(self) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        grams = (self.size, self.size)
        return TfidfVectorizer(analyzer="char", ngram_range=grams, max_features=self.features).fit(self.crowd)

    def _rows(self, texts: Sequence[str]) -> Floats:
        return np.asarray(self._weigher.transform(texts).toarray(), np.float32)

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """The score of each pair, from 0 to 1; a pair's rounds depend on its place in the list and the seed alone."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: at for at, text in enumerate(texts)}
        rows, crowd = self._rows(texts), self._rows(self.crowd)
        scores = np.zeros(len(pairs))
        for number, (a, b) in enumerate(pairs):
            random = np.random.default_rng((self.seed, number))
            free = [at for at, text in enumerate(self.crowd) if self.independent(text, a) and self.independent(text, b)]
            drawn = random.permutation(free)[: 5 * self.called]
            for one, two in ((a, b), (b, a)):
                scores[number] += 0.5 * self._won(rows[place[one]], rows[place[two]], crowd[drawn], random)
        return scores

    def _won(self, one: Floats, two: Floats, others: Floats, random: np.random.Generator) -> float:
        """The share of rounds in which `two` is nearer to `one` than all the impostors called."""
        rivals = np.concatenate([two[None], others])  # (1 + impostors, features)
        chosen = (random.random((self.rounds, rivals.shape[1])) < self.share).astype(np.float32)
        low, high = np.minimum(rivals, one), np.maximum(rivals, one)
        near = (chosen @ low.T) / np.maximum(chosen @ high.T, 1e-9)  # (rounds, 1 + impostors)
        count = min(self.called, len(others))
        called = np.argsort(random.random((self.rounds, len(others))), axis=1)[:, :count]
        best = np.take_along_axis(near[:, 1:], called, axis=1).max(axis=1, initial=0.0)
        return float(((near[:, 0] > best) + 0.5 * (near[:, 0] == best)).mean())

    def compare(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        pairs = [(one, two) for one in a for two in b]
        return self.score_pairs(pairs).reshape(len(a), len(b)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class LearnedImpostors:
    """A library, and the texts of others that are called against each of its authors in each round."""

    rates: LearnedRates
    crowd: "Crowd"
    share: float
    called: int
    seed: int

    @property
    def name(self) -> str:
        return self.rates.name

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """(texts, library): from 0 to 1, the mean of 1 / rank of a text of the library among the impostors called against it."""
        scores = np.zeros((len(texts), len(self.rates.library)))
        rounds = np.arange(self.crowd.places.shape[1])[:, None]
        for place, which, questions, known, keys_ in self.rates.coordinates(texts, left_out):
            chosen = uniform(keys_, self.seed, rounds) < self.share  # (rounds, features)
            for at, question in zip(which, questions, strict=True):
                near = masked_angles(question, known, chosen.astype(float))
                scores[at] = self._mean_rank(near, place) * question.any()
            if place != NOT_IN_LIBRARY:
                scores[which, place] = np.nan
        return scores

    def _mean_rank(self, near: Doubles, place: int) -> Doubles:
        """The mean over the rounds of 1 / rank of each text among its impostors; `near` is (rounds, texts)."""
        called, owner = self.crowd.places, self.crowd.owner  # (authors, rounds, called + 1)
        allowed = (called != place) & (called >= 0)
        allowed &= np.cumsum(allowed, axis=2) <= self.called
        rivals = np.take_along_axis(near[None], np.maximum(called, 0).reshape(len(called), len(near), -1), axis=2)
        rivals = np.where(allowed, rivals, -np.inf)[owner]  # (texts, rounds, called + 1)
        mine = near.T[:, :, None]
        before = (rivals > mine + TIE).sum(axis=2) + 0.5 * (np.abs(rivals - mine) <= TIE).sum(axis=2)
        return (1 / (1 + before)).mean(axis=1)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Which texts of a library are called against each of its authors in each round, one more than needed; -1: none is left."""

    places: Called  # (authors, rounds, called + 1)
    owner: Called  # of each text of the library


def call_impostors(library: Library, rounds: int, called: int, seed: int) -> Crowd:
    """Draw texts by others for each author and round. What is drawn depends on the texts and the seed, not on their order."""
    names, owner = np.unique(library.authors, return_inverse=True)
    drawn = uniform(keys(seed, library.texts), seed, np.arange(rounds)[:, None])  # (rounds, texts)
    order = np.argsort(drawn, axis=1, kind="stable")
    places = np.full((len(names), rounds, called + 1), -1)
    for author in range(len(names)):
        others = order[owner[order] != author].reshape(rounds, -1)[:, : called + 1]
        places[author, :, : others.shape[1]] = others
    return Crowd(places, owner)


def masked_angles(question: Doubles, known: Doubles, chosen: Doubles) -> Doubles:
    """The cosine of a question with each text over the features of each round: (rounds, texts)."""
    together = chosen @ (known * question).T
    lengths = (chosen @ (known**2).T) * (chosen @ question**2)[:, None]
    return together / np.sqrt(np.maximum(lengths, 1e-24))
