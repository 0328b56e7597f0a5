"""Commands about models: evaluate."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from idiograph.cli.shared import AsJson, Keep, Preset, RecipeFile, bar, out, say, settings
from idiograph.errors import InputError


def evaluate(
    rankers: Annotated[list[str], typer.Argument(help="Models, `default`, `bm25` or `delta`, and last the TRIPLETS.")],
    patch: Annotated[list[str] | None, typer.Option(help="Read the models at this grain; may be repeated.")] = None,
    keep: Keep = None,
    split: Annotated[str | None, typer.Option(help="train, valid or test.")] = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    out_folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write report.json and report.md.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure rankers by retrieval on held-out triplets: RANKER [RANKER …] TRIPLETS."""
    from idiograph.evaluate.report import markdown
    from idiograph.evaluate.run import evaluate as evaluate_
    from idiograph.evaluate.run import open_benchmark
    from idiograph.loading import load_ranker

    if len(rankers) < 2:
        raise InputError("name at least one ranker and the triplets: idiograph evaluate default bm25 data/base-4")
    chosen = settings(preset, recipe_file, {"evaluate": {"split": split}, "style": {"keep": keep}})
    benchmark = open_benchmark(Path(rankers[-1]), chosen.evaluate.split)
    reports: list[Any] = []
    with bar("evaluating", len(rankers) - 1) as update:
        for number, name in enumerate(rankers[:-1]):
            update(number, None, f"evaluating {name}")
            ranker = load_ranker(name, keep=keep, score=chosen.style.score)
            reports += measured(ranker, patch or [], lambda one: evaluate_(one, benchmark, chosen.evaluate))
    found = [report.to_json() for report in reports]
    if out_folder:
        out_folder.mkdir(parents=True, exist_ok=True)
        (out_folder / "report.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
        (out_folder / "report.md").write_text(markdown(reports) + "\n", encoding="utf-8")
    say(found, as_json, lambda: print_reports(reports))


def measured(ranker: Any, grains: list[str], measure: Callable[[Any], Any]) -> list[Any]:
    """A model at each grain, its texts read once; a baseline as it is."""
    if not hasattr(ranker, "at") or not grains:
        return [measure(ranker)]
    with ranker.encoder.remembering():
        return [measure(ranker.at(grain)) for grain in grains]


def print_reports(reports: Any) -> None:
    first = reports[0]
    table = Table(title=f"{first.benchmark}: {first.anchors} anchors, {first.pool} passages", padding=(0, 0))
    table.add_column("ranker", no_wrap=True)
    left_out = ("R@5", "Hit@5") if out.width < 100 else ()  # a narrow terminal shows fewer; --json has all
    for row in (row for row in first.rows if row.measure not in left_out):
        table.add_column(row.measure.replace(" ", "\n"), justify="right", no_wrap=True)
    table.add_column("topic", justify="right", no_wrap=True)
    for report in reports:
        cells = [
            f"{row.value:.3f}\n[dim]{two(row.low)}–{two(row.high)}[/dim]"
            for row in report.rows
            if row.measure not in left_out
        ]
        table.add_row(report.ranker.replace(" @ ", "\n@ "), *cells, f"{100 * report.same_field:.0f} %")
    out.print(table)
    out.print(
        "Below each value its 95 % interval; topic: how often the first hit is from the anchor's field.", style="dim"
    )


def two(value: float) -> str:
    """Two decimals without the leading zero: .32"""
    return f"{value:.2f}".replace("0.", ".")
