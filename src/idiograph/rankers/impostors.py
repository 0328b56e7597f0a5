"""The General Imposters method: are two texts nearer to each other than either is to a crowd of others, time and again?

Each round takes half of the features and a few of the others at random. The score is the share of rounds in which the
pair wins, from both sides; min-max similarity over the most frequent character n-grams, as in the literature (Koppel and
Winter, 2014; Kestemont and others, 2016).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.rankers.counts import (
    Doubles,
    LetterFeatures,
    left_out_places,
    most_frequent,
    questions_by_place,
)
from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores
from idiograph.rankers.tfidf import LearnedTfIdf, learn_tfidf, log_counts
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
        frequent = most_frequent(library.texts, LetterFeatures(self.size), self.features)
        crowd = call_impostors(library, self.rounds, self.called, self.seed)
        return LearnedImpostors(learn_tfidf(self.name, library, frequent), crowd, self.share, self.called, self.seed)

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

    weights: LearnedTfIdf
    crowd: "Crowd"
    share: float
    called: int
    seed: int

    @property
    def name(self) -> str:
        return self.weights.name

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """(texts, library): from 0 to 1, the mean of 1 / rank of a text of the library among the impostors called against it."""
        library, frequent = self.weights.library, self.weights.frequent
        scores = np.zeros((len(texts), len(library)))
        places = left_out_places(left_out, len(texts), len(library))
        asked = log_counts(frequent.count(texts).table)
        for place, which in questions_by_place(places):
            columns = np.sort(frequent.choose(place))
            weight = np.sqrt(self.weights.weights(place)[columns])
            known = normal_rows(self.weights.logs[:, columns].toarray() * weight)
            rounds = np.arange(self.crowd.places.shape[1])[:, None]
            chosen = uniform(frequent.counts.keys[columns], self.seed, rounds) < self.share  # (rounds, features)
            for at in which:
                question = normal_rows(asked[[at]][:, columns].toarray() * weight)
                scores[at] = self._mean_rank(min_max(question, known, chosen.astype(float)), place)
                scores[at] *= question.any()
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


def normal_rows(rows: Doubles) -> Doubles:
    """Each row with length 1; rows of zeros stay as they are."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def min_max(question: Doubles, known: Doubles, chosen: Doubles) -> Doubles:
    """What two texts have in common over what either has, with the features of each round: (rounds, texts)."""
    low = chosen @ np.minimum(known, question).T
    both = chosen @ known.T + chosen @ question.T  # the larger of two numbers is their sum less the smaller
    return low / np.maximum(both - low, 1e-9)
