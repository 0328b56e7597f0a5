"""The command that says who wrote a text: attribute."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from idiograph.cli.checks import check_choice, check_folder, check_page, check_reading, check_texts
from idiograph.cli.shared import (
    AsJson,
    Keep,
    Lang,
    Model,
    Patch,
    bar,
    err,
    literal,
    open_style,
    out,
    read_text,
    say,
    shorten_text,
    with_note,
    write_page,
)
from idiograph.errors import InputError, TooShort


def attribute_command(
    index_folder: Annotated[str, typer.Argument(metavar="INDEX", help="An index folder.")],
    texts: Annotated[
        list[Path],
        typer.Argument(help="Texts (txt, docx, …, pdf), folders of texts, or - for standard input."),
    ],
    k: Annotated[int, typer.Option("-k", help="How many candidates to show.", min=1)] = 5,
    model: Model = "default",
    patch: Patch = None,
    keep: Keep = None,
    method: Annotated[
        str, typer.Option(help="best (all, weighed by this library), or one: model, delta, letters, words, stable, ….")
    ] = "best",
    by: Annotated[
        str, typer.Option(help="Rank author-sets (set), or single authors over their sets (author).")
    ] = "set",
    candidates: Annotated[list[str] | None, typer.Option(help="Only these authors (ids or names).")] = None,
    unknown: Annotated[float, typer.Option(help="Your probability that it is none of them.", min=0.0, max=0.999)] = 0.5,
    pool: Annotated[bool, typer.Option("--pool", help="The texts are by one hand: ask about them together.")] = False,
    rolling: Annotated[bool, typer.Option("--rolling", help="Also say who wrote which part of each text.")] = False,
    window: Annotated[int, typer.Option(help="Words in the moving window.", min=50)] = 240,
    exact: Annotated[bool, typer.Option("--exact", help="Score every passage, also of a large index.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report with passages and audit trail.")] = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Write the candidates as a table.")] = None,
    lang: Lang = "any",
    as_json: AsJson = False,
) -> None:
    """Rank the authors of an index for each text. With likelihood ratios and the passages behind them."""
    check_texts(*texts)
    check_folder(index_folder, "index")
    check_choice("unit", by, ("set", "author"))
    check_reading(model, patch, keep)
    check_page(html, table)

    from idiograph.answer.attribute import attribute as attribute_
    from idiograph.answer.methods import check_method_name
    from idiograph.answer.report import attribution_page, index_provenance, search_in_words, write_candidates
    from idiograph.answer.rolling import rolling as rolling_
    from idiograph.index.index import Index

    check_method_name(method)
    asked = read_questions(texts, lang, pool)
    opened = Index.open(index_folder, open_style(model, patch, keep))
    how: dict[str, Any] = {"candidates": candidates or (), "exact": exact}
    answers = ask_each(asked, lambda text: attribute_(text, opened, k, by=by, unknown=unknown, method=method, **how))
    parts = {
        n: rolling_("\n\n".join(t), opened, k, window=window, by=by, method=method, **how)
        for n, t in asked.items()
        if rolling
    }
    trail = index_provenance(opened, by, candidates or (), unknown) | {"search": search_in_words(opened, exact, method)}
    if html:
        write_page(html, attribution_page(answers, parts, trail, bool(candidates)))
    if table:
        write_candidates(table, answers)
        err.print(f"wrote {table}", highlight=False, soft_wrap=True)
    found: dict[str, Any] = {
        name: {**a.to_json(), **({"rolling": parts[name].to_json()} if rolling else {}), "audit": trail}
        for name, a in answers.items()
    }
    say(found, as_json, lambda: print_answers(answers, parts))


def ask_each(asked: dict[str, list[str]], ask: Callable[[list[str]], Any]) -> dict[str, Any]:
    """The answer to each question, with progress."""
    answers = {}
    with bar("asking", len(asked)) as update:
        for number, (name, text) in enumerate(asked.items()):
            update(number, None, f"asking about {name}")
            answers[name] = ask(text)
    return answers


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
    check_texts(file)
    from idiograph.answer.pairs import text_passages

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
    from idiograph.corpus.formats import FORMATS, written_files

    found = list(written_files(path))
    if not found:
        raise InputError(f"there is no text in the folder '{path}'; give files such as {', '.join(FORMATS)}")
    return found


def print_answers(answers: dict[str, Any], parts: dict[str, Any]) -> None:
    for path, answer in answers.items():
        print_answer(path, answer)
        if path in parts:
            print_parts(parts[path])


def print_answer(path: str, answer: Any) -> None:
    if answer.sentence:
        out.print(literal(f"{answer.sentence[0].upper()}{answer.sentence[1:]}."), soft_wrap=True)
    for copy in answer.copies:
        held = f"{copy.share:.0%} of the text stands in '{copy.doc_id}', which is in the index"
        out.print(literal(held, style="yellow"), soft_wrap=True)
    table = Table(title=path)
    for name in ("", "candidate", "score", "log10 LR", "in words", "probability", "documents"):
        table.add_column(name, justify="left" if name in ("candidate", "in words") else "right")
    for rank, c in enumerate(answer.candidates, 1):
        words = with_note(c.words, "\ntopic may explain this" if c.topical else "", "yellow")
        sure = ("–", words, "–") if answer.refusals else (f"{c.llr:+.2f}", words, f"{c.probability:.0%}")
        said = (f"{c.score:.3f}", *sure, str(c.documents))
        table.add_row(str(rank), literal(", ".join(c.names)), *said)
    out.print(table)
    if answer.refusals:
        out.print("There is no ratio; the order is that of likeness alone.", style="yellow")
        return
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
        head = literal(f"\n{best.names[0]}, {e.title or e.doc_id} ", style="bold")
        out.print(head.append(f"(similarity {e.score:.3f}, {overlap})", style="not bold dim"))
        out.print(literal(f"  asked: {shorten_text(e.asked, 220)}\n  found: {shorten_text(e.found, 220)}"))


def print_parts(rolled: Any) -> None:
    table = Table("part", "given to", title=f"who wrote which part, by {rolled.method}")
    table.add_column("mean log10 LR", justify="right")
    for part in rolled.to_json()["parts"]:
        table.add_row(f"{part['start']}–{part['end']}", literal(part["owner"] or "nobody here"), f"{part['llr']:+.2f}")
    out.print(table)
