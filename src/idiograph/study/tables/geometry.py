"""Where a model puts texts: alignment and uniformity, and whether style is more than likeness of meaning."""

import math

import numpy as np

from idiograph.evaluate.published import GEOMETRY, SEMANTIC
from idiograph.study.outcomes import Doubles, RunOutcome, Sample, StudyOutcomes, show_cell
from idiograph.study.plan import GRAINS
from idiograph.study.table import NAN, Cell, Table, TableRow, slug_of
from idiograph.study.tables.granularity import grain_name


def spread_table(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """Alignment and uniformity of texts' mean vectors, whatever the grain of training; lower is better for both."""
    rows = []
    for grain in ("untrained", *GRAINS):
        outcome = study.untrained(backbone) if grain == "untrained" else study.outcome(backbone, grain, stage)
        near, far = GEOMETRY.get(grain, (NAN, NAN))
        aligned = study.triplets(outcome, "alignment")
        rows.append(TableRow(grain_name(grain), (show_cell(aligned, near), uniformity(study, outcome, far))))
    title = f"Alignment and uniformity, {study.main} sentences, {backbone}, {study.loss(stage)}"
    text = (
        "Alignment: mean squared distance of anchor and positive. Uniformity: log of the mean of exp(−2 d²) over pairs of "
        "anchors. Both of the mean of a text's patches, of unit length, so that grains can be compared."
    )
    return Table(f"geometry-{stage}-{slug_of(backbone)}", title, ("alignment", "uniformity"), tuple(rows), text)


def uniformity(study: StudyOutcomes, outcome: RunOutcome | None, published: float) -> Cell:
    """The log of a mean: the interval is that of the mean, through the log."""
    if outcome is None:
        return Cell(published=published)
    benchmarks = study.on("base")
    keys = [f"{outcome.run.patch}|{benchmark.name}|uniformity" for benchmark in benchmarks]
    if any(key not in outcome.arrays for key in keys):
        return Cell(published=published)
    values = np.concatenate([outcome.arrays[key] for key in keys]).astype(np.float64)
    clusters = np.concatenate(
        [benchmark.clusters[: len(outcome.arrays[k])] for benchmark, k in zip(benchmarks, keys, strict=True)]
    )
    cell = Sample(values, clusters).cell()
    return Cell(math.log(cell.value), log_uniformity(cell.low), log_uniformity(cell.high), published)


def log_uniformity(value: float) -> float:
    return math.log(value) if value > 0 else NAN


def cosine_table(study: StudyOutcomes, backbone: str, stage: str = "main") -> tuple[Sample, Sample] | None:
    """Cosines by meaning (a model of it, or the untrained backbone) and by style: (T, 2) of positives and negatives."""
    meaning = study.triplets(study.semantic or study.untrained(backbone), "cosines", reading="whole")
    style = study.triplets(study.outcome(backbone, "whole", stage), "cosines")
    return None if meaning is None or style is None else (meaning, style)


def semantic(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """Margins between same-author and other pairs on both axes, and how the axes are correlated, within and across."""
    both = cosine_table(study, backbone, stage)
    rows: list[TableRow] = []
    if both is not None:
        meaning, style = both
        for label, sample, key in (("style", style, "margin of style"), ("meaning", meaning, "margin of meaning")):
            margin = Sample(sample.values[:, 0] - sample.values[:, 1], sample.clusters)
            rows.append(TableRow(f"margin of {label}", (margin.cell(SEMANTIC[key]),)))
            rows.append(TableRow(f"margin of {label}, in standard deviations", (effect(sample),)))
        rows.append(
            TableRow("correlation, all pairs", (correlate(meaning, style, (0, 1), SEMANTIC["pooled correlation"]),))
        )
        rows.append(TableRow("correlation, same author", (correlate(meaning, style, (0,)),)))
        rows.append(TableRow("correlation, different authors", (correlate(meaning, style, (1,)),)))
    title = f"Likeness of meaning and of style, {study.main} sentences, {backbone}, {study.loss(stage)}"
    text = (
        f"Meaning: cosine by {meant(study)}. Style: cosine by the trained model, mean pooling. The paper's measure of meaning "
        "is multilingual E5; margins in cosine depend on how wide a model spreads texts, so they are also given in "
        "standard deviations of the different-author pairs."
    )
    return Table(f"semantic-{stage}-{slug_of(backbone)}", title, ("value",), tuple(rows), text, "quantity")


def meant(study: StudyOutcomes) -> str:
    """What meaning is measured by, in words."""
    return "the backbone as it came" if study.semantic is None else f"{study.semantic.run.backbone}, as it came"


def effect(sample: Sample) -> Cell:
    """The margin in standard deviations of the pairs of different authors."""
    near, far = sample.values.T
    return Sample((near - far) / far.std(), sample.clusters).cell()


def correlate(a: Sample, b: Sample, columns: tuple[int, ...], published: float = NAN, resamples: int = 1000) -> Cell:
    """Pearson's correlation over pairs, with an interval from drawing author-sets."""
    x, y = a.values[:, columns], b.values[:, columns]
    _, at = np.unique(a.clusters, return_inverse=True)
    sums = np.stack([np.bincount(at, each) for each in moments(x, y)])  # (6, clusters)
    drawn = np.random.default_rng(7).integers(sums.shape[1], size=(resamples, sums.shape[1]))
    values = pearson(sums[:, drawn].sum(axis=2))
    low, high = np.quantile(values, (0.025, 0.975))
    return Cell(float(pearson(sums.sum(axis=1))), float(low), float(high), published)


def moments(x: Doubles, y: Doubles) -> list[Doubles]:
    return [each.sum(axis=1) for each in (np.ones_like(x), x, y, x * x, y * y, x * y)]


def pearson(sums: Doubles) -> Doubles:
    """From n, Σx, Σy, Σx², Σy², Σxy."""
    n, x, y, xx, yy, xy = sums
    return (n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y))
