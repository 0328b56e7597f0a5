"""What every ranker that learns from a library must do, whatever it counts."""

import numpy as np
import pytest

from idiograph.errors import InputError
from idiograph.rankers.delta import DISTANCES, Delta
from idiograph.rankers.impostors import Impostors
from idiograph.rankers.letters import LetterRates, LetterTfIdf
from idiograph.rankers.library import NOT_IN_LIBRARY, Library
from idiograph.rankers.stable import LetterRegression, Stable, WordRegression
from idiograph.rankers.words import WordPairs, WordTfIdf
from idiograph.synth.anthology import anthology

# Few features, so that which ones are the most frequent depends on the text that is left out.
RANKERS = {
    **{f"delta {name}": lambda name=name: Delta(60, name) for name in DISTANCES},
    "delta culled": lambda: Delta(40, culling=0.6),
    "delta of all words": lambda: Delta(100_000),
    "letters": lambda: LetterRates(3, 80),
    "letters tf-idf": lambda: LetterTfIdf(4, 300),
    "words": WordTfIdf,
    "pairs": lambda: WordPairs(60),
    "stable": lambda: Stable(words=30, letters=60),
    "regression of letters": lambda: LetterRegression(3, 80),
    "regression of words": lambda: WordRegression(80),
    "impostors": lambda: Impostors(rounds=20, called=3, features=200),
}
EXPLAINS = [name for name in RANKERS if name != "impostors"]
STRANGE = ("", "\ud800", "…", "漢字かな交じり文。" * 20, "x" * 5000, "one\x00two", "1 2 3\n" * 50)


@pytest.fixture(params=RANKERS)
def ranker(request):
    return RANKERS[request.param]()


@pytest.fixture(scope="module")
def library() -> Library:
    chosen = list(anthology())[3:17]  # by four writers
    texts = tuple(essay.text[: 500 + 150 * at] for at, essay in enumerate(chosen))
    return Library(texts, tuple(essay.authors[0].name for essay in chosen), "en")


def test_leaving_a_text_out_is_as_if_the_library_did_not_have_it(ranker, library):
    learned = ranker.learn(library)
    for place in range(0, len(library), 3):
        rest = [at for at in range(len(library)) if at != place]
        without = ranker.learn(library.take(rest)).score([library.texts[place]])
        found = learned.score([library.texts[place]], [place])
        assert found[:, rest] == pytest.approx(without, abs=1e-6)


def test_only_what_is_left_out_has_no_score(ranker, library):
    scores = ranker.learn(library).score(library.texts[:3], [0, NOT_IN_LIBRARY, 2])
    assert scores.shape == (3, len(library))
    assert np.argwhere(np.isnan(scores)).tolist() == [[0, 0], [2, 2]]


def test_texts_of_the_library_given_as_others_score_the_same(ranker, library):
    learned = ranker.learn(library)
    if not hasattr(learned, "between"):
        pytest.skip("this ranker compares with texts of the library only")
    asked = [essay.text[:900] for essay in list(anthology())[20:23]]
    assert learned.between(asked, library.texts) == pytest.approx(learned.score(asked), abs=1e-6)


def test_the_order_of_the_library_does_not_matter(ranker, library):
    order = np.random.default_rng(3).permutation(len(library))
    question = "The tide, it seems, may be measured; and yet the book of the harbour-master does not agree with it."
    found = ranker.learn(library.take(order)).score([question])
    assert found == pytest.approx(ranker.learn(library).score([question])[:, order], abs=1e-6)


def test_a_question_does_not_depend_on_the_others(ranker, library):
    learned = ranker.learn(library)
    together = learned.score(library.texts[:4], [0, 0, NOT_IN_LIBRARY, 3])
    alone = [learned.score([library.texts[at]], [place]) for at, place in enumerate([0, 0, NOT_IN_LIBRARY, 3])]
    np.testing.assert_allclose(together, np.vstack(alone), atol=1e-9)


def test_nothing_is_nearer_to_a_text_than_itself(ranker, library):
    scores = ranker.learn(library).score(library.texts)
    assert scores.diagonal() == pytest.approx(scores.max(axis=1), abs=1e-9)


def test_a_text_with_nothing_in_it_scores_0(ranker, library):
    assert ranker.learn(library).score([""]).tolist() == [[0.0] * len(library)]


def test_no_library_is_too_odd(ranker):
    learned = ranker.learn(Library(STRANGE, tuple("aabbccd")))
    assert np.isfinite(learned.score([*STRANGE, "plain words"])).all()
    assert np.isnan(learned.score(STRANGE, range(7))).sum() == 7


def test_a_library_of_one_text_can_be_asked(ranker):
    assert np.isfinite(ranker.learn(Library(("Some words.",), ("a",))).score(["Some words.", "Other ones."])).all()


def test_the_same_library_gives_the_same_scores(ranker, library):
    one, two = (ranker.learn(library).score(library.texts[:2]) for _ in range(2))
    assert np.array_equal(one, two)


def test_a_place_that_is_not_in_the_library_is_refused(ranker, library):
    with pytest.raises(InputError, match="place 14 of a library of 14 texts; give 0 to 13, or -1"):
        ranker.learn(library).score(["text"], [14])
    with pytest.raises(InputError, match="1 places for 2 texts"):
        ranker.learn(library).score(["one", "two"], [0])


@pytest.mark.parametrize("name", EXPLAINS)
def test_the_shares_of_the_features_sum_to_the_score(name, library):
    learned = RANKERS[name]().learn(library)
    scores = learned.score([library.texts[1], "And yet the tide, in so far as it is one."], [1, NOT_IN_LIBRARY])
    for text, row, place in (
        (library.texts[1], 0, 1),
        ("And yet the tide, in so far as it is one.", 1, NOT_IN_LIBRARY),
    ):
        shares = learned.shares(text, 5, place)
        assert sum(share for _, share in shares) == pytest.approx(scores[row, 5], abs=1e-9)
        assert [abs(share) for _, share in shares] == sorted((abs(share) for _, share in shares), reverse=True)
