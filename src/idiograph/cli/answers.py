"""Commands that answer: explain, demo."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from idiograph import __version__
from idiograph.cli.checks import check_folder, check_page, check_reading, check_report, check_sources, check_texts
from idiograph.cli.models import print_reports
from idiograph.cli.shared import (
    AsJson,
    Keep,
    Model,
    Patch,
    bar,
    err,
    literal,
    open_style,
    out,
    read_text,
    say,
    with_note,
    write_page,
)
from idiograph.cli.verification import print_shares, read_population
from idiograph.errors import SpecError
from idiograph.html import as_sentence


def explain_command(
    a: Annotated[Path, typer.Argument(help="A text file, or - for standard input.")],
    b: Annotated[Path, typer.Argument(help="Another text file.")],
    reference: Annotated[
        str | None,
        typer.Option(
            help="Explain the ratio that `verify` gives among these texts of known writers, not the model's score."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the two texts side by side.")] = None,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    score: Annotated[str | None, typer.Option(help="maxsim, meansim or symmetric; default: the model's own.")] = None,
    count: Annotated[int, typer.Option("--count", "-n", help="Matches to list.", min=1)] = 12,
    corpus_folder: Annotated[
        Path | None, typer.Option("--corpus", help="Read habits against this corpus, not against the built-in essays.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which patches and habits of two texts match. The parts add up to the whole."""
    check_texts(a, b)
    check_page(html)
    if reference:
        if corpus_folder or score:
            raise SpecError("--reference takes the place of --corpus and --score; give it without them")
        check_sources([reference])
        check_reading(model, patch, keep)
        population = read_population(reference, lambda: open_style(model, patch, keep))
        explain_among(a, b, (reference, population), html, count, as_json)
        return
    check_reading(model, patch, keep, score)
    if corpus_folder:
        check_folder(corpus_folder, "corpus")

    from idiograph.answer.explain import explain as explain_
    from idiograph.answer.habits import compare_habits, norms_of_corpus
    from idiograph.answer.report import explanation_page
    from idiograph.corpus.corpus import Corpus

    one, two = read_text(a), read_text(b)
    known = norms_of_corpus(Corpus(corpus_folder)) if corpus_folder else None
    found = explain_(one, two, open_style(model, patch, keep, score))
    habits = compare_habits(one, two, known)
    if html:
        write_page(html, explanation_page(found, habits, a.name, b.name, count))
    value = {**found.to_json(), "habits": habits.to_json()}
    say(value, as_json, lambda: print_explained(found, habits, count))


def explain_among(a: Path, b: Path, reference: tuple[str, Any], html: Path | None, count: int, as_json: bool) -> None:
    """What the ratio of two texts among a reference rests on."""
    from idiograph.answer.explain import explain as explain_
    from idiograph.answer.report import verdict_page, verdict_trail

    with err.status("comparing the texts of the reference"):
        found = explain_(
            a if str(a) != "-" else read_text(a), b if str(b) != "-" else read_text(b), reference=reference[1]
        )
    if html:
        names = (str(a), str(b))
        write_page(html, verdict_page(found, names, verdict_trail(found, names, reference, {})))
    say(found.to_json(), as_json, lambda: print_reasons(found, count))


def print_reasons(found: Any, count: int) -> None:
    """What each method adds, the features that carry it, and passages where they stand."""
    out.print(literal(as_sentence(found.verdict.sentence), style="bold"), soft_wrap=True)
    print_shares(found.verdict, count)
    for name, text, passages in (("first", found.a, found.in_a), ("second", found.b, found.in_b)):
        for each in passages:
            out.print(literal(f"\nin the {name}, from character {each.start}", style="dim"))
            out.print(marked_passage(text, each))


def marked_passage(text: str, passage: Any) -> Text:
    """A passage with the features that speak for one hand in green, for two in red."""
    shown = literal(text[passage.start : passage.end])
    for mark in passage.marks:
        shown.stylize("green" if mark.share > 0 else "red", mark.start - passage.start, mark.end - passage.start)
    return shown


def print_explained(found: Any, habits: Any, count: int) -> None:
    from idiograph.answer.report import strongest_habits

    print_matches(found, count)
    if found.cut:
        out.print(
            "A text is longer than what the model reads at once: only its beginning was compared.", style="yellow"
        )
    table = Table("habit", title=f"habits, against {habits.background}; agreements sum to {habits.total:+.1f}")
    for name in ("first", "second", "usual", "z", "z", "agreement"):
        table.add_column(name, justify="right")
    for h in strongest_habits(habits.rows, count):
        usual = f"{h.usual:.2f} ± {h.spread:.2f}"
        said = (f"{h.a:.2f}", f"{h.b:.2f}", usual, f"{h.z_a:+.1f}", f"{h.z_b:+.1f}", f"{h.agreement:+.2f}")
        table.add_row(literal(f"{h.kind}: {h.name}"), *said)
    out.print(table)


def print_matches(found: Any, count: int) -> None:
    out.print(f"score {found.score:.4f} ({found.scorer} over {found.patch} patches)", highlight=False)
    out.print(shade_matches(found))
    table = Table("in the first", "in the second")
    for name in ("similarity", "part of the score"):
        table.add_column(name, justify="right")
    for left, right, match in found.best(count):
        table.add_row(literal(left), literal(right), f"{match.similarity:.3f}", f"{match.part:.5f}")
    out.print(table)


def shade_matches(found: Any) -> Text:
    """The first text, coloured by how near its counterpart is."""
    from idiograph.answer.report import match_shades

    forward = [m for m in found.matches if not m.from_b]
    text = literal(found.a)
    for match, shade in zip(forward, match_shades([m.similarity for m in forward]), strict=True):
        style = "bold green" if shade > 0.9 else "green" if shade > 0.7 else "cyan" if shade > 0.4 else "dim"
        text.stylize(style, match.start, match.end)
    return text


def demo_command(
    out_folder: Annotated[Path, typer.Option("--out", "-o", help="Where to put the folders and the report.")] = Path(
        "demo"
    ),
    as_json: AsJson = False,
) -> None:
    """Run the whole line on the built-in essays, to a report."""
    check_report(out_folder)

    from idiograph.demo import run_demo as demo_

    with bar("demo") as update:
        found = demo_(out_folder, update, __version__)
    right = sum(q.rank == 1 for q in found.asked)
    about = {"report": str(found.page), "seconds": found.seconds, "right": right, "asked": len(found.asked)}
    value = {**about, "cllr": found.cllr, "evaluation": [r.to_json() for r in found.reports]}
    say(value, as_json, lambda: print_demo(found, right))


def print_demo(found: Any, right: int) -> None:
    print_reports(found.reports)
    out.print(
        f"{right} of {len(found.asked)} unseen essays went to their writer; Cllr {found.cllr:.3f}", highlight=False
    )
    out.print(with_note(f"The report ({found.seconds:.0f} s): ", str(found.page.resolve()), "bold"), soft_wrap=True)
