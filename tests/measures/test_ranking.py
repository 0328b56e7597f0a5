"""Each measure agrees with ir-measures on random rankings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idiograph.errors import SpecError
from idiograph.evaluate.report import interval
from idiograph.measures.ranking import measure_rankings, parse_measure, triplet_accuracy

NAMES = ["R@1", "R@5", "R@20", "nDCG@5", "nDCG@20", "RR", "Hit@1", "Hit@5"]


@given(st.lists(st.booleans(), min_size=1, max_size=40).filter(any), st.sampled_from(NAMES))
def test_a_measure_is_what_ir_measures_says(relevance, name):
    import ir_measures

    qrels = [ir_measures.Qrel("q", str(at), int(r)) for at, r in enumerate(relevance)]
    run = [ir_measures.ScoredDoc("q", str(at), float(-at)) for at in range(len(relevance))]
    theirs = ir_measures.parse_measure(name.replace("Hit", "Success"))
    expected = ir_measures.calc_aggregate([theirs], qrels, run)[theirs]
    assert parse_measure(name)(np.array([relevance]), np.array([sum(relevance)])) == pytest.approx([expected])


def test_measures_of_all_queries_at_once_are_the_measures_of_each(random):
    relevant = random.random((40, 130)) < 0.03
    order = np.argsort(random.random((40, 130)), axis=1)
    together = measure_rankings(order, relevant, NAMES)
    for at in range(40):
        alone = measure_rankings(order[at : at + 1], relevant[at : at + 1], NAMES)
        for name in NAMES:
            assert together[name][at] == pytest.approx(alone[name][0], nan_ok=True)


def test_a_query_without_anything_relevant_has_no_measure():
    found = measure_rankings(np.array([[1, 0], [0, 1]]), np.array([[False, False], [False, True]]), ["RR", "R@1"])
    assert found["RR"].tolist() == pytest.approx([np.nan, 0.5], nan_ok=True)
    assert found["R@1"].tolist() == pytest.approx([np.nan, 0.0], nan_ok=True)


def test_a_pool_smaller_than_the_cutoff_is_measured_by_hand():
    found = measure_rankings(np.array([[0, 1, 2]]), np.array([[False, True, True]]), ["R@20", "Hit@1", "nDCG@20"])
    assert (found["R@20"], found["Hit@1"]) == (1.0, 0.0)
    discount = 1 / np.log2([2, 3, 4])
    assert found["nDCG@20"] == pytest.approx((discount[1] + discount[2]) / (discount[0] + discount[1]))


def test_an_unknown_measure_is_refused():
    with pytest.raises(SpecError, match="unknown measure 'nDGC@20'"):
        parse_measure("nDGC@20")


def test_a_tie_is_half_a_triplet():
    assert triplet_accuracy(np.array([2, 1, 1], np.float32), np.array([1, 1, 2], np.float32)).tolist() == [1, 0.5, 0]


def test_the_interval_covers_the_mean_and_shrinks_with_more_clusters():
    random = np.random.default_rng(0)
    widths = []
    for clusters in (10, 1000):
        values = random.normal(size=clusters)
        low, high = interval(values, list(range(clusters)))
        assert low < values.mean() < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 5


def test_spans_of_one_author_are_not_independent_evidence():
    values = np.repeat(np.random.default_rng(0).normal(size=10), 50)
    wide = interval(values, np.repeat(np.arange(10), 50).tolist())
    narrow = interval(values, list(range(500)))
    assert wide[1] - wide[0] > 3 * (narrow[1] - narrow[0])
