"""The outcomes of a study: a file for each run, and means of them with intervals. Corpora are put end to end."""

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import ArtifactError
from idiograph.evaluate.report import interval
from idiograph.mining.benchmark import Benchmark
from idiograph.seeded import hash_text
from idiograph.store import make_folder, write_whole_file
from idiograph.study.plan import UNTRAINED, StudyRun, run_from_json
from idiograph.study.table import NAN, Cell, slug_of

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

MEASURES = ("R@20", "R@100", "nDCG@20", "nDCG@100", "Hit@1", "RR")  # that are kept of every anchor
RESAMPLES = 2000
PUBLISHED_LOSS, LEARNED_TEMPERATURE = "published loss", "learned temperature"


@dataclass(frozen=True)
class RunOutcome:
    """What a run gave. The names of arrays are `reading|benchmark|what`."""

    run: StudyRun
    about: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


def outcome_file(folder: Path, run: StudyRun) -> Path:
    """The file of a run, which is there whole or not at all."""
    return folder / f"{slug_of(run.name)}-{hash_text(run.name, 3):06x}.zip"


def write_outcome(outcome: RunOutcome, folder: Path) -> Path:
    """Write one file: the settings of the run and what is known of it as JSON, and its arrays."""
    make_folder(folder)
    arrays, whole = io.BytesIO(), io.BytesIO()
    named: Any = dict(outcome.arrays)
    np.savez_compressed(arrays, **named)
    about = {"run": outcome.run.to_json(), "about": dict(outcome.about)}
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("run.json", json.dumps(about))
        archive.writestr("arrays.npz", arrays.getvalue())
    path = outcome_file(folder, outcome.run)
    write_whole_file(path, whole.getvalue())
    return path


def read_outcome(path: Path) -> RunOutcome:
    """What `write_outcome` wrote."""
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read("run.json"))
            with np.load(io.BytesIO(archive.read("arrays.npz"))) as arrays:
                return RunOutcome(run_from_json(about["run"]), about["about"], dict(arrays))
    except (
        zipfile.BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise ArtifactError(f"'{path}' is damaged ({error}); remove it, and the run is done again") from error


def read_outcomes(folder: Path, runs: Iterable[StudyRun]) -> list[RunOutcome]:
    """The outcomes of those runs that are done, in their order."""
    paths = (outcome_file(folder, run) for run in runs)
    return [read_outcome(path) for path in paths if path.is_file()]


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
    """Outcomes, and the benchmarks that they were read on. `main`: sentences of the spans that most tables are about."""

    def __init__(self, outcomes: Iterable[RunOutcome], benchmarks: Sequence[Benchmark], main: int = 4) -> None:
        self.outcomes, self.benchmarks, self.main = list(outcomes), list(benchmarks), main

    @property
    def backbones(self) -> list[str]:
        return list(dict.fromkeys(o.run.backbone for o in self.outcomes if o.run.stage != "semantic"))

    @property
    def semantic(self) -> RunOutcome | None:
        """What a model of meaning does as it comes, if there is one."""
        return next((outcome for outcome in self.outcomes if outcome.run.stage == "semantic"), None)

    @property
    def corpora(self) -> list[str]:
        return list(dict.fromkeys(each.corpus for each in self.benchmarks))

    @property
    def lengths(self) -> list[int]:
        return sorted({each.sentences for each in self.benchmarks if each.rule == "base"})

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
        return next((model for grain in grains if (model := self.outcome(backbone, grain, stage))), None)

    def loss(self, stage: str) -> str:
        """How the models of a stage were trained, in words; under the published protocol all are as published."""
        scores = {o.run.score for o in self.outcomes if o.run.stage == stage and o.run.rule != UNTRAINED}
        return PUBLISHED_LOSS if "maxsim" in scores else LEARNED_TEMPERATURE

    def on(self, rule: str = "base", sentences: int | None = None, corpus: str = "") -> list[Benchmark]:
        size = sentences or self.main
        return [b for b in self.benchmarks if (b.rule, b.sentences) == (rule, size) and corpus in ("", b.corpus)]

    def measure(
        self, outcome: RunOutcome | None, name: str = "R@20", sentences: int | None = None,
        reading: str = "", corpus: str = "",
    ) -> Sample | None:  # fmt: skip
        """One measure of every anchor of the benchmarks of a length; none if the outcome was not read there."""
        if outcome is None:
            return None
        grain, column = reading or outcome.run.patch, MEASURES.index(name)
        benchmarks = self.on("base", sentences, corpus)
        keys = [f"{grain}|{benchmark.name}|measures" for benchmark in benchmarks]
        if not benchmarks or any(key not in outcome.arrays for key in keys):
            return None
        values = np.concatenate([outcome.arrays[key][:, column] for key in keys]).astype(np.float64)
        return Sample(values, np.concatenate([benchmark.clusters for benchmark in benchmarks]))

    def chosen_on(self, outcome: RunOutcome, name: str = "R@20") -> float:
        """The measure on the validation writers, by which one chooses."""
        column = MEASURES.index(name)
        parts = [v[:, column] for k, v in outcome.arrays.items() if k.startswith("valid|")]
        return float(np.nanmean(np.concatenate(parts))) if parts else NAN

    def triplets(
        self, outcome: RunOutcome | None, what: str = "triplets", rule: str = "base",
        sentences: int | None = None, reading: str = "",
    ) -> Sample | None:  # fmt: skip
        """What was kept of every triplet of the benchmarks of a rule and length."""
        if outcome is None:
            return None
        grain, benchmarks = reading or outcome.run.patch, self.on(rule, sentences)
        keys = [f"{grain}|{benchmark.name}|{what}" for benchmark in benchmarks]
        if not benchmarks or any(key not in outcome.arrays for key in keys):
            return None
        values = np.concatenate([outcome.arrays[key] for key in keys]).astype(np.float64)
        return Sample(values, np.concatenate([benchmark.triplet_clusters for benchmark in benchmarks]))

    def patches(self, outcome: RunOutcome, sentences: int | None = None, reading: str = "") -> float:
        """How many patches an anchor has on average."""
        grain = reading or outcome.run.patch
        notes = [outcome.about["read"].get(f"{grain}|{b.name}", {}) for b in self.on("base", sentences)]
        counts = [each["patches"] for each in notes if "patches" in each]
        return float(np.mean(counts)) if counts else NAN


def run_matches(run: StudyRun, wanted: dict[str, object]) -> bool:
    return all(getattr(run, name) == value for name, value in wanted.items())


def show_cell(sample: Sample | None, published: float = NAN, scale: float = 1.0, digits: int = 3) -> Cell:
    """A cell, empty where there is nothing."""
    return Cell(published=published, digits=digits) if sample is None else sample.cell(published, scale, digits)


def paired_lead(a: Sample | None, b: Sample | None) -> Sample | None:
    return None if a is None or b is None else a - b
