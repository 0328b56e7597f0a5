"""Style = an encoder, read at a grain, with a way to compare. The same weights can be read at any grain."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from idiograph.errors import SpecError, TooShort
from idiograph.runner import Progress
from idiograph.spec import unknown_choice
from idiograph.style.patches import Patches, parse_policy
from idiograph.style.score import scorer
from idiograph.style.tokens import Bools, Floats, Ints, Tokens

KEEP = ("all", "words")
READINGS = ("published", "sound")
TOKEN_BY_TOKEN = "ngram:1"


class Encoder(Protocol):
    """Anything that turns texts into token vectors and these into patches."""

    @property
    def dim(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    def tokenize(self, texts: Sequence[str], keep: str) -> list[Tokens]: ...
    def published_words(self, ids: Ints) -> Ints: ...
    def embed(self, tokens: Sequence[Tokens], patch: str, progress: Progress | None = None) -> Patches: ...
    def remembering(self) -> AbstractContextManager[None]: ...


class Ranker(Protocol):
    """Anything that compares texts: a Style, BM25, Delta."""

    @property
    def name(self) -> str: ...
    def compare(self, a: Sequence[str], b: Sequence[str]) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Style:
    """How texts are read and compared.

    `keep="words"` leaves punctuation out of every patch; `patch` and `score` are the names in `POLICIES` and `SCORERS`.
    `folder` is where the model was opened: what was learned about it lies there, too.
    `reading="published"` reads as the published code does, whatever `keep` says: special tokens count like any other, so
    that windows are over raw positions and begin at the start token; punctuation is left out of queries alone, and only
    where each token is a patch, and belongs to the word before it.
    """

    encoder: Encoder
    keep: Literal["all", "words"] = "all"
    patch: str = "auto"
    score: str = "meansim"
    progress: Progress | None = None
    folder: Path | None = None
    reading: Literal["sound", "published"] = "sound"

    def __post_init__(self) -> None:
        parse_policy(self.patch)
        scorer(self.score)
        if self.keep not in KEEP:
            raise SpecError(unknown_choice("keep rule", self.keep, KEEP))
        if self.reading not in READINGS:
            raise SpecError(unknown_choice("reading", self.reading, READINGS))

    @property
    def name(self) -> str:
        return f"{self.encoder.name} @ {self.patch}"

    @property
    def fingerprint(self) -> str:
        """What an index made with this style must be searched with."""
        keep = self.keep if self.reading == "sound" else self.reading
        return f"{self.encoder.fingerprint}/{self.patch}/{keep}"

    def at(self, patch: str) -> "Style":
        """The same weights read at another grain."""
        return replace(self, patch=patch)

    def tokenize(self, texts: Sequence[str], query: bool = False) -> list[Tokens]:
        """The tokens of each text. Only the published reading reads a query otherwise than what it is compared with."""
        published = self.reading == "published"
        tokens = self.encoder.tokenize(texts, "all" if published else self.keep)
        for text, found in zip(texts, tokens, strict=True):
            if not found.keep.any():
                raise TooShort(f"there is nothing to compare in the text {text[:40]!r}: it has no words")
        return self._as_published(texts, tokens, query) if published else tokens

    def _as_published(self, texts: Sequence[str], tokens: Sequence[Tokens], query: bool) -> list[Tokens]:
        keep = [keep_whole_text(each) for each in tokens]
        if query and self.patch == TOKEN_BY_TOKEN:
            bare = self.encoder.tokenize(texts, "words")
            keep = [k & ~(t.keep & ~b.keep) for k, t, b in zip(keep, tokens, bare, strict=True)]
        words = self.encoder.published_words
        return [replace(t, keep=k, words=words(t.ids)) for t, k in zip(tokens, keep, strict=True)]

    def encode(self, texts: Sequence[str], query: bool = False) -> Patches:
        """The patches of each text."""
        return self.encoder.embed(self.tokenize(texts, query), self.patch, self.progress)

    def compare(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """Every text of `a` against every text of `b`."""
        return scorer(self.score)(self.encode(a, query=True), self.encode(b))


def keep_whole_text(tokens: Tokens) -> Bools:
    """Every token of the text and the special ones around it, but no prompt before it."""
    begins = int(np.argmax(tokens.keep))  # of the text
    keep = np.ones(len(tokens), bool)
    keep[1:begins] = False
    return keep
