"""Attribution in another register, without training for it: is an unknown text nearer to its writer than to the others?"""

import numpy as np

from idiograph.study.bench import Doubles
from idiograph.study.found import Found, Sample
from idiograph.study.granularity import LEARNED, learned, named, slug
from idiograph.study.pack import Problems
from idiograph.study.plan import GRAINS
from idiograph.study.published import PAN19
from idiograph.study.table import NAN, Cell, Row, Table


def accuracy(scores: Doubles, problems: Problems) -> Doubles:
    """(U,): the share of the other candidates of its problem that an unknown text's writer is ahead of; a tie is half."""
    found = np.empty(len(problems.unknown))
    for at, (row, truth, problem) in enumerate(zip(scores, problems.truth, problems.problem, strict=True)):
        others = row[(problems.candidates == problem) & (np.arange(len(row)) != truth)]
        found[at] = np.mean((row[truth] > others) + 0.5 * (row[truth] == others))
    return found


def first(scores: Doubles, problems: Problems) -> Doubles:
    """(U,): is the writer the first of the candidates?"""
    found = np.empty(len(problems.unknown))
    for at, (row, truth, problem) in enumerate(zip(scores, problems.truth, problems.problem, strict=True)):
        found[at] = float(np.where(problems.candidates == problem, row, -np.inf).argmax() == truth)
    return found


def zero_shot(found: Found, problems: Problems, backbone: str, stage: str = "main") -> Table:
    rows = []
    for grain in ("untrained", *GRAINS, LEARNED):
        outcome = found.untrained(backbone) if grain == "untrained" else found.outcome(backbone, grain, stage)
        outcome = learned(found, backbone, stage) if grain == LEARNED else outcome
        if outcome is None or "pan|joined" not in outcome.arrays:
            continue
        cells = [cell(accuracy(outcome.arrays["pan|joined"], problems), problems, PAN19.get(grain, NAN))]
        cells.append(cell(accuracy(outcome.arrays["pan|mean"], problems), problems))
        cells.append(cell(first(outcome.arrays["pan|mean"], problems), problems))
        rows.append(Row(named(grain), tuple(cells)))
    columns = ("triplet accuracy, texts end to end", "triplet accuracy, mean over texts", "first candidate right")
    how = "learned temperature" if stage == "main" else "published loss and temperature"
    text = (
        f"{len(problems.unknown)} unknown texts with a true candidate, {len(problems.candidates)} candidates in "
        f"{problems.candidates.max() + 1} problems; accuracy is expected over all other candidates of a problem. The first "
        "column joins a candidate's texts and cuts them at the window, as published. Intervals from resampling writers."
    )
    title = f"Another register without training for it: fan fiction (PAN19), {backbone}, {how}"
    return Table(f"pan19-{stage}-{slug(backbone)}", title, columns, tuple(rows), text)


def cell(values: Doubles, problems: Problems, published: float = NAN) -> Cell:
    return Sample(values, problems.truth).cell(published)
