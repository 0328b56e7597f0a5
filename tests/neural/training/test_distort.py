"""Other content words in the old places: what a text is about goes, how it is written stays."""

from dataclasses import replace
from itertools import product
from random import Random

from trainees import triplets

from idiograph.neural.training import distort
from idiograph.neural.training.batches import Order
from idiograph.neural.training.distort import WORD, Distorter, add_distorted, count_words, ending
from idiograph.runner import Workers

COMMON = " ".join(f"{word} " * 5 for word in ("the", "of", "and", "was", "however"))
CONTENT = "tides harbours bridges measuring counting sailing quickly slowly gladly Venice Bergen Lisbon"


def distorter() -> Distorter:
    return Distorter(count_words([f"{COMMON} {CONTENT}"]), common=5)


def test_function_words_punctuation_and_capitals_stay():
    text = "The measuring of tides, however, was (in Bergen) quickly done; and the harbours...".replace("in ", "")
    changed = distorter()(text, 1.0, Random(3))
    assert changed != text
    assert WORD.sub("x", changed) == WORD.sub("x", text)
    kept = ("the", "of", "however", "was", "and")
    assert [w.lower() for w in WORD.findall(changed) if w.lower() in kept] == [
        "the",
        "of",
        "however",
        "was",
        "and",
        "the",
    ]
    assert [w[0].isupper() for w in WORD.findall(changed)] == [w[0].isupper() for w in WORD.findall(text)]


def test_a_word_is_replaced_by_one_that_ends_alike_and_always_by_the_same():
    changed = WORD.findall(distorter()("measuring sailing measuring sailing", 1.0, Random(1)))
    assert {ending(word) for word in changed} == {"ing"}
    assert changed[:2] == changed[2:]


def test_nothing_is_replaced_where_no_share_is_asked_for():
    assert distorter()(CONTENT, 0.0, Random(1)) == CONTENT


def test_distorted_twins_take_their_share_of_an_epoch_and_keep_rows_and_labels():
    parts = [triplets(40), triplets(60, 1)]
    mixture, weights = add_distorted(parts, (), 0.25, (0.5, 1.0))
    assert [len(part) for part in mixture] == [40, 60, 40, 60]
    for part, twin in zip(parts, mixture[2:], strict=True):
        assert (twin.rows == part.rows).all()
        assert (twin.labels == part.labels).all()
    assert abs(sum(weights[2:]) / sum(weights) - 0.25) < 1e-9
    seen = [int(s) for step in range(20) for s in Order(mixture, 5, weights)[step][:, 0]]
    assert sum(s >= 2 for s in seen) == 25


def test_without_distortion_nothing_is_added():
    parts = [triplets(8)]
    assert add_distorted(parts, (2.0,), 0.0, (0.5, 1.0)) == (parts, (2.0,))


def test_several_processes_distort_as_one_does(monkeypatch):
    words = ["".join(letters) for letters in product("bdfgklmnprst", "aeiou", "bdfgklmnprst")]
    chance = Random(5)
    plain = [triplets(8), triplets(8, 1)]
    parts = [replace(part, texts=[" ".join(chance.choices(words, k=60)) for _ in part.texts]) for part in plain]
    found = []
    monkeypatch.setattr(distort, "CHUNK", 10)
    for workers in (Workers("inline"), Workers("processes", 2)):
        mixture, _ = add_distorted(parts, (), 0.5, (0.5, 1.0), workers=workers)
        found.append([list(part.texts) for part in mixture])
    assert found[0] == found[1]
    assert found[0][2] != found[0][0]
    assert all(len(a) == len(b) for a, b in zip(found[0][:2], found[0][2:], strict=True))
