"""Attribution in another register, without training for it: is an unknown text nearer to its writer than to the others?"""

import random

import numpy as np

from idiograph.evaluate.published import PAN19
from idiograph.study.bench import Doubles, Ints
from idiograph.study.outcomes import Sample, StudyOutcomes
from idiograph.study.pack import Problems
from idiograph.study.plan import GRAINS
from idiograph.study.results import RunOutcome
from idiograph.study.table import NAN, Cell, Table, TableRow
from idiograph.study.tables.granularity import LEARNED, grain_name, learned_table, slug_of


def pan19_accuracy(scores: Doubles, problems: Problems) -> Doubles:
    """(U,): the share of the other candidates of its problem that an unknown text's writer is ahead of; a tie is half.
    NaN for a text that stands elsewhere too."""
    found = [wins_against(row, other_candidates(problems, at)) for at, row in enumerate(scores)]
    return np.where(problems.fresh, found, np.nan)


def pan19_as_published(scores: Doubles, problems: Problems, seed: int = 7) -> Doubles:
    """(U,): the same with one other candidate each, drawn at random, of the last fifth of each problem's texts by name."""
    found = np.full(len(problems.unknown), np.nan)
    for number, name in enumerate(problems.names):
        draw = random.Random(f"{seed}/{name}")
        own = np.flatnonzero(problems.problem == number)
        for at in own[int(0.8 * len(own)) :]:
            truth, others = other_candidates(problems, at)
            found[at] = wins_against(scores[at], (truth, others[[draw.randrange(len(others))]]))
    return found


def other_candidates(problems: Problems, at: int) -> tuple[int, Ints]:
    """The candidate who wrote an unknown text, and the other ones of its problem."""
    truth = int(problems.truth[at])
    same = np.flatnonzero(problems.candidates == problems.problem[at])
    return truth, same[same != truth]


def wins_against(row: Doubles, among: tuple[int, Ints]) -> float:
    truth, others = among
    return float(np.mean((row[truth] > row[others]) + 0.5 * (row[truth] == row[others])))


def is_first_candidate(scores: Doubles, problems: Problems) -> Doubles:
    """(U,): is the writer the first of the candidates? NaN for a text that stands elsewhere too."""
    own = problems.candidates[None] == problems.problem[:, None]  # (U, C)
    right = np.where(own, scores, -np.inf).argmax(axis=1) == problems.truth
    return np.where(problems.fresh, right, np.nan)


def pan19_tables(found: StudyOutcomes, problems: Problems, lang: str, backbone: str, stage: str = "main") -> Table:
    rows = []
    for grain in ("untrained", *GRAINS, LEARNED):
        outcome = found.untrained(backbone) if grain == "untrained" else found.outcome(backbone, grain, stage)
        outcome = learned_table(found, backbone, stage) if grain == LEARNED else outcome
        if outcome is not None and f"pan|{lang}|joined" in outcome.arrays:
            theirs = PAN19.get(grain, NAN) if lang == "en" else NAN
            rows.append(TableRow(grain_name(grain), pan19_cells(outcome, problems, lang, theirs)))
    if len(rows) == 1 and found.untrained(backbone) is not None:
        rows = []  # nothing was trained
    columns = ("published protocol", "texts end to end", "mean over texts", "first candidate right")
    text = (
        f"Triplet accuracy of {int(problems.fresh.sum())} unknown texts with a true candidate, {len(problems.candidates)} "
        f"candidates in {len(problems.names)} problems; expected over all other candidates of a problem. The published "
        "protocol takes the last fifth of the texts and one other candidate each. It and the second column join a "
        "candidate's texts and cut them at the window. Intervals from resampling writers."
    )
    title = f"Another register without training for it: fan fiction (PAN19, {lang}), {backbone}, {found.loss(stage)}"
    return Table(f"pan19-{lang}-{stage}-{slug_of(backbone)}", title, columns, tuple(rows), text)


def pan19_cells(outcome: RunOutcome, problems: Problems, lang: str, published: float) -> tuple[Cell, ...]:
    joined, apart = (outcome.arrays[f"pan|{lang}|{how}"] for how in ("joined", "mean"))
    values = (pan19_as_published(joined, problems), pan19_accuracy(joined, problems), pan19_accuracy(apart, problems))
    protocol, expected, mean, best = (Sample(v, problems.truth) for v in (*values, is_first_candidate(apart, problems)))
    return protocol.cell(published), expected.cell(), mean.cell(), best.cell()
