"""A model to train: a backbone, perhaps a head, and the patch layer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import nn

from idiograph.errors import ModelError, SpecError
from idiograph.neural.encoder import TorchEncoder, assemble_batch
from idiograph.neural.layers import Centering, Weighing, Wording
from idiograph.neural.reader import patch_layer
from idiograph.neural.training.adapters import add_adapters
from idiograph.neural.training.boundaries import attach_boundaries
from idiograph.recipe import TrainRecipe
from idiograph.spec import parse_spec
from idiograph.style.patches import POLICIES

WIDEN = 4  # how much wider the middle of the MLP head is: that of the published code


def check_model_settings(recipe: TrainRecipe) -> None:
    """Refuse settings that no model can have together."""
    parse_spec(recipe.patch, "patch policy", {*POLICIES, "learned:N"})
    if recipe.dim != "none" and recipe.head == "none":
        raise SpecError(f"dim {recipe.dim} needs a head to get there; choose head 'linear'")
    if recipe.compress != "mean" and recipe.patch.startswith("learned"):
        raise SpecError("learned boundaries are taught through means; set compress to 'mean'")
    if recipe.reading == "published" and recipe.keep != "all":
        raise SpecError("the published reading has its own rule for punctuation; set keep to 'all'")


def build_model(backbone: str | Path, recipe: TrainRecipe) -> TorchEncoder:
    """Open a backbone and put on it what the recipe asks for. New layers are drawn from its `seed` alone."""
    check_model_settings(recipe)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        opened = TorchEncoder.open(backbone)  # may draw weights of its own: those of a pooler, which nobody uses
        own = [m for m in opened.model if isinstance(m, kept_layers(recipe))]
        prompts = {name: prompt for name, prompt in opened.model.prompts.items() if prompt}
        model = assemble_batch([*own, *added_layers(opened, own, recipe)], prompts)
        layer = patch_layer(model)
        layer.patch, layer.keep = recipe.patch, recipe.keep
        layer.compress, layer.published = pooling_layer(recipe), recipe.reading == "published"
        if recipe.patch.startswith("learned"):
            attach_boundaries(model, int(model.get_embedding_dimension() or 0), recipe.patch, recipe.boundaries)
            keep_boundaries(opened, model)
        add_adapters(model, recipe.adapters)
    return TorchEncoder(model, opened.name, opened.prompt)


def kept_layers(recipe: TrainRecipe) -> tuple[type[nn.Module], ...]:
    """The kinds of layers that training goes on with where a model has them."""
    return (
        Transformer,
        Dense,
        WeightedLayerPooling,
        Centering,
        *([Weighing] if recipe.compress == "attention" else []),
        *([Wording] if recipe.layers == "wording" else []),
    )


def pooling_layer(recipe: TrainRecipe) -> str:
    """How the patch layer compresses. Attention is a layer of its own, in front of a mean."""
    return "max" if recipe.compress == "max" else "mean"


def all_layers(folder: str | Path) -> TorchEncoder:
    """A model as it is, with the mean of all its layers in place of the last one; nothing is trained."""
    opened = TorchEncoder.open(folder)
    if any(isinstance(module, (Dense, WeightedLayerPooling, Wording)) for module in opened.model):
        raise ModelError(f"model '{opened.name}' has layers of its own behind the last; read it without 'layers:'")
    read = opened.layer
    shape = TrainRecipe(patch=read.patch or "auto", keep="words" if read.keep == "words" else "all", layers="mean")
    encoder = build_model(folder, shape)
    encoder.name = f"layers:{encoder.name}"
    return encoder


def added_layers(opened: TorchEncoder, own: Sequence[nn.Module], recipe: TrainRecipe) -> list[nn.Module]:
    """The modules that the backbone does not come with."""
    extra: list[nn.Module] = []
    fresh_wording = recipe.layers == "wording" and not any(isinstance(module, Wording) for module in own)
    wide = opened.dim * (2 if fresh_wording else 1)
    width = wide if recipe.dim == "none" else recipe.dim
    if recipe.layers == "mean" and not any(isinstance(module, WeightedLayerPooling) for module in own):
        extra.append(mixed_layers(own[0]))
    if fresh_wording:
        config = output_all_layers(own[0])
        extra.append(Wording(config.hidden_size, config.vocab_size))
    extra += projection_layer(wide, recipe)
    if recipe.center and not any(isinstance(module, Centering) for module in own):
        extra.append(Centering(width))
    if recipe.compress == "attention" and not any(isinstance(module, Weighing) for module in own):
        extra.append(Weighing(width))
    return extra


def mixed_layers(transformer: nn.Module) -> WeightedLayerPooling:
    """The mean of all layers, with weights that are equal at first and are learned."""
    config = output_all_layers(transformer)
    return WeightedLayerPooling(config.hidden_size, num_hidden_layers=config.num_hidden_layers, layer_start=0)


def output_all_layers(transformer: nn.Module) -> Any:
    """Have a backbone hand on all its layers; its configuration."""
    assert isinstance(transformer, Transformer)
    config = transformer.model.config
    config.output_hidden_states = True
    return config


def projection_layer(size: int, recipe: TrainRecipe) -> list[nn.Module]:
    """Stock layers, so that a saved folder needs no code of ours for them."""
    out = size if recipe.dim == "none" else recipe.dim
    if recipe.head == "linear":
        layer = dense_layer(size, out, nn.Identity(), bias=False)
        nn.init.orthogonal_(layer.linear.weight)  # angles survive an orthogonal map as well as they can
        return [layer]
    if recipe.head == "mlp":
        return [dense_layer(size, WIDEN * size, nn.ReLU()), dense_layer(WIDEN * size, out, nn.Identity())]
    return []


def dense_layer(size: int, out: int, activation: nn.Module, bias: bool = True) -> Dense:
    return Dense(size, out, bias, activation, module_input_name="token_embeddings")


def keep_boundaries(opened: TorchEncoder, model: nn.Module) -> None:
    """A model that has learned boundaries goes on with them."""
    before, now = opened.layer.boundary, patch_layer(model).boundary
    if before is not None and now is not None and before.cut == now.cut:
        now.load_state_dict(before.state_dict())
