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
    """Every row of `a` (A, S, d) against every row of `b` (B, T, d): (A, B).

    Padding is −inf before the maximum, so that it cannot win even where every cosine is negative.
    """
    similar = torch.einsum("asd,btd->abst", a, b)
    similar = similar.masked_fill(~b_mask[None, :, None, :], -torch.inf)
    best = similar.amax(dim=-1).masked_fill(~a_mask[:, None, :], 0)  # (A, B, S)
    total = best.sum(dim=-1)
    return total / a_mask.sum(dim=1, keepdim=True) if mean else total
