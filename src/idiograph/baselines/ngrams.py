"""Character n-grams and function words: the cheap rankers that any claim about style has to beat."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TOKEN = re.compile(r"\w+(?:['’]\w+)?|[^\w\s]")
MARKS = frozenset(".,;:()!?—-")


class NGrams:
    """Cosine of character n-grams weighted by TF-IDF; the weights come from all the texts compared."""

    name = "ngrams"

    def __init__(self, size: int = 4) -> None:
        self.size = size

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        weigher = TfidfVectorizer(analyzer="char", ngram_range=(self.size, self.size), sublinear_tf=True)
        rows = weigher.fit_transform([*a, *b]).tocsr()
        return (rows[: len(a)] @ rows[len(a) :].T).toarray().astype(np.float32)


class FunctionWords:
    """Cosine of the z-scores of how often each English function word and mark is used: style without topic."""

    name = "function-words"

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        known = sorted(ENGLISH_STOP_WORDS | MARKS)
        counts = [Counter(TOKEN.findall(text.lower())) for text in (*a, *b)]
        shares = np.array([[c[word] / max(c.total(), 1) for word in known] for c in counts])
        spread = shares.std(axis=0)
        scores = (shares - shares.mean(axis=0)) / np.where(spread > 0, spread, 1)
        scores /= np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1e-12)
        return (scores[: len(a)] @ scores[len(a) :].T).astype(np.float32)
