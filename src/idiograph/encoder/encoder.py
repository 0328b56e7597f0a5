"""The shipped model on onnxruntime and tokenizers: what `neural.encoder` does for any model, for this one without torch."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from idiograph.checksums import remember_derived
from idiograph.encoder.pieces import Pieces, read_pieces
from idiograph.encoder.session import CUDA, run_session, start_session
from idiograph.encoder.weights import SHIPPED_BUILD, Arrays, check_build, full, graph_weights, read_json, read_weights
from idiograph.errors import ModelError
from idiograph.runner import Progress
from idiograph.style.patches import Patches, parse_policy, patch_extents, pool_patches
from idiograph.style.tokens import Floats, Ints, Tokens
from idiograph.style.windows import length_groups, padded_groups, token_windows

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

BATCH_TOKENS = 1024  # padded tokens in one pass: what lies in the caches of a core is read fastest
BATCH_TOKENS_ON_GPU = 32768
RESERVED = 2  # places from which RoBERTa counts
PAD = "<pad>"
FINGERPRINTED_FILES = ("model.safetensors", "1_Wording/model.safetensors", "tokenizer.json")


@dataclass(frozen=True, slots=True)
class SavedReading:
    """How the model of a folder is to be read unless a caller says otherwise."""

    patch: str
    keep: str
    score: str
    published: bool = False

    @classmethod
    def of_folder(cls, folder: Path) -> "SavedReading":
        pooling = read_json(folder / "3_PatchPooling" / "config.json")
        if pooling.get("prompt") or pooling.get("width") or pooling.get("compress", "mean") != "mean":
            raise ModelError(f"model '{folder}' is not built like the shipped one: it has a prompt or pools otherwise")
        maxsim = read_json(folder / "config_sentence_transformers.json").get("similarity_fn_name") == "maxsim"
        score = "maxsim" if maxsim else "meansim"
        return cls(pooling.get("patch", "auto"), pooling.get("keep", "all"), score, bool(pooling.get("published")))


class OnnxEncoder:
    """Token vectors from the graph that comes with the package, pooled into patches."""

    def __init__(
        self, folder: Path, tokenizer: "Tokenizer", session: "InferenceSession", window: int, saved: SavedReading
    ) -> None:
        self.folder, self.name, self.tokenizer, self.session = folder, folder.name, tokenizer, session
        self.reach = window
        self.layer, self.saved_score = saved, saved.score
        self.beyond: Literal["read", "cut"] = "read"  # what becomes of a text that is longer than the window
        self._window = window
        self.batch_tokens = BATCH_TOKENS_ON_GPU if CUDA in session.get_providers() else BATCH_TOKENS
        self._pad = tokenizer.token_to_id(PAD) or 0
        self._memory: dict[bytes, Floats] | None = None

    @classmethod
    def open(cls, folder: str | Path, threads: int | None = None) -> "OnnxEncoder":
        """Open a folder that is built like the shipped model, on as many threads as this process may use."""
        folder = Path(folder)
        check_build(folder)
        saved, tokenizer = SavedReading.of_folder(folder), open_tokenizer(folder / "tokenizer.json")
        longest = read_json(folder / "tokenizer_config.json").get("model_max_length", SHIPPED_BUILD.positions)
        window = min(int(longest), SHIPPED_BUILD.positions - RESERVED)
        session = start_session(graph_weights(read_weights(folder)), threads)
        return cls(folder, tokenizer, session, window, saved)

    @property
    def dim(self) -> int:
        return 2 * SHIPPED_BUILD.width

    @property
    def fingerprint(self) -> str:
        """A hash of the weights and the vocabulary: that of the same folder opened in torch."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return remember_derived(self.folder, FINGERPRINTED_FILES, self._read_fingerprint, "fingerprints")

    def _read_fingerprint(self) -> str:
        return fingerprint_model(read_weights(self.folder), self.tokenizer.get_vocab())

    @cached_property
    def pieces(self) -> Pieces:
        """What the pieces of the vocabulary are."""
        added = self.tokenizer.get_added_tokens_decoder()
        special = [at for at, token in added.items() if token.special]
        return read_pieces(self.tokenizer.get_vocab(), special, self.tokenizer.decoder)

    @property
    def window(self) -> int:
        """The most tokens that the model reads at once."""
        return self._window

    @window.setter
    def window(self, tokens: int) -> None:
        if not 4 <= tokens <= self.reach:
            raise ModelError(f"model '{self.name}' reads up to {self.reach} tokens at once, so it cannot read {tokens}")
        self._window = tokens

    def tokenize(self, texts: Sequence[str], keep: str = "all") -> list[Tokens]:
        if not texts:
            return []
        if self.beyond == "cut":
            self.tokenizer.enable_truncation(self.window)
        else:
            self.tokenizer.no_truncation()
        return [
            self.pieces.tokens(np.array(e.ids), np.array(e.offsets).reshape(-1, 2), keep, e.overflowing != [])
            for e in self.tokenizer.encode_batch(list(texts))
        ]

    def published_words(self, ids: Ints) -> Ints:
        """The word of each token by the published rule, by which punctuation belongs to the word before it."""
        return self.pieces.published_words(ids)

    def embed(self, tokens: Sequence[Tokens], patch: str, progress: Progress | None = None) -> Patches:
        """The patches of each text, in the order given; inside, texts of like length go through together."""
        number = parse_policy(patch)
        if patch.startswith("learned"):
            raise ModelError(f"model '{self.name}' has learned no boundaries; train it with --patch {patch}")
        parts: dict[int, tuple[Floats, Ints]] = {}
        for batch in length_groups([len(each) for each in tokens], self.batch_tokens):
            rows = [tokens[at] for at in batch]
            for at, row, vectors in zip(batch.tolist(), rows, self.token_vectors(rows), strict=True):
                numbers = number(row, vectors)
                parts[at] = pool_patches(vectors, numbers), patch_extents(row, numbers)
            if progress:
                progress(len(parts), len(tokens), "reading texts")
        vectors, chars = zip(*(parts[at] for at in range(len(tokens))), strict=True)
        lengths = np.array([len(v) for v in vectors], dtype=np.int64)
        return Patches(np.concatenate(vectors), lengths, np.concatenate(chars))

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Keep token vectors inside this block, so that reading the same texts at another grain costs only the pooling.

        Takes 3 kB a token: for a few thousand passages, not for a library.
        """
        self._memory = {}
        try:
            yield
        finally:
            self._memory = None

    def token_vectors(self, tokens: Sequence[Tokens]) -> list[Floats]:
        """The vectors before pooling, (S, d) of each text."""
        if self._memory is None:
            return self._forward(tokens)
        keys = [t.ids.tobytes() for t in tokens]
        new = {key: t for key, t in zip(keys, tokens, strict=True) if key not in self._memory}
        if new:
            self._memory |= {k: v.copy() for k, v in zip(new, self._forward(list(new.values())), strict=True)}
        return [self._memory[key] for key in keys]

    def _forward(self, tokens: Sequence[Tokens]) -> list[Floats]:
        """Texts within the window in one pass; a longer one piece by piece, its vectors put together again."""
        cut = [token_windows(t, self.window) for t in tokens]
        flat = [piece for pieces in cut for piece in pieces]
        rows: list[Floats] = []
        for group in padded_groups([len(piece.ids) for piece in flat], self.batch_tokens):
            vectors = run_session(self.session, [piece.ids for piece in flat[group]], self._pad)
            rows += [v[: len(p.ids)][p.own] for v, p in zip(vectors, flat[group], strict=True)]
        left = iter(rows)
        return [np.concatenate(own) if len(own) > 1 else own[0] for own in ([next(left) for _ in p] for p in cut)]


def open_tokenizer(path: Path) -> "Tokenizer":
    """The tokenizer of a model folder, which neither cuts nor pads unless it is told to."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exceptions
        first = str(error).strip().splitlines()[0]
        raise ModelError(f"the tokenizer '{path}' cannot be read: {first}; install idiograph again") from error
    if tokenizer.token_to_id(PAD) is None or tokenizer.get_vocab_size() > SHIPPED_BUILD.vocabulary:
        raise ModelError(f"the tokenizer '{path}' is not that of the shipped model; install idiograph again")
    tokenizer.no_padding()
    return tokenizer


def fingerprint_model(tensors: Arrays, vocabulary: dict[str, int]) -> str:
    """The hash that `neural.encoder` gives the same folder: an index made with one is searched with the other."""
    names = {"1.weight" if name == "wording" else f"0.model.{name}": name for name in tensors}
    whole = hashlib.blake2b(digest_size=6)
    for key in sorted(names):
        whole.update(key.encode())
        whole.update(np.ascontiguousarray(full(tensors[names[key]])).view(np.uint8).data)
    whole.update(json.dumps(sorted(vocabulary.items())).encode())
    return whole.hexdigest()
