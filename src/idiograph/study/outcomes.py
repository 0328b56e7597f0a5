"""The outcomes of a study by what they are about, and means of them with intervals. Corpora are put end to end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from idiograph.evaluate.report import interval
from idiograph.study.bench import Bench, Doubles, Ints
from idiograph.study.measure import MEASURES
from idiograph.study.plan import UNTRAINED, StudyRun
from idiograph.study.results import RunOutcome
from idiograph.study.table import NAN, Cell

RESAMPLES = 2000
PUBLISHED_LOSS, LEARNED_TEMPERATURE = "published loss", "learned temperature"


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A value for each anchor or triplet, and the author-set that it belongs to."""

    values: Doubles
    clusters: Ints

    def __sub__(self, other: "Sample") -> "Sample":
        """The difference, anchor by anchor: what is common to both does not blur it."""
        if not np.array_equal(self.clusters, other.clusters):
            raise ValueError("samples of different anchors cannot be paired")
        return Sample(self.values - other.values, self.clusters)

    def cell(self, published: float = NAN, scale: float = 1.0, digits: int = 3) -> Cell:
        """The mean with its interval over author-sets."""
        known = ~np.isnan(self.values)
        values = self.values[known] * scale
        if not len(values):
            return Cell(published=published, digits=digits)
        low, high = interval(values, self.clusters[known].tolist(), RESAMPLES)
        return Cell(float(values.mean()), low, high, published, digits)

    @property
    def mean(self) -> float:
        return float(np.nanmean(self.values))


class StudyOutcomes:
    """Outcomes, and the benches that they were read on."""

    def __init__(
        self, outcomes: Iterable[RunOutcome], benches: Sequence[Bench], valid: Sequence[Bench] = (), main: int = 4
    ) -> None:
        self.outcomes = list(outcomes)
        self.benches, self.valid, self.main = list(benches), list(valid), main

    @property
    def backbones(self) -> list[str]:
        return list(dict.fromkeys(o.run.backbone for o in self.outcomes if o.run.stage != "semantic"))

    @property
    def semantic(self) -> RunOutcome | None:
        """What a model of meaning does as it comes, if there is one."""
        return next((outcome for outcome in self.outcomes if outcome.run.stage == "semantic"), None)

    @property
    def corpora(self) -> list[str]:
        return list(dict.fromkeys(bench.corpus for bench in self.benches))

    @property
    def lengths(self) -> list[int]:
        return sorted({bench.sentences for bench in self.benches if bench.rule == "base"})

    def outcome(
        self, backbone: str, patch: str, stages: str | Sequence[str] = "main", **wanted: object
    ) -> RunOutcome | None:
        """The first outcome of a backbone, a grain and a stage (or several) that has what else is wanted."""
        names = [stages] if isinstance(stages, str) else stages
        for outcome in self.outcomes:
            run = outcome.run
            fits = (run.backbone, run.patch) == (backbone, patch) and run.stage in names
            if fits and (run.rule == UNTRAINED) == (wanted.get("rule") == UNTRAINED) and run_matches(run, wanted):
                return outcome
        return None

    def untrained(self, backbone: str) -> RunOutcome | None:
        return self.outcome(backbone, "whole", rule=UNTRAINED)

    def patched(self, backbone: str, stage: str = "main") -> RunOutcome | None:
        """A model with short patches: of two tokens as in the paper, or else of three, or else of one."""
        grains = ("ngram:2", "ngram:3", "ngram:1")
        return next((found for grain in grains if (found := self.outcome(backbone, grain, stage))), None)

    def loss(self, stage: str) -> str:
        """How the models of a stage were trained, in words; under the published protocol all are as published."""
        scores = {o.run.score for o in self.outcomes if o.run.stage == stage and o.run.rule != UNTRAINED}
        return PUBLISHED_LOSS if "maxsim" in scores else LEARNED_TEMPERATURE

    def on(self, rule: str = "base", sentences: int | None = None, corpus: str = "") -> list[Bench]:
        size = sentences or self.main
        return [b for b in self.benches if (b.rule, b.sentences) == (rule, size) and corpus in ("", b.corpus)]

    def measure(
        self, outcome: RunOutcome | None, name: str = "R@20", sentences: int | None = None,
        reading: str = "", corpus: str = "",
    ) -> Sample | None:  # fmt: skip
        """One measure of every anchor of the benches of a length; none if the outcome was not read there."""
        if outcome is None:
            return None
        grain, column = reading or outcome.run.patch, MEASURES.index(name)
        benches = self.on("base", sentences, corpus)
        keys = [f"{grain}|{bench.name}|measures" for bench in benches]
        if not benches or any(key not in outcome.arrays for key in keys):
            return None
        values = np.concatenate([outcome.arrays[key][:, column] for key in keys]).astype(np.float64)
        return Sample(values, np.concatenate([bench.clusters for bench in benches]))

    def chosen_on(self, outcome: RunOutcome, name: str = "R@20") -> float:
        """The measure on the validation writers, by which one chooses."""
        column = MEASURES.index(name)
        parts = [v[:, column] for k, v in outcome.arrays.items() if k.startswith("valid|")]
        return float(np.nanmean(np.concatenate(parts))) if parts else NAN

    def triplets(
        self, outcome: RunOutcome | None, what: str = "triplets", rule: str = "base",
        sentences: int | None = None, reading: str = "",
    ) -> Sample | None:  # fmt: skip
        """What was kept of every triplet of the benches of a rule and length."""
        if outcome is None:
            return None
        grain, benches = reading or outcome.run.patch, self.on(rule, sentences)
        keys = [f"{grain}|{bench.name}|{what}" for bench in benches]
        if not benches or any(key not in outcome.arrays for key in keys):
            return None
        values = np.concatenate([outcome.arrays[key] for key in keys]).astype(np.float64)
        return Sample(values, np.concatenate([bench.triplet_clusters for bench in benches]))

    def patches(self, outcome: RunOutcome, sentences: int | None = None, reading: str = "") -> float:
        """How many patches an anchor has on average."""
        grain = reading or outcome.run.patch
        found = [outcome.about["read"].get(f"{grain}|{b.name}", {}).get("patches") for b in self.on("base", sentences)]
        known = [each for each in found if each is not None]
        return float(np.mean(known)) if known else NAN


def run_matches(run: StudyRun, wanted: dict[str, object]) -> bool:
    return all(getattr(run, name) == value for name, value in wanted.items())


def show_cell(sample: Sample | None, published: float = NAN, scale: float = 1.0, digits: int = 3) -> Cell:
    """A cell, empty where there is nothing."""
    return Cell(published=published, digits=digits) if sample is None else sample.cell(published, scale, digits)


def paired_lead(a: Sample | None, b: Sample | None) -> Sample | None:
    return None if a is None or b is None else a - b
