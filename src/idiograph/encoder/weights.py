"""The weights of a model folder, as the graph wants them; a folder that is damaged or of another build is named here.

The graph (`roberta.onnx`, made by `scripts/encoder_graph.py`) holds no weights: they are read from the folder's
`model.safetensors`, of which there is one copy for this runtime and for torch.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.errors import ModelError

Arrays = dict[str, np.ndarray]
LAYER_NUMBER = re.compile(r"\blayers?\.(\d+)\.")
EXPONENT_BITS = {2: (np.uint16, 0x7C00), 4: (np.uint32, 0x7F800000)}  # all set where a number is none or infinite


@dataclass(frozen=True, slots=True)
class Build:
    """How the transformer is made. The graph that is checked in was made for the values that stand here."""

    layers: int = 6
    width: int = 384
    heads: int = 12
    inner: int = 1536
    vocabulary: int = 50265
    positions: int = 514
    token_types: int = 2
    epsilon: float = 1e-12
    lower: int = 1  # the layer that is put beside the last

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """What `model.safetensors` has to hold, by the names that transformers gives."""
        wide, tables = self.width, "embeddings."
        found: dict[str, tuple[int, ...]] = {
            f"{tables}word_embeddings.weight": (self.vocabulary, wide),
            f"{tables}position_embeddings.weight": (self.positions, wide),
            f"{tables}token_type_embeddings.weight": (self.token_types, wide),
            f"{tables}LayerNorm.weight": (wide,),
            f"{tables}LayerNorm.bias": (wide,),
        }
        for layer in range(self.layers):
            for name, shape in self.layer_shapes().items():
                found[f"encoder.layer.{layer}.{name}"] = shape
        return found

    def layer_shapes(self) -> dict[str, tuple[int, ...]]:
        """The same of one layer: its products (rows, columns) with their biases, and two scalings."""
        wide, inner = self.width, self.inner
        products = {f"attention.self.{part}": (wide, wide) for part in ("query", "key", "value")}
        products |= {"attention.output.dense": (wide, wide)}
        products |= {"intermediate.dense": (inner, wide), "output.dense": (wide, inner)}
        scalings = [
            f"{part}.LayerNorm.{kind}" for part in ("attention.output", "output") for kind in ("weight", "bias")
        ]
        return {
            **{f"{name}.weight": shape for name, shape in products.items()},
            **{f"{name}.bias": shape[:1] for name, shape in products.items()},
            **dict.fromkeys(scalings, (wide,)),
        }


SHIPPED_BUILD = Build()


def read_json(path: Path) -> dict[str, Any]:
    """One of the small files of a model folder."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"model '{path.parent}' cannot be opened: {path.name} is missing or damaged") from error
    if not isinstance(found, dict):
        raise ModelError(f"model '{path.parent}' cannot be opened: {path.name} is no JSON object")
    return found


def check_build(folder: Path, build: Build = SHIPPED_BUILD) -> None:
    """Refuse a model that is made otherwise than the graph."""
    config, wording = read_json(folder / "config.json"), read_json(folder / "1_Wording" / "config.json")
    wanted = {
        "model_type": "roberta",
        "hidden_act": "gelu",
        "num_hidden_layers": build.layers,
        "hidden_size": build.width,
        "num_attention_heads": build.heads,
        "intermediate_size": build.inner,
        "vocab_size": build.vocabulary,
        "max_position_embeddings": build.positions,
        "layer_norm_eps": build.epsilon,
    }
    lower = {"width": build.width, "vocabulary": build.vocabulary, "layer": build.lower}
    for found, want in ((config, wanted), (wording, lower)):
        for key, value in want.items():
            if found.get(key) != value:
                raise ModelError(
                    f"model '{folder}' is not built like the shipped one: its {key} is {found.get(key)} and not {value}"
                )


def read_weights(folder: Path, build: Build = SHIPPED_BUILD) -> Arrays:
    """The tensors that the folder has to hold, each checked; the weight of each token id is called `wording`."""
    tensors = read_tensors(folder / "model.safetensors", build.shapes())
    wording = read_tensors(folder / "1_Wording" / "model.safetensors", {"weight": (build.vocabulary,)})
    return {**tensors, "wording": wording["weight"]}


def read_tensors(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Some tensors of a file; what else is in it is left there."""
    from safetensors import SafetensorError, safe_open

    damaged = f"the weights in '{path}' cannot be read"
    try:
        with safe_open(str(path), "np") as file:
            missing = sorted(shapes.keys() - set(file.keys()))
            if missing:
                raise ModelError(f"{damaged}: {missing[0]} is missing; install idiograph again")
            found = {name: file.get_tensor(name) for name in shapes}
    except (OSError, SafetensorError, TypeError, ValueError) as error:
        raise ModelError(f"{damaged}: {error}".splitlines()[0] + "; install idiograph again") from error
    for name, array in found.items():
        check_tensor(damaged, name, array, shapes[name])
    return found


def check_tensor(damaged: str, name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ModelError(f"{damaged}: {name} is {array.shape} and not {shape}; install idiograph again")
    if array.dtype not in (np.float16, np.float32):
        raise ModelError(f"{damaged}: {name} is of type {array.dtype} and not float16; install idiograph again")
    if not all_finite(array):
        raise ModelError(f"{damaged}: {name} holds values that are no numbers; install idiograph again")


def all_finite(array: np.ndarray) -> bool:
    """The same as `np.isfinite(array).all()`, five times as fast: by the bits of the exponent."""
    whole, exponent = EXPONENT_BITS[array.itemsize]
    return not ((array.view(whole) & whole(exponent)) == exponent).any()


def check_weight_files(folder: Path) -> None:
    """Refuse a model folder, whoever made it, whose weights are cut off or lack layers that its configuration promises. A
    library would fill these with chance and go on."""
    names: set[str] = set()
    for path in sorted(folder.glob("*.safetensors")):
        names |= tensor_names(path)
    layers = {int(found[1]) for name in names if (found := LAYER_NUMBER.search(name))}
    promised = read_json(folder / "config.json").get("num_hidden_layers") if layers else None
    if isinstance(promised, int) and (missing := sorted(set(range(promised)) - layers)):
        raise ModelError(f"the weights in '{folder}' have no layer {missing[0]} of {promised}; get the model again")


def tensor_names(path: Path) -> set[str]:
    """What a file of weights holds, by its header; its length must be what the header says."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "np") as file:
            return set(file.keys())
    except (OSError, SafetensorError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"the weights in '{path}' cannot be read: {reason}; get the model again") from error


def graph_weights(tensors: Arrays, build: Build = SHIPPED_BUILD) -> Arrays:
    """The initializers of the graph: products lie as (input, output), query, key and value side by side, all in 32 bits
    but the table of words, of which only rows are ever taken."""
    words = {"words": tensors["embeddings.word_embeddings.weight"].astype(np.float16, copy=False)}
    places = full(tensors["embeddings.position_embeddings.weight"]) + full(
        tensors["embeddings.token_type_embeddings.weight"][0]
    )
    found = {
        "places": places,
        "wording": full(tensors["wording"]),
        "scale": full(tensors["embeddings.LayerNorm.weight"]),
        "shift": full(tensors["embeddings.LayerNorm.bias"]),
    }
    for layer in range(build.layers):
        prefix = f"encoder.layer.{layer}."
        own = {name: full(tensors[prefix + name]) for name in build.layer_shapes()}
        found |= {f"{layer}.{name}": array for name, array in layer_weights(own).items()}
    return words | {name: np.ascontiguousarray(array) for name, array in found.items()}


def layer_weights(own: Arrays) -> Arrays:
    """One layer's tensors under the names of the graph."""
    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
    return {
        "attend": np.concatenate([own[f"{part}.weight"].T for part in parts], axis=1),
        "attend.bias": np.concatenate([own[f"{part}.bias"] for part in parts]),
        "mix": own["attention.output.dense.weight"].T,
        "mix.bias": own["attention.output.dense.bias"],
        "mix.scale": own["attention.output.LayerNorm.weight"],
        "mix.shift": own["attention.output.LayerNorm.bias"],
        "widen": own["intermediate.dense.weight"].T,
        "widen.bias": own["intermediate.dense.bias"],
        "narrow": own["output.dense.weight"].T,
        "narrow.bias": own["output.dense.bias"],
        "narrow.scale": own["output.LayerNorm.weight"],
        "narrow.shift": own["output.LayerNorm.bias"],
    }


def full(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32, copy=False)
