"""What a study does: which models it trains, in the order of their worth (a study that is out of time has done the most
telling ones), and which texts they learn from and are measured on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq

from idiograph.errors import ArtifactError, InputError
from idiograph.evaluate.problems import Problem, problems_by_language
from idiograph.mining.benchmark import Benchmark, open_benchmark
from idiograph.mining.triplets import configurations, read_rows, row_passages, shards, splits
from idiograph.neural.triplets import Triplets, triplets_from_rows
from idiograph.recipe import TrainRecipe
from idiograph.store import read_manifest, write_json

GRAINS = ("whole", "ngram:1", "ngram:2", "ngram:3", "ngram:4", "ngram:5", "word")
SWAPPED = ("whole", "ngram:1", "ngram:3")  # grains at which every main model is read besides its own
TEMPERATURES = (0.02, 0.05, 0.1, 0.5, 1.0)  # of a mean cosine
PUBLISHED = 0.5
STAGES_OF_PAPER = ("main", "published", "decoupling", "learned", "semantic")
SAME_SHARPNESS = 0.005  # of a cosine: about what 0.5 is to a sum over a hundred tokens
UNTRAINED = "none"

Breadth = Literal["one", "all"]


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One model: what it begins with, what it learns from and how, and at which grains it is read afterwards.

    `breadth` "all" reads every length of span; "one" only the main one.
    """

    stage: str
    backbone: str
    patch: str
    rule: str = "base"
    tau: float | str = "learn"
    score: str = "meansim"
    steps: int = 200
    batch: int = 256
    seed: int = 7
    lr: float = 2e-5
    breadth: Breadth = "one"
    readings: tuple[str, ...] = ()
    model: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the run is called in every table: each part that distinguishes it."""
        if self.rule == UNTRAINED:
            return f"{self.backbone} {self.patch} untrained"
        sum_of = "sum " if self.score == "maxsim" else ""
        extra = "".join(f" {value}" for value in self.model.values() if value in ("reg1", "reg2", "mlp"))
        about = f"{self.patch}{extra} {self.rule} {sum_of}tau={self.tau}"
        return f"{self.backbone} {about} batch={self.batch} steps={self.steps} seed={self.seed}"

    def recipe(self, longest: int = 512) -> TrainRecipe:
        """How the model is trained: collections give as many batches each as the root of their size, and a batch is of one."""
        settings = {"patch": self.patch, "tau": self.tau, "score": self.score, "steps": self.steps, "batch": self.batch}
        settings |= {"seed": self.seed, "lr": self.lr, "log_every": max(self.steps // 10, 1), "max_length": longest}
        return TrainRecipe(**settings, size_power=0.5, mixing="batches", **self.model, **self.train)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run_from_json(value: Mapping[str, Any]) -> StudyRun:
    return StudyRun(**{**value, "readings": tuple(value["readings"])})


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything: the dials between a glance and a study."""

    steps: int = 200
    batch: int = 128
    lr: float = 5e-5
    grains: tuple[str, ...] = GRAINS
    temperatures: tuple[float, ...] = TEMPERATURES
    tempered: tuple[str, ...] = ("whole", "ngram:1", "ngram:3", "ngram:2", "word")
    batches: tuple[int, ...] = (64, 256, 512)
    seeds: tuple[int, ...] = (8,)
    learned: tuple[str, ...] = ("budget", "reg1", "reg2")
    published: Breadth = "all"


QUICK = Size(
    steps=6, batch=12, lr=1e-4, grains=("whole", "ngram:1", "ngram:2", "ngram:3"), temperatures=(0.05, 0.5),
    tempered=("whole", "ngram:1"), batches=(), seeds=(), learned=("budget",), published="one",
)  # fmt: skip
SECOND = Size(
    grains=("whole", "ngram:1", "ngram:3"), tempered=("whole", "ngram:1", "ngram:3"), temperatures=(0.05, 0.5),
    batches=(), seeds=(), learned=(),
)  # fmt: skip


def plan_runs(
    backbones: Sequence[str],
    size: Size,
    others: Size | None = None,
    preset: str = "sound",
    semantic: Sequence[str] = (),
) -> list[StudyRun]:
    """The runs of a study: everything on the first backbone, and the same or less (`others`) on each further one.

    What the conclusions hang on comes first: the central grains with their own temperature, with the published one and
    with others, on every backbone; then the other grains, topic, boundaries, negatives, luck. `semantic` are models of
    meaning, which are read as they come.
    """
    sizes = [(backbone, size if at == 0 else others or size) for at, backbone in enumerate(backbones)]
    central = [
        run for backbone, one in sizes for maker in CENTRAL for run in maker(backbone, one) if run.patch in SWAPPED
    ]
    runs = central + [run for maker in IN_TURN for backbone, one in sizes for run in maker(backbone, one)]
    runs += [StudyRun("semantic", name, "whole", UNTRAINED, readings=("ngram:1",)) for name in semantic]
    if preset == "paper":
        runs = [published_run(run) for run in runs if run.stage in STAGES_OF_PAPER]
    first: dict[str, StudyRun] = {}
    for run in runs:  # one that two stages want is done once
        first.setdefault(run.name, run)
    return list(first.values())


def never_planned(runs: Sequence[StudyRun]) -> tuple[str, ...]:
    """What one backbone is trained on and another is not, so that the other's cells stay empty: one line a backbone."""
    kinds: dict[str, set[tuple[int, str]]] = {}  # backbone → what is trained of it
    for run in runs:
        if run.rule != UNTRAINED:
            kinds.setdefault(run.backbone, set()).update(kinds_of_training(run))
    order = list(dict.fromkeys(kind for run in runs if run.rule != UNTRAINED for kind in kinds_of_training(run)))
    every = sorted(order, key=lambda kind: kind[0])
    missing = {name: [what for at, what in every if (at, what) not in each] for name, each in kinds.items()}
    return tuple(f"{name}: {', '.join(each)}" for name, each in missing.items() if each)


def kinds_of_training(run: StudyRun) -> tuple[tuple[int, str], ...]:
    """What a run adds to the tables of whatever backbone, each with its rank in a list."""
    learned = f"{run.patch} {run.model.get('boundaries', '')}"
    if run.stage == "temperature":
        return (2, f"{run.patch} over temperatures"), (3, f"τ = {run.tau}")
    return {
        "main": ((0, run.patch),),
        "published": ((1, f"{run.patch} with the published loss"),),
        "decoupling": ((4, f"training on {run.rule}"),),
        "learned": ((5, learned),),
        "seeds": ((6, f"seed {run.seed}"),),
        "negatives": ((7, f"batches of {run.batch}"),),
    }[run.stage]


def main_runs(backbone: str, size: Size) -> Iterator[StudyRun]:
    """The model as it comes, read at every grain, and a model trained at every grain."""
    yield StudyRun("main", backbone, "whole", UNTRAINED, breadth="all", readings=tuple(size.grains[1:]))
    for grain in size.grains:
        others = tuple(g for g in SWAPPED if g != grain and g in size.grains)
        yield StudyRun("main", backbone, grain, breadth="all", readings=others, **budget(size))


def published_runs(backbone: str, size: Size) -> Iterator[StudyRun]:
    """The published loss: a sum over patches, and one temperature for all grains."""
    for grain in size.grains:
        yield StudyRun(
            "published", backbone, grain, tau=PUBLISHED, score="maxsim", breadth=size.published,
            readings=("ngram:1",) if grain == "whole" else (), **budget(size),
        )  # fmt: skip


def temperature_runs(backbone: str, size: Size) -> Iterator[StudyRun]:
    for tau in (*size.temperatures, SAME_SHARPNESS):
        for grain in size.tempered:
            done = grain == "whole" and tau == PUBLISHED  # of one patch, the sum is the mean
            if not done and (tau != SAME_SHARPNESS or grain in ("whole", "ngram:1")):
                yield StudyRun("temperature", backbone, grain, tau=tau, **budget(size))


def decoupling_runs(backbone: str, size: Size) -> Iterator[StudyRun]:
    for rule in ("unrestricted", "ict"):
        yield StudyRun("decoupling", backbone, "whole", rule, breadth="all", **budget(size))


def learned_runs(backbone: str, size: Size) -> Iterator[StudyRun]:
    for kind in size.learned:
        sharp: dict[str, Any] = {} if kind == "budget" else {"tau": PUBLISHED, "score": "maxsim"}
        yield StudyRun(
            "learned", backbone, "learned:3", breadth="all", model={"boundaries": kind}, **sharp, **budget(size)
        )


def negative_runs(backbone: str, size: Size) -> Iterator[StudyRun]:
    """More negatives at equal steps, which is also more text; and fewer negatives at equal text."""
    for batch in size.batches:
        yield replace(StudyRun("negatives", backbone, "ngram:1", **budget(size)), batch=batch)
    smallest = min(size.batches, default=size.batch)
    if smallest < size.batch:
        longer = size.steps * size.batch // smallest
        yield replace(StudyRun("negatives", backbone, "ngram:1", **budget(size)), batch=smallest, steps=longer)


def seed_runs(backbone: str, size: Size) -> Iterator[StudyRun]:
    """The same again: how much of a difference is the luck of one run?"""
    for seed in size.seeds:
        for how in ({}, {"tau": PUBLISHED, "score": "maxsim"}):
            for grain in ("whole", "ngram:1", "ngram:3"):
                yield StudyRun("seeds", backbone, grain, seed=seed, **how, **budget(size))


CENTRAL = (main_runs, published_runs, temperature_runs)
IN_TURN = (main_runs, published_runs, decoupling_runs, learned_runs, temperature_runs, seed_runs, negative_runs)


def budget(size: Size) -> dict[str, Any]:
    return {"steps": size.steps, "batch": size.batch, "lr": size.lr}


def published_run(run: StudyRun) -> StudyRun:
    """A run under the published protocol: its head, its rates, its unmasked negatives, its one temperature."""
    if run.rule == UNTRAINED:
        return run
    model = {**run.model, "head": "mlp"}
    train = {"mask_false_negatives": False, "head_lr": "auto", "weight_decay": 0.1, "decay_all": True, "clip": 0.0}
    return replace(run, tau=PUBLISHED, score="maxsim", lr=3e-5, model=model, train=train)


@dataclass(frozen=True, slots=True)
class Portions:
    """How much of its texts a study uses. Numbers are for each corpus."""

    train: int = 5000  # rows of each configuration
    lengths: tuple[int, ...] = (2, 4, 8)  # of the spans that are trained on
    anchors: int = 400
    pool: int = 1600
    valid: tuple[int, int] = (150, 600)  # anchors and pool
    unrestricted: tuple[int, ...] = (2, 4, 6, 8)
    longest: int = 512  # tokens that are read
    train_longest: int = 256  # tokens that are trained on


def portions_from_json(value: Mapping[str, Any]) -> Portions:
    numbers: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in value.items()}
    return Portions(**numbers)


PLAN = "plan.json"


@dataclass(frozen=True)
class StudyTexts:
    """What models learn from and are measured on, drawn from folders of triplets: the same draw wherever it is made.

    A configuration that a corpus lacks is left out. Files are read when they are first needed.
    """

    folders: tuple[tuple[Path, str], ...]  # of triplets, each with its fingerprint
    portions: Portions = Portions()
    main: int = 4  # sentences of the spans that most tables are about
    keep_own: bool = False  # do spans of the anchor's own document count? Then pools are as large as they come
    seed: int = 7
    pan: Path | None = None  # attribution problems of another register, if there are any

    def __reduce__(self) -> tuple[Any, ...]:
        return StudyTexts, tuple(getattr(self, each.name) for each in fields(self))  # what was read stays here

    @cached_property
    def benchmarks(self) -> list[Benchmark]:
        """What is reported, with pools of one size for every length of a corpus."""
        return [benchmark for folder, _ in self.folders for benchmark in self._benchmarks_of(folder)]

    def _benchmarks_of(self, folder: Path) -> list[Benchmark]:
        names = [name for name in configurations(folder) if "test" in splits(folder, name) and self._measures_on(name)]
        whole = [open_benchmark(folder, "test", name) for name in names]
        equal = min([self.portions.pool, *(len(each.pool) for each in whole if each.rule == "base")])
        return [each.sample(self.portions.anchors, self._pool_size(each, equal), self.seed) for each in whole]

    def _measures_on(self, configuration: str) -> bool:
        rule, _, size = configuration.rpartition("-")
        return rule == "base" or (rule == "unrestricted" and int(size) in self.portions.unrestricted)

    def _pool_size(self, benchmark: Benchmark, equal: int) -> int:
        if benchmark.rule != "base":
            return 0  # what the triplets need: they alone are measured there
        return min(len(benchmark.pool), 4 * self.portions.pool) if self.keep_own else equal

    @cached_property
    def valid(self) -> list[Benchmark]:
        """Other writers, by whom a temperature is chosen."""
        name = f"base-{self.main}"
        have = [folder for folder, _ in self.folders if name in configurations(folder)]
        whole = [open_benchmark(folder, "valid", name) for folder in have if "valid" in splits(folder, name)]
        return [each.sample(*self.portions.valid, self.seed) for each in whole]

    @property
    def main_benchmarks(self) -> list[Benchmark]:
        """The benchmarks of the main length of span, topics decoupled."""
        return [each for each in self.benchmarks if (each.rule, each.sentences) == ("base", self.main)]

    def training_sources(self, rule: str) -> list[tuple[Path, str]]:
        """Folders and configurations to learn from: topics decoupled in several lengths, the others in the main one."""
        names = [f"{rule}-{size}" for size in (self.portions.lengths if rule == "base" else (self.main,))]
        every = [(folder, name) for folder, _ in self.folders for name in names if name in configurations(folder)]
        return [(folder, name) for folder, name in every if "train" in splits(folder, name)]

    def train(self, rule: str) -> list[Triplets]:
        """Triplets to learn from, of every corpus and configuration at most so many."""
        for source in self.training_sources(rule):
            if source not in self._drawn:
                self._drawn[source] = draw_training_triplets(*source, self.portions.train, self.seed)
        return [self._drawn[source] for source in self.training_sources(rule)]

    @cached_property
    def _drawn(self) -> dict[tuple[Path, str], Triplets]:
        """What was drawn to train on so far: models of a study learn from the same."""
        return {}

    @cached_property
    def problems(self) -> dict[str, list[Problem]]:
        """Attribution problems by language."""
        return problems_by_language(self.pan) if self.pan else {}


def draw_training_triplets(folder: Path, configuration: str, count: int, seed: int) -> Triplets:
    """At most so many rows of one configuration, and the texts that they need."""
    total = sum(pq.read_metadata(path).num_rows for path in shards(folder, configuration, "train"))
    drawn = set(np.random.default_rng(seed).permutation(total)[:count].tolist())
    rows = (row for at, row in enumerate(read_rows(folder, configuration, "train")) if at in drawn)
    return triplets_from_rows(map(row_passages, rows), f"{folder.name}/{configuration}")


@lru_cache(1)  # a worker reads the texts of its study once
def share_texts(texts: StudyTexts) -> StudyTexts:
    """The texts as they were opened before in this process, if they were."""
    return texts


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """What a study was begun with: `plan.json` in its folder."""

    preset: str
    main: int
    seed: int
    portions: Portions
    corpora: Mapping[str, str]  # name → fingerprint of the triplets
    pan: str  # the attribution problems; "" for none
    runs: tuple[StudyRun, ...]

    def texts(self, folders: Mapping[str, Path]) -> StudyTexts:
        """The texts of the study, whose triplets lie in these folders."""
        if self.corpora != fingerprints_of(folders):
            raise InputError(
                f"the study was begun with other triplets, of {', '.join(self.corpora)}; give the sources that it was "
                "begun with, or choose another -o"
            )
        pan = Path(self.pan) if self.pan else None
        ours = tuple((folders[name].absolute(), fingerprint) for name, fingerprint in self.corpora.items())
        return StudyTexts(ours, self.portions, self.main, self.preset == "paper", self.seed, pan)


def fingerprints_of(folders: Mapping[str, Path]) -> dict[str, str]:
    make = "idiograph mine CORPUS -o FOLDER"
    return {name: read_manifest(folder, "triplets", make).fingerprint for name, folder in folders.items()}


def write_plan(plan: StudyPlan, folder: Path) -> None:
    write_json(folder / PLAN, asdict(plan))


def read_plan(folder: Path) -> StudyPlan:
    """The plan of a study's folder."""
    try:
        value = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        runs = tuple(run_from_json(run) for run in value["runs"])
        return StudyPlan(**{**value, "portions": portions_from_json(value["portions"]), "runs": runs})
    except FileNotFoundError:
        raise ArtifactError(f"'{folder}' has no {PLAN} yet; run the study with --stage pack first") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"'{folder / PLAN}' cannot be read ({error}); remove it, and it is made again") from error
