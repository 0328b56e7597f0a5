"""Commands that make models: train, tune, average."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from idiograph.cli.checks import (
    check_model,
    check_output,
    check_rankers,
    check_reading,
    check_report,
    check_runner,
    check_texts,
    check_training_output,
    check_triplets,
)
from idiograph.cli.shared import AsJson, Out, Overwrite, Preset, RecipeFile, bar, out, say, settings, wrote
from idiograph.errors import InputError, SpecError
from idiograph.extras import require_library
from idiograph.recipe import TrainRecipe, parse_setting, parse_settings
from idiograph.runner import MAX_WORKERS

if TYPE_CHECKING:
    from idiograph.neural.training.loop import Result
    from idiograph.neural.training.search import TrialOutcome


def train_command(
    triplets: Annotated[
        list[Path], typer.Argument(help="Triplet folders, or one configuration of one (data/all/base-4).")
    ],
    out_folder: Out,
    backbone: Annotated[
        str | None, typer.Option(help="Folder or Hugging Face name to begin with; default, minilm.")
    ] = None,
    patch: Annotated[str | None, typer.Option(help="whole, word, ngram:N, auto, cluster:N or learned:N.")] = None,
    loss: Annotated[str | None, typer.Option(help="infonce, triplet, margin, hard-margin or hybrid.")] = None,
    tau: Annotated[str | None, typer.Option(help="Temperature: learn, or a number.")] = None,
    batch: Annotated[int | None, typer.Option(help="Triplets a device and step.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Times through the triplets.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps, instead of epochs.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    teacher: Annotated[str | None, typer.Option(help="A ranker to learn from: default+0.5*ngrams, a model, …")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, another run.")] = None,
    more: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting of [train] that `idiograph recipe` lists."),
    ] = None,
    valid: Annotated[list[Path] | None, typer.Option(help="More triplets to validate on, of other fields.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    report_to: Annotated[list[str] | None, typer.Option(help="tensorboard, wandb or trackio.")] = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on triplets. A stopped run goes on where it was.

    These are the settings that most people turn. All others are keys of the table [train], which `idiograph recipe` lists and
    docs/training.md explains: take them from --recipe FILE, or give single ones with --set head=linear --set dim=128.
    """
    turned = {"backbone": backbone, "patch": patch, "loss": loss, "tau": parse_setting(tau) if tau else None}
    turned |= {"batch": batch, "epochs": epochs, "steps": steps, "lr": lr, "teacher": teacher, "seed": seed}
    chosen = train_settings(turned, more or (), preset, recipe_file)
    check_triplets(*triplets, *valid or ())
    check_reading(chosen.backbone, chosen.patch)
    if chosen.teacher:
        check_rankers([chosen.teacher])
    check_training_output(out_folder, overwrite)
    require_library("torch", "training")

    from idiograph.loading import folder_of, load_ranker
    from idiograph.neural.training.train import train_model_on as train_

    with bar("training") as update:
        options: dict[str, Any] = {"device": device, "overwrite": overwrite, "report_to": tuple(report_to or ())}
        options |= {
            "teacher": load_ranker(chosen.teacher, runtime="torch") if chosen.teacher else None,
            "progress": update,
        }
        result = train_(triplets, out_folder, folder_of(chosen.backbone), chosen, valid=tuple(valid or ()), **options)
    counts = {name: getattr(result, name) for name in ("steps", "best_step", "left_out")}
    say(counts | {"measures": dict(result.measures)}, as_json, lambda: wrote(out_folder, result_line(result)))


def train_settings(
    turned: Mapping[str, Any], more: Sequence[str], preset: str, recipe_file: Path | None
) -> TrainRecipe:
    """The settings of a run: a preset or a file, and on top of it options and what `--set` gives; nothing is given twice."""
    options = {key: value for key, value in turned.items() if value is not None}
    single = parse_settings("train", more)
    for key in options.keys() & single.keys():
        raise SpecError(f"'{key}' is set twice, by --{key} and by --set; leave one out")
    return settings(preset, recipe_file, {"train": options | single}).train


def result_line(result: "Result") -> str:
    """What came of a run, in a line."""
    less = f"; {result.left_out} rows left out, which are for validation or test elsewhere" if result.left_out else ""
    return f"trained {result.steps} steps, best at {result.best_step}{less}"


def tune_command(
    triplets: Annotated[list[Path], typer.Argument(help="Triplet folders, as for train.")],
    out_folder: Out,
    space: Annotated[Path, typer.Option(help="TOML: [space] with lists of choices and ranges, [train] with the rest.")],
    trials: Annotated[int, typer.Option(help="Draws from the space; a larger number prolongs a search.")] = 12,
    rungs: Annotated[int, typer.Option(help="Above 1: begin short, and let one in three go on for longer.")] = 1,
    steps: Annotated[int, typer.Option(help="Steps of a trial, in the last rung.")] = 500,
    valid: Annotated[list[Path] | None, typer.Option(help="More triplets to validate on, of other fields.")] = None,
    backbone: Annotated[str, typer.Option(help="Folder or Hugging Face name to begin with.")] = "default",
    seed: Annotated[int, typer.Option(help="Another seed, other draws.")] = 7,
    ablate: Annotated[bool, typer.Option("--ablate", help="Draw nothing; try each choice by itself.")] = False,
    runner: Annotated[str, typer.Option(help="Where trials run: inline, processes or ray.")] = "inline",
    workers: Annotated[int, typer.Option(help="Trials at once.", min=1, max=MAX_WORKERS)] = 1,
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    preset: Preset = "sound",
    as_json: AsJson = False,
) -> None:
    """Search for settings by validation alone. A stopped search goes on where it was; the best model is in OUT/best."""
    check_triplets(*triplets, *valid or ())
    check_texts(space)
    check_model(backbone)
    check_report(out_folder)
    check_runner(runner)

    from idiograph.neural.training.search import SearchPlan, read_space

    searched = read_space(space, preset)
    require_library("torch", "a search for settings")

    from idiograph.loading import folder_of
    from idiograph.neural.training.search import search_settings as tune_
    from idiograph.runner import Workers

    search = SearchPlan(trials, rungs, steps, seed, Workers(runner, workers, address), ablate)
    options: dict[str, Any] = {"valid": tuple(valid or ()), "device": device, "preset": preset}
    with bar("searching") as update:
        options |= {"backbone": folder_of(backbone), "progress": update}
        found = tune_(triplets, out_folder, searched, search, **options)
    show = print_ablation if ablate else print_search
    rows = ablation(searched.alone(), found) if ablate else [row_of(outcome) for outcome in found]
    say(rows, as_json, lambda: show(rows, out_folder))


def row_of(found: "TrialOutcome") -> dict[str, Any]:
    return {"trial": found.trial.number, "steps": found.trial.steps, "score": found.score, **found.trial.settings}


def print_search(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """The outcomes from the best down, with the settings in which they differ."""
    varied = [key for key in rows[0] if len({str(row[key]) for row in rows}) > 1 and key not in ("trial", "score")]
    table = Table(title="mean R@20 on validation, from the best down")
    for column in ("trial", "R@20", *varied):
        table.add_column(column, justify="right")
    for row in rows:
        score = "broke down" if row["score"] is None else f"{row['score']:.4f}"
        table.add_row(str(row["trial"]), score, *(str(row[key]) for key in varied))
    out.print(table)
    wrote(folder / "best", f"tried {len(rows)} runs")


def ablation(changes: Sequence[Mapping[str, Any]], found: Sequence["TrialOutcome"]) -> list[dict[str, Any]]:
    """What each trial changed and what came of it, in the order of the space; the first changed nothing."""
    at = {outcome.trial.number: outcome for outcome in found}
    kept = ((change, at[number]) for number, change in enumerate(changes))
    return [
        {"changed": dict(change), "score": one.score, "step": one.step, "measures": dict(one.measures)}
        for change, one in kept
    ]


def print_ablation(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """One line for each choice: R@20 of every validation set, their mean, its distance from the first line, and at which
    step it was best: a run at step 0 kept what it began with."""
    whole, first = "/R@20", rows[0]["score"]
    sets = [key for key in rows[0]["measures"] if key.endswith(whole)]
    table = Table(title="R@20 on validation; each line changes one thing of the first")
    for column in ("changed", "mean", "difference", "step", *(key.removesuffix(whole) for key in sets)):
        table.add_column(column, justify="left" if column == "changed" else "right")
    for row in rows:
        score, measures = row["score"], row["measures"]
        said = ", ".join(f"{key} {value}" for key, value in row["changed"].items()) or "nothing"
        far = "" if score is None or first is None or row is rows[0] else f"{score - first:+.4f}"
        mean = "broke down" if score is None else f"{score:.4f}"
        step = "" if row["step"] is None else str(row["step"])
        table.add_row(said, mean, far, step, *(f"{measures[key]:.3f}" if key in measures else "" for key in sets))
    out.print(table)
    wrote(folder / "best", f"tried {len(rows)} runs")


def average_command(
    models: Annotated[list[Path], typer.Argument(help="Folders of models that began with the same weights.")],
    out_folder: Out,
    half: Annotated[bool, typer.Option("--half", help="Write the weights in 16 bits.")] = False,
    wording: Annotated[float, typer.Option(help="How many times as much the layer of wordings counts.")] = 1.0,
    overwrite: Overwrite = False,
) -> None:
    """Average the weights of several trained models into one."""
    for model in models:
        if not model.is_dir():
            raise InputError(f"there is no model in '{model}'; name a folder that idiograph train wrote")
    check_output(out_folder, overwrite)
    require_library("torch", "averaging models")

    from idiograph.neural.training.average import average_models

    average_models(models, out_folder, half=half, wording=wording, overwrite=overwrite)
    wrote(out_folder, f"averaged {len(models)} models" if len(models) > 1 else "one model, written anew")
