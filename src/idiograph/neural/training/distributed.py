"""Several processes, one run: on this machine, on several (torchrun), or on a Ray cluster.

Processes that `torchrun` or Ray Train started find each other by themselves: `join_processes` is all that they need.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from idiograph.errors import ModelError, ServiceError

Work = Callable[..., Any]


def join_processes(device: str = "auto") -> torch.device:
    """Meet the other processes of a distributed run, if this one was started for one; returns the device to work on."""
    chosen = choose_device(device)
    if not dist.is_initialized() and dist.is_torchelastic_launched():
        dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    return chosen


def choose_device(device: str) -> torch.device:
    """`auto` is this process's GPU, or else the CPU."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise ModelError(f"there is no device '{device}'; choose from auto, cpu, cuda") from error
    if found.type == "cuda":
        if not torch.cuda.is_available():
            raise ModelError("there is no GPU here; use device 'cpu'")
        found = torch.device("cuda", local_rank() if found.index is None else found.index)
        torch.cuda.set_device(found)
    return found


def local_rank() -> int:
    """Which process of this machine this is."""
    from torch.distributed.distributed_c10d import get_node_local_rank

    return get_node_local_rank(fallback_rank=0)


def train_on_ray(
    work: Work, arguments: tuple[Any, ...], workers: int, gpus: bool, notes: Path, address: str | None = None
) -> None:
    """Run `work(*arguments)` in `workers` processes of a Ray cluster. What they make they leave in folders, which must be
    on a disk that all machines share; so must `notes`, where Ray keeps its own."""
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False)
        except ConnectionError as error:
            raise ServiceError(f"no Ray cluster answers at '{address}'; start one: ray start --head") from error

    def loop() -> None:
        work(*arguments)

    scaling = ScalingConfig(num_workers=workers, use_gpu=gpus)
    TorchTrainer(loop, scaling_config=scaling, run_config=RunConfig(storage_path=str(notes.resolve()))).fit()


def world() -> int:
    """How many devices train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def process_rank() -> int:
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
        return total[process_rank() * ctx.count : (process_rank() + 1) * ctx.count]


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


def total_of(value: float, device: torch.device) -> float:
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
