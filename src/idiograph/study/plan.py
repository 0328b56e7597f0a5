"""Which models a study trains, in the order of their worth: a run that is out of time has done the most telling ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from idiograph.recipe import TrainRecipe

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


def plan_from_json(value: Mapping[str, Any]) -> StudyRun:
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


def plan(
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
