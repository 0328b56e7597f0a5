"""Rankers added up: each on one scale, weighted, and only among the candidates of one text."""

import numpy as np
import pytest

from idiograph.errors import SpecError
from idiograph.loading import load_ranker, terms
from idiograph.rankers.blend import Blend, standard


class Fixed:
    """A ranker that answers what it was told."""

    def __init__(self, name: str, scores) -> None:
        self.name, self.scores = name, np.array(scores, np.float32)

    def compare(self, a, b):
        return self.scores[: len(a), : len(b)]


SMALL, LARGE = Fixed("small", [[0.1, 0.2, 0.6]]), Fixed("large", [[900.0, 100.0, 200.0]])


def test_a_ranker_with_large_numbers_does_not_drown_one_with_small_numbers() -> None:
    mostly_small = Blend(((1.0, SMALL), (0.5, LARGE))).compare(["x"], ["a", "b", "c"])
    mostly_large = Blend(((0.5, SMALL), (1.0, LARGE))).compare(["x"], ["a", "b", "c"])
    assert (mostly_small.argmax(), mostly_large.argmax()) == (2, 0)


def test_the_blend_is_the_weighted_sum_of_standard_scores() -> None:
    found = Blend(((1.0, SMALL), (0.25, LARGE))).compare(["x"], ["a", "b", "c"])
    np.testing.assert_allclose(found, standard(SMALL.scores) + 0.25 * standard(LARGE.scores), rtol=1e-6)


def test_equal_scores_say_nothing() -> None:
    assert standard(np.full((2, 3), 7, np.float32)).tolist() == [[0.0] * 3] * 2


def test_one_candidate_is_no_ranking_and_no_error() -> None:
    assert Blend(((1.0, SMALL), (1.0, LARGE))).compare(["x"], ["a"]).tolist() == [[0.0]]


def test_a_name_with_a_plus_opens_its_parts() -> None:
    blend = load_ranker("bm25+0.5*ngrams")
    assert isinstance(blend, Blend)
    assert blend.name == "bm25 + 0.5·ngrams"


@pytest.mark.parametrize("name", ["bm25+", "half*bm25+ngrams", "+"])
def test_a_sum_that_makes_no_sense_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(SpecError, match="for example default"):
        load_ranker(name)


def test_a_folder_with_a_plus_in_its_name_is_a_folder(tmp_path) -> None:
    folder = tmp_path / "a+b"
    folder.mkdir()
    assert terms(str(folder)) == [(1.0, str(folder))]
