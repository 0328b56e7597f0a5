"""Several processes, one run: on this machine, on several (torchrun), or on a Ray cluster.

Processes that `torchrun` or Ray Train started find each other by themselves: `join` is all that they need. `on_machines`
and `on_ray` start them from Python.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
import torch.distributed as dist

from idiograph.errors import ModelError, ServiceError

Work = Callable[..., Any]


def join(device: str = "auto") -> torch.device:
    """Meet the other processes of a distributed run, if this one was started for one; returns the device to work on."""
    chosen = choose(device)
    if not dist.is_initialized() and dist.is_torchelastic_launched():
        dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    return chosen


def leave() -> None:
    """Part from the others. A process that dies without it makes them wait."""
    if dist.is_initialized():
        with suppress(RuntimeError):
            dist.destroy_process_group()


def choose(device: str) -> torch.device:
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


def on_machines(work: Work, arguments: tuple[Any, ...], processes: int, machines: int = 1, meeting: str = "") -> Any:
    """Run `work(*arguments)` in `processes` processes on each machine, as torchrun does, and return what the first gives.

    With several machines call this on each of them, with the `meeting` point "host:port" of one.
    """
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=machines,
        max_nodes=machines,
        nproc_per_node=processes,
        run_id=meeting or uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint=meeting or "localhost:0",
        max_restarts=0,
    )
    try:
        return elastic_launch(config, joined)(work, arguments).get(0)
    except ChildFailedError as error:
        rank, first = error.get_first_failure()
        raise ModelError(f"process {rank} of the run failed: {first.message}") from error


def joined(work: Work, arguments: tuple[Any, ...]) -> Any:
    """`work` in a process of a run."""
    join()
    try:
        return work(*arguments)
    finally:
        leave()


def on_ray(
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
