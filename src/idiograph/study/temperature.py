"""Which conclusions survive a change of temperature? Each grain over several, the published one among them."""

import math

from idiograph.study.found import Found, Sample, minus, shown
from idiograph.study.granularity import marked, named, note, slug
from idiograph.study.plan import GRAINS, PUBLISHED, Run
from idiograph.study.results import Outcome
from idiograph.study.table import Cell, Row, Table

STAGES = ("main", "temperature", "published")
SUM = "sum, 0.5 (published)"
FEW = 2  # temperatures among which there is nothing to choose


def setting(run: Run) -> str:
    """How a temperature is called in a column."""
    if run.score == "maxsim":
        return SUM if run.tau == PUBLISHED else f"sum, {run.tau}"
    return f"{run.tau}"


def tempered(found: Found, backbone: str) -> dict[str, dict[str, Outcome]]:
    """Grain → temperature → outcome."""
    grid: dict[str, dict[str, Outcome]] = {}
    for outcome in found.outcomes:
        run = outcome.run
        if run.backbone == backbone and run.stage in STAGES and run.rule == "base":
            grid.setdefault(run.patch, {}).setdefault(setting(run), outcome)
            if run.patch == "whole" and run.score == "maxsim":  # one patch: the sum is the mean
                grid[run.patch].setdefault(f"{run.tau}", outcome)
    if not any(len(row) > FEW for row in grid.values()):
        return {}
    return {grain: grid[grain] for grain in sorted(grid, key=GRAINS.index)}


def order(columns: set[str]) -> list[str]:
    """Numbers by size, then what is learned, then sums."""
    return sorted(columns, key=lambda c: (c.startswith("sum"), c == "learn", float(c) if number(c) else math.inf))


def number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def temperatures(found: Found, backbone: str, measure: str = "R@20") -> Table:
    grid = tempered(found, backbone)
    columns = order({column for row in grid.values() for column in row})
    rows = [
        Row(named(grain), tuple(shown(found.measure(row.get(column), measure)) for column in columns))
        for grain, row in grid.items()
    ]
    title = f"{measure} by grain and temperature, {found.main} sentences, {backbone}"
    text = f"{note(found)} A mean cosine is divided by τ; in the last column a sum of cosines is, as published."
    return Table(f"temperature-{slug(measure)}-{slug(backbone)}", title, tuple(columns), tuple(rows), text, "grain")


def chosen(found: Found, backbone: str) -> dict[str, Outcome]:
    """Of each grain that has several the temperature that did best on the validation writers."""
    grid = tempered(found, backbone)
    return {grain: max(row.values(), key=found.chosen_on) for grain, row in grid.items() if len(row) > FEW}


def at_their_best(found: Found, backbone: str) -> Table:
    """Each grain at the temperature that suits it, and its lead over mean pooling at the one that suits that."""
    best = chosen(found, backbone)
    whole = sample(found, best, "whole")
    rows = []
    for grain, outcome in best.items() if len(best) > 1 else ():
        mine = sample(found, best, grain)
        lead = Cell() if grain == "whole" else shown(minus(mine, whole))
        rows.append(Row(f"{named(grain)}, τ = {setting(outcome.run)}", (shown(mine), lead)))
    title = f"Each grain at its best temperature, {found.main} sentences, {backbone}"
    text = f"{note(found)} Temperatures were chosen on other writers than those measured."
    columns = ("R@20", "lead over mean pooling")
    return Table(f"best-temperature-{slug(backbone)}", title, columns, tuple(marked(rows)), text, "grain")


def sample(found: Found, best: dict[str, Outcome], grain: str) -> Sample | None:
    return found.measure(best.get(grain))


def leads(found: Found, backbone: str) -> Table:
    """The lead of each grain over mean pooling at the same setting: where does the conclusion turn?"""
    grid = tempered(found, backbone)
    whole = grid.get("whole", {})
    columns = [c for c in order({column for row in grid.values() for column in row}) if c in whole]
    rows = [
        Row(f"{grain} − whole", tuple(lead_at(found, row, whole, column) for column in columns))
        for grain, row in grid.items()
        if grain != "whole"
    ]
    title = f"Lead over mean pooling at the same temperature, R@20, {found.main} sentences, {backbone}"
    name = f"temperature-lead-{slug(backbone)}"
    return Table(name, title, tuple(columns), tuple(rows), note(found), "difference")


def lead_at(found: Found, row: dict[str, Outcome], whole: dict[str, Outcome], column: str) -> Cell:
    return shown(minus(found.measure(row.get(column)), found.measure(whole.get(column))))
