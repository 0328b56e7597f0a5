"""The command that says who wrote a text: attribute."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from idiograph import __version__
from idiograph.cli.shared import AsJson, Keep, Lang, Model, Patch, err, open_style, out, read_text, say
from idiograph.errors import InputError, TooShort

COLUMNS = ("text", "rank", "authors", "names", "score", "log10_lr", "in_words", "probability", "documents")
COLUMNS += ("topic_warning", "none_of_these", "evidence_document", "evidence_score", "evidence_overlap")


def attribute_command(
    index_folder: Annotated[str, typer.Argument(metavar="INDEX", help="An index folder.")],
    texts: Annotated[list[Path], typer.Argument(help="Text files, folders of .txt files, or - for standard input.")],
    k: Annotated[int, typer.Option("-k", help="How many candidates to show.", min=1)] = 5,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    by: Annotated[
        str, typer.Option(help="Rank author-sets (set), or single authors over their sets (author).")
    ] = "set",
    candidates: Annotated[list[str] | None, typer.Option(help="Only these authors (ids or names).")] = None,
    unknown: Annotated[float, typer.Option(help="Your probability that it is none of them.", min=0.0, max=0.999)] = 0.5,
    pool: Annotated[bool, typer.Option("--pool", help="The texts are by one hand: ask about them together.")] = False,
    rolling: Annotated[bool, typer.Option("--rolling", help="Also say who wrote which part of each text.")] = False,
    window: Annotated[int, typer.Option(help="Sentences in the moving window.", min=1)] = 8,
    exact: Annotated[bool, typer.Option("--exact", help="Score every passage, also of a large index.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report with passages and audit trail.")] = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Write the candidates as a table.")] = None,
    lang: Lang = "en",
    as_json: AsJson = False,
) -> None:
    """Rank the authors of an index for each text, with likelihood ratios and the passages behind them."""
    from idiograph.answer.attribute import attribute as attribute_
    from idiograph.answer.rolling import rolling as rolling_
    from idiograph.index.index import Index

    asked = read_questions(texts, lang, pool)
    opened = Index.open(index_folder, open_style(model, patch, keep))
    only = candidates or ()
    how: dict[str, Any] = {"candidates": only, "exact": exact}
    answers = {n: attribute_(t, opened, k, by=by, unknown=unknown, **how) for n, t in asked.items()}
    parts = {n: rolling_("\n\n".join(t), opened, k, window=window, **how) for n, t in asked.items() if rolling}
    trail = index_provenance(opened, by, only, unknown) | {"search": search_texts(len(opened), exact)}
    if html:
        html.write_text(write_attribution_page(answers, parts, trail, bool(only)), encoding="utf-8")
        err.print(f"wrote {html}", highlight=False, soft_wrap=True)
    if table:
        write_table(table, answers)
        err.print(f"wrote {table}", highlight=False, soft_wrap=True)
    found: dict[str, Any] = {
        name: {**a.to_json(), **({"rolling": parts[name].to_json()} if rolling else {}), "audit": trail}
        for name, a in answers.items()
    }
    say(found, as_json, lambda: print_answers(answers, parts))


def read_questions(paths: Sequence[Path], lang: str, pool: bool) -> dict[str, list[str]]:
    """Name → texts: each file is a question, or all together are one."""
    found: dict[str, list[str]] = {}
    for path in paths:
        for file in list_candidates(path):
            name = "pooled" if pool else str(file)
            found[name] = [*(found.get(name, []) if pool else []), long_enough(file, lang)]
    return found


def long_enough(file: Path, lang: str) -> str:
    """A text that something can be said about; what is too short is refused before a model is opened."""
    from idiograph.answer.passages import text_passages

    text = read_text(file, lang)
    try:
        text_passages(text)
    except TooShort as error:
        raise TooShort(f"'{file}': {error}") from error
    return text


def list_candidates(path: Path) -> list[Path]:
    """The texts of a folder, or the file itself."""
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob("*.txt"))
    if not found:
        raise InputError(f"there is no .txt file in the folder '{path}'")
    return found


def search_texts(passages: int, exact: bool) -> str:
    """How candidates were found, in words."""
    from idiograph.answer.ranking import LARGE, NEAR, PANEL

    if exact or passages <= LARGE:
        return "every passage was scored"
    return f"the {NEAR} candidates who seem nearest were scored, and {PANEL} drawn at random who stand for the others"


def index_provenance(index: Any, by: str, candidates: Sequence[str], unknown: float) -> dict[str, Any]:
    """What somebody else needs to do it again."""
    from idiograph.answer.openset import calibration_of_index
    from idiograph.store import timestamp

    known = calibration_of_index(index, by).calibration
    return {
        "version": f"idiograph {__version__}",
        "date": timestamp(),
        "model": index.about["model"],
        "model fingerprint": index.style.fingerprint,
        "score": index.style.score,
        "index": index.where,
        "corpus": index.about.get("source") or "not recorded",
        "index version": index.version,
        "preset": index.about.get("preset", "sound"),
        "passages": len(index),
        "settings": str(index.recipe.model_dump()),
        "candidates": ", ".join(candidates) if candidates else f"every {by} of the index",
        "prior of 'none of these'": 0.0 if candidates else unknown,
        "calibration": f"{known.method}, {known.same} same-author and {known.different} different-author comparisons, "
        f"log10 LR from {known.low:+.2f} to {known.high:+.2f}",
    }


def write_attribution_page(answers: dict[str, Any], parts: dict[str, Any], trail: dict[str, Any], closed: bool) -> str:
    from idiograph.html import render
    from idiograph.plots.curves import along_axis

    shown = []
    for name, answer in answers.items():
        rolled = parts.get(name)
        figure, rows = "", []
        if rolled:
            names = [", ".join(n) for n in rolled.candidates]
            figure = along_axis([start for start, _ in rolled.windows], rolled.llr, names, rolled.owners)
            rows = rolled.to_json()["parts"]
        shown.append({"name": name, "answer": answer, "figure": figure, "parts": rows})
    return render("attribute.html", title="Who wrote this?", questions=shown, audit=trail, closed=closed)


def write_table(path: Path, answers: dict[str, Any]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for name, answer in answers.items():
            for rank, c in enumerate(answer.candidates, 1):
                best = c.evidence[0]
                row = [name, rank, "; ".join(c.authors), "; ".join(c.names), f"{c.score:.4f}", f"{c.llr:.3f}", c.words]
                row += [f"{c.probability:.4f}", c.documents, c.topical, f"{answer.none.probability:.4f}"]
                writer.writerow(
                    [*map(harmless, row), harmless(best.doc_id), f"{best.score:.4f}", f"{best.overlap:.3f}"]
                )


def harmless(value: Any) -> Any:
    """A cell that a spreadsheet does not take for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=@\t" else value


def print_answers(answers: dict[str, Any], parts: dict[str, Any]) -> None:
    for path, answer in answers.items():
        print_answer(path, answer)
        if path in parts:
            print_parts(parts[path])


def print_answer(path: str, answer: Any) -> None:
    table = Table(title=path)
    for name in ("", "candidate", "score", "log10 LR", "in words", "probability", "documents"):
        table.add_column(name, justify="left" if name in ("candidate", "in words") else "right")
    for rank, c in enumerate(answer.candidates, 1):
        warning = "\n[yellow]topic may explain this[/yellow]" if c.topical else ""
        said = (f"{c.score:.3f}", f"{c.llr:+.2f}", c.words + warning, f"{c.probability:.0%}", str(c.documents))
        table.add_row(str(rank), Text(", ".join(c.names)), *said)
    out.print(table)
    out.print(
        f"Is the writer here at all? log10 LR {answer.none.llr:+.2f}, {answer.none.words}; "
        f"none of these: {answer.none.probability:.0%} (before the text: {answer.none.prior:.0%})",
        highlight=False,
    )
    if answer.none_stands_out:
        out.print("None of these stands out: the text may be by somebody who is not in the index.", style="yellow")
    best = answer.candidates[0]
    for e in best.evidence:
        overlap = f"{100 * e.overlap:.0f} % shared content words" + (": topic could explain it" if e.topical else "")
        head = Text(f"\n{best.names[0]}, {e.title or e.doc_id} ", style="bold")
        out.print(head.append(f"(similarity {e.score:.3f}, {overlap})", style="not bold dim"))
        out.print(Text(f"  asked: {shorten_line(e.asked)}\n  found: {shorten_line(e.found)}"))


def print_parts(rolled: Any) -> None:
    table = Table("part", "given to", title="who wrote which part")
    table.add_column("mean log10 LR", justify="right")
    for part in rolled.to_json()["parts"]:
        table.add_row(f"{part['start']}–{part['end']}", Text(part["owner"] or "nobody here"), f"{part['llr']:+.2f}")
    out.print(table)


def shorten_line(text: str, size: int = 220) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"
