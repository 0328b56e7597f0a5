"""Do one run of a study: train, read every bench, and hand back numbers alone. The part that wants a GPU."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.measures.ranking import rank_scores
from idiograph.neural.reader import DevicePatches
from idiograph.neural.trial import Trial, VectorFile
from idiograph.runner import Progress
from idiograph.study.bench import Bench, Ints
from idiograph.study.measure import DEPTH, Scores, alignment, pair_cosines, read_bench, uniformity_parts
from idiograph.study.pack import Pack, Problems
from idiograph.study.plan import UNTRAINED, StudyRun
from idiograph.study.results import RunOutcome

CUT_TEXTS = 200  # texts of which a learned model's boundaries are looked at


def carry_out(
    run: StudyRun, pack: Pack, backbone: str, device: str = "auto", progress: Progress | None = None
) -> RunOutcome:
    """Train a model as the run says, and read it."""
    begun = time.monotonic()
    lengths = int(pack.about["longest"]), int(pack.about["train_longest"])
    trial = open_starting_model(backbone, run, *lengths, device)
    about: dict[str, Any] = {"backbone": backbone, "device": trial.device.type, "window": trial.longest}
    if run.rule != UNTRAINED:
        about |= train_model(trial, run, pack, progress)
    trial.wait()
    about["seconds_training"] = time.monotonic() - begun
    reader = BenchReading(trial, run, pack.about.get("keep_own", False))
    reader.read_all(pack, progress)
    about |= {"seconds": time.monotonic() - begun, "read": reader.notes}
    return RunOutcome(run, about, reader.arrays)


def open_starting_model(backbone: str, run: StudyRun, longest: int, train_longest: int, device: str) -> Trial:
    """The model that a run begins with; for a run about meaning it may be a file of vectors."""
    if run.stage == "semantic" and backbone.endswith(".npz"):
        return VectorFile(Path(backbone))
    return Trial(backbone, run.recipe(train_longest), longest, device)


def train_model(trial: Trial, run: StudyRun, pack: Pack, progress: Progress | None) -> dict[str, Any]:
    """Train to the last step, with no choice of an earlier one: budgets are equal."""
    result = trial.train(pack.train(run.rule), progress)
    losses = [(h["step"], h["loss"]) for h in result.history if "loss" in h]
    found = {"steps": result.steps, "tau": result.tau, "negatives": result.negatives, "tokens": result.tokens}
    return found | {"fit_seconds": result.seconds, "precision": result.precision, "loss": losses}


class BenchReading:
    """Reads benches and keeps what the tables need."""

    def __init__(self, trial: Trial, run: StudyRun, keep_own: bool) -> None:
        self.trial, self.run, self.keep_own = trial, run, keep_own
        self.arrays: dict[str, np.ndarray] = {}
        self.notes: dict[str, Any] = {}

    def read_all(self, pack: Pack, progress: Progress | None = None) -> None:
        """Every bench that the run is to be measured on."""
        main = pack.main_benches()
        whole = self.run.patch == "whole"
        wide = [bench for bench in pack.benches if bench.rule == "base" or whole]
        for bench in wide if self.run.breadth == "all" else main:
            if progress:
                progress(0, None, f"reading {bench.name}")
            self.read(bench, main=bench in main)
        alone = self.run.stage == "semantic"  # nothing is chosen by it
        for bench in () if alone else pack.valid:
            self.read_valid(bench)
        for lang, problems in pack.problems.items():
            if lang == "en" if alone else self.run.breadth == "all":
                self.read_problems(lang, problems)
        if self.run.patch.startswith("learned"):
            self.read_cuts(main)

    def read(self, bench: Bench, main: bool) -> None:
        """One bench at the run's grain; at the others if it is a main one or they are few."""
        few = len(self.run.readings) <= 1 or self.run.rule == UNTRAINED
        others = self.run.readings if main or (few and bench.rule == "base") else ()
        begun = time.monotonic()
        found = self.trial.read(bench.texts, (self.run.patch, *others))
        self.trial.wait()
        seconds = time.monotonic() - begun
        for grain, patches in found.items():
            self.read_at(grain, patches, bench, main)
            self.notes[f"{grain}|{bench.name}"]["embed_seconds"] = seconds / len(found)

    def read_at(self, grain: str, patches: DevicePatches, bench: Bench, main: bool) -> None:
        key = f"{grain}|{bench.name}"
        begun = time.monotonic()
        scores = self.scores(patches, bench.anchors, bench.pool)
        seconds = time.monotonic() - begun
        found = read_bench(scores, bench, self.keep_own)
        self.arrays |= {f"{key}|{name}": value.astype(np.float32) for name, value in found.items()}
        self.notes[key] = {
            "patches": float(patches.sizes[bench.anchors].mean()),
            "score_seconds": seconds,
            "pairs": int(scores.size),
        }
        if main and grain == self.run.patch:
            self.keep_ranking(key, scores, bench)
        if main and grain in ("whole", self.run.patch):
            self.keep_geometry(key, patches, bench)

    def scores(self, patches: DevicePatches, left: Ints, right: Ints) -> Scores:
        return self.trial.scores(patches.take(left), patches.take(right), self.run.score == "meansim")

    def read_valid(self, bench: Bench) -> None:
        """Held-out writers by whom temperatures are chosen; never the ones that are reported."""
        patches = self.trial.read(bench.texts, [self.run.patch])[self.run.patch]
        found = read_bench(self.scores(patches, bench.anchors, bench.pool), bench, self.keep_own)
        self.arrays[f"valid|{bench.name}|measures"] = found["measures"].astype(np.float32)

    def keep_ranking(self, key: str, scores: np.ndarray, bench: Bench) -> None:
        """The head of each ranking, spans of the anchor's own document left out: what failure modes are read from."""
        if self.run.stage in ("main", "published"):
            self.arrays[f"{key}|top"] = rank_scores(scores, bench.own())[:, :DEPTH].astype(np.int32)

    def keep_geometry(self, key: str, patches: DevicePatches, bench: Bench) -> None:
        vectors = patches.means()
        found = {"alignment": alignment(vectors, bench), "cosines": pair_cosines(vectors, bench)}
        found["uniformity"] = uniformity_parts(vectors, bench.anchors)
        self.arrays |= {f"{key}|{name}": value.astype(np.float32) for name, value in found.items()}

    def read_problems(self, lang: str, problems: Problems) -> None:
        """Scores of unknown texts against candidates: their texts end to end, and the mean over their texts."""
        patches = self.trial.read(problems.texts, [self.run.patch])[self.run.patch]
        both = self.scores(patches, problems.unknown, np.concatenate([problems.joined, problems.known]))
        joined, apart = np.split(both, [len(problems.joined)], axis=1)
        count = np.bincount(problems.writer, minlength=len(problems.candidates))
        sums = np.zeros((len(both), len(count)))
        np.add.at(sums.T, problems.writer, apart.T.astype(np.float64))
        own = problems.candidates[None] == problems.problem[:, None]  # the others are nobody's business
        for how, scores in (("joined", joined), ("mean", sums / count)):
            self.arrays[f"pan|{lang}|{how}"] = np.where(own, scores, 0).astype(np.float32)
        self.notes[f"pan|{lang}"] = {"patches": float(patches.sizes[problems.unknown].mean())}

    def read_cuts(self, benches: list[Bench]) -> None:
        """Where a learned model would cut, and how sure it is."""
        texts = [text for bench in benches for text in bench.text_of(bench.anchors[: CUT_TEXTS // len(benches)])]
        chances = self.trial.cut_probabilities(texts)
        self.arrays["cuts|chance"] = np.concatenate(chances).astype(np.float32)
        self.arrays["cuts|lengths"] = np.array([len(row) for row in chances], np.int32)
