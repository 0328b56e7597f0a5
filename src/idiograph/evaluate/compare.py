"""Does A beat B? Paired differences over the same anchors, with intervals over author-sets; a verdict only where one is due."""

import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import ArtifactError, InputError
from idiograph.evaluate.report import Report, interval

VALUES = "values.npz"
UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)
FAMILY_ERROR = 0.05  # chance of one wrong verdict among all pairs compared


@dataclass(frozen=True, slots=True)
class Difference:
    """First minus second, in one measure, with its interval."""

    benchmark: str
    measure: str
    first: str
    second: str
    value: float
    low: float
    high: float
    anchors: int

    @property
    def verdict(self) -> str:
        """Who beats whom, if anybody does."""
        if self.low > 0:
            return f"{self.first} beats {self.second}"
        if self.high < 0:
            return f"{self.second} beats {self.first}"
        return "no difference shown"

    def to_json(self) -> dict[str, Any]:
        names = ("benchmark", "measure", "first", "second", "value", "low", "high", "anchors", "verdict")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Values:
    """What a report keeps for later comparisons: one number an anchor, and whose anchor it was."""

    ranker: str
    benchmark: str
    source: str
    clusters: tuple[str, ...]
    per_anchor: dict[str, NDArray[np.float64]]


def values_of(report: Report) -> Values:
    return Values(report.ranker, report.benchmark, report.source, report.clusters, dict(report.per_anchor))


def write_values(reports: Sequence[Report], path: Path) -> None:
    """The values of every anchor, so that another run can be compared with this one."""
    about, arrays = [], {}
    for number, report in enumerate(reports):
        values = values_of(report)
        names = {"ranker": values.ranker, "benchmark": values.benchmark, "source": values.source}
        about.append({**names, "clusters": values.clusters, "measures": list(values.per_anchor)})
        arrays |= {f"{number}/{name}": found for name, found in values.per_anchor.items()}
    np.savez_compressed(path, about=np.array(json.dumps(about)), **arrays)  # pyright: ignore[reportArgumentType]


def read_values(folder: Path) -> list[Values]:
    """The values that an evaluation wrote into its folder."""
    path = folder / VALUES if folder.is_dir() else folder
    if not path.exists():
        raise InputError(f"'{folder}' holds no {VALUES}; write it: idiograph evaluate RANKER TRIPLETS -o {folder}")
    try:
        return unpack_values(path)
    except UNREADABLE as error:
        reason = f"'{path}' is damaged ({error or type(error).__name__})"
        raise ArtifactError(f"{reason}; write it again: idiograph evaluate RANKER TRIPLETS -o {folder}") from error


def unpack_values(path: Path) -> list[Values]:
    """The values in a file, whose members all have the checksums that the archive names."""
    with zipfile.ZipFile(path) as archive:
        if wrong := archive.testzip():
            raise ValueError(f"the content of {wrong} has changed")
    with np.load(path, allow_pickle=False) as arrays:
        return [
            Values(
                each["ranker"],
                each["benchmark"],
                each["source"],
                tuple(each["clusters"]),
                {name: arrays[f"{number}/{name}"] for name in each["measures"]},
            )
            for number, each in enumerate(json.loads(str(arrays["about"])))
        ]


def compare_rankers(values: Sequence[Values], measure: str, resamples: int = 2000, seed: int = 7) -> list[Difference]:
    """Every pair of rankers on every benchmark that they share; intervals widen with the number of pairs."""
    pairs = [(a, b) for a, b in combinations(values, 2) if a.benchmark == b.benchmark]
    if not pairs:
        raise InputError("there are no two rankers on one benchmark to compare")
    return [difference(a, b, measure, resamples, seed, 1 - FAMILY_ERROR / len(pairs)) for a, b in pairs]


def difference(
    a: Values, b: Values, measure: str, resamples: int = 2000, seed: int = 7, level: float = 0.95
) -> Difference:
    """The mean paired difference, and an interval that draws whole author-sets."""
    for one in (a, b):
        if measure not in one.per_anchor:
            raise InputError(f"'{one.ranker}' was not measured by '{measure}'; there are {', '.join(one.per_anchor)}")
    if a.clusters != b.clusters or a.source != b.source:
        raise InputError(
            f"'{a.ranker}' and '{b.ranker}' were not asked the same of '{a.benchmark}'; evaluate them again"
        )
    gap = a.per_anchor[measure] - b.per_anchor[measure]
    low, high = interval(gap, a.clusters, resamples, seed, level)
    return Difference(a.benchmark, measure, a.ranker, b.ranker, float(gap.mean()), low, high, len(gap))
