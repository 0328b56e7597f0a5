"""The best matches of every text in a large collection: found in 16 bits, settled in 32. CPU or GPU, in flat memory.

Rounding to 16 bits moves a score by no more than a bound that follows from the vectors at hand. The head of each ranking is
scored again in 32 bits, and so is everything that the bound does not rule out: the k best are those of the definition.
Without `proof`, four times the worst error that was seen in the head takes the place of the bound, and less is scored again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from idiograph.style.patches import Patches
from idiograph.style.score import part, tiles
from idiograph.style.stream import Stacked, of_one, stacked
from idiograph.style.tokens import Floats, Ints

Progress = Callable[[int, int | None, str], None]
HALF = torch.bfloat16
ROUNDING = 2.0**-8  # of a bfloat16: half a unit in the last place, relative
ANCHOR_ROWS, TILE_ROWS = 2048, 512
STEP = 256  # rows of anchors come in multiples of it: every new shape costs the library time to prepare
SAFETY = 4.0  # times the worst error seen
GPU_ROWS = 4096  # rows of anchors at once on a GPU


@dataclass(frozen=True)
class Nearest:
    """For each text of the first side the numbers of the k best of the other and their scores, from the best down.

    `again` is how many pairs were scored in 32 bits, of all.
    """

    which: Ints  # (A, k)
    scores: Floats  # (A, k)
    again: int


def nearest(
    a: Patches,
    b: Patches,
    k: int,
    *,
    mean: bool = True,
    proof: bool = True,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Nearest:
    """The `k` best texts of `b` for each text of `a`: those of `meansim` (or `maxsim`), ties in the order of `b`."""
    k = min(k, len(b))
    slack = slack_of(a, b) * a.lengths
    which, scores, again = np.empty((len(a), k), np.int64), np.empty((len(a), k), np.float32), 0
    blocks = on_gpu(a, b, device) if device.startswith("cuda") else coarse(a, stacked(b, TILE_ROWS))
    for block, rough in blocks:
        for at, row in enumerate(rough, block.start):
            found, exact = settled(row, k, lambda some, at=at: of_one(a, at, b, some), float(slack[at]), proof)
            order = np.lexsort((found, -exact))[:k]
            which[at], scores[at], again = found[order], exact[order], again + len(found)
        if progress:
            progress(block.stop, len(a), "scoring")
    return Nearest(which, scores / a.lengths[:, None].astype(np.float32) if mean else scores, again)


def settled(row: Floats, k: int, score: Callable[[Ints], Floats], most: float, proof: bool) -> tuple[Ints, Floats]:
    """Everything that may be among the k best, and its scores in 32 bits."""
    head = np.argpartition(row, len(row) - k)[len(row) - k :]
    exact = score(head)
    slack = most if proof else min(most, SAFETY * float(np.abs(exact - row[head]).max()))
    near = row >= exact.min() - slack  # the k-th best is no worse than the worst of any k
    near[head] = False
    more = np.flatnonzero(near)
    return np.concatenate([head, more]), np.concatenate([exact, score(more) if len(more) else exact[:0]])


def slack_of(a: Patches, b: Patches) -> Floats:
    """How far the mean of a text's best matches can move by rounding, at most: what is lost of either side's vectors, and of
    the product. Maxima and means move no further than what they are taken of."""
    left, right = lost(a.vectors), lost(b.vectors)
    most = np.maximum.reduceat(left, a.starts)
    return most * (1 + right.max()) + right.max() + ROUNDING * (1 + most) * (1 + right.max()) + 1e-5


def lost(vectors: Floats) -> Floats:
    """The length of what rounding takes off each vector."""
    sizes = np.empty(len(vectors), np.float32)
    for at in range(0, len(vectors), 65536):  # a copy of all of them would double the memory
        some = torch.from_numpy(vectors[at : at + 65536])
        sizes[at : at + 65536] = (some - some.to(HALF).float()).norm(dim=1).numpy()
    return sizes


@torch.inference_mode()
def coarse(a: Patches, b: Stacked) -> Iterator[tuple[slice, Floats]]:
    """Blocks of texts of `a` with sums of best matches in all of `b`, in 16 bits."""
    right = torch.from_numpy(b.patches.vectors).to(HALF)
    for block in tiles(a.lengths, ANCHOR_ROWS):
        left, starts = part(a, block)
        turned = torch.zeros(right.shape[1], -(-len(left) // STEP) * STEP, dtype=HALF)  # (d, rows)
        turned[:, : len(left)] = torch.from_numpy(left).T
        scores = np.empty((len(starts), len(b.order)), np.float32)
        for run in b.runs:
            best = best_of(right, b, run, turned)[:, : len(left)]
            scores[:, b.order[run[0] : run[1]]] = np.add.reduceat(best.float().numpy(), starts, axis=1).T
        yield block, scores


def best_of(right: Tensor, b: Stacked, run: tuple[int, int, int], turned: Tensor) -> Tensor:
    """(texts of the tile, anchor rows): the best match of each anchor row in each text."""
    rows = b.rows(run)
    tile = right[rows] if isinstance(rows, slice) else right[torch.from_numpy(rows)]
    return (tile @ turned).view(run[1] - run[0], run[2], -1).amax(dim=1)


@torch.inference_mode()
def on_gpu(a: Patches, b: Patches, device: str) -> Iterator[tuple[slice, Floats]]:
    """The same through the fused kernel, which never writes the similarities down."""
    from idiograph.neural.fused import find_best, owners

    right = torch.from_numpy(b.vectors).to(device, HALF)
    sizes = torch.from_numpy(b.lengths).to(device, torch.int32)
    starts = (sizes.cumsum(0) - sizes).int()
    for block in tiles(a.lengths, GPU_ROWS):
        left, _ = part(a, block)
        value, _ = find_best(torch.from_numpy(left).to(device, HALF), right, starts, sizes)  # (texts, rows)
        lengths = torch.from_numpy(a.lengths[block]).to(device, torch.int32)
        summed = value.new_zeros(len(value), len(lengths)).index_add_(1, owners(lengths, len(left)), value)
        yield block, summed.T.cpu().numpy()
