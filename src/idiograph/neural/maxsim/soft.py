"""Softer ideas of a match than the best one, for training alone: a mixture of all matches, and less for what is far away.

softmax  a patch's similarities, weighed by their own softmax: every patch of the other text gets some gradient
gumbel   the same with Gumbel noise on the weights, so that other matches are tried
decay    a similarity counts less the further apart the two patches are in their texts, at a rate that is learned:
         `exp` e^(−rate · distance), `linear` 1 / (1 + rate · distance)

A saved model is read with the best match and without decay.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

DECAYS = ("exp", "linear", "none")
MATCHES = ("gumbel", "max", "softmax")
RATE = 0.28  # where the rate of the decay begins, as published
ROOM = 2**25  # similarities held at once


@dataclass(frozen=True, slots=True)
class Alignment:
    """What counts as a match."""

    match: str = "max"
    tau: float = 0.1
    decay: str = "none"


def align(
    a: Tensor, weights: Tensor, b: Tensor, b_mask: Tensor, how: Alignment, rate: Tensor | None = None, rows: int = 0
) -> Tensor:
    """Every row of `a` (A, S, d), whose patches count by their `weights` (A, S), against every row of `b` (B, T, d): (A, B).

    So many rows are taken at once as memory allows, and computed again on the way back.
    """
    room = max(ROOM // (a.shape[1] * b.shape[0] * b.shape[1]), 1)
    step = min(rows or room, room)
    parts = zip(a.split(step), weights.split(step), strict=True)
    if step >= len(a):
        return soft_block(a, weights, b, b_mask, how, rate)
    found = [checkpoint(soft_block, v, w, b, b_mask, how, rate, use_reentrant=False) for v, w in parts]
    return torch.cat([part for part in found if part is not None])


def soft_block(a: Tensor, weights: Tensor, b: Tensor, b_mask: Tensor, how: Alignment, rate: Tensor | None) -> Tensor:
    similar = torch.einsum("asd,btd->abst", a, b).float()
    if rate is not None:
        similar = similar * near_matches(similar.shape[2], similar.shape[3], how.decay, rate)
    outside = ~b_mask[None, :, None, :]
    if how.match == "max":
        best = similar.masked_fill(outside, -torch.inf).amax(dim=3)
    else:
        noise = gumbel(similar) if how.match == "gumbel" else 0.0
        share = ((similar + noise * how.tau) / how.tau).masked_fill(outside, -torch.inf).softmax(dim=3)
        best = (share * similar).sum(dim=3)
    return (best * weights[:, None, :]).sum(dim=2)


def near_matches(rows: int, columns: int, decay: str, rate: Tensor) -> Tensor:
    """(rows, columns): how much a pair of patches counts by where they are. A rate never falls below 0."""
    places = [torch.arange(count, device=rate.device) for count in (rows, columns)]
    apart = (places[0][:, None] - places[1][None]).abs() * rate.clamp(min=0)
    return torch.exp(-apart) if decay == "exp" else 1 / (1 + apart)


def gumbel(like: Tensor) -> Tensor:
    """Noise whose largest sum with logits is a draw from their softmax."""
    return -torch.log(-torch.log(torch.rand_like(like).clamp(1e-9, 1 - 1e-7)))
