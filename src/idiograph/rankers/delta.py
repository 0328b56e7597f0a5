"""Burrows's Delta and its kin: z-scores of the most frequent words. What stylometrists reach for first."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import SpecError
from idiograph.rankers.counts import WordFeatures, most_frequent
from idiograph.rankers.library import Library
from idiograph.rankers.rates import Fit, LearnedRates, Nearness, fit_eder, fit_entropy, fit_z_scores, table_of
from idiograph.spec import unknown_choice
from idiograph.text.words import SIMPLE_TOKEN

DISTANCES: dict[str, tuple[Fit, Nearness]] = {
    "burrows": (fit_z_scores, "distance"),
    "cosine": (fit_z_scores, "angle"),
    "eder": (fit_eder, "distance"),
    "entropy": (fit_entropy, "distance"),
}


class Delta:
    """Delta over the `features` most frequent words of a library.

    `culling` leaves out the words that are in fewer than this share of the texts. `compare` knows no library: it takes
    words and marks of all the texts compared, and cosine only.
    """

    name = "delta"

    def __init__(self, features: int = 500, distance: str = "cosine", culling: float = 0.0) -> None:
        if distance not in DISTANCES:
            raise SpecError(unknown_choice("distance", distance, DISTANCES))
        if features < 1 or not 0 <= culling <= 1:
            raise SpecError(f"Delta takes at least 1 word and a culling from 0 to 1, not {features} and {culling}")
        self.features, self.distance, self.culling = features, distance, culling

    def learn(self, library: Library) -> LearnedRates:
        """Count the words of a library. Which are the most frequent, their means and spreads leave out what is asked about."""
        fit, nearness = DISTANCES[self.distance]
        table = table_of(most_frequent(library.texts, WordFeatures(), self.features, self.culling))
        return LearnedRates(self.name, library, (table,), fit, nearness)

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        counts = count_tokens([*a, *b])
        total = sum(counts, Counter())
        chosen = [word for word, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))[: self.features]]
        return compare_rates(counts[: len(a)], counts[len(a) :], chosen)


def count_tokens(texts: Sequence[str]) -> list[Counter[str]]:
    """How often each word and each mark stands in each text, whatever its case."""
    return [Counter(SIMPLE_TOKEN.findall(text.lower())) for text in texts]


def compare_rates(a: Sequence[Counter[str]], b: Sequence[Counter[str]], tokens: Sequence[str]) -> NDArray[np.float32]:
    """Cosine of the z-scores of how often the given tokens are used, over all the texts: (len(a), len(b))."""
    scores = standard_rates([*a, *b], tokens)
    return (scores[: len(a)] @ scores[len(a) :].T).astype(np.float32)


def standard_rates(counts: Sequence[Counter[str]], tokens: Sequence[str]) -> NDArray[np.float64]:
    """The z-scores of how often each text uses the given tokens, as rows of length 1: (texts, tokens)."""
    rates = np.array([[count[token] / max(count.total(), 1) for token in tokens] for count in counts])
    spread = rates.std(axis=0)
    scores = (rates - rates.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return scores / np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1e-12)
