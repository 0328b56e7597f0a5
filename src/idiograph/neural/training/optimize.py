"""How weights move: which of them, at what rate, and what is done to them after the last step."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from idiograph.errors import SpecError
from idiograph.spec import unknown_choice

LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)\.")
EMBEDDINGS = re.compile(r"embeddings?\b|embed_tokens|\bwte\b|\bwpe\b")
State = dict[str, Tensor]
ADAPTER = ".parametrizations."  # in the names of a matrix that has an adapter, and of the adapter


def depth(name: str, layers: int) -> int:
    """How far up a parameter of the backbone is: 0 the embeddings, 1 … the layers, `layers` + 1 what comes after."""
    found = LAYER.search(name)
    if found:
        return int(found[1]) + 1
    return 0 if EMBEDDINGS.search(name) else layers + 1


def count_layers(names: Sequence[str]) -> int:
    return 1 + max((int(found[1]) for name in names if (found := LAYER.search(name))), default=-1)


def backbone_names(model: nn.Sequential) -> set[str]:
    """The parameters that came with the model, not those of a head that we put on it."""
    return {f"0.{name}" for name, _ in model[0].named_parameters()}


def freeze(model: nn.Sequential, layers: int) -> None:
    """Stop the embeddings and the lowest `layers` layers from learning; 0 freezes nothing. Poolers are never used,
    and of a backbone with adapters these alone learn."""
    names = [name for name, _ in model[0].named_parameters()]
    known = count_layers(names)
    if layers > known:
        raise SpecError(f"cannot freeze {layers} layers: the model has {known}")
    adapted = any(ADAPTER in name for name in names)
    for name, parameter in model[0].named_parameters():
        unused = ".pooler." in f".{name}" or (adapted and not is_adapter(name))
        parameter.requires_grad_(not unused and not (layers and depth(name, known) <= layers))


def is_adapter(name: str) -> bool:
    """Is a parameter part of an adapter? The matrix that the adapter is put on is not."""
    return ADAPTER in name and not name.endswith(".original")


def parameter_groups(
    model: nn.Sequential,
    others: Mapping[str, nn.Parameter],
    rate: float,
    head_rate: float,
    decay: float,
    layer_decay: float,
    decay_all: bool,
) -> list[dict[str, Any]]:
    """Groups of parameters that share a rate and a weight decay; `others` are those of the loss, which never decay.

    `layer_decay` below 1 makes lower layers learn more slowly: they know the language, the upper ones the task.
    """
    own = backbone_names(model)
    layers = count_layers(sorted(own))
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            slow = name in own and not is_adapter(name)
            speed = rate * layer_decay ** (layers + 1 - depth(name, layers)) if slow else head_rate
            weight = decay if decay_all or parameter.ndim > 1 else 0.0
            groups.setdefault((speed, weight), []).append(parameter)
    learned = [parameter for parameter in others.values() if parameter.requires_grad]
    if learned:
        groups.setdefault((head_rate, 0.0), []).extend(learned)
    return [{"params": p, "lr": speed, "weight_decay": weight} for (speed, weight), p in groups.items()]


def cosine_schedule(part: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * part))


def linear_schedule(part: float) -> float:
    return 1 - part


def constant_schedule(part: float) -> float:  # noqa: ARG001
    return 1.0


SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": constant_schedule,
    "cosine": cosine_schedule,
    "linear": linear_schedule,
}


def schedule(name: str, warmup: float, steps: int) -> Callable[[int], float]:
    """The share of the full rate at each step: a straight rise over the first `warmup` of the run, then `name`."""
    if name not in SCHEDULES:
        raise SpecError(unknown_choice("schedule", name, SCHEDULES))
    rise = math.ceil(warmup * steps)

    def share(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        return SCHEDULES[name]((step - rise) / max(steps - rise, 1))

    return share


class Shadow:
    """A moving average of the weights, which is often better than the weights themselves. `decay` 0 keeps none."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.state: State = snapshot(model) if decay else {}

    @torch.no_grad()
    def update(self) -> None:
        for name, value in self.model.state_dict().items():
            if name in self.state and value.is_floating_point():
                self.state[name].lerp_(value.to(self.state[name]), 1 - self.decay)

    @contextmanager
    def with_averages(self) -> Iterator[None]:
        """The model with the averaged weights, inside this block."""
        if not self.decay:
            yield
            return
        before = snapshot(self.model)
        self.model.load_state_dict(self.state)
        try:
            yield
        finally:
            self.model.load_state_dict(before)


def snapshot(model: nn.Module, device: str | None = None) -> State:
    """A copy of the weights, on another device if one is named."""
    return {name: value.detach().to(device or value.device, copy=True) for name, value in model.state_dict().items()}


@torch.no_grad()
def blend_with_base(state: State, base: State, share: float) -> None:
    """Move weights in place towards those of `base`: 0 leaves them, 1 restores it. Often keeps what the base knew of other
    fields, at a small price in the field that was trained on."""
    if not 0 <= share <= 1:
        raise SpecError(f"average_with_base must be between 0 and 1, but got {share}")
    for name, value in state.items():
        if share and name in base and value.is_floating_point():
            value.lerp_(base[name].to(value), share)
