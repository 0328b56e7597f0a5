"""The mean of several models that began with the same weights: often better than each, and more like what they share.

How much the wording counts beside the meaning can be set on the way, since that too needs no training.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from idiograph.errors import ArtifactError, InputError
from idiograph.store import MANIFEST, Manifest, draft, find_manifest, fingerprint, seal

LEFT_OUT = (MANIFEST, "history.jsonl", "calibration.json")  # what tells of one run, or of one model
FOLDERS_LEFT_OUT = ("last", "checkpoint", "calibrations")
WORDING = "Wording"  # the layer, by its name: to read its weights takes no model


def average_models(
    models: Sequence[Path], output: Path, *, half: bool = False, wording: float = 1.0, overwrite: bool = False
) -> None:
    """Write a model whose weights are the mean of those of `models`; everything else is the first one's.

    `half` writes the weights in 16 bits, which is half as large and for reading texts as good. `wording` multiplies what the
    layer of that name gives to each token: how much the wording counts beside the meaning.
    """
    if not models:
        raise InputError("there is no model to average; name two or more")
    if wording <= 0:
        raise InputError(f"the wording cannot count {wording:g} times; give a number above 0")
    for model in models:
        find_manifest(model)
        if not any(model.glob("*.safetensors")):
            raise InputError(f"there is no model in '{model}'; name a folder that idiograph train wrote")
    if wording != 1 and not any(map(is_wording, models[0].rglob("*.safetensors"))):
        raise InputError(f"'{models[0]}' has no layer of wordings; leave --wording out")
    with draft(output, overwrite) as folder:
        for path in sorted(models[0].rglob("*")):
            name = path.relative_to(models[0])
            if path.is_dir() or name.name in LEFT_OUT or name.parts[0] in FOLDERS_LEFT_OUT:
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if name.suffix == ".safetensors":
                times = wording if is_wording(path) else 1.0
                save_file(
                    mean_of_models([model / name for model in models], half, times), folder / name, {"format": "pt"}
                )
                (folder / name).chmod(0o644)  # safetensors makes files that only their maker may read
            else:
                shutil.copy(path, folder / name)
        inputs = {model.name: fingerprint(model) for model in models}
        seal(folder, Manifest("model", {"average": len(models), "half": half, "wording": wording}, inputs))


def is_wording(path: Path) -> bool:
    """Are these the weights of a layer of wordings? Folders of layers are called by number and kind."""
    return path.parent.name.partition("_")[2] == WORDING


def mean_of_models(files: Sequence[Path], half: bool, times: float = 1.0) -> dict[str, Tensor]:
    """The mean of each tensor, as many times as `times` says, in the precision of the first file or in 16 bits."""
    states = [load_weights_of(path) for path in files]
    first = states[0]
    for path, state in zip(files, states, strict=True):
        if {k: v.shape for k, v in state.items()} != {k: v.shape for k, v in first.items()}:
            raise ArtifactError(f"the weights in '{path.parent}' have other shapes than those in '{files[0].parent}'")
    return {name: average_tensors([state[name] for state in states], half, times) for name in first}


def load_weights_of(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ArtifactError(f"there is no '{path.name}' in '{path.parent}'; only models of one make can be averaged")
    return load_file(path)


def average_tensors(tensors: Sequence[Tensor], half: bool, times: float = 1.0) -> Tensor:
    """One tensor for several. Whole numbers are not averaged: the first counts."""
    if not tensors[0].is_floating_point():
        return tensors[0]
    total = sum((tensor.float() for tensor in tensors[1:]), tensors[0].float()) * times / len(tensors)
    return (total.half() if half else total.to(tensors[0].dtype)).contiguous()
