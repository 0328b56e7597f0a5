"""The command that says how often an answer would be right on texts like these: crossvalidate."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from idiograph.cli.checks import check_page, check_reading, check_sources
from idiograph.cli.shared import AsJson, Keep, Model, Patch, bar, literal, open_style, out, say, write_page


def crossvalidate_command(
    corpus: Annotated[
        str,
        typer.Argument(metavar="CORPUS", help="A corpus folder, or texts: a folder of Author_title.txt, JSON lines."),
    ],
    words: Annotated[
        int, typer.Option(help="Cut each question to so many words from its middle; 0: whole.", min=0)
    ] = 0,
    method: Annotated[
        str,
        typer.Option(
            help="best (all of them, weighed), or one: model, delta, letters, words, pairs, stable, regression, grammar, "
            "impostors."
        ),
    ] = "best",
    no_model: Annotated[bool, typer.Option("--no-model", help="Only methods that count; much quicker.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with pictures.")] = None,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    as_json: AsJson = False,
) -> None:
    """Say how often an answer is right on texts like these. Every text is left out in turn and asked about."""
    check_sources([corpus])
    check_reading(model, patch, keep)
    check_page(html)

    from idiograph.answer.methods import BEST, MODEL, check_method_name, crossvalidate
    from idiograph.corpus.corpus import read_library

    check_method_name(method)
    documents = read_library(corpus)
    with_model = method == MODEL or (method == BEST and not no_model)
    with bar("leaving out each text"):
        style = open_style(model, patch, keep) if with_model else False
        result = crossvalidate(documents, words, method, style)
    if html:
        from idiograph.answer.report import crossvalidation_page

        write_page(html, crossvalidation_page(result, corpus))
    say(result.to_json(), as_json, lambda: print_crossvalidation(result))


def print_crossvalidation(result: Any) -> None:
    """What was right, by method and by author, against naming one author every time."""
    cut = f", cut to {result.words} words" if result.words else ""
    out.print(literal(result.sentence[0].upper() + result.sentence[1:] + "."), soft_wrap=True)
    table = Table("method", title=f"{result.texts} texts ({result.lang or 'language not known'}){cut}, each left out")
    for column in ("right", "95 %", "weight", "Cllr", "Cllr_cal"):
        table.add_column(column, justify="right")
    for name, check in result.methods.items():
        low, high = check.interval
        weight = f"{result.weights[name]:.2f}" if name in result.weights and len(result.weights) > 1 else ""
        share = f"{low:.0%} – {high:.0%}"
        table.add_row(name, f"{check.right} of {check.of}", share, weight, f"{check.cllr:.2f}", f"{check.cllr_cal:.2f}")
    table.add_row("majority guess", f"{result.majority} of {result.best.of}", "", "", "", "")
    out.print(table)
    writers = Table("author", title="by author")
    for column in ("right", "named instead"):
        writers.add_column(column, justify="right" if column == "right" else "left")
    for name, counts in sorted(result.authors.items(), key=lambda item: (item[1]["right"] / item[1]["of"], item[0])):
        wrong = {other: n for other, n in result.confusion[name].items() if other != name}
        instead = ", ".join(
            f"{other} ({n})" for other, n in sorted(wrong.items(), key=lambda item: (-item[1], item[0]))
        )
        writers.add_row(literal(name), f"{counts['right']} of {counts['of']}", literal(instead))
    out.print(writers)
