"""The report: every table and figure on one page that needs nothing else, and the tables as LaTeX, CSV and JSON."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from idiograph.html import render
from idiograph.store import timestamp, write_json
from idiograph.study.claims import Claim
from idiograph.study.table import Table, as_csv, clean_number, latex, to_json


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A part of the report: some words, tables and figures (caption → SVG)."""

    title: str
    text: str
    tables: tuple[Table, ...] = ()
    figures: Mapping[str, str] = ()  # pyright: ignore[reportAssignmentType]


@dataclass(frozen=True, slots=True)
class Account:
    """How the numbers came about: what was typed, what was trained with which settings and seeds."""

    preset: str
    quick: bool
    commands: tuple[str, ...]
    corpora: tuple[str, ...]
    backbones: tuple[str, ...]
    runs: tuple[dict[str, Any], ...]
    planned: int = 0
    done: int = 0  # of what was planned
    version: str = ""
    never_planned: tuple[str, ...] = ()  # what one backbone is trained on and another is not


def write_study_report(
    folder: Path, sections: Sequence[ReportSection], claims: Sequence[Claim], account: Account
) -> Path:
    """Write `report.html`, `tables/`, `figures/`, `tables.json`, `claims.json` and `account.json`; returns the page."""
    tables = [table for section in sections for table in section.tables]
    for part in ("tables", "figures"):
        shutil.rmtree(folder / part, ignore_errors=True)  # what an earlier report had and this one has not
        (folder / part).mkdir(parents=True)
    for table in tables:
        (folder / "tables" / f"{table.name}.tex").write_text(latex(table), encoding="utf-8")
        (folder / "tables" / f"{table.name}.csv").write_text(as_csv(table), encoding="utf-8")
    for number, (_, drawing) in enumerate(figures_of(sections), 1):
        (folder / "figures" / f"figure-{number:02d}.svg").write_text(standing_alone(drawing), encoding="utf-8")
    write_json(folder / "tables.json", to_json(tables))
    write_json(folder / "claims.json", [clean_number(asdict(claim)) for claim in claims])
    write_json(folder / "account.json", clean_number(asdict(account)))
    page = folder / "report.html"
    values: dict[str, Any] = {"sections": sections, "claims": claims, "account": account, "date": timestamp()[:10]}
    page.write_text(render("study.html", title="The study", **values), encoding="utf-8")
    return page


def figures_of(sections: Sequence[ReportSection]) -> list[tuple[str, str]]:
    return [item for section in sections for item in dict(section.figures).items()]


def standing_alone(drawing: str) -> str:
    """An <svg> element as a file of its own."""
    return drawing if "xmlns=" in drawing else drawing.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
