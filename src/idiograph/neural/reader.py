"""One model of a study: trained as told, then read at several grains. What is done with the scores is not decided here.

Made for many models on one backbone, one after the other: texts are tokenised once, the backbone is opened once, a text goes
through a model once whatever the number of grains, and patches stay on the device until they are scored.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idiograph.errors import InputError
from idiograph.neural.build import ModelSettings, build_model
from idiograph.neural.encoder import TorchEncoder
from idiograph.neural.layers import PatchPooling
from idiograph.neural.maxsim.padded import fusible, torch_maxsim
from idiograph.neural.training.batches import PAD_TO, Batches, Order
from idiograph.neural.training.distributed import choose_device
from idiograph.neural.training.loop import Log, Result, TrainSettings, fit_model
from idiograph.neural.training.loss import lowered_scores
from idiograph.neural.training.optimize import State, snapshot
from idiograph.neural.triplets import Triplets, name_number
from idiograph.runner import Progress
from idiograph.style.tokens import Ints

Floats = NDArray[np.float32]
TOKENS = {"cuda": 2**17}  # padded tokens in one pass
FEW_TOKENS = 2**14  # on other devices
BLOCK, FUSED_BLOCK = (64, 256), (512, 4096)  # texts of either side that are scored at once


class Memory:
    """The tokens of every text that was asked for, cut to `longest`."""

    def __init__(self, tokenizer: Any, prompt: str, longest: int) -> None:
        self.tokenizer, self.prompt, self.longest = tokenizer, prompt, longest
        self._known: dict[str, Ints] = {}

    def __call__(self, texts: Sequence[str]) -> list[Ints]:
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        for at in range(0, len(new), 4096):
            some = new[at : at + 4096]
            made = self.tokenizer([self.prompt + t for t in some], truncation=True, max_length=self.longest)
            self._known |= {t: np.array(row, np.int64) for t, row in zip(some, made["input_ids"], strict=True)}
        return [self._known[text] for text in texts]

    def padded(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Ids and mask, as wide as the longest text needs: what `batches.encode` makes of them."""
        rows = self(texts)
        lengths = np.array([len(row) for row in rows])
        width = -(-int(lengths.max()) // PAD_TO) * PAD_TO
        mask = np.arange(width)[None] < lengths[:, None]  # (texts, width)
        ids = np.full(mask.shape, self.tokenizer.pad_token_id or 0, np.int64)
        ids[mask] = np.concatenate(rows)
        return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Remembered(Batches):
    """Batches of texts whose tokens are known."""

    memory: Memory | None = None

    def encode(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        assert self.memory is not None
        return self.memory.padded(texts)


@dataclass(frozen=True, slots=True, eq=False)
class DevicePatches:
    """The patches of some texts, on the device that made them; those of a text lie one after the other."""

    vectors: Tensor  # (rows, d), of unit length
    starts: Ints  # (texts,)
    sizes: Ints  # (texts,)

    def __len__(self) -> int:
        return len(self.sizes)

    def padded(self, places: Ints) -> tuple[Tensor, Tensor]:
        """(n, longest, d) and the (n, longest) mask; what stands where nothing is means nothing."""
        sizes = self.sizes[places]
        step = np.arange(int(sizes.max()))[None]
        mask = step < sizes[:, None]
        at = np.where(mask, self.starts[places][:, None] + step, 0)
        device = self.vectors.device
        return self.vectors[torch.from_numpy(at).to(device)], torch.from_numpy(mask).to(device)

    def means(self) -> Floats:
        """One vector a text: the mean of its patches, of unit length. With patches of one token each, or one in all, that
        is mean pooling."""
        order = np.argsort(self.starts, kind="stable")
        owner = torch.from_numpy(np.repeat(order, self.sizes[order])).to(self.vectors.device)
        sums = self.vectors.new_zeros(len(self), self.vectors.shape[1]).index_add_(0, owner, self.vectors)
        return nn.functional.normalize(sums, dim=-1).cpu().numpy()


@dataclass(frozen=True, slots=True, eq=False)
class OpenedBackbone:
    """A backbone with its layers as it was before any training."""

    encoder: TorchEncoder
    state: State
    memories: dict[int, Memory]

    def memory(self, longest: int) -> Memory:
        known = self.memories.get(longest)
        if known is None:
            known = self.memories[longest] = Memory(self.encoder.model.tokenizer, self.encoder.prompt, longest)
        return known


_opened_backbones: dict[tuple[Any, ...], OpenedBackbone] = {}  # of this process


def reopen_backbone(backbone: str | Path, settings: ModelSettings, device: torch.device) -> OpenedBackbone:
    """The backbone with what the settings put on it, as at first; opened once in a process."""
    plain = settings if settings.patch.startswith("learned") else replace(settings, patch="whole")
    key = str(backbone), plain, str(device)
    if key not in _opened_backbones:
        encoder = build_model(backbone, plain)
        encoder.model.float().to(device)
        memories = next((o.memories for (name, *_), o in _opened_backbones.items() if name == str(backbone)), {})
        _opened_backbones[key] = OpenedBackbone(encoder, snapshot(encoder.model, "cpu"), memories)
    found = _opened_backbones[key]
    found.encoder.model.load_state_dict(found.state)
    found.encoder.model.zero_grad(set_to_none=True)
    found.encoder.layer.patch = settings.patch
    return found


class OpenedTrial:
    """A backbone with what the settings put on it. `longest` is the most tokens of a text that are read. The next trial on
    the same backbone takes its weights back: one trial at a time."""

    def __init__(self, backbone: str | Path, settings: Mapping[str, Any], longest: int, device: str = "auto") -> None:
        self.settings = ModelSettings(**settings)
        self.device = choose_device(device)
        self.opened = reopen_backbone(backbone, self.settings, self.device)
        self.encoder = self.opened.encoder
        self.longest = min(longest, self.encoder.reach)

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
        memory = self.opened.memory(how.max_length)
        memory([text for part in parts for text in part.texts])
        batches = Remembered(order, memory.tokenizer, self.encoder.prompt, how.max_length, memory=memory)
        self.encoder.layer.patch = self.settings.patch
        return fit_model(self.encoder.model, batches, how, progress=progress, log=log)

    def precision(self) -> AbstractContextManager[Any]:
        """Reading needs no more than 16 bits where the machine is made for them."""
        return torch.autocast("cuda", torch.bfloat16) if self.device.type == "cuda" else nullcontext()

    @torch.no_grad()
    def read(self, texts: Sequence[str], grains: Sequence[str]) -> dict[str, DevicePatches]:
        """The patches of each text at each grain, from one pass of the model as it stands."""
        self.encoder.model.eval()
        memory = self.opened.memory(self.longest)
        lengths = np.array([len(row) for row in memory(texts)])
        order = np.argsort(lengths, kind="stable")
        found: dict[str, list[tuple[Tensor, Tensor]]] = {grain: [] for grain in grains}
        for part in length_groups(order, lengths, TOKENS.get(self.device.type, FEW_TOKENS)):
            ids, mask = memory.padded([texts[int(at)] for at in part])
            with self.precision():
                features = self.token_vectors(ids.to(self.device), mask.to(self.device))
                for grain, made in found.items():
                    made.append(self.pooled(features, grain))
        return {grain: in_text_order(made, order) for grain, made in found.items()}

    def token_vectors(self, ids: Tensor, mask: Tensor) -> dict[str, Any]:
        """What the patch layer is given."""
        features: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        features |= {"prompt_length": 1} if self.encoder.prompt else {}
        for module in self.encoder.model:
            if isinstance(module, PatchPooling):
                break
            features = apply_layers(module, features)
        return features

    def pooled(self, features: Mapping[str, Any], grain: str) -> tuple[Tensor, Tensor]:
        """The patches of all texts, one after the other, and how many each has."""
        self.encoder.layer.patch = grain
        modules = list(self.encoder.model)
        output = dict(features)
        for module in modules[modules.index(self.encoder.layer) :]:
            output = apply_layers(module, output)
        mask = output["attention_mask"].bool()
        return output["token_embeddings"][mask].float(), mask.sum(dim=1)

    @torch.no_grad()
    def scores(self, patches: DevicePatches, left: Ints, right: Ints, mean: bool = True) -> Floats:
        """Every text at the places `left` against every text at `right`; like lengths go together."""
        rows, columns = (np.argsort(patches.sizes[side], kind="stable") for side in (left, right))
        result = np.empty((len(left), len(right)), np.float32)
        with self.precision():
            tall, wide = FUSED_BLOCK if fusible(lowered_scores(patches.vectors[None, :1])) else BLOCK
            for some in cut_tokens(columns, wide):
                vectors, mask = patches.padded(right[some])
                for few in cut_tokens(rows, tall):
                    ours, shown = patches.padded(left[few])
                    found = torch_maxsim(lowered_scores(ours), shown, lowered_scores(vectors), mask, mean)
                    result[np.ix_(few, some)] = found.float().cpu().numpy()
        return result

    def wait(self) -> None:
        """Until the device has done what it was given: for whoever takes the time."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @torch.no_grad()
    def cuts(self, texts: Sequence[str]) -> list[Floats]:
        """How probable a boundary is at each token of each text; only of a model that has learned boundaries."""
        boundary, layer = self.encoder.layer.boundary, self.encoder.layer
        assert boundary is not None
        self.encoder.model.eval()
        ids, mask = self.opened.memory(self.longest).padded(texts)
        with self.precision():
            features = self.token_vectors(ids.to(self.device), mask.to(self.device))
            prompt = layer.prompt_size if self.encoder.prompt else 0
            kept = layer.kept(features["input_ids"], features["attention_mask"].bool(), prompt)
            chance = boundary.logits(features["token_embeddings"], kept).sigmoid().float().cpu()
        return [row[m].numpy() for row, m in zip(chance, kept.cpu(), strict=True)]


class Given(OpenedTrial):
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

    def read(self, texts: Sequence[str], grains: Sequence[str]) -> dict[str, DevicePatches]:
        """One vector is one grain; a file has no others."""
        places = [self.places.get(name_number(text), -1) for text in texts]
        if -1 in places:
            raise InputError(f"'{self.path}' has no vector of '{texts[places.index(-1)][:40]}…'")
        one = DevicePatches(self.vectors[places], np.arange(len(texts)), np.ones(len(texts), np.int64))
        return {grain: one for grain in grains if grain == "whole"}


def apply_layers(module: nn.Module, features: dict[str, Any]) -> dict[str, Any]:
    """One module of a model, told that it reads a document if it wants to know."""
    asks = "task" in getattr(module, "forward_kwargs", ())
    return module(features, task="document") if asks else module(features)


def in_text_order(made: Sequence[tuple[Tensor, Tensor]], order: Ints) -> DevicePatches:
    """Patches that were made in `order`, as those of the texts in their own."""
    sizes = torch.cat([size for _, size in made]).cpu().numpy().astype(np.int64)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return DevicePatches(torch.cat([vectors for vectors, _ in made]), (np.cumsum(sizes) - sizes)[back], sizes[back])


def length_groups(order: Ints, lengths: Ints, limit: int) -> Iterator[Ints]:
    """Runs of texts, from the shortest to the longest, whose padded size stays within the limit."""
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end - begin + 1) * (lengths[order[end]] + PAD_TO) > limit:
            yield order[begin:end]
            begin = end


def cut_tokens(places: Ints, size: int) -> Iterator[Ints]:
    return (places[at : at + size] for at in range(0, len(places), size))
