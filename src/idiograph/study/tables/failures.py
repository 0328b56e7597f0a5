"""What stands before the right answer? Distractors by rank: field, authors and words, against random spans.

The published buckets hold the true positive itself, whose overlap with itself makes the headline. Here it and every other
span by the anchor's author-set is left out, and a bucket is of the distractor's own rank.
"""

from collections.abc import Sequence

import numpy as np

from idiograph.evaluate.published import FAILURES
from idiograph.mining.benchmark import Benchmark
from idiograph.study.outcomes import Doubles, Ints, RunOutcome, Sample, StudyOutcomes
from idiograph.study.plan import GRAINS
from idiograph.study.table import NAN, Table, TableRow, slug_of
from idiograph.study.tables.granularity import grain_name, published_note
from idiograph.text.words import BARE_WORD, word_overlap

BUCKETS = ((1, 1), (2, 5), (6, 20), (21, 100))
QUANTITIES = ("same field", "an author in common", "words of the anchor", "words of the positive")


def failure_words(text: str) -> frozenset[str]:
    return frozenset(BARE_WORD.findall(text.lower()))


def facts(benchmark: Benchmark, anchor: int, positive: int, others: Sequence[int]) -> Doubles:
    """(4,): the mean of each quantity over some spans of the pool, for one anchor."""
    asked, right = benchmark.anchors[anchor], benchmark.pool[positive]
    words = [failure_words(span.text) for span in (asked, right)]
    rows = []
    for span in (benchmark.pool[other] for other in others):
        field, author = bool(asked.domains & span.domains), bool(asked.authors & span.authors)
        rows.append((field, author, *(word_overlap(each, failure_words(span.text)) for each in words)))
    return np.array(rows, np.float64).mean(axis=0) if rows else np.full(len(QUANTITIES), NAN)


def distractors(benchmark: Benchmark, top: Ints, published: bool = False) -> dict[str, Doubles]:
    """Bucket → (A, 4). `published` keeps spans by the same author-set in, and takes their ranks as they are."""
    relevant, own = benchmark.relevant(), benchmark.own_document()
    positive = dict(zip(benchmark.triplets[:, 0].tolist(), benchmark.triplets[:, 1].tolist(), strict=True))
    chance = np.random.default_rng(7)
    by_bucket: dict[str, list[Doubles]] = {bucket_name(bucket): [] for bucket in BUCKETS} | {"random": []}
    for anchor, ranking in enumerate(top):
        others = ranking[~own[anchor, ranking]]
        ranked = others if published else others[~relevant[anchor, others]]
        for low, high in BUCKETS:
            by_bucket[bucket_name((low, high))].append(
                facts(benchmark, anchor, positive[anchor], ranked[low - 1 : high].tolist())
            )
        free = np.flatnonzero(~relevant[anchor] & ~own[anchor])
        some = chance.choice(free, min(5, len(free)), replace=False).tolist()
        by_bucket["random"].append(facts(benchmark, anchor, positive[anchor], some))
    return {bucket: np.stack(rows) for bucket, rows in by_bucket.items()}


def bucket_name(bucket: tuple[int, int]) -> str:
    low, high = bucket
    return f"rank {low}" if low == high else f"ranks {low}–{high}"


def ranked_failures(study: StudyOutcomes, outcome: RunOutcome | None) -> bool:
    """Were the heads of the rankings kept?"""
    return outcome is not None and all(f"{outcome.run.patch}|{b.name}|top" in outcome.arrays for b in study.on("base"))


def failure_modes(study: StudyOutcomes, outcome: RunOutcome, published: bool = False) -> Table:
    """Each quantity by the rank of the distractor."""
    benchmarks = study.on("base")
    parts = [distractors(b, outcome.arrays[f"{outcome.run.patch}|{b.name}|top"], published) for b in benchmarks]
    clusters = np.concatenate([benchmark.clusters for benchmark in benchmarks])
    rows = []
    for bucket in parts[0]:
        values = np.concatenate([part[bucket] for part in parts])
        cells = [Sample(values[:, at], clusters).cell(published_failures(q, bucket)) for at, q in enumerate(QUANTITIES)]
        rows.append(TableRow(bucket, tuple(cells)))
    rule = "spans by the anchor's own author-set kept in, as published" if published else "right answers left out"
    title = (
        f"Distractors by rank, {rule}, {outcome.run.backbone} at {outcome.run.patch}, {study.loss(outcome.run.stage)}"
    )
    text = (
        "Shares of distractors from the anchor's field and with one of its authors, and word overlap (Jaccard) with the "
        "anchor and with its positive. Random: other spans of the pool. Published values are of other buckets: of the true "
        "positive's rank, with the true positive among those averaged."
    )
    kind = "published-buckets" if published else "distractors"
    file = f"{kind}-{outcome.run.stage}-{slug_of(outcome.run.backbone)}-{slug_of(outcome.run.patch)}"
    return Table(file, title, QUANTITIES, tuple(rows), text, "rank")


def published_failures(quantity: str, bucket: str) -> float:
    return FAILURES.get(f"{quantity}, {bucket}", FAILURES.get(quantity, NAN) if bucket == "ranks 2–5" else NAN)


def first_hits(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """How often the first hit, or one of the first five, is right, and the mean of one over the rank of the first right."""
    rows = []
    for grain in GRAINS:
        outcome = study.outcome(backbone, grain, stage)
        if outcome is not None and ranked_failures(study, outcome):
            rank, clusters = first_right(study, outcome)
            one, five = (FAILURES[name] if grain == "ngram:2" else NAN for name in ("Hit@1", "Hit@5"))
            hits = [Sample(np.where(np.isnan(rank), NAN, rank <= depth), clusters) for depth in (1, 5)]
            cells = hits[0].cell(one), hits[1].cell(five), Sample(1 / rank, clusters).cell()
            rows.append(TableRow(grain_name(grain), cells))
    title = f"First hits, {study.main} sentences, {backbone}, {study.loss(stage)}"
    text = (
        f"{published_note(study)} "
        f"Spans of the anchor's own document are left out under either preset. Published: `ngram:2` in 1000 "
        "documents of its validation split, with one right answer."
    )
    return Table(f"first-hits-{stage}-{slug_of(backbone)}", title, ("Hit@1", "Hit@5", "RR@100"), tuple(rows), text)


def first_right(study: StudyOutcomes, outcome: RunOutcome) -> tuple[Doubles, Ints]:
    """(A,): the rank of each anchor's first right answer, infinite if there is none among the first hundred, NaN if there is
    none at all; and whose anchor it is."""
    benchmarks, ranks = study.on("base"), []
    for benchmark in benchmarks:
        right = benchmark.relevant() & ~benchmark.own_document()
        hits = np.take_along_axis(right, outcome.arrays[f"{outcome.run.patch}|{benchmark.name}|top"], axis=1)
        rank = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1.0, np.inf)
        ranks.append(np.where(right.any(axis=1), rank, NAN))
    return np.concatenate(ranks), np.concatenate([benchmark.clusters for benchmark in benchmarks])
