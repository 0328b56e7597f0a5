"""How good a model is while it trains: retrieval on a fixed pool, triplet accuracy, alignment and uniformity.

A quick reading for choosing a checkpoint. The figures that are reported come from `idiograph evaluate`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idiograph.errors import InputError
from idiograph.measures.ranking import measure_rankings, rank_scores, triplet_accuracy
from idiograph.neural.maxsim.padded import torch_maxsim
from idiograph.neural.training.batches import encode_triplets
from idiograph.neural.training.boundaries import reads_apart
from idiograph.neural.training.distributed import stack
from idiograph.neural.training.loss import lowered_scores
from idiograph.neural.triplets import Triplets
from idiograph.style.tokens import Bools, Ints

MEASURES = ("R@20", "nDCG@20", "Hit@1")
CHOSEN_BY = "R@20"
ROWS = 64  # anchors scored at once
TOKENS = 16_384  # padded tokens in one pass


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """Anchors and a pool, both fixed. Spans of an anchor's own document are no candidates for it."""

    texts: tuple[str, ...]
    anchors: Ints  # positions in `texts`
    pool: Ints
    relevant: Bools  # (anchors, pool)
    own: Bools  # (anchors, pool) from the anchor's document
    triplets: Ints  # (n, 3) position among the anchors, and of positive and negative in the pool


def probe(triplets: Triplets, anchors: int = 500, pool: int = 4000, seed: int = 7) -> Probe:
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


@dataclass(frozen=True, slots=True, eq=False)
class PatchReader:
    """How texts become patches: a model as it stands, without gradient."""

    model: Any
    prompt: str = ""
    longest: int = 512
    mean: bool = True
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext

    @torch.no_grad()
    def embed(self, texts: Sequence[str], task: str = "document") -> list[Tensor]:
        """The patches of each text."""
        found: dict[int, Tensor] = {}
        for part in probe_parts(texts, self.longest):
            ids, mask = encode_triplets(self.model.tokenizer, [texts[at] for at in part], self.prompt, self.longest)
            features: dict[str, Any] = {
                "input_ids": ids.to(self.model.device),
                "attention_mask": mask.to(self.model.device),
            }
            features |= {"prompt_length": 1} if self.prompt else {}
            with self.precision():
                output = self.model(features, task=task)
            kept = output["attention_mask"].bool()
            found |= {at: row[m].float() for at, row, m in zip(part, output["token_embeddings"], kept, strict=True)}
        return [found[at] for at in range(len(texts))]

    @torch.no_grad()
    def scores(self, a: Sequence[Tensor], b: Sequence[Tensor]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`."""
        order = sorted(range(len(b)), key=lambda at: len(b[at]))  # like with like: less padding
        result = np.empty((len(a), len(b)), np.float32)
        for columns in (order[at : at + 4 * ROWS] for at in range(0, len(b), 4 * ROWS)):
            with self.precision():
                right = pad_patches([b[at] for at in columns])
            for begin in range(0, len(a), ROWS):
                with self.precision():
                    found = torch_maxsim(*pad_patches(a[begin : begin + ROWS]), *right, self.mean)
                result[begin : begin + ROWS, columns] = found.float().cpu().numpy()
        return result


def pad_patches(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    ones = [torch.ones(1, len(row), dtype=torch.bool, device=row.device) for row in rows]
    vectors, mask = stack([row[None] for row in rows], ones)
    return lowered_scores(vectors), mask


def probe_parts(texts: Sequence[str], longest: int) -> Iterator[list[int]]:
    """Groups of texts of like length, about TOKENS tokens each."""
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    group: list[int] = []
    for at in order:
        width = min(len(texts[at]) // 3 + 2, longest)
        if group and (len(group) + 1) * width > TOKENS:
            yield group
            group = []
        group.append(at)
    if group:
        yield group


def examine(reader: PatchReader, probes: Mapping[str, Probe]) -> dict[str, float]:
    """The measures of each probe, and `score`: the mean of their R@20, by which checkpoints are chosen."""
    training = reader.model.training
    reader.model.eval()
    try:
        found = {name: read_probe(reader, one) for name, one in probes.items()}
    finally:
        reader.model.train(training)
    flat = {f"{name}/{measure}": value for name, values in found.items() for measure, value in values.items()}
    return flat | {"score": float(np.mean([values[CHOSEN_BY] for values in found.values()]))}


def read_probe(reader: PatchReader, one: Probe) -> dict[str, float]:
    patches = reader.embed(one.texts)
    anchors, pool = [patches[at] for at in one.anchors], [patches[at] for at in one.pool]
    if reads_apart(reader.model):
        anchors = reader.embed([one.texts[at] for at in one.anchors], "query")
    scores = reader.scores(anchors, pool)
    anchor, positive, negative = one.triplets.T
    won = triplet_accuracy(scores[anchor, positive], scores[anchor, negative])
    order = rank_scores(scores, one.own)
    rankings = measure_rankings(order, one.relevant & ~one.own, MEASURES)
    found = {name: float(values.mean()) for name, values in rankings.items()}
    if len(won):
        found["triplet accuracy"] = float(won.mean())
        found |= alignment_and_uniformity(patches, one)
    return found


def alignment_and_uniformity(patches: Sequence[Tensor], one: Probe) -> dict[str, float]:
    """Alignment, the mean squared distance of anchor and positive, and uniformity, the log of the mean of exp(−2 d²)
    over all pairs; of texts' mean vectors, whatever the grain, so that grains can be compared. Lower is better."""
    means = nn.functional.normalize(torch.stack([rows.mean(dim=0) for rows in patches]), dim=-1)
    anchors, pool = means[torch.from_numpy(one.anchors)], means[torch.from_numpy(one.pool)]
    near = (anchors[one.triplets[:, 0]] - pool[one.triplets[:, 1]]).square().sum(dim=-1).mean()
    some = means[: 4 * ROWS * 10]
    uniformity = torch.pdist(some).square().mul(-2).exp().mean().log()
    return {"alignment": float(near), "uniformity": float(uniformity)}
