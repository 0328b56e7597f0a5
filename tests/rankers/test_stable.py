"""What is stable in a writer is learned from the writers of the library, and only from them."""

import numpy as np
import pytest

from idiograph.rankers.rates import fit_z_scores
from idiograph.rankers.stable import Stable, differences_within, flatten_within, scale_by_stability

RATES = np.random.default_rng(5).random((8, 5))
TWO_EACH = list("aabbccdd")


def cosine(rows):
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def test_one_text_of_each_writer_gives_plain_z_scores():
    alone = list("abcdefgh")
    found = cosine(Stable().fit(RATES, alone)(RATES))
    assert found == pytest.approx(cosine(fit_z_scores(RATES, alone)(RATES)), abs=1e-9)


def test_a_habit_that_varies_within_writers_counts_less():
    differences = np.array([[1.0, 0.1], [-1.0, -0.1], [1.0, 0.1], [-1.0, -0.1]])
    changing, stable = scale_by_stability(differences, 2, prior=1)
    assert stable > 2 * changing


def test_few_texts_change_little():
    differences = np.array([[1.0, 0.1], [-1.0, -0.1]])
    changing, stable = scale_by_stability(differences, 1, prior=1000)
    assert stable / changing == pytest.approx(1, abs=0.01)


def test_flattening_is_the_inverse_root_of_the_variation_within_writers():
    differences = differences_within(RATES, TWO_EACH)
    values, vectors = np.linalg.eigh(differences.T @ differences + 0.3 * np.eye(5))
    expected = RATES @ (vectors / np.sqrt(values / 0.3)) @ vectors.T
    assert flatten_within(differences, 0.3)(RATES) == pytest.approx(expected, abs=1e-9)
