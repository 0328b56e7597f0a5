"""How good a model is while it trains: retrieval on a fixed pool, triplet accuracy, alignment and uniformity.

A quick reading for choosing a checkpoint. The figures that are reported come from `idiograph evaluate`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from idiograph.errors import InputError
from idiograph.measures.ranking import measure_rankings, rank_scores, triplet_accuracy
from idiograph.neural.reader import DevicePatches, PatchReader
from idiograph.neural.training.boundaries import reads_anchors_differently
from idiograph.neural.triplets import Triplets
from idiograph.style.tokens import Bools, Ints

MEASURES = ("R@20", "nDCG@20", "Hit@1")
CHOSEN_BY = "R@20"
TEXTS_FOR_UNIFORMITY = 2560  # of whose pairs the mean is taken


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """Anchors and a pool, both fixed. Spans of an anchor's own document are no candidates for it."""

    texts: tuple[str, ...]
    anchors: Ints  # positions in `texts`
    pool: Ints
    relevant: Bools  # (anchors, pool)
    own: Bools  # (anchors, pool) from the anchor's document
    triplets: Ints  # (n, 3) position among the anchors, and of positive and negative in the pool


def draw_probe(triplets: Triplets, anchors: int = 500, pool: int = 4000, seed: int = 7) -> Probe:
    """At most `anchors` anchors with their positives and negatives, and other passages until the pool is full."""
    chance = np.random.default_rng(seed)
    rows = triplets.rows[chance.permutation(len(triplets))]
    _, first = np.unique(rows[:, 0], return_index=True)
    rows = rows[np.sort(first)[:anchors]]  # one row an anchor
    near, rest = np.unique(rows[:, 1:]), np.unique(triplets.rows[:, 1:])
    more = chance.permutation(np.setdiff1d(rest, near))[: max(pool - len(near), 0)]
    chosen = np.concatenate([near, more])
    place = {int(text): at for at, text in enumerate(chosen)}
    relevant = triplets.labels[rows[:, 0]][:, None] == triplets.labels[chosen][None]
    own = triplets.documents[rows[:, 0]][:, None] == triplets.documents[chosen][None]
    keep = (relevant & ~own).any(axis=1)
    if not keep.any():
        raise InputError(f"no anchor of '{triplets.name}' has a passage by its author-set from another document")
    numbers = [(at, place[int(row[1])], place[int(row[2])]) for at, row in enumerate(rows[keep]) if len(row) > 2]
    used = np.concatenate([rows[keep, 0], chosen])
    texts = tuple(triplets.texts[int(at)] for at in used)
    split = int(keep.sum())
    triples = np.array(numbers, dtype=np.int64).reshape(-1, 3)
    return Probe(texts, np.arange(split), np.arange(split, len(used)), relevant[keep], own[keep], triples)


def examine(reader: PatchReader, probes: Mapping[str, Probe], mean: bool = True) -> dict[str, float]:
    """The measures of each probe, and `score`: the mean of their R@20, by which checkpoints are chosen."""
    training = reader.model.training
    reader.model.eval()
    try:
        found = {name: read_probe(reader, one, mean) for name, one in probes.items()}
    finally:
        reader.model.train(training)
    flat = {f"{name}/{measure}": value for name, values in found.items() for measure, value in values.items()}
    return flat | {"score": float(np.mean([values[CHOSEN_BY] for values in found.values()]))}


def read_probe(reader: PatchReader, one: Probe, mean: bool = True) -> dict[str, float]:
    patches = reader.read(one.texts)
    anchors, pool = patches.take(one.anchors), patches.take(one.pool)
    if reads_anchors_differently(reader.model):
        anchors = reader.read([one.texts[at] for at in one.anchors], "query")
    scores = reader.scores(anchors, pool, mean)
    anchor, positive, negative = one.triplets.T
    won = triplet_accuracy(scores[anchor, positive], scores[anchor, negative])
    order = rank_scores(scores, one.own)
    rankings = measure_rankings(order, one.relevant & ~one.own, MEASURES)
    found = {name: float(values.mean()) for name, values in rankings.items()}
    if len(won):
        found["triplet accuracy"] = float(won.mean())
        found |= alignment_and_uniformity(patches, one)
    return found


def alignment_and_uniformity(patches: DevicePatches, one: Probe) -> dict[str, float]:
    """Alignment, the mean squared distance of anchor and positive, and uniformity, the log of the mean of exp(−2 d²)
    over all pairs; of texts' mean vectors, whatever the grain, so that grains can be compared. Lower is better."""
    means = torch.from_numpy(patches.means())
    anchors, pool = means[one.anchors], means[one.pool]
    near = (anchors[one.triplets[:, 0]] - pool[one.triplets[:, 1]]).square().sum(dim=-1).mean()
    uniformity = torch.pdist(means[:TEXTS_FOR_UNIFORMITY]).square().mul(-2).exp().mean().log()
    return {"alignment": float(near), "uniformity": float(uniformity)}
