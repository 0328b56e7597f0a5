"""All pairs in blocks: the same scores as the definition, in memory that does not grow with pairs."""

import numpy as np
import pytest

from idiograph.neural.maxsim.pruned import fast_score_blocks, first_pass, nearest_rows, score_rows_pruned
from idiograph.style.patches import Patches
from idiograph.style.score import maxsim, meansim
from idiograph.style.stream import WantedScores, length_runs, score_pairs, score_rows, stack_texts


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
    found = np.concatenate([scores for _, scores in score_rows(a, b, mean)])
    assert np.abs(found - (meansim if mean else maxsim)(a, b)).max() <= 2e-6 * (1 if mean else a.lengths.max())


def test_blocks_follow_each_other_without_a_gap(sides):
    a, b = sides
    covered = [at for block, _ in score_rows(a, b) for at in range(block.start, block.stop)]
    assert covered == list(range(len(a)))


def test_every_text_is_in_one_tile_that_is_hardly_longer(sides):
    _, b = sides
    held = stack_texts(b, 64)
    assert [at for first, last, _ in held.runs for at in range(first, last)] == list(range(len(b)))
    for first, last, longest in held.runs:
        assert longest == held.patches.lengths[first:last].max()
        assert longest <= 1.1 * held.patches.lengths[first]


def test_a_tile_is_never_longer_than_the_limit_unless_one_text_is():
    lengths = np.sort(np.random.default_rng(0).integers(1, 90, size=500))
    assert all((last - first) * longest <= 64 or last - first == 1 for first, last, longest in length_runs(lengths, 64))


def test_given_pairs_are_scored_as_in_the_matrix(sides):
    a, b = sides
    random = np.random.default_rng(5)
    at, to = random.integers(len(a), size=50), random.integers(len(b), size=50)
    assert np.allclose(score_pairs(a, at, b, to), meansim(a, b)[at, to], atol=2e-6)


@pytest.mark.parametrize("k", [1, 10])
def test_the_nearest_are_those_of_the_definition(sides, k):
    a, b = sides
    found = nearest_rows(a, b, k)
    exact = meansim(a, b)
    best = -np.sort(-exact, axis=1)[:, :k]
    assert np.allclose(found.scores, best, atol=2e-6)
    assert np.allclose(np.take_along_axis(exact, found.which, axis=1), best, atol=2e-6)


def test_equal_texts_come_in_the_order_of_the_collection():
    b = collection(4, 5, 16, 3)
    doubled = Patches(*(np.concatenate([x, x]) for x in (b.vectors, b.lengths, b.chars)))
    assert nearest_rows(b, doubled, 2).which.tolist() == [[at, at + 4] for at in range(4)]


def test_rounding_never_moves_a_score_further_than_the_bound(sides):
    a, b = sides
    slack, blocks = first_pass(a, b, "cpu")
    rough = np.concatenate([scores for _, scores in blocks])
    allowed = np.stack([slack(at) for at in range(len(a))])
    assert (np.abs(rough - maxsim(a, b)) <= allowed).all()
    assert allowed.max() < 0.1 * a.lengths.max()


def test_the_bound_holds_where_every_product_errs_to_the_same_side():
    """Vectors that lie half-way between two whole numbers, all in one direction."""
    vectors = np.full((4, 255), 100.5, np.float32)
    vectors[:, 0] = 127
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    a = Patches(vectors, np.array([2, 2]), np.zeros((4, 2), np.int64))
    slack, blocks = first_pass(a, a, "cpu")
    ((_, rough),) = blocks
    off = np.abs(rough - maxsim(a, a))
    assert off.max() > 1e-3
    assert (off <= np.stack([slack(0), slack(1)])).all()


def test_only_what_matters_is_scored_again():
    a, b = collection(10, 30, 64, 1, 0.3), collection(800, 30, 64, 2, 0.3)
    assert nearest_rows(a, b, 10).rescored < 0.7 * 10 * 800


def test_texts_so_long_that_whole_numbers_would_overflow_are_scored_right():
    a = collection(2, 1, 384, 1)
    long = Patches(np.repeat(a.vectors, 900, axis=0), a.lengths * 900, np.zeros((1800, 2), np.int64))
    assert np.allclose(nearest_rows(long, a, 2).scores[:, 0], 1, atol=1e-6)


@pytest.mark.parametrize("mean", [True, False])
def test_what_anything_depends_on_is_exact(sides, mean):
    a, b = sides
    exact = (meansim if mean else maxsim)(a, b)
    chance = np.random.default_rng(4)
    out, marked, pivots = (chance.random(exact.shape) < share for share in (0.2, 0.1, 0.05))
    pivots &= ~out

    def wanted(block: slice) -> WantedScores:
        return WantedScores(5, out[block], marked[block], pivots[block])

    found = np.concatenate([scores for _, scores in score_rows_pruned(a, b, mean, wanted, "cpu")])
    near = 3e-6 * (1 if mean else a.lengths.max())
    assert np.abs(found - exact)[marked | pivots].max(initial=0) <= near
    for row in range(len(a)):
        kept = np.flatnonzero(~out[row])
        best = -np.sort(-exact[row, kept])[:5]
        assert np.allclose(-np.sort(-found[row, kept])[:5], best, atol=near)
        if pivots[row].any():
            first = exact[row, pivots[row]].max()
            above = (exact[row, kept] > first + near).sum()
            assert above <= (found[row, kept] > first).sum() <= (exact[row, kept] > first - near).sum()


def test_the_way_that_is_chosen_gives_the_scores_of_the_definition(sides):
    a, b = sides
    nothing = np.zeros((len(a), len(b)), bool)
    blocks = fast_score_blocks(a, b, True, lambda block: WantedScores(len(b), *(nothing[block] for _ in range(3))))
    assert np.allclose(np.concatenate([scores for _, scores in blocks]), meansim(a, b), atol=2e-6)
