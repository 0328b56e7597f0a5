"""What one split must not share with a later one: sentences, near-copies of spans and, with other triplets, people.

Mining takes such triplets out of train (and out of valid, where test has the same); the audit counts those that it finds.
A sentence counts from eight words on: "The results are as follows." proves nothing. A near-copy is found by MinHash. Test is
kept whole, train pays.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idiograph.corpus.duplicates import shingle_signatures
from idiograph.mining.spans import SpanPool
from idiograph.mining.split import PEOPLE_FILE, SPLITS, PeopleSplits, Splits, hash_person
from idiograph.mining.triplets import ROLES, configurations, read_rows, splits
from idiograph.runner import Workers
from idiograph.seeded import hash_text
from idiograph.store import find_manifest, fingerprint
from idiograph.text.words import BARE_WORD

MIN_SENTENCE_WORDS = 8
BINS, ROWS = 48, 3  # of a sketch, and of a band: 98 of 100 pairs with six tenths of their shingles in common are found
MIN_SKETCH_AGREEMENT = 0.5  # of the sketch agrees: a near-copy
SPANS_PER_BAND = 8  # spans with the same band that are compared
SPANS_PER_BLOCK = 4096
SHARED_SENTENCE = "shares a sentence with a later split"  # why a triplet goes
NEAR_COPY = "nearly repeats a span of a later split"

Bools = NDArray[np.bool_]
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
    def join(cls, parts: Sequence["SpanPrints"]) -> "SpanPrints":
        first = np.cumsum([0, *(len(part.sketch) for part in parts)])
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(part.owner + at for part, at in zip(parts, first, strict=False))]),
            np.concatenate([np.zeros(0, np.uint64), *(part.sentences for part in parts)]),
            np.concatenate([np.zeros((0, BINS), np.uint16), *(part.sketch for part in parts)]),
        )


def span_prints(texts: Sequence[str]) -> SpanPrints:
    """The fingerprints of some spans."""
    sentences = [(at, sentence) for at, text in enumerate(texts) for sentence in hash_sentences(text)]
    sketch = shingle_signatures(list(texts))[:, :BINS] >> 1 if texts else np.zeros((0, BINS))
    return SpanPrints(
        np.array([at for at, _ in sentences], dtype=np.int64),
        np.array([sentence for _, sentence in sentences], dtype=np.uint64),
        sketch.astype(np.uint16),
    )


def hash_sentences(text: str) -> Iterable[int]:
    """A number for every sentence of eight words or more, whatever its case, punctuation and spaces.

    >>> a, b = "It was, as we said, a very long night.", "it was as we said a VERY long night!"
    >>> list(hash_sentences(a)) == list(hash_sentences(b)) != []
    True
    """
    for sentence in _END.split(text.lower()):
        words = BARE_WORD.findall(sentence)
        if len(words) >= MIN_SENTENCE_WORDS:
            yield hash_text(" ".join(words))


def print_bands(sketch: NDArray[np.uint16]) -> Hashes:
    """One number for each band of a sketch: (bands, spans)."""
    wide = sketch.astype(np.uint64)
    parts = [wide[:, at::ROWS] << np.uint64(16 * at) for at in range(ROWS)]
    return np.ascontiguousarray(sum(parts[1:], parts[0]).T)


@dataclass(frozen=True)
class HeldOutSpans:
    """The fingerprints of the spans that others are compared with, ready to be looked up."""

    sentences: Hashes  # in order
    latest: Splits  # the last split that each is in
    sketch: NDArray[np.uint16]
    split: Splits
    keys: Hashes  # (bands, spans), each band in order
    places: Longs  # (bands, spans), whose key it is

    @classmethod
    def of(cls, prints: SpanPrints, split: Splits) -> "HeldOutSpans":
        order = np.lexsort((-split[prints.owner], prints.sentences))
        distinct, first = np.unique(prints.sentences[order], return_index=True)
        keys = print_bands(prints.sketch)
        places = np.array([np.lexsort((-split, key)) for key in keys])
        return cls(
            distinct,
            split[prints.owner][order][first],
            prints.sketch,
            split,
            np.take_along_axis(keys, places, axis=1),
            places,
        )

    def save(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for field in fields(self):
            np.save(folder / f"{field.name}.npy", getattr(self, field.name))

    @classmethod
    def load(cls, folder: Path) -> "HeldOutSpans":
        return cls(**{f.name: np.load(folder / f"{f.name}.npy", mmap_mode="r") for f in fields(cls)})

    def rows_in_common(self, prints: SpanPrints, split: Splits) -> Bools:
        """Which sentences of `prints` does a later split than their own hold too?"""
        if not len(self.sentences):
            return np.zeros(len(prints.sentences), dtype=bool)
        at = np.minimum(np.searchsorted(self.sentences, prints.sentences), len(self.sentences) - 1)
        return (self.sentences[at] == prints.sentences) & (self.latest[at] > split[prints.owner])

    def copies(self, prints: SpanPrints, split: Splits) -> Longs:
        """For each span of `prints` a span of a later split that nearly repeats it, or -1."""
        best, like = np.full(len(prints.sketch), -1, dtype=np.int64), np.full(len(prints.sketch), MIN_SKETCH_AGREEMENT)
        for key, ordered, places in zip(print_bands(prints.sketch), self.keys, self.places, strict=True):
            first, last = np.searchsorted(ordered, key), np.searchsorted(ordered, key, side="right")
            for step in range(SPANS_PER_BAND):
                asking = np.flatnonzero(first + step < last)
                if not len(asking):
                    break
                other = places[first[asking] + step]
                share = (prints.sketch[asking] == self.sketch[other]).mean(axis=1)
                better = (share >= like[asking]) & (self.split[other] > split[asking])
                best[asking[better]], like[asking[better]] = other[better], share[better]
        return best


@dataclass(frozen=True)
class SpanBatch:
    """Some spans of a kind, and the splits that they are in."""

    kind: str
    numbers: Longs
    split: Splits


def span_batches(kind: str, numbers: Longs, split: Splits) -> Iterator[SpanBatch]:
    for at in range(0, len(numbers), SPANS_PER_BLOCK):
        yield SpanBatch(kind, numbers[at : at + SPANS_PER_BLOCK], split[at : at + SPANS_PER_BLOCK])


@lru_cache(maxsize=2)
def open_pool(folder: Path, kind: str) -> SpanPool:
    """Once per worker and kind. The folder is that of one run, so that nothing older can be meant."""
    return SpanPool.open(folder.parent, kind)


@lru_cache(maxsize=1)
def open_held_out_spans(folder: Path) -> HeldOutSpans:
    return HeldOutSpans.load(folder / "held-out")


def span_batch_prints(batch: SpanBatch, folder: Path) -> SpanPrints:
    return span_prints(open_pool(folder, batch.kind).texts(batch.numbers).to_pylist())


def find_overlaps(batch: SpanBatch, folder: Path) -> tuple[Bools, Bools]:
    """Which spans share a sentence with a later split, and which nearly repeat a span of one?"""
    index, prints = open_held_out_spans(folder), span_batch_prints(batch, folder)
    common = np.zeros(len(batch.numbers), dtype=bool)
    common[prints.owner[index.rows_in_common(prints, batch.split)]] = True
    return common, index.copies(prints, batch.split) >= 0


def index_held_out_spans(used: dict[str, tuple[Longs, Splits]], folder: Path, workers: Workers) -> None:
    """Save the fingerprints of all spans in valid and test, whatever the rule and the number of sentences."""
    pending = [
        b for kind, (numbers, split) in used.items() for b in span_batches(kind, numbers[split > 0], split[split > 0])
    ]
    parts = [
        part for _, part in workers.run(partial(span_batch_prints, folder=folder), pending, "reading valid and test")
    ]
    split = np.concatenate([np.zeros(0, np.int8), *(batch.split for batch in pending)])
    HeldOutSpans.of(SpanPrints.join(parts), split).save(folder / "held-out")


def overlapping_spans(
    used: dict[str, tuple[Longs, Splits]], folder: Path, workers: Workers
) -> dict[str, dict[str, Longs]]:
    """By kind and reason, the numbers of the spans that should not be where they are."""
    index_held_out_spans(used, folder, workers)
    last = max((int(split.max(initial=0)) for _, split in used.values()), default=0)
    by_kind: dict[str, dict[str, Longs]] = {}
    for kind, (numbers, split) in used.items():
        pending = list(span_batches(kind, numbers[split < last], split[split < last]))
        gone: dict[str, list[Longs]] = {SHARED_SENTENCE: [], NEAR_COPY: []}
        for batch, (common, copied) in workers.run(partial(find_overlaps, folder=folder), pending, f"comparing {kind}"):
            gone[SHARED_SENTENCE].append(batch.numbers[common])
            gone[NEAR_COPY].append(batch.numbers[copied & ~common])
        by_kind[kind] = {reason: np.concatenate([np.zeros(0, np.int64), *parts]) for reason, parts in gone.items()}
    return by_kind


@dataclass(frozen=True, slots=True)
class HeldOutPeople:
    """Documents and people that must not be trained on."""

    documents: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()  # ids and folded names, as they stand in triplets


def read_held_out_people(folders: Sequence[Path]) -> HeldOutPeople:
    """Everything in the valid and test splits of these triplets, in any role, whoever wrote the files.

    People are split by a hash of their name within a corpus and a label, so somebody who is tested there could still have
    written in train here.
    """
    documents, people = set[str](), set[str]()
    for folder in folders:
        for name in configurations(folder):
            for split in (one for one in splits(folder, name) if one != SPLITS[0]):
                for row in read_rows(folder, name, split):
                    documents.update(row[f"{short}_halid"] for short, _ in ROLES.values())
                    people.update(who for short, _ in ROLES.values() for who in row[f"{short}_authorids"])
    return HeldOutPeople(frozenset(documents), frozenset(people))


def read_known_people(folders: Sequence[Path]) -> PeopleSplits:
    """Who is in which split in these triplets: by their `people.parquet` or, where they have none, by their rows."""
    parts = [PeopleSplits.load(each) if (each / PEOPLE_FILE).is_file() else people_of_rows(each) for each in folders]
    who = np.concatenate([np.zeros(0, np.uint64), *(part.who for part in parts)])
    return PeopleSplits.of(who, np.concatenate([np.zeros(0, np.int8), *(part.split for part in parts)]))


def people_of_rows(folder: Path) -> PeopleSplits:
    """Who is in which split, as far as the rows of triplets name them."""
    latest: dict[int, int] = {}
    for name in configurations(folder):
        for split in splits(folder, name):
            rows = read_rows(folder, name, split)
            people = {who for row in rows for short, _ in ROLES.values() for who in row[f"{short}_authorids"]}
            numbers = [hash_person(kind, who) for who in people for kind in ("id", "name")]
            latest |= {at: max(SPLITS.index(split), latest.get(at, 0)) for at in numbers}
    return PeopleSplits.of(np.array(list(latest), dtype=np.uint64), np.array(list(latest.values()), dtype=np.int8))


def fingerprint_folders(folders: Sequence[Path], what: str = "apart from") -> dict[str, str]:
    """What identifies these triplets in a manifest."""
    manifests = {folder: find_manifest(folder) for folder in folders}
    return {
        f"{what} {folder}": found.fingerprint if found else fingerprint(folder) for folder, found in manifests.items()
    }
