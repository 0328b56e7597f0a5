"""Burrows's Delta in its cosine form: z-scores of the most frequent words. What stylometrists reach for first."""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TOKEN = re.compile(r"\w+(?:['’]\w+)?|[^\w\s]")


class Delta:
    """Cosine Delta over the `features` most frequent words and marks of all the texts compared."""

    name = "delta"

    def __init__(self, features: int = 150) -> None:
        self.features = features

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        counts = [Counter(TOKEN.findall(text.lower())) for text in (*a, *b)]
        total = sum(counts, Counter())
        chosen = [word for word, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))[: self.features]]
        sizes = np.array([max(c.total(), 1) for c in counts])[:, None]
        shares = np.array([[c[word] for word in chosen] for c in counts]) / sizes
        spread = shares.std(axis=0)
        scores = (shares - shares.mean(axis=0)) / np.where(spread > 0, spread, 1)
        scores /= np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1e-12)
        return (scores[: len(a)] @ scores[len(a) :].T).astype(np.float32)
