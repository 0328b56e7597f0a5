"""How large is the lead if one looks less deep? Twenty spans are much of a small pool and little of a large one."""

import numpy as np

from idiograph.evaluate.published import POOL, RETRIEVAL
from idiograph.measures.ranking import measure_rankings
from idiograph.mining.benchmark import Benchmark
from idiograph.study.outcomes import Doubles, Ints, RunOutcome, Sample, StudyOutcomes
from idiograph.study.table import NAN, Cell, Table, TableRow, slug_of
from idiograph.study.tables.failures import ranked_failures
from idiograph.study.tables.granularity import grain_name, published_note

DEPTHS = (1, 2, 5, 10, 20, 50, 100)


def recall_at_depth(benchmark: Benchmark, top: Ints, depth: int) -> Doubles:
    """(A,): the share of an anchor's right answers among its first hits, its own document left out; NaN without any."""
    measure = f"R@{depth}"
    return measure_rankings(top, benchmark.relevant() & ~benchmark.own_document(), [measure])[measure]


def recalls_by_depth(study: StudyOutcomes, outcome: RunOutcome, depth: int) -> Sample:
    """The same over all corpora."""
    benchmarks = study.on("base")
    parts = [
        recall_at_depth(benchmark, outcome.arrays[f"{outcome.run.patch}|{benchmark.name}|top"], depth)
        for benchmark in benchmarks
    ]
    return Sample(np.concatenate(parts), np.concatenate([benchmark.clusters for benchmark in benchmarks]))


def relative_lead(
    a: Sample | None, b: Sample | None, published: float = NAN, scale: float = 1.0, digits: int = 3
) -> Cell:
    """By how much of b a is ahead of b: the ratio of two means less one, drawing author-sets together."""
    if a is None or b is None:
        return Cell(published=published, digits=digits)
    comparable = ~np.isnan(a.values) & ~np.isnan(b.values)
    _, at = np.unique(a.clusters[comparable], return_inverse=True)
    sums = np.stack([np.bincount(at, each.values[comparable]) for each in (a, b)])  # (2, clusters)
    drawn = np.random.default_rng(7).integers(sums.shape[1], size=(2000, sums.shape[1]))
    above, below = sums[:, drawn].sum(axis=2)
    if not below.all():  # so little that a ratio has no upper end
        return Cell(published=published, digits=digits)
    low, high = scale * np.quantile(above / below - 1, (0.025, 0.975))
    whole = sums.sum(axis=1)
    return Cell(scale * float(whole[0] / whole[1] - 1), float(low), float(high), published, digits)


def by_depth(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table | None:
    """Recall of mean pooling and of late interaction by depth, and the lead of the second in per cent of the first."""
    pair = [study.outcome(backbone, grain, stage) for grain in ("whole", "ngram:1")]
    models = [outcome for outcome in pair if outcome is not None and ranked_failures(study, outcome)]
    if len(models) < len(pair):
        return None
    whole, token = ([recalls_by_depth(study, model, depth) for depth in DEPTHS] for model in models)
    rows = [
        TableRow(grain_name(model.run.patch), tuple(one.cell() for one in samples))
        for model, samples in zip(models, (whole, token), strict=True)
    ]
    leads = [relative_lead(a, b, published_lead(d), 100, 0) for a, b, d in zip(token, whole, DEPTHS, strict=True)]
    rows.append(TableRow("lead in per cent", tuple(leads)))
    title = f"Recall by depth, {study.main} sentences, {backbone}, {study.loss(stage)}"
    text = (
        f"{published_note(study)} "
        f"Spans of the anchor's own document are left out under either preset. The published pool has some "
        f"{POOL} spans: its first 20 are {2000 / POOL:.2f} % of it, its first 100 {10000 / POOL:.2f} %."
    )
    name = f"depth-{stage}-{slug_of(backbone)}"
    return Table(name, title, tuple(f"R@{depth}" for depth in DEPTHS), tuple(rows), text)


def published_lead(depth: int) -> float:
    """The published lead in per cent where the depth was published."""
    at = {20: 0, 100: 1}.get(depth)
    return NAN if at is None else 100 * (RETRIEVAL[4]["ngram:1"][at] / RETRIEVAL[4]["whole"][at] - 1)
