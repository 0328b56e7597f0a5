"""Padded MaxSim with gradient, for training. The only place where texts are padded and scored; a law ties it to `style.score`."""

import torch
from torch import Tensor

from idiograph.style.patches import Patches


def pad(patches: Patches) -> tuple[Tensor, Tensor]:
    """Ragged patches as (n, longest, d) and the (n, longest) mask."""
    longest = int(patches.lengths.max())
    vectors = torch.zeros(len(patches), longest, patches.vectors.shape[1])
    mask = torch.arange(longest)[None] < torch.from_numpy(patches.lengths)[:, None]
    vectors[mask] = torch.from_numpy(patches.vectors)
    return vectors, mask


def maxsim(a: Tensor, a_mask: Tensor, b: Tensor, b_mask: Tensor, mean: bool = False) -> Tensor:
    """Every row of `a` (A, S, d) against every row of `b` (B, T, d): (A, B); fused where the machine can."""
    if fusible(a) and fusible(b):
        from idiograph.neural.fused import fused_maxsim

        return fused_maxsim(a, a_mask, b, b_mask, mean)
    return portable(a, a_mask, b, b_mask, mean)


def fusible(rows: Tensor) -> bool:
    """16-bit rows on an NVIDIA GPU, of a width that the tensor cores take, in texts that 16 bits can count."""
    small = rows.dtype in (torch.bfloat16, torch.float16) and rows.shape[2] % 16 == 0 and rows.shape[1] < 32768
    return rows.is_cuda and small and torch.version.hip is None


def portable(a: Tensor, a_mask: Tensor, b: Tensor, b_mask: Tensor, mean: bool = False) -> Tensor:
    """The same in plain torch, with all similarities in memory.

    Padding is −inf before the maximum, so that it cannot win even where every cosine is negative.
    """
    similar = torch.einsum("asd,btd->abst", a, b)
    similar = similar.masked_fill(~b_mask[None, :, None, :], -torch.inf)
    best = similar.amax(dim=-1).masked_fill(~a_mask[:, None, :], 0)  # (A, B, S)
    total = best.sum(dim=-1)
    return total / a_mask.sum(dim=1, keepdim=True) if mean else total
