"""Everything with everything in a large collection, where only some of the scores matter: found in 8 bits, settled in 32.

Rounding moves a score by no more than a bound that follows from the vectors at hand. What a measure depends on, and
whatever the bound does not rule out, is scored again in 32 bits: rankings and measures are those of the definition, by
proof and not by luck. On a GPU the first pass goes through the fused kernel, in 16 bits. Memory grows with the texts, not
with the pairs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from idiograph.runner import Progress
from idiograph.style.patches import Patches
from idiograph.style.score import patch_rows, score_tiles
from idiograph.style.stream import WantedScores, length_runs, score_one, score_rows
from idiograph.style.tokens import Bools, Floats, Ints

Blocks = Iterator[tuple[slice, Floats]]
LARGEST = 127
ANCHOR_ROWS, TILE_ROWS = 2048, 512  # a tile of products is 4 MB, which stay in the cache
STEP = 64  # rows of anchors come in multiples of it
CHUNK = 2048  # rows rounded at once: 3 MB at 384 dimensions
GPU_ROWS = 4096  # rows of anchors at once on a GPU
HALF, HALF_ROUNDING = torch.float16, 2.0**-13  # relative; sums are in 32 bits
NOISE = 1e-5  # what 32 bits may lose in a mean of products, and much more
WORTH = 5e10  # operations from which on a first pass pays


@dataclass(frozen=True)
class Nearest:
    """For each text of the first side the numbers of the k best of the other and their scores, from the best down.

    `rescored` is how many pairs were scored in 32 bits, of all.
    """

    which: Ints  # (A, k)
    scores: Floats  # (A, k)
    rescored: int


def nearest_rows(
    a: Patches, b: Patches, k: int, *, mean: bool = True, device: str = "auto", progress: Progress | None = None
) -> Nearest:
    """The `k` best texts of `b` for each text of `a`: those of `meansim` (or `maxsim`), ties in the order of `b`."""
    k = min(k, len(b))
    which, scores, rescored = np.empty((len(a), k), np.int64), np.empty((len(a), k), np.float32), 0
    everything = WantedScores(k, *(np.zeros((1, len(b)), bool) for _ in range(3)))
    slack, blocks = first_pass(a, b, device)
    for block, rough in blocks:
        for at, row in enumerate(rough, block.start):
            done = make_exact(row, slack(at), everything, 0, lambda some, at=at: score_one(a, at, b, some))
            order = done[np.lexsort((done, -row[done]))[:k]]
            which[at], scores[at], rescored = order, row[order], rescored + len(done)
        if progress:
            progress(block.stop, len(a), "scoring")
    return Nearest(which, scores / a.lengths[:, None].astype(np.float32) if mean else scores, rescored)


def fast_score_blocks(a: Patches, b: Patches, mean: bool, wanted: Callable[[slice], WantedScores]) -> Blocks:
    """Blocks of texts of `a` with their scores against all of `b`, the way that is fastest here: a small collection, or a
    machine that is no faster in fewer bits, needs no first pass."""
    return score_rows_pruned(a, b, mean, wanted) if first_pass_pays(a, b) else score_rows(a, b, mean)


def score_rows_pruned(
    a: Patches, b: Patches, mean: bool, wanted: Callable[[slice], WantedScores], device: str = "auto"
) -> Blocks:
    """Blocks of texts of `a` with their scores against all of `b`; those that anything depends on are exact."""
    slack, blocks = first_pass(a, b, device)
    for block, scores in blocks:
        needs = wanted(block)
        for at, row in enumerate(scores, block.start):
            make_exact(row, slack(at), needs, at - block.start, lambda some, at=at: score_one(a, at, b, some))
        yield block, scores / a.lengths[block, None].astype(np.float32) if mean else scores


def first_pass_pays(a: Patches, b: Patches) -> bool:
    """Does a first pass in fewer bits save time here?"""
    operations = 2.0 * len(a.vectors) * len(b.vectors) * a.vectors.shape[1]
    return operations >= WORTH and (on_gpu("auto", a) or has_8_bits())


def on_gpu(device: str, a: Patches) -> bool:
    """Is there a GPU that the fused kernel runs on, and is it to be used?"""
    from idiograph.neural.maxsim.padded import fusible

    if device == "cpu" or not torch.cuda.is_available():
        return False
    return fusible(torch.empty(1, 1, a.vectors.shape[1], dtype=HALF, device="cuda" if device == "auto" else device))


@cache
def has_8_bits() -> bool:
    """Does this machine multiply whole numbers of 8 bits fast, and right? Older ones saturate half-way."""
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        return False
    most = torch.full((STEP, 256), LARGEST, dtype=torch.int8)
    products = [torch.ops.aten._int_mm(most, sign * most.T) * sign for sign in (1, -1)]
    return all(bool((found == LARGEST**2 * 256).all()) for found in products)


def make_exact(row: Floats, slack: Floats, wanted: WantedScores, at: int, score: Callable[[Ints], Floats]) -> Ints:
    """Put exact scores wherever something depends on them, in place; returns where."""
    out, pivots = wanted.out[at], wanted.pivots[at]
    done = np.zeros(len(row), bool)

    def score_where(some: Bools) -> None:
        new = np.flatnonzero(some & ~done)
        if len(new):
            row[new] = score(new)
            done[new] = True

    score_where(wanted.marked[at] | pivots)
    ranked = np.where(out, -np.inf, row)
    k = min(wanted.depth, len(row) - int(out.sum()))
    if k:
        head = np.zeros(len(row), bool)
        head[np.argpartition(ranked, len(row) - k)[len(row) - k :]] = True
        score_where(head)
        score_where((row + slack >= row[head].min()) & ~out)  # the k-th best is no worse than the worst of any k
    if pivots.any():
        score_where((np.abs(row - row[pivots].max()) <= slack) & ~out)
    return np.flatnonzero(done)


def first_pass(a: Patches, b: Patches, device: str) -> tuple[Callable[[int], Floats], Blocks]:
    """How far off the sums of a text of `a` can be for each text of `b`, and blocks of these sums."""
    if on_gpu(device, a):
        return bound_scores(a, half_lost(a.vectors), b, half_lost(b.vectors), HALF_ROUNDING), in_16_bits(a, b, device)
    left, right = round_vectors(a), round_vectors(b)
    return bound_scores(a, left.lost, b, right.lost), in_8_bits(a, left, b, right)


def bound_scores(a: Patches, left: Floats, b: Patches, right: Floats, product: float = 0.0) -> Callable[[int], Floats]:
    """How far rounding can move a sum of best matches, at most: by what is lost of either side's vectors, and of the
    product. Maxima move no further than what they are taken of."""
    mine, theirs = np.add.reduceat(left, a.starts), np.maximum.reduceat(right, b.starts)

    def slack(at: int) -> Floats:
        size = a.lengths[at] + mine[at]  # no less than the lengths of its rounded vectors together
        return mine[at] + size * (theirs + product * (1 + theirs)) + np.float32(NOISE) * size

    return slack


@dataclass(frozen=True)
class Rounded:
    """Patches in whole numbers of 8 bits. All vectors of a text have one scale, so that a maximum needs none."""

    vectors: Tensor  # (P, d)
    scales: Floats  # (n,)
    lost: Floats  # (P,) the length of what rounding took off each vector


def round_vectors(patches: Patches) -> Rounded:
    """The nearest whole numbers, the largest of a text being 127."""
    found = torch.empty(patches.vectors.shape, dtype=torch.int8)
    scales, lost = np.empty(len(patches), np.float32), np.empty(len(patches.vectors), np.float32)
    begin = 0
    for block in score_tiles(patches.lengths, CHUNK):
        vectors, starts = patch_rows(patches, block)
        some, here = torch.from_numpy(vectors), slice(begin, begin + len(vectors))
        sizes = np.maximum.reduceat(some.abs().amax(dim=1).numpy(), starts)
        scales[block] = np.maximum(sizes, 1e-30) / LARGEST
        scale = torch.from_numpy(np.repeat(scales[block], patches.lengths[block]))[:, None]
        whole = (some / scale).round_()
        found[here] = whole.to(torch.int8)
        lost[here] = whole.mul_(scale).sub_(some).norm(dim=1).numpy()
        begin = here.stop
    return Rounded(found, scales, lost)


@torch.inference_mode()
def in_8_bits(a: Patches, left: Rounded, b: Patches, right: Rounded) -> Blocks:
    """Blocks of texts of `a` with sums of best matches in all of `b`.

    Texts of `b` lie sorted by length in tiles of equal length, a shorter text repeating its last row, which no maximum
    notices. A tile times a block of anchors is one product, whose maximum is taken while it is in the cache.
    """
    order = np.argsort(b.lengths, kind="stable")
    tiles = tuple(length_runs(b.lengths[order], TILE_ROWS))
    stack = right.vectors[torch.from_numpy(np.concatenate([places(b, order, run) for run in tiles]))]
    scales = right.scales[order]
    for block in score_tiles(a.lengths, ANCHOR_ROWS):
        first, count = int(a.starts[block][0]), int(a.lengths[block].sum())
        turned = torch.zeros(stack.shape[1], -(-count // STEP) * STEP, dtype=torch.int8)  # (d, rows)
        turned[:, :count] = left.vectors[first : first + count].T
        sums = sums_of(stack, tiles, turned, a.starts[block] - first)
        scores = np.empty_like(sums)
        scores[:, order] = sums * scales[None] * left.scales[block, None]
        yield block, scores


def places(b: Patches, order: Ints, run: tuple[int, int, int]) -> Ints:
    """The rows of `b` that make up a tile."""
    texts, longest = order[run[0] : run[1]], run[2]
    within = np.minimum(np.arange(longest)[None], b.lengths[texts, None] - 1)
    return (b.starts[texts, None] + within).ravel()


def sums_of(stack: Tensor, tiles: tuple[tuple[int, int, int], ...], turned: Tensor, starts: Ints) -> Floats:
    """(anchors, texts in the order of the tiles): sums of best matches, still in whole numbers."""
    found = np.empty((len(starts), tiles[-1][1]), np.float32)
    widest = max((last - first) * longest for first, last, longest in tiles)
    room = torch.empty(widest * turned.shape[1], dtype=torch.int32)
    begin = 0
    for first, last, longest in tiles:
        end = begin + (last - first) * longest
        products = room[: (end - begin) * turned.shape[1]].view(end - begin, -1)
        torch.ops.aten._int_mm.out(stack[begin:end], turned, out=products)
        best = products.view(last - first, longest, -1).amax(dim=1).float()  # (texts, anchor rows)
        found[:, first:last] = np.add.reduceat(best.numpy(), starts, axis=1).T  # zeros fill the rows up
        begin = end
    return found


def half_lost(vectors: Floats) -> Floats:
    """The length of what 16 bits take off each vector."""
    sizes = np.empty(len(vectors), np.float32)
    for at in range(0, len(vectors), CHUNK):
        some = torch.from_numpy(vectors[at : at + CHUNK])
        sizes[at : at + CHUNK] = (some - some.to(HALF).float()).norm(dim=1).numpy()
    return sizes


@torch.inference_mode()
def in_16_bits(a: Patches, b: Patches, device: str) -> Blocks:
    """The same through the fused kernel, which never writes the products down."""
    from idiograph.neural.maxsim.triton import find_best, owners

    place = "cuda" if device == "auto" else device
    right = torch.from_numpy(b.vectors).to(place, HALF)
    sizes = torch.from_numpy(b.lengths).to(place, torch.int32)
    starts = (sizes.cumsum(0) - sizes).int()
    for block in score_tiles(a.lengths, GPU_ROWS):
        left, _ = patch_rows(a, block)
        value, _ = find_best(torch.from_numpy(left).to(place, HALF), right, starts, sizes)  # (texts, rows)
        lengths = torch.from_numpy(a.lengths[block]).to(place, torch.int32)
        summed = value.new_zeros(len(value), len(lengths)).index_add_(1, owners(lengths, len(left)), value)
        yield block, summed.T.contiguous().cpu().numpy()
