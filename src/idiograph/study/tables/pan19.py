"""Attribution in another register, without training for it: is an unknown text nearer to its writer than to the others?"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from idiograph.evaluate.pan19 import Attributed, choose_texts, right_answers, triplets_won
from idiograph.evaluate.problems import Problem
from idiograph.evaluate.published import PAN19
from idiograph.recipe import PanRecipe
from idiograph.study.outcomes import Doubles, RunOutcome, Sample, StudyOutcomes
from idiograph.study.plan import GRAINS
from idiograph.study.table import NAN, Cell, Table, TableRow, slug_of
from idiograph.study.tables.granularity import LEARNED, grain_name, learned_table

Scores = NDArray[np.float32]
EXPECTED, PUBLISHED = PanRecipe(), PanRecipe(unknowns="last", negatives="one")  # which texts, against which candidates
OutcomesOf = Callable[[Attributed], Doubles]


def pan19_sample(
    outcome: RunOutcome,
    lang: str,
    problems: Sequence[Problem],
    how: str,
    measure: OutcomesOf,
    recipe: PanRecipe = EXPECTED,
) -> Sample:
    """A measure of every unknown text that a recipe asks about, and who wrote it. `how`: `joined` or `mean` over texts."""
    parts = [scored_problem(outcome.arrays[f"pan|{lang}|{each.name}|{how}"], each, recipe) for each in problems]
    first = np.cumsum([0, *(len(each.candidates) for each in problems)])
    writers = [part.true + start for part, start in zip(parts, first, strict=False)]
    return Sample(np.concatenate([measure(part) for part in parts]), np.concatenate(writers))


def scored_problem(scores: Scores, problem: Problem, recipe: PanRecipe) -> Attributed:
    """Scores (answerable texts, candidates) of those texts that the recipe asks about."""
    asked = set(choose_texts(problem, recipe))
    rows = [at for at, file in enumerate(problem.answerable) if file in asked]
    return Attributed(problem, tuple(problem.answerable[at] for at in rows), scores[rows])


def has_problems(outcome: RunOutcome, lang: str) -> bool:
    """Was the run put to the problems of a language?"""
    return f"pan|{lang}" in outcome.about.get("read", {})


def pan19_table(
    study: StudyOutcomes, problems: Sequence[Problem], lang: str, backbone: str, stage: str = "main"
) -> Table:
    rows = []
    for grain in ("untrained", *GRAINS, LEARNED):
        outcome = study.untrained(backbone) if grain == "untrained" else study.outcome(backbone, grain, stage)
        outcome = learned_table(study, backbone, stage) if grain == LEARNED else outcome
        if outcome is not None and has_problems(outcome, lang):
            theirs = PAN19.get(grain, NAN) if lang == "en" else NAN
            rows.append(TableRow(grain_name(grain), pan19_cells(outcome, problems, lang, theirs)))
    if len(rows) == 1 and study.untrained(backbone) is not None:
        rows = []  # nothing was trained
    columns = ("published protocol", "texts end to end", "mean over texts", "first candidate right")
    title = f"Another register without training for it: fan fiction (PAN19, {lang}), {backbone}, {study.loss(stage)}"
    name = f"pan19-{lang}-{stage}-{slug_of(backbone)}"
    return Table(name, title, columns, tuple(rows), pan19_note(problems))


def pan19_note(problems: Sequence[Problem]) -> str:
    texts = sum(len(set(choose_texts(each, EXPECTED)) & set(each.answerable)) for each in problems)
    candidates = sum(len(each.candidates) for each in problems)
    return (
        f"Triplet accuracy of {texts} unknown texts with a true candidate, {candidates} "
        f"candidates in {len(problems)} problems; expected over all other candidates of a problem. The published "
        "protocol takes the last fifth of the texts and one other candidate each. It and the second column join a "
        "candidate's texts and cut them at the window. Intervals from resampling writers."
    )


def pan19_cells(outcome: RunOutcome, problems: Sequence[Problem], lang: str, published: float) -> tuple[Cell, ...]:
    def cell(how: str, measure: OutcomesOf, recipe: PanRecipe = EXPECTED, theirs: float = NAN) -> Cell:
        return pan19_sample(outcome, lang, problems, how, measure, recipe).cell(theirs)

    protocol = cell("joined", lambda each: triplets_won(each, PUBLISHED), PUBLISHED, published)
    expected, mean = (cell(how, lambda each: triplets_won(each, EXPECTED)) for how in ("joined", "mean"))
    return protocol, expected, mean, cell("mean", right_answers)
