"""Do one run of a study: train, read every bench, and hand back numbers alone. The part that wants a GPU."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from idiograph.neural.trial import Trial, Vectors, means
from idiograph.study.bench import Bench
from idiograph.study.measured import DEPTH, alignment, cosines, rankings, read_bench, uniformity_parts
from idiograph.study.pack import Pack, Problems
from idiograph.study.plan import UNTRAINED, Run
from idiograph.study.results import Outcome

CUT_TEXTS = 200  # texts of which a learned model's boundaries are looked at
Progress = Callable[[int, int | None, str], None]


def carry_out(run: Run, pack: Pack, backbone: str, device: str = "auto", progress: Progress | None = None) -> Outcome:
    """Train a model as the run says, and read it."""
    begun = time.monotonic()
    longest = int(pack.about["longest"])
    trial = Trial(backbone, run.model_settings(), longest, device)
    about: dict[str, Any] = {"backbone": backbone, "device": trial.device.type, "window": trial.longest}
    if run.rule != UNTRAINED:
        about |= trained(trial, run, pack, progress)
    trial.wait()
    about["seconds_training"] = time.monotonic() - begun
    reader = Reading(trial, run, pack.about.get("keep_own", False))
    main = pack.main_benches()
    for bench in (
        main if run.breadth == "one" else [b for b in pack.benches if b.rule == "base" or run.patch == "whole"]
    ):
        if progress:
            progress(0, None, f"reading {bench.name}")
        reader.read(bench, main=bench in main)
    for bench in pack.valid:
        reader.read_valid(bench)
    if run.breadth == "all" and pack.problems is not None:
        reader.read_problems(pack.problems)
    if run.patch.startswith("learned"):
        reader.read_cuts(main)
    about |= {"seconds": time.monotonic() - begun, "read": reader.notes}
    return Outcome(run, about, reader.arrays)


def trained(trial: Trial, run: Run, pack: Pack, progress: Progress | None) -> dict[str, Any]:
    """Train to the last step, with no choice of an earlier one: budgets are equal."""
    longest = int(pack.about["train_longest"])
    result = trial.train(pack.train(run.rule), {**run.train_settings(), "max_length": longest}, progress)
    losses = [(h["step"], h["loss"]) for h in result.history if "loss" in h]
    found = {"steps": result.steps, "tau": result.tau, "negatives": result.negatives, "tokens": result.tokens}
    return found | {"fit_seconds": result.seconds, "precision": result.precision, "loss": losses}


class Reading:
    """Reads benches and keeps what the tables need."""

    def __init__(self, trial: Trial, run: Run, keep_own: bool) -> None:
        self.trial, self.run, self.keep_own = trial, run, keep_own
        self.arrays: dict[str, np.ndarray] = {}
        self.notes: dict[str, Any] = {}

    def read(self, bench: Bench, main: bool) -> None:
        """One bench at the run's grain; at the others if it is a main one or they are few."""
        few = len(self.run.readings) <= 1 or self.run.rule == UNTRAINED
        others = self.run.readings if main or (few and bench.rule == "base") else ()
        for grain in (self.run.patch, *others):
            self.read_at(grain, bench, main)

    def read_at(self, grain: str, bench: Bench, main: bool) -> None:
        key = f"{grain}|{bench.name}"
        reader = self.trial.reader(grain, self.run.score == "meansim")
        begun = time.monotonic()
        patches: Vectors = reader.embed(bench.texts)
        self.trial.wait()
        embedded = time.monotonic()
        scores = reader.scores([patches[at] for at in bench.anchors], [patches[at] for at in bench.pool])
        scored = time.monotonic()
        found = read_bench(scores, bench, self.keep_own)
        self.arrays |= {f"{key}|{name}": value.astype(np.float32) for name, value in found.items()}
        lengths = np.array([len(rows) for rows in patches])
        self.notes[key] = {
            "patches": float(lengths[bench.anchors].mean()),
            "embed_seconds": embedded - begun,
            "score_seconds": scored - embedded,
            "pairs": int(scores.size),
        }
        if main and grain == self.run.patch:
            self.keep_ranking(key, scores, bench)
        if main and grain in ("whole", self.run.patch):
            self.keep_geometry(key, patches, bench)

    def read_valid(self, bench: Bench) -> None:
        """Held-out writers by whom temperatures are chosen; never the ones that are reported."""
        reader = self.trial.reader(self.run.patch, self.run.score == "meansim")
        patches = reader.embed(bench.texts)
        scores = reader.scores([patches[at] for at in bench.anchors], [patches[at] for at in bench.pool])
        self.arrays[f"valid|{bench.name}|measures"] = read_bench(scores, bench, self.keep_own)["measures"].astype(
            np.float32
        )

    def keep_ranking(self, key: str, scores: np.ndarray, bench: Bench) -> None:
        """The head of each ranking, spans of the anchor's own document left out: what failure modes are read from."""
        if self.run.stage in ("main", "published"):
            self.arrays[f"{key}|top"] = rankings(scores, bench.own())[:, :DEPTH].astype(np.int32)

    def keep_geometry(self, key: str, patches: Vectors, bench: Bench) -> None:
        vectors = means(patches)
        found = {"alignment": alignment(vectors, bench), "cosines": cosines(vectors, bench)}
        found["uniformity"] = uniformity_parts(vectors, bench.anchors)
        self.arrays |= {f"{key}|{name}": value.astype(np.float32) for name, value in found.items()}

    def read_problems(self, problems: Problems) -> None:
        """Scores of unknown texts against candidates: their texts end to end, and the mean over their texts."""
        reader = self.trial.reader(self.run.patch, self.run.score == "meansim")
        patches = reader.embed(problems.texts)
        unknown = [patches[at] for at in problems.unknown]
        joined = reader.scores(unknown, [patches[at] for at in problems.joined])
        apart = reader.scores(unknown, [patches[at] for at in problems.known])
        count = np.bincount(problems.writer, minlength=len(problems.candidates))
        sums = np.zeros((len(unknown), len(count)))
        np.add.at(sums.T, problems.writer, apart.T.astype(np.float64))
        self.arrays |= {"pan|joined": joined, "pan|mean": (sums / count).astype(np.float32)}
        lengths = np.array([len(patches[at]) for at in problems.unknown])
        self.notes["pan"] = {"patches": float(lengths.mean())}

    def read_cuts(self, benches: list[Bench]) -> None:
        """Where a learned model would cut, and how sure it is."""
        texts = [text for bench in benches for text in bench.text_of(bench.anchors[: CUT_TEXTS // len(benches)])]
        chances = self.trial.cuts(texts)
        self.arrays["cuts|chance"] = np.concatenate(chances).astype(np.float32)
        self.arrays["cuts|lengths"] = np.array([len(row) for row in chances], np.int32)
