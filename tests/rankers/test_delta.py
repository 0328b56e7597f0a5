"""Delta over a library is what the books say, without the text that is asked about."""

import numpy as np
import pytest

from idiograph.errors import SpecError
from idiograph.rankers.delta import Delta
from idiograph.rankers.library import Library

TEXTS = (
    "the cat and the dog",
    "a cat or a dog and the end",
    "the cow and a hen or the pig",
    "or the end of a cow and so on",
)
LIBRARY = Library(TEXTS, tuple("abab"))
WORDS = ["the", "a", "and", "or"]  # the most frequent
QUESTION = "the hen and the end or the cow"


def rates(texts):
    return np.array([[text.split().count(word) / len(text.split()) for word in WORDS] for text in texts])


def z_scores(rows):
    known = rates(TEXTS)
    return (rows - known.mean(axis=0)) / known.std(axis=0)


def test_burrows_is_the_mean_difference_of_z_scores():
    expected = -np.abs(z_scores(rates([QUESTION])) - z_scores(rates(TEXTS))).mean(axis=1)
    assert Delta(4, "burrows").learn(LIBRARY).score([QUESTION])[0] == pytest.approx(expected)


def test_cosine_is_the_angle_between_z_scores():
    rows = z_scores(rates([QUESTION, *TEXTS]))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert Delta(4).learn(LIBRARY).score([QUESTION])[0] == pytest.approx(rows[1:] @ rows[0])


def test_entropy_counts_a_word_less_that_is_spread_evenly():
    percent = 100 * rates(TEXTS)
    shares = (percent + 1) / (percent + 1).sum(axis=0)
    even = -(shares * np.log(shares)).sum(axis=0)
    one, many = np.log(100 * rates([QUESTION]) + 2) / even, np.log(percent + 2) / even
    expected = -np.abs(one - many).mean(axis=1)
    assert Delta(4, "entropy").learn(LIBRARY).score([QUESTION])[0] == pytest.approx(expected)


def test_eder_counts_frequent_words_more():
    texts = ("x x x x y y z", "x x x y y y z", "x x x x x y z z", "x x x x y y")
    often, seldom = (
        dict(Delta(3, "eder").learn(Library(texts, tuple("abcd"))).shares("x x y y z z", 0)).get(w) for w in "xz"
    )
    plain = dict(Delta(3, "burrows").learn(Library(texts, tuple("abcd"))).shares("x x y y z z", 0))
    assert often / plain["x"] == pytest.approx(4 / 3)  # (1 + n) / n for the first of n words
    assert seldom / plain["z"] == pytest.approx(2 / 3)  # 2 / n for the last


def test_culling_leaves_out_what_few_texts_have():
    assert {word for word, _ in Delta(culling=0.9).learn(LIBRARY).shares("the and so", 1)} <= {"the", "and", "a", "or"}
    assert "so" in {word for word, _ in Delta().learn(LIBRARY).shares("the and so", 1)}


def test_a_writer_is_known_by_words_of_any_script():
    library = Library(("春は、あけぼの。", "夏は、夜。", "και ο άνθρωπος και", "και ο λόγος"), tuple("abcd"))
    assert Delta().learn(library).score(["夏は、夜。"])[0].argmax() == 1


def test_a_distance_that_is_not_known_is_refused_with_those_that_are():
    with pytest.raises(SpecError, match=r"unknown distance 'cosin'.*burrows, cosine, eder, entropy"):
        Delta(distance="cosin")
