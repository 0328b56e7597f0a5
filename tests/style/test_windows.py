"""A text that is longer than a model's window is read to its end."""

import numpy as np
import pytest
import torch

from idiograph.neural.encoder import TorchEncoder
from idiograph.style.model import Style
from idiograph.style.tokens import Tokens
from idiograph.style.windows import length_groups, padded_groups, token_windows

LONG = " ".join(f"The {n}th sentence is about rivers, bridges and the number {n}." for n in range(60))


@pytest.fixture
def narrow(backbones) -> Style:
    """A model of its own with a window of 32 tokens."""
    encoder = TorchEncoder.open(next(iter(backbones.values())))
    encoder.window = 32
    return Style(encoder, patch="ngram:3")


def tokens(count: int) -> Tokens:
    """`count` tokens of one letter between two special ones."""
    chars = np.array([[0, 0], *[[at, at + 1] for at in range(count)], [0, 0]])
    inside = chars[:, 1] > 0
    return Tokens(np.arange(count + 2), chars, np.cumsum(inside) - 1, inside)


@pytest.mark.parametrize("count", [1, 8, 9, 30, 31, 100])
def test_pieces_together_are_the_text_and_each_is_framed_and_fits(count: int) -> None:
    whole = tokens(count)
    found = token_windows(whole, window=10)
    assert np.concatenate([piece.ids[piece.own] for piece in found]).tolist() == whole.ids.tolist()
    assert all(len(piece.ids) <= 10 for piece in found)
    assert all((piece.ids[0], piece.ids[-1]) == (0, count + 1) for piece in found)
    lengths = [len(piece.ids) for piece in found]
    assert max(lengths) - min(lengths) <= 1


def test_groups_cover_everything_within_the_limit() -> None:
    lengths = [5, 5, 7, 2, 30, 1, 1]
    found = padded_groups(lengths, 20)
    assert [at for group in found for at in range(len(lengths))[group]] == list(range(len(lengths)))
    assert all(max(lengths[g]) * len(lengths[g]) <= 20 or len(lengths[g]) == 1 for g in found)


def test_the_end_of_a_long_text_has_patches(narrow) -> None:
    found = narrow.encode([LONG])
    assert found.chars[:, 1].max() == len(LONG)
    assert not narrow.tokenize([LONG])[0].cut


def test_a_long_text_is_the_sum_of_its_pieces(narrow) -> None:
    style = narrow.at("ngram:1")
    whole = style.tokenize([LONG])[0]
    one = [style.encoder._pass([p.ids])[0][p.own].detach() for p in token_windows(whole, 32)]
    together = style.encoder.token_vectors([whole])[0]
    torch.testing.assert_close(together, torch.cat(one), atol=1e-5, rtol=1e-4)


def test_short_texts_beside_a_long_one_keep_their_vectors(narrow) -> None:
    style = narrow.at("ngram:2")
    alone = style.encode(["A short text, nothing more."])
    beside = style.encode([LONG, "A short text, nothing more."]).take([1])
    np.testing.assert_allclose(alone.vectors, beside.vectors, atol=1e-5)


def test_cut_reads_only_the_beginning_and_says_so(narrow) -> None:
    style = narrow.at("ngram:3")
    style.encoder.beyond = "cut"
    assert style.tokenize([LONG])[0].cut
    assert len(style.tokenize([LONG])[0]) == 32


def test_groups_by_length_take_every_text_once_and_no_more_than_fits():
    lengths = np.array([30, 5, 90, 7, 30, 12])
    groups = length_groups(lengths, 120)
    assert sorted(np.concatenate(groups).tolist()) == list(range(6))
    assert all(len(part) == 1 or len(part) * lengths[part].max() <= 120 for part in groups)
    assert length_groups([], 120) == []
