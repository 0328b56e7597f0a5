"""Learning from other rankers: the scores that they give to a batch together, for a model to agree with.

A label says which passage is the positive; a teacher says of every passage how near it is. Models read every pair both ways,
because likeness has no direction, and half of a passage's mean score over the anchors is taken off, because some passages are
near to everything. Rankers without a model score a batch while it is made, in another thread; models score it where they
are, all at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from idiograph.neural.encoder import TorchEncoder
from idiograph.neural.maxsim.padded import lower_precision, torch_maxsim
from idiograph.neural.reader import encode_texts, model_features
from idiograph.neural.training.distributed import stack
from idiograph.rankers.blend import Blend
from idiograph.rankers.blend import standard as standard_rows
from idiograph.style.model import Ranker, Style

POPULAR = 0.5  # the share of a passage's mean score over the anchors that is taken off
TEXTS = 256  # of the texts of a batch, those that are read or scored at once: a pupil in chunks has a small GPU
EVERY = slice(None)


@dataclass(frozen=True, slots=True, eq=False)
class TeacherBatch:
    """A batch as a teacher sees it: the scores of its rankers without a model, and token ids for its models."""

    teacher: "Teacher"
    baseline_scores: Tensor  # (anchors, others)
    tokens: Mapping[str, tuple[Tensor, Tensor]]  # for each way of reading the ids and mask of all texts, anchors first
    rows: slice  # of the anchors, those that this device trains on

    def to(self, device: torch.device) -> "TeacherBatch":
        place = {"device": device, "non_blocking": True}
        moved = {way: (ids.to(**place), mask.to(**place)) for way, (ids, mask) in self.tokens.items()}
        return replace(self, baseline_scores=self.baseline_scores.to(**place), tokens=moved)

    @torch.no_grad()
    def judge(self) -> Tensor:
        """How near each of the others is to each anchor: (anchors, others), each row with mean 0 and spread 1."""
        total = self.baseline_scores
        for model in self.teacher.models:
            total = total + model.weight * model.score_both_ways(*self.tokens[model.way], len(total))
        return standardize(total - POPULAR * total.mean(dim=0))[self.rows]


class Teacher:
    """A ranker, or a blend of several. No text is read beyond `longest` tokens, as the pupil does not either."""

    def __init__(self, ranker: Ranker, longest: int = 512, device: str | torch.device | None = None) -> None:
        parts = ranker.parts if isinstance(ranker, Blend) else ((1.0, ranker),)
        self.models = tuple(TeacherModel.of(weight, one, device) for weight, one in parts if has_model(one))
        self.others = tuple((weight, one) for weight, one in parts if not has_model(one))
        self.longest = longest

    def lesson(self, anchors: Sequence[str], others: Sequence[str], rows: slice = EVERY) -> TeacherBatch:
        """What can be done before the batch is where the models are."""
        scores = np.zeros((len(anchors), len(others)))
        for weight, ranker in self.others:
            scores += weight * standard_rows(ranker.compare(anchors, others))
        texts = [*anchors, *others]
        ways = {model.way: model for model in self.models}  # models with one vocabulary read the same tokens
        tokens = {way: model.encode(texts, self.longest) for way, model in ways.items()}
        return TeacherBatch(self, torch.from_numpy(scores.astype(np.float32)), tokens, rows)


def has_model(ranker: Ranker) -> bool:
    return isinstance(ranker, Style) and isinstance(ranker.encoder, TorchEncoder)


@dataclass(frozen=True, slots=True, eq=False)
class TeacherModel:
    """A model that teaches, with the weight of its scores."""

    weight: float
    encoder: Any
    mean: bool
    way: str  # what becomes of a text before the model sees it: a hash of tokenizer, prompt and window

    @classmethod
    def of(cls, weight: float, style: Any, device: str | torch.device | None) -> "TeacherModel":
        """The model of a style, set to read at its grain."""
        encoder = style.encoder
        encoder.layer.patch, encoder.layer.keep = style.patch, style.keep
        encoder.model.eval()
        if device is not None:
            encoder.model.to(device)
        way = (encoder.model.tokenizer.backend_tokenizer.to_str(), encoder.prompt, encoder.window)
        return cls(weight, encoder, style.score == "meansim", sha256(repr(way).encode()).hexdigest())

    def encode(self, texts: Sequence[str], longest: int) -> tuple[Tensor, Tensor]:
        longest = min(longest, self.encoder.window)
        return encode_texts(self.encoder.model.tokenizer, texts, self.encoder.prompt, longest)

    def score_both_ways(self, ids: Tensor, mask: Tensor, anchors: int) -> Tensor:
        """The mean of both directions, each on one scale: (anchors, others)."""
        parts = [self._read(*part) for part in zip(ids.split(TEXTS), mask.split(TEXTS), strict=True)]
        vectors, kept = stack([v for v, _ in parts], [k for _, k in parts])
        a, b = (vectors[:anchors], kept[:anchors]), (vectors[anchors:], kept[anchors:])
        return (standardize(self._scores(a, b)) + standardize(self._scores(b, a).T)) / 2

    def _read(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The patches of some texts, and which of them are not padding."""
        output = self.encoder.model(model_features(ids, mask, bool(self.encoder.prompt)), task="document")
        return lower_precision(output["token_embeddings"]), output["attention_mask"].bool()

    def _scores(self, a: tuple[Tensor, Tensor], b: tuple[Tensor, Tensor]) -> Tensor:
        rows = zip(a[0].split(TEXTS), a[1].split(TEXTS), strict=True)
        return torch.cat([torch_maxsim(vectors, kept, *b, self.mean).float() for vectors, kept in rows])


def standardize(scores: Tensor) -> Tensor:
    """Each row with mean 0 and spread 1; a row in which all are equal says nothing, and becomes 0."""
    centred = scores - scores.mean(dim=1, keepdim=True)
    spread = centred.square().mean(dim=1, keepdim=True).sqrt()
    return centred / torch.where(spread > 1e-6, spread, 1.0)
