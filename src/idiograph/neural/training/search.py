"""A search for settings: random ones out of a space, the poorer ones given up early. On validation alone.

A space is TOML. `[space]` says what is searched: a list of choices, or a range `{low = 1e-5, high = 1e-3, log = true}` (`whole =
true` for whole numbers). `[train]` holds what is the same for all, as in a recipe. The settings of trial n depend on the seed
and n alone, so that a search can be prolonged. With several rungs a trial is short at first, and only the best third goes
on to the next rung, where it begins anew with three times the steps. What is done is noted: given again, a search goes on.

An ablation draws nothing: it trains what all share, and then each choice of each list by itself. A choice may be a table of
several settings that belong together, as `{dim = 128, head = "linear"}`.
"""

import json
import math
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from idiograph.errors import ArtifactError, InputError, ModelError, SpecError
from idiograph.recipe import TrainRecipe, make_recipe
from idiograph.runner import Failure, Progress, Workers
from idiograph.store import exchange_folders, locked_folder, read_ledger

HALVING = 3  # one in three goes on, with three times the steps
SPACE, DONE, BEST = "space.json", "trials.jsonl", "best"


@dataclass(frozen=True, slots=True)
class SearchTrial:
    """Some settings, and how far they are taken."""

    number: int
    rung: int
    steps: int
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What came of a trial. A run that broke down has no score."""

    trial: SearchTrial
    score: float | None
    measures: Mapping[str, float]
    step: int | None = None  # whose weights these are: 0 if training made them worse

    @property
    def place(self) -> tuple[int, float]:
        """Outcomes in this order go from the best down."""
        return -self.trial.rung, -self.score if self.score is not None else math.inf


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How long to search. `steps` are those of the last rung; `workers` says where trials run, and how many at once."""

    trials: int = 12
    rungs: int = 1
    steps: int = 500
    seed: int = 7
    workers: Workers = field(default_factory=partial(Workers, workers=1))
    ablate: bool = False  # each choice by itself in place of draws

    def __post_init__(self) -> None:
        if self.ablate and self.rungs > 1:
            raise SpecError("an ablation compares runs of one length; leave out --rungs")
        if self.trials < 1 or self.rungs < 1 or self.steps < HALVING ** (self.rungs - 1):
            raise SpecError(
                f"{self.trials} trials of {self.steps} steps in {self.rungs} rungs cannot be; "
                f"there must be a trial and a rung, and {HALVING ** max(self.rungs - 1, 0)} steps or more"
            )


@dataclass(frozen=True, slots=True)
class Space:
    """What is searched, and what all trials share."""

    choices: Mapping[str, Any]
    shared: Mapping[str, Any]

    def draw(self, seed: int, number: int) -> dict[str, Any]:
        """The settings of trial `number`: each key has chance of its own, so that a new one leaves the others alone."""
        found = {key: pick_value(Random(f"{seed}/{number}/{key}"), range_) for key, range_ in self.choices.items()}
        return {name: value for key, drawn in found.items() for name, value in as_settings(key, drawn).items()}

    def alone(self) -> list[dict[str, Any]]:
        """Nothing, and then every choice by itself: what each trial of an ablation changes."""
        for key, given in self.choices.items():
            if not isinstance(given, list):
                raise InputError(f"an ablation goes through lists of choices, but {key} is a range; write some values")
        changes = [as_settings(key, value) for key, given in self.choices.items() for value in given]
        return [{}, *(change for change in changes if not change.items() <= self.shared.items())]

    def settings(self, search: "SearchPlan", number: int) -> dict[str, Any]:
        """All settings of a trial."""
        return {**self.shared, **(self.alone()[number] if search.ablate else self.draw(search.seed, number))}


def as_settings(key: str, value: Any) -> dict[str, Any]:
    """A choice as settings: its key and value, or a table of several."""
    return value if isinstance(value, dict) else {key: value}


def pick_value(chance: Random, given: Any) -> Any:
    """One of a list, or a number of a range."""
    if isinstance(given, list):
        return chance.choice(given)
    low, high = given["low"], given["high"]
    value = math.exp(chance.uniform(math.log(low), math.log(high))) if given.get("log") else chance.uniform(low, high)
    return round(value) if given.get("whole") else float(f"{value:.4g}")


def read_space(path: Path, preset: str = "sound") -> Space:
    """A space from its file; the ends of each range and every choice are checked as settings."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}' with a space to search") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from error
    if set(raw) - {"space", "train"} or not raw.get("space"):
        raise InputError(f"{path}: a space has a table [space], and may have one [train]; it has {sorted(raw)}")
    found = Space(raw["space"], raw.get("train", {}))
    for key, given in found.choices.items():
        for value in range_ends(path, key, given):
            trial_recipe(preset, {**found.shared, **as_settings(key, value)})
    return found


def range_ends(path: Path, key: str, given: Any) -> list[Any]:
    """The values that stand for all of a range, or every choice."""
    if isinstance(given, list) and given:
        return given
    if not isinstance(given, dict) or not {"low", "high"} <= set(given) <= {"low", "high", "log", "whole"}:
        raise InputError(f"{path}: {key} must be a list of choices or {{low = …, high = …}}, but is {given!r}")
    low, high = given["low"], given["high"]
    if not low < high or (given.get("log") and low <= 0):
        raise InputError(f"{path}: {key} goes from {low} to {high}; the low end must be the lower, and above 0 for log")
    return [low, high]


def trial_recipe(preset: str, settings: Mapping[str, Any]) -> TrainRecipe:
    """A preset with the settings of a trial; each is checked."""
    return make_recipe(preset, {"train": settings}).train


def search_settings(
    sources: Sequence[Path],
    output: Path,
    space: Space,
    search: SearchPlan,
    *,
    valid: Sequence[Path] = (),
    device: str = "auto",
    preset: str = "sound",
    backbone: str | Path = "default",
    progress: Progress | None = None,
) -> list[TrialOutcome]:
    """Search, from the best outcome down; the model of the best trial is in `best` afterwards.

    Scores are the mean R@20 of the validation that `train` does; test passages are never scored.
    """
    search = replace(search, trials=len(space.alone())) if search.ablate else search
    work = partial(
        run_trial, list(map(str, sources)), str(output), list(map(str, valid)), device, preset, str(backbone)
    )
    with locked_folder(output):
        outcomes = begin_search(output, space, search)
        for trials in rungs(space, search, outcomes):
            new = [trial for trial in trials if not any(same_value(trial, o.trial) for o in outcomes)]
            for found in search.workers.map(work, new):
                outcomes.append(write_outcome(output, found))
                if progress:
                    progress(len(outcomes), count_trials(search), f"{len(outcomes)} trials")
        keep_best(output, min(outcomes, key=lambda o: o.place))
    return sorted(outcomes, key=lambda o: o.place)


def count_trials(search: SearchPlan) -> int:
    """Trials of all rungs together."""
    return sum(survivors(search, rung) for rung in range(search.rungs))


def survivors(search: SearchPlan, rung: int) -> int:
    return max(search.trials // HALVING**rung, 1)


def rungs(space: Space, search: SearchPlan, outcomes: list[TrialOutcome]) -> Iterable[list[SearchTrial]]:
    """The trials of each rung in turn; `outcomes` must hold those of one before the next is asked for."""
    numbers = list(range(search.trials))
    for rung in range(search.rungs):
        steps = max(search.steps // HALVING ** (search.rungs - 1 - rung), 1)
        yield [SearchTrial(n, rung, steps, space.settings(search, n)) for n in numbers]
        here = sorted(
            (o for o in outcomes if o.trial.rung == rung and o.trial.number in numbers), key=lambda o: o.place
        )
        numbers = sorted(o.trial.number for o in here[: survivors(search, rung + 1)])


def same_value(one: SearchTrial, other: SearchTrial) -> bool:
    return (one.number, one.rung, one.steps) == (other.number, other.rung, other.steps)


def run_trial(
    sources: list[str], output: str, valid: list[str], device: str, preset: str, backbone: str, trial: SearchTrial
) -> TrialOutcome:
    """Train one trial in a folder of its own. A loss that is not a number is an outcome, too."""
    from idiograph.neural.training.train import train_model_on

    chosen = trial_recipe(preset, {**trial.settings, "steps": trial.steps})
    folder = trial_folder(Path(output), trial)
    try:
        base = trial.settings.get("backbone", backbone)
        options: dict[str, Any] = {"valid": list(map(Path, valid)), "device": device, "overwrite": True}
        result = train_model_on(list(map(Path, sources)), folder, base, chosen, **options)
    except ModelError as error:
        shutil.rmtree(folder, ignore_errors=True)
        if "the loss is" not in str(error):
            raise
        return TrialOutcome(trial, None, {})
    if "score" not in result.measures:
        raise InputError(
            "there is nothing to validate on; mine triplets with a 'valid' split, or name some with --valid"
        )
    return TrialOutcome(trial, float(result.measures["score"]), dict(result.measures), result.best_step)


def trial_folder(output: Path, trial: SearchTrial) -> Path:
    return output / f"trial-{trial.number:03}-{trial.rung}"


def begin_search(output: Path, space: Space, search: SearchPlan) -> list[TrialOutcome]:
    """What an earlier run of the same search has found; another search in its place is refused."""
    about = {"space": dict(space.choices), "train": dict(space.shared), "seed": search.seed, "rungs": search.rungs}
    about |= {"steps": search.steps} | ({"ablate": True} if search.ablate else {})
    text, path = json.dumps(about, indent=1), output / SPACE
    if not path.is_file() and any(each.name != ".lock" for each in output.iterdir()):
        raise ArtifactError(f"'{output}' holds something else than a search; choose another -o")
    if path.is_file() and path.read_text(encoding="utf-8") != text:
        raise ArtifactError(f"'{output}' holds another search; choose another -o, or give the same space and steps")
    path.write_text(text, encoding="utf-8")
    found = read_ledger(output / DONE)
    return [TrialOutcome(SearchTrial(**row["trial"]), row["score"], row["measures"], row.get("step")) for row in found]


def write_outcome(output: Path, found: TrialOutcome | Failure) -> TrialOutcome:
    """Write an outcome down. Its weights stay as long as it may be the best."""
    if isinstance(found, Failure):
        raise ModelError(f"trial {found.item.number} died: {found.detail or found.reason}; use fewer workers at once")
    with (output / DONE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(found)) + "\n")
    return found


def keep_best(output: Path, best: TrialOutcome) -> None:
    """Move the best model to its place and remove the others."""
    winner = trial_folder(output, best.trial)
    if winner.is_dir():
        exchange_folders(winner, output / BEST)
    for folder in output.glob("trial-*"):
        shutil.rmtree(folder)
