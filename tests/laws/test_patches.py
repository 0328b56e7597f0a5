"""The equations of the method, for any text and any vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idiograph.errors import SpecError
from idiograph.style.patches import (
    POLICIES,
    Patches,
    auto_size,
    parse_policy,
    patch_extents,
    pool_patches,
    unit_vectors,
)
from idiograph.style.score import SCORERS, maxsim, meansim, scorer, symmetric
from idiograph.style.tokens import Tokens

GRAINS = ["whole", "word", "auto", "ngram:1", "ngram:2", "ngram:7", "cluster:2", "cluster:5"]


@st.composite
def token_rows(draw):
    """Tokens of a random text of which at least one is kept, and their vectors."""
    size = draw(st.integers(1, 40))
    keep = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    keep[draw(st.integers(0, size - 1))] = True
    words = np.cumsum(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    edges = np.cumsum(draw(st.lists(st.integers(1, 6), min_size=size + 1, max_size=size + 1)))
    chars = np.stack([edges[:-1], edges[1:]], axis=1)
    vectors = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(size, 5)).astype(np.float32)
    return Tokens(np.arange(size), chars, words, keep), vectors


@st.composite
def collections(draw, most=6):
    """Patches of a few random texts of different lengths."""
    lengths = np.array(draw(st.lists(st.integers(1, 9), min_size=1, max_size=most)))
    rows = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).normal(size=(int(lengths.sum()), 4))
    return Patches(unit_vectors(rows), lengths, np.zeros((int(lengths.sum()), 2), np.int64))


def three_loops(a: Patches, b: Patches) -> np.ndarray:
    """MaxSim as one would explain it to a child."""
    scores = np.zeros((len(a), len(b)))
    for i in range(len(a)):
        for j in range(len(b)):
            for row in a.take([i]).vectors:
                scores[i, j] += max(float(row @ other) for other in b.take([j]).vectors)
    return scores


@given(token_rows(), st.sampled_from(GRAINS))
def test_every_kept_token_is_in_exactly_one_patch(text, grain):
    tokens, vectors = text
    number = parse_policy(grain)(tokens, vectors)
    assert ((number >= 0) == tokens.keep).all()
    assert sorted(set(number[number >= 0].tolist())) == list(range(number.max() + 1))


@given(token_rows(), st.sampled_from([g for g in GRAINS if not g.startswith("cluster")]))
def test_contiguous_patches_are_numbered_in_reading_order(text, grain):
    tokens, vectors = text
    number = parse_policy(grain)(tokens, vectors)
    assert (np.diff(number[number >= 0]) >= 0).all()


@given(token_rows())
def test_one_patch_is_mean_pooling(text):
    tokens, vectors = text
    pooled = pool_patches(vectors, parse_policy("whole")(tokens, vectors))
    mean = vectors[tokens.keep].mean(axis=0)
    assert np.allclose(pooled, mean / np.linalg.norm(mean), atol=1e-5)


@given(token_rows(), token_rows())
def test_maxsim_of_one_patch_is_the_cosine_of_two_means(one, two):
    means = [v[t.keep].mean(axis=0) for t, v in (one, two)]
    cosine = float(means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1]))
    a, b = (
        Patches(pool_patches(v, parse_policy("whole")(t, v)), np.array([1]), np.zeros((1, 2), np.int64))
        for t, v in (one, two)
    )
    assert np.allclose(maxsim(a, b), cosine, atol=1e-5)


@given(token_rows())
def test_patches_of_one_token_are_token_level_late_interaction(text):
    tokens, vectors = text
    pooled = pool_patches(vectors, parse_policy("ngram:1")(tokens, vectors))
    assert np.allclose(pooled, unit_vectors(vectors[tokens.keep]), atol=1e-5)


@given(token_rows())
def test_a_window_longer_than_the_text_is_the_whole(text):
    tokens, vectors = text
    assert (parse_policy("ngram:1000000")(tokens, vectors) == parse_policy("whole")(tokens, vectors)).all()


@given(token_rows())
def test_auto_is_the_window_of_its_size(text):
    tokens, vectors = text
    size = auto_size(int(tokens.keep.sum()))
    assert (parse_policy("auto")(tokens, vectors) == parse_policy(f"ngram:{size}")(tokens, vectors)).all()


@pytest.mark.parametrize(("kept", "size"), [(1, 1), (70, 2), (133, 2), (201, 3), (328, 3), (512, 4)])
def test_auto_size_follows_the_square_root(kept, size):
    assert auto_size(kept) == size


@given(token_rows())
def test_extent_covers_the_kept_tokens(text):
    tokens, vectors = text
    number = parse_policy("ngram:3")(tokens, vectors)
    spans = patch_extents(tokens, number)
    for token, patch in enumerate(number):
        if patch >= 0:
            assert spans[patch, 0] <= tokens.chars[token, 0] < tokens.chars[token, 1] <= spans[patch, 1]


@given(collections(), collections())
def test_ragged_is_three_loops(a, b):
    assert np.allclose(maxsim(a, b), three_loops(a, b), atol=1e-5)


@given(collections(), collections())
def test_padded_is_ragged(a, b):
    import torch

    from idiograph.neural.maxsim.padded import pad_ragged
    from idiograph.neural.maxsim.padded import torch_maxsim as padded

    assert np.allclose(padded(*pad_ragged(a), *pad_ragged(b)).numpy(), maxsim(a, b), atol=1e-5)
    assert np.allclose(padded(*pad_ragged(a), *pad_ragged(b), mean=True).numpy(), meansim(a, b), atol=1e-5)
    assert torch.isfinite(padded(*pad_ragged(a), *pad_ragged(b))).all()


@given(collections(), st.integers(1, 12))
def test_tiles_do_not_change_the_score(a, tile):
    from idiograph.style import score

    before, score.SIMILARITIES_PER_TILE = score.SIMILARITIES_PER_TILE, tile
    try:
        tiled = maxsim(a, a)
    finally:
        score.SIMILARITIES_PER_TILE = before
    assert np.allclose(tiled, maxsim(a, a), atol=1e-5)


@given(collections())
def test_a_text_scores_its_number_of_patches_with_itself(a):
    assert np.allclose(np.diag(maxsim(a, a)), a.lengths, atol=1e-4)
    assert np.allclose(np.diag(meansim(a, a)), 1, atol=1e-5)


@given(collections(), collections())
def test_symmetric_does_not_care_which_text_comes_first(a, b):
    assert np.allclose(symmetric(a, b), symmetric(b, a).T, atol=1e-6)


def test_padding_cannot_win_where_every_cosine_is_negative():
    from idiograph.neural.maxsim.padded import pad_ragged
    from idiograph.neural.maxsim.padded import torch_maxsim as padded

    one = Patches(np.array([[1, 0]], np.float32), np.array([1]), np.zeros((1, 2), np.int64))
    both = np.array([[-1, 0], [-1, 0], [-1, 0]], np.float32)
    two = Patches(both, np.array([1, 2]), np.zeros((3, 2), np.int64))
    assert padded(*pad_ragged(one), *pad_ragged(two)).tolist() == [[-1.0, -1.0]]


@given(collections(), st.data())
def test_take_gives_the_texts_asked_for(a, data):
    which = data.draw(st.lists(st.integers(0, len(a) - 1), min_size=1, max_size=5))
    taken = a.take(which)
    assert np.allclose(maxsim(taken, a), maxsim(a, a)[which], atol=1e-6)


def test_an_unknown_policy_is_refused_with_the_nearest_one():
    with pytest.raises(SpecError, match=r"unknown patch policy 'ngrm:2'; choose from .* \(did you mean 'ngram:2'\?\)"):
        parse_policy("ngrm:2")


@pytest.mark.parametrize("bad", ["ngram", "ngram:0", "ngram:-1", "ngram:x", "whole:2", ""])
def test_a_policy_with_a_wrong_number_is_refused(bad):
    with pytest.raises(SpecError):
        parse_policy(bad)


def test_an_unknown_scorer_is_refused():
    with pytest.raises(SpecError, match="unknown scorer 'maxsin'.*did you mean 'maxsim'"):
        scorer("maxsin")


def test_every_policy_and_scorer_can_be_named():
    assert {parse_policy(name.replace(":N", ":2")) is not None for name in POLICIES} == {True}
    assert {scorer(name) is not None for name in SCORERS} == {True}
