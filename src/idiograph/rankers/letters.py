"""Character n-grams: the cheap rankers that any claim about style has to beat."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from idiograph.errors import SpecError
from idiograph.rankers.counts import LetterFeatures, most_frequent
from idiograph.rankers.library import Library
from idiograph.rankers.rates import LearnedRates, fit_z_scores, table_of
from idiograph.rankers.tfidf import LearnedTfIdf, learn_tfidf

BLANKS = re.compile(r"\s\s+")
TEXTS_PER_BLOCK = 1024  # texts whose letters are in memory at a time
HASH_MULTIPLIER = np.uint64(
    0x9E3779B97F4A7C15
)  # odd, without pattern: two n-grams of a million get one hash once in 10⁷ runs


class NGrams:
    """Cosine of character n-grams weighted by TF-IDF; the weights come from all the texts compared."""

    name = "ngrams"

    def __init__(self, size: int = 4) -> None:
        self.size = size

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        rows = weight_counts(count_ngrams([*a, *b], self.size))
        return (rows[: len(a)] @ rows[len(a) :].T).toarray()


class LetterRates:
    """Cosine of the z-scores of the most frequent character n-grams of a library: Delta over letters. Case counts.

    With sizes 3 and 4 the best single views on fan fiction in four languages and on long novels.
    """

    def __init__(self, size: int = 3, features: int = 2000) -> None:
        check_letters(size, features)
        self.size, self.features = size, features
        self.name = f"letters-{size}"

    def learn(self, library: Library) -> LearnedRates:
        """Count the n-grams of a library. Which are the most frequent, means and spreads leave out what is asked about."""
        table = table_of(most_frequent(library.texts, LetterFeatures(self.size), self.features))
        return LearnedRates(self.name, library, (table,), fit_z_scores)


class LetterTfIdf:
    """Cosine of the most frequent character n-grams of a library weighted by TF-IDF. Case counts."""

    def __init__(self, size: int = 5, features: int = 20_000) -> None:
        check_letters(size, features)
        self.size, self.features = size, features
        self.name = f"letters-{size}-tfidf"

    def learn(self, library: Library) -> LearnedTfIdf:
        """Count the n-grams of a library. Which of them count, and how much, leaves out what is asked about."""
        return learn_tfidf(self.name, library, most_frequent(library.texts, LetterFeatures(self.size), self.features))


def check_letters(size: int, features: int) -> None:
    if size < 1 or features < 1:
        raise SpecError(
            f"letters are counted in n-grams of at least 1, and at least 1 of them, not {size} and {features}"
        )


def count_ngrams(texts: Sequence[str], size: int) -> csr_array:
    """How often each n-gram stands in each text: (texts, n-grams). Arrays all through, so that other threads can go on."""
    parts = [ngram_pairs(texts[at : at + TEXTS_PER_BLOCK], size) for at in range(0, len(texts), TEXTS_PER_BLOCK)]
    owner = np.concatenate([who + at * TEXTS_PER_BLOCK for at, (who, _, _) in enumerate(parts)])
    grams, column = np.unique(np.concatenate([gram for _, gram, _ in parts]), return_inverse=True)
    counts = np.concatenate([count for _, _, count in parts]).astype(np.float32)
    return csr_array((counts, (owner, column)), shape=(len(texts), max(len(grams), 1)))


def ngram_pairs(texts: Sequence[str], size: int) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    """Every pair of a text and a hash of an n-gram in it, with how often it comes. Case and runs of blanks do not matter."""
    plain = [BLANKS.sub(" ", text.lower()) for text in texts]
    lengths = np.array([len(text) for text in plain])
    letters = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    owner, places = np.repeat(np.arange(len(plain)), lengths), max(len(letters) - size + 1, 0)
    gram = np.zeros(places, np.uint64)
    for at in range(size):
        gram = gram * HASH_MULTIPLIER + letters[at : at + places]
        gram ^= gram >> np.uint64(29)
    whole = owner[:places] == owner[size - 1 : size - 1 + places]  # none goes from one text into the next
    who, gram = owner[:places][whole], gram[whole]
    order = np.lexsort((gram, who))
    who, gram = who[order], gram[order]
    new = np.flatnonzero(np.r_[True, (who[1:] != who[:-1]) | (gram[1:] != gram[:-1])][: len(who)])
    return who[new], gram[new], np.diff(np.append(new, len(who)))


def weight_counts(rows: csr_array) -> csr_array:
    """Counts on a log scale, times the log of how rare an n-gram is, each row of length 1."""
    texts, grams = rows.shape  # pyright: ignore[reportGeneralTypeIssues]
    rare = np.log((1 + texts) / (1 + np.bincount(rows.indices, minlength=grams))) + 1
    values = (1 + np.log(rows.data)) * rare[rows.indices]
    owner = np.repeat(np.arange(texts), np.diff(rows.indptr))
    norm = np.sqrt(np.bincount(owner, values**2, minlength=texts))
    return csr_array(((values / norm[owner]).astype(rows.dtype), rows.indices, rows.indptr), shape=rows.shape)
