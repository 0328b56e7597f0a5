"""Words and letters against rates that were learned elsewhere."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from idiograph.rankers.background import BackgroundRates, UsualRates
from idiograph.synth.anthology import anthology

ESSAYS = [document.text for document in anthology()]


@pytest.fixture(scope="module")
def background():
    tables = (UsualRates.learn("words", ESSAYS[::2], 100, 2.0), UsualRates.learn("letters", ESSAYS[::2], 200, 1.0))
    return BackgroundRates("background", tables)


def test_a_score_is_the_weighted_sum_of_the_cosines_of_both_tables(background):
    a, b = ESSAYS[1], ESSAYS[3]
    total = 0.0
    for table in background.tables:
        one, two = table.standard_rates([a, b])
        total += table.weight * float(one @ two) / table.weight
    assert background.compare([a], [b])[0, 0] == pytest.approx(total, abs=1e-6)
    assert background.compare([a], [a])[0, 0] == pytest.approx(3.0, abs=1e-5)


def test_a_rate_at_the_mean_is_worth_nothing():
    table = UsualRates("words", ("the", "of"), (0.5, 0.25), (0.1, 0.1), 1.0)
    assert np.allclose(table.standard_rates(["the of the that"]), 0)
    assert np.allclose(table.standard_rates(["the the the the"]), np.array([[2, -1]]) / 5**0.5)


def test_the_most_frequent_features_are_kept_and_place_holders_do_not_count():
    table = UsualRates.learn("words", ["b b b a [CITE] [CITE]", "b a a b"], 2, 1.0)
    assert table.names == ("b", "a")
    assert table.means == (0.625, 0.375)


def test_rates_come_back_from_a_file_as_they_were(background):
    again = BackgroundRates.from_json(json.loads(json.dumps(asdict(background))))
    assert again == background
