"""Low-rank adapters: the backbone stays as it is, and beside each of its matrices a product of two thin ones learns.

A saved model knows nothing of them: `merged` adds them to the weights.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from idiograph.errors import SpecError
from idiograph.neural.training.optimize import LAYER, State

SCALE = 2.0  # of the product: what it learns counts for more than a step of its own size
MARK = ".parametrizations.weight."


class LowRank(nn.Module):
    """W → W + scale · B A. B is 0 at first, so that nothing changes before the first step."""

    def __init__(self, rows: int, columns: int, rank: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, columns) * columns**-0.5)
        self.b = nn.Parameter(torch.zeros(rows, rank))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + SCALE * (self.b @ self.a)


def add_adapters(model: Any, rank: int) -> None:
    """Put an adapter on every matrix of the backbone's attention and feed-forward layers; rank 0 puts none."""
    if not rank:
        return
    layers = {n: m for n, m in model[0].named_modules() if isinstance(m, nn.Linear) and LAYER.search(f".{n}.")}
    if not layers:
        raise SpecError("this backbone has no layers of linear maps to adapt; set adapters to 0")
    for layer in layers.values():
        parametrize.register_parametrization(layer, "weight", LowRank(layer.out_features, layer.in_features, rank))


def merged_weights(state: State) -> State:
    """Weights with their adapters added to them, under the names that they have without."""
    found: State = {}
    for name, value in state.items():
        layer, marked, part = name.partition(MARK)
        if not marked:
            found[name] = value
        elif part == "original":
            a, b = state[f"{layer}{MARK}0.a"], state[f"{layer}{MARK}0.b"]
            found[f"{layer}.weight"] = value + SCALE * (b.to(value) @ a.to(value))
    return found


def merge_adapters(model: Any) -> None:
    """Add the adapters of a model to its weights, for good."""
    for layer in [m for m in model[0].modules() if parametrize.is_parametrized(m)]:
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
