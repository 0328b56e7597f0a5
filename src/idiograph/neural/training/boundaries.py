"""Learned patch boundaries, as far as training is concerned: `learned:N`. The layer itself travels with a saved model and is
in `idiograph.neural.layers`.

budget  a text of S tokens gets ⌈S / N⌉ patches; where they begin is learned through the loss itself. In training boundaries
        are soft, and harden as the temperature falls, so that what is trained becomes what is used.
reg1    the published variants: a boundary wherever its probability is above a half, drawn by chance for anchors, never for
reg2    other texts. Patches are numbered by counting, through which no gradient passes: only the penalty teaches the head.
        Kept to repeat the published negative result.
"""

from typing import Any

from torch import Tensor

from idiograph.errors import SpecError
from idiograph.neural.layers import Boundary
from idiograph.neural.reader import patch_layer
from idiograph.spec import parse_spec, unknown_choice

BOUNDARIES = ("budget", "reg1", "reg2")
WEIGHT = 0.1  # of the penalty, as published
HOT, COLD = 1.0, 0.05  # temperatures: soft at first, hard in all but name at the end
COOLED = 0.8  # the part of a run after which it is cold


def boundary_of(model: Any) -> Boundary | None:
    """The head that finds boundaries, if the model is read by it."""
    layer = patch_layer(model)
    return layer.boundary if layer.patch.startswith("learned") else None


def attach_boundaries(model: Any, width: int, patch: str, kind: str = "budget") -> None:
    """Give a model's patch layer a new head for token vectors of this width."""
    if kind not in BOUNDARIES:
        raise SpecError(unknown_choice("kind of boundaries", kind, BOUNDARIES))
    parse_spec(patch, "learned patch policy", ["learned:N"])
    layer = patch_layer(model)
    layer.learn(width, kind)
    layer.patch = patch
    layer.to(model.device)


def samples_anchors(model: Any) -> bool:
    """Are the boundaries of anchors drawn by chance, and taught by a penalty?"""
    boundary = boundary_of(model)
    return boundary is not None and boundary.cut != "budget"


def reads_anchors_differently(model: Any) -> bool:
    """Are anchors read otherwise than other texts?"""
    return samples_anchors(model) or patch_layer(model).apart


def cool_boundaries(model: Any, part: float) -> None:
    """Set the temperature for the point that a run has reached, from 0 to 1: a geometric fall, then cold."""
    boundary = boundary_of(model)
    if boundary is not None:
        boundary.temperature = HOT * (COLD / HOT) ** min(part / COOLED, 1.0)


def boundary_penalty(model: Any, output: dict[str, Tensor]) -> Tensor:
    """The published regularisers, over the anchors: reg1 −log of the expected number of boundaries, which falls without end
    as everything becomes one; reg2 the squared difference of the rate of boundaries and 1 / N."""
    layer, chance = patch_layer(model), output["cut_probability"]
    if layer.cut == "reg1":
        return -WEIGHT * (chance.sum(dim=1) + 1e-8).log().mean()
    rate = chance.sum(dim=1) / output["cut_tokens"].clamp(min=1)
    return WEIGHT * (rate - 1 / int(layer.patch.partition(":")[2])).square().mean()
