"""Put a ranker to a benchmark: every anchor against a pool of spans, by its own or somebody else's hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idiograph.corpus.triplets import configurations, read_triplets
from idiograph.errors import InputError
from idiograph.evaluate.measures import measure, triplet_accuracy
from idiograph.evaluate.report import Report, Row, interval
from idiograph.recipe import EvaluateRecipe
from idiograph.store import read_manifest
from idiograph.style.model import Ranker
from idiograph.types import Span

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Benchmark:
    """Anchors, a pool, and for each triplet where its positive and negative are in the pool."""

    name: str
    anchors: tuple[Span, ...]
    pool: tuple[Span, ...]
    triplets: NDArray[np.int64]  # (T, 3): anchor, positive, negative
    source: str = ""  # fingerprint of the triplets

    def relevant(self) -> Bools:
        """(anchors, pool): which span of the pool is by the anchor's author-set?"""
        labels = {authors: at for at, authors in enumerate({s.authors for s in (*self.anchors, *self.pool)})}
        mine = np.array([labels[s.authors] for s in self.anchors])
        theirs = np.array([labels[s.authors] for s in self.pool])
        return mine[:, None] == theirs[None]

    def own_document(self) -> Bools:
        """(anchors, pool): which span of the pool is from the anchor's own document?"""
        docs = {doc: at for at, doc in enumerate({s.doc_id for s in (*self.anchors, *self.pool)})}
        mine = np.array([docs[s.doc_id] for s in self.anchors])
        theirs = np.array([docs[s.doc_id] for s in self.pool])
        return mine[:, None] == theirs[None]


def open_benchmark(folder: Path, split: str = "test", name: str | None = None) -> Benchmark:
    """The benchmark that a triplet folder holds: its pool is every positive and negative of the split, once each."""
    manifest = read_manifest(folder, "triplets", "idiograph mine CORPUS -o FOLDER")
    name = name or configurations(folder)[0]
    anchors: dict[tuple[str, str], int] = {}
    pool: dict[tuple[str, str], int] = {}
    spans: dict[tuple[str, str], Span] = {}
    numbers = []
    for triplet in read_triplets(folder, name, split):
        keys = [(s.doc_id, s.text) for s in (triplet.anchor, triplet.positive, triplet.negative)]
        spans.update(zip(keys, (triplet.anchor, triplet.positive, triplet.negative), strict=True))
        at = anchors.setdefault(keys[0], len(anchors))
        numbers.append((at, *(pool.setdefault(key, len(pool)) for key in keys[1:])))
    return Benchmark(
        f"{folder.name}/{name}/{split}",
        tuple(spans[key] for key in anchors),
        tuple(spans[key] for key in pool),
        np.array(numbers, dtype=np.int64),
        manifest.fingerprint,
    )


def evaluate(ranker: Ranker, benchmark: Benchmark, recipe: EvaluateRecipe | None = None) -> Report:
    """Rank the pool for every anchor and measure; intervals come from resampling author-sets, not spans."""
    recipe = recipe or EvaluateRecipe()
    scores = ranker.compare([s.text for s in benchmark.anchors], [s.text for s in benchmark.pool])
    accuracy = triplets_of(scores, benchmark)
    relevant = benchmark.relevant()
    if recipe.own_document == "exclude":
        own = benchmark.own_document()
        scores, relevant = np.where(own, -np.inf, scores), relevant & ~own
    values, field = measured(scores, relevant, recipe.measures), same_field(scores, benchmark)
    clusters = [s.authors for s in benchmark.anchors]
    answered: Bools = np.asarray(relevant.any(axis=1))
    if not answered.any():
        raise InputError(f"no anchor of '{benchmark.name}' has a text by the same author-set in the pool")
    rows = [row(name, found[answered], pick(clusters, answered), recipe) for name, found in values.items()]
    by_triplet = [clusters[at] for at in benchmark.triplets[:, 0]]
    rows.append(row("triplet accuracy", accuracy, by_triplet, recipe))
    per_anchor = {name: found[answered] for name, found in values.items()}
    sizes = (int(answered.sum()), len(benchmark.pool))
    return Report(ranker.name, benchmark.name, tuple(rows), *sizes, field, per_anchor)


def same_field(scores: NDArray[np.float32], benchmark: Benchmark) -> float:
    """How often the first hit shares a field with the anchor: a ranker that follows the topic gives itself away."""
    first = scores.argmax(axis=1)
    return float(
        np.mean([bool(a.domains & benchmark.pool[at].domains) for a, at in zip(benchmark.anchors, first, strict=True)])
    )


def pick(clusters: Sequence[frozenset[str]], which: Bools) -> list[frozenset[str]]:
    return [c for c, wanted in zip(clusters, which, strict=True) if wanted]


def triplets_of(scores: NDArray[np.float32], benchmark: Benchmark) -> NDArray[np.float64]:
    anchor, positive, negative = benchmark.triplets.T
    return triplet_accuracy(scores[anchor, positive], scores[anchor, negative])


def measured(scores: NDArray[np.float32], relevant: Bools, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Each measure for each anchor; ties are broken by the position in the pool, which knows nothing of authors."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(relevant, order, axis=1)
    totals = relevant.sum(axis=1)
    functions = {name: measure(name) for name in names}
    return {
        name: np.array([f(r, int(t)) if t else np.nan for r, t in zip(ranked, totals, strict=True)])
        for name, f in functions.items()
    }


def row(name: str, values: NDArray[np.float64], clusters: Sequence[frozenset[str]], recipe: EvaluateRecipe) -> Row:
    low, high = interval(values, clusters, recipe.resamples, recipe.seed)
    return Row(name, float(values.mean()), low, high)
