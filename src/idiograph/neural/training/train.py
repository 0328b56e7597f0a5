"""The training stage: folders of triplets in, a model folder out. The loop itself is `loop.fit_model`."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from idiograph.errors import ArtifactError, InputError, SpecError
from idiograph.neural.build import build_model, check_model_settings
from idiograph.neural.encoder import TorchEncoder
from idiograph.neural.training.adapters import merge_adapters, merged_weights
from idiograph.neural.training.batches import Batches, Order
from idiograph.neural.training.distort import add_distorted
from idiograph.neural.training.distributed import join_processes, process_rank, world
from idiograph.neural.training.loop import Log, Result, check_training_settings, fit_model
from idiograph.neural.training.loss import WITH_TAU
from idiograph.neural.training.optimize import snapshot
from idiograph.neural.training.rarity import weigh_wording
from idiograph.neural.training.reporters import reporting
from idiograph.neural.training.teacher import Teacher
from idiograph.neural.training.validate import draw_probe
from idiograph.neural.triplets import Triplets, drop_held_out_rows, open_triplets
from idiograph.recipe import TrainRecipe
from idiograph.runner import Progress
from idiograph.store import (
    MANIFEST,
    Manifest,
    digest,
    exchange_folders,
    find_manifest,
    hidden_name,
    lock_place,
    locked_folder,
    make_folder,
    read_ledger,
    seal,
    settle_exchange,
    timestamp,
    write_ledger,
)
from idiograph.style.model import Ranker

CHECKPOINT, LAST, HISTORY = "checkpoint", "last", "history.jsonl"
SPENT = ".checkpoint"  # what the checkpoint is called from when the model is written until its manifest is
HELD_OUT = "row: a text, document or author-set of it is held out for validation or test"


def train_model_on(
    sources: Sequence[Path],
    output: Path,
    backbone: str | Path,
    recipe: TrainRecipe,
    *,
    valid: Sequence[Path] = (),
    teacher: Ranker | None = None,
    device: str = "auto",
    overwrite: bool = False,
    report_to: Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Train a model on triplets; a run that was stopped goes on where it was.

    `backbone` is the folder or hub name that the recipe's one stands for, and `teacher` the ranker that it names. The
    `valid` split of each source, and of every folder in `valid`, is read now and then; the weights that do best on the mean
    of them become the model, and the last ones are kept in `last`.
    """
    chosen = join_processes(device)
    recipe = recipe.model_copy(update={"backbone": str(backbone)})
    check_settings(recipe, teacher)
    with output_lock(output, overwrite) as work:
        encoder = build_model(backbone, recipe)
        encoder.model.float().to(chosen)  # 16-bit weights cannot take small steps; autocast is for speed
        recipe = recipe.model_copy(update={"max_length": min(recipe.max_length, encoder.window)})
        tell_progress(progress, "reading triplets")
        collections, checks = [open_triplets(path) for path in sources], validation(sources, valid)
        parts = hold_out(collections, checks, (*sources, *valid)) if recipe.apart else collections
        weigh_wording(encoder.model, parts, encoder.prompt, recipe.max_length)
        tell_progress(progress, "distorting texts" if recipe.distort else "making ready")
        batches = make_batches(encoder, parts, recipe, teacher)
        probes = {name: draw_probe(part, recipe.anchors, recipe.pool) for name, part in checks.items()}
        tell_progress(progress, "looking at the model before it is trained" if probes else "making ready")
        with record_history(work, report_to, dict(recipe)) as log:
            result = fit_model(
                encoder.model, batches, recipe, probes=probes, folder=work / CHECKPOINT, progress=progress, log=log
            )
        result = replace(result, left_out=sum(map(len, collections)) - sum(map(len, parts)))
        if process_rank() == 0:
            save_models(encoder, recipe, result, work)
            seal(work, model_manifest(recipe, sources, parts, result))
            shutil.rmtree(work / SPENT)
    return result


def check_settings(recipe: TrainRecipe, teacher: Ranker | None) -> None:
    """Refuse what cannot be trained, before anything is opened. A teacher is named in the recipe and opened by who calls; it
    speaks of candidates, so the loss must be about them."""
    check_model_settings(recipe)
    check_training_settings(recipe)
    if recipe.teacher and teacher is None:
        raise SpecError(f"the teacher '{recipe.teacher}' was not opened; learn from one with 'idiograph train'")
    if teacher and recipe.loss not in WITH_TAU:
        raise SpecError(f"loss '{recipe.loss}' has no candidates for a teacher to judge; use 'infonce'")


def hold_out(parts: Sequence[Triplets], checks: Mapping[str, Triplets], folders: Sequence[Path]) -> list[Triplets]:
    """The collections without the rows in which anything is validated or tested on, in any of the folders."""
    tests = [part for path in folders if (part := open_split(path, "test"))]
    return [drop_held_out_rows(part, [*checks.values(), *tests]) for part in parts]


def make_batches(
    encoder: TorchEncoder, parts: Sequence[Triplets], recipe: TrainRecipe, teacher: Ranker | None = None
) -> Batches:
    """This device's batches of the collections, of their distorted twins if there are any, and of the teacher's lessons."""
    weights = collection_weights(recipe, parts)
    mixture, weights = add_distorted(parts, weights, recipe.distort, recipe.distorted_words, recipe.seed)
    order = Order(mixture, recipe.batch * world(), weights, recipe.mixing, recipe.seed, recipe.max_length)
    lessons = Teacher(teacher, recipe.max_length, encoder.model.device) if teacher else None
    reading = encoder.model.tokenizer, encoder.prompt, recipe.max_length
    return Batches(order, *reading, process_rank(), world(), lessons)


def tell_progress(progress: Progress | None, what: str) -> None:
    """Say what takes its time before the first step."""
    if progress and process_rank() == 0:
        progress(0, None, what)


def collection_weights(recipe: TrainRecipe, parts: Sequence[Triplets]) -> tuple[float, ...]:
    """The weights of the collections, where they are not simply their sizes."""
    if recipe.weights or recipe.size_power == 1:
        return recipe.weights
    return tuple(len(part) ** recipe.size_power for part in parts)


@contextmanager
def output_lock(output: Path, overwrite: bool) -> Iterator[Path]:
    """The folder to train in, for this run alone; what an unfinished run left there is kept. A finished model stays in its
    place while another one is trained beside it, and is exchanged for that one at the end."""
    finished = (output / MANIFEST).is_file()
    work = hidden_name(output) if finished else output
    if process_rank() > 0:
        yield work
        return
    if output.is_file():
        raise ArtifactError(f"'{output}' is a file; choose a folder for -o")
    if finished and not overwrite:
        raise ArtifactError(f"'{output}' is there already; choose another -o, or pass --overwrite")
    begun = (output / CHECKPOINT).is_dir() or (output / SPENT).is_dir()
    if output.is_dir() and any(output.iterdir()) and not finished and not begun:
        raise ArtifactError(f"'{output}' holds something else than a training run; choose another -o")
    make_folder(output.parent)
    with lock_place(output):
        settle_exchange(output)
        with locked_folder(work):
            if (work / SPENT).is_dir():  # of a run that was killed before its model had a manifest
                (work / SPENT).rename(work / CHECKPOINT)
            (work / CHECKPOINT).mkdir(exist_ok=True)
            yield work
        (work / ".lock").unlink(missing_ok=True)
        if finished:
            exchange_folders(work, output)


def validation(sources: Sequence[Path], others: Sequence[Path]) -> dict[str, Triplets]:
    """The triplets of each folder that has some to validate on. What was named for that purpose must have them."""
    parts: dict[str, Triplets] = {}
    for path in (*sources, *others):
        part = open_triplets(path, "valid") if path in others else open_split(path, "valid")
        if part is not None:
            parts[str(path) if part.name in parts else part.name] = part
    return parts


def open_split(path: Path, split: str) -> Triplets | None:
    """The triplets of a split, if there are any; a file has one split and no others."""
    try:
        return open_triplets(path, split) if path.is_dir() else None
    except InputError:
        return None


@contextmanager
def record_history(output: Path, report_to: Sequence[str], settings: Mapping[str, Any]) -> Iterator[Log]:
    """Write the course of the run down, here and wherever else it is wanted; on the first device only."""
    if process_rank() > 0:
        yield lambda step, values: None  # noqa: ARG005
        return
    path, begun = output / HISTORY, False
    with reporting(report_to, output, settings) as tell:

        def log(step: int, values: Mapping[str, float]) -> None:
            nonlocal begun
            if not begun:  # what came after the checkpoint that this run goes on from comes again
                write_ledger(path, [row for row in read_ledger(path) if row["step"] < step])
                begun = True
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, **values}) + "\n")
            tell(step, values)

        yield log


def save_models(encoder: TorchEncoder, recipe: TrainRecipe, result: Result, output: Path) -> None:
    """Save the best weights as the model and the last ones beside it; what was only needed to resume steps aside."""
    last, best = merged_weights(result.last), merged_weights(snapshot(encoder.model, "cpu"))
    merge_adapters(encoder.model)
    for folder, state in ((output / LAST, last), (output, best)):
        encoder.model.load_state_dict(state)
        encoder.save(folder, recipe.patch, recipe.keep, recipe.score)
    (output / CHECKPOINT).rename(output / SPENT)


def model_manifest(recipe: TrainRecipe, sources: Sequence[Path], parts: Sequence[Triplets], result: Result) -> Manifest:
    """What a model was trained on, how, and what was counted on the way."""
    counts: dict[str, Any] = {"triplets": sum(map(len, parts)), "steps": result.steps, "best step": result.best_step}
    counts |= {"negatives per anchor": round(result.negatives, 3), "tokens": result.tokens, "tau": result.tau}
    counts |= {
        "seconds": round(result.seconds, 1),
        "precision": result.precision,
        "devices": world(),
        "made": timestamp(),
    }
    inputs = {str(path): source_print(path) for path in sources}
    dropped = {HELD_OUT: result.left_out} if result.left_out else {}
    return Manifest("model", recipe.model_dump(), inputs, counts | {"validation": dict(result.measures)}, dropped)


def source_print(path: Path) -> str:
    """What identifies an input: the fingerprint in its manifest, or the hash of the file."""
    if path.is_file():
        return digest(path)
    manifests = (find_manifest(folder) for folder in (path, path.parent))
    return next((found.fingerprint for found in manifests if found), "")
