"""Does the best patch size grow with the root of the length? The fit with its interval, against simpler alternatives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from idiograph.evaluate.published import COEFFICIENT, MEASURES, PATCH_SIZES
from idiograph.plots.tables import SizeChoices
from idiograph.study.outcomes import Doubles, Ints, Sample, StudyOutcomes
from idiograph.study.table import NAN, Cell, Table, TableRow, slug_of

SIZES = (1, 2, 3, 4, 5)
SHAPES: dict[str, Callable[[Doubles], Doubles]] = {
    "constant": np.ones_like,
    "root": np.sqrt,
    "linear": lambda length: length,
    "logarithm": np.log,
}


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A measure for every length of span and patch size, and the same in resamples of the author-sets."""

    lengths: Doubles  # (K,) tokens of a span
    means: Doubles  # (K, N)
    resampled: Doubles  # (R, K, N)

    @property
    def best(self) -> Doubles:
        """(K,): the best patch size of each length."""
        return np.array(SIZES, float)[self.means.argmax(axis=1)]

    @property
    def best_resampled(self) -> Doubles:
        return np.array(SIZES, float)[self.resampled.argmax(axis=2)]  # (R, K)


def curve(samples: Sequence[Sequence[Sample]], lengths: Sequence[float], resamples: int = 1000, seed: int = 7) -> Curve:
    """From samples by length and patch size. A resample draws author-sets, the same for every length and size."""
    clusters = np.unique(np.concatenate([one.clusters for row in samples for one in row]))
    sums = np.stack([[by_cluster(one, clusters)[0] for one in row] for row in samples])  # (K, N, C)
    sizes = np.stack([[by_cluster(one, clusters)[1] for one in row] for row in samples])
    chance = np.random.default_rng(seed)
    weights = chance.multinomial(len(clusters), np.full(len(clusters), 1 / len(clusters)), size=resamples).astype(
        float
    )  # (R, C)
    drawn = np.einsum("rc,knc->rkn", weights, sums) / np.maximum(np.einsum("rc,knc->rkn", weights, sizes), 1)
    return Curve(np.array(lengths, float), sums.sum(axis=2) / sizes.sum(axis=2), drawn)


def by_cluster(sample: Sample, clusters: Ints) -> tuple[Doubles, Doubles]:
    measured = ~np.isnan(sample.values)
    at = np.searchsorted(clusters, sample.clusters[measured])
    return np.bincount(at, sample.values[measured], len(clusters)).astype(float), np.bincount(
        at, minlength=len(clusters)
    ).astype(float)


def coefficient(lengths: Doubles, best: Doubles, shape: str) -> tuple[Doubles, Doubles]:
    """The least-squares factor of a shape and the squared error that remains; `best` may have leading axes."""
    basis = SHAPES[shape](lengths)
    factor: Doubles = np.divide((best * basis).sum(axis=-1), (basis * basis).sum(), dtype=np.float64)
    error: Doubles = np.square(best - factor[..., None] * basis).sum(axis=-1, dtype=np.float64)
    return factor, error


def exponent(lengths: Doubles, best: Doubles) -> Doubles:
    """The power of the length that fits best, by least squares of logs."""
    x, y = np.log(lengths), np.log(best)
    x = x - x.mean()
    return (x * (y - y.mean(axis=-1, keepdims=True))).sum(axis=-1) / (x * x).sum()


def fit_curve(one: Curve) -> dict[str, Cell]:
    """The factor of the root with its interval, the free exponent, and how often each shape is the best."""
    factor, _ = coefficient(one.lengths, one.best, "root")
    drawn, _ = coefficient(one.lengths, one.best_resampled, "root")
    power, powers = exponent(one.lengths, one.best), exponent(one.lengths, one.best_resampled)
    cells = {
        "factor of the root": Cell(float(factor), *interval_of_values(drawn), COEFFICIENT),
        "free exponent": Cell(float(power), *interval_of_values(powers), 0.5),
    }
    errors = np.stack([coefficient(one.lengths, one.best_resampled, shape)[1] for shape in SHAPES])  # (shapes, R)
    now = {shape: float(coefficient(one.lengths, one.best, shape)[1]) for shape in SHAPES}
    wins = np.bincount(errors.argmin(axis=0), minlength=len(SHAPES)) / errors.shape[1]
    for at, shape in enumerate(SHAPES):
        cells[f"squared error, {shape}"] = Cell(now[shape], *interval_of_values(errors[at]))
        cells[f"best in resamples, {shape}"] = Cell(float(wins[at]))
    return cells


def drawn_curve(one: Curve, points: int = 60) -> SizeChoices:
    """The choices of a curve and the shapes fitted to them, for a figure."""
    fine = np.linspace(one.lengths.min(), one.lengths.max(), points)
    fits = {shape: coefficient(one.lengths, one.best, shape)[0] * line(fine) for shape, line in SHAPES.items()}
    return SizeChoices(one.lengths, one.best_resampled, fine, fits, COEFFICIENT * np.sqrt(fine))


def interval_of_values(values: Doubles) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def published_fit() -> dict[str, float]:
    """The same errors for the published six points."""
    lengths, best = (np.array(each, float) for each in zip(*PATCH_SIZES.values(), strict=True))
    fit = {f"squared error, {shape}": float(coefficient(lengths, best, shape)[1]) for shape in SHAPES}
    return fit | {"free exponent": float(exponent(lengths, best)), "factor of the root": COEFFICIENT}


def samples_of(
    study: StudyOutcomes, backbone: str, measure: str, stage: str
) -> tuple[list[list[Sample]], list[float]] | None:
    rows, lengths = [], []
    token = study.outcome(backbone, "ngram:1", stage)
    if token is None:
        return None
    for size in study.lengths:
        row = [study.measure(study.outcome(backbone, f"ngram:{n}", stage), measure, size) for n in SIZES]
        if any(one is None for one in row):
            return None
        rows.append([one for one in row if one is not None])
        lengths.append(study.patches(token, size))
    return rows, lengths


def patch_size_table(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table | None:
    """One column a measure."""
    columns: dict[str, dict[str, Cell]] = {}
    for measure in MEASURES:
        samples = samples_of(study, backbone, measure, stage)
        if samples is None:
            return None
        columns[measure] = fit_curve(curve(*samples))
    theirs = published_fit()
    rows = [
        TableRow(label, tuple(with_published(columns[m][label], theirs.get(label, NAN)) for m in MEASURES))
        for label in next(iter(columns.values()))
    ]
    text = (
        "The best patch size of 1 to 5 for each length of span, and curves of one parameter through them. The published "
        "column is recomputed from the paper's six points. Resamples draw author-sets and choose the best size anew."
    )
    title = f"The best patch size as a function of length, {backbone}, {study.loss(stage)}"
    return Table(f"patch-size-{stage}-{slug_of(backbone)}", title, MEASURES, tuple(rows), text, "quantity")


def with_published(cell: Cell, published: float) -> Cell:
    return Cell(cell.value, cell.low, cell.high, published, cell.digits)


def best_sizes(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table | None:
    """The best size itself, by length and measure; the interval is that of the choice, not of a mean."""
    rows: list[list[Cell]] = []
    lengths: list[float] = []
    for measure in MEASURES:
        samples = samples_of(study, backbone, measure, stage)
        if samples is None:
            return None
        one = curve(*samples)
        lengths = samples[1]
        limits = np.quantile(one.best_resampled, (0.025, 0.975), axis=0)
        theirs = [published_best(size) for size in study.lengths]
        rows.append(
            [
                Cell(v, float(limits[0, at]), float(limits[1, at]), theirs[at], 0)
                for at, v in enumerate(one.best.tolist())
            ]
        )
    labels = [f"{size} sentences, {length:.0f} tokens" for size, length in zip(study.lengths, lengths, strict=True)]
    lines = [TableRow(label, tuple(row[at] for row in rows)) for at, label in enumerate(labels)]
    title = f"The best patch size by length and measure, {backbone}, {study.loss(stage)}"
    text = "Sizes of 1 to 5 tokens; the range holds 95 % of the choices made in resamples of the author-sets."
    return Table(f"best-size-{stage}-{slug_of(backbone)}", title, MEASURES, tuple(lines), text, "length")


def published_best(sentences: int) -> float:
    return float(PATCH_SIZES[f"base-{sentences}"][1]) if f"base-{sentences}" in PATCH_SIZES else NAN
