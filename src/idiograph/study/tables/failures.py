"""What stands before the right answer? Distractors by rank: field, authors and words, against random spans.

The published buckets hold the true positive itself, whose overlap with itself makes the headline. Here it and every other
span by the anchor's author-set is left out, and a bucket is of the distractor's own rank.
"""

from collections.abc import Sequence

import numpy as np

from idiograph.evaluate.published import FAILURES
from idiograph.study.bench import Bench, Doubles, Ints
from idiograph.study.outcomes import Sample, StudyOutcomes
from idiograph.study.plan import GRAINS
from idiograph.study.results import RunOutcome
from idiograph.study.table import NAN, Table, TableRow
from idiograph.study.tables.granularity import grain_name, published_note, slug_of
from idiograph.text.words import BARE_WORD, word_overlap

BUCKETS = ((1, 1), (2, 5), (6, 20), (21, 100))
QUANTITIES = ("same field", "an author in common", "words of the anchor", "words of the positive")


def failure_words(text: str) -> frozenset[str]:
    return frozenset(BARE_WORD.findall(text.lower()))


def facts(bench: Bench, anchor: int, positive: int, others: Sequence[int]) -> Doubles:
    """(4,): the mean of each quantity over some spans of the pool, for one anchor."""
    me, it = int(bench.anchors[anchor]), failure_words(bench.texts[int(bench.pool[positive])])
    mine = failure_words(bench.texts[me])
    rows = []
    for other in others:
        at = int(bench.pool[other])
        its = failure_words(bench.texts[at])
        field, author = bool(bench.domains[me] & bench.domains[at]), bool(bench.authors[me] & bench.authors[at])
        rows.append((field, author, word_overlap(mine, its), word_overlap(it, its)))
    return np.array(rows, np.float64).mean(axis=0) if rows else np.full(len(QUANTITIES), NAN)


def distractors(bench: Bench, top: Ints, published: bool = False) -> dict[str, Doubles]:
    """Bucket → (A, 4). `published` keeps spans by the same author-set in, and takes their ranks as they are."""
    relevant, own = bench.relevant(), bench.own()
    positive = dict(zip(bench.triplets[:, 0].tolist(), bench.triplets[:, 1].tolist(), strict=True))
    chance = np.random.default_rng(7)
    found: dict[str, list[Doubles]] = {bucket_name(bucket): [] for bucket in BUCKETS} | {"random": []}
    for anchor, ranking in enumerate(top):
        there = ranking[~own[anchor, ranking]]
        line = there if published else there[~relevant[anchor, there]]
        for low, high in BUCKETS:
            found[bucket_name((low, high))].append(
                facts(bench, anchor, positive[anchor], line[low - 1 : high].tolist())
            )
        free = np.flatnonzero(~relevant[anchor] & ~own[anchor])
        some = chance.choice(free, min(5, len(free)), replace=False).tolist()
        found["random"].append(facts(bench, anchor, positive[anchor], some))
    return {bucket: np.stack(rows) for bucket, rows in found.items()}


def bucket_name(bucket: tuple[int, int]) -> str:
    low, high = bucket
    return f"rank {low}" if low == high else f"ranks {low}–{high}"


def ranked_failures(found: StudyOutcomes, outcome: RunOutcome | None) -> bool:
    """Were the heads of the rankings kept?"""
    return outcome is not None and all(f"{outcome.run.patch}|{b.name}|top" in outcome.arrays for b in found.on("base"))


def failure_modes(found: StudyOutcomes, outcome: RunOutcome, published: bool = False) -> Table:
    """Each quantity by the rank of the distractor."""
    benches = found.on("base")
    parts = [distractors(b, outcome.arrays[f"{outcome.run.patch}|{b.name}|top"], published) for b in benches]
    clusters = np.concatenate([bench.clusters for bench in benches])
    rows = []
    for bucket in parts[0]:
        values = np.concatenate([part[bucket] for part in parts])
        cells = [Sample(values[:, at], clusters).cell(published_failures(q, bucket)) for at, q in enumerate(QUANTITIES)]
        rows.append(TableRow(bucket, tuple(cells)))
    rule = "spans by the anchor's own author-set kept in, as published" if published else "right answers left out"
    title = (
        f"Distractors by rank, {rule}, {outcome.run.backbone} at {outcome.run.patch}, {found.loss(outcome.run.stage)}"
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


def first_hits(found: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """How often the first hit, or one of the first five, is right, and the mean of one over the rank of the first right."""
    rows = []
    for grain in GRAINS:
        outcome = found.outcome(backbone, grain, stage)
        if outcome is not None and ranked_failures(found, outcome):
            rank, clusters = first_right(found, outcome)
            one, five = (FAILURES[name] if grain == "ngram:2" else NAN for name in ("Hit@1", "Hit@5"))
            hits = [Sample(np.where(np.isnan(rank), NAN, rank <= depth), clusters) for depth in (1, 5)]
            cells = hits[0].cell(one), hits[1].cell(five), Sample(1 / rank, clusters).cell()
            rows.append(TableRow(grain_name(grain), cells))
    title = f"First hits, {found.main} sentences, {backbone}, {found.loss(stage)}"
    text = (
        f"{published_note(found)} "
        f"Spans of the anchor's own document are left out under either preset. Published: `ngram:2` in 1000 "
        "documents of its validation split, with one right answer."
    )
    return Table(f"first-hits-{stage}-{slug_of(backbone)}", title, ("Hit@1", "Hit@5", "RR@100"), tuple(rows), text)


def first_right(found: StudyOutcomes, outcome: RunOutcome) -> tuple[Doubles, Ints]:
    """(A,): the rank of each anchor's first right answer, infinite if there is none among the first hundred, NaN if there is
    none at all; and whose anchor it is."""
    benches, ranks = found.on("base"), []
    for bench in benches:
        right = bench.relevant() & ~bench.own()
        hits = np.take_along_axis(right, outcome.arrays[f"{outcome.run.patch}|{bench.name}|top"], axis=1)
        rank = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1.0, np.inf)
        ranks.append(np.where(right.any(axis=1), rank, NAN))
    return np.concatenate(ranks), np.concatenate([bench.clusters for bench in benches])
