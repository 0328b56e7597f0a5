"""The General Imposters method: are two texts nearer to each other than either is to a crowd of others, time and again?

Each round takes half of the features and a few of the others at random. The score is the share of rounds in which the
pair wins, from both sides; min-max similarity over the most frequent character n-grams, as in the literature (Koppel and
Winter, 2014; Kestemont and others, 2016).
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Impostors:
    """Verification against a crowd. `independent` says whether a text of the crowd may stand against a text of the pair."""

    name = "impostors"

    def __init__(
        self,
        crowd: Sequence[str],
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
