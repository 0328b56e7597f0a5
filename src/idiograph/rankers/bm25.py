"""BM25, the lexical baseline: what shared words alone can do."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class BM25:
    """Okapi BM25 with the candidates as the collection; lower-cased words, no stemming, no stop list."""

    name = "bm25"

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        self.k1, self.b = k1, b

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` as a query against every text of `b`: (len(a), len(b))."""
        import bm25s  # where JAX is installed, this takes most of the GPU's memory: not before it is needed

        vocabulary: dict[str, int] = {}
        collection = [[vocabulary.setdefault(word, len(vocabulary)) for word in words(text)] for text in b]
        index = bm25s.BM25(k1=self.k1, b=self.b, method="robertson")
        index.index((collection, vocabulary), show_progress=False)
        scores = np.zeros((len(a), len(b)), np.float32)
        for row, text in enumerate(a):
            query = [vocabulary[word] for word in words(text) if word in vocabulary]
            if query:
                scores[row] = index.get_scores_from_ids(query)
        return scores


def words(text: str) -> list[str]:
    """Lower-cased pieces between white space, stripped of punctuation at their ends.

    >>> words("In so far (perhaps) as it's so.")
    ['in', 'so', 'far', 'perhaps', 'as', "it's", 'so']
    """
    found = (piece.strip(".,;:!?()[]{}\"'’‘“”–—-") for piece in text.lower().split())
    return [word for word in found if word]
