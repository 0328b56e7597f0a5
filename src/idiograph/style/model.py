"""Style = an encoder, read at a grain, with a way to compare. The same weights can be read at any grain."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from idiograph.errors import SpecError, TooShort
from idiograph.spec import unknown_choice
from idiograph.style.patches import Patches, parse_policy
from idiograph.style.score import scorer
from idiograph.style.tokens import Floats, Ints, Tokens

Progress = Callable[[int, int], None]
KEEP = ("all", "words")


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
    """

    encoder: Encoder
    keep: Literal["all", "words"] = "all"
    patch: str = "auto"
    score: str = "meansim"
    progress: Progress | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        parse_policy(self.patch)
        scorer(self.score)
        if self.keep not in KEEP:
            raise SpecError(unknown_choice("keep rule", self.keep, KEEP))

    @property
    def name(self) -> str:
        return f"{self.encoder.name} @ {self.patch}"

    @property
    def fingerprint(self) -> str:
        """What an index made with this style must be searched with."""
        return f"{self.encoder.fingerprint}/{self.patch}/{self.keep}"

    def at(self, patch: str) -> "Style":
        """The same weights read at another grain."""
        return replace(self, patch=patch)

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        tokens = self.encoder.tokenize(texts, self.keep)
        for text, found in zip(texts, tokens, strict=True):
            if not found.keep.any():
                raise TooShort(f"there is nothing to compare in the text {text[:40]!r}: it has no words")
        return tokens

    def encode(self, texts: Sequence[str]) -> Patches:
        """The patches of each text."""
        return self.encoder.embed(self.tokenize(texts), self.patch, self.progress)

    def compare(self, a: Sequence[str], b: Sequence[str]) -> Floats:
        """Every text of `a` against every text of `b`."""
        return scorer(self.score)(self.encode(a), self.encode(b))
