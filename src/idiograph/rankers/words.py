"""Words, function words and stop words, counted: what the choice of words alone can do."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from idiograph.rankers.counts import WordFeatures, WordPairFeatures, most_frequent
from idiograph.rankers.delta import compare_rates, count_tokens
from idiograph.rankers.letters import weight_counts
from idiograph.rankers.library import Library
from idiograph.rankers.rates import LearnedRates, fit_z_scores, table_of
from idiograph.rankers.tfidf import LearnedTfIdf, learn_tfidf
from idiograph.text.words import FUNCTION_WORDS, SIMPLE_WORD

MARKS = frozenset(".,;:()!?—-")
FUNCTION_TOKENS = tuple(sorted(FUNCTION_WORDS["en"] | MARKS))


class WordTfIdf:
    """Cosine of words weighted by TF-IDF, as `NGrams`; marks and case do not count."""

    name = "words"

    def learn(self, library: Library) -> LearnedTfIdf:
        """Count the words of a library, in any language; how rare a word is leaves out the text that is asked about.

        A word that only one text of the library has does not count: measured on Hungarian novels and Greek articles.
        """
        return learn_tfidf(self.name, library, most_frequent(library.texts, WordFeatures()), fewest=2)

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        counts = [Counter(SIMPLE_WORD.findall(text.lower())) for text in (*a, *b)]
        place = {word: at for at, word in enumerate(sorted(set().union(*counts)))}
        column = np.array([place[word] for count in counts for word in count], np.int64)
        owner = np.repeat(np.arange(len(counts)), [len(count) for count in counts])
        often = np.array([n for count in counts for n in count.values()], np.float32)
        rows = weight_counts(csr_array((often, (owner, column)), shape=(len(counts), max(len(place), 1))))
        return (rows[: len(a)] @ rows[len(a) :].T).toarray()


class WordPairs:
    """Cosine of the z-scores of the most frequent pairs of words, marks among them: Delta over what follows what."""

    name = "pairs"

    def __init__(self, features: int = 2000) -> None:
        self.features = features

    def learn(self, library: Library) -> LearnedRates:
        """Count the pairs of a library. Which are the most frequent, means and spreads leave out what is asked about."""
        table = table_of(most_frequent(library.texts, WordPairFeatures(), self.features))
        return LearnedRates(self.name, library, (table,), fit_z_scores)


class FunctionWords:
    """Cosine of the z-scores of how often each English function word and mark is used: style without topic."""

    name = "function-words"

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        return compare_rates(count_tokens(a), count_tokens(b), FUNCTION_TOKENS)


class StopWords:
    """As `FunctionWords`, with scikit-learn's list of English stop words, which holds topic too: "system", "fire", "bill"."""

    name = "stop-words"

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # half a second, only where it is asked for

        return compare_rates(count_tokens(a), count_tokens(b), sorted(ENGLISH_STOP_WORDS | MARKS))
