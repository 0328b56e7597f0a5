"""A model of meaning beside the models of style: how well meaning alone tells writers apart.

Any sentence-transformers model, read as it comes; or a file of vectors that somebody made of the texts.
"""

from idiograph.evaluate.published import MEANING, MEASURES
from idiograph.study.outcomes import Sample, StudyOutcomes, show_cell
from idiograph.study.pack import Problems
from idiograph.study.results import RunOutcome
from idiograph.study.table import Cell, Table, TableRow
from idiograph.study.tables.granularity import grain_name, published_note, slug_of
from idiograph.study.tables.pan19 import pan19_accuracy


def meaning_alone(found: StudyOutcomes, problems: Problems | None = None) -> Table | None:
    """Retrieval, triplets and fan fiction by a model of meaning, as one vector and token by token."""
    model = found.semantic
    if model is None:
        return None
    rows = []
    for grain in ("whole", "ngram:1"):
        theirs = MEANING[grain]
        cells = [show_cell(found.measure(model, name, reading=grain), theirs[name]) for name in MEASURES]
        cells.append(show_cell(found.triplets(model, reading=grain), theirs["triplet accuracy"]))
        fan = fan_fiction(model, problems if grain == "whole" else None, theirs["PAN19"])
        rows.append(TableRow(grain_name(grain), (*cells, fan)))
    name = model.run.backbone
    columns = (*MEASURES, "triplet accuracy", "PAN19, triplet accuracy")
    text = (
        f"{published_note(found)} The paper's model is multilingual E5; "
        "its accuracies are given once for both ways of scoring."
    )
    return Table(f"meaning-{slug_of(name)}", f"A model of meaning alone: {name}", columns, tuple(rows), text)


def fan_fiction(model: RunOutcome, problems: Problems | None, published: float) -> Cell:
    if problems is None or "pan|en|joined" not in model.arrays:
        return Cell(published=published)
    return Sample(pan19_accuracy(model.arrays["pan|en|joined"], problems), problems.truth).cell(published)
