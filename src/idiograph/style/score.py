"""How the patches of two texts are compared. The definition, fast enough for a few million pairs on one core.

maxsim     for each patch of the first text its best match in the second, summed: grows with the first text
meansim    the same, divided by the number of patches of the first text: a mean cosine between −1 and 1
symmetric  the mean of meansim in both directions
"""

from collections.abc import Callable, Iterator

import numpy as np

from idiograph.spec import parse_spec
from idiograph.style.patches import Patches
from idiograph.style.tokens import Floats, Ints

Scorer = Callable[[Patches, Patches], Floats]

SIMILARITIES_PER_TILE = 2_000_000  # 8 MB of float32, about what a core's cache and its neighbour's take


def maxsim(a: Patches, b: Patches) -> Floats:
    """Every text of `a` against every text of `b`: (len(a), len(b))."""
    scores = np.empty((len(a), len(b)), np.float32)
    wide = int(min(SIMILARITIES_PER_TILE // 64, b.vectors.shape[0]) or 1)
    for rows in score_tiles(a.lengths, max(SIMILARITIES_PER_TILE // wide, 1)):
        for columns in score_tiles(b.lengths, wide):
            scores[rows, columns] = maxsim_block(a, rows, b, columns)
    return scores


def maxsim_block(a: Patches, rows: slice, b: Patches, columns: slice) -> Floats:
    """Some texts against some texts: one matrix product, a maximum over each text of b, a sum over each text of a."""
    left, left_starts = patch_rows(a, rows)
    right, right_starts = patch_rows(b, columns)
    best = np.maximum.reduceat(left @ right.T, right_starts, axis=1)  # (patches of a, texts of b)
    return np.add.reduceat(best, left_starts, axis=0)


def patch_rows(patches: Patches, which: slice) -> tuple[Floats, Ints]:
    """The rows of some neighbouring texts, and at which of them each text starts."""
    starts = patches.starts[which]
    end = starts[-1] + patches.lengths[which][-1]
    return patches.vectors[starts[0] : end], starts - starts[0]


def score_tiles(lengths: Ints, limit: int) -> Iterator[slice]:
    """Runs of neighbouring texts with at most `limit` patches together, or one text if it alone has more."""
    begin = rows = 0
    for at, length in enumerate(lengths):
        if rows and rows + length > limit:
            yield slice(begin, at)
            begin, rows = at, 0
        rows += int(length)
    if rows:
        yield slice(begin, len(lengths))


def meansim(a: Patches, b: Patches) -> Floats:
    return maxsim(a, b) / a.lengths[:, None].astype(np.float32)


def symmetric(a: Patches, b: Patches) -> Floats:
    return (meansim(a, b) + meansim(b, a).T) * np.float32(0.5)


SCORERS: dict[str, Scorer] = {"maxsim": maxsim, "meansim": meansim, "symmetric": symmetric}


def scorer(text: str) -> Scorer:
    """The scorer that a name stands for."""
    return SCORERS[parse_spec(text, "scorer", SCORERS).name]
