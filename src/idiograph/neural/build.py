"""A model to train: a backbone, perhaps a head, and the patch layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import nn

from idiograph.errors import SpecError
from idiograph.neural.encoder import Encoder, assemble
from idiograph.neural.learned import BOUNDARIES, attach, layer_of
from idiograph.neural.modules import Centering
from idiograph.spec import parse, unknown
from idiograph.style.model import KEEP
from idiograph.style.patches import POLICIES

HEADS = ("linear", "mlp", "none")
LAYERS = ("last", "mean")
WIDEN = 4  # how much wider the middle of the MLP head is: that of the published code


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What is trained. `dim` "none" keeps the width of the backbone."""

    patch: str = "auto"
    keep: Literal["all", "words"] = "all"
    head: str = "none"
    dim: int | Literal["none"] = "none"
    layers: str = "last"  # `mean` mixes all layers, with weights that are learned
    center: bool = False  # take the mean vector of all tokens off each
    boundaries: str = "budget"  # how `learned:N` patches are found

    def __post_init__(self) -> None:
        parse(self.patch, "patch policy", {*POLICIES, "learned:N"})
        choices = {"head": HEADS, "layers": LAYERS, "boundaries": BOUNDARIES, "keep": KEEP}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise SpecError(unknown(name, getattr(self, name), known))
        if self.dim != "none" and self.head == "none":
            raise SpecError(f"dim {self.dim} needs a head to get there; choose head 'linear'")


def build(backbone: str | Path, settings: ModelSettings, seed: int = 7) -> Encoder:
    """Open a backbone and put on it what the settings ask for. New layers are drawn from `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        opened = Encoder.open(backbone)  # may draw weights of its own: those of a pooler, which nobody uses
        own = [m for m in opened.model if isinstance(m, (Transformer, Dense, WeightedLayerPooling, Centering))]
        prompts = {name: prompt for name, prompt in opened.model.prompts.items() if prompt}
        model = assemble([*own, *added(opened, own, settings)], prompts)
        layer = layer_of(model)
        layer.patch, layer.keep = settings.patch, settings.keep
        if settings.patch.startswith("learned"):
            attach(model, int(model.get_embedding_dimension() or 0), settings.patch, settings.boundaries)
            keep_boundaries(opened, model)
    return Encoder(model, opened.name, opened.prompt)


def added(opened: Encoder, own: Sequence[nn.Module], settings: ModelSettings) -> list[nn.Module]:
    """The modules that the backbone does not come with."""
    extra: list[nn.Module] = []
    if settings.layers == "mean" and not any(isinstance(module, WeightedLayerPooling) for module in own):
        extra.append(mixed_layers(own[0]))
    extra += projection(opened.dim, settings)
    if settings.center and not any(isinstance(module, Centering) for module in own):
        width = opened.dim if settings.dim == "none" else settings.dim
        extra.append(Centering(width))
    return extra


def mixed_layers(transformer: nn.Module) -> WeightedLayerPooling:
    """The mean of all layers, with weights that are equal at first and are learned."""
    assert isinstance(transformer, Transformer)
    config = transformer.model.config
    config.output_hidden_states = True
    return WeightedLayerPooling(config.hidden_size, num_hidden_layers=config.num_hidden_layers, layer_start=0)


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


def keep_boundaries(opened: Encoder, model: nn.Module) -> None:
    """A model that has learned boundaries goes on with them."""
    before, now = opened.layer.boundary, layer_of(model).boundary
    if before is not None and now is not None and before.cut == now.cut:
        now.load_state_dict(before.state_dict())
