"""Measures of rankings, by their ir-measures names: R@20, Hit@5, nDCG@20, RR. All queries at once.

Relevance is a matrix of queries by ranks, from the first rank down; beside it stands how much is relevant to each query.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import SpecError
from idiograph.spec import unknown_choice

Bools = NDArray[np.bool_]
Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Measure = Callable[[Bools, Longs], Doubles]  # (queries, ranks) and (queries,) → (queries,)


def recall_at(ranked: Bools, totals: Longs, cutoff: int) -> Doubles:
    """Which part of the relevant ones is among the first `cutoff`."""
    return np.asarray(ranked[:, :cutoff].sum(axis=1) / np.maximum(totals, 1))


def hit_at(ranked: Bools, totals: Longs, cutoff: int) -> Doubles:  # noqa: ARG001
    """Is any relevant one among the first `cutoff`?"""
    return np.asarray(ranked[:, :cutoff].any(axis=1), np.float64)


def ndcg(ranked: Bools, totals: Longs, cutoff: int) -> Doubles:
    """Gain discounted by log2 of the rank, over the best that could be had."""
    discount = 1 / np.log2(np.arange(2, cutoff + 2))
    top = ranked[:, :cutoff]
    gain = top @ discount[: top.shape[1]]
    return gain / np.cumsum(discount)[np.clip(totals, 1, cutoff) - 1]


def reciprocal_rank(ranked: Bools, totals: Longs) -> Doubles:  # noqa: ARG001
    """1 / rank of the first relevant one; 0 without any."""
    return ranked.any(axis=1) / (ranked.argmax(axis=1) + 1.0)


AT_CUTOFF: dict[str, Callable[[Bools, Longs, int], Doubles]] = {"Hit": hit_at, "R": recall_at, "nDCG": ndcg}
PLAIN: dict[str, Measure] = {"RR": reciprocal_rank}


def parse_measure(name: str) -> Measure:
    """The measure that a name such as `nDCG@20` stands for."""
    parts = re.fullmatch(r"(\w+)@([1-9]\d*)", name)
    if parts and parts[1] in AT_CUTOFF:
        at_cutoff, cutoff = AT_CUTOFF[parts[1]], int(parts[2])
        return lambda ranked, totals: at_cutoff(ranked, totals, cutoff)
    if name in PLAIN:
        return PLAIN[name]
    raise SpecError(unknown_choice("measure", name, [*(f"{m}@K" for m in AT_CUTOFF), *PLAIN]))


def rank_scores(scores: NDArray[np.floating], left_out: Bools | None = None) -> Longs:
    """(queries, pool): places in the pool from the best to the worst, those left out last.

    Ties go by the place in the pool, which knows nothing of authors.
    """
    allowed = scores if left_out is None else np.where(left_out, -np.inf, scores)
    return np.argsort(-allowed, axis=1, kind="stable")


def measure_rankings(order: Longs, relevant: Bools, names: Sequence[str]) -> dict[str, Doubles]:
    """Each measure of each query: `order` holds places in the pool by rank, `relevant` is (queries, pool).

    Not a number where nothing is relevant.
    """
    ranked, totals = np.take_along_axis(relevant, order, axis=1), relevant.sum(axis=1)
    return {name: np.where(totals > 0, parse_measure(name)(ranked, totals), np.nan) for name in names}


def rank_needed(name: str) -> int | None:
    """Down to which rank a measure looks; none: to the end.

    >>> rank_needed("nDCG@20"), rank_needed("RR")
    (20, None)
    """
    _, at, cutoff = name.partition("@")
    return int(cutoff) if at else None


def triplet_accuracy(positive: NDArray[np.float32], negative: NDArray[np.float32]) -> NDArray[np.float64]:
    """1 where the positive scores higher, 0 where the negative does, a half for a tie."""
    return np.where(positive > negative, 1.0, np.where(positive == negative, 0.5, 0.0))
