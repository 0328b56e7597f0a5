"""Letters are counted by arrays; what comes out is what scikit-learn's counting of them gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idiograph.rankers import letters as ngrams
from idiograph.rankers.letters import LetterRates, LetterTfIdf, NGrams, count_ngrams
from idiograph.rankers.library import Library
from idiograph.synth.anthology import anthology


def by_sklearn(a, b, size):
    from sklearn.feature_extraction.text import TfidfVectorizer

    weigher = TfidfVectorizer(sublinear_tf=True, analyzer="char", ngram_range=(size, size))
    rows = weigher.fit_transform([*a, *b]).tocsr()
    return (rows[: len(a)] @ rows[len(a) :].T).toarray()


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("block", [1024, 3])
def test_the_scores_are_those_of_scikit_learn(monkeypatch, size, block):
    monkeypatch.setattr(ngrams, "TEXTS_PER_BLOCK", block)
    texts = [essay.text[:900] for essay in anthology()][:20]
    assert NGrams(size).compare(texts[:8], texts[8:]) == pytest.approx(by_sklearn(texts[:8], texts[8:], size), abs=1e-5)


@given(st.lists(st.text(max_size=12), min_size=2, max_size=6))
def test_no_text_is_too_odd_to_be_counted(texts):
    found = NGrams(3).compare(texts[:1], texts[1:])
    try:
        expected = by_sklearn(texts[:1], texts[1:], 3)
    except ValueError:  # no text has three characters
        expected = np.zeros((1, len(texts) - 1))
    assert found == pytest.approx(expected, abs=1e-5)


def test_no_gram_goes_from_one_text_into_the_next():
    assert count_ngrams(["abc", "def"], 3).toarray().sum(axis=1).tolist() == [1, 1]
    assert count_ngrams(["ab", "", "c"], 3).toarray().sum() == 0


def test_letter_rates_are_z_scores_of_counts_by_scikit_learn():
    from sklearn.feature_extraction.text import CountVectorizer

    texts = [" ".join(essay.text[:900].split()) for essay in anthology()][:12]
    rates = CountVectorizer(analyzer="char", ngram_range=(3, 3), lowercase=False).fit_transform(texts).toarray()
    rates = rates / rates.sum(axis=1, keepdims=True)
    rows = (rates - rates.mean(axis=0)) / rates.std(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    learned = LetterRates(3, features=100_000).learn(Library(tuple(texts), tuple("abcdefghijkl")))
    assert learned.score(texts) == pytest.approx(rows @ rows.T, abs=1e-9)


def test_what_explains_letters_can_be_read():
    library = Library(("Upon my word", "upon a time", "In time"), tuple("abc"))
    best, share = LetterTfIdf(3).learn(library).shares("Upon\n\nthis", 0)[0]
    assert best in ("Upo", "pon", "on ")
    assert share > 0
