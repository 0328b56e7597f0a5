"""What devices say to each other in training. With one device every function gives back what it was given."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def world() -> int:
    """How many devices train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is, from 0."""
    return dist.get_rank() if world() > 1 else 0


class _Gather(torch.autograd.Function):
    """Rows of all devices, one after the other; the gradient of each comes home from everywhere."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.count = len(rows)
        parts = [torch.empty_like(rows) for _ in range(world())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].contiguous().clone()
        dist.all_reduce(total)
        return total[rank() * ctx.count : (rank() + 1) * ctx.count]


def gather(rows: Tensor) -> Tensor:
    """The rows of every device in order of rank: (n, …) → (world × n, …). Differentiable; all must have the same shape."""
    if world() == 1:
        return rows
    return _Gather.apply(rows)  # pyright: ignore[reportReturnType]


def gather_padded(vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors (n, P, d) and their mask (n, P) of every device, padded to the most patches of any of them."""
    if world() == 1:
        return vectors, mask
    most = torch.tensor(vectors.shape[1], device=vectors.device)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    vectors, mask = widen(vectors, mask, int(most))
    return gather(vectors), gather(mask.to(torch.uint8)).bool()


def widen(vectors: Tensor, mask: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Pad the second axis up to `most`."""
    extra = most - vectors.shape[1]
    if not extra:
        return vectors, mask
    return nn.functional.pad(vectors, (0, 0, 0, extra)), nn.functional.pad(mask, (0, extra))


def stack(vectors: Sequence[Tensor], masks: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Columns of texts end to end, as wide as the widest."""
    most = max(v.shape[1] for v in vectors)
    wide = [widen(v, m, most) for v, m in zip(vectors, masks, strict=True)]
    return torch.cat([v for v, _ in wide]), torch.cat([m for _, m in wide])


def extreme(value: Tensor, largest: bool) -> Tensor:
    """The largest or smallest value of any device; no gradient."""
    value = value.detach().clone()
    if world() > 1:
        dist.all_reduce(value, op=dist.ReduceOp.MAX if largest else dist.ReduceOp.MIN)
    return value


def mean_of_all(value: Tensor) -> Tensor:
    """The mean over the devices; no gradient."""
    value = value.detach().clone()
    if world() > 1:
        dist.all_reduce(value)
    return value / world()


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Put the mean over all devices in the place of each gradient, in one message."""
    grads = [p.grad for p in parameters if p.grad is not None]
    if world() == 1 or not grads:
        return
    flat = torch.cat([g.flatten().float() for g in grads])
    dist.all_reduce(flat)
    flat /= world()
    for grad, mean in zip(grads, flat.split([g.numel() for g in grads]), strict=True):
        grad.copy_(mean.view_as(grad))


def total(value: float, device: torch.device) -> float:
    """The sum over all devices."""
    if world() == 1:
        return value
    found = torch.tensor(value, dtype=torch.float64, device=device)
    dist.all_reduce(found)
    return float(found)


def broadcast(value: Any) -> Any:
    """What the first device has."""
    if world() == 1:
        return value
    held = [value]
    dist.broadcast_object_list(held)
    return held[0]
