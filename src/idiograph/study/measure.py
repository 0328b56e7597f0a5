"""One model on one bench: scores in, measures of every anchor out, and what else the tables need. Numpy alone."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idiograph.measures.ranking import triplet_accuracy
from idiograph.study.bench import Bench, Bools, Doubles, Ints

MEASURES = ("R@20", "R@100", "nDCG@20", "nDCG@100", "Hit@1", "RR")
DEPTH = 100  # ranks that are kept of a ranking
Scores = NDArray[np.float32]


def rank_bench(scores: Scores, own: Bools | None) -> Ints:
    """(A, P): the pool from the best to the worst; spans of the anchor's own document come last if they are given."""
    shown = scores if own is None else np.where(own, -np.inf, scores)
    return np.argsort(-shown, axis=1, kind="stable")


def scores_per_anchor(order: Ints, relevant: Bools, names: Sequence[str] = MEASURES) -> Doubles:
    """(A, M): each measure of each anchor, all anchors at once; NaN where nothing is relevant."""
    ranked, totals = np.take_along_axis(relevant, order, axis=1), relevant.sum(axis=1)
    found = np.stack([mean_of_scores(name, ranked, totals) for name in names], axis=1)
    found[totals == 0] = np.nan
    return found


def mean_of_scores(name: str, ranked: Bools, totals: Ints) -> Doubles:
    """One measure of every ranking, as `evaluate.measures` defines it for one."""
    kind, _, cutoff = name.partition("@")
    if kind == "RR":
        return ranked.any(axis=1) / (ranked.argmax(axis=1) + 1.0)
    top, size = ranked[:, : int(cutoff)], int(cutoff)
    if kind == "Hit":
        return np.asarray(top.any(axis=1), np.float64)
    if kind == "R":
        return top.sum(axis=1) / np.maximum(totals, 1)
    discount = 1 / np.log2(np.arange(2, size + 2))
    gain = (top * discount[: top.shape[1]]).sum(axis=1)
    return gain / np.cumsum(discount)[np.clip(totals, 1, size) - 1]


def read_bench(scores: Scores, bench: Bench, keep_own: bool = False) -> dict[str, Doubles]:
    """The measures of every anchor and the outcome of every triplet."""
    own = bench.own()
    relevant = bench.relevant()
    order = rank_bench(scores, None if keep_own else own)
    anchor, positive, negative = bench.triplets.T
    won = triplet_accuracy(scores[anchor, positive], scores[anchor, negative])
    return {"measures": scores_per_anchor(order, relevant if keep_own else relevant & ~own), "triplets": won}


def alignment(vectors: Scores, bench: Bench) -> Doubles:
    """The squared distance of anchor and positive, for every triplet; `vectors` are of unit length, one a text."""
    anchor, positive = bench.anchors[bench.triplets[:, 0]], bench.pool[bench.triplets[:, 1]]
    return np.square(vectors[anchor] - vectors[positive]).sum(axis=1, dtype=np.float64)


def uniformity_parts(vectors: Scores, anchors: Ints, limit: int = 2000) -> Doubles:
    """For each anchor the mean of exp(−2 d²) to other anchors: the log of their mean is the uniformity."""
    some = vectors[anchors[:limit]].astype(np.float64)
    kernel = np.exp(-2 * (2 - 2 * np.clip(some @ some.T, -1, 1)))
    return (kernel.sum(axis=1) - 1) / max(len(some) - 1, 1)


def pair_cosines(vectors: Scores, bench: Bench) -> Doubles:
    """(T, 2): of anchor and positive, of anchor and negative."""
    anchor, positive, negative = bench.triplets.T
    a = vectors[bench.anchors[anchor]]
    near, far = vectors[bench.pool[positive]], vectors[bench.pool[negative]]
    return np.stack([(a * near).sum(axis=1), (a * far).sum(axis=1)], axis=1).astype(np.float64)
