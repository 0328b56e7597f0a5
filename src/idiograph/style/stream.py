"""MaxSim of everything with everything, exact, where the scores of all pairs do not fit into memory.

The texts of one side are sorted by length and stacked in tiles of equal length; a tile times a block of anchors is one
matrix product, whose maximum is taken along rows that lie in the cache. What leaves is a block of anchors' scores.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from idiograph.style.patches import Patches, ragged_rows
from idiograph.style.score import patch_rows, score_tiles
from idiograph.style.tokens import Bools, Floats, Ints

ANCHOR_ROWS, TILE_ROWS = 1024, 1024  # a tile of similarities: 4 MB of float32
MAX_PADDING = 1.1  # how much longer a tile may be than its texts
CHOSEN_ROWS = 2048  # of chosen texts, scored at once: 3 MB at 384 dimensions


@dataclass(frozen=True, slots=True, eq=False)
class WantedScores:
    """Which scores of a block of texts against a collection anything depends on: the `depth` best of what is not left out,
    those that are marked, the pivots, and on which side of the best pivot every other one is."""

    depth: int
    out: Bools  # (texts, collection)
    marked: Bools
    pivots: Bools


@dataclass(frozen=True)
class Stacked:
    """Texts sorted by length. `runs` are the tiles: first and last text, and the length to which all of it is brought."""

    patches: Patches
    order: Ints  # where each text was before
    runs: tuple[tuple[int, int, int], ...]

    def tile(self, run: tuple[int, int, int]) -> Floats:
        """(texts · longest, d): the rows of a tile; a shorter text repeats its last row, which no maximum notices."""
        return self.patches.vectors[self.rows(run)]

    def rows(self, run: tuple[int, int, int]) -> slice | Ints:
        first, last, longest = run
        starts, lengths = self.patches.starts[first:last], self.patches.lengths[first:last]
        if lengths[0] == longest:  # all are of one length: no copy
            return slice(int(starts[0]), int(starts[-1]) + longest)
        return (starts[:, None] + np.minimum(np.arange(longest)[None], lengths[:, None] - 1)).ravel()


def stack_texts(patches: Patches, limit: int = TILE_ROWS) -> Stacked:
    """Sort texts by length and cut them into tiles of at most `limit` rows, or one text if it alone has more."""
    order = np.argsort(patches.lengths, kind="stable")
    lengths = patches.lengths[order]
    return Stacked(patches.take(order), order, tuple(length_runs(lengths, limit)))


def length_runs(lengths: Ints, limit: int) -> Iterator[tuple[int, int, int]]:
    """Runs of texts of about one length, given in rising order: few, and with little to fill up.

    >>> list(length_runs(np.array([2, 2, 2, 9]), limit=4))
    [(0, 2, 2), (2, 3, 2), (3, 4, 9)]
    """
    first = 0
    while first < len(lengths):
        short = int(lengths[first])
        near = int(np.searchsorted(lengths, short * MAX_PADDING, side="right"))
        last = max(min(near, first + limit // int(lengths[near - 1])), first + 1)
        yield first, last, int(lengths[last - 1])
        first = last


def score_rows(a: Patches, b: Patches | Stacked, mean: bool = True) -> Iterator[tuple[slice, Floats]]:
    """Blocks of texts of `a` with their scores against all of `b`: (texts of the block, len(b)).

    The same scores as `meansim` (or `maxsim`), up to the last bit of a float; memory does not grow with the number of pairs.
    """
    stacked = b if isinstance(b, Stacked) else stack_texts(b)
    for block in score_tiles(a.lengths, ANCHOR_ROWS):
        left, starts = patch_rows(a, block)
        turned = np.ascontiguousarray(left.T)  # (d, rows): the rows of anchors are the long side of every product
        scores = np.empty((len(starts), len(stacked.order)), np.float32)
        for run in stacked.runs:
            first, last, longest = run
            best = (stacked.tile(run) @ turned).reshape(last - first, longest, -1).max(axis=1)  # (texts, anchor rows)
            scores[:, stacked.order[first:last]] = np.add.reduceat(best, starts, axis=1).T
        yield block, scores / a.lengths[block, None].astype(np.float32) if mean else scores


def score_pairs(a: Patches, at: Ints, b: Patches, to: Ints, mean: bool = True) -> Floats:
    """The scores of given pairs: text `at[i]` of `a` with text `to[i]` of `b`."""
    scores = np.empty(len(at), np.float32)
    for anchor in np.unique(at):
        here = np.flatnonzero(at == anchor)
        scores[here] = score_one(a, int(anchor), b, to[here])
    return scores / a.lengths[at].astype(np.float32) if mean else scores


def score_one(a: Patches, anchor: int, b: Patches, which: Ints) -> Floats:
    """One text of `a` against some of `b`: sums of best matches."""
    left, _ = patch_rows(a, slice(anchor, anchor + 1))
    turned, starts, lengths = np.ascontiguousarray(left.T), b.starts[which], b.lengths[which]
    scores = np.empty(len(which), np.float32)
    for some in score_tiles(lengths, CHOSEN_ROWS):
        begins = np.cumsum(lengths[some]) - lengths[some]
        similar = b.vectors[ragged_rows(starts[some], lengths[some])] @ turned
        scores[some] = np.maximum.reduceat(similar, begins, axis=0).sum(axis=1)
    return scores
