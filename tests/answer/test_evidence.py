"""Evidence of several rankers: what a weight may be, what a score is read against, and that nothing is seen twice."""

import numpy as np
import pytest

from idiograph.answer.evidence import (
    ColumnStatistics,
    EvidenceWeights,
    KnownQuestions,
    LibraryEvidence,
    Method,
    author_standings,
    cross_fit_evidence,
    fold_numbers,
    join_asked,
    learn_evidence,
    read_against,
)
from idiograph.errors import InputError
from idiograph.rankers.delta import Delta
from idiograph.rankers.library import Library

TEXTS = (
    "the sea and the wind and the tide upon the shore and the boats upon the sea",
    "upon the hill and upon the road the men and the carts and the dust of the day",
    "while it rains we wait; while it snows we wait; while it clears we go on",
    "while you read this we write that; while you sleep we go on and on",
    "which of these, which of those, which of them all; which is it to be",
    "which way is it, which house is it, which of the doors; which one is it",
)
WRITERS = ("upon", "upon", "while", "while", "which", "which")


def questions(seed=0, count=40, authors=4, useful=1.5):
    """Two methods: the first knows the writer, the second knows nothing."""
    draw = np.random.default_rng(seed)
    truth = draw.integers(authors, size=count)
    standings = draw.normal(size=(count, authors, 2))
    standings[np.arange(count), truth, 0] += useful
    return KnownQuestions({1: standings}, truth, np.full(count, 3.0), np.arange(count))


def test_a_method_that_knows_nothing_weighs_less_than_one_that_knows():
    learned = learn_evidence(questions(count=400), ("knows", "guesses"))
    assert learned.weights[0] > 1.0
    assert learned.weights[1] < 0.15


def test_no_weight_is_negative():
    asked = questions(count=200)
    asked.standings[1][:, :, 1] = -asked.standings[1][:, :, 0]  # says the opposite
    assert min(learn_evidence(asked, ("knows", "opposes")).weights) >= 0


def test_with_few_questions_weights_stay_near_each_other():
    few, many = (learn_evidence(questions(count=count, useful=3.0), ("a", "b")) for count in (3, 400))
    assert few.weights[0] - few.weights[1] < many.weights[0] - many.weights[1]


def test_how_many_texts_of_an_author_count_is_learned():
    asked = questions(count=200)
    blurred = {1: np.random.default_rng(5).normal(size=asked.standings[1].shape), 3: asked.standings[1]}
    assert learn_evidence(KnownQuestions(blurred, asked.truth, asked.sizes, asked.groups), ("a", "b")).best_texts == 3


def test_the_best_texts_of_an_author_count_and_not_the_mean_of_all():
    standings = np.array([[[3.0], [1.0], [-9.0], [2.0]]])
    members = [np.array([0, 1, 2]), np.array([3])]
    assert author_standings(standings, members, 1)[0, :, 0].tolist() == [3.0, 2.0]
    assert author_standings(standings, members, 2)[0, :, 0].tolist() == [2.0, 2.0]


def test_an_author_without_a_text_that_counts_has_no_standing():
    standings = np.array([[[np.nan], [1.0]]])
    found = author_standings(standings, [np.array([0]), np.array([1])], 3)
    assert np.isnan(found[0, 0, 0])
    assert found[0, 1, 0] == 1.0


def test_a_text_that_is_near_everybody_is_nobodys_neighbour():
    draw = np.random.default_rng(3)
    among = draw.normal(size=(30, 30))
    among[:, 0] += 5.0  # the first text is near to every other
    np.fill_diagonal(among, np.nan)
    scores = draw.normal(size=(200, 30))
    scores[:, 0] += 5.0
    found = read_against(scores, ColumnStatistics.of(among), np.full(200, -1))
    assert (scores.argmax(axis=1) == 0).mean() > 0.95
    assert (found.argmax(axis=1) == 0).mean() < 0.8
    assert found[:, 0].mean() < scores[:, 0].mean() / 2


def test_what_is_left_out_has_no_part_in_what_others_are_read_against():
    draw = np.random.default_rng(4)
    among, scores = draw.normal(size=(8, 8)), draw.normal(size=(1, 8))
    np.fill_diagonal(among, np.nan)
    whole = read_against(scores, ColumnStatistics.of(among), np.array([2]))
    among[2] = 99 * draw.normal(size=8)  # whatever the left-out text scores with the others
    among[2, 2] = np.nan
    changed = read_against(scores, ColumnStatistics.of(among), np.array([2]))
    assert np.isnan(whole[0, 2])
    np.testing.assert_allclose(whole, changed)


def test_statistics_from_an_earlier_time_give_the_same_standings():
    library, methods = Library(TEXTS, WRITERS, "en"), [Method("delta", (Delta(20),))]
    fresh = LibraryEvidence(library, methods)
    columns = [ColumnStatistics(each.count, each.total, each.squares) for each in fresh.columns]
    again = LibraryEvidence(library, methods, columns)
    np.testing.assert_allclose(
        fresh.standings(["upon the sea and upon the land"]), again.standings(["upon the sea and upon the land"])
    )


def test_a_library_of_one_text_is_refused():
    with pytest.raises(InputError, match="give at least two texts"):
        LibraryEvidence(Library(TEXTS[:1], WRITERS[:1]), [Method("delta", (Delta(20),))])


def test_ratios_come_from_weights_that_did_not_see_the_question():
    draw = np.random.default_rng(6)
    truth, names = draw.integers(4, size=30), [str(at) for at in range(12)]
    asked = KnownQuestions(
        {1: draw.normal(size=(30, 4, 12))}, truth, np.full(30, 3.0), np.arange(30)
    )  # nothing to learn
    _, scores = cross_fit_evidence(asked, names)
    seen = learn_evidence(asked, names).scores(asked.standings[1])
    right_unseen, right_seen = ((each.argmax(axis=1) == truth).sum() for each in (scores, seen))
    assert right_unseen < right_seen  # what was learned is luck, and luck does not last


def test_a_group_is_left_out_together():
    groups = np.repeat(np.arange(12), 5)
    fold = fold_numbers(groups, folds=4, seed=1)
    assert all(len(set(fold[groups == group])) == 1 for group in range(12))
    assert len(set(fold)) == 4


def test_the_shares_of_the_methods_sum_to_the_ratio():
    asked = questions(count=100)
    learned = learn_evidence(asked, ("knows", "guesses"))
    shares = learned.shares(asked.standings[1][0, 1], 3.0)
    assert [name for name, _ in shares] == ["knows", "guesses", "prior", "bound"]
    ratio = learned.ratios(asked.standings[1][:1], asked.sizes[:1])[0, 1]
    assert sum(part for _, part in shares) == pytest.approx(ratio)


def test_weights_survive_json():
    learned = learn_evidence(join_asked([questions(), questions(1)]), ("a", "b"))
    assert EvidenceWeights.from_json(learned.to_json()) == learned
