"""Which conclusions survive a change of temperature? Each grain over several, the published one among them."""

import math

from idiograph.study.outcomes import RunOutcome, Sample, StudyOutcomes, paired_lead, show_cell
from idiograph.study.plan import GRAINS, PUBLISHED, StudyRun
from idiograph.study.table import Cell, Table, TableRow, slug_of
from idiograph.study.tables.granularity import grain_name, mark_best, published_note

STAGES = ("main", "temperature", "published")
SUM = "sum, 0.5 (published)"
FEW = 2  # temperatures among which there is nothing to choose


def setting(run: StudyRun) -> str:
    """How a temperature is called in a column."""
    if run.score == "maxsim":
        return SUM if run.tau == PUBLISHED else f"sum, {run.tau}"
    return f"{run.tau}"


def temperature_runs_of(study: StudyOutcomes, backbone: str) -> dict[str, dict[str, RunOutcome]]:
    """Grain → temperature → outcome."""
    grid: dict[str, dict[str, RunOutcome]] = {}
    for outcome in study.outcomes:
        run = outcome.run
        if run.backbone == backbone and run.stage in STAGES and run.rule == "base":
            grid.setdefault(run.patch, {}).setdefault(setting(run), outcome)
            if run.patch == "whole" and run.score == "maxsim":  # one patch: the sum is the mean
                grid[run.patch].setdefault(f"{run.tau}", outcome)
    if not any(len(row) > FEW for row in grid.values()):
        return {}
    return {grain: grid[grain] for grain in sorted(grid, key=GRAINS.index)}


def temperature_order(columns: set[str]) -> list[str]:
    """Numbers by size, then what is learned, then sums."""
    return sorted(
        columns, key=lambda c: (c.startswith("sum"), c == "learn", float(c) if temperature_number(c) else math.inf)
    )


def temperature_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def temperatures(study: StudyOutcomes, backbone: str, measure: str = "R@20") -> Table:
    grid = temperature_runs_of(study, backbone)
    columns = temperature_order({column for row in grid.values() for column in row})
    rows = [
        TableRow(grain_name(grain), tuple(show_cell(study.measure(row.get(column), measure)) for column in columns))
        for grain, row in grid.items()
    ]
    title = f"{measure} by grain and temperature, {study.main} sentences, {backbone}"
    text = (
        f"{published_note(study)} A mean cosine is divided by τ; in the last column a sum of cosines is, as published."
    )
    return Table(
        f"temperature-{slug_of(measure)}-{slug_of(backbone)}", title, tuple(columns), tuple(rows), text, "grain"
    )


def chosen_temperatures(study: StudyOutcomes, backbone: str) -> dict[str, RunOutcome]:
    """Of each grain that has several the temperature that did best on the validation writers; none without such writers."""
    grid = temperature_runs_of(study, backbone)
    several = {grain: row for grain, row in grid.items() if len(row) > FEW}
    if any(math.isnan(study.chosen_on(outcome)) for row in several.values() for outcome in row.values()):
        return {}
    return {grain: max(row.values(), key=study.chosen_on) for grain, row in several.items()}


def at_their_best(study: StudyOutcomes, backbone: str) -> Table:
    """Each grain at the temperature that suits it, and its lead over mean pooling at the one that suits that."""
    best = chosen_temperatures(study, backbone)
    whole = temperature_sample(study, best, "whole")
    rows = []
    for grain, outcome in best.items() if len(best) > 1 else ():
        mine = temperature_sample(study, best, grain)
        lead = Cell() if grain == "whole" else show_cell(paired_lead(mine, whole))
        rows.append(TableRow(f"{grain_name(grain)}, τ = {setting(outcome.run)}", (show_cell(mine), lead)))
    title = f"Each grain at its best temperature, {study.main} sentences, {backbone}"
    text = f"{published_note(study)} Temperatures were chosen on other writers than those measured."
    columns = ("R@20", "lead over mean pooling")
    return Table(f"best-temperature-{slug_of(backbone)}", title, columns, tuple(mark_best(rows)), text, "grain")


def temperature_sample(study: StudyOutcomes, best: dict[str, RunOutcome], grain: str) -> Sample | None:
    return study.measure(best.get(grain))


def temperature_leads(study: StudyOutcomes, backbone: str) -> Table:
    """The lead of each grain over mean pooling at the same setting: where does the conclusion turn?"""
    grid = temperature_runs_of(study, backbone)
    whole = grid.get("whole", {})
    columns = [c for c in temperature_order({column for row in grid.values() for column in row}) if c in whole]
    rows = [
        TableRow(f"{grain} − whole", tuple(lead_at(study, row, whole, column) for column in columns))
        for grain, row in grid.items()
        if grain != "whole"
    ]
    title = f"Lead over mean pooling at the same temperature, R@20, {study.main} sentences, {backbone}"
    name = f"temperature-lead-{slug_of(backbone)}"
    return Table(name, title, tuple(columns), tuple(rows), published_note(study), "difference")


def lead_at(study: StudyOutcomes, row: dict[str, RunOutcome], whole: dict[str, RunOutcome], column: str) -> Cell:
    return show_cell(paired_lead(study.measure(row.get(column)), study.measure(whole.get(column))))
