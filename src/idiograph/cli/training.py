"""The command that trains a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from idiograph.cli.shared import AsJson, Out, Overwrite, Preset, RecipeFile, bar, say, settings, wrote


def train(
    triplets: Annotated[
        list[Path], typer.Argument(help="Triplet folders, or one configuration of one (data/all/base-4).")
    ],
    out_folder: Out,
    backbone: Annotated[
        str | None, typer.Option(help="Folder or Hugging Face name to begin with; default, minilm.")
    ] = None,
    valid: Annotated[list[Path] | None, typer.Option(help="More triplets to validate on, of other fields.")] = None,
    patch: Annotated[str | None, typer.Option(help="whole, word, ngram:N, auto, cluster:N or learned:N.")] = None,
    keep: Annotated[str | None, typer.Option(help="all tokens, or words without punctuation.")] = None,
    head: Annotated[str | None, typer.Option(help="none, linear or mlp.")] = None,
    dim: Annotated[str | None, typer.Option(help="Width of the vectors, or none for the backbone's.")] = None,
    layers: Annotated[str | None, typer.Option(help="last, or mean for a learned mixture of all.")] = None,
    loss: Annotated[str | None, typer.Option(help="infonce, triplet, margin, hard-margin or hybrid.")] = None,
    tau: Annotated[str | None, typer.Option(help="Temperature: learn, or a number.")] = None,
    score: Annotated[str | None, typer.Option(help="meansim or maxsim (the sum).")] = None,
    batch: Annotated[int | None, typer.Option(help="Triplets a device and step.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Times through the triplets.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps, instead of epochs.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    chunk: Annotated[int | None, typer.Option(help="Texts in memory at a time (GradCache).")] = None,
    weights: Annotated[str | None, typer.Option(help="Shares of the folders in an epoch, such as 2,1.")] = None,
    mixing: Annotated[
        str | None,
        typer.Option(help="A batch is made of rows of all folders, of one folder (batches), or one of its fields."),
    ] = None,
    distort: Annotated[float | None, typer.Option(help="Share of batches with other content words in place.")] = None,
    average_with_base: Annotated[float | None, typer.Option(help="How far to go back to the base at the end.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, another run.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, …")] = "auto",
    report_to: Annotated[list[str] | None, typer.Option(help="tensorboard, wandb or trackio.")] = None,
    preset: Preset = "sound",
    recipe_file: RecipeFile = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on triplets; a stopped run goes on where it was. More settings: --recipe, docs/training.md."""
    from idiograph.loading import folder_of
    from idiograph.neural.train import train as train_

    given: dict[str, Any] = {"backbone": backbone, "patch": patch, "keep": keep, "head": head, "dim": number(dim)}
    given |= {"layers": layers, "loss": loss, "tau": number(tau), "score": score, "batch": batch, "epochs": epochs}
    given |= {
        "steps": steps,
        "lr": lr,
        "chunk": chunk,
        "mixing": mixing,
        "distort": distort,
        "average_with_base": average_with_base,
    }
    given |= {"weights": tuple(map(float, weights.split(","))) if weights else None, "seed": seed}
    chosen = settings(preset, recipe_file, {"train": given}).train
    base = folder_of(chosen.backbone)
    with bar("training") as update:
        options: dict[str, Any] = {"device": device, "overwrite": overwrite, "report_to": tuple(report_to or ())}
        result = train_(triplets, out_folder, base, chosen, valid=tuple(valid or ()), progress=update, **options)
    found = {"steps": result.steps, "best_step": result.best_step, "measures": dict(result.measures)}
    say(found, as_json, lambda: wrote(out_folder, f"trained {result.steps} steps, best at {result.best_step}"))


def average(
    models: Annotated[list[Path], typer.Argument(help="Folders of models that began with the same weights.")],
    out_folder: Out,
    half: Annotated[bool, typer.Option("--half", help="Write the weights in 16 bits.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Average the weights of several trained models into one."""
    from idiograph.neural.soup import average_models

    average_models(models, out_folder, half=half, overwrite=overwrite)
    wrote(out_folder, f"averaged {len(models)} models")


def number(text: str | None) -> Any:
    """A number where the text is one."""
    if text is None or not text.replace(".", "", 1).isdigit():
        return text
    return float(text) if "." in text else int(text)
