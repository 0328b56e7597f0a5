"""An encoder on a sentence-transformers MultiVectorEncoder: opens what people have, reads it at any grain, saves it."""

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from torch import Tensor, nn

from idiograph.encoder.pieces import Pieces
from idiograph.errors import MissingLibrary, ModelError
from idiograph.neural import layers as modules
from idiograph.neural.layers import PatchPooling
from idiograph.runner import Progress
from idiograph.style.patches import Patches, parse_policy, patch_extents
from idiograph.style.tokens import Tokens
from idiograph.style.windows import length_groups, padded_groups, token_windows

LAYER_FILE = "idiograph_patches.py"
LAYER_MODULE = "idiograph_patches"
LAYER_TYPE = f"{LAYER_MODULE}.PatchPooling"
PROMPTS = {r"(^|[-_/])e5[-_]": "query: "}  # families whose weights expect a prefix, by name
BATCH_TOKENS = 8192  # padded tokens in one forward pass: about 200 MB of activations for a small model


class TorchEncoder:
    """Token vectors from a transformer, pooled into patches. `prompt` is put before every text and never scored."""

    def __init__(self, model: MultiVectorEncoder, name: str, prompt: str = "") -> None:
        self.model, self.name, self.prompt = model, name, prompt
        self.layer: PatchPooling = next(m for m in model if isinstance(m, PatchPooling))
        if not getattr(model.tokenizer, "is_fast", False):
            raise ModelError(f"model '{name}' has no fast tokenizer, and without one there are no character offsets")
        self.layer.prompt = prompt
        self.layer.on_model_ready(model)
        table = {kind: flags.numpy() for kind, flags in self.layer.table.items()}
        self.pieces = Pieces(**table)  # stays where texts are tokenized; the layer's own moves with the model
        self.beyond: Literal["read", "cut"] = "read"  # what becomes of a text that is longer than the window
        self.saved_score = "meansim"  # the similarity that a folder of ours was saved with
        self._memory: dict[bytes, Tensor] | None = None

    @classmethod
    def open(cls, source: str | Path, prompt: str | None = None) -> "TorchEncoder":
        """Open a sentence-transformers, ColBERT, PyLate or plain transformers model: a folder or a hub name."""
        source = str(source)
        if not Path(source).is_dir() and (source.startswith((".", "/", "~")) or source.count("/") > 1):
            raise ModelError(f"there is no model folder '{source}'")
        try:
            with quiet():
                model = open_ours(source) if is_ours(source) else adopt(source)
        except (ModelError, MissingLibrary):
            raise
        except Exception as error:  # what a damaged file makes of four libraries has no common name
            raise ModelError(f"model '{source}' cannot be opened: {first_line(error)}") from error
        refuse_nan(model, source)
        found = cls(model, short_name(source), find_prompt(model, source) if prompt is None else prompt)
        if is_ours(source) and model.similarity_fn_name == "maxsim":
            found.saved_score = "maxsim"
        return found

    @property
    def dim(self) -> int:
        return int(self.model.get_embedding_dimension() or 0)

    @property
    def fingerprint(self) -> str:
        """A hash of the weights, the vocabulary and the prompt."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        whole = hashlib.blake2b(self.prompt.encode(), digest_size=6)
        used = {key: value for key, value in self.model.state_dict().items() if ".pooler." not in key}
        for key, value in sorted(used.items()):  # a pooler is never used here, and random where a folder has none
            whole.update(key.encode())
            whole.update(value.detach().cpu().contiguous().view(torch.uint8).numpy())
        whole.update(json.dumps(sorted(self.model.tokenizer.get_vocab().items())).encode())
        return whole.hexdigest()

    @property
    def window(self) -> int:
        """The most tokens that the model reads at once."""
        return int(self.model.get_max_seq_length() or 512)

    @window.setter
    def window(self, tokens: int) -> None:
        if not 4 <= tokens <= self.reach:
            raise ModelError(f"model '{self.name}' reads up to {self.reach} tokens at once, so it cannot read {tokens}")
        self.model.max_seq_length = tokens

    @property
    def reach(self) -> int:
        """The largest window that the weights allow."""
        config: Any = self.model[0].config  # pyright: ignore[reportAttributeAccessIssue]
        reserved = 2 if "roberta" in config.model_type else 0  # places that it counts from
        return int(getattr(config, "max_position_embeddings", self.window + reserved)) - reserved

    def tokenize(self, texts: Sequence[str], keep: str = "all") -> list[Tokens]:
        if not texts:
            return []
        shift = len(self.prompt)
        found = self.model.tokenizer(
            [self.prompt + text for text in texts],
            truncation=self.beyond == "cut",
            max_length=self.window if self.beyond == "cut" else None,
            return_offsets_mapping=True,
            verbose=False,  # a text longer than the window is no mistake
        )
        cut = [encoding.overflowing != [] for encoding in found.encodings]
        return [
            self.pieces.tokens(np.array(ids), np.array(offsets).reshape(-1, 2) - shift, keep, was_cut)
            for ids, offsets, was_cut in zip(found["input_ids"], found["offset_mapping"], cut, strict=True)
        ]

    def published_words(self, ids: np.ndarray) -> np.ndarray:
        """The word of each token by the published rule, by which punctuation belongs to the word before it."""
        return self.pieces.published_words(ids)

    def embed(self, tokens: Sequence[Tokens], patch: str, progress: Progress | None = None) -> Patches:
        """The patches of each text, in the order given; inside, texts of like length go through together."""
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for group in length_groups([len(each) for each in tokens], BATCH_TOKENS):
            batch = group.tolist()
            rows = [tokens[at] for at in batch]
            for at, part in zip(batch, self._embed(rows, patch), strict=True):
                parts[at] = part
            if progress:
                progress(len(parts), len(tokens), "reading texts")
        vectors, chars = zip(*(parts[at] for at in range(len(tokens))), strict=True)
        lengths = np.array([len(v) for v in vectors], dtype=np.int64)
        return Patches(np.concatenate(vectors), lengths, np.concatenate(chars))

    @torch.inference_mode()
    def _embed(self, tokens: Sequence[Tokens], patch: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        vectors = self.token_vectors(tokens)
        if patch.startswith("learned"):
            return self._pooled(tokens, vectors, self._learned(tokens, vectors, patch))
        number = parse_policy(patch)
        raw = vectors.float().cpu().numpy() if patch.startswith("cluster") else [np.empty(0, np.float32)] * len(tokens)
        return self._pooled(tokens, vectors, [number(t, r[: len(t)]) for t, r in zip(tokens, raw, strict=True)])

    def _learned(self, tokens: Sequence[Tokens], vectors: Tensor, patch: str) -> list[np.ndarray]:
        """Patch numbers from the boundaries that the model has learned."""
        if self.layer.boundary is None:
            raise ModelError(f"model '{self.name}' has learned no boundaries; train it with --patch {patch}")
        kept = pad_rows([torch.from_numpy(t.keep) for t in tokens], 0).to(vectors.device)
        found = self.layer.boundary.number(vectors, kept, int(patch.partition(":")[2])).cpu().numpy()
        return [row[: len(t)] for row, t in zip(found, tokens, strict=True)]

    def _pooled(
        self, tokens: Sequence[Tokens], vectors: Tensor, numbers: Sequence[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        padded = pad_rows([torch.from_numpy(n) for n in numbers], -1).to(vectors.device)
        means, mask = self.layer.pooled(vectors, padded)
        rows = nn.functional.normalize(means.float(), dim=-1)[mask].cpu().numpy()
        ends = np.cumsum(mask.sum(dim=1).cpu().numpy())
        return iter(
            [(r, patch_extents(t, n)) for r, t, n in zip(np.split(rows, ends[:-1]), tokens, numbers, strict=True)]
        )

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Keep token vectors inside this block, so that reading the same texts at another grain costs only the pooling.

        Takes 1.5 kB a token of a small model: for a few thousand passages, not for a library.
        """
        self._memory = {}
        try:
            yield
        finally:
            self._memory = None

    @torch.inference_mode()
    def token_vectors(self, tokens: Sequence[Tokens]) -> Tensor:
        """The vectors before pooling: (texts, longest, d); rows past a text's end mean nothing."""
        if self._memory is None:
            return self._forward(tokens)
        keys = [t.ids.tobytes() for t in tokens]
        new = {key: t for key, t in zip(keys, tokens, strict=True) if key not in self._memory}
        if new:
            for (key, t), row in zip(new.items(), self._forward(list(new.values())), strict=True):
                self._memory[key] = row[: len(t)].clone()
        return nn.utils.rnn.pad_sequence([self._memory[key] for key in keys], batch_first=True)

    def _forward(self, tokens: Sequence[Tokens]) -> Tensor:
        """Texts within the window in one pass; a longer one piece by piece, its vectors put together again."""
        cut = [token_windows(t, self.window) for t in tokens]
        flat = [piece for found in cut for piece in found]
        if len(flat) == len(tokens):
            return self._pass([piece.ids for piece in flat])
        rows: list[Tensor] = []
        for group in padded_groups([len(piece.ids) for piece in flat], BATCH_TOKENS):
            vectors = self._pass([piece.ids for piece in flat[group]])
            rows += [v[: len(p.ids)][p.own] for v, p in zip(vectors, flat[group], strict=True)]
        left = iter(rows)
        whole = [torch.cat([next(left) for _ in found]) for found in cut]
        return nn.utils.rnn.pad_sequence(whole, batch_first=True)

    def _pass(self, rows: Sequence[np.ndarray]) -> Tensor:
        """Token vectors of texts that fit into the window."""
        ids = pad_rows([torch.from_numpy(row) for row in rows], self.model.tokenizer.pad_token_id or 0)
        mask = pad_rows([torch.ones(len(row), dtype=torch.long) for row in rows], 0)
        features: dict[str, Any] = {
            "input_ids": ids.to(self.model.device),
            "attention_mask": mask.to(self.model.device),
        }
        self.model.eval()
        for module in self.model:
            if isinstance(module, PatchPooling):
                break
            features = module(features)
        return features["token_embeddings"]

    def save(self, folder: Path, patch: str, keep: str = "all", score: str = "meansim") -> None:
        """Write a folder that opens here, and in plain sentence-transformers with the same scores."""
        self.layer.patch, self.layer.keep = patch, keep
        self.model.prompts.update({"query": self.prompt, "document": self.prompt})
        self.model.similarity_fn_name = "maxsim" if score == "maxsim" else "meanmaxsim"
        with quiet():
            self.model.save_pretrained(str(folder))
        listing = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        for entry in listing:  # our layers are found in the copy of their file that lies in the folder
            entry["type"] = entry["type"].replace(f"{modules.__name__}.", f"{LAYER_MODULE}.")
        (folder / "modules.json").write_text(json.dumps(listing, indent=2), encoding="utf-8")
        shutil.copyfile(modules.__file__, folder / LAYER_FILE)


def gpu_is_usable() -> bool:
    """Has torch a GPU here?"""
    return torch.cuda.is_available()


def pad_rows(rows: Sequence[Tensor], value: int) -> Tensor:
    return nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the libraries' chatter and progress bars; what they complain about still reaches us as an exception."""
    from transformers.utils import logging as transformers_logging

    bars, before = transformers_logging.is_progress_bar_enabled(), logging.root.manager.disable
    transformers_logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
        if bars:
            transformers_logging.enable_progress_bar()


def is_ours(source: str) -> bool:
    """Does the folder hold our patch layer?"""
    listing = Path(source) / "modules.json"
    return listing.is_file() and LAYER_TYPE in listing.read_text(encoding="utf-8")


def open_ours(source: str) -> MultiVectorEncoder:
    """Open a folder that we saved, with the installed layer in place of the copy in the folder: no code is run from it."""
    return MultiVectorEncoder._load_with_module_classes(
        source, {f"{LAYER_MODULE}.{kind.__name__}": kind for kind in modules.LAYERS}
    )


def adopt(source: str) -> MultiVectorEncoder:
    """Open somebody else's model and put our patch layer behind its token vectors."""
    with_layers = has_modules(source)
    if with_layers is None:
        return assemble_batch([Transformer(source)])
    loaded = MultiVectorEncoder(source)
    own = [m for m in loaded if isinstance(m, Transformer) or (with_layers and isinstance(m, Dense))]
    return assemble_batch(own, {name: prompt for name, prompt in loaded.prompts.items() if prompt})


def has_modules(source: str) -> bool | None:
    """None for a plain transformers model; else whether it has a trained projection. The loader adds a random one where
    there is none, which would make every score noise."""
    from sentence_transformers.util import load_file_path

    config = load_file_path(source, "config.json")
    if config and "HF_ColBERT" in (json.loads(Path(config).read_text(encoding="utf-8")).get("architectures") or []):
        return True
    listing = load_file_path(source, "modules.json")
    if listing is None:
        return None
    return any(entry["type"].endswith("Dense") for entry in json.loads(Path(listing).read_text(encoding="utf-8")))


def assemble_batch(own: Sequence[nn.Module], prompts: dict[str, str] | None = None) -> MultiVectorEncoder:
    tail = [MultiVectorMask(), PatchPooling(), Normalize(module_input_name="token_embeddings")]
    return MultiVectorEncoder(modules=[*own, *tail], prompts=prompts)


def find_prompt(model: MultiVectorEncoder, source: str) -> str:
    """The prefix that the model's weights expect before a text."""
    known = {str(source), str(getattr(model.config, "_name_or_path", ""))}
    for pattern, prompt in PROMPTS.items():
        if any(re.search(pattern, name.lower()) for name in known):
            return prompt
    return model.prompts.get("document") or ""


def short_name(source: str) -> str:
    path = Path(source)
    return path.parent.name.replace("_", "-") if path.name == "model" else path.name


def refuse_nan(model: nn.Module, source: str) -> None:
    """Refuse weights with which no text can be read."""
    for name, values in model.state_dict().items():
        if values.is_floating_point() and not torch.isfinite(values).all():
            raise ModelError(f"model '{source}' cannot be opened: {name} holds values that are no numbers")


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0][:300]
