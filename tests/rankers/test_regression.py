import numpy as np
import pytest

from idiograph.rankers import stable
from idiograph.rankers.library import Library
from idiograph.rankers.stable import LetterRegression
from idiograph.synth.anthology import anthology

ESSAYS = list(anthology())[:20]  # by four writers
LIBRARY = Library(tuple(essay.text for essay in ESSAYS), tuple(essay.authors[0].name for essay in ESSAYS), "en")


def test_all_texts_of_an_author_score_what_the_author_does():
    scores = (
        LetterRegression(3, 200).learn(LIBRARY).score(["The tide may be measured; and yet the book does not agree."])[0]
    )
    for name in set(LIBRARY.authors):
        assert len({round(s, 9) for s, who in zip(scores, LIBRARY.authors, strict=True) if who == name}) == 1


def test_a_text_that_everybody_has_beside_their_own_says_little():
    """Twenty copies of one text under as many names share what one of them would have alone."""
    copied = LIBRARY.texts[0]
    many = Library((*LIBRARY.texts[1:], *[copied] * 20), (*LIBRARY.authors[1:], *map(str, range(20))), "en")
    one = Library((*LIBRARY.texts[1:], copied), (*LIBRARY.authors[1:], "0"), "en")
    shared, alone = (LetterRegression(3, 200).learn(each).score([copied])[0, -1] for each in (many, one))
    assert shared < 0.2 * alone


def test_an_author_is_told_from_another_with_whom_most_is_shared():
    """Nearest texts cannot tell a and b apart by the little that differs when the topic is another; regression does."""
    rng = np.random.default_rng(5)
    words = [f"w{at}" for at in range(40)]
    texts, authors = [], []
    for topic in range(4):
        base = [words[at] for at in rng.integers(topic * 10, topic * 10 + 10, 300)]
        for who, mark in (("a", "upon"), ("b", "onto")):
            texts.append(" ".join(word if at % 25 else f"{word} {mark}" for at, word in enumerate(base)))
            authors.append(who)
    scores = LetterRegression(3, 500).learn(Library(tuple(texts), tuple(authors))).score(texts, range(8))
    named = [authors[int(np.nanargmax(row))] for row in scores]
    assert named == authors


def test_a_large_library_explains_a_text_by_its_nearest(monkeypatch):
    monkeypatch.setattr(stable, "NEAREST_TEXTS", 5)
    learned = LetterRegression(3, 200).learn(LIBRARY)
    scores = learned.score(LIBRARY.texts[:3], [0, 1, 2])
    assert np.isnan(scores).sum() == 3
    assert (np.nan_to_num(scores) == 0).sum() > 20  # authors without a text among the nearest
    assert sum(share for _, share in learned.shares(LIBRARY.texts[0], 1, 0)) == pytest.approx(scores[0, 1], abs=1e-9)
