"""Commands about the PAN shared tasks: score answers, and put rankers to PAN19."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from idiograph.cli.checks import check_rankers, check_report, check_texts
from idiograph.cli.shared import AsJson, Keep, Preset, RecipeFile, bar, out, say, settings, with_note
from idiograph.errors import InputError


def pan_command(
    truth: Annotated[Path, typer.Argument(help="truth.jsonl, or a PAN19 folder with its truth.")],
    answers: Annotated[Path, typer.Argument(help="answers.jsonl, or a folder with answers-PROBLEM.json.")],
    as_json: AsJson = False,
) -> None:
    """Score a submission as the PAN evaluators do. Verification (PAN20 to 23) or attribution (PAN19)."""
    check_texts(truth, answers)
    if truth.is_dir():
        found = attribution_scores(truth, answers)
    else:
        from idiograph.evaluate.pan import read_pan_answers, read_pan_truth, scores

        found = scores(read_pan_truth(truth), read_pan_answers(answers))
    say(found, as_json, lambda: print_scores(found))


def attribution_scores(truth: Path, answers: Path) -> dict[str, float]:
    """Macro-F1 of every problem, and their mean."""
    from idiograph.evaluate.problems import macro_f1, read_problem_answers, read_problems

    problems = read_problems(truth)
    found = {each.name: macro_f1(each.truth, read_problem_answers(answers, each.name)) for each in problems}
    found["overall"] = sum(found.values()) / len(found)
    return {name: round(value, 3) for name, value in found.items()}


def print_scores(found: dict[str, float]) -> None:
    for name, value in found.items():
        out.print(f"{name:<14}{value:.3f}", highlight=False)


def pan19_command(
    rankers: Annotated[
        list[str], typer.Argument(help="Rankers as for `evaluate`, and last the PAN19 folder or JSON lines file.")
    ],
    patch: Annotated[list[str] | None, typer.Option(help="Read the models at this grain; may be repeated.")] = None,
    keep: Keep = None,
    lang: Annotated[str | None, typer.Option(help="en, fr, it, es, or `any` for all.")] = None,
    window: Annotated[int | None, typer.Option(help="Tokens that a model reads at once.", min=4)] = None,
    words: Annotated[int | None, typer.Option(help="Words that every ranker reads of a text; 0: all.", min=0)] = None,
    known: Annotated[str | None, typer.Option(help="A candidate's texts joined, or the mean over each.")] = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    out_folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write pan19.json, pan19.md and each ranker's answers.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put rankers to the PAN19 attribution problems. RANKER [RANKER …] PAN19: does the true candidate score highest?"""
    if len(rankers) < 2:
        raise InputError("name at least one ranker and the problems: idiograph pan19 default bm25 pan19/")
    chosen = settings(preset, recipe_file, {"pan": {"lang": lang, "window": window, "words": words, "known": known}})
    check_texts(Path(rankers[-1]))
    check_report(out_folder)
    check_rankers(rankers[:-1], patch or (), keep)

    from idiograph.cli.models import open_rankers, reading_of_name
    from idiograph.evaluate.pan19 import evaluate_attribution
    from idiograph.evaluate.problems import read_problems

    problems = read_problems(Path(rankers[-1]), chosen.pan.lang)
    found: list[Any] = []
    with bar("comparing", len(problems)) as update:
        options = {**reading_of_name(chosen, keep), "window": chosen.pan.window}
        for ranker in open_rankers(rankers[:-1], patch or [], options):
            found.append(evaluate_attribution(ranker, problems, chosen.pan, update))
    if out_folder:
        write_pan_report(found, out_folder, preset)
    say([one.to_json() for one in found], as_json, lambda: print_found(found, preset))


def write_pan_report(found: Sequence[Any], folder: Path, preset: str) -> None:
    from idiograph.evaluate.pan19 import attribution_as_markdown
    from idiograph.evaluate.problems import write_problem_answers

    folder.mkdir(parents=True, exist_ok=True)
    body = {"preset": preset, "rankers": [one.to_json() for one in found]}
    (folder / "pan19.json").write_text(json.dumps(body, indent=1), encoding="utf-8")
    (folder / "pan19.md").write_text(attribution_as_markdown(found) + "\n", encoding="utf-8")
    for one in found:
        for each in one.attributed:
            name = one.ranker.replace(" @ ", "@").replace("/", "-").replace(":", "-")
            write_problem_answers(each.answers(), folder / "answers" / name, each.problem.name)


def print_found(found: Sequence[Any], preset: str) -> None:
    from idiograph.evaluate.published import PAN19

    first = found[0]
    table = Table(title=f"PAN19 {first.lang}, {preset}: {first.texts} texts by {first.authors} authors")
    for name in ("ranker", "triplet accuracy", "paper", "attribution accuracy", "macro-F1"):
        table.add_column(name, justify="left" if name == "ranker" else "right")
    for one in found:
        grain = one.ranker.rpartition(" @ ")[2]
        paper = f"{PAN19[grain]:.3f}" if grain in PAN19 and one.lang == "en" else "–"
        cells = [with_note(f"{r.value:.3f}", f" {r.low:.3f}–{r.high:.3f}") for r in one.rows[:2]]
        table.add_row(one.ranker, cells[0], paper, cells[1], f"{one['macro-F1'].value:.3f}")
    out.print(table)
    out.print("95 % intervals over authors; paper: its model trained at that grain.", style="dim")
