"""What training makes small. Every loss sees texts only through `maxsim`, so one kernel serves all of them.

infonce      find the positive among all candidates: the positives and negatives of every row, on every device
triplet      the positive must be nearer than the negative by a margin
margin       positives near, negatives further than a margin, each pair for itself
hard-margin  the same, but only pairs that are in the wrong order somewhere in the batch
hybrid       a mixture of triplet and infonce

A distance is 1 − score. All are means over the anchors, so that neither the batch nor the number of devices scales the
gradient.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from sentence_transformers.multi_vector_encoder.losses import CachedMultiVectorMultipleNegativesRankingLoss
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from idiograph.errors import InputError
from idiograph.neural.maxsim.padded import lower_precision, torch_maxsim
from idiograph.neural.maxsim.soft import RATE, Alignment, align
from idiograph.neural.training.boundaries import boundary_penalty, reads_anchors_differently, samples_anchors
from idiograph.neural.training.distributed import (
    extreme,
    gather,
    gather_padded,
    mean_of_all,
    process_rank,
    stack,
    world,
)
from idiograph.recipe import TrainRecipe

START = 0.05  # a temperature at which a mean cosine discriminates; learning begins here
SMALLEST, LARGEST = 0.005, 1000.0  # between these a learned temperature stays


@dataclass(frozen=True, slots=True, eq=False)
class LossPatches:
    """The patches of some texts. `weights` say how much each counts where it looks for a match; without them, one."""

    vectors: Tensor  # (n, P, d)
    mask: Tensor  # (n, P)
    weights: Tensor | None = None  # (n, P)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Anchors against candidates, and where each anchor's own positive and negatives are."""

    matrix: Tensor  # (anchors, candidates)
    positive: Tensor  # (anchors,) column of the positive
    negatives: Tensor  # (anchors, n) columns of the row's own negatives
    false: Tensor | None = None  # (anchors, candidates) by the same author-set, but not the positive

    @property
    def of_positive(self) -> Tensor:
        return self.matrix.gather(1, self.positive[:, None])  # (anchors, 1)

    @property
    def of_negatives(self) -> Tensor:
        return self.matrix.gather(1, self.negatives)  # (anchors, n)


def infonce(scores: Scores, tau: Tensor) -> Tensor:
    """Cross-entropy of the positive among the candidates. A false negative takes no part and gets no gradient."""
    logits = scores.matrix / tau
    if scores.false is not None:
        logits = logits.masked_fill(scores.false, -torch.inf)
    return nn.functional.cross_entropy(logits, scores.positive)


def agreement(scores: Scores, teacher_scores: Tensor, tau: Tensor, sharpness: float) -> Tensor:
    """Cross-entropy of what a teacher would choose among the candidates; it is least where both choose alike. A false
    negative takes no part."""
    logits, wanted = scores.matrix / tau, teacher_scores.to(scores.matrix) / sharpness
    if scores.false is not None:
        logits, wanted = (t.masked_fill(scores.false, -torch.inf) for t in (logits, wanted))
    said = logits.log_softmax(dim=1)
    said = said if scores.false is None else said.masked_fill(scores.false, 0)
    return -(wanted.softmax(dim=1) * said).sum(dim=1).mean()


def triplet(scores: Scores, margin: float) -> Tensor:
    return (scores.of_negatives - scores.of_positive + margin).relu().mean()


def pairwise(scores: Scores, margin: float) -> Tensor:
    near = (1 - scores.of_positive).square().mean()
    far = (margin - (1 - scores.of_negatives)).relu().square().mean()
    return (near + far) / 2


def hard_pairwise(scores: Scores, margin: float) -> Tensor:
    """Positives further away than the nearest negative of the batch, and negatives nearer than its furthest positive."""
    near, far = 1 - scores.of_positive, 1 - scores.of_negatives
    nearest, furthest = extreme(far.min(), largest=False), extreme(near.max(), largest=True)
    wrong = near.square() * (near > nearest)
    intruding = (margin - far).relu().square() * (far < furthest)
    return (wrong.mean() + intruding.mean()) / 2


LOSSES: dict[str, Callable[["Scores", Tensor, TrainRecipe], Tensor]] = {
    "hard-margin": lambda scores, _, s: hard_pairwise(scores, s.margin),
    "hybrid": lambda scores, tau, s: s.mix * triplet(scores, s.margin) + (1 - s.mix) * infonce(scores, tau),
    "infonce": lambda scores, tau, _: infonce(scores, tau),
    "margin": lambda scores, _, s: pairwise(scores, s.margin),
    "triplet": lambda scores, _, s: triplet(scores, s.margin),
}
WITH_TAU = ("hybrid", "infonce")


class Objective(nn.Module):
    """From the patches of anchors, positives and negatives to a loss. Holds the temperature, which may be learned."""

    def __init__(self, recipe: TrainRecipe) -> None:
        super().__init__()
        self.recipe = recipe
        learned = recipe.tau == "learn" and recipe.loss in WITH_TAU
        start = START if recipe.tau == "learn" else recipe.tau
        self.log_tau = nn.Parameter(torch.tensor(math.log(start)), requires_grad=learned)
        self.register_buffer("started", torch.tensor(recipe.tau != "learn" or recipe.score == "meansim"))
        if recipe.decay != "none":
            self.rate = nn.Parameter(torch.tensor(RATE))
        self.teacher_scores: Tensor | None = None  # what a teacher makes of the batch that comes next
        self.negatives = torch.zeros(())  # candidates from which an anchor of the last batch was to tell its positive

    @property
    def tau(self) -> Tensor:
        return self.log_tau.exp().clamp(SMALLEST, LARGEST)

    def forward(self, roles: Sequence[LossPatches], labels: Tensor | None = None) -> Tensor:
        """`roles` are the anchors, positives, negatives … of as many rows; `labels` (rows, roles) their author-sets."""
        if len(roles) < 3 and self.recipe.loss != "infonce":
            raise InputError(f"loss '{self.recipe.loss}' needs triplets, but the rows are pairs; use 'infonce'")
        self._start(roles[0])
        if self.recipe.loss in WITH_TAU:
            return self._among_all(roles, labels)
        scores = arrange(self.score(roles[0], join_roles(roles[1:])), len(roles) - 1)
        self.negatives = torch.tensor(float(len(roles) - 2))
        return LOSSES[self.recipe.loss](scores, self.tau, self.recipe)

    @torch.no_grad()
    def _start(self, anchors: LossPatches) -> None:
        """A sum of cosines needs a temperature that grows with the number of patches; the first batch says how many."""
        if not self.started:
            counted = anchors.mask if anchors.weights is None else anchors.weights
            self.log_tau += mean_of_all(counted.sum(dim=1).float().mean()).log().to(self.log_tau)
            self.started.fill_(True)

    def _among_all(self, roles: Sequence[LossPatches], labels: Tensor | None) -> Tensor:
        """The candidates are those of all devices; so are the anchors, where the positives look for them in turn."""
        sets = gather(labels) if labels is not None and self.recipe.mask_false_negatives else None
        own = labels[:, 0] if labels is not None else None
        found = self.score(roles[0], gather_roles(roles[1:]))
        scores = arrange(found, len(roles) - 1, own, None if sets is None else sets[:, 1:].T.flatten())
        self._count(scores)
        loss = LOSSES[self.recipe.loss](scores, self.tau, self.recipe)
        if self.teacher_scores is not None:
            share = self.recipe.teaching
            loss = (1 - share) * loss + share * agreement(
                scores, self.teacher_scores, self.tau, self.recipe.teacher_tau
            )
        if not self.recipe.symmetric:
            return loss
        found = self.score(roles[1], gather_roles(roles[:1]))
        turned = arrange(found, 1, own, None if sets is None else sets[:, 0])
        return (loss + infonce(turned, self.tau)) / 2

    def score(self, a: LossPatches, b: LossPatches) -> Tensor:
        """Every text of `a` against every text of `b`, in float32."""
        if self.recipe.match != "max" or self.recipe.decay != "none":
            return self._aligned(a, b)
        mean, vectors = self.recipe.score == "meansim", a.vectors
        if a.weights is not None:  # a positive factor passes through a maximum
            vectors = vectors * a.weights.unsqueeze(-1)
        vectors, others = lower_precision(vectors), lower_precision(b.vectors)
        step = self.recipe.score_rows or len(vectors)
        parts: list[Any] = [
            checkpoint(torch_maxsim, v, m, others, b.mask, mean and a.weights is None, use_reentrant=False)
            if step < len(vectors)
            else torch_maxsim(v, m, others, b.mask, mean and a.weights is None)
            for v, m in zip(vectors.split(step), a.mask.split(step), strict=True)
        ]
        found = torch.cat(parts).float()
        return found / a.weights.sum(dim=1, keepdim=True) if mean and a.weights is not None else found

    def _aligned(self, a: LossPatches, b: LossPatches) -> Tensor:
        """The same with a softer idea of a match."""
        how = Alignment(self.recipe.match, self.recipe.match_tau, self.recipe.decay)
        weights = a.mask.float() if a.weights is None else a.weights
        total = align(a.vectors, weights, b.vectors, b.mask, how, getattr(self, "rate", None), self.recipe.score_rows)
        return total / weights.sum(dim=1, keepdim=True) if self.recipe.score == "meansim" else total

    def _count(self, scores: Scores) -> None:
        others = scores.matrix.shape[1] - 1
        masked = 0.0 if scores.false is None else scores.false.sum(dim=1).float().mean()
        self.negatives = torch.as_tensor(others - masked)  # a tensor: asking for its value would make the GPU wait


def arrange(matrix: Tensor, columns: int, own: Tensor | None = None, theirs: Tensor | None = None) -> Scores:
    """Say where the matches are: the candidates are `columns` blocks of rows, and the match of this device's row i is in
    the first block, at row i of this device. `own` and `theirs` are the author-sets of both sides."""
    count, rows = len(matrix), matrix.shape[1] // columns
    place = torch.arange(count, device=matrix.device) + (process_rank() * count if rows > count else 0)
    negatives = place[:, None] + rows * torch.arange(1, columns, device=matrix.device)[None]
    if own is None or theirs is None:
        return Scores(matrix, place, negatives)
    false = (own[:, None] == theirs[None]).scatter(1, place[:, None], False)
    return Scores(matrix, place, negatives, false)


def join_roles(roles: Sequence[LossPatches]) -> LossPatches:
    """Several roles end to end."""
    return LossPatches(*stack([role.vectors for role in roles], [role.mask for role in roles]))


def gather_roles(roles: Sequence[LossPatches]) -> LossPatches:
    """The same of all devices: the first role of every device in turn, then the second …"""
    one = join_roles(roles)
    vectors, mask = gather_padded(one.vectors, one.mask)
    shape = world(), len(roles), -1
    return LossPatches(*(t.unflatten(0, shape).transpose(0, 1).flatten(0, 2) for t in (vectors, mask)))


def merge_columns(columns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The columns of a batch as one, so that a model sees them in a single pass."""
    widest = max(column["input_ids"].shape[1] for column in columns)
    merged: dict[str, Any] = {
        key: torch.cat([nn.functional.pad(c[key], (0, widest - c[key].shape[1])) for c in columns])
        for key in ("input_ids", "attention_mask")
    }
    return merged | {key: columns[0][key] for key in ("prompt_length",) if key in columns[0]}


class Contrastive(nn.Module):
    """The loss of a batch, with one pass of the model over all its texts. A sentence-transformers loss.

    `share` scales it: of a batch that is taken in k parts, each part has the share 1 / k.
    """

    def __init__(self, model: Any, objective: Objective, share: float = 1.0) -> None:
        super().__init__()
        self.model, self.objective, self.share = model, objective, share

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        columns = list(sentence_features)
        if reads_anchors_differently(self.model):
            return self._anchors_first(columns, labels) * self.share
        rows = len(columns[0]["input_ids"])
        output = self.model(merge_columns(columns), task="document")
        return self.objective(split(output, rows), labels) * self.share

    def _anchors_first(self, columns: Sequence[dict[str, Any]], labels: Tensor | None) -> Tensor:
        """Anchors for themselves: the published code leaves punctuation out of them alone, and draws their boundaries."""
        rows = len(columns[0]["input_ids"])
        anchors = self.model(merge_columns(columns[:1]), task="query")
        others = self.model(merge_columns(columns[1:]), task="document")
        loss = self.objective([*split(anchors, rows), *split(others, rows)], labels)
        return loss + boundary_penalty(self.model, anchors) if samples_anchors(self.model) else loss


def split(output: dict[str, Any], rows: int) -> list[LossPatches]:
    """What a model made of several columns of `rows` texts, column by column."""
    vectors, masks = output["token_embeddings"].split(rows), output["attention_mask"].bool().split(rows)
    weights = output["patch_weights"].split(rows) if "patch_weights" in output else [None] * len(masks)
    return [LossPatches(*column) for column in zip(vectors, masks, weights, strict=True)]


class CachedContrastive(CachedMultiVectorMultipleNegativesRankingLoss):
    """The same loss and gradient in the memory of `rows` texts at a time, for twice the forward passes (GradCache)."""

    def __init__(self, model: Any, objective: Objective, rows: int, share: float = 1.0) -> None:
        super().__init__(model, mini_batch_size=rows)
        self.objective, self.share = objective, share
        self._labels: Tensor | None = None

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        self._labels = labels
        columns: list[dict[str, Any]] = [{**column, "task": "document"} for column in sentence_features]
        if reads_anchors_differently(self.model):
            columns[0]["task"] = "query"
        return super().forward(columns, labels)

    def calculate_loss(
        self, reps: list[list[Tensor]], masks_chunks: list[list[Tensor]], *, with_backward: bool = False
    ) -> Tensor:
        roles = [LossPatches(*stack(r, m)) for r, m in zip(reps, masks_chunks, strict=True)]
        loss = self.objective(roles, self._labels) * self.share
        if with_backward:
            loss.backward()
            loss = loss.detach()
        return loss
