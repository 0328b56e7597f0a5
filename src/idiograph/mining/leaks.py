"""What spans of one split have in common with those of a later one: whole sentences, and near-copies of each other.

Mining takes such triplets out of train (and out of valid, where test has the same); the audit counts those that it finds.
A sentence counts from eight words on: "The results are as follows." proves nothing. A near-copy is found by MinHash.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idiograph.corpus.duplicates import shingle_signatures
from idiograph.mining.split import Splits
from idiograph.seeded import hash_text
from idiograph.text.words import BARE_WORD

MIN_WORDS = 8
BINS, ROWS = 48, 3  # of a sketch, and of a band: 98 of 100 pairs with six tenths of their shingles in common are found
LIKE = 0.5  # of the sketch agrees: a near-copy
LOOKED_AT = 8  # spans with the same band that are compared

Longs = NDArray[np.int64]
Hashes = NDArray[np.uint64]

_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+")


@dataclass(frozen=True)
class SpanPrints:
    """Fingerprints of spans: of their sentences, and a sketch of their shingles."""

    owner: Longs  # (sentences,) the span that each is in
    sentences: Hashes
    sketch: NDArray[np.uint16]  # (spans, BINS)

    @classmethod
    def joined(cls, parts: Sequence["SpanPrints"]) -> "SpanPrints":
        first = np.cumsum([0, *(len(part.sketch) for part in parts)])
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(part.owner + at for part, at in zip(parts, first, strict=False))]),
            np.concatenate([np.zeros(0, np.uint64), *(part.sentences for part in parts)]),
            np.concatenate([np.zeros((0, BINS), np.uint16), *(part.sketch for part in parts)]),
        )


def span_prints(texts: Sequence[str]) -> SpanPrints:
    """The fingerprints of some spans."""
    found = [(at, sentence) for at, text in enumerate(texts) for sentence in sentences_of(text)]
    sketch = shingle_signatures(list(texts))[:, :BINS] >> 1 if texts else np.zeros((0, BINS))
    return SpanPrints(
        np.array([at for at, _ in found], dtype=np.int64),
        np.array([sentence for _, sentence in found], dtype=np.uint64),
        sketch.astype(np.uint16),
    )


def sentences_of(text: str) -> Iterable[int]:
    """A number for every sentence of eight words or more, whatever its case, punctuation and spaces.

    >>> a, b = "It was, as we said, a very long night.", "it was as we said a VERY long night!"
    >>> list(sentences_of(a)) == list(sentences_of(b)) != []
    True
    """
    for sentence in _END.split(text.lower()):
        words = BARE_WORD.findall(sentence)
        if len(words) >= MIN_WORDS:
            yield hash_text(" ".join(words))


def print_bands(sketch: NDArray[np.uint16]) -> Hashes:
    """One number for each band of a sketch: (bands, spans)."""
    wide = sketch.astype(np.uint64)
    parts = [wide[:, at::ROWS] << np.uint64(16 * at) for at in range(ROWS)]
    return np.ascontiguousarray(sum(parts[1:], parts[0]).T)


@dataclass(frozen=True)
class HeldOut:
    """The fingerprints of the spans that others are compared with, ready to be looked up."""

    sentences: Hashes  # in order
    latest: Splits  # the last split that each is in
    sketch: NDArray[np.uint16]
    split: Splits
    keys: Hashes  # (bands, spans), each band in order
    places: Longs  # (bands, spans), whose key it is

    @classmethod
    def of(cls, found: SpanPrints, split: Splits) -> "HeldOut":
        order = np.lexsort((-split[found.owner], found.sentences))
        distinct, first = np.unique(found.sentences[order], return_index=True)
        keys = print_bands(found.sketch)
        places = np.array([np.lexsort((-split, key)) for key in keys])
        return cls(
            distinct,
            split[found.owner][order][first],
            found.sketch,
            split,
            np.take_along_axis(keys, places, axis=1),
            places,
        )

    def save(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for field in fields(self):
            np.save(folder / f"{field.name}.npy", getattr(self, field.name))

    @classmethod
    def load(cls, folder: Path) -> "HeldOut":
        return cls(**{f.name: np.load(folder / f"{f.name}.npy", mmap_mode="r") for f in fields(cls)})

    def shared(self, found: SpanPrints, split: Splits) -> NDArray[np.bool_]:
        """Which sentences of `found` does a later split than their own hold too?"""
        if not len(self.sentences):
            return np.zeros(len(found.sentences), dtype=bool)
        at = np.minimum(np.searchsorted(self.sentences, found.sentences), len(self.sentences) - 1)
        return (self.sentences[at] == found.sentences) & (self.latest[at] > split[found.owner])

    def copies(self, found: SpanPrints, split: Splits) -> Longs:
        """For each span of `found` a span of a later split that nearly repeats it, or -1."""
        best, like = np.full(len(found.sketch), -1, dtype=np.int64), np.full(len(found.sketch), LIKE)
        for key, ordered, places in zip(print_bands(found.sketch), self.keys, self.places, strict=True):
            first, last = np.searchsorted(ordered, key), np.searchsorted(ordered, key, side="right")
            for step in range(LOOKED_AT):
                asking = np.flatnonzero(first + step < last)
                if not len(asking):
                    break
                other = places[first[asking] + step]
                share = (found.sketch[asking] == self.sketch[other]).mean(axis=1)
                better = (share >= like[asking]) & (self.split[other] > split[asking])
                best[asking[better]], like[asking[better]] = other[better], share[better]
        return best
