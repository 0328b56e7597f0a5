"""The first stage of a search: which passages may be near, told from one short vector of each.

The sketch of a passage is the mean of its patches, scaled to unit length, in 8 bits. Measured against centroid lists, centroid
MaxSim and fixed-dimensional encodings it finds most of what MaxSim finds for every number of candidates, and it has nothing
to learn: see `docs/results.md`. What is found so is scored exactly afterwards; no patches are read here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idiograph.answer.compact import Packed, from_bytes, pack, to_bytes, unpack
from idiograph.style.patches import Patches, unit
from idiograph.style.tokens import Floats, Ints

DTYPE = "int8"
LEAST, SHARE = 1000, 0.03  # candidates: what gave 0.98 of the nearest 20 at 10,000 and at 100,000 passages
BLOCK = 65_536  # sketches compared with all texts at once


def enough(passages: int, k: int, depth: int | None) -> int:
    """How many candidates to score exactly: as asked for, or 1000 and at least 3 % of the passages.

    >>> enough(5_000, 10, None), enough(100_000, 10, None), enough(5_000, 10, 200)
    (1000, 3000, 200)
    """
    return max(k, max(LEAST, math.ceil(SHARE * passages)) if depth is None else depth)


def means(patches: Patches) -> Floats:
    """The mean of each text's patches, scaled to unit length: (n, d)."""
    return unit(
        np.add.reduceat(patches.vectors, patches.starts, axis=0)
    )  # the length of a mean does not outlive scaling


def sketches(patches: Patches) -> list[bytes]:
    """What is kept of each text for the first stage."""
    found = means(patches)
    return to_bytes(pack(as_patches(found), DTYPE))


def as_patches(vectors: Floats) -> Patches:
    """Texts of one patch each."""
    return Patches(vectors, np.ones(len(vectors), np.int64), np.zeros((len(vectors), 2), np.int64))


@dataclass(frozen=True)
class Sketches:
    """The sketches of all passages, ready to be compared."""

    vectors: Floats  # (n, d)

    @classmethod
    def of(cls, stored: Sequence[memoryview | bytes], dim: int) -> "Sketches":
        packed: Packed = from_bytes(stored, dim, DTYPE)
        return cls(unpack(packed))

    def compared(self, asked: Patches, rows: Ints) -> Floats:
        """How near some passages, in their order, seem to each text: (texts, rows)."""
        among = self.vectors if len(rows) == len(self.vectors) else self.vectors[rows]
        wanted = means(asked)
        scores = np.empty((len(wanted), len(among)), np.float32)
        for at in range(0, len(among), BLOCK):
            scores[:, at : at + BLOCK] = wanted @ among[at : at + BLOCK].T
        return scores

    def nearest(self, asked: Patches, allowed: Ints, count: int) -> list[tuple[Ints, Floats]]:
        """For each text the `count` passages that seem nearest among those allowed, in their order, and how near."""
        scores = self.compared(asked, allowed)
        chosen = [highest(row, count) for row in scores]
        return [(allowed[at], row[at]) for row, at in zip(scores, chosen, strict=True)]


def highest(scores: Floats, count: int) -> Ints:
    """Where the `count` highest scores are, in order of place; of equal ones the first.

    >>> highest(np.array([0.1, 0.9, 0.5, 0.5], np.float32), 2).tolist()
    [1, 2]
    """
    if len(scores) <= count:
        return np.arange(len(scores))
    edge = np.partition(scores, len(scores) - count)[len(scores) - count]
    above, at_edge = np.flatnonzero(scores > edge), np.flatnonzero(scores == edge)
    return np.sort(np.concatenate([above, at_edge[: count - len(above)]]))
