"""Several rankers as one: what a model reads between the lines, and what counting letters sees on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idiograph.style.model import Ranker


@dataclass(frozen=True, slots=True)
class Blend:
    """The weighted sum of rankers. Each one's scores are brought to one scale first: mean 0 and spread 1 over the candidates
    of a text, so that only the order and the distances among these candidates count."""

    parts: tuple[tuple[float, Ranker], ...]

    @property
    def name(self) -> str:
        return " + ".join(ranker.name if weight == 1 else f"{weight:g}·{ranker.name}" for weight, ranker in self.parts)

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        total = np.zeros((len(a), len(b)))
        for weight, ranker in self.parts:
            total += weight * standard(ranker.compare(a, b))
        return total.astype(np.float32)


def standard(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Each row with mean 0 and spread 1; a row in which all are equal says nothing, and becomes 0."""
    centred = scores - scores.mean(axis=1, keepdims=True, dtype=np.float64)
    spread = centred.std(axis=1, keepdims=True)
    return centred / np.where(spread > 1e-12, spread, 1)
