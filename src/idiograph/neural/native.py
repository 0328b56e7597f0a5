"""Somebody else's model as its library runs it: own pooling, own prompts, own similarity. A peer, not a Style."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import MultiVectorEncoder, SentenceTransformer

from idiograph.errors import ModelError
from idiograph.neural.encoder import first_line, quiet, short_name

ROWS = 64  # anchors scored at once


class Native:
    """A sentence-transformers model (one vector a text) or a ColBERT (many), left as it is."""

    def __init__(self, source: str) -> None:
        try:
            with quiet():
                self.model: Any = open_native(source)
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            raise ModelError(f"model '{source}' cannot be opened: {first_line(error)}") from error
        self.name = f"native:{short_name(source)}"

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` as a query against every text of `b` as a document: (len(a), len(b))."""
        options: dict[str, Any] = {"show_progress_bar": False, "convert_to_tensor": True}
        left, right = self.model.encode_query(list(a), **options), self.model.encode_document(list(b), **options)
        parts = [self.model.similarity(left[at : at + ROWS], right) for at in range(0, len(a), ROWS)]
        return np.concatenate([part.float().cpu().numpy() for part in parts])


def open_native(source: str) -> SentenceTransformer | MultiVectorEncoder:
    from sentence_transformers.util import load_file_path

    listing = load_file_path(source, "config_sentence_transformers.json")
    text = open(listing, encoding="utf-8").read() if listing else ""  # noqa: PTH123, SIM115
    many = '"MultiVectorEncoder"' in text or "pylate" in text.lower()
    return MultiVectorEncoder(source) if many else SentenceTransformer(source)
