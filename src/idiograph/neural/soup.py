"""The mean of several models that began with the same weights: often better than each, and more like what they share."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from idiograph.errors import ArtifactError, InputError
from idiograph.store import MANIFEST, Manifest, draft, fingerprint, seal

LEFT_OUT = (MANIFEST, "history.jsonl")  # what tells of one run
FOLDERS_LEFT_OUT = ("last", "checkpoint")


def average_models(models: Sequence[Path], output: Path, *, half: bool = False, overwrite: bool = False) -> None:
    """Write a model whose weights are the mean of those of `models`; everything else is the first one's.

    `half` writes the weights in 16 bits, which is half as large and for reading texts as good.
    """
    if not models:
        raise InputError("there is no model to average; name two or more")
    for model in models:
        if not any(model.glob("*.safetensors")):
            raise InputError(f"there is no model in '{model}'; name a folder that idiograph train wrote")
    with draft(output, overwrite) as folder:
        for path in sorted(models[0].rglob("*")):
            name = path.relative_to(models[0])
            if path.is_dir() or name.name in LEFT_OUT or name.parts[0] in FOLDERS_LEFT_OUT:
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if name.suffix == ".safetensors":
                save_file(mean([model / name for model in models], half), folder / name, {"format": "pt"})
                (folder / name).chmod(0o644)  # safetensors makes files that only their maker may read
            else:
                shutil.copy(path, folder / name)
        inputs = {model.name: fingerprint(model) for model in models}
        seal(folder, Manifest("model", {"average": len(models), "half": half}, inputs))


def mean(files: Sequence[Path], half: bool) -> dict[str, Tensor]:
    """The mean of each tensor, in the precision of the first file or in 16 bits."""
    states = [load(path) for path in files]
    first = states[0]
    for path, state in zip(files, states, strict=True):
        if {k: v.shape for k, v in state.items()} != {k: v.shape for k, v in first.items()}:
            raise ArtifactError(f"the weights in '{path.parent}' have other shapes than those in '{files[0].parent}'")
    return {name: settle([state[name] for state in states], half) for name in first}


def load(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ArtifactError(f"there is no '{path.name}' in '{path.parent}'; only models of one make can be averaged")
    return load_file(path)


def settle(tensors: Sequence[Tensor], half: bool) -> Tensor:
    """One tensor for several. Whole numbers are not averaged: the first counts."""
    if not tensors[0].is_floating_point():
        return tensors[0]
    total = sum((tensor.float() for tensor in tensors[1:]), tensors[0].float()) / len(tensors)
    return (total.half() if half else total.to(tensors[0].dtype)).contiguous()
