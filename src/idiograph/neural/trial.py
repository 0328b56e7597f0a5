"""One model of a study: trained as told, then read at any grain. What is done with the scores is not decided here."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idiograph.neural.batches import Batches, Order
from idiograph.neural.build import ModelSettings, build
from idiograph.neural.launch import choose
from idiograph.neural.loop import Log, Progress, Result, TrainSettings, fit
from idiograph.neural.triplets import Triplets
from idiograph.neural.validate import Reader

Floats = NDArray[np.float32]
Vectors = list[Tensor]  # the patches of each text


class Trial:
    """A backbone with what the settings put on it. `longest` is the most tokens of a text that are read."""

    def __init__(self, backbone: str | Path, settings: Mapping[str, Any], longest: int, device: str = "auto") -> None:
        self.settings = ModelSettings(**settings)
        self.encoder = build(backbone, self.settings)
        self.longest = min(longest, self.encoder.window)
        self.device = choose(device)
        self.encoder.model.float().to(self.device)

    def train(
        self,
        parts: Sequence[Triplets],
        settings: Mapping[str, Any],
        progress: Progress | None = None,
        log: Log | None = None,
    ) -> Result:
        """Train on collections that give as many batches each as the root of their size; a batch is of one collection."""
        how = TrainSettings(**settings)
        how = replace(how, max_length=min(how.max_length, self.longest))
        weights = tuple(len(part) ** 0.5 for part in parts)
        order = Order(parts, how.batch, weights, "batches", how.seed, how.max_length)
        batches = Batches(order, self.encoder.model.tokenizer, self.encoder.prompt, how.max_length)
        return fit(self.encoder.model, batches, how, progress=progress, log=log)

    def precision(self) -> Callable[[], AbstractContextManager[Any]]:
        """Reading needs no more than 16 bits where the machine is made for them."""
        if self.device.type != "cuda":
            return nullcontext
        return lambda: torch.autocast("cuda", torch.bfloat16)

    def reader(self, patch: str, mean: bool = True) -> Reader:
        """The model as it stands, read at a grain."""
        self.encoder.layer.patch = patch
        self.encoder.model.eval()
        return Reader(self.encoder.model, self.encoder.prompt, self.longest, mean, self.precision())

    def wait(self) -> None:
        """Until the device has done what it was given: for whoever takes the time."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @torch.inference_mode()
    def cuts(self, texts: Sequence[str]) -> list[Floats]:
        """How probable a boundary is at each token of each text; only of a model that has learned boundaries."""
        boundary = self.encoder.layer.boundary
        assert boundary is not None
        found: list[Floats] = []
        for text in texts:
            tokens = self.encoder.tokenize([text], self.settings.keep)
            kept = torch.from_numpy(tokens[0].keep)[None].to(self.device)
            logits = boundary.logits(self.encoder.token_vectors(tokens), kept)
            found.append(logits[kept].sigmoid().float().cpu().numpy())
        return found


def means(patches: Vectors) -> Floats:
    """One vector a text: the mean of its patches, of unit length. With patches of one token each, or one in all, that is
    mean pooling."""
    stacked = torch.stack([rows.mean(dim=0) for rows in patches])
    return nn.functional.normalize(stacked, dim=-1).float().cpu().numpy()
