"""Do one run of a study: train a model, read every benchmark, and keep a number for each anchor and triplet."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.evaluate.problems import Problem
from idiograph.measures.ranking import measure_rankings, rank_scores, triplet_accuracy
from idiograph.mining.benchmark import Benchmark
from idiograph.neural.reader import DevicePatches
from idiograph.neural.trial import Trial, VectorFile
from idiograph.runner import Progress
from idiograph.study.outcomes import MEASURES, Doubles, Ints, RunOutcome
from idiograph.study.plan import UNTRAINED, StudyRun, StudyTexts

DEPTH = 100  # ranks that are kept of a ranking
CUT_TEXTS = 200  # texts of which a learned model's boundaries are looked at
Scores = NDArray[np.float32]


def measure_run(
    run: StudyRun, texts: StudyTexts, backbone: str, device: str = "auto", progress: Progress | None = None
) -> RunOutcome:
    """Train a model as the run says, and read it."""
    begun = time.monotonic()
    trial = open_starting_model(run, texts, backbone, device)
    about: dict[str, Any] = {"backbone": backbone, "device": trial.device.type, "window": trial.longest}
    if run.rule != UNTRAINED:
        about |= train_model(trial, run, texts, progress)
    trial.wait()
    about["seconds_training"] = time.monotonic() - begun
    reading = BenchmarkReading(trial, run, texts.keep_own)
    reading.read_all(texts, progress)
    about |= {"seconds": time.monotonic() - begun, "read": reading.notes}
    return RunOutcome(run, about, reading.arrays)


def open_starting_model(run: StudyRun, texts: StudyTexts, backbone: str, device: str) -> Trial:
    """The model that a run begins with; for a run about meaning it may be a file of vectors."""
    if run.stage == "semantic" and backbone.endswith(".npz"):
        return VectorFile(Path(backbone))
    return Trial(backbone, run.recipe(texts.portions.train_longest), texts.portions.longest, device)


def train_model(trial: Trial, run: StudyRun, texts: StudyTexts, progress: Progress | None) -> dict[str, Any]:
    """Train to the last step, with no choice of an earlier one: budgets are equal."""
    result = trial.train(texts.train(run.rule), progress)
    losses = [(h["step"], h["loss"]) for h in result.history if "loss" in h]
    about = {"steps": result.steps, "tau": result.tau, "negatives": result.negatives, "tokens": result.tokens}
    return about | {"fit_seconds": result.seconds, "precision": result.precision, "loss": losses}


class BenchmarkReading:
    """Reads benchmarks and keeps what the tables need."""

    def __init__(self, trial: Trial, run: StudyRun, keep_own: bool) -> None:
        self.trial, self.run, self.keep_own = trial, run, keep_own
        self.arrays: dict[str, np.ndarray] = {}
        self.notes: dict[str, Any] = {}

    def read_all(self, texts: StudyTexts, progress: Progress | None = None) -> None:
        """Every benchmark that the run is to be measured on."""
        main = texts.main_benchmarks
        wide = [each for each in texts.benchmarks if each.rule == "base" or self.run.patch == "whole"]
        for benchmark in wide if self.run.breadth == "all" else main:
            if progress:
                progress(0, None, f"reading {benchmark.name}")
            self.read(benchmark, main=benchmark in main)
        of_meaning = self.run.stage == "semantic"  # nothing is chosen by it
        for benchmark in () if of_meaning else texts.valid:
            self.read_valid(benchmark)
        for lang, problems in texts.problems.items():
            if lang == "en" if of_meaning else self.run.breadth == "all":
                self.read_problems(lang, problems)
        if self.run.patch.startswith("learned"):
            self.read_cuts(main)

    def read(self, benchmark: Benchmark, main: bool) -> None:
        """One benchmark at the run's grain; at the others if it is a main one or they are few."""
        few = len(self.run.readings) <= 1 or self.run.rule == UNTRAINED
        others = self.run.readings if main or (few and benchmark.rule == "base") else ()
        begun = time.monotonic()
        by_grain = self.trial.read(benchmark.texts, (self.run.patch, *others))
        self.trial.wait()
        seconds = time.monotonic() - begun
        for grain, patches in by_grain.items():
            self.read_at(grain, patches, benchmark, main)
            self.notes[f"{grain}|{benchmark.name}"]["embed_seconds"] = seconds / len(by_grain)

    def read_at(self, grain: str, patches: DevicePatches, benchmark: Benchmark, main: bool) -> None:
        key = f"{grain}|{benchmark.name}"
        begun = time.monotonic()
        scores = self.scores(patches, benchmark.anchor_places, benchmark.pool_places)
        seconds = time.monotonic() - begun
        self.keep(key, measure_scores(scores, benchmark, self.keep_own))
        self.notes[key] = {
            "patches": float(patches.sizes[benchmark.anchor_places].mean()),
            "score_seconds": seconds,
            "pairs": int(scores.size),
        }
        if main and grain == self.run.patch:
            self.keep_ranking(key, scores, benchmark)
        if main and grain in ("whole", self.run.patch):
            self.keep_geometry(key, patches, benchmark)

    def scores(self, patches: DevicePatches, left: Ints, right: Ints) -> Scores:
        return self.trial.scores(patches.take(left), patches.take(right), self.run.score == "meansim")

    def keep(self, key: str, values: Mapping[str, NDArray[Any]]) -> None:
        self.arrays |= {f"{key}|{name}": value.astype(np.float32) for name, value in values.items()}

    def read_valid(self, benchmark: Benchmark) -> None:
        """Held-out writers by whom temperatures are chosen; never the ones that are reported."""
        patches = self.trial.read(benchmark.texts, [self.run.patch])[self.run.patch]
        scores = self.scores(patches, benchmark.anchor_places, benchmark.pool_places)
        self.keep(f"valid|{benchmark.name}", {"measures": measure_scores(scores, benchmark, self.keep_own)["measures"]})

    def keep_ranking(self, key: str, scores: Scores, benchmark: Benchmark) -> None:
        """The head of each ranking, spans of the anchor's own document left out: what failure modes are read from."""
        if self.run.stage in ("main", "published"):
            self.arrays[f"{key}|top"] = rank_scores(scores, benchmark.own_document())[:, :DEPTH].astype(np.int32)

    def keep_geometry(self, key: str, patches: DevicePatches, benchmark: Benchmark) -> None:
        vectors = patches.means()
        anchors, pool = vectors[benchmark.anchor_places], vectors[benchmark.pool_places]
        anchor, positive, negative = benchmark.triplets.T
        near, far = pool[positive], pool[negative]
        values = {"alignment": alignment(anchors[anchor], near), "cosines": pair_cosines(anchors[anchor], near, far)}
        self.keep(key, {**values, "uniformity": uniformity_parts(anchors)})

    def read_problems(self, lang: str, problems: list[Problem]) -> None:
        """Scores of unknown texts against candidates: their texts end to end (`joined`), and the mean over their texts."""
        sizes = []
        for problem in problems:
            unknown = [problem.unknown[file] for file in problem.answerable]
            by_candidate = [problem.known[name] for name in problem.candidates]
            known = [text for texts in by_candidate for text in texts]
            joined = ["\n\n".join(texts) for texts in by_candidate]
            patches = self.trial.read([*unknown, *joined, *known], [self.run.patch])[self.run.patch]
            count = len(unknown)
            both = self.scores(patches, np.arange(count), np.arange(count, len(patches)))
            of_joined, of_known = np.split(both, [len(joined)], axis=1)
            mean = mean_over_parts(of_known, [len(texts) for texts in by_candidate])
            self.keep(f"pan|{lang}|{problem.name}", {"joined": of_joined, "mean": mean})
            sizes.append(patches.sizes[:count])
        self.notes[f"pan|{lang}"] = {"patches": float(np.concatenate(sizes).mean())}

    def read_cuts(self, benchmarks: list[Benchmark]) -> None:
        """Where a learned model would cut, and how sure it is."""
        limit = CUT_TEXTS // len(benchmarks)
        probabilities = self.trial.cut_probabilities(
            [span.text for each in benchmarks for span in each.anchors[:limit]]
        )
        self.arrays["cuts|chance"] = np.concatenate(probabilities).astype(np.float32)
        self.arrays["cuts|lengths"] = np.array([len(row) for row in probabilities], np.int32)


def measure_scores(scores: Scores, benchmark: Benchmark, keep_own: bool = False) -> dict[str, Doubles]:
    """`measures`: (A, M), of every anchor, NaN where nothing is relevant; `triplets`: the outcome of each."""
    own, relevant = benchmark.own_document(), benchmark.relevant()
    order = rank_scores(scores, None if keep_own else own)
    measures = measure_rankings(order, relevant if keep_own else relevant & ~own, MEASURES)
    anchor, positive, negative = benchmark.triplets.T
    won = triplet_accuracy(scores[anchor, positive], scores[anchor, negative])
    return {"measures": np.stack(list(measures.values()), axis=1), "triplets": won}


def mean_over_parts(scores: Scores, sizes: list[int]) -> Doubles:
    """(A, parts): the mean over each run of so many columns."""
    counts = np.array(sizes, np.int64)
    return np.add.reduceat(scores.astype(np.float64), np.cumsum(counts) - counts, axis=1) / counts


def alignment(anchors: Scores, positives: Scores) -> Doubles:
    """The squared distance of anchor and positive, for every triplet; vectors are of unit length."""
    return np.square(anchors - positives).sum(axis=1, dtype=np.float64)


def uniformity_parts(anchors: Scores, limit: int = 2000) -> Doubles:
    """For each anchor the mean of exp(−2 d²) to other anchors: the log of their mean is the uniformity."""
    some = anchors[:limit].astype(np.float64)
    kernel = np.exp(-2 * (2 - 2 * np.clip(some @ some.T, -1, 1)))
    return (kernel.sum(axis=1) - 1) / max(len(some) - 1, 1)


def pair_cosines(anchors: Scores, positives: Scores, negatives: Scores) -> Doubles:
    """(T, 2): of anchor and positive, of anchor and negative."""
    cosines = [(anchors * others).sum(axis=1) for others in (positives, negatives)]
    return np.stack(cosines, axis=1).astype(np.float64)
