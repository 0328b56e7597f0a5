"""The first stages of a search: which passages may be near, told from one short vector of each, and which of these are
worth an exact score, told from a few vectors of the question.

The sketch of a passage is the mean of its patches, scaled to unit length, in 8 bits. Measured against centroid lists, centroid
MaxSim and fixed-dimensional encodings it finds most of what MaxSim finds for every number of candidates, and it has nothing
to learn: see `docs/log/2026-11-16-candidates.md`. A passage of many patches has a match for more of a question than its
mean tells, so a little is added for their number. The patches of what is found so are then compared with the question's,
of which neighbours are averaged; what is left after that is scored exactly.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idiograph.index.quantize import pack_vectors, to_bytes, unpack_single_patches
from idiograph.style.patches import Patches, ragged_rows, unit_vectors
from idiograph.style.tokens import Floats, Ints

DTYPE = "int8"
MIN_CANDIDATES, CANDIDATE_SHARE = 1000, 0.03  # what gave 0.98 of the nearest 20 at 10,000 and at 100,000 passages
LENGTH_BONUS = 0.03  # a passage of e times as many patches seems so much nearer; 0.02 to 0.05 were alike
VECTORS_PER_QUESTION = 16  # that candidates are compared with; 12 lost a little, 24 gained nothing
MIN_FINALISTS, FINALISTS_PER_ANSWER = 300, 5  # candidates that are scored exactly
SKETCHES_PER_BLOCK = 2_048  # made wide at once; all of them kept wide took twice as long, and four times the memory


def count_candidates(passages: int, k: int, depth: int | None) -> int:
    """How many candidates to score exactly: as asked for, or 1000 and at least 3 % of the passages.

    >>> count_candidates(5_000, 10, None), count_candidates(100_000, 10, None), count_candidates(5_000, 10, 200)
    (1000, 3000, 200)
    """
    return max(k, max(MIN_CANDIDATES, math.ceil(CANDIDATE_SHARE * passages)) if depth is None else depth)


def count_finalists(depth: int, k: int) -> int:
    """How many of so many candidates are scored with all patches of the question: all, unless half of them can go.

    >>> count_finalists(3000, 10), count_finalists(3000, 100), count_finalists(1000, 100)
    (300, 500, 1000)
    """
    last = max(MIN_FINALISTS, FINALISTS_PER_ANSWER * k)
    return last if 2 * last < depth else depth


def pool_neighbours(patches: Patches) -> Patches:
    """Texts in few vectors: the means of neighbouring patches. One that has few is left as it is."""
    counts = np.where(patches.lengths < 2 * VECTORS_PER_QUESTION, patches.lengths, VECTORS_PER_QUESTION)
    within = ragged_rows(np.zeros(len(counts), np.int64), counts)
    starts = np.repeat(patches.starts, counts) + within * np.repeat(patches.lengths, counts) // np.repeat(
        counts, counts
    )
    ends = np.append(starts[1:], len(patches.vectors)) - 1
    chars = np.stack([patches.chars[starts, 0], patches.chars[ends, 1]], axis=1)
    return Patches(unit_vectors(np.add.reduceat(patches.vectors, starts, axis=0)), counts, chars)


def mean_vectors(patches: Patches) -> Floats:
    """The mean of each text's patches, scaled to unit length: (n, d)."""
    return unit_vectors(
        np.add.reduceat(patches.vectors, patches.starts, axis=0)
    )  # the length of a mean does not outlive scaling


def sketches(patches: Patches) -> list[bytes]:
    """What is kept of each text for the first stage."""
    found = mean_vectors(patches)
    return to_bytes(pack_vectors(as_patches(found), DTYPE))


def as_patches(vectors: Floats) -> Patches:
    """Texts of one patch each."""
    return Patches(vectors, np.ones(len(vectors), np.int64), np.zeros((len(vectors), 2), np.int64))


@dataclass(frozen=True)
class Sketches:
    """The sketches of all passages, ready to be compared."""

    codes: NDArray[np.int8]  # (n, d)
    scales: Floats  # (n,)
    ahead: Floats  # (n,) how much nearer each seems for the number of its patches

    @classmethod
    def of(cls, stored: memoryview | bytes, dim: int, patches: Ints) -> "Sketches":
        """`stored` are the sketches end to end, `patches` how many patches each passage has."""
        packed = unpack_single_patches(stored, dim, DTYPE)
        return cls(packed.codes, packed.scales.astype(np.float32), (LENGTH_BONUS * np.log(patches)).astype(np.float32))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Ints) -> "Sketches":
        return Sketches(self.codes[rows], self.scales[rows], self.ahead[rows])

    def compare(self, asked: Patches, rows: Ints) -> Floats:
        """How near some passages, in their order, seem to each text: (texts, rows)."""
        if len(rows) == len(self):
            return self.compare_all(mean_vectors(asked))
        if len(rows) > len(self) // 4:  # to copy that many costs more than to compare all
            return self.compare_all(mean_vectors(asked))[:, rows]
        return self.take(rows).compare_all(mean_vectors(asked))

    def compare_all(self, wanted: Floats) -> Floats:
        """How near all passages seem to some means: (means, passages)."""
        scores = np.empty((len(wanted), len(self)), np.float32)
        for at in range(0, len(self), SKETCHES_PER_BLOCK):
            scores[:, at : at + SKETCHES_PER_BLOCK] = (
                self.codes[at : at + SKETCHES_PER_BLOCK].astype(np.float32) @ wanted.T
            ).T
        return scores * self.scales + self.ahead

    def nearest(self, asked: Patches, allowed: Ints, count: int) -> list[tuple[Ints, Floats]]:
        """For each text the `count` passages that seem nearest among those allowed, in their order, and how near."""
        scores = self.compare(asked, allowed)
        chosen = [highest_scores(row, count) for row in scores]
        return [(allowed[at], row[at]) for row, at in zip(scores, chosen, strict=True)]


def highest_scores(scores: Floats, count: int) -> Ints:
    """Where the `count` highest scores are, in order of place; of equal ones the first.

    >>> highest_scores(np.array([0.1, 0.9, 0.5, 0.5], np.float32), 2).tolist()
    [1, 2]
    """
    if len(scores) <= count:
        return np.arange(len(scores))
    edge = np.partition(scores, len(scores) - count)[len(scores) - count]
    above, at_edge = np.flatnonzero(scores > edge), np.flatnonzero(scores == edge)
    return np.sort(np.concatenate([above, at_edge[: count - len(above)]]))
