"""Tables about how models were trained: more negatives, learned boundaries, and how much luck there is in one run."""

import numpy as np

from idiograph.evaluate.published import LEARNED, MEASURES
from idiograph.study.outcomes import (
    LEARNED_TEMPERATURE,
    PUBLISHED_LOSS,
    Doubles,
    RunOutcome,
    StudyOutcomes,
    paired_lead,
    show_cell,
)
from idiograph.study.plan import StudyRun
from idiograph.study.table import NAN, Cell, Table, TableRow, slug_of

THRESHOLDS = (0.3, 0.5, 0.7)


def negatives(study: StudyOutcomes, backbone: str) -> Table | None:
    """Token-level late interaction with batches of several sizes, against the usual one."""
    usual = study.outcome(backbone, "ngram:1")
    others = [o for o in study.outcomes if o.run.stage == "negatives" and o.run.backbone == backbone]
    if usual is None or not others:
        return None
    rows = []
    for outcome in sorted([usual, *others], key=lambda o: (o.run.batch, o.run.steps)):
        run = outcome.run
        label = f"batch {run.batch}, {run.steps} steps, {run.batch * run.steps} rows"
        lead = Cell() if outcome is usual else show_cell(paired_lead(study.measure(outcome), study.measure(usual)))
        cells = [Cell(float(outcome.about["negatives"]), digits=1)]
        cells += [show_cell(study.measure(outcome, name)) for name in MEASURES]
        rows.append(TableRow(label, (*cells, lead)))
    columns = ("negatives an anchor", *MEASURES, f"R@20 − that of batch {usual.run.batch}")
    text = (
        "A larger batch at equal steps is also more text; a row with more steps shows how much of the gain is text. "
        "The paper reports a fraction of a point more R@20 from 255 to 511 negatives, at equal steps."
    )
    title = f"More negatives, late interaction at token level, {study.main} sentences, {backbone}"
    return Table(f"negatives-{slug_of(backbone)}", title, columns, tuple(rows), text, "run")


def seeds(study: StudyOutcomes, backbone: str) -> Table | None:
    """The same run with another seed: differences that are the luck of one run."""
    again = [o for o in study.outcomes if o.run.stage == "seeds" and o.run.backbone == backbone]
    rows = []
    for outcome in again:
        usual = first_seed(study, outcome.run)
        samples = [study.measure(o) for o in (usual, outcome)]
        cells = (*map(show_cell, samples), show_cell(paired_lead(samples[1], samples[0])), *seed_leads(study, outcome))
        rows.append(TableRow(f"{outcome.run.patch}, {how_trained(outcome.run)}", cells))
    if not rows:
        return None
    title = f"The same run with another seed, R@20, {study.main} sentences, {backbone}"
    text = "The seed decides the order of the triplets. Intervals here are over author-sets, not over seeds."
    columns = ("first seed", "second seed", "difference", "lead over mean pooling, first seed", "second seed ")
    return Table(f"seeds-{slug_of(backbone)}", title, columns, tuple(rows), text, "run")


def how_trained(run: StudyRun) -> str:
    return PUBLISHED_LOSS if run.score == "maxsim" else LEARNED_TEMPERATURE


def first_seed(study: StudyOutcomes, run: StudyRun, patch: str = "") -> RunOutcome | None:
    """The run of the plan that this one repeats, or the same at another grain."""
    stage = "published" if run.score == "maxsim" else "main"
    return study.outcome(run.backbone, patch or run.patch, stage)


def seed_leads(study: StudyOutcomes, outcome: RunOutcome) -> tuple[Cell, Cell]:
    """How far a grain is ahead of mean pooling with the first seed and with another one."""
    run = outcome.run
    if run.patch == "whole":
        return Cell(), Cell()
    first = paired_lead(study.measure(first_seed(study, run)), study.measure(first_seed(study, run, "whole")))
    whole = study.outcome(run.backbone, "whole", "seeds", seed=run.seed, score=run.score)
    return show_cell(first), show_cell(paired_lead(study.measure(outcome), study.measure(whole)))


def boundaries(study: StudyOutcomes, backbone: str) -> Table | None:
    """Learned boundaries: how probable they are, how long the patches get, and what it brings."""
    learned = [o for o in study.outcomes if o.run.stage == "learned" and o.run.backbone == backbone]
    rows = []
    for outcome in learned:
        cells = (*diagnose(outcome), Cell(tokens_a_patch(study, outcome), digits=2))
        lead = paired_lead(study.measure(outcome), study.measure(same_loss(study, outcome.run)))
        label = f"{kind_of_run(outcome.run)}, {how_trained(outcome.run)}"
        rows.append(TableRow(label, (*cells, show_cell(study.measure(outcome)), show_cell(lead))))
    if not rows:
        return None
    thresholds = tuple(f"patches of a text at {t}" for t in THRESHOLDS)
    columns = ("mean probability", *thresholds, "tokens a patch, as read", "R@20", "R@20 − ngram:3, same loss")
    text = (
        "reg1 and reg2 are the published penalties, trained with the published loss, and cut where the probability is "
        "above a half; `budget` cuts a text of S tokens into ⌈S/3⌉ patches at its most probable places, and its gradient "
        "reaches the boundaries (probabilities there are relative within a text)."
    )
    title = f"Learned boundaries, {study.main} sentences, {backbone}"
    return Table(f"learned-{slug_of(backbone)}", title, columns, tuple(rows), text, "boundaries")


def kind_of_run(run: StudyRun) -> str:
    return str(run.model.get("boundaries", "budget"))


def tokens_a_patch(study: StudyOutcomes, outcome: RunOutcome) -> float:
    """How long the patches are that a model is read at."""
    token = study.outcome(outcome.run.backbone, "ngram:1", ("main", "published"))
    return NAN if token is None else study.patches(token) / study.patches(outcome)


def same_loss(study: StudyOutcomes, run: StudyRun) -> RunOutcome | None:
    """Fixed patches of three tokens, trained with the same loss."""
    fixed = [o for o in study.outcomes if o.run.stage in ("main", "published") and o.run.patch == "ngram:3"]
    return next((o for o in fixed if (o.run.backbone, o.run.score) == (run.backbone, run.score)), None)


def diagnose(outcome: RunOutcome) -> list[Cell]:
    """How probable a boundary is, and how many patches that would make of a text at each threshold."""
    chance, lengths = outcome.arrays["cuts|chance"], outcome.arrays["cuts|lengths"]
    ends = np.cumsum(lengths)
    counts = [patches(chance, ends, threshold) for threshold in THRESHOLDS]
    mean = LEARNED["mean probability, reg2"] if kind_of_run(outcome.run) == "reg2" else NAN
    one = LEARNED["patches of a text, reg2"] if kind_of_run(outcome.run) == "reg2" else NAN
    cells = [Cell(float(chance.mean()), published=mean)]
    cells += [
        Cell(float(c.mean()), published=one if t == 0.5 else NAN, digits=1)
        for t, c in zip(THRESHOLDS, counts, strict=True)
    ]
    return cells


def cuts_of(outcome: RunOutcome, threshold: float = 0.5) -> dict[str, Doubles]:
    """What a figure shows of learned boundaries: probabilities, and tokens a patch if one cuts above the threshold."""
    chance, lengths = outcome.arrays["cuts|chance"], outcome.arrays["cuts|lengths"]
    starts = np.cumsum(lengths) - lengths
    begins = np.union1d(np.flatnonzero(chance > threshold), starts)
    sizes = np.diff(np.append(begins, len(chance))).astype(float)
    return {"probability of a boundary": chance.astype(float), "tokens a patch": sizes}


def patches(chance: Doubles, ends: Doubles, threshold: float) -> Doubles:
    """Patches of each text if it were cut wherever the probability is above the threshold; the first token always is."""
    starts = np.concatenate([[0], ends[:-1]])
    cuts = (chance > threshold).astype(float)
    cuts[starts.astype(int)] = 1.0
    return np.add.reduceat(cuts, starts.astype(int))
