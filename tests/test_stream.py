"""All pairs in blocks: the same scores as the definition, in memory that does not grow with pairs."""

import numpy as np
import pytest

from idiograph.neural.nearest import nearest
from idiograph.style.patches import Patches
from idiograph.style.score import maxsim, meansim
from idiograph.style.stream import pairs, rows, runs, stacked


def collection(texts, longest, dim, seed, spread=1.0):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, size=texts)
    vectors = random.normal(size=(lengths.sum(), dim)) + spread * random.normal(size=dim)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return Patches(vectors, lengths, np.zeros((len(vectors), 2), np.int64))


@pytest.fixture(scope="module", params=[(40, 200, 30, 24), (3, 5, 1, 8), (1, 1, 9, 16), (120, 60, 70, 48)])
def sides(request):
    first, second, longest, dim = request.param
    return collection(first, longest, dim, 1), collection(second, longest, dim, 2)


@pytest.mark.parametrize("mean", [True, False])
def test_blocks_hold_the_scores_of_the_definition(sides, mean):
    a, b = sides
    found = np.concatenate([scores for _, scores in rows(a, b, mean)])
    assert np.abs(found - (meansim if mean else maxsim)(a, b)).max() <= 2e-6 * (1 if mean else a.lengths.max())


def test_blocks_follow_each_other_without_a_gap(sides):
    a, b = sides
    covered = [at for block, _ in rows(a, b) for at in range(block.start, block.stop)]
    assert covered == list(range(len(a)))


def test_every_text_is_in_one_tile_that_is_hardly_longer(sides):
    _, b = sides
    held = stacked(b, 64)
    assert [at for first, last, _ in held.runs for at in range(first, last)] == list(range(len(b)))
    for first, last, longest in held.runs:
        assert longest == held.patches.lengths[first:last].max()
        assert longest <= 1.1 * held.patches.lengths[first]


def test_a_tile_is_never_longer_than_the_limit_unless_one_text_is():
    lengths = np.sort(np.random.default_rng(0).integers(1, 90, size=500))
    assert all((last - first) * longest <= 64 or last - first == 1 for first, last, longest in runs(lengths, 64))


def test_given_pairs_are_scored_as_in_the_matrix(sides):
    a, b = sides
    random = np.random.default_rng(5)
    at, to = random.integers(len(a), size=50), random.integers(len(b), size=50)
    assert np.allclose(pairs(a, at, b, to), meansim(a, b)[at, to], atol=2e-6)


@pytest.mark.parametrize("proof", [True, False])
@pytest.mark.parametrize("k", [1, 10])
def test_the_nearest_are_those_of_the_definition(sides, k, proof):
    a, b = sides
    found = nearest(a, b, k, proof=proof)
    exact = meansim(a, b)
    best = -np.sort(-exact, axis=1)[:, :k]
    assert np.allclose(found.scores, best, atol=2e-6)
    assert np.allclose(np.take_along_axis(exact, found.which, axis=1), best, atol=2e-6)


def test_equal_texts_come_in_the_order_of_the_collection():
    b = collection(4, 5, 16, 3)
    doubled = Patches(*(np.concatenate([x, x]) for x in (b.vectors, b.lengths, b.chars)))
    assert nearest(b, doubled, 2).which.tolist() == [[at, at + 4] for at in range(4)]


def test_rounding_never_moves_a_score_further_than_the_bound(sides):
    from idiograph.neural.nearest import coarse, slack_of

    a, b = sides
    rough = np.concatenate([scores for _, scores in coarse(a, stacked(b))]) / a.lengths[:, None]
    assert (np.abs(rough - meansim(a, b)) <= slack_of(a, b)[:, None]).all()


def test_only_the_head_of_a_ranking_is_scored_again():
    a, b = collection(10, 30, 64, 1, 0.3), collection(2000, 30, 64, 2, 0.3)
    assert nearest(a, b, 10, proof=False).again < 0.1 * 10 * 2000
