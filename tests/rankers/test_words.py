"""Words are weighed as elsewhere, and each list of words is the one that its ranker is named after."""

import pytest

from idiograph.loading import load_ranker
from idiograph.rankers.words import FunctionWords, StopWords, WordTfIdf
from idiograph.synth.anthology import anthology
from idiograph.text.words import SIMPLE_WORD

ONE, SAME_TOPIC, OTHER_TOPIC = (
    "the thick fire, the thin system, the empty mill, and",
    "the thick fire, the thin system, the empty mill, but",
    "the grey tide, the calm harbour, the stony beach, but",
)


def cosines(a, b, **how):
    from sklearn.feature_extraction.text import TfidfVectorizer

    rows = TfidfVectorizer(sublinear_tf=True, **how).fit_transform([*a, *b]).tocsr()
    return (rows[: len(a)] @ rows[len(a) :].T).toarray()


def test_words_are_weighed_as_by_scikit_learn():
    texts = [essay.text[:900] for essay in anthology()][:20]
    expected = cosines(texts[:8], texts[8:], token_pattern=SIMPLE_WORD.pattern)
    assert WordTfIdf().compare(texts[:8], texts[8:]) == pytest.approx(expected, abs=1e-5)


def test_texts_without_a_word_are_like_nothing():
    assert WordTfIdf().compare(["", "one two"], ["…", "One, two!"]).tolist() == [[0, 0], [0, pytest.approx(1)]]


def test_function_words_do_not_hold_what_a_text_is_about():
    same, other = load_ranker("function-words").compare([ONE], [SAME_TOPIC, OTHER_TOPIC])[0]
    assert same == pytest.approx(other, abs=1e-6)


def test_stop_words_are_the_longer_list_that_does():
    same, other = load_ranker("stop-words").compare([ONE], [SAME_TOPIC, OTHER_TOPIC])[0]
    assert same > other + 0.1


def test_function_words_and_stop_words_are_two_rankers():
    assert (FunctionWords().name, StopWords().name) == ("function-words", "stop-words")
