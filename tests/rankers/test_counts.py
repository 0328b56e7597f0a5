"""How often words and letters stand in texts: what is counted once need not be counted again."""

import numpy as np

from idiograph.rankers.counts import LetterFeatures, TallyMemory, WordFeatures, count_features, remember_tallies

TEXTS = ("the tide and the moon", "a tide table", "the moon")


class CountedWords:
    """Features that know how many texts were counted."""

    def __init__(self) -> None:
        self.texts = []

    def tally(self, text):
        self.texts.append(text)
        return WordFeatures().tally(text)

    def spell(self, text):
        return WordFeatures().spell(text)


def test_nothing_is_counted_twice_while_tallies_are_remembered():
    features = CountedWords()
    with remember_tallies():
        count_features(TEXTS, features)
        count_features(TEXTS[1:], features)
    assert features.texts == [*TEXTS]
    count_features(TEXTS[:1], features)
    assert features.texts == [*TEXTS, TEXTS[0]]


def test_remembered_counts_are_the_same():
    plain = [count_features(TEXTS, kind) for kind in (WordFeatures(), LetterFeatures(3))]
    with remember_tallies():
        for _ in range(2):
            for kind, before in zip((WordFeatures(), LetterFeatures(3)), plain, strict=True):
                found = count_features(TEXTS, kind)
                assert np.array_equal(found.keys, before.keys)
                assert np.array_equal(found.table.toarray(), before.table.toarray())


def test_no_more_is_remembered_than_there_is_room_for():
    memory, features = TallyMemory(room=40), CountedWords()
    for text in (TEXTS[2], TEXTS[2], TEXTS[0], TEXTS[0]):
        memory.tally(features, text)
    assert features.texts == [TEXTS[2], TEXTS[0], TEXTS[0]]
