"""The command that runs the study."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from idiograph import __version__
from idiograph.cli.checks import check_model, check_report, check_runner, check_sources, check_texts
from idiograph.cli.shared import Address, AsJson, Out, Preset, RecipeFile, bar, say, settings, wrote
from idiograph.errors import InputError
from idiograph.extras import require_library


def study_command(
    sources: Annotated[
        list[str], typer.Argument(help="Corpus folders, triplet folders, or `anthology`, the built-in corpus.")
    ],
    out_folder: Out,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small one, in minutes: it illustrates and decides nothing.")
    ] = False,
    backbone: Annotated[
        list[str] | None, typer.Option(help="Model folder or Hugging Face name, or NAME=FOLDER; may be repeated.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of training, the same for every model.", min=1)] = None,
    stage: Annotated[
        list[str] | None, typer.Option(help="Only these of mine, pack, models, report; may be repeated.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Triplets of each configuration and corpus to train on.", min=1)
    ] = None,
    anchors: Annotated[int | None, typer.Option(help="Anchors of each configuration and corpus.", min=2)] = None,
    pool: Annotated[
        int | None, typer.Option(help="Spans that each anchor is compared with, of its corpus.", min=2)
    ] = None,
    pan: Annotated[Path | None, typer.Option(help="PAN attribution problems, for the zero-shot table.")] = None,
    semantic: Annotated[
        str | None,
        typer.Option(help="A model of meaning, [NAME=]FOLDER or Hugging Face name, or an .npz file of vectors."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    workers: Annotated[
        int, typer.Option(help="Models trained at a time; 0: one after the other, in this process.")
    ] = 0,
    runner: Annotated[
        str | None, typer.Option(help="Where models are trained: inline, processes or ray; default: by --workers.")
    ] = None,
    address: Address = None,
    budget: Annotated[float, typer.Option(help="Seconds after which no model is begun.")] = float("inf"),
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    as_json: AsJson = False,
) -> None:
    """Make every table and figure of the paper on your texts. With intervals; a stopped study goes on where it was."""
    way, named = runner or ("processes" if workers else "inline"), [*(backbone or ()), *filter(None, [semantic])]
    check_study(sources, pan, named, out_folder, way)

    from idiograph.runner import Workers
    from idiograph.study.run import STAGES, StudyRequest, run_study

    team = Workers(way, workers or None, address)
    wanted = StudyRequest(
        settings(preset, recipe_file, {}), backbones_of(backbone or []), quick, steps, tuple(stage or STAGES), device,
        team, budget, (shlex.join(["idiograph", *sys.argv[1:]]),), __version__, pan,
        semantic=backbones_of([semantic]) if semantic else {},
    )  # fmt: skip
    portions = {name: value for name, value in {"train": rows, "anchors": anchors, "pool": pool}.items() if value}
    wanted = replace(wanted, portions=replace(wanted.share, **portions))
    with bar("study") as update:
        study = run_study(sources, out_folder, wanted, update)
    if study is None:
        return wrote(out_folder, f"did {', '.join(stage or STAGES)}")
    line = outcome_line(study.runs, study.claims, quick)
    return say({"page": str(study.page), **study.counts}, as_json, lambda: wrote(study.page, line))


def check_study(sources: Sequence[str], pan: Path | None, named: Sequence[str], out_folder: Path, runner: str) -> None:
    """Everything that a study needs is there, before the hours that it takes."""
    check_sources(sources)
    check_texts(*([pan] if pan else []))
    for each in named:
        folder = each.partition("=")[2] or each
        if not Path(folder).is_file():  # of vectors
            check_model(folder)
    check_report(out_folder)
    check_runner(runner)
    require_library("torch", "the study")


def outcome_line(runs: int, claims: int, quick: bool) -> str:
    warning = "; a quick run illustrates and decides nothing" if quick else ""
    return f"{runs} models, {claims} claims put to the test{warning}"


def backbones_of(specs: list[str]) -> dict[str, str]:
    """Name → folder; a general-purpose encoder, which has learned nothing of style, if none is given."""
    from idiograph.loading import folder_of

    backbones: dict[str, str] = {}
    for each in specs or ["minilm"]:
        name, _, folder = each.partition("=") if "=" in each else (Path(each).name, "", each)
        if name in backbones:
            raise InputError(f"two backbones are called '{name}'; give them names: --backbone NAME=FOLDER")
        backbones[name] = str(folder_of(folder))
    return backbones
