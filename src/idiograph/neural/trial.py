"""One model of a study: trained as its recipe says, then read at several grains. What is done with the scores is not decided
here."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from idiograph.errors import InputError
from idiograph.neural.build import build_model
from idiograph.neural.reader import DevicePatches, PatchReader, encode_texts
from idiograph.neural.training.distributed import choose_device
from idiograph.neural.training.loop import Log, Result, fit_model
from idiograph.neural.training.train import make_batches
from idiograph.neural.triplets import Triplets, name_number
from idiograph.recipe import TrainRecipe
from idiograph.runner import Progress
from idiograph.style.tokens import Floats


class Trial:
    """A backbone with what the recipe puts on it. `longest` is the most tokens of a text that are read."""

    def __init__(self, backbone: str | Path, recipe: TrainRecipe, longest: int, device: str = "auto") -> None:
        self.recipe = recipe
        self.device = choose_device(device)
        self.encoder = build_model(backbone, recipe)
        self.encoder.model.float().to(self.device)
        self.longest = min(longest, self.encoder.reach)
        self.reader = PatchReader(self.encoder.model, self.encoder.prompt, self.longest, self.precision)

    def train(self, parts: Sequence[Triplets], progress: Progress | None = None, log: Log | None = None) -> Result:
        """Train to the last step: nothing is validated, so that no earlier one is chosen."""
        recipe = self.recipe.model_copy(update={"max_length": min(self.recipe.max_length, self.longest)})
        batches = make_batches(self.encoder, parts, recipe)
        return fit_model(self.encoder.model, batches, recipe, progress=progress, log=log)

    def precision(self) -> AbstractContextManager[Any]:
        """Reading needs no more than 16 bits where the machine is made for them."""
        return torch.autocast("cuda", torch.bfloat16) if self.device.type == "cuda" else nullcontext()

    def read(self, texts: Sequence[str], grains: Sequence[str]) -> dict[str, DevicePatches]:
        """The patches of each text at each grain, from one pass of the model."""
        self.encoder.model.eval()
        return self.reader.read_grains(texts, grains)

    def scores(self, a: DevicePatches, b: DevicePatches, mean: bool = True) -> Floats:
        """Every text of `a` against every text of `b`."""
        return self.reader.scores(a, b, mean)

    def wait(self) -> None:
        """Until the device has done what it was given: for whoever takes the time."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @torch.no_grad()
    def cut_probabilities(self, texts: Sequence[str]) -> list[Floats]:
        """How probable a boundary is at each token of each text; only of a model that has learned boundaries."""
        boundary, layer = self.encoder.layer.boundary, self.encoder.layer
        assert boundary is not None
        self.encoder.model.eval()
        ids, mask = encode_texts(self.encoder.model.tokenizer, texts, self.encoder.prompt, self.longest)
        with self.precision():
            features = self.reader.token_vectors(ids.to(self.device), mask.to(self.device))
            prompt = layer.prompt_size if self.encoder.prompt else 0
            kept = layer.kept(features["input_ids"], features["attention_mask"].bool(), prompt)
            chance = boundary.logits(features["token_embeddings"], kept).sigmoid().float().cpu()
        return [row[m].numpy() for row, m in zip(chance, kept.cpu(), strict=True)]


class VectorFile(Trial):
    """Vectors that somebody made of the texts, one each, in place of a model: an .npz file with `vectors` (texts, d) and `keys`
    (texts,), which are `idiograph.neural.triplets.name_number(text)`."""

    def __init__(self, path: Path) -> None:
        try:
            with np.load(path, allow_pickle=False) as file:
                keys, vectors = file["keys"], torch.from_numpy(file["vectors"]).float()
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"'{path}' is no file of vectors: an .npz file with `keys` and `vectors`") from error
        self.path, self.device, self.longest = path, torch.device("cpu"), 0
        self.vectors = nn.functional.normalize(vectors, dim=-1)
        self.places = {int(key): at for at, key in enumerate(keys)}
        self.reader = PatchReader(None)

    def read(self, texts: Sequence[str], grains: Sequence[str]) -> dict[str, DevicePatches]:
        """One vector is one grain; a file has no others."""
        places = [self.places.get(name_number(text), -1) for text in texts]
        if -1 in places:
            raise InputError(f"'{self.path}' has no vector of '{texts[places.index(-1)][:40]}…'")
        one = DevicePatches(self.vectors[places], np.arange(len(texts)), np.ones(len(texts), np.int64))
        return {grain: one for grain in grains if grain == "whole"}
