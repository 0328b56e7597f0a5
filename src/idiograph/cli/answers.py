"""Commands that answer: index, attribute, verify, explain, demo."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from idiograph import __version__
from idiograph.cli.models import print_reports
from idiograph.cli.shared import (
    AsJson,
    Keep,
    Lang,
    Model,
    Out,
    Overwrite,
    Patch,
    Preset,
    RecipeFile,
    bar,
    err,
    open_style,
    out,
    read_text,
    say,
    settings,
    wrote,
)
from idiograph.errors import InputError


def index(
    corpus_folder: Annotated[Path, typer.Argument(metavar="CORPUS", help="A corpus folder.")],
    out_folder: Out,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    add: Annotated[bool, typer.Option("--add", help="Add to the index, replacing documents that are there.")] = False,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Embed a corpus into an index that can be asked who wrote a text."""
    from idiograph.answer.attribute import background
    from idiograph.answer.index import Index
    from idiograph.corpus.documents import Corpus

    chosen = settings(preset, recipe_file, {"style": {"keep": keep}})
    opened = Corpus(corpus_folder)
    style = open_style(model, patch, keep, chosen.style.score)
    with bar("embedding passages") as update:
        if add:
            built = Index.open(out_folder, style)
            built.add(opened)
        else:
            source = opened.manifest.fingerprint
            built = Index.build(
                opened, out_folder, style, chosen.index, source=source, overwrite=overwrite, progress=update
            )
        update(len(built), len(built), "calibrating")
        note = calibrated(lambda: background(built))
    found = {"passages": len(built), "model": style.name, "fingerprint": style.fingerprint, "calibration": note}
    say(found, as_json, lambda: wrote(out_folder, f"{len(built)} passages, {style.name}; {note}"))


def calibrated(learn: Callable[[], Any]) -> str:
    try:
        known = learn().calibration
    except InputError as error:
        return f"not calibrated: {error}"
    return f"calibrated on {known.same} same-author and {known.different} different-author comparisons"


def attribute(
    index_folder: Annotated[Path, typer.Argument(metavar="INDEX", help="An index folder.")],
    texts: Annotated[list[Path], typer.Argument(help="Text files, or - for standard input.")],
    k: Annotated[int, typer.Option("-k", help="How many candidates to show.", min=1)] = 5,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    candidates: Annotated[list[str] | None, typer.Option(help="Only these authors (ids or names).")] = None,
    lang: Lang = "en",
    as_json: AsJson = False,
) -> None:
    """Rank the authors of an index for each text, with likelihood ratios and the passages behind them."""
    from idiograph.answer.attribute import attribute as attribute_
    from idiograph.answer.index import Index

    asked = [(path, read_text(path, lang)) for path in texts]
    opened = Index.open(index_folder, open_style(model, patch, keep))
    answers = {str(path): attribute_(text, opened, k, candidates=candidates or ()) for path, text in asked}
    found = {
        path: {"none_stands_out": a.none_stands_out, "candidates": [c.to_json() for c in a.candidates]}
        for path, a in answers.items()
    }
    say(found, as_json, lambda: print_answers(answers))


def print_answers(answers: dict[str, Any]) -> None:
    for path, answer in answers.items():
        print_answer(path, answer)


def print_answer(path: str, answer: Any) -> None:
    table = Table(title=path)
    for name in ("", "author-set", "score", "log10 LR", "in words", "documents"):
        table.add_column(name, justify="right" if name in ("", "score", "log10 LR", "documents") else "left")
    for rank, c in enumerate(answer.candidates, 1):
        warning = "\n[yellow]topic may explain this[/yellow]" if c.topical else ""
        table.add_row(
            str(rank), ", ".join(c.names), f"{c.score:.3f}", f"{c.llr:+.2f}", c.words + warning, str(c.documents)
        )
    out.print(table)
    if answer.none_stands_out:
        out.print("None of these stands out: the text may be by somebody who is not in the index.", style="yellow")
    best = answer.candidates[0]
    for e in best.evidence:
        overlap = f"{100 * e.overlap:.0f} % shared content words" + (": topic could explain it" if e.topical else "")
        out.print(
            f"\n[bold]{best.names[0]}[/bold], {e.title or e.doc_id} [dim](similarity {e.score:.3f}, {overlap})[/dim]"
        )
        out.print(Text(f"  asked: {shorten(e.asked)}\n  found: {shorten(e.found)}"))


def shorten(text: str, size: int = 220) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"


def verify(
    a: Annotated[Path, typer.Argument(help="A text file, or - for standard input.")],
    b: Annotated[Path, typer.Argument(help="Another text file.")],
    corpus_folder: Annotated[
        Path | None, typer.Option("--corpus", help="Calibrate on this corpus folder instead of the built-in one.")
    ] = None,
    prior: Annotated[float, typer.Option(help="Your odds that one person wrote both, before this.", min=1e-9)] = 1.0,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    lang: Lang = "en",
    as_json: AsJson = False,
) -> None:
    """One writer or two? A calibrated likelihood ratio for a pair of texts."""
    from idiograph.answer.verify import background, passages
    from idiograph.answer.verify import verify as verify_
    from idiograph.corpus.anthology import anthology
    from idiograph.corpus.documents import Corpus

    one, two = read_text(a, lang), read_text(b, lang)
    for text in (one, two):
        passages(text)  # a text that is too short is refused before the model is opened
    style = open_style(model, patch, keep)
    source = str(corpus_folder) if corpus_folder else "built-in anthology"
    documents = Corpus(corpus_folder) if corpus_folder else anthology()
    with err.status("calibrating"):
        known = background(documents, style, source)
    verdict = verify_(one, two, style, known, prior)
    say(verdict.to_json(), as_json, lambda: print_verdict(verdict))


def print_verdict(v: Any) -> None:
    out.print(f"log10 LR {v.llr:+.2f}: {v.words}", style="bold", highlight=False)
    out.print(f"The resemblance is {v.times}.", highlight=False)
    out.print(
        f"With prior odds of {v.prior_odds:g}:1 that one person wrote both: {v.probability:.0%}.", highlight=False
    )
    if v.topic_warning:
        out.print(f"They share {v.overlap:.0%} of their content words: topic alone could explain it.", style="yellow")
    known = v.calibration
    out.print(
        f"Calibrated on {known.same} same-author and {known.different} different-author pairs of {known.source}; "
        "it holds for texts like those. Evidence, not a verdict.",
        style="dim",
    )


def explain(
    a: Annotated[Path, typer.Argument(help="A text file, or - for standard input.")],
    b: Annotated[Path, typer.Argument(help="Another text file.")],
    html: Annotated[Path | None, typer.Option(help="Write a page with the two texts side by side.")] = None,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    score: Annotated[str, typer.Option(help="maxsim, meansim or symmetric.")] = "meansim",
    count: Annotated[int, typer.Option("--count", "-n", help="Matches to list.", min=1)] = 12,
    as_json: AsJson = False,
) -> None:
    """Show which patch of one text matched which of the other; the parts add up to the score."""
    from idiograph.answer.explain import explain as explain_
    from idiograph.answer.linked import linked
    from idiograph.pages import render

    found = explain_(read_text(a), read_text(b), open_style(model, patch, keep, score))
    if html:
        best = found.best(count)
        values = linked(found, a.name, b.name)
        about = {"title": f"{a.name} and {b.name}", "score": found.score, "scorer": found.scorer, "patch": found.patch}
        html.write_text(render("explain.html", best=best, **about, **values), encoding="utf-8")
        err.print(f"wrote {html}", highlight=False, soft_wrap=True)
    say(asdict(found), as_json, lambda: print_matches(found, count))


def print_matches(found: Any, count: int) -> None:
    out.print(f"score {found.score:.4f} ({found.scorer} over {found.patch} patches)", highlight=False)
    out.print(shaded(found))
    table = Table("in the first", "in the second")
    for name in ("similarity", "part of the score"):
        table.add_column(name, justify="right")
    for left, right, match in found.best(count):
        table.add_row(Text(left), Text(right), f"{match.similarity:.3f}", f"{match.part:.5f}")
    out.print(table)


def shaded(found: Any) -> Text:
    """The first text, coloured by how near its counterpart is."""
    from idiograph.answer.linked import shades

    forward = [m for m in found.matches if not m.from_b]
    text = Text(found.a)
    for match, shade in zip(forward, shades([m.similarity for m in forward]), strict=True):
        style = "bold green" if shade > 0.9 else "green" if shade > 0.7 else "cyan" if shade > 0.4 else "dim"
        text.stylize(style, match.start, match.end)
    return text


def demo(
    out_folder: Annotated[Path, typer.Option("--out", "-o", help="Where to put the folders and the report.")] = Path(
        "demo"
    ),
    as_json: AsJson = False,
) -> None:
    """The whole line on the built-in corpus, ending in an HTML report."""
    from idiograph.demo import demo as demo_

    with bar("demo") as update:
        found = demo_(out_folder, lambda what, done, total: update(done, total, what), __version__)
    right = sum(q.rank == 1 for q in found.asked)
    about = {"report": str(found.page), "seconds": found.seconds, "right": right, "asked": len(found.asked)}
    value = {**about, "cllr": found.cllr, "evaluation": [r.to_json() for r in found.reports]}
    say(value, as_json, lambda: print_demo(found, right))


def print_demo(found: Any, right: int) -> None:
    print_reports(found.reports)
    out.print(
        f"{right} of {len(found.asked)} unseen essays went to their writer; Cllr {found.cllr:.3f}", highlight=False
    )
    out.print(f"The report ({found.seconds:.0f} s): [bold]{found.page.resolve()}[/bold]", highlight=False)
