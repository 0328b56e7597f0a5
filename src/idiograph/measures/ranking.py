"""Measures of a ranking, by their ir-measures names: R@20, Hit@5, nDCG@20, RR. Each takes one query's ranked relevance."""

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import SpecError
from idiograph.spec import unknown_choice

Relevance = NDArray[np.bool_]  # relevant or not, from the first rank down
Measure = Callable[[Relevance, int], float]  # and how many relevant ones there are in all


def recall_at(ranked: Relevance, total: int, cutoff: int) -> float:
    """Which part of the relevant ones is among the first `cutoff`."""
    return float(ranked[:cutoff].sum()) / total


def hit_at(ranked: Relevance, total: int, cutoff: int) -> float:  # noqa: ARG001
    """Is any relevant one among the first `cutoff`?"""
    return float(ranked[:cutoff].any())


def ndcg(ranked: Relevance, total: int, cutoff: int) -> float:
    """Gain discounted by log2 of the rank, over the best that could be had."""
    discount = 1 / np.log2(np.arange(2, cutoff + 2))
    gain = float((ranked[:cutoff] * discount[: len(ranked[:cutoff])]).sum())
    return gain / float(discount[: min(total, cutoff)].sum())


def reciprocal_rank(ranked: Relevance, total: int) -> float:  # noqa: ARG001
    """1 / rank of the first relevant one."""
    return 1.0 / (int(ranked.argmax()) + 1) if ranked.any() else 0.0


AT_CUTOFF: dict[str, Callable[[Relevance, int, int], float]] = {"Hit": hit_at, "R": recall_at, "nDCG": ndcg}
PLAIN: dict[str, Measure] = {"RR": reciprocal_rank}


def parse_measure(name: str) -> Measure:
    """The measure that a name such as `nDCG@20` stands for."""
    found = re.fullmatch(r"(\w+)@([1-9]\d*)", name)
    if found and found[1] in AT_CUTOFF:
        at_cutoff, cutoff = AT_CUTOFF[found[1]], int(found[2])
        return lambda ranked, total: at_cutoff(ranked, total, cutoff)
    if name in PLAIN:
        return PLAIN[name]
    raise SpecError(unknown_choice("measure", name, [*(f"{m}@K" for m in AT_CUTOFF), *PLAIN]))


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
