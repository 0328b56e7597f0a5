"""Learning from other rankers: what they make of a batch together, for a model to agree with.

A label says which passage is the positive; a teacher says of every passage how near it is. Models are read both ways, because
likeness has no direction, and some of what a passage gets from all anchors is taken off, because some are near to everything.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from idiograph.neural.encoder import Encoder
from idiograph.neural.validate import Reader
from idiograph.style.blend import Blend, standard
from idiograph.style.model import Ranker, Style
from idiograph.style.patches import Patches

POPULAR = 0.5  # the share of a passage's mean score over the anchors that is taken off


@dataclass(frozen=True, slots=True)
class Teacher:
    """A ranker, or a blend of several."""

    ranker: Ranker

    def __call__(self, anchors: Sequence[str], others: Sequence[str]) -> NDArray[np.float32]:
        """How near each of the others is to each anchor: (anchors, others), each row with mean 0 and spread 1."""
        parts = self.ranker.parts if isinstance(self.ranker, Blend) else ((1.0, self.ranker),)
        total = np.zeros((len(anchors), len(others)))
        for weight, part in parts:
            total += weight * likeness(part, anchors, others)
        return standard((total - POPULAR * total.mean(axis=0)).astype(np.float32)).astype(np.float32)


def likeness(ranker: Ranker, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float64]:
    """What one ranker says, on one scale; of a model the mean of both directions."""
    if not isinstance(ranker, Style):
        return standard(ranker.compare(a, b))
    mean = ranker.score == "meansim"
    on = ranker.encoder.model.device if isinstance(ranker.encoder, Encoder) else torch.device("cpu")
    precision = (lambda: torch.autocast("cuda", torch.bfloat16)) if on.type == "cuda" else nullcontext
    reader = Reader(None, mean=mean, precision=precision)
    left, right = rows_of(ranker.encode(a), on), rows_of(ranker.encode(b), on)
    return (standard(reader.scores(left, right)) + standard(reader.scores(right, left).T)) / 2


def rows_of(patches: Patches, on: torch.device) -> list[Tensor]:
    """The patches of each text, on the device of the model."""
    return list(torch.from_numpy(patches.vectors).to(on).split(patches.lengths.tolist()))
