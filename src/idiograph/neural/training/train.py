"""The training stage: folders of triplets in, a model folder out. The loop itself is `fit`."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from idiograph.errors import ArtifactError, InputError, SpecError
from idiograph.neural.build import ModelSettings, build_model
from idiograph.neural.encoder import TorchEncoder
from idiograph.neural.training.adapters import merge_adapters, merged_weights
from idiograph.neural.training.batches import Batches, Order
from idiograph.neural.training.distort import with_distorted
from idiograph.neural.training.distributed import join_processes, process_rank, world
from idiograph.neural.training.loop import Log, Result, TrainSettings, fit_model
from idiograph.neural.training.loss import WITH_TAU
from idiograph.neural.training.optimize import State, snapshot
from idiograph.neural.training.rarity import weigh_wording
from idiograph.neural.training.reporters import reporting
from idiograph.neural.training.teacher import Teacher
from idiograph.neural.training.validate import probe
from idiograph.neural.triplets import Triplets, author_sets_differ, open_triplets
from idiograph.runner import Progress
from idiograph.store import MANIFEST, Manifest, digest, locked_folder, seal, timestamp
from idiograph.style.model import Ranker

__all__ = ["DataSettings", "ModelSettings", "Result", "TrainSettings", "fit_model", "train_model_on"]
Settings = TypeVar("Settings")
CHECKPOINT, LAST, HISTORY = "checkpoint", "last", "history.jsonl"
HELD_OUT = "row: a text, document or author-set of it is held out for validation or test"


@dataclass(frozen=True, slots=True)
class DataSettings:
    """What a model is trained on, besides the triplets themselves."""

    weights: tuple[float, ...] = ()  # of each collection; none: by size
    size_power: float = 1.0  # without weights, a collection counts by its size to this power; 0: all alike
    mixing: Literal["rows", "batches", "fields"] = "rows"
    distort: float = 0.0  # share of the batches in which content words are replaced
    distorted_words: tuple[float, float] = (0.3, 0.95)  # how many of them in a text, between these
    teacher: str = ""  # the ranker whose scores are learned beside who wrote what
    apart: bool = True  # rows with a text, a document or an author-set that is validated or tested on are left out
    anchors: int = 500  # in each validation
    pool: int = 4000


def train_model_on(
    sources: Sequence[Path],
    output: Path,
    backbone: str | Path,
    recipe: Any,
    *,
    valid: Sequence[Path] = (),
    teacher: Ranker | None = None,
    device: str = "auto",
    overwrite: bool = False,
    report_to: Sequence[str] = (),
    progress: Progress | None = None,
) -> Result:
    """Train a model on triplets; a run that was stopped goes on where it was.

    `recipe` has the fields of `ModelSettings`, `TrainSettings` and `DataSettings`. The `valid` split of each source, and of
    every folder in `valid`, is read now and then; the weights that do best on the mean of them become the model, and
    the last ones are kept in `last`. A `teacher` is the ranker that the recipe names.
    """
    chosen = join_processes(device)
    shape, how, data = (
        pick_settings(ModelSettings, recipe),
        pick_settings(TrainSettings, recipe),
        pick_settings(DataSettings, recipe),
    )
    check_teacher(how, data, teacher)
    if shape.adapters and how.average_with_base:
        raise SpecError("adapters leave the base as it is, so there is nothing to average; set average_with_base to 0")
    with held_out_note(output, overwrite):
        encoder = build_model(backbone, shape, how.seed)
        encoder.model.float().to(chosen)  # 16-bit weights cannot take small steps; autocast is for speed
        how = replace(how, max_length=min(how.max_length, encoder.window))
        tell_progress(progress, "reading triplets")
        there, checks = [open_triplets(path) for path in sources], validation(sources, valid)
        tests = [part for path in (*sources, *valid) if data.apart and (part := split_of(path, "test"))]
        parts = [author_sets_differ(part, [*checks.values(), *tests]) for part in there] if data.apart else there
        weigh_wording(encoder.model, parts, encoder.prompt, how.max_length)
        tell_progress(progress, "distorting texts" if data.distort else "making ready")
        mixture, weights = with_distorted(
            parts, collection_weights(data, parts), data.distort, data.distorted_words, how.seed
        )
        order = Order(mixture, how.batch * world(), weights, data.mixing, how.seed, how.max_length)
        taught = Teacher(teacher, how.max_length, encoder.model.device) if teacher else None
        batches = Batches(
            order, encoder.model.tokenizer, encoder.prompt, how.max_length, process_rank(), world(), taught
        )
        probes = {name: probe(part, data.anchors, data.pool) for name, part in checks.items()}
        written = asdict(shape) | asdict(how) | asdict(data) | {"backbone": str(backbone)}
        tell_progress(progress, "looking at the model before it is trained" if probes else "making ready")
        with recording(output, report_to, written) as log:
            result = fit_model(
                encoder.model, batches, how, probes=probes, folder=output / CHECKPOINT, progress=progress, log=log
            )
        result = replace(result, left_out=sum(map(len, there)) - sum(map(len, parts)))
        if process_rank() == 0:
            keep(encoder, shape, how, result, output)
            seal(output, manifest(written, sources, parts, result))
    return result


def tell_progress(progress: Progress | None, what: str) -> None:
    """Say what takes its time before the first step."""
    if progress and process_rank() == 0:
        progress(0, None, what)


def collection_weights(data: DataSettings, parts: Sequence[Triplets]) -> tuple[float, ...]:
    """The weights of the collections, where they are not simply their sizes."""
    if data.weights or data.size_power == 1:
        return data.weights
    return tuple(len(part) ** data.size_power for part in parts)


def check_teacher(how: TrainSettings, data: DataSettings, teacher: Ranker | None) -> None:
    """A teacher is named in the recipe and opened by who calls; it speaks of candidates, so the loss must be about them."""
    if data.teacher and teacher is None:
        raise SpecError(f"the teacher '{data.teacher}' was not opened; learn from one with 'idiograph train'")
    if teacher and how.loss not in WITH_TAU:
        raise SpecError(f"loss '{how.loss}' has no candidates for a teacher to judge; use 'infonce'")


def pick_settings(kind: type[Settings], recipe: Any) -> Settings:
    """The settings of one kind out of a recipe that has more."""
    return kind(**{field.name: getattr(recipe, field.name) for field in fields(kind)})  # pyright: ignore[reportArgumentType]


@contextmanager
def held_out_note(output: Path, overwrite: bool) -> Iterator[None]:
    """The output folder, for this run alone; what an unfinished run left there is kept."""
    if process_rank() > 0:
        yield
        return
    if output.is_file():
        raise ArtifactError(f"'{output}' is a file; choose a folder for -o")
    finished = (output / MANIFEST).is_file()
    if finished and not overwrite:
        raise ArtifactError(f"'{output}' is there already; choose another -o, or pass --overwrite")
    foreign = output.is_dir() and any(output.iterdir()) and not finished and not (output / CHECKPOINT).is_dir()
    if foreign:
        raise ArtifactError(f"'{output}' holds something else than a training run; choose another -o")
    if finished:
        shutil.rmtree(output)
    with locked_folder(output):
        (output / CHECKPOINT).mkdir(exist_ok=True)
        yield
    (output / ".lock").unlink(missing_ok=True)


def validation(sources: Sequence[Path], others: Sequence[Path]) -> dict[str, Triplets]:
    """The triplets of each folder that has some to validate on. What was named for that purpose must have them."""
    found: dict[str, Triplets] = {}
    for path in (*sources, *others):
        part = open_triplets(path, "valid") if path in others else split_of(path, "valid")
        if part is not None:
            found[str(path) if part.name in found else part.name] = part
    return found


def split_of(path: Path, split: str) -> Triplets | None:
    """The triplets of a split, if there are any; a file has one split and no others."""
    try:
        return open_triplets(path, split) if path.is_dir() else None
    except InputError:
        return None


@contextmanager
def recording(output: Path, report_to: Sequence[str], settings: Mapping[str, Any]) -> Iterator[Log]:
    """Write the course of the run down, here and wherever else it is wanted; on the first device only."""
    if process_rank() > 0:
        yield lambda step, values: None  # noqa: ARG005
        return
    with reporting(report_to, output, settings) as tell, (output / HISTORY).open("a", encoding="utf-8") as file:

        def log(step: int, values: Mapping[str, float]) -> None:
            file.write(json.dumps({"step": step, **values}) + "\n")
            file.flush()
            tell(step, values)

        yield log


def keep(encoder: TorchEncoder, shape: ModelSettings, how: TrainSettings, result: Result, output: Path) -> None:
    """Save the best weights as the model and the last ones beside it; what was only needed to resume goes."""
    last, best = merged_weights(result.last), merged_weights(snapshot(encoder.model, "cpu"))
    merge_adapters(encoder.model)
    for folder, state in ((output / LAST, last), (output, best)):
        write_model(encoder, state, folder, shape, how)
    shutil.rmtree(output / CHECKPOINT)


def write_model(encoder: TorchEncoder, state: State, folder: Path, shape: ModelSettings, how: TrainSettings) -> None:
    encoder.model.load_state_dict(state)
    encoder.save(folder, shape.patch, shape.keep, how.score)


def manifest(
    settings: Mapping[str, Any], sources: Sequence[Path], parts: Sequence[Triplets], result: Result
) -> Manifest:
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
    return Manifest("model", settings, inputs, counts | {"validation": dict(result.measures)}, dropped)


def source_print(path: Path) -> str:
    """What identifies an input: the fingerprint in its manifest, or the hash of the file."""
    if path.is_file():
        return digest(path)
    for folder in (path, path.parent):
        if (folder / MANIFEST).is_file():
            return json.loads((folder / MANIFEST).read_text(encoding="utf-8")).get("fingerprint", "")
    return ""
