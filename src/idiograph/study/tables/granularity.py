"""Which grain is best? A table for each length of span, and every model read at grains that it was not trained at."""

from idiograph.evaluate.published import MEASURES, RETRIEVAL
from idiograph.study.outcomes import LEARNED_TEMPERATURE, StudyOutcomes, paired_lead, show_cell
from idiograph.study.plan import GRAINS, SWAPPED
from idiograph.study.results import RunOutcome
from idiograph.study.table import NAN, Cell, Table, TableRow

NAMES = {"whole": "mean pooling", "ngram:1": "late interaction", "whole as ngram:1": "mean pooling, read as LI"}
SWAP = "whole as ngram:1"
LEARNED = "learned:3"
ORDER = ("whole", SWAP, *GRAINS[1:], LEARNED)


def grain_name(grain: str) -> str:
    """The name that the literature uses, with ours."""
    return f"{NAMES[grain]} ({grain})" if grain in NAMES else grain


def learned_table(found: StudyOutcomes, backbone: str, stage: str) -> RunOutcome | None:
    """Boundaries on a budget beside our temperatures, the last published penalty beside the published loss."""
    kind = "budget" if found.loss(stage) == LEARNED_TEMPERATURE else "reg2"
    named = [o for o in found.outcomes if (o.run.backbone, o.run.patch, o.run.stage) == (backbone, LEARNED, "learned")]
    return next((o for o in named if o.run.model.get("boundaries") == kind), None)


def retrieval_table(found: StudyOutcomes, backbone: str, sentences: int, stage: str = "main") -> Table:
    """Every grain on spans of one length; `stage` is the temperature that was used: ours, or the published one."""
    rows = []
    for grain in ORDER:
        patch, _, reading = grain.partition(" as ")
        outcome = learned_table(found, backbone, stage) if patch == LEARNED else found.outcome(backbone, patch, stage)
        theirs = RETRIEVAL.get(sentences, {}).get(grain, (NAN,) * 4)
        cells = [
            show_cell(found.measure(outcome, name, sentences, reading), value)
            for name, value in zip(MEASURES, theirs, strict=True)
        ]
        rows.append(TableRow(grain_name(grain), tuple(cells)))
    rows.insert(0, untrained_table(found, backbone, sentences))
    title = f"Retrieval by grain, {sentences} sentences, {backbone}, {found.loss(stage)}"
    return Table(
        f"base-{sentences}-{stage}-{slug_of(backbone)}", title, MEASURES, tuple(mark_best(rows)), published_note(found)
    )


def untrained_table(found: StudyOutcomes, backbone: str, sentences: int) -> TableRow:
    outcome = found.untrained(backbone)
    cells = [show_cell(found.measure(outcome, name, sentences, "ngram:3")) for name in MEASURES]
    return TableRow("untrained, read at ngram:3", tuple(cells))


def mark_best(rows: list[TableRow]) -> list[TableRow]:
    """The rows, the best by the first measure marked."""
    known = [row.cells[0].value for row in rows if row.cells[0].known]
    best = max(known, default=NAN)
    return [TableRow(row.label, row.cells, row.cells[0].value == best) for row in rows]


def published_note(found: StudyOutcomes) -> str:
    sizes = {len(bench.pool) for bench in found.on("base")}
    anchors = sum(len(bench.anchors) for bench in found.on("base"))
    where = ", ".join(found.corpora)
    return (
        f"{where}: {anchors} anchors against pools of {' and '.join(map(str, sorted(sizes)))} spans, the same size for "
        "every length. Intervals from resampling author-sets; the paper's values are on its own corpus and pools."
    )


def slug_of(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")


def swap_table(found: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """Rows: what a model was trained at; columns: what it is read at."""
    rows = []
    for grain in ("untrained", *GRAINS):
        outcome = found.untrained(backbone) if grain == "untrained" else found.outcome(backbone, grain, stage)
        readings = [*SWAPPED, grain if grain != "untrained" else ""]
        cells = [
            show_cell(found.measure(outcome, "R@20", reading=reading)) if reading else Cell() for reading in readings
        ]
        rows.append(TableRow(grain_name(grain), tuple(cells)))
    columns = (*(f"read at {grain}" for grain in SWAPPED), "read as trained")
    title = f"R@20 of weights read at another grain, {found.main} sentences, {backbone}"
    return Table(f"swap-{slug_of(backbone)}", title, columns, tuple(rows), published_note(found), "trained at")


def lead_of(found: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """How much each grain is ahead of mean pooling, anchor by anchor."""
    rows = []
    for grain in (*GRAINS[1:], LEARNED):
        outcome = learned_table(found, backbone, stage) if grain == LEARNED else found.outcome(backbone, grain, stage)
        whole = found.outcome(backbone, "whole", stage)
        cells = [
            show_cell(
                paired_lead(found.measure(outcome, "R@20", size), found.measure(whole, "R@20", size)),
                gap_of(grain, size),
            )
            for size in found.lengths
        ]
        rows.append(TableRow(f"{grain} − whole", tuple(cells)))
    columns = tuple(f"{size} sentences" for size in found.lengths)
    title = f"Lead over mean pooling in R@20, {found.loss(stage)}, {backbone}"
    return Table(f"lead-{stage}-{slug_of(backbone)}", title, columns, tuple(rows), published_note(found), "difference")


def gap_of(grain: str, sentences: int) -> float:
    """The same difference as published."""
    theirs = RETRIEVAL.get(sentences, {})
    return theirs[grain][0] - theirs["whole"][0] if grain in theirs else NAN


def by_corpus(found: StudyOutcomes, backbone: str, stage: str = "main") -> Table:
    """R@20 of every grain on each corpus for itself."""
    rows = []
    for corpus in found.corpora:
        models = [found.outcome(backbone, grain, stage) for grain in GRAINS]
        plain = show_cell(found.measure(found.untrained(backbone), reading="ngram:3", corpus=corpus))
        rows.append(TableRow(corpus, (plain, *(show_cell(found.measure(model, corpus=corpus)) for model in models))))
    title = f"R@20 by corpus, {found.main} sentences, {found.loss(stage)}, {backbone}"
    columns = ("untrained, ngram:3", *GRAINS)
    return Table(f"corpora-{stage}-{slug_of(backbone)}", title, columns, tuple(rows), published_note(found), "corpus")
