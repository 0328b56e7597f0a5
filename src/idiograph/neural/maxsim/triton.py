"""MaxSim on the GPU without its matrix of similarities: one pass keeps each row's best match, the way back needs no more.

Works on ragged rows, so that padding costs nothing. `best` remembers which row of each text won: the gradient of a row is
a weighted sum of the rows that it matched, and the other way round. Triton kernels; imported only where there is a GPU.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

# ruff: noqa: N803, RUF005  (sizes that the compiler must know are in capitals, as everywhere in Triton)


@triton.jit
def best_kernel(
    q, k, starts, sizes, value, best, rows, texts, per_program,
    DIM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """For M rows of q and a run of texts of k: the largest dot product within each text, and where.

    The rows of q stay in shared memory all the time (HELD), unless they are too wide for it.
    """
    first = tl.program_id(0) * M
    row = first + tl.arange(0, M)
    stride = tl.program_id(0).to(tl.int64) * 0 + rows  # rows as 64 bits: texts · rows may exceed 32
    columns = tl.arange(0, N)
    held = (q.load([first, 0]),)
    for part in tl.static_range(1, DIM // K if HELD else 1):
        held = held + (q.load([first, part * K]),)
    for text in range(tl.program_id(1) * per_program, tl.minimum((tl.program_id(1) + 1) * per_program, texts)):
        start = tl.load(starts + text)
        size = tl.load(sizes + text)
        top = tl.full((M, N), float("-inf"), tl.float32)
        where = tl.zeros((M, N), tl.int32)
        for at in range(0, size, N):
            similar = tl.zeros((M, N), tl.float32)
            if HELD:
                for part in tl.static_range(0, DIM // K):
                    similar = tl.dot(held[part], k.load([start + at, part * K]).T, similar)
            else:
                for step in range(0, DIM, K):
                    similar = tl.dot(q.load([first, step]), k.load([start + at, step]).T, similar)
            similar = tl.where((at + columns)[None, :] < size, similar, float("-inf"))
            better = similar > top
            top = tl.where(better, similar, top)
            where = tl.where(better, at, where)
        largest = tl.max(top, axis=1)
        found = tl.where(top == largest[:, None], where + columns[None, :], 2147483647)
        place = text * stride + row
        tl.store(value + place, largest, mask=row < rows)
        tl.store(best + place, tl.min(found, axis=1).to(tl.int16), mask=row < rows)


@triton.jit
def sum_kernel(value, out, starts, sizes, rows, texts, R: tl.constexpr, C: tl.constexpr):
    """Sum the rows of one text of q, for C texts of k."""
    text = tl.program_id(0)
    column = (tl.program_id(1) * C + tl.arange(0, C)).to(tl.int64)
    start = tl.load(starts + text)
    size = tl.load(sizes + text)
    total = tl.zeros((C,), tl.float32)
    for at in range(0, size, R):
        row = at + tl.arange(0, R)
        inside = (column[:, None] < texts) & (row[None, :] < size)
        total += tl.sum(tl.load(value + column[:, None] * rows + start + row[None, :], mask=inside, other=0.0), axis=1)
    tl.store(out + text.to(tl.int64) * texts + column, total, mask=column < texts)


@triton.jit
def left_kernel(
    grad, owner, k, starts, best, places, out, rows, texts, anchors, DIM: tl.constexpr, M: tl.constexpr, K: tl.constexpr
):
    """Gradient of rows of q: for each text, the row that won, times the gradient of the pair's score."""
    row = tl.program_id(0) * M + tl.arange(0, M)
    part = tl.program_id(1) * K + tl.arange(0, K)
    inside = row < rows
    stride = tl.program_id(0).to(tl.int64) * 0 + rows
    mine = tl.load(owner + row, mask=inside, other=0)
    total = tl.zeros((M, K), tl.float32)
    for text in range(texts):
        weight = tl.load(grad + text * anchors + mine, mask=inside, other=0.0)
        won = tl.load(best + text * stride + row, mask=inside, other=0)
        source = (tl.load(starts + text) + won).to(tl.int64)
        total += weight[:, None] * tl.load(k + source[:, None] * DIM + part[None, :]).to(tl.float32)
    place = tl.load(places + row, mask=inside, other=0)
    tl.store(out + place[:, None] * DIM + part[None, :], total.to(out.dtype.element_ty), mask=inside[:, None])


@triton.jit
def count_kernel(best, starts, counts, rows, SEGMENTS: tl.constexpr, SEGMENT: tl.constexpr, C: tl.constexpr):
    """How often each row of k won within each segment of the rows of q."""
    text = tl.program_id(0)
    row = tl.program_id(1) * C + tl.arange(0, C)
    won = tl.load(best + text.to(tl.int64) * rows + row, mask=row < rows, other=0).to(tl.int32)
    place = (tl.load(starts + text) + won).to(tl.int64) * SEGMENTS + row // SEGMENT
    tl.atomic_add(counts + place, 1, mask=row < rows, sem="relaxed")


@triton.jit
def order_kernel(best, starts, cursor, order, rows, SEGMENTS: tl.constexpr, SEGMENT: tl.constexpr, C: tl.constexpr):
    """Sort the rows of one segment of q by the row of k that won: a counting sort, always in the same order."""
    text = tl.program_id(0)
    segment = tl.program_id(1)
    line = tl.arange(0, C)
    mine = best + text.to(tl.int64) * rows
    here = cursor + tl.load(starts + text).to(tl.int64) * SEGMENTS + segment
    for at in range(segment * SEGMENT, tl.minimum((segment + 1) * SEGMENT, rows), C):
        row = at + line
        inside = row < rows
        won = tl.load(mine + row, mask=inside, other=-1).to(tl.int32)
        same = (won[:, None] == won[None, :]).to(tl.int32)
        before = tl.sum(tl.where(line[None, :] < line[:, None], same, 0), axis=1)
        last = before + 1 == tl.sum(same, axis=1)
        place = tl.load(here + won * SEGMENTS, mask=inside, other=0) + before
        tl.store(order + place, row, mask=inside)
        tl.debug_barrier()  # everyone has read before anyone moves on
        tl.store(here + won * SEGMENTS, place + 1, mask=inside & last)
        tl.debug_barrier()


@triton.jit
def right_kernel(
    grad, owner, q, text_of, ends, order, places, out, anchors, DIM: tl.constexpr, M: tl.constexpr, K: tl.constexpr
):
    """Gradient of one row of k: the rows of q that it won for, from the sorted list, times the gradient of their score."""
    mine = tl.program_id(0)
    part = tl.program_id(1) * K + tl.arange(0, K)
    text = tl.load(text_of + mine).to(tl.int64)
    first = tl.load(ends + mine - 1, mask=mine > 0, other=0)
    last = tl.load(ends + mine)
    total = tl.zeros((M, K), tl.float32)
    for at in range(first, last, M):
        place = at + tl.arange(0, M)
        inside = place < last
        row = tl.load(order + place, mask=inside, other=0)
        weight = tl.load(grad + text * anchors + tl.load(owner + row), mask=inside, other=0.0)
        total += weight[:, None] * tl.load(q + row[:, None].to(tl.int64) * DIM + part[None, :]).to(tl.float32)
    tl.store(out + tl.load(places + mine) * DIM + part, tl.sum(total, axis=0).to(out.dtype.element_ty))


PROGRAMS = 132 * 16  # sixteen waves on an H200: enough to even out texts of different lengths
SHARED = 200 * 1024  # bytes of shared memory that a program may take; Hopper has 227 kB
SEGMENT = 4096  # rows of q that one program sorts
SORTED = 64  # of them at a time


def divide_rows(a: int, b: int) -> int:
    return -(-a // b)


def block_width(dim: int) -> int:
    """The largest power of two up to 128 that divides the width."""
    return min(dim & -dim, 128)


@dataclass(frozen=True, slots=True)
class Tiles:
    """How the forward pass is cut: rows of q and of k at a time, warps, stages, and whether q stays in shared memory."""

    m: int
    n: int
    warps: int
    stages: int
    held: bool

    @classmethod
    def of(cls, dim: int) -> "Tiles":
        """What was fastest at each width on an H200 (`benchmarks/train.py`); nothing is tuned at run time."""
        if dim <= 192:
            return cls(128, 32, 8, 3, True)
        if (128 + 2 * 64) * dim * 2 <= SHARED:
            return cls(128, 64, 8, 2, True)
        return cls(128, 128, 8, 3, False)


def find_best(q: Tensor, k: Tensor, starts: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """For each text of k and each row of q: the largest dot product and which row of the text it was with."""
    rows, dim, texts, wide = q.shape[0], q.shape[1], len(sizes), block_width(q.shape[1])
    value = torch.empty(texts, rows, device=q.device)
    best = torch.empty(texts, rows, dtype=torch.int16, device=q.device)
    cut = Tiles.of(dim)
    blocks = divide_rows(rows, cut.m)
    per_program = divide_rows(texts, max(1, min(texts, divide_rows(PROGRAMS, blocks))))
    left, right = TensorDescriptor.from_tensor(q, [cut.m, wide]), TensorDescriptor.from_tensor(k, [cut.n, wide])
    best_kernel[(blocks, divide_rows(texts, per_program))](
        left, right, starts, sizes, value, best, rows, texts, per_program,
        DIM=dim, M=cut.m, N=cut.n, K=wide, HELD=cut.held, num_warps=cut.warps, num_stages=cut.stages,
    )  # fmt: skip
    return value, best


def sort_by_winner(best: Tensor, starts: Tensor, winners: int) -> tuple[Tensor, Tensor]:
    """The rows of q in the order of the rows of k that won for them, and where the list of each row of k ends."""
    texts, rows = best.shape
    segments = divide_rows(rows, SEGMENT)
    counts = torch.zeros(winners * segments, dtype=torch.int32, device=best.device)
    shape = {"SEGMENTS": segments, "SEGMENT": SEGMENT}
    count_kernel[(texts, divide_rows(rows, 1024))](best, starts, counts, rows, **shape, C=1024, num_warps=4)
    ends = counts.cumsum(0)  # 64 bits
    order = torch.empty(texts * rows, dtype=torch.int32, device=best.device)
    order_kernel[(texts, segments)](best, starts, ends - counts, order, rows, **shape, C=SORTED, num_warps=2)
    return order, ends.view(winners, segments)[:, -1].contiguous()


def owners(sizes: Tensor, rows: int) -> Tensor:
    """Which text each row belongs to."""
    texts = torch.arange(len(sizes), device=sizes.device, dtype=torch.int32)
    return torch.repeat_interleave(texts, sizes.long(), output_size=rows)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of padded texts that are there, one after the other."""

    vectors: Tensor  # (rows, d)
    places: Tensor  # (rows,) where each was among the padded rows
    sizes: Tensor  # (texts,)
    starts: Tensor  # (texts,)

    @classmethod
    def of(cls, padded: Tensor, mask: Tensor) -> "Rows":
        places = mask.flatten().nonzero().squeeze(1)
        flat = padded.flatten(0, 1)
        vectors = flat.contiguous() if len(places) == len(flat) else flat.index_select(0, places)
        sizes = mask.sum(dim=1, dtype=torch.int32)
        return cls(vectors, places, sizes, (sizes.cumsum(0) - sizes).int())

    def __len__(self) -> int:
        return len(self.places)

    def padded(self, mask: Tensor) -> Tensor:
        """Room for the gradient of the padded rows: nothing comes to those that are not there."""
        make = torch.empty if len(self) == mask.numel() else torch.zeros
        return make(*mask.shape, self.vectors.shape[1], dtype=self.vectors.dtype, device=self.vectors.device)


class FusedMaxSim(torch.autograd.Function):
    """Sum over each text's rows of the best dot product in each other text: padded rows and masks of both sides."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, a_mask: Tensor, b: Tensor, b_mask: Tensor) -> Tensor:
        q, k = Rows.of(a, a_mask), Rows.of(b, b_mask)
        value, best = find_best(q.vectors, k.vectors, k.starts, k.sizes)
        texts, rows = value.shape
        scores = torch.empty(len(q.sizes), texts, device=a.device)
        sum_kernel[(len(q.sizes), divide_rows(texts, 32))](value, scores, q.starts, q.sizes, rows, texts, R=64, C=32)
        held = [getattr(side, name) for side in (q, k) for name in Rows.__slots__]
        ctx.save_for_backward(a_mask, b_mask, best, *held)
        return scores

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor, None]:
        a_mask, b_mask, best, *held = ctx.saved_tensors
        q, k = Rows(*held[:4]), Rows(*held[4:])
        dim, anchors, wide = q.vectors.shape[1], len(q.sizes), block_width(q.vectors.shape[1])
        grad = grads[0].float().T.contiguous()  # (texts, anchors): a program walks along the anchors of one text
        owner, left, right = owners(q.sizes, len(q)), q.padded(a_mask), k.padded(b_mask)
        left_kernel[(divide_rows(len(q), 16), dim // wide)](
            grad, owner, k.vectors, k.starts, best, q.places, left, len(q), len(k.sizes), anchors,
            DIM=dim, M=16, K=wide, num_warps=4,
        )  # fmt: skip
        order, ends = sort_by_winner(best, k.starts, len(k))
        right_kernel[(len(k), dim // wide)](
            grad, owner, q.vectors, owners(k.sizes, len(k)), ends, order, k.places, right, anchors,
            DIM=dim, M=8, K=wide, num_warps=1,
        )  # fmt: skip
        return left, None, right, None


def fused_maxsim(a: Tensor, a_mask: Tensor, b: Tensor, b_mask: Tensor, mean: bool = False) -> Tensor:
    """`idiograph.neural.maxsim.padded.torch_maxsim` for padded rows on a GPU."""
    scores = FusedMaxSim.apply(a, a_mask, b, b_mask)
    return scores / a_mask.sum(dim=1, keepdim=True) if mean else scores
