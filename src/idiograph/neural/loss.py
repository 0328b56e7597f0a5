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
from typing import Any, Literal

import torch
from sentence_transformers.multi_vector_encoder.losses import CachedMultiVectorMultipleNegativesRankingLoss
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from idiograph.errors import InputError, SpecError
from idiograph.neural.gather import extreme, gather, gather_padded, mean_of_all, rank, stack, world
from idiograph.neural.maxsim import maxsim
from idiograph.spec import unknown

START = 0.05  # a temperature at which a mean cosine discriminates; learning begins here
SMALLEST, LARGEST = 0.005, 1000.0  # between these a learned temperature stays


@dataclass(frozen=True, slots=True)
class LossSettings:
    """Which loss. `tau` and `margin` are in the units of the score: a mean cosine, or with `maxsim` a sum of them."""

    loss: str = "infonce"
    tau: float | Literal["learn"] = "learn"
    score: Literal["meansim", "maxsim"] = "meansim"
    margin: float = 0.2
    mix: float = 0.5  # the share of the triplet loss in `hybrid`
    symmetric: bool = False
    mask_false_negatives: bool = True
    score_rows: int = 0  # anchors scored at once, 0 for all: less memory, and the scores are computed twice

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise SpecError(unknown("loss", self.loss, LOSSES))
        if self.tau != "learn" and not self.tau > 0:
            raise SpecError(f"tau must be above 0 or 'learn', but got {self.tau}")


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


LOSSES: dict[str, Callable[["Scores", Tensor, LossSettings], Tensor]] = {
    "hard-margin": lambda scores, _, s: hard_pairwise(scores, s.margin),
    "hybrid": lambda scores, tau, s: s.mix * triplet(scores, s.margin) + (1 - s.mix) * infonce(scores, tau),
    "infonce": lambda scores, tau, _: infonce(scores, tau),
    "margin": lambda scores, _, s: pairwise(scores, s.margin),
    "triplet": lambda scores, _, s: triplet(scores, s.margin),
}
WITH_TAU = ("hybrid", "infonce")


class Objective(nn.Module):
    """From the patches of anchors, positives and negatives to a loss. Holds the temperature, which may be learned."""

    def __init__(self, settings: LossSettings) -> None:
        super().__init__()
        self.settings = settings
        learned = settings.tau == "learn" and settings.loss in WITH_TAU
        start = START if settings.tau == "learn" else settings.tau
        self.log_tau = nn.Parameter(torch.tensor(math.log(start)), requires_grad=learned)
        self.register_buffer("started", torch.tensor(settings.tau != "learn" or settings.score == "meansim"))
        self.negatives = torch.zeros(())  # candidates from which an anchor of the last batch was to tell its positive

    @property
    def tau(self) -> Tensor:
        return self.log_tau.exp().clamp(SMALLEST, LARGEST)

    def forward(self, vectors: Sequence[Tensor], masks: Sequence[Tensor], labels: Tensor | None = None) -> Tensor:
        """`vectors` and `masks` per role: anchors, positives, negatives …; `labels` (rows, roles), the author-sets."""
        if len(vectors) < 3 and self.settings.loss != "infonce":
            raise InputError(f"loss '{self.settings.loss}' needs triplets, but the rows are pairs; use 'infonce'")
        self._start(masks[0])
        if self.settings.loss in WITH_TAU:
            return self._among_all(vectors, masks, labels)
        scores = self._scores(vectors[0], masks[0], *stack(vectors[1:], masks[1:]), columns=len(vectors) - 1)
        self._count(scores, scores.negatives.shape[1])
        return LOSSES[self.settings.loss](scores, self.tau, self.settings)

    @torch.no_grad()
    def _start(self, mask: Tensor) -> None:
        """A sum of cosines needs a temperature that has grown with the number of patches; the first batch says how many."""
        if not self.started:
            patches = mean_of_all(mask.sum(dim=1).float().mean())
            self.log_tau += patches.log().to(self.log_tau)
            self.started.fill_(True)

    def _among_all(self, vectors: Sequence[Tensor], masks: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The candidates are those of all devices; so are the anchors, if the positives look for them in turn."""
        turned = self.settings.symmetric
        first = 0 if turned else 1
        wide, mask = stack(vectors[first:], masks[first:])
        roles = len(vectors) - first
        wide, mask = gather_padded(wide, mask)
        by_role = regroup(wide, roles), regroup(mask, roles)  # each (roles, rows of all, …)
        sets = None if labels is None or not self.settings.mask_false_negatives else (labels, gather(labels))
        skip = 1 if turned else 0
        candidates = by_role[0][skip:].flatten(0, 1), by_role[1][skip:].flatten(0, 1)
        scores = self._scores(vectors[0], masks[0], *candidates, columns=len(vectors) - 1, sets=sets)
        self._count(scores, scores.matrix.shape[1] - 1)
        loss = LOSSES[self.settings.loss](scores, self.tau, self.settings)
        if not turned:
            return loss
        back = self._scores(vectors[1], masks[1], by_role[0][0], by_role[1][0], columns=1, sets=sets, anchors=True)
        return (loss + infonce(back, self.tau)) / 2

    def _scores(
        self,
        a: Tensor,
        a_mask: Tensor,
        b: Tensor,
        b_mask: Tensor,
        columns: int,
        sets: tuple[Tensor, Tensor] | None = None,
        anchors: bool = False,
    ) -> Scores:
        """`b` holds `columns` blocks of rows, the first of which has the match of each row of `a` in its place."""
        matrix = self._maxsim(a, a_mask, b, b_mask).float()
        rows = len(b) // columns
        offset = rank() * len(a) if rows > len(a) else 0
        own = torch.arange(len(a), device=a.device) + offset
        negatives = own[:, None] + rows * torch.arange(1, columns, device=a.device)[None]
        false = None
        if sets is not None:
            theirs = sets[1][:, 0] if anchors else sets[1][:, 1:].T.flatten()
            false = sets[0][:, :1] == theirs[None]
            false = false.scatter(1, own[:, None], torch.zeros_like(own[:, None], dtype=torch.bool))
        return Scores(matrix, own, negatives, false)

    def _maxsim(self, a: Tensor, a_mask: Tensor, b: Tensor, b_mask: Tensor) -> Tensor:
        mean, step = self.settings.score == "meansim", self.settings.score_rows or len(a)
        if step >= len(a):
            return maxsim(a, a_mask, b, b_mask, mean)
        parts = [
            checkpoint(maxsim, a[at : at + step], a_mask[at : at + step], b, b_mask, mean, use_reentrant=False)
            for at in range(0, len(a), step)
        ]
        return torch.cat(parts)  # pyright: ignore[reportArgumentType]

    def _count(self, scores: Scores, others: int) -> None:
        masked = torch.zeros(()) if scores.false is None else scores.false.sum(dim=1).float().mean()
        self.negatives = others - masked  # a tensor: asking for its value would make the GPU wait


def regroup(rows: Tensor, roles: int) -> Tensor:
    """Rows as they come from the devices, (device, role, row), put by role: (roles, devices × rows, …)."""
    return rows.unflatten(0, (world(), roles, -1)).transpose(0, 1).flatten(1, 2)


def merge(columns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The columns of a batch as one, so that a model sees them in a single pass."""
    widest = max(column["input_ids"].shape[1] for column in columns)
    merged: dict[str, Any] = {
        key: torch.cat([nn.functional.pad(c[key], (0, widest - c[key].shape[1])) for c in columns])
        for key in ("input_ids", "attention_mask")
    }
    return merged | {key: columns[0][key] for key in ("prompt_length",) if key in columns[0]}


class Contrastive(nn.Module):
    """The loss of a batch, with one pass of the model over all its texts. A sentence-transformers loss."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        columns = list(sentence_features)
        output = self.model(merge(columns), task="document")
        rows = len(columns[0]["input_ids"])
        vectors, masks = output["token_embeddings"].split(rows), output["attention_mask"].bool().split(rows)
        return self.objective(vectors, masks, labels)


class CachedContrastive(CachedMultiVectorMultipleNegativesRankingLoss):
    """The same loss and gradient in the memory of `rows` texts at a time, for twice the forward passes (GradCache)."""

    def __init__(self, model: Any, objective: Objective, rows: int) -> None:
        super().__init__(model, mini_batch_size=rows)
        self.objective = objective
        self._labels: Tensor | None = None

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        self._labels = labels
        return super().forward([{**column, "task": "document"} for column in sentence_features], labels)

    def calculate_loss(
        self, reps: list[list[Tensor]], masks_chunks: list[list[Tensor]], *, with_backward: bool = False
    ) -> Tensor:
        columns = [stack(r, m) for r, m in zip(reps, masks_chunks, strict=True)]
        loss = self.objective([v for v, _ in columns], [m for _, m in columns], self._labels)
        if with_backward:
            loss.backward()
            loss = loss.detach()
        return loss
