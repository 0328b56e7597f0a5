"""MaxSim on the GPU without its matrix of similarities: one pass keeps each row's best match, the way back needs no more.

Works on ragged rows, so that padding costs nothing. `best` remembers which row of each text won: the gradient of a row is
a weighted sum of the rows that it matched, and the other way round. Triton kernels; imported only where there is a GPU.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

# ruff: noqa: N803, ARG001  (sizes that the compiler must know are in capitals, as everywhere in Triton)


@triton.jit
def best_kernel(
    q, k, starts, sizes, value, best, rows, texts, per_program,
    DIM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """For M rows of q and a run of texts of k: the largest dot product within each text, and where."""
    first = tl.program_id(0) * M
    row = first + tl.arange(0, M)
    stride = tl.program_id(0).to(tl.int64) * 0 + rows  # rows as 64 bits: texts · rows may exceed 32
    columns = tl.arange(0, N)
    for text in range(tl.program_id(1) * per_program, tl.minimum((tl.program_id(1) + 1) * per_program, texts)):
        start = tl.load(starts + text)
        size = tl.load(sizes + text)
        top = tl.full((M, N), float("-inf"), tl.float32)
        where = tl.zeros((M, N), tl.int32)
        for at in range(0, size, N):
            similar = tl.zeros((M, N), tl.float32)
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
    grad, owner, k, starts, best, out, rows, texts, anchors, DIM: tl.constexpr, M: tl.constexpr, K: tl.constexpr
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
    tl.store(
        out + row[:, None].to(tl.int64) * DIM + part[None, :], total.to(out.dtype.element_ty), mask=inside[:, None]
    )


@triton.jit
def right_kernel(
    grad, owner, q, starts, sizes, best, out, rows, texts, anchors,
    DIM: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Gradient of N rows of one text of k: the rows of q that they won for, gathered by a product with their one-hot."""
    text = tl.program_id(0)
    start = tl.load(starts + text)
    size = tl.load(sizes + text)
    column = tl.program_id(1) * N + tl.arange(0, N)
    if tl.program_id(1) * N < size:
        left = tl.program_id(2) * PARTS * K
        first = tl.zeros((N, K), tl.float32)
        second = tl.zeros((N, K), tl.float32)
        third = tl.zeros((N, K), tl.float32)
        for at in range(0, rows, M):
            row = at + tl.arange(0, M)
            mine = tl.load(owner + row, mask=row < rows, other=0)
            weight = tl.load(grad + text * anchors + mine)
            won = tl.load(best + text.to(tl.int64) * rows + row, mask=row < rows, other=-1).to(tl.int32)
            chosen = tl.where(column[:, None] == won[None, :], weight[None, :], 0.0).to(out.dtype.element_ty)
            first = tl.dot(chosen, q.load([at, left]), first)
            if PARTS > 1:
                second = tl.dot(chosen, q.load([at, left + K]), second)
            if PARTS > 2:
                third = tl.dot(chosen, q.load([at, left + 2 * K]), third)
        place = (start + column)[:, None].to(tl.int64) * DIM + left + tl.arange(0, K)[None, :]
        here = column[:, None] < size
        tl.store(out + place, first.to(out.dtype.element_ty), mask=here)
        if PARTS > 1:
            tl.store(out + place + K, second.to(out.dtype.element_ty), mask=here)
        if PARTS > 2:
            tl.store(out + place + 2 * K, third.to(out.dtype.element_ty), mask=here)


PROGRAMS = 132 * 16  # sixteen waves on an H200: enough to even out texts of different lengths


def divide(a: int, b: int) -> int:
    return -(-a // b)


def piece(dim: int) -> int:
    """The largest power of two up to 128 that divides the width."""
    return min(dim & -dim, 128)


def parts(dim: int) -> int:
    """How many pieces of the width one program takes along: 3 where that comes out even, else 2 or 1."""
    return next(n for n in (3, 2, 1) if dim // piece(dim) % n == 0)


class RaggedMaxSim(torch.autograd.Function):
    """Sum over each text's rows of the best dot product in each other text: rows and sizes of both sides → (texts, texts)."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, q_sizes: Tensor, k: Tensor, k_sizes: Tensor) -> Tensor:
        rows, dim, texts = q.shape[0], q.shape[1], len(k_sizes)
        q, k, q_sizes, k_sizes = q.contiguous(), k.contiguous(), q_sizes.int(), k_sizes.int()
        q_starts, k_starts = (q_sizes.cumsum(0) - q_sizes).int(), (k_sizes.cumsum(0) - k_sizes).int()
        value = torch.empty(texts, rows, device=q.device)
        best = torch.empty(texts, rows, dtype=torch.int16, device=q.device)
        m, n, wide = 128, 64, piece(dim)
        blocks = divide(rows, m)
        per_program = divide(texts, max(1, min(texts, divide(PROGRAMS, blocks))))
        left, right = TensorDescriptor.from_tensor(q, [m, wide]), TensorDescriptor.from_tensor(k, [n, wide])
        best_kernel[(blocks, divide(texts, per_program))](
            left, right, k_starts, k_sizes, value, best, rows, texts, per_program,
            DIM=dim, M=m, N=n, K=wide, num_warps=4, num_stages=2,
        )  # fmt: skip
        scores = torch.empty(len(q_sizes), texts, device=q.device)
        sum_kernel[(len(q_sizes), divide(texts, 32))](value, scores, q_starts, q_sizes, rows, texts, R=64, C=32)
        ctx.save_for_backward(q, q_sizes, k, k_sizes, k_starts, best)
        return scores

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, Tensor, None]:
        q, q_sizes, k, k_sizes, k_starts, best = ctx.saved_tensors
        rows, dim, texts, anchors = q.shape[0], q.shape[1], len(k_sizes), len(q_sizes)
        grad = grads[0].float().T.contiguous()  # (texts, anchors): a program walks along the anchors of one text
        owner = torch.repeat_interleave(torch.arange(anchors, device=q.device), q_sizes.long(), output_size=rows).int()
        wide, together = piece(dim), parts(dim)
        left, right = torch.empty_like(q), torch.empty_like(k)
        left_kernel[(divide(rows, 16), dim // wide)](
            grad, owner, k, k_starts, best, left, rows, texts, anchors, DIM=dim, M=16, K=wide, num_warps=4
        )
        grid = (texts, divide(int(k_sizes.max()), 64), dim // (wide * together))
        right_kernel[grid](
            grad, owner, TensorDescriptor.from_tensor(q, [64, wide]), k_starts, k_sizes, best, right, rows, texts, anchors,
            DIM=dim, M=64, N=64, K=wide, PARTS=together, num_warps=8, num_stages=3,
        )  # fmt: skip
        return left, None, right, None


def fused_maxsim(a: Tensor, a_mask: Tensor, b: Tensor, b_mask: Tensor, mean: bool = False) -> Tensor:
    """`idiograph.neural.maxsim.maxsim` for padded rows on a GPU."""
    a_sizes, b_sizes = a_mask.sum(dim=1), b_mask.sum(dim=1)
    scores = RaggedMaxSim.apply(a[a_mask], a_sizes, b[b_mask], b_sizes)
    return scores / a_sizes.unsqueeze(1) if mean else scores
