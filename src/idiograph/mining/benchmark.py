"""Benchmarks: anchors, a pool of spans, and what is relevant to whom. From triplets, or in and out as BEIR."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import InputError
from idiograph.mining.triplets import locate_triplets, read_triplets, splits
from idiograph.seeded import hash_text
from idiograph.store import read_manifest
from idiograph.types import Span

Bools = NDArray[np.bool_]
Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Anchors, a pool, and for each triplet where its positive and negative are in the pool.

    Relevant to an anchor is every span of the pool by its author-set, unless `qrels` names the relevant spans of each.
    """

    name: str
    anchors: tuple[Span, ...]
    pool: tuple[Span, ...]
    triplets: Longs  # (T, 3): anchor, positive, negative
    source: str = ""  # fingerprint of the triplets
    qrels: tuple[frozenset[int], ...] | None = None
    corpus: str = ""  # the folder of triplets that it is from
    configuration: str = ""  # of that folder, such as base-4

    @property
    def rule(self) -> str:
        """The rule that its triplets were drawn by."""
        return self.configuration.rpartition("-")[0]

    @property
    def sentences(self) -> int:
        """How many sentences its spans have; 0 where nobody says so."""
        size = self.configuration.rpartition("-")[2]
        return int(size) if size.isdigit() else 0

    def relevant(self, anchors: slice = slice(None)) -> Bools:
        """(anchors, pool): which span of the pool is relevant to which anchor?"""
        if self.qrels is not None:
            marked = np.zeros((len(self.qrels[anchors]), len(self.pool)), bool)
            for row, named in zip(marked, self.qrels[anchors], strict=True):
                row[list(named)] = True
            return marked
        mine, theirs = self._authors
        return mine[anchors, None] == theirs[None]

    def own_document(self, anchors: slice = slice(None)) -> Bools:
        """(anchors, pool): which span of the pool is from the anchor's own document?"""
        mine, theirs = self._documents
        return mine[anchors, None] == theirs[None]

    @cached_property
    def clusters(self) -> Longs:
        """(anchors,): a number for each author-set, the same in every benchmark; they are drawn together for an interval."""
        return np.array([author_set_number(span) for span in self.anchors], np.int64)

    @property
    def triplet_clusters(self) -> Longs:
        """(T,): the author-set of each triplet's anchor."""
        return self.clusters[self.triplets[:, 0]]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Every text of either side once, for whoever reads each once."""
        return tuple(text for _, text in self._places)

    @cached_property
    def anchor_places(self) -> Longs:
        """(anchors,): where each anchor is among the texts."""
        return np.array([self._places[span_key(span)] for span in self.anchors], np.int64)

    @cached_property
    def pool_places(self) -> Longs:
        """(pool,): where each span of the pool is among the texts."""
        return np.array([self._places[span_key(span)] for span in self.pool], np.int64)

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        """Each span of either side with its number, in the order in which the triplets name them."""
        rows = self.triplets.tolist()
        named = (span for a, p, n in rows for span in (self.anchors[a], self.pool[p], self.pool[n]))
        keys = dict.fromkeys(span_key(span) for span in chain(named, self.anchors, self.pool))
        return {key: at for at, key in enumerate(keys)}

    @cached_property
    def _authors(self) -> tuple[Longs, Longs]:
        return number_spans(self.anchors, self.pool, lambda span: span.authors)

    @cached_property
    def _documents(self) -> tuple[Longs, Longs]:
        return number_spans(self.anchors, self.pool, lambda span: span.doc_id)

    def smaller(self, size: int, seed: int = 7) -> "Benchmark":
        """The same anchors with a pool of `size` spans, drawn by their texts: a smaller pool is part of a larger one.

        Triplets stay if both of their spans do.
        """
        if size >= len(self.pool):
            return self
        keys = [hash_text(f"{seed}/{s.doc_id}/{s.text}") for s in self.pool]
        kept = np.array(sorted(sorted(range(len(keys)), key=keys.__getitem__)[:size]), np.int64)
        moved = np.column_stack([self.triplets[:, 0], places_among(kept, len(self.pool))[self.triplets[:, 1:]]])
        source = f"{self.source}, pool of {size} by {seed}"
        return self._with_pool(kept, moved[(moved >= 0).all(axis=1)], source)

    def sample(self, anchors: int, pool: int, seed: int = 7) -> "Benchmark":
        """At most so many anchors, taken in turn from all author-sets, and so large a pool: the spans that the anchors'
        triplets need, and others. One triplet an anchor stays."""
        generator = np.random.default_rng(seed)
        rows = self.triplets[generator.permutation(len(self.triplets))]
        rows = rows[np.sort(np.unique(rows[:, 0], return_index=True)[1])]  # the first of each anchor
        rows = rows[turns_of_clusters(self.clusters[rows[:, 0]])[:anchors]]
        order = np.argsort(self.pool_places)  # other spans are drawn in the order of the triplets
        needed = np.isin(order, rows[:, 1:])
        others = generator.permutation(order[~needed])[: max(pool - int(needed.sum()), 0)]
        kept = np.concatenate([order[needed], others])
        chosen = rows[np.argsort(self.anchor_places[rows[:, 0]]), 0]
        places = places_among(chosen, len(self.anchors)), places_among(kept, len(self.pool))
        moved = np.stack([places[0][rows[:, 0]], *places[1][rows[:, 1:]].T], axis=1)
        smaller = self._with_pool(kept, moved, f"{self.source}, {len(chosen)} anchors, pool of {len(kept)} by {seed}")
        qrels = smaller.qrels and tuple(smaller.qrels[at] for at in chosen)
        return replace(smaller, anchors=tuple(self.anchors[at] for at in chosen), qrels=qrels)

    def _with_pool(self, kept: Longs, triplets: Longs, source: str) -> "Benchmark":
        """The same anchors with these spans of the pool alone."""
        place = places_among(kept, len(self.pool))
        qrels = self.qrels and tuple(frozenset(int(place[at]) for at in q if place[at] >= 0) for q in self.qrels)
        return replace(self, pool=tuple(self.pool[at] for at in kept), triplets=triplets, source=source, qrels=qrels)


def span_key(span: Span) -> tuple[str, str]:
    return span.doc_id, span.text


def author_set_number(span: Span) -> int:
    """A 63-bit number for an author-set: what training labels its texts with, too."""
    return hash_text(" ".join(sorted(span.authors))) >> 1


def places_among(kept: Longs, count: int) -> Longs:
    """(count,): where each of `count` things is among those that are kept; −1 for one that is not."""
    places = np.full(count, -1, np.int64)
    places[kept] = np.arange(len(kept))
    return places


def turns_of_clusters(clusters: Longs) -> Longs:
    """An order in which every cluster has given one before any gives a second.

    >>> turns_of_clusters(np.array([5, 5, 5, 2, 2, 9])).tolist()
    [0, 3, 5, 1, 4, 2]
    """
    order = np.argsort(clusters, kind="stable")
    new = np.flatnonzero(np.diff(clusters[order], prepend=clusters[order][:1] - 1))
    turns = np.empty(len(order), np.int64)
    turns[order] = np.arange(len(order)) - np.repeat(new, np.diff(np.append(new, len(order))))
    return np.argsort(turns, kind="stable")


def number_spans(anchors: Iterable[Span], pool: Iterable[Span], of: Any) -> tuple[Longs, Longs]:
    """Numbers that are equal where a property of two spans is; one that no span of the pool has is −1."""
    numbers: dict[Any, int] = {}
    theirs = np.array([numbers.setdefault(of(span), len(numbers)) for span in pool], np.int64)
    return np.array([numbers.get(of(span), -1) for span in anchors], np.int64), theirs


def open_benchmark(folder: Path, split: str = "test", name: str | None = None) -> Benchmark:
    """The benchmark that a triplet folder holds: its pool is every positive and negative of the split, once each."""
    folder, (name, *_) = locate_triplets(folder, [name] if name else ())
    manifest = read_manifest(folder, "triplets", "idiograph mine CORPUS -o FOLDER")
    anchors: dict[tuple[str, str], int] = {}
    pool: dict[tuple[str, str], int] = {}
    spans: dict[tuple[str, str], Span] = {}
    numbers = []
    for triplet in read_triplets(folder, name, split):
        keys = [span_key(s) for s in (triplet.anchor, triplet.positive, triplet.negative)]
        spans.update(zip(keys, (triplet.anchor, triplet.positive, triplet.negative), strict=True))
        at = anchors.setdefault(keys[0], len(anchors))
        numbers.append((at, *(pool.setdefault(key, len(pool)) for key in keys[1:])))
    return Benchmark(
        f"{folder.name}/{name}/{split}",
        tuple(spans[key] for key in anchors),
        tuple(spans[key] for key in pool),
        np.array(numbers, dtype=np.int64),
        manifest.fingerprint,
        corpus=folder.name,
        configuration=name,
    )


def open_benchmarks(folder: Path, split: str = "test", names: Iterable[str] = ()) -> list[Benchmark]:
    """One benchmark for each configuration of a triplet folder that has the split, or the one of a BEIR folder."""
    if (folder / "corpus.jsonl").exists():
        return [read_beir(folder, split)]
    folder, every = locate_triplets(folder, list(names))
    wanted = every if names else [name for name in every if split in splits(folder, name)]
    return [open_benchmark(folder, split, name) for name in wanted or every[:1]]


def numbered_ids(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{at}" for at in range(count)]


def write_beir(benchmark: Benchmark, folder: Path, split: str = "test", own_document: str = "exclude") -> None:
    """corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, as BEIR has them; authors, fields and documents ride along."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    sides = (("queries", "q", benchmark.anchors), ("corpus", "p", benchmark.pool))
    for file, prefix, spans in sides:
        rows = [beir_line(name, span) for name, span in zip(numbered_ids(prefix, len(spans)), spans, strict=True)]
        (folder / f"{file}.jsonl").write_text("".join(rows), encoding="utf-8")
    pairs = [f"q{a}\tp{b}\t1\n" for a, b in relevant_pairs(benchmark, own_document)]
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / f"{split}.tsv").write_text(head + "".join(pairs), encoding="utf-8")


def relevant_pairs(benchmark: Benchmark, own_document: str = "exclude") -> Iterable[tuple[int, int]]:
    """Numbers of each anchor and of each span that is relevant to it."""
    for at in range(len(benchmark.anchors)):
        one = slice(at, at + 1)
        row = benchmark.relevant(one)[0]
        if own_document == "exclude":
            row = row & ~benchmark.own_document(one)[0]
        yield from ((at, int(place)) for place in np.flatnonzero(row))


def beir_line(name: str, span: Span) -> str:
    about = {"doc_id": span.doc_id, "authors": sorted(span.authors), "domains": sorted(span.domains)}
    return json.dumps({"_id": name, "title": "", "text": span.text, "metadata": about}, ensure_ascii=False) + "\n"


def read_beir(folder: Path, split: str = "test") -> Benchmark:
    """A benchmark from a BEIR folder, ours or anybody's; relevant is what its qrels say. There are no triplets in it."""
    queries, pool = read_spans(folder / "queries.jsonl"), read_spans(folder / "corpus.jsonl")
    place = {name: at for at, name in enumerate(pool)}
    named: dict[str, set[int]] = {}
    path = folder / "qrels" / f"{split}.tsv"
    if not path.exists():
        raise InputError(f"there is no file '{path}'")
    for number, row in enumerate(path.read_text(encoding="utf-8").splitlines()[1:], 2):
        try:
            query, document, score = row.split("\t")
            if float(score) > 0:
                named.setdefault(query, set()).add(place[document])
        except (ValueError, KeyError) as error:
            raise InputError(
                f"'{path}:{number}': not a query, a document of the corpus and a number: {error}"
            ) from error
    asked = [name for name in queries if name in named]
    anchors, qrels = tuple(queries[name] for name in asked), tuple(frozenset(named[name]) for name in asked)
    return Benchmark(f"{folder.name}/{split}", anchors, tuple(pool.values()), np.empty((0, 3), np.int64), "", qrels)


def read_spans(path: Path) -> dict[str, Span]:
    spans: dict[str, Span] = {}
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            f"there is no file '{path}'; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/"
        ) from None
    for number, each in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(each)
            spans[row["_id"]] = span_of(row)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"'{path}:{number}': not a BEIR line: {error}") from error
    return spans


def span_of(row: Mapping[str, Any]) -> Span:
    """A BEIR line as a span; without our metadata, its id stands for the document and nobody is known to have written it."""
    text = f"{row['title']}\n\n{row['text']}" if row.get("title") else row["text"]
    about = row.get("metadata") or {}
    authors, domains = frozenset(about.get("authors") or ()), frozenset(about.get("domains") or ())
    return Span(about.get("doc_id") or f"#{row['_id']}", 0, len(text), text, authors, domains)
