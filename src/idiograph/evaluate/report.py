"""What an evaluation found, with intervals; as a table for people, as JSON and Markdown for others."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Row:
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
    rows: tuple[Row, ...]
    anchors: int
    pool: int
    same_field: float  # of the first hits
    per_anchor: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def __getitem__(self, measure: str) -> Row:
        return next(row for row in self.rows if row.measure == measure)

    def to_json(self) -> dict[str, Any]:
        rows = {row.measure: {"value": row.value, "low": row.low, "high": row.high} for row in self.rows}
        about = {"ranker": self.ranker, "benchmark": self.benchmark, "anchors": self.anchors, "pool": self.pool}
        return {**about, "measures": rows, "first_hit_in_the_same_field": self.same_field}


def interval(
    values: NDArray[np.float64], clusters: Sequence[Hashable], resamples: int = 1000, seed: int = 7
) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean, drawing whole clusters: spans by one author-set rise and fall together."""
    numbers: dict[Hashable, int] = {}
    at = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters])
    sums = np.bincount(at, weights=values)
    sizes = np.bincount(at)
    if resamples == 0 or len(sums) < 2:
        return float("nan"), float("nan")
    drawn = np.random.default_rng(seed).integers(len(sums), size=(resamples, len(sums)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def markdown(reports: Sequence[Report]) -> str:
    """Rankers as rows, measures as columns."""
    names = [row.measure for row in reports[0].rows]
    lines = ["| ranker | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for report in reports:
        cells = [f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" for row in report.rows]
        lines.append(f"| {report.ranker} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
