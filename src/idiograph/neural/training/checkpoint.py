"""Where a run stands, on disk: enough to go on as if nothing had happened. Written whole or not at all."""

from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from idiograph.errors import ArtifactError
from idiograph.neural.training.distributed import broadcast, world
from idiograph.neural.training.optimize import State
from idiograph.recipe import TrainRecipe

STATE, BEST = "state.pt", "best.pt"


def save_checkpoint(path: Path, value: Mapping[str, Any]) -> None:
    """Write so that a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    torch.save(dict(value), partial)
    partial.replace(path)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """What `save` wrote; only tensors and plain values, no code."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError, LookupError, UnpicklingError) as error:
        raise ArtifactError(f"the checkpoint '{path}' cannot be read ({error}); remove it to begin again") from error


def random_state() -> State:
    """The state of the random numbers of this process."""
    state = {"cpu": torch.get_rng_state()}
    return state | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})


def restore_random_state(state: State) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def random_states() -> list[State]:
    """The same of every device, for the first one to write down."""
    if world() == 1:
        return [random_state()]
    states: list[Any] = [None] * world()
    torch.distributed.all_gather_object(states, random_state())
    return states


def check_same_settings(recipe: TrainRecipe, saved: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on with other settings than a run was begun with."""
    now = plain_settings(recipe)
    other = [f"{key} {saved.get(key)!r} → {value!r}" for key, value in now.items() if saved.get(key) != value]
    if other:
        raise ArtifactError(
            f"the run in '{folder}' was begun with other settings ({', '.join(other)}); "
            "give the same ones, or choose another folder"
        )


def plain_settings(recipe: TrainRecipe) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in recipe}


def find_checkpoint(folder: Path | None) -> dict[str, Any] | None:
    """The checkpoint of a folder, if there is one; each device reads it for itself."""
    there = broadcast(folder is not None and (folder / STATE).is_file())
    return load_checkpoint(folder / STATE) if folder is not None and there else None
