"""A model to train: a backbone, perhaps a head, and the patch layer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import nn

from idiograph.errors import SpecError
from idiograph.neural.encoder import Encoder, assemble
from idiograph.spec import unknown

HEADS = ("linear", "mlp", "none")
LAYERS = ("last", "mean")
WIDEN = 4  # how much wider the middle of the MLP head is: that of the published code


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What is trained. `dim` "none" keeps the backbone's own width."""

    patch: str = "auto"
    keep: Literal["all", "words"] = "all"
    head: str = "none"
    dim: int | Literal["none"] = "none"
    layers: str = "last"  # `mean` mixes all layers, with weights that are learned
    center: bool = False  # take the mean vector of the language off every token

    def __post_init__(self) -> None:
        if self.head not in HEADS:
            raise SpecError(unknown("head", self.head, HEADS))
        if self.layers not in LAYERS:
            raise SpecError(unknown("layers", self.layers, LAYERS))
        if self.dim != "none" and self.head == "none":
            raise SpecError(f"dim {self.dim} needs a head to get there; add --head linear")


def build(backbone: str | Path, settings: ModelSettings, seed: int = 7) -> Encoder:
    """Open a backbone and put on it what the settings ask for. New layers are drawn from `seed` alone."""
    opened = Encoder.open(backbone)
    own = [module for module in opened.model if isinstance(module, (Transformer, Dense, WeightedLayerPooling))]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = dress(opened, own, settings)
    encoder = Encoder(model, opened.name, opened.prompt)
    encoder.layer.patch, encoder.layer.keep = settings.patch, settings.keep
    return encoder


def dress(opened: Encoder, own: list[nn.Module], settings: ModelSettings) -> MultiVectorEncoder:
    """The modules of the new model; one that has a projection already keeps it."""
    extra: list[nn.Module] = []
    if settings.layers == "mean":
        extra.append(mixed_layers(own[0]))
    extra += projection(opened.dim, settings)
    return assemble([*own, *extra], {name: prompt for name, prompt in opened.model.prompts.items() if prompt})


def mixed_layers(transformer: nn.Module) -> WeightedLayerPooling:
    """The mean of all layers, whose weights are learned."""
    assert isinstance(transformer, Transformer)
    config = transformer.model.config
    config.output_hidden_states = True
    return WeightedLayerPooling(config.hidden_size, config.num_hidden_layers, layer_start=0)


def projection(size: int, settings: ModelSettings) -> list[nn.Module]:
    """Stock layers, so that a saved folder needs no code of ours for them."""
    out = size if settings.dim == "none" else settings.dim
    if settings.head == "linear":
        layer = dense(size, out, nn.Identity(), bias=False)
        nn.init.orthogonal_(layer.linear.weight)  # angles survive an orthogonal map as well as they can
        return [layer]
    if settings.head == "mlp":
        return [dense(size, WIDEN * size, nn.ReLU()), dense(WIDEN * size, out, nn.Identity())]
    return []


def dense(size: int, out: int, activation: nn.Module, bias: bool = True) -> Dense:
    return Dense(size, out, bias, activation, module_input_name="token_embeddings")
