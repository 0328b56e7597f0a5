"""Verification measured: cost and calibration of the ratios, and the measures of the PAN shared tasks.

A PAN answer is a number from 0 to 1; exactly 0.5 means that no answer is given.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph import __version__
from idiograph.errors import InputError
from idiograph.evaluate.report import MeasuredValue
from idiograph.html import render
from idiograph.measures.likelihood import Curves, auc, calibration_curves, cllr, cllr_min, eer
from idiograph.store import timestamp

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
UNANSWERED = 0.5
SUMMARY = ("Cllr", "Cllr_min", "Cllr_cal", "EER", "AUC", "c@1", "F0.5u", "Brier", "unanswered")  # what reports show


def c_at_1(answers: Floats, truth: Bools) -> float:
    """Accuracy that credits an unanswered case with the accuracy reached on the answered ones."""
    answered = answers != UNANSWERED
    right = int(((answers > UNANSWERED) == truth)[answered].sum())
    return (right + (~answered).sum() * right / len(truth)) / len(truth)


def f05u(answers: Floats, truth: Bools) -> float:
    """F0.5 in which an unanswered case counts as a missed same-author pair."""
    answered = answers != UNANSWERED
    same = answers > UNANSWERED
    hits, wrong = int((same & truth).sum()), int((same & ~truth).sum())
    missed = int((~same & truth & answered).sum())
    total = 1.25 * hits + 0.25 * (missed + int((~answered).sum())) + wrong
    return 1.25 * hits / total if total else 0.0


def f1(answers: Floats, truth: Bools) -> float:
    """F1 of the same-author class among the answered cases."""
    answered = answers != UNANSWERED
    same = answers > UNANSWERED
    hits = int((same & truth).sum())
    total = 2 * hits + int((same & ~truth).sum()) + int((~same & truth & answered).sum())
    return 2 * hits / total if total else 0.0


def brier(answers: Floats, truth: Bools) -> float:
    """1 − the mean squared distance of the answers from the truth: higher is better, as PAN has it."""
    return 1 - float(((answers - truth) ** 2).mean())


def answers_of(llr: Floats, unsure: float) -> Floats:
    """Probabilities at even odds, and 0.5 for the pairs on which we abstain."""
    return np.where(np.abs(llr) < unsure, UNANSWERED, 1 / (1 + 10.0**-llr))


@dataclass(frozen=True)
class Judged:
    """Pairs, what was said of them, and who is behind them."""

    score: Floats
    llr: Floats
    same: Bools
    writers: tuple[Hashable, ...]
    unsure: float = 0.3  # |log10 LR| under which no answer is given

    def pick(self, which: Ints) -> "Judged":
        writers = tuple(self.writers[at] for at in which)
        return Judged(self.score[which], self.llr[which], self.same[which], writers, self.unsure)

    def of(self, values: Floats) -> tuple[Floats, Floats]:
        return values[self.same], values[~self.same]


MEASURES: dict[str, Callable[[Judged], float]] = {
    "Cllr": lambda j: cllr(*j.of(j.llr)),
    "Cllr_min": lambda j: cllr_min(*j.of(j.llr)),
    "Cllr_cal": lambda j: cllr(*j.of(j.llr)) - cllr_min(*j.of(j.llr)),
    "EER": lambda j: eer(*j.of(j.llr)),
    "AUC": lambda j: auc(*j.of(j.llr)),
    "c@1": lambda j: c_at_1(answers_of(j.llr, j.unsure), j.same),
    "F0.5u": lambda j: f05u(answers_of(j.llr, j.unsure), j.same),
    "F1": lambda j: f1(answers_of(j.llr, j.unsure), j.same),
    "Brier": lambda j: brier(answers_of(j.llr, j.unsure), j.same),
    "unanswered": lambda j: float((np.abs(j.llr) < j.unsure).mean()),
}


@dataclass(frozen=True)
class Verification:
    """A system on a set of pairs."""

    system: str
    pairs: str
    rows: tuple[MeasuredValue, ...]
    same: int
    different: int
    writers: int
    curves: Curves

    def __getitem__(self, measure: str) -> MeasuredValue:
        return next(row for row in self.rows if row.measure == measure)

    def to_json(self) -> dict[str, Any]:
        rows: Mapping[str, Any] = {r.measure: {"value": r.value, "low": r.low, "high": r.high} for r in self.rows}
        about = {"system": self.system, "pairs": self.pairs, "same": self.same, "different": self.different}
        return {**about, "writers": self.writers, "measures": rows}


def measure_verification(judged: Judged, system: str, pairs: str, resamples: int = 200, seed: int = 7) -> Verification:
    """Every measure, with intervals from drawing whole writers: the pairs of one writer rise and fall together."""
    count = int(judged.same.sum())
    if not 0 < count < len(judged.same):
        raise InputError(f"there must be pairs by one hand and by two, but {count} of {len(judged.same)} are by one")
    drawn = [judged.pick(which) for which in resample_writers(judged.writers, judged.same, resamples, seed)]
    rows = [bounded_value(name, f, judged, drawn) for name, f in MEASURES.items()]
    curves = calibration_curves(*judged.of(judged.llr))
    writers = len(set(judged.writers))
    return Verification(system, pairs, tuple(rows), count, len(judged.same) - count, writers, curves)


def bounded_value(name: str, f: Callable[[Judged], float], judged: Judged, drawn: Sequence[Judged]) -> MeasuredValue:
    values = [f(each) for each in drawn]
    low, high = np.quantile(values, (0.025, 0.975)) if values else (float("nan"), float("nan"))
    return MeasuredValue(name, float(f(judged)), float(low), float(high))


def resample_writers(writers: Sequence[Hashable], same: Bools, resamples: int, seed: int) -> list[Ints]:
    """Rows of bootstrap samples that draw whole writers; samples with one kind of pair alone are left out."""
    numbers: dict[Hashable, list[int]] = {}
    for at, writer in enumerate(writers):
        numbers.setdefault(writer, []).append(at)
    rows = [np.array(found) for found in numbers.values()]
    random = np.random.default_rng(seed)
    drawn = (np.concatenate([rows[at] for at in random.integers(len(rows), size=len(rows))]) for _ in range(resamples))
    return [which for which in drawn if 0 < same[which].sum() < len(which)]


def verification_as_markdown(results: Sequence[Verification], names: Sequence[str] = tuple(MEASURES)) -> str:
    """Systems as rows, measures as columns."""
    lines = ["| pairs | system | same / different | " + " | ".join(names) + " |", "|---" * (len(names) + 3) + "|"]
    for one in results:
        cells = " | ".join(f"{one[name].value:.3f}" for name in names)
        lines.append(f"| {one.pairs} | {one.system} | {one.same} / {one.different} | {cells} |")
    return "\n".join(lines)


def write_verification(results: Sequence[Verification], folder: Path, about: Mapping[str, Any]) -> None:
    """verification.json, .md and .html; `about` has the preset, the source of the pairs and the recipe."""
    from idiograph.plots.curves import evidence_panels

    folder.mkdir(parents=True, exist_ok=True)
    date = timestamp()
    body = {"version": __version__, "date": date, **about, "systems": [r.to_json() for r in results]}
    (folder / "verification.json").write_text(json.dumps(body, indent=1), encoding="utf-8")
    (folder / "verification.md").write_text(verification_as_markdown(results, SUMMARY) + "\n", encoding="utf-8")
    page = render(
        "verification.html",
        title="verification",
        version=__version__,
        date=date[:10],
        preset=about["preset"],
        pairs=results[0].pairs,
        measures=SUMMARY,
        found=results,
        figures=[evidence_panels(r.curves) for r in results],
        source=about["source"],
        seed=about["recipe"]["seed"],
    )
    (folder / "verification.html").write_text(page, encoding="utf-8")
