"""A small language model of characters: how surprising a text is to one who has read a corpus. Perplexity, nothing else.

The chance of a character after the four before it is mixed with its chance after three, two, one and none of them, by
Witten and Bell's rule: the more kinds of characters were seen after a context, the less it is relied on. The chances of
all characters sum to one after any context.
"""

import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import ArtifactError, InputError
from idiograph.extras import require_library

ORDER, BITS = 5, 12  # five characters of twelve bits fit into 64
MAX_CHARACTERS = 20_000_000  # that are learned from; more changes little
MIN_COUNT_OF_LONG = 2  # of four or five characters in a row: what came once says little and takes most of the space
UNKNOWN, START = 0, 1  # codes; the others are characters, the most frequent first
OURS, THEIRS = ".npz", (".bin", ".arpa", ".arpa.bin")  # THEIRS: KenLM's

Codes = NDArray[np.uint64]
Score = Callable[[str], float]


@dataclass(frozen=True)
class CharacterModel:
    """What was counted: for each length the n-grams as numbers in order, and how often each came."""

    alphabet: str
    keys: Sequence[Codes]
    counts: Sequence[NDArray[np.int64]]

    @classmethod
    def learn(cls, texts: Iterable[str], most: int = MAX_CHARACTERS) -> "CharacterModel":
        """From the texts, as far as `most` characters go."""
        read = take_characters(texts, most)
        seen = Counter[str]()
        for text in read:
            seen.update(text)
        alphabet = "".join(sorted(seen, key=lambda c: (-seen[c], c))[: (1 << BITS) - 2])
        grams = [np.concatenate([gram_keys(encode(text, alphabet), n) for text in read]) for n in range(1, ORDER + 1)]
        found = [np.unique(each, return_counts=True) for each in grams]
        often = [counts >= (MIN_COUNT_OF_LONG if n > 3 else 1) for n, (_, counts) in enumerate(found, 1)]
        kept = [(keys[some], counts[some]) for (keys, counts), some in zip(found, often, strict=True)]
        return cls(alphabet, [keys for keys, _ in kept], [counts for _, counts in kept])

    def chances(self, codes: Codes) -> NDArray[np.float64]:
        """The chance of each code after those before it."""
        chance = np.full(len(codes), 1.0 / (len(self.alphabet) + 1))
        for n in range(1, ORDER + 1):
            keys = gram_keys(codes, n)
            contexts, totals, kinds = self.contexts[n - 1]
            count = look_up(self.keys[n - 1], self.counts[n - 1], keys)
            total, kind = (look_up(contexts, each, keys >> np.uint64(BITS)) for each in (totals, kinds))
            chance = np.where(total > 0, (count + kind * chance) / np.maximum(total + kind, 1), chance)
        return chance

    @cached_property
    def contexts(self) -> list[tuple[Codes, NDArray[np.int64], NDArray[np.int64]]]:
        """For each length what stood before the last character: how often, and before how many kinds."""
        return [sum_contexts(keys, counts) for keys, counts in zip(self.keys, self.counts, strict=True)]

    def perplexity(self, text: str) -> float:
        """Of a character of the text, on average; not a number for an empty one."""
        codes = encode(plain_line(text), self.alphabet)
        return float(np.exp(-np.log(self.chances(codes)).mean())) if len(codes) else float("nan")

    def save(self, path: Path) -> None:
        arrays: dict[str, Any] = {f"keys_{n}": keys for n, keys in enumerate(self.keys, 1)}
        arrays |= {f"counts_{n}": counts for n, counts in enumerate(self.counts, 1)}
        np.savez_compressed(path, alphabet=np.array([ord(c) for c in self.alphabet], dtype=np.uint32), **arrays)

    @classmethod
    def open(cls, path: Path) -> "CharacterModel":
        try:
            with np.load(path, allow_pickle=False) as saved:
                alphabet = "".join(map(chr, saved["alphabet"]))
                parts = [[saved[f"{what}_{n}"] for n in range(1, ORDER + 1)] for what in ("keys", "counts")]
        except (OSError, ValueError, KeyError, OverflowError, zipfile.BadZipFile) as error:
            raise ArtifactError(f"'{path}' is no language model of ours ({error}); make one: {MAKE}") from error
        return cls(alphabet, *parts)


def sum_contexts(keys: Codes, counts: NDArray[np.int64]) -> tuple[Codes, NDArray[np.int64], NDArray[np.int64]]:
    """N-grams joined by all but their last character: the sum of their counts, and how many they are."""
    contexts, first = np.unique(keys >> np.uint64(BITS), return_index=True)
    kinds = np.diff(np.append(first, len(keys)))
    return contexts, np.add.reduceat(counts, first) if len(first) else kinds, kinds


MAKE = "idiograph corpus language-model CORPUS -o FOLDER"


def take_characters(texts: Iterable[str], most: int) -> list[str]:
    """Texts on one line each, until there are so many characters."""
    taken, size = [], 0
    for text in texts:
        if size >= most:
            break
        taken.append(plain_line(text)[: most - size])
        size += len(taken[-1])
    if not size:
        raise InputError("there is no text to learn a language model from")
    return taken


def plain_line(text: str) -> str:
    return " ".join(text.split())


def encode(text: str, alphabet: str) -> Codes:
    """A number for each character; 0 for one that the model has not met."""
    code = {character: number for number, character in enumerate(alphabet, 2)}
    return np.fromiter((code.get(c, UNKNOWN) for c in text), dtype=np.uint64, count=len(text))


def gram_keys(codes: Codes, n: int) -> Codes:
    """For each character the number of the n characters that end with it; before the first there are marks of a start."""
    padded = np.concatenate([np.full(n - 1, START, dtype=np.uint64), codes])
    keys = np.zeros(len(codes), dtype=np.uint64)
    for at in range(n):
        keys = (keys << np.uint64(BITS)) | padded[at : at + len(codes)]
    return keys


def look_up(keys: Codes, values: NDArray[np.int64], wanted: Codes) -> NDArray[np.int64]:
    """The value of each key that is wanted, 0 for one that is not there."""
    if not len(keys):
        return np.zeros(len(wanted), dtype=np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)


@dataclass(frozen=True, slots=True)
class Perplexity:
    """The perplexity of a text by the model of its language in a folder: `en.npz` of ours, or `en.bin`, `en.arpa` of KenLM.

    Not a number where there is none for the language. It can be sent to other processes.
    """

    folder: str

    def __call__(self, text: str, lang: str) -> float:
        score = open_language(self.folder, lang)
        return float("nan") if score is None or not text.strip() else score(text)


@lru_cache(maxsize=64)
def open_language(folder: str, lang: str) -> Score | None:
    """The scorer of a language, ours before KenLM's."""
    ours = Path(folder) / f"{lang}{OURS}"
    if ours.is_file():
        return CharacterModel.open(ours).perplexity
    found = next((path for ending in THEIRS if (path := Path(folder) / f"{lang}{ending}").is_file()), None)
    return None if found is None else open_kenlm(found)


def open_kenlm(path: Path) -> Score:
    """KenLM's perplexity of a word, for models that others have made."""
    require_library("kenlm", f"the language model '{path}'")
    import kenlm  # pyright: ignore[reportMissingImports]

    model = kenlm.Model(str(path))
    return lambda text: float(model.perplexity(plain_line(text)))


def check_language_models(folder: str) -> None:
    """Refuse a folder without a model before anything else is done."""
    names = [path.name for path in Path(folder).iterdir()] if Path(folder).is_dir() else []
    theirs = [name for name in names if name.endswith(THEIRS)]
    if not theirs and not any(name.endswith(OURS) for name in names):
        raise InputError(f"'{folder}' holds no language model such as en{OURS} or en.arpa; make one: {MAKE}")
    if theirs:
        require_library("kenlm", f"the language model '{theirs[0]}'")
