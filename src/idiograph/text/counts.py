"""How near two spans are in their words: BM25 over many given pairs at once, in numpy. Not a search engine.

A word is a number below 2^16 by a hash of its letters. Two rare words may share one; among thirty candidates that moves
no choice that matters, and a span costs a few hundred bytes on disk.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.seeded import hash_text
from idiograph.text.words import WORD

VOCABULARY = 1 << 16
K1, B = 1.5, 0.75
PARTS: dict[str, Any] = {"sizes": np.uint16, "words": np.uint16, "times": np.uint8}
CHUNK = 32  # anchors scored at once: their table of weights (8 MB) stays in the cache

Floats = NDArray[np.float32]
Longs = NDArray[np.int64]


class _Codes(dict[str, int]):
    def __missing__(self, word: str) -> int:
        self[word] = hash_text(word, size=2)
        return self[word]


@dataclass(frozen=True)
class Terms:
    """The words of spans with how often each occurs; those of span `at` are the `sizes[at]` after all before it."""

    sizes: NDArray[np.uint16]
    words: NDArray[np.uint16]
    times: NDArray[np.uint8]

    @classmethod
    def open(cls, prefix: Path) -> "Terms":
        """What `join_terms` wrote, mapped into memory."""
        return cls(*(map_numbers(part_of(prefix, name), kind) for name, kind in PARTS.items()))


def join_terms(parts: Iterable[Mapping[str, NDArray[Any]]], prefix: Path) -> Path:
    """Write many lists of words one after another into three files."""
    for name in PARTS:
        part_of(prefix, name).unlink(missing_ok=True)
    for part in parts:
        for name in PARTS:
            with part_of(prefix, name).open("ab") as file:
                part[name].tofile(file)
    return prefix


def part_of(prefix: Path, name: str) -> Path:
    return prefix.with_name(f"{prefix.name}.{name}")


def map_numbers(path: Path, kind: Any) -> NDArray[Any]:
    return np.memmap(path, dtype=kind, mode="r") if path.stat().st_size else np.zeros(0, dtype=kind)


def term_counts(texts: Iterable[str]) -> Terms:
    """The words of each text, whatever their case."""
    codes, sizes, words, times = _Codes(), [], [np.zeros(0, np.uint16)], [np.zeros(0, np.uint8)]
    for text in texts:
        distinct, counts = np.unique([codes[word] for word in WORD.findall(text.lower())], return_counts=True)
        sizes.append(len(distinct))
        words.append(distinct.astype(np.uint16))
        times.append(np.minimum(counts, 255).astype(np.uint8))
    return Terms(np.array(sizes, dtype=np.uint16), np.concatenate(words), np.concatenate(times))


class Lexicon:
    """Scores pairs of spans by BM25, with all the spans as the collection."""

    def __init__(self, terms: Terms) -> None:
        self.words, self.times = terms.words, terms.times
        self.first = np.concatenate([[0], np.cumsum(terms.sizes, dtype=np.int64)])
        count = len(terms.sizes)
        df = np.zeros(VOCABULARY, dtype=np.int64)
        total = 0
        for part in row_slices(len(terms.words)):
            df += np.bincount(terms.words[part], minlength=VOCABULARY)
            total += int(terms.times[part].sum(dtype=np.int64))
        self.idf = np.log1p((count - df + 0.5) / (df + 0.5)).astype(np.float32)
        self.mean = max(total / max(count, 1), 1e-9)

    def scores(self, anchors: Longs, candidates: Longs) -> Floats:
        """BM25 of each anchor as a query against its own row of candidates: (anchors, candidates)."""
        scores = np.zeros(candidates.shape, dtype=np.float32)
        for at in range(0, len(anchors), CHUNK):
            scores[at : at + CHUNK] = self._chunk(anchors[at : at + CHUNK], candidates[at : at + CHUNK])
        return scores

    def _chunk(self, anchors: Longs, candidates: Longs) -> Floats:
        table = np.zeros((len(anchors), VOCABULARY), dtype=np.float32)
        row, flat = self._gather(anchors)
        words = self.words[flat]
        table[row, words] = self.times[flat] * self.idf[words]
        pair, flat = self._gather(candidates.ravel())
        times = self.times[flat].astype(np.float32)
        lengths = np.bincount(pair, weights=times, minlength=candidates.size)
        norm = (K1 * (1 - B + B * lengths / self.mean)).astype(np.float32)
        weight = times * np.float32(K1 + 1) / (times + norm[pair])
        query = table.ravel()[(pair // candidates.shape[1]) * VOCABULARY + self.words[flat]]
        summed = np.bincount(pair, weights=query * weight, minlength=candidates.size)
        return summed.astype(np.float32).reshape(candidates.shape)

    def _gather(self, spans: Longs) -> tuple[Longs, Longs]:
        """For every word of the given spans, the place of its span among them and its own place in `words`."""
        sizes = self.first[spans + 1] - self.first[spans]
        owner = np.repeat(np.arange(len(spans)), sizes)
        ends = np.cumsum(sizes)
        return owner, np.arange(int(sizes.sum())) + (self.first[spans] - ends + sizes)[owner]


def row_slices(size: int, step: int = 1 << 24) -> Iterator[slice]:
    return (slice(at, at + step) for at in range(0, size, step))
