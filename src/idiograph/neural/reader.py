"""Texts → patches on torch: a model as it stands, without gradient, at one grain or several in one pass, and their scores.

Patches stay on the device that made them until they are scored. Character offsets, windows and token vectors are the
business of `idiograph.neural.encoder`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from idiograph.neural.layers import PatchPooling
from idiograph.neural.maxsim.padded import fusible, lower_precision, torch_maxsim
from idiograph.style.tokens import Floats, Ints
from idiograph.style.windows import length_groups

PAD_TO = 8  # widths are multiples of this, as tensor cores like them
TEXTS_AT_ONCE = 4096  # that are tokenized together
TOKENS = {"cuda": 2**17}  # padded tokens in one pass
FEW_TOKENS = 2**14  # on other devices
BLOCK, FUSED_BLOCK = (64, 256), (512, 4096)  # texts of either side that are scored at once
TOKENIZING = Lock()  # a tokenizer keeps the length to cut at, so that two threads would cut at each other's


@dataclass(frozen=True, slots=True, eq=False)
class DevicePatches:
    """The patches of some texts, on the device that made them; those of a text lie one after the other."""

    vectors: Tensor  # (rows, d), of unit length
    starts: Ints  # (texts,)
    sizes: Ints  # (texts,)

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, places: Ints) -> "DevicePatches":
        """The patches of the texts at these places; nothing is copied on the device."""
        return DevicePatches(self.vectors, self.starts[places], self.sizes[places])

    def padded(self) -> tuple[Tensor, Tensor]:
        """(n, longest, d) and the (n, longest) mask; what stands where nothing is means nothing."""
        step = np.arange(int(self.sizes.max()))[None]
        mask = step < self.sizes[:, None]
        at = np.where(mask, self.starts[:, None] + step, 0)
        device = self.vectors.device
        return self.vectors[torch.from_numpy(at).to(device)], torch.from_numpy(mask).to(device)

    def means(self) -> Floats:
        """One vector a text: the mean of its patches, of unit length. With patches of one token each, or one in all, that
        is mean pooling."""
        owner = np.repeat(np.arange(len(self)), self.sizes)
        rows = np.arange(len(owner)) + np.repeat(self.starts - np.cumsum(self.sizes) + self.sizes, self.sizes)
        owner, rows = (torch.from_numpy(numbers).to(self.vectors.device) for numbers in (owner, rows))
        sums = self.vectors.new_zeros(len(self), self.vectors.shape[1]).index_add_(0, owner, self.vectors[rows])
        return nn.functional.normalize(sums, dim=-1).cpu().numpy()


@dataclass(frozen=True, slots=True, eq=False)
class PatchReader:
    """How texts become patches: `prompt` is put before each, and no more than `longest` tokens are read."""

    model: Any
    prompt: str = ""
    longest: int = 512
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext

    def read(self, texts: Sequence[str], task: str = "document") -> DevicePatches:
        """The patches of each text, at the grain that the model is set to."""
        grain = patch_layer(self.model).patch
        return self.read_grains(texts, [grain], task)[grain]

    @torch.no_grad()
    def read_grains(
        self, texts: Sequence[str], grains: Sequence[str], task: str = "document"
    ) -> dict[str, DevicePatches]:
        """The patches of each text at each grain, from one pass of the model."""
        layer, device = patch_layer(self.model), self.model.device
        rows, before = token_ids(self.model.tokenizer, texts, self.prompt, self.longest), layer.patch
        groups = length_groups([len(row) + PAD_TO for row in rows], TOKENS.get(device.type, FEW_TOKENS))
        parts: dict[str, list[tuple[Tensor, Tensor]]] = {grain: [] for grain in grains}
        try:
            for group in groups:
                ids, mask = pad_ids(self.model.tokenizer, [rows[at] for at in group])
                with self.precision():
                    features = self.token_vectors(ids.to(device), mask.to(device), task)
                    for grain, made in parts.items():
                        layer.patch = grain
                        made.append(self.pooled(features, task))
        finally:
            layer.patch = before
        order = np.concatenate(groups)
        return {grain: in_text_order(made, order) for grain, made in parts.items()}

    def token_vectors(self, ids: Tensor, mask: Tensor, task: str = "document") -> dict[str, Any]:
        """What the patch layer is given."""
        features = model_features(ids, mask, bool(self.prompt))
        for module in self.model:
            if isinstance(module, PatchPooling):
                break
            features = apply_layer(module, features, task)
        return features

    def pooled(self, features: Mapping[str, Any], task: str) -> tuple[Tensor, Tensor]:
        """The patches of all texts, one after the other, and how many each has."""
        modules, output = list(self.model), dict(features)
        for module in modules[modules.index(patch_layer(self.model)) :]:
            output = apply_layer(module, output, task)
        mask = output["attention_mask"].bool()
        return output["token_embeddings"][mask].float(), mask.sum(dim=1)

    @torch.no_grad()
    def scores(self, a: DevicePatches, b: DevicePatches, mean: bool = True) -> Floats:
        """Every text of `a` against every text of `b`; like lengths go together."""
        rows, columns = (np.argsort(side.sizes, kind="stable") for side in (a, b))
        result = np.empty((len(a), len(b)), np.float32)
        with self.precision():
            tall, wide = FUSED_BLOCK if fusible(lower_precision(a.vectors[None, :1])) else BLOCK
            for some in cut_blocks(columns, wide):
                theirs, their_mask = b.take(some).padded()
                for few in cut_blocks(rows, tall):
                    ours, our_mask = a.take(few).padded()
                    block = torch_maxsim(lower_precision(ours), our_mask, lower_precision(theirs), their_mask, mean)
                    result[np.ix_(few, some)] = block.float().cpu().numpy()
        return result


def patch_layer(model: Any) -> PatchPooling:
    """The patch layer of a model."""
    return next(module for module in model.modules() if isinstance(module, PatchPooling))


def model_features(ids: Tensor, mask: Tensor, prompted: bool) -> dict[str, Any]:
    """A batch of texts as sentence-transformers' modules take it."""
    return {"input_ids": ids, "attention_mask": mask} | ({"prompt_length": 1} if prompted else {})


def apply_layer(module: nn.Module, features: dict[str, Any], task: str) -> dict[str, Any]:
    """One module of a model, told what it reads if it wants to know."""
    asks = "task" in getattr(module, "forward_kwargs", ())
    return module(features, task=task) if asks else module(features)


def in_text_order(parts: Sequence[tuple[Tensor, Tensor]], order: Ints) -> DevicePatches:
    """Patches that were made in `order`, as those of the texts in their own."""
    sizes = torch.cat([size for _, size in parts]).cpu().numpy().astype(np.int64)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return DevicePatches(torch.cat([vectors for vectors, _ in parts]), (np.cumsum(sizes) - sizes)[back], sizes[back])


def cut_blocks(places: Ints, size: int) -> list[Ints]:
    return [places[at : at + size] for at in range(0, len(places), size)]


def token_ids(tokenizer: Any, texts: Sequence[str], prompt: str, longest: int) -> list[list[int]]:
    """The tokens of each text, behind the prompt and cut to `longest`."""
    plain = tokenizer.backend_tokenizer  # without the lists that transformers makes of everything else it knows
    rows: list[list[int]] = []
    for at in range(0, len(texts), TEXTS_AT_ONCE):
        some = [prompt + text for text in texts[at : at + TEXTS_AT_ONCE]]
        with TOKENIZING:
            plain.enable_truncation(longest, direction=tokenizer.truncation_side)
            plain.no_padding()
            rows += [one.ids for one in plain.encode_batch_fast(some)]
    return rows


def pad_ids(tokenizer: Any, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Token ids and mask, as wide as the longest text needs."""
    lengths = np.array([len(row) for row in rows])
    width = -(-int(lengths.max()) // PAD_TO) * PAD_TO
    mask = np.arange(width)[None] < lengths[:, None]  # (texts, width)
    ids = np.full(mask.shape, tokenizer.pad_token_id or 0, np.int64)
    ids[mask] = np.concatenate(rows)
    return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))


def encode_texts(tokenizer: Any, texts: Sequence[str], prompt: str, longest: int) -> tuple[Tensor, Tensor]:
    """Token ids and mask of texts that go through a model together."""
    return pad_ids(tokenizer, token_ids(tokenizer, texts, prompt, longest))
