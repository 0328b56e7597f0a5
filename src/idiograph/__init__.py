"""idiograph: who wrote this, how sure are you, and what in the text says so?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idiograph.answer.attribute import attribute as attribute
    from idiograph.answer.explain import explain as explain
    from idiograph.answer.verify import verify as verify
    from idiograph.corpus.corpus import Corpus as Corpus
    from idiograph.errors import IdiographError as IdiographError
    from idiograph.index.index import Index as Index
    from idiograph.loading import load as load
    from idiograph.style.model import Style as Style
    from idiograph.types import Author as Author
    from idiograph.types import Document as Document

__version__ = "0.1.0"
__all__ = [
    "Author",
    "Corpus",
    "Document",
    "IdiographError",
    "Index",
    "Style",
    "attribute",
    "explain",
    "load",
    "verify",
]

_HOME = {
    "Author": "types",
    "Corpus": "corpus.corpus",
    "Document": "types",
    "IdiographError": "errors",
    "Index": "index.index",
    "Style": "style.model",
    "attribute": "answer.attribute",
    "explain": "answer.explain",
    "load": "loading",
    "verify": "answer.verify",
}


def __getattr__(name: str) -> Any:
    """Names are fetched when they are first asked for, so that `import idiograph` takes no time."""
    if name in _HOME:
        return getattr(import_module(f"idiograph.{_HOME[name]}"), name)
    raise AttributeError(f"module 'idiograph' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The public names, so that a shell completes these and nothing else."""
    return [*__all__, "__version__"]
