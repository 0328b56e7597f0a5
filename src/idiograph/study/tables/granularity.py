"""Which grain is best? A table for each length of span, and every model read at grains that it was not trained at."""

from idiograph.evaluate.published import MEASURES, RETRIEVAL
from idiograph.study.outcomes import LEARNED_TEMPERATURE, RunOutcome, StudyOutcomes, paired_lead, show_cell
from idiograph.study.plan import GRAINS, SWAPPED
from idiograph.study.table import NAN, Cell, Table, TableRow, slug_of

NAMES = {"whole": "mean pooling", "ngram:1": "late interaction", "whole as ngram:1": "mean pooling, read as LI"}
SWAP = "whole as ngram:1"
LEARNED = "learned:3"
ORDER = ("whole", SWAP, *GRAINS[1:], LEARNED)


def grain_name(grain: str) -> str:
    """The name that the literature uses, with ours."""
    return f"{NAMES[grain]} ({grain})" if grain in NAMES else grain


def learned_table(study: StudyOutcomes, backbone: str, stage: str) -> RunOutcome | None:
    """Boundaries on a budget beside our temperatures, the last published penalty beside the published loss."""
    kind = "budget" if study.loss(stage) == LEARNED_TEMPERATURE else "reg2"
    named = [o for o in study.outcomes if (o.run.backbone, o.run.patch, o.run.stage) == (backbone, LEARNED, "learned")]
    return next((o for o in named if o.run.model.get("boundaries") == kind), None)


def retrieval_table(study: StudyOutcomes, backbone: str, sentences: int, stage: str = "main") -> Table:
    """Every grain on spans of one length; `stage` is the temperature that was used: ours, or the published one."""
    rows = []
    for grain in ORDER:
        patch, _, reading = grain.partition(" as ")
        outcome = learned_table(study, backbone, stage) if patch == LEARNED else study.outcome(backbone, patch, stage)
        theirs = RETRIEVAL.get(sentences, {}).get(grain, (NAN,) * 4)
        cells = [
            show_cell(study.measure(outcome, name, sentences, reading), value)
            for name, value in zip(MEASURES, theirs, strict=True)
        ]
        rows.append(TableRow(grain_name(grain), tuple(cells)))
    rows.insert(0, untrained_table(study, backbone, sentences))
    title = f"Retrieval by grain, {sentences} sentences, {backbone}, {study.loss(stage)}"
    return Table(
        f"base-{sentences}-{stage}-{slug_of(backbone)}", title, MEASURES, tuple(mark_best(rows)), published_note(study)
    )


def untrained_table(study: StudyOutcomes, backbone: str, sentences: int) -> TableRow:
    outcome = study.untrained(backbone)
    cells = [show_cell(study.measure(outcome, name, sentences, "ngram:3")) for name in MEASURES]
    return TableRow("untrained, read at ngram:3", tuple(cells))


def mark_best(rows: list[TableRow]) -> list[TableRow]:
    """The rows, the best by the first measure marked."""
    values = [row.cells[0].value for row in rows if row.cells[0].known]
    best = max(values, default=NAN)
    return [TableRow(row.label, row.cells, row.cells[0].value == best) for row in rows]


def published_note(study: StudyOutcomes) -> str:
    sizes = {len(benchmark.pool) for benchmark in study.on("base")}
    anchors = sum(len(benchmark.anchors) for benchmark in study.on("base"))
    where = ", ".join(study.corpora)
    return (
        f"{where}: {anchors} anchors against pools of {' and '.join(map(str, sorted(sizes)))} spans, the same size for "
        "every length. Intervals from resampling author-sets; the paper's values are on its own corpus and pools."
    )


def swap_table(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """Rows: what a model was trained at; columns: what it is read at."""
    rows = []
    for grain in ("untrained", *GRAINS):
        outcome = study.untrained(backbone) if grain == "untrained" else study.outcome(backbone, grain, stage)
        readings = [*SWAPPED, grain if grain != "untrained" else ""]
        cells = [
            show_cell(study.measure(outcome, "R@20", reading=reading)) if reading else Cell() for reading in readings
        ]
        rows.append(TableRow(grain_name(grain), tuple(cells)))
    columns = (*(f"read at {grain}" for grain in SWAPPED), "read as trained")
    title = f"R@20 of weights read at another grain, {study.main} sentences, {backbone}"
    return Table(f"swap-{slug_of(backbone)}", title, columns, tuple(rows), published_note(study), "trained at")


def lead_of(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """How much each grain is ahead of mean pooling, anchor by anchor."""
    rows = []
    for grain in (*GRAINS[1:], LEARNED):
        outcome = learned_table(study, backbone, stage) if grain == LEARNED else study.outcome(backbone, grain, stage)
        whole = study.outcome(backbone, "whole", stage)
        cells = [
            show_cell(
                paired_lead(study.measure(outcome, "R@20", size), study.measure(whole, "R@20", size)),
                gap_of(grain, size),
            )
            for size in study.lengths
        ]
        rows.append(TableRow(f"{grain} − whole", tuple(cells)))
    columns = tuple(f"{size} sentences" for size in study.lengths)
    title = f"Lead over mean pooling in R@20, {study.loss(stage)}, {backbone}"
    return Table(f"lead-{stage}-{slug_of(backbone)}", title, columns, tuple(rows), published_note(study), "difference")


def gap_of(grain: str, sentences: int) -> float:
    """The same difference as published."""
    theirs = RETRIEVAL.get(sentences, {})
    return theirs[grain][0] - theirs["whole"][0] if grain in theirs else NAN


def by_corpus(study: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """R@20 of every grain on each corpus for itself."""
    rows = []
    for corpus in study.corpora:
        models = [study.outcome(backbone, grain, stage) for grain in GRAINS]
        plain = show_cell(study.measure(study.untrained(backbone), reading="ngram:3", corpus=corpus))
        rows.append(TableRow(corpus, (plain, *(show_cell(study.measure(model, corpus=corpus)) for model in models))))
    title = f"R@20 by corpus, {study.main} sentences, {study.loss(stage)}, {backbone}"
    columns = ("untrained, ngram:3", *GRAINS)
    return Table(f"corpora-{stage}-{slug_of(backbone)}", title, columns, tuple(rows), published_note(study), "corpus")
