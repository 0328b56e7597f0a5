"""idiograph: who wrote this, how sure are you, and what in the text says so?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idiograph.answer.attribute import Attribution as Attribution
    from idiograph.answer.attribute import attribute as attribute
    from idiograph.answer.crossvalidate import CrossValidation as CrossValidation
    from idiograph.answer.explain import Explanation as Explanation
    from idiograph.answer.explain import Reasons as Reasons
    from idiograph.answer.explain import explain as explain
    from idiograph.answer.methods import crossvalidate as crossvalidate
    from idiograph.answer.verify import Verdict as Verdict
    from idiograph.answer.verify import verify as verify
    from idiograph.corpus.corpus import Corpus as Corpus
    from idiograph.corpus.corpus import TextLibrary as TextLibrary
    from idiograph.errors import IdiographError as IdiographError
    from idiograph.index.index import Index as Index
    from idiograph.loading import load as load
    from idiograph.style.model import Style as Style
    from idiograph.types import Author as Author
    from idiograph.types import Document as Document

__version__ = "0.1.0"
__all__ = [
    "Attribution",
    "Author",
    "Corpus",
    "CrossValidation",
    "Document",
    "Explanation",
    "IdiographError",
    "Index",
    "Reasons",
    "Style",
    "TextLibrary",
    "Verdict",
    "attribute",
    "crossvalidate",
    "explain",
    "load",
    "verify",
]

_HOME = {
    "Attribution": "answer.attribute",
    "Author": "types",
    "Corpus": "corpus.corpus",
    "CrossValidation": "answer.crossvalidate",
    "Document": "types",
    "Explanation": "answer.explain",
    "IdiographError": "errors",
    "Index": "index.index",
    "Reasons": "answer.explain",
    "Style": "style.model",
    "TextLibrary": "corpus.corpus",
    "Verdict": "answer.verify",
    "attribute": "answer.attribute",
    "crossvalidate": "answer.methods",
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
