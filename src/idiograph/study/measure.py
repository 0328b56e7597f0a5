"""One model on one bench: scores in, measures of every anchor out, and what else the tables need. Numpy alone."""

import numpy as np
from numpy.typing import NDArray

from idiograph.measures.ranking import measure_rankings, rank_scores, triplet_accuracy
from idiograph.study.bench import Bench, Doubles, Ints

MEASURES = ("R@20", "R@100", "nDCG@20", "nDCG@100", "Hit@1", "RR")
DEPTH = 100  # ranks that are kept of a ranking
Scores = NDArray[np.float32]


def read_bench(scores: Scores, bench: Bench, keep_own: bool = False) -> dict[str, Doubles]:
    """`measures`: (A, M), of every anchor, NaN where nothing is relevant; `triplets`: the outcome of each."""
    own, relevant = bench.own(), bench.relevant()
    order = rank_scores(scores, None if keep_own else own)
    measures = measure_rankings(order, relevant if keep_own else relevant & ~own, MEASURES)
    anchor, positive, negative = bench.triplets.T
    won = triplet_accuracy(scores[anchor, positive], scores[anchor, negative])
    return {"measures": np.stack(list(measures.values()), axis=1), "triplets": won}


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
