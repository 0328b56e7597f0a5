"""Scores of given pairs of texts by words, letters and function words: cheap measures that show what a benchmark rewards.

Each scorer takes distinct texts and, as numbers of these, anchors with their positives and negatives; it returns two
scores for every triplet. Sparse matrices, no loop over pairs.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import bm25s
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array

from idiograph.rankers.delta import count_tokens, standard_rates
from idiograph.rankers.letters import weight_counts
from idiograph.rankers.words import FUNCTION_TOKENS

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Scores = tuple[Floats, Floats]  # of positives and negatives

K1, B = 1.5, 0.75  # of BM25
IDF_FLOOR = 0.25  # of the mean weight of a word
GRAM, GRAM_COLUMNS = 4, 1 << 18  # letters of an n-gram, and columns that their hashes fall into


@dataclass(frozen=True)
class WordNumbers:
    """The lower-cased pieces between white space of some texts, as numbers."""

    rows: tuple[list[int], ...]
    vocabulary: dict[str, int]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "WordNumbers":
        vocabulary: defaultdict[str, int] = defaultdict()
        vocabulary.default_factory = vocabulary.__len__
        rows = tuple([vocabulary[word] for word in text.lower().split()] for text in texts)
        return cls(rows, dict(vocabulary))

    def counts(self) -> csr_array:
        """How often each word occurs: (texts, words)."""
        return count_matrix(self.rows, len(self.vocabulary))


@dataclass(frozen=True)
class TripletTexts:
    """Distinct texts, and the triplets that they make: (T,) places of anchors, positives and negatives."""

    texts: tuple[str, ...]
    anchor: Longs
    positive: Longs
    negative: Longs

    @cached_property
    def words(self) -> "WordNumbers":
        return WordNumbers.of(self.texts)

    @property
    def candidates(self) -> Longs:
        """Every positive and negative once: the collection that a search would go through."""
        return np.unique(np.concatenate([self.positive, self.negative]))


def count_matrix(rows: Sequence[Sequence[int] | Longs], width: int) -> csr_array:
    """Numbers per row as a matrix of counts."""
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = np.concatenate([np.zeros(0, np.int64), *(np.asarray(row, dtype=np.int64) for row in rows)])
    found = csr_array((np.ones(len(flat)), flat, first), shape=(len(rows), max(width, 1)))
    found.sum_duplicates()
    return found


def dot_scores(a: Any, b: Any) -> Floats:
    """Row by row."""
    return np.asarray(a.multiply(b).sum(axis=1)).ravel()


def both_scores(query: Any, weights: Any, found: TripletTexts) -> Scores:
    """Products of anchors' rows of `query` with the rows of `weights` of their positives and negatives."""
    anchors = query[found.anchor]
    return dot_scores(anchors, weights[found.positive]), dot_scores(anchors, weights[found.negative])


def okapi(found: TripletTexts) -> Scores:
    """BM25 as in rank_bm25, which the published study used: frequent words get a quarter of the mean weight, not less.

    IDF and mean length are those of the candidates; words are what stands between spaces, lower-cased.
    """
    counts = found.words.counts()
    pool: Any = counts[found.candidates]
    df = np.bincount(pool.indices, minlength=len(found.words.vocabulary))
    size = len(found.candidates)
    idf = np.log((size - df + 0.5) / (df + 0.5))
    idf = np.where(idf < 0, IDF_FLOOR * idf[df > 0].mean(), idf) * (df > 0)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    mean = float(pool.sum() / size)
    weights = counts.copy()
    norm = K1 * (1 - B + B * lengths / mean)
    weights.data = counts.data * (K1 + 1) / (counts.data + np.repeat(norm, np.diff(counts.indptr)))
    return both_scores(counts, weights @ diags_array(idf), found)


def bm25(found: TripletTexts) -> Scores:
    """BM25 as bm25s scores it (Lucene's form), read off its index."""
    counts, pool = found.words.counts(), found.candidates
    tokens = [found.words.rows[at] for at in pool.tolist()]
    index = bm25s.BM25(k1=K1, b=B, method="lucene")
    index.index((tokens, found.words.vocabulary), show_progress=False)
    stored = index.scores
    shape = (len(pool), len(stored["indptr"]) - 1)
    weights = csc_array((stored["data"], stored["indices"], stored["indptr"]), shape=shape).tocsr()
    place = np.zeros(len(found.texts), dtype=np.int64)
    place[pool] = np.arange(len(pool))
    query = counts[:, : shape[1]]
    moved = TripletTexts(found.texts, found.anchor, place[found.positive], place[found.negative])
    return both_scores(query, weights, moved)


def character_scores(found: TripletTexts) -> Scores:
    """Cosine of character 4-grams, weighted by TF-IDF: the strongest of the simple measures of style, and of topic too."""
    counts = count_matrix([hash_grams(text) for text in found.texts], GRAM_COLUMNS)
    unit = weight_counts(counts)
    return both_scores(unit, unit, found)


def hash_grams(text: str) -> Longs:
    """Hashes of every four characters in a row, lower case, spaces as one."""
    points = np.frombuffer(" ".join(text.lower().split()).encode("utf-32-le", "replace"), dtype=np.uint32)
    points = points.astype(np.uint64)
    if len(points) < GRAM:
        return np.zeros(0, dtype=np.int64)
    rolled = sum(points[at : len(points) - GRAM + 1 + at] * np.uint64(31 ** (GRAM - 1 - at)) for at in range(GRAM))
    mixed = np.asarray(rolled, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(46)).astype(np.int64)


def function_words(found: TripletTexts) -> Scores:
    """Cosine of the z-scores of how often each function word and punctuation mark is used: style without topic."""
    scores = standard_rates(count_tokens(found.texts), FUNCTION_TOKENS)
    anchors = scores[found.anchor]
    return (anchors * scores[found.positive]).sum(axis=1), (anchors * scores[found.negative]).sum(axis=1)


SCORERS: dict[str, Callable[[TripletTexts], Scores]] = {
    "BM25 (Okapi)": okapi,
    "BM25 (bm25s)": bm25,
    "character 4-grams": character_scores,
    "function words": function_words,
}


def triplet_jaccard(found: TripletTexts) -> tuple[Floats, Floats, Floats]:
    """Share of words in common, of those of either: anchor and positive, anchor and negative, positive and negative."""
    sets = found.words.counts()
    sets.data[:] = 1
    sizes = np.diff(sets.indptr)

    def of(a: Longs, b: Longs) -> Floats:
        common = dot_scores(sets[a], sets[b])
        return common / np.maximum(sizes[a] + sizes[b] - common, 1)

    return (
        of(found.anchor, found.positive),
        of(found.anchor, found.negative),
        of(found.positive, found.negative),
    )
