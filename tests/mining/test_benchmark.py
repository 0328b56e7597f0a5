"""Benchmarks, drawn smaller: what is kept of the anchors, the pool and the writers."""

import numpy as np
import pytest

from idiograph.mining.benchmark import Benchmark, turns_of_clusters
from idiograph.types import Span

WRITERS, EACH = 8, 6


def span(writer: int, number: int) -> Span:
    return Span(f"{writer}-{number // 2}", 0, 1, f"text {number} by {writer}", frozenset({f"a{writer}"}))


@pytest.fixture
def benchmark() -> Benchmark:
    """Eight writers with six texts each: the first two are anchors, the second one and those after it are in the pool."""
    anchors = tuple(span(writer, number) for writer in range(WRITERS) for number in (0, 1))
    pool = tuple(span(writer, number) for writer in range(WRITERS) for number in range(1, EACH))
    per_writer = EACH - 1
    rows = [
        (at, at // 2 * per_writer + positive, (at // 2 + 1) % WRITERS * per_writer + positive)
        for at in range(len(anchors))
        for positive in (2, 3)
    ]
    return Benchmark("made/base-4/test", anchors, pool, np.array(rows), corpus="made", configuration="base-4")


def test_a_sample_keeps_what_its_anchors_need_and_all_writers(benchmark):
    sample = benchmark.sample(8, 20)
    assert (len(sample.anchors), len(sample.pool), len(sample.triplets)) == (8, 20, 8)
    assert len(set(sample.clusters.tolist())) == WRITERS
    for anchor, positive, negative in sample.triplets:
        assert sample.pool[positive].authors == sample.anchors[anchor].authors
        assert sample.pool[negative].authors != sample.anchors[anchor].authors


def test_a_sample_with_a_pool_of_nothing_has_what_the_triplets_need(benchmark):
    sample = benchmark.sample(8, 0)
    assert set(sample.triplets[:, 1:].ravel().tolist()) == set(range(len(sample.pool)))


def test_the_same_seed_draws_the_same_sample(benchmark):
    assert benchmark.sample(8, 20).pool == benchmark.sample(8, 20).pool
    assert benchmark.sample(8, 20).pool != benchmark.sample(8, 20, seed=8).pool


def test_each_text_of_either_side_is_there_once(benchmark):
    sample = benchmark.sample(16, 40)
    assert len(sample.texts) == len(set(sample.texts)) < len(sample.anchors) + len(sample.pool)
    assert [sample.texts[at] for at in sample.anchor_places] == [each.text for each in sample.anchors]
    assert [sample.texts[at] for at in sample.pool_places] == [each.text for each in sample.pool]


def test_a_configuration_says_the_rule_and_the_number_of_sentences(benchmark):
    assert (benchmark.rule, benchmark.sentences) == ("base", 4)


def test_writers_take_turns():
    assert turns_of_clusters(np.array([5, 5, 5, 2, 2, 9])).tolist() == [0, 3, 5, 1, 4, 2]
