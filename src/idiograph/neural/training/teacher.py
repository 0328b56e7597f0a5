"""Learning from other rankers: what they make of a batch together, for a model to agree with.

A label says which passage is the positive; a teacher says of every passage how near it is. Models are read both ways, because
likeness has no direction, and some of what a passage gets from all anchors is taken off, because some are near to everything.
Rankers without a model judge while the batch is made, in another thread; models look at it where they are, all at once.
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
    """A batch as a teacher sees it: token ids for its models, and what the rankers without a model have said."""

    teacher: "Teacher"
    said: Tensor  # (anchors, others)
    read: Mapping[str, tuple[Tensor, Tensor]]  # for each way of reading the ids and mask of all texts, anchors first
    rows: slice  # of the anchors, those that this device trains on

    def to(self, device: torch.device) -> "TeacherBatch":
        there = {"device": device, "non_blocking": True}
        moved = {way: (ids.to(**there), mask.to(**there)) for way, (ids, mask) in self.read.items()}
        return replace(self, said=self.said.to(**there), read=moved)

    @torch.no_grad()
    def judged(self) -> Tensor:
        """How near each of the others is to each anchor: (anchors, others), each row with mean 0 and spread 1."""
        total = self.said
        for member in self.teacher.models:
            total = total + member.weight * member.likeness(*self.read[member.way], len(total))
        return standardize(total - POPULAR * total.mean(dim=0))[self.rows]


class Teacher:
    """A ranker, or a blend of several. No text is read beyond `longest` tokens, as the pupil does not either."""

    def __init__(self, ranker: Ranker, longest: int = 512, device: str | torch.device | None = None) -> None:
        parts = ranker.parts if isinstance(ranker, Blend) else ((1.0, ranker),)
        self.models = tuple(Member.of(weight, one, device) for weight, one in parts if has_model(one))
        self.others = tuple((weight, one) for weight, one in parts if not has_model(one))
        self.longest = longest

    def lesson(self, anchors: Sequence[str], others: Sequence[str], rows: slice = EVERY) -> TeacherBatch:
        """What can be done before the batch is where the models are."""
        said = np.zeros((len(anchors), len(others)))
        for weight, ranker in self.others:
            said += weight * standard_rows(ranker.compare(anchors, others))
        texts = [*anchors, *others]
        ways = {member.way: member for member in self.models}  # models with one vocabulary read the same tokens
        read = {way: member.encode(texts, self.longest) for way, member in ways.items()}
        return TeacherBatch(self, torch.from_numpy(said.astype(np.float32)), read, rows)


def has_model(ranker: Ranker) -> bool:
    return isinstance(ranker, Style) and isinstance(ranker.encoder, TorchEncoder)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A model that teaches, with what its word counts for."""

    weight: float
    encoder: Any
    mean: bool
    way: str  # what becomes of a text before the model sees it: a hash of tokenizer, prompt and window

    @classmethod
    def of(cls, weight: float, style: Any, device: str | torch.device | None) -> "Member":
        """The model of a style, set to read at its grain."""
        encoder = style.encoder
        encoder.layer.patch, encoder.layer.keep = style.patch, style.keep
        encoder.model.eval()
        if device is not None:
            encoder.model.to(device)
        said = (encoder.model.tokenizer.backend_tokenizer.to_str(), encoder.prompt, encoder.window)
        return cls(weight, encoder, style.score == "meansim", sha256(repr(said).encode()).hexdigest())

    def encode(self, texts: Sequence[str], longest: int) -> tuple[Tensor, Tensor]:
        return encode_texts(self.encoder.model.tokenizer, texts, self.encoder.prompt, min(longest, self.encoder.window))

    def likeness(self, ids: Tensor, mask: Tensor, anchors: int) -> Tensor:
        """The mean of both directions, each on one scale: (anchors, others)."""
        read = [self._read(*part) for part in zip(ids.split(TEXTS), mask.split(TEXTS), strict=True)]
        vectors, kept = stack([v for v, _ in read], [k for _, k in read])
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
