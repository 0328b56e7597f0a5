"""Keep splits apart in wording too: triplets whose spans share a sentence with a later split, or nearly repeat one, go.

Authors are apart already; what is left is boilerplate, quotations and copied passages. Test is kept whole, train pays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idiograph.mining.leaks import HeldOut, SpanPrints, span_prints
from idiograph.mining.spans import SpanPool
from idiograph.mining.split import Splits
from idiograph.runner import Workers

BLOCK = 4096  # spans that are looked at together
SENTENCE = "shares a sentence with a later split"
COPY = "nearly repeats a span of a later split"

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class SpanBatch:
    """Some spans of a kind, and the splits that they are in."""

    kind: str
    numbers: Longs
    split: Splits


def span_batches(kind: str, numbers: Longs, split: Splits) -> Iterator[SpanBatch]:
    for at in range(0, len(numbers), BLOCK):
        yield SpanBatch(kind, numbers[at : at + BLOCK], split[at : at + BLOCK])


@lru_cache(maxsize=2)
def pool_of(folder: Path, kind: str) -> SpanPool:
    """Once per worker and kind. The folder is that of one run, so that nothing older can be meant."""
    return SpanPool.open(folder.parent, kind)


@lru_cache(maxsize=1)
def find_held_out(folder: Path) -> HeldOut:
    return HeldOut.load(folder / "held-out")


def read_prints(batch: SpanBatch, folder: Path) -> SpanPrints:
    return span_prints(pool_of(folder, batch.kind).texts(batch.numbers).to_pylist())


def find_overlaps(batch: SpanBatch, folder: Path) -> tuple[Bools, Bools]:
    """Which spans share a sentence with a later split, and which nearly repeat a span of one?"""
    index, found = find_held_out(folder), read_prints(batch, folder)
    common = np.zeros(len(batch.numbers), dtype=bool)
    common[found.owner[index.shared(found, batch.split)]] = True
    return common, index.copies(found, batch.split) >= 0


def index_held_out_spans(used: dict[str, tuple[Longs, Splits]], folder: Path, workers: Workers) -> None:
    """Save the fingerprints of all spans in valid and test, whatever the rule and the number of sentences."""
    pending = [
        b for kind, (numbers, split) in used.items() for b in span_batches(kind, numbers[split > 0], split[split > 0])
    ]
    parts = [part for _, part in workers.run(partial(read_prints, folder=folder), pending, "reading valid and test")]
    split = np.concatenate([np.zeros(0, np.int8), *(batch.split for batch in pending)])
    HeldOut.of(SpanPrints.joined(parts), split).save(folder / "held-out")


def overlapping_spans(
    used: dict[str, tuple[Longs, Splits]], folder: Path, workers: Workers
) -> dict[str, dict[str, Longs]]:
    """By kind and reason, the numbers of the spans that should not be where they are."""
    index_held_out_spans(used, folder, workers)
    last = max((int(split.max(initial=0)) for _, split in used.values()), default=0)
    found: dict[str, dict[str, Longs]] = {}
    for kind, (numbers, split) in used.items():
        pending = list(span_batches(kind, numbers[split < last], split[split < last]))
        gone: dict[str, list[Longs]] = {SENTENCE: [], COPY: []}
        for batch, (common, copied) in workers.run(partial(find_overlaps, folder=folder), pending, f"comparing {kind}"):
            gone[SENTENCE].append(batch.numbers[common])
            gone[COPY].append(batch.numbers[copied & ~common])
        found[kind] = {reason: np.concatenate([np.zeros(0, np.int64), *parts]) for reason, parts in gone.items()}
    return found
