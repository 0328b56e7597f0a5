"""Padded MaxSim with gradient, for training. The only place where texts are padded and scored; a law ties it to `style.score`."""

from typing import Any

import torch
from torch import Tensor

from idiograph.style.patches import Patches

# Hopper and Blackwell, as CUDA counts them; gaming cards of the same age have half of their shared memory.
CAPABILITIES_WITH_ROOM = (9, 10)


def pad_ragged(patches: Patches) -> tuple[Tensor, Tensor]:
    """Ragged patches as (n, longest, d) and the (n, longest) mask."""
    longest = int(patches.lengths.max())
    vectors = torch.zeros(len(patches), longest, patches.vectors.shape[1])
    mask = torch.arange(longest)[None] < torch.from_numpy(patches.lengths)[:, None]
    vectors[mask] = torch.from_numpy(patches.vectors)
    return vectors, mask


def torch_maxsim(a: Tensor, a_mask: Tensor, b: Tensor, b_mask: Tensor, mean: bool = False) -> Tensor:
    """Every row of `a` (A, S, d) against every row of `b` (B, T, d): (A, B); fused where the machine can."""
    if fusible(a) and fusible(b):
        from idiograph.neural.maxsim.triton import fused_maxsim

        return fused_maxsim(a, a_mask, b, b_mask, mean)
    return plain_maxsim(a, a_mask, b, b_mask, mean)


def lower_precision(vectors: Tensor) -> Tensor:
    """In the precision of the surrounding autocast, if there is one: a norm leaves 32 bits where 16 are meant."""
    kind = vectors.device.type
    return vectors.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else vectors


def fusible(rows: Tensor) -> bool:
    """16-bit rows on an NVIDIA GPU for data centres (its tiles want Hopper's shared memory), of a width that the tensor
    cores take, in texts that 16 bits can count."""
    small = rows.dtype in (torch.bfloat16, torch.float16) and rows.shape[2] % 16 == 0 and rows.shape[1] < 32768
    if not (small and rows.is_cuda and torch.version.hip is None):
        return False
    return torch.cuda.get_device_capability(rows.device)[0] in CAPABILITIES_WITH_ROOM


def plain_maxsim(a: Tensor, a_mask: Tensor, b: Tensor, b_mask: Tensor, mean: bool = False) -> Tensor:
    """The same in plain torch, on any device: one matrix product, and a way back that touches only what won."""
    best = BestMatch.apply(a, b, b_mask)  # (A, S, B)
    total = best.masked_fill(~a_mask[:, :, None], 0).sum(dim=1)
    return total / a_mask.sum(dim=1, keepdim=True) if mean else total


class BestMatch(torch.autograd.Function):
    """Of each row of `a` the largest dot product within each text of `b`: (A, S, B).

    Padding is −inf before the maximum, so that it cannot win even where every cosine is negative. The gradient needs only
    which row won, not the similarities.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, b_mask: Tensor) -> Tensor:
        similar = a.flatten(0, 1) @ b.flatten(0, 1).T  # (A·S, B·T)
        if not bool(b_mask.all()):
            similar.masked_fill_(~b_mask.flatten(), -torch.inf)
        best, where = similar.view(-1, *b.shape[:2]).max(dim=2)  # (A·S, B)
        ctx.save_for_backward(a, b, where)
        return best.view(*a.shape[:2], b.shape[0])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        a, b, where = ctx.saved_tensors
        columns = where + torch.arange(b.shape[0], device=where.device) * b.shape[1]
        picked = a.new_zeros(where.shape[0], b.shape[0] * b.shape[1])
        picked.scatter_(1, columns, grads[0].reshape(where.shape).to(a.dtype))  # zero but for what won
        left, right = picked @ b.flatten(0, 1), picked.T @ a.flatten(0, 1)
        return left.view_as(a), right.view_as(b), None
