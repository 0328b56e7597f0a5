"""Anchors, a pool, and what is known of both, as arrays: what a model is measured on. Opens with numpy alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import InputError
from idiograph.neural.triplets import name_number
from idiograph.types import Span, Triplet

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TextNumbers:
    """A few numbers for each text: its authors, its fields."""

    flat: Ints
    ends: Ints

    def __getitem__(self, at: int) -> frozenset[int]:
        return frozenset(self.flat[self.ends[at - 1] if at else 0 : self.ends[at]].tolist())

    @classmethod
    def of(cls, rows: Sequence[Iterable[str]]) -> "TextNumbers":
        found = [sorted(map(name_number, row)) for row in rows]
        ends = np.cumsum([len(row) for row in found], dtype=np.int64)
        return cls(np.array([each for row in found for each in row], np.int64), ends)


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """One configuration of one corpus. `triplets` are numbers of an anchor and of two spans of the pool."""

    corpus: str
    rule: str
    sentences: int
    texts: Sequence[str]
    anchors: Ints  # (A,) places in `texts`
    pool: Ints  # (P,)
    triplets: Ints  # (T, 3)
    labels: Ints  # (texts,) author-set
    documents: Ints  # (texts,)
    authors: TextNumbers
    domains: TextNumbers

    @property
    def name(self) -> str:
        return f"{self.corpus}/{self.rule}-{self.sentences}"

    def relevant(self) -> Bools:
        """(A, P): by the anchor's author-set."""
        return self.labels[self.anchors][:, None] == self.labels[self.pool][None]

    def own(self) -> Bools:
        """(A, P): from the anchor's document."""
        return self.documents[self.anchors][:, None] == self.documents[self.pool][None]

    @property
    def clusters(self) -> Ints:
        """The author-set of each anchor: what is drawn together when an interval is made."""
        return self.labels[self.anchors]

    @property
    def triplet_clusters(self) -> Ints:
        return self.clusters[self.triplets[:, 0]]

    def text_of(self, places: Ints) -> list[str]:
        return [self.texts[int(at)] for at in places]


def collect_bench(triplets: Iterable[Triplet], corpus: str, rule: str, sentences: int) -> Bench:
    """Everything that some triplets hold: each anchor once, each other span once."""
    places: dict[tuple[str, str], int] = {}
    spans: list[Span] = []
    rows: list[tuple[int, ...]] = []
    for triplet in triplets:
        row = []
        for span in (triplet.anchor, triplet.positive, triplet.negative):
            at = places.setdefault((span.doc_id, span.text), len(spans))
            if at == len(spans):
                spans.append(span)
            row.append(at)
        rows.append(tuple(row))
    if not rows:
        raise InputError(f"there are no triplets in {corpus}, {rule}-{sentences}; mine a larger corpus")
    return arrange_triplets(np.array(rows, np.int64), spans, corpus, rule, sentences)


def arrange_triplets(rows: Ints, spans: Sequence[Span], corpus: str, rule: str, sentences: int) -> Bench:
    anchors, first = np.unique(rows[:, 0], return_inverse=True)
    pool, others = np.unique(rows[:, 1:], return_inverse=True)
    numbers = np.concatenate([first.reshape(-1, 1), others.reshape(-1, 2)], axis=1)
    labels = np.array([name_number(" ".join(sorted(span.authors))) for span in spans], np.int64)
    documents = np.array([name_number(span.doc_id) for span in spans], np.int64)
    authors, domains = TextNumbers.of([s.authors for s in spans]), TextNumbers.of([s.domains for s in spans])
    texts = [span.text for span in spans]
    return Bench(corpus, rule, sentences, texts, anchors, pool, numbers, labels, documents, authors, domains)


def smaller_pool(bench: Bench, anchors: int, pool: int, seed: int = 7) -> Bench:
    """At most so many anchors, taken in turn from all author-sets, and so large a pool: what the anchors' triplets need,
    and other spans. One triplet an anchor stays."""
    chance = np.random.default_rng(seed)
    rows = bench.triplets[chance.permutation(len(bench.triplets))]
    _, first = np.unique(rows[:, 0], return_index=True)
    rows = rows[np.sort(first)]
    rows = rows[in_turn(bench.clusters[rows[:, 0]])[:anchors]]
    near = np.unique(rows[:, 1:])
    rest = chance.permutation(np.setdiff1d(np.arange(len(bench.pool)), near))[: max(pool - len(near), 0)]
    kept = np.concatenate([near, rest])
    chosen = np.unique(rows[:, 0])
    numbers = np.stack([np.searchsorted(chosen, rows[:, 0]), *(places_of(kept, rows[:, c]) for c in (1, 2))], axis=1)
    return take_texts(bench, bench.anchors[chosen], bench.pool[kept], numbers)


def in_turn(clusters: Ints) -> Ints:
    """An order in which every cluster has given one before any gives a second."""
    order = np.argsort(clusters, kind="stable")
    new = np.flatnonzero(np.diff(clusters[order], prepend=clusters[order][:1] - 1))
    turn = np.arange(len(order)) - np.repeat(new, np.diff(np.append(new, len(order))))
    turns = np.empty(len(order), np.int64)
    turns[order] = turn
    return np.argsort(turns, kind="stable")


def places_of(kept: Ints, wanted: Ints) -> Ints:
    order = np.argsort(kept)
    return order[np.searchsorted(kept, wanted, sorter=order)]


def take_texts(bench: Bench, anchors: Ints, pool: Ints, triplets: Ints) -> Bench:
    """The bench with these anchors and pool alone, and no other texts."""
    used = np.unique(np.concatenate([anchors, pool]))
    return replace(
        bench,
        texts=[bench.texts[at] for at in used],
        anchors=np.searchsorted(used, anchors),
        pool=np.searchsorted(used, pool),
        triplets=triplets,
        labels=bench.labels[used],
        documents=bench.documents[used],
        authors=draw_again(bench.authors, used),
        domains=draw_again(bench.domains, used),
    )


def draw_again(ragged: TextNumbers, used: Ints) -> TextNumbers:
    rows = [sorted(ragged[int(at)]) for at in used]
    return TextNumbers(
        np.array([each for row in rows for each in row], np.int64),
        np.cumsum([len(row) for row in rows], dtype=np.int64),
    )


def save_bench(bench: Bench, path: Path) -> None:
    """Write one .npz file."""
    encoded = [text.encode() for text in bench.texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    about = np.array([bench.corpus, bench.rule, str(bench.sentences)])
    arrays: dict[str, Any] = {"raw": np.frombuffer(b"".join(encoded), np.uint8), "ends": ends, "about": about}
    arrays |= {name: getattr(bench, name) for name in ("anchors", "pool", "triplets", "labels", "documents")}
    for name in ("authors", "domains"):
        arrays |= {f"{name}_flat": getattr(bench, name).flat, f"{name}_ends": getattr(bench, name).ends}
    np.savez_compressed(path, **arrays)


def open_bench(path: Path) -> Bench:
    """What `save_bench` wrote."""
    with np.load(path, allow_pickle=False) as file:
        raw, ends = file["raw"].tobytes(), file["ends"]
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        texts = [raw[a:b].decode() for a, b in zip(starts, ends, strict=True)]
        corpus, rule, sentences = map(str, file["about"])
        arrays = [file[name] for name in ("anchors", "pool", "triplets", "labels", "documents")]
        ragged = [TextNumbers(file[f"{name}_flat"], file[f"{name}_ends"]) for name in ("authors", "domains")]
    return Bench(corpus, rule, int(sentences), texts, *arrays, *ragged)
