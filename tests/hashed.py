"""An encoder without weights, for tests of what holds its vectors: each word has a direction that its letters decide, and
leans a little towards its neighbours. It opens in no time, in any process."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import numpy as np

from idiograph.runner import Progress
from idiograph.style.model import Style
from idiograph.style.patches import Patches, parse_policy, patch_extents, pool_patches, unit_vectors
from idiograph.style.tokens import Floats, Tokens


@cache
def direction(word: str, dim: int) -> Floats:
    seed = int.from_bytes(hashlib.blake2b(word.lower().encode(), digest_size=8).digest(), "big")
    return unit_vectors(np.random.default_rng(seed).normal(size=dim))


class Hashed:
    """See the module."""

    name, fingerprint = "hashed", "0123456789abcdef"

    def __init__(self, dim: int = 32) -> None:
        self.dim = dim

    def tokenize(self, texts: Sequence[str], keep: str) -> list[Tokens]:
        return [self._tokens(text) for text in texts]

    def _tokens(self, text: str) -> Tokens:
        found = list(re.finditer(r"\w+|[^\w\s]", text))
        self.words = {**getattr(self, "words", {}), **{hash(m[0]) % 2**62: m[0] for m in found}}
        ids = np.array([hash(m[0]) % 2**62 for m in found], np.int64)
        return Tokens(ids, np.array([m.span() for m in found]), np.arange(len(found)), np.ones(len(found), bool))

    def published_words(self, ids: np.ndarray) -> np.ndarray:
        return np.arange(len(ids))

    def embed(self, tokens: Sequence[Tokens], patch: str, progress: Progress | None = None) -> Patches:
        parts = [self._patches(t, patch) for t in tokens]
        lengths = np.array([len(v) for v, _ in parts], np.int64)
        return Patches(np.concatenate([v for v, _ in parts]), lengths, np.concatenate([c for _, c in parts]))

    def _patches(self, tokens: Tokens, patch: str) -> tuple[Floats, np.ndarray]:
        words = np.stack([direction(self.words[i], self.dim) for i in tokens.ids.tolist()])
        vectors = unit_vectors(words + 0.3 * np.roll(words, 1, axis=0) + 0.3 * words.mean(axis=0))
        number = parse_policy(patch)(tokens, vectors)
        return pool_patches(vectors, number), patch_extents(tokens, number)

    @contextmanager
    def remembering(self) -> Iterator[None]:
        yield


def hashed_style() -> Style:
    return Style(Hashed(), patch="ngram:3")
