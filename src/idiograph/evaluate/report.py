"""What an evaluation found, with intervals; as a table for people, as JSON and Markdown for others."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """One measure with its 95 % interval."""

    measure: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Report:
    """One ranker on one benchmark."""

    ranker: str
    benchmark: str
    rows: tuple[MeasuredValue, ...]
    anchors: int
    pool: int
    same_field: float  # of the first hits
    per_anchor: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    source: str = ""  # fingerprint of the triplets
    clusters: tuple[str, ...] = field(default=(), repr=False)  # whose each anchor is, in the order of `per_anchor`
    domains: tuple[frozenset[str], ...] = field(default=(), repr=False)
    relevance: str = ""  # what counts as relevant
    top: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), np.int64), repr=False)  # of all anchors
    top_scores: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32), repr=False)

    def __getitem__(self, measure: str) -> MeasuredValue:
        return next(row for row in self.rows if row.measure == measure)

    def to_json(self) -> dict[str, Any]:
        rows = {row.measure: {"value": row.value, "low": row.low, "high": row.high} for row in self.rows}
        about = {"ranker": self.ranker, "benchmark": self.benchmark, "anchors": self.anchors, "pool": self.pool}
        fields = {
            name: {"anchors": count, **{row.measure: row.value for row in rows}}
            for name, (count, rows) in self.by_domain().items()
        }
        more = {"first_hit_in_the_same_field": self.same_field, "relevant": self.relevance, "source": self.source}
        return {**about, "measures": rows, **more, "domains": fields}

    def by_domain(self, least: int = 1) -> dict[str, tuple[int, tuple[MeasuredValue, ...]]]:
        """Each field with at least so many anchors: how many, and the measures of these. An anchor may be in several."""
        found = {}
        for name in sorted({name for domains in self.domains for name in domains}):
            here = np.array([name in domains for domains in self.domains])
            if here.sum() >= least:
                found[name] = (int(here.sum()), tuple(self._rows(here)))
        return found

    def _rows(self, here: NDArray[np.bool_]) -> Iterator[MeasuredValue]:
        clusters = [cluster for cluster, wanted in zip(self.clusters, here, strict=True) if wanted]
        for measure, values in self.per_anchor.items():
            yield MeasuredValue(measure, float(values[here].mean()), *interval(values[here], clusters))


def interval(
    values: NDArray[np.float64],
    clusters: Sequence[Hashable],
    resamples: int = 1000,
    seed: int = 7,
    level: float = 0.95,
) -> tuple[float, float]:
    """The bootstrap interval of the mean, drawing whole clusters: spans by one author-set rise and fall together."""
    numbers: dict[Hashable, int] = {}
    at = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters])
    sums = np.bincount(at, weights=values)
    sizes = np.bincount(at)
    if resamples == 0 or len(sums) < 2:
        return float("nan"), float("nan")
    drawn = np.random.default_rng(seed).integers(len(sums), size=(resamples, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


def reports_as_markdown(reports: Sequence[Report]) -> str:
    """Rankers as rows, measures as columns."""
    names = [row.measure for row in reports[0].rows]
    lines = ["| ranker | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for report in reports:
        cells = [f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" for row in report.rows]
        lines.append(f"| {report.ranker} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def domains_markdown(report: Report, least: int = 10) -> str:
    """Fields as rows, measures as columns; fields with few anchors are left out."""
    names = list(report.per_anchor)
    lines = ["| field | anchors | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for field_, (count, rows) in report.by_domain(least).items():
        cells = [f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" for row in rows]
        lines.append(f"| {field_} | {count} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
