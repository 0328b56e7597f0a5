"""A model of meaning beside the models of style: how well meaning alone tells writers apart.

Any sentence-transformers model, read as it comes; or a file of vectors that somebody made of the texts.
"""

from collections.abc import Sequence

from idiograph.evaluate.pan19 import triplets_won
from idiograph.evaluate.problems import Problem
from idiograph.evaluate.published import MEANING, MEASURES
from idiograph.study.outcomes import RunOutcome, StudyOutcomes, show_cell
from idiograph.study.table import Cell, Table, TableRow, slug_of
from idiograph.study.tables.granularity import grain_name, published_note
from idiograph.study.tables.pan19 import EXPECTED, has_problems, pan19_sample


def meaning_alone(study: StudyOutcomes, problems: Sequence[Problem] = ()) -> Table | None:
    """Retrieval, triplets and fan fiction by a model of meaning, as one vector and token by token."""
    model = study.semantic
    if model is None:
        return None
    rows = []
    for grain in ("whole", "ngram:1"):
        theirs = MEANING[grain]
        cells = [show_cell(study.measure(model, name, reading=grain), theirs[name]) for name in MEASURES]
        cells.append(show_cell(study.triplets(model, reading=grain), theirs["triplet accuracy"]))
        fan = fan_fiction(model, problems if grain == "whole" else (), theirs["PAN19"])
        rows.append(TableRow(grain_name(grain), (*cells, fan)))
    name = model.run.backbone
    columns = (*MEASURES, "triplet accuracy", "PAN19, triplet accuracy")
    text = (
        f"{published_note(study)} The paper's model is multilingual E5; "
        "its accuracies are given once for both ways of scoring."
    )
    return Table(f"meaning-{slug_of(name)}", f"A model of meaning alone: {name}", columns, tuple(rows), text)


def fan_fiction(model: RunOutcome, problems: Sequence[Problem], published: float) -> Cell:
    if not problems or not has_problems(model, "en"):
        return Cell(published=published)
    return pan19_sample(model, "en", problems, "joined", lambda each: triplets_won(each, EXPECTED)).cell(published)
