"""Every measure of a likelihood ratio, against a second implementation: scikit-learn's, a brute force or another formula."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, f1_score, roc_curve

from idiograph.answer.likelihood import (
    RIDGE,
    Calibration,
    Scored,
    TopicDiscount,
    bounds_of_ratios,
    cross_fit,
    effective_count,
    fit_logistic,
    fit_scores,
    learn_topic,
    posterior,
    ratio_in_words,
    reach_of_writers,
    score_columns,
    times,
)
from idiograph.errors import InputError
from idiograph.evaluate.verification import MEASURES, Judged, brier, c_at_1, f05u, f1, measure_verification
from idiograph.measures.likelihood import (
    auc,
    best_ratios,
    calibration_curves,
    cllr,
    cllr_min,
    cross_entropy,
    eer,
)

HILLS = np.random.default_rng(3)
SAME, DIFFERENT = HILLS.normal(0.6, 1, 300), HILLS.normal(-0.6, 1, 500)
GRID = st.integers(-6, 6).map(lambda n: n / 2)  # ties are the rule, not the exception
SCORES = arrays(np.float64, st.integers(2, 30), elements=GRID)


def told(same, different, sizes=None):
    scores = np.concatenate([same, different])
    sizes = np.full(len(scores), 2.0) if sizes is None else sizes
    return Scored(scores, sizes, np.repeat([True, False], [len(same), len(different)]))


@given(SCORES, SCORES)
def test_auc_counts_the_pairs_that_are_in_order_and_half_of_the_ties(same, different):
    above, level = same[:, None] > different, same[:, None] == different
    assert auc(same, different) == pytest.approx((above + 0.5 * level).mean())


@given(SCORES, SCORES)
def test_equal_error_rate_is_where_the_roc_curve_meets_the_diagonal(same, different):
    truth = np.repeat([1, 0], [len(same), len(different)])
    false, true, _ = roc_curve(truth, np.concatenate([same, different]), drop_intermediate=False)
    x = np.linspace(0, 1, 20001)
    at = np.abs((1 - np.interp(x, false, true)) - x).argmin()  # a brute force along the false-acceptance axis
    steps = np.diff(false) == 0
    rate = eer(same, different)
    crossings = [rate == pytest.approx(x[at], abs=2e-4)]
    crossings += [  # or on an upright piece of the curve
        f == pytest.approx(rate, abs=1e-9) and t0 <= 1 - rate + 1e-9 and 1 - rate - 1e-9 <= t1
        for f, t0, t1 in zip(false[1:][steps], true[:-1][steps], true[1:][steps], strict=True)
    ]
    assert any(crossings)


@given(SCORES, SCORES)
def test_least_cost_is_that_of_isotonic_regression(same, different):
    scores = np.concatenate([same, different])
    truth = np.repeat([1.0, 0.0], [len(same), len(different)])
    weight = np.where(truth == 1, 0.5 / len(same), 0.5 / len(different))
    share = IsotonicRegression().fit(scores, truth, sample_weight=weight).predict(scores)
    with np.errstate(divide="ignore"):
        cost = 0.5 * (np.log2(1 / share[truth == 1]).mean() + np.log2(1 / (1 - share[truth == 0])).mean())
    assert cllr_min(same, different) == pytest.approx(cost, abs=1e-9)


@given(SCORES, SCORES)
def test_cost_is_the_mean_of_two_logarithms(same, different):
    expected = 0.5 * (
        sum(np.log2(1 + 1 / 10**x) for x in same) / len(same)
        + sum(np.log2(1 + 10**x) for x in different) / len(different)
    )
    assert cllr(same, different) == pytest.approx(expected)


@given(SCORES, SCORES)
def test_no_order_preserving_ratios_cost_less_than_the_best(same, different):
    assert cllr_min(same, different) <= min(cllr(same, different), 1.0) + 1e-9
    assert cllr_min(3 * same + 1, 3 * different + 1) == pytest.approx(cllr_min(same, different))


def test_saying_nothing_costs_one_bit_and_certainty_that_is_wrong_costs_more():
    assert cllr(np.zeros(5), np.zeros(9)) == pytest.approx(1)
    assert cllr(np.full(5, 6.0), np.full(9, -6.0)) < 0.001
    assert cllr(np.full(5, -6.0), np.full(9, 6.0)) > 5
    assert np.isfinite(cllr(np.full(2, -900.0), np.full(2, 900.0)))


def test_perfect_order_costs_nothing_at_best():
    assert cllr_min(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 0
    best, worst = best_ratios(np.array([2.0, 3.0]), np.array([0.0, 1.0]))
    assert (best == np.inf).all()
    assert (worst == -np.inf).all()


def test_cross_entropy_at_even_odds_is_the_cost():
    assert cross_entropy(SAME, DIFFERENT, np.zeros(1))[0] == pytest.approx(cllr(SAME, DIFFERENT))


def test_cross_entropy_is_the_expected_surprise_of_a_reader():
    prior = 0.7
    chance = 10**prior / (1 + 10**prior)
    of_same = np.mean([-np.log2(posterior(x, 10**prior)) for x in SAME])
    of_different = np.mean([-np.log2(1 - posterior(x, 10**prior)) for x in DIFFERENT])
    found = cross_entropy(SAME, DIFFERENT, np.array([prior]))[0]
    assert found == pytest.approx(chance * of_same + (1 - chance) * of_different)


def test_the_neutral_curve_is_the_entropy_of_the_prior():
    found = calibration_curves(SAME, DIFFERENT)
    chance = 1 / (1 + 10.0**-found.prior)
    entropy = -chance * np.log2(chance) - (1 - chance) * np.log2(1 - chance)
    assert np.allclose(found.entropy_neutral, entropy)
    assert (found.entropy_best <= found.entropy + 1e-9).all()


ANSWERS = arrays(np.float64, 24, elements=st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]))


@given(ANSWERS, arrays(np.bool_, 24))
def test_pan_measures_are_what_their_definitions_count(answers, truth):
    right = wrong_same = missed = unanswered = hits = 0
    for answer, same in zip(answers, truth, strict=True):
        unanswered += answer == 0.5
        right += answer != 0.5 and (answer > 0.5) == same
        hits += answer > 0.5 and same
        wrong_same += answer > 0.5 and not same
        missed += answer < 0.5 and same
    n = len(truth)
    assert c_at_1(answers, truth) == pytest.approx((1 / n) * (right + unanswered * right / n))
    below = 1.25 * hits + 0.25 * (missed + unanswered) + wrong_same
    assert f05u(answers, truth) == pytest.approx(1.25 * hits / below if below else 0)
    assert brier(answers, truth) == pytest.approx(1 - brier_score_loss(truth, answers, labels=[0, 1]))
    kept = answers != 0.5
    assert f1(answers, truth) == pytest.approx(f1_score(truth[kept], answers[kept] > 0.5, zero_division=0))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("boenninghoff20-large", (0.969, 0.928, 0.918, 0.936, 0.933)),
        ("halvani20-small", (0.878, 0.796, 0.820, 0.807, 0.785)),
        ("faber20-small", (0.293, 0.331, 0.294, 0.262, 0.610)),
    ],
)
def test_real_runs_of_pan20_get_the_official_figures(shared, run, expected):
    folder = shared / "fixtures" / "pan20"

    def lines(name):
        return map(json.loads, (folder / name).read_text().splitlines())

    truth = {row["id"]: row["same"] for row in lines("truth.jsonl")}
    given_ = {row["id"]: row["value"] for row in lines(f"{run}.answers.jsonl")}
    answers = np.array([given_.get(each, 0.5) for each in truth])
    same = np.array(list(truth.values()))
    found = (auc(answers[same], answers[~same]), *(f(answers, same) for f in (c_at_1, f05u, f1, brier)))
    assert np.round(found, 3) == pytest.approx(expected, abs=0.0011)


def test_the_weights_are_where_the_weighted_loss_is_flat():
    found = told(SAME, DIFFERENT, HILLS.uniform(1.7, 3, 800))
    x = score_columns(found.scores, found.sizes - 2.3)
    beta = fit_logistic(x[:, 1:], found.same)
    weight = np.where(found.same, 0.5 / len(SAME), 0.5 / len(DIFFERENT)) * len(x)
    ridge = np.append(0, np.full(3, RIDGE)) * beta
    assert np.abs(x.T @ (weight * (1 / (1 + np.exp(-x @ beta)) - found.same)) + ridge).max() < 1e-6


def test_a_calibration_gives_back_the_ratio_of_two_known_hills():
    random = np.random.default_rng(0)
    found = fit_scores(told(random.normal(1, 1, 4000), random.normal(-1, 1, 4000)), "s", "c")
    for score in (-1.0, 0.0, 1.0):
        assert found.llr(score, 2.0) == pytest.approx(2 * score / np.log(10), abs=0.08)  # two normals: LR = exp(2x)


@pytest.mark.parametrize("method", ["kde", "isotonic"])
def test_other_curves_give_back_the_ratio_of_two_known_hills_too(method):
    random = np.random.default_rng(0)
    found = fit_scores(told(random.normal(1, 1, 4000), random.normal(-1, 1, 4000)), "s", "c", method)
    for score in (-1.0, 0.0, 1.0):
        assert found.llr(score, 2.0) == pytest.approx(2 * score / np.log(10), abs=0.2)


def test_what_a_score_means_depends_on_how_much_text_it_rests_on():
    random = np.random.default_rng(0)
    sizes = random.uniform(1.7, 3.0, 6000)
    spread = 10 ** (1.5 - sizes / 1.5)  # long texts scatter less
    truth = np.arange(6000) < 3000
    scores = np.where(truth, 0.5, -0.5) + random.normal(0, spread)
    found = fit_scores(Scored(scores, sizes, truth), "s", "c")
    assert found.llr(0.5, 3.0) > 2 * found.llr(0.5, 1.7) > 0
    assert (
        found.llr(0.5, 9.0) == found.llr(0.5, 3.0) or found.sizes[1] < 3.0
    )  # beyond what was seen, the nearest counts


def test_resemblance_never_counts_against_one_hand():
    found = fit_scores(told(DIFFERENT, SAME), "s", "c")  # the kinds exchanged: a score that misleads
    assert {found.llr(score, 2.0) for score in (-3.0, 0.0, 3.0)} == {0.0}


def test_bounds_of_kinds_that_never_overlap_are_the_number_of_pairs():
    same, different = np.full(100, 5.0), np.full(400, -5.0)
    low, high = bounds_of_ratios(np.concatenate([same, different]), np.repeat([True, False], [100, 400]))
    assert high == pytest.approx(np.log10(400 * (1 - 1 / 100)), abs=0.011)  # 1/100 + t/400 ≤ 1
    assert low == pytest.approx(-np.log10(100 * (1 - 1 / 400)), abs=0.011)


def test_bounds_are_where_a_brute_force_over_thresholds_finds_them():
    llr = np.concatenate([SAME, DIFFERENT])
    truth = np.repeat([True, False], [300, 500])
    low, high = bounds_of_ratios(llr, truth)

    def cost(t):  # of deciding by the ratio at threshold t, with one more misleading pair of each kind
        missed = ((llr[truth] <= t).sum() + 1) / 300
        return missed + 10**t * ((llr[~truth] > t).sum() + 1) / 500

    thresholds = np.arange(0, 12, 0.001)
    first = next(t for t in thresholds if cost(t) > 1)
    assert high == pytest.approx(first, abs=0.011)

    def mirrored(t):
        missed = ((llr[~truth] >= -t).sum() + 1) / 500
        return missed + 10**t * ((llr[truth] < -t).sum() + 1) / 300

    assert low == pytest.approx(-next(t for t in thresholds if mirrored(t) > 1), abs=0.011)


def test_a_few_pairs_support_weak_ratios_only():
    few, many = (fit_scores(told(SAME[:n] + 9, DIFFERENT[:n]), "s", "c") for n in (20, 280))
    assert few.llr(1000, 2.0) < many.llr(1000, 2.0) <= np.log10(280)


def test_too_few_pairs_are_no_calibration():
    with pytest.raises(InputError, match="only 3 same-author and 20 different-author pairs"):
        fit_scores(told(np.ones(3), np.zeros(20)), "s", "c")


def test_scores_that_say_nothing_give_ratios_near_one():
    random = np.random.default_rng(0)
    found = fit_scores(told(random.normal(size=500), random.normal(size=5000)), "s", "c")
    assert abs(found.llr(2.0, 2.0)) < 0.2


def test_a_calibration_reads_back():
    for method in ("logistic", "kde", "isotonic"):
        known = fit_scores(told(SAME, DIFFERENT), "s", "c", method)
        assert Calibration.from_json(json.loads(json.dumps(known.to_json()))) == known


def test_a_pair_is_calibrated_on_other_writers_alone():
    writers = [frozenset({f"w{n % 60}"}) for n in range(240)]
    found = told(SAME[:120] + 2, DIFFERENT[:120])
    scores = found.scores.copy()
    scores[0] = -500.0  # would drag a calibration that saw it to the ground
    ratios = cross_fit(Scored(scores, found.sizes, found.same), writers)
    alone = [at for at in range(240) if at % 60]
    expected = fit_scores(Scored(scores, found.sizes, found.same).take(np.array(alone)), "", "")
    assert ratios[60] == pytest.approx(expected.llr(scores[60], 2.0))
    assert ratios[0] < 0


def test_well_calibrated_ratios_lose_little_to_calibration():
    writers = [frozenset({f"w{n}"}) for n in range(800)]
    llr = cross_fit(told(SAME, DIFFERENT), writers)
    truth = np.repeat([True, False], [300, 500])
    found = measure_verification(
        Judged(np.concatenate([SAME, DIFFERENT]), llr, truth, tuple(writers)), "hills", "none", resamples=20
    )
    assert found["Cllr_cal"].value < 0.04
    assert found["Cllr"].low < found["Cllr"].value < found["Cllr"].high
    assert set(found.to_json()["measures"]) == set(MEASURES)


def test_the_shorter_text_decides_how_much_a_comparison_rests_on():
    assert effective_count(100, 1e9) == pytest.approx(2)
    assert effective_count(200, 200) == pytest.approx(2)


@pytest.mark.parametrize(
    ("llr", "said"),
    [
        (0.1, "inconclusive"),
        (0.5, "weak support for the same author"),
        (-1.5, "moderate support for different authors"),
        (2.5, "strong support for the same author"),
        (-3.5, "very strong support for different authors"),
        (4.5, "extremely strong support for the same author"),
    ],
)
def test_a_ratio_is_put_in_words(llr, said):
    assert ratio_in_words(llr) == said


def test_the_readers_odds_are_the_readers():
    assert posterior(0, 1) == 0.5
    assert posterior(1, 1) == pytest.approx(10 / 11)
    assert posterior(2, 0.01) == pytest.approx(0.5)
    assert times(2) == "100 times more likely if the same author"


def topical_pairs(slope):
    """Pairs whose ratio rises with the words they share, by one hand and by two alike."""
    draw = np.random.default_rng(3)
    same = np.arange(2000) % 2 == 0
    topical = (np.arange(2000) % 4 == 1) & (draw.random(2000) < 0.5)
    overlaps = np.exp(draw.normal(-3, 0.3, 2000) + np.where(topical | (same & (draw.random(2000) < 0.3)), 1.0, 0))
    sizes = draw.uniform(2, 3, 2000)
    excess = np.maximum((np.log(overlaps) + 3) / 0.3 - 1, 0)
    ratios = 0.87 * (draw.normal(0, 1, 2000) + np.where(same, 1.0, -1.0)) + slope * excess  # calibrated at slope 0
    return ratios, overlaps, Scored(ratios, sizes, same), ~topical


def test_shared_words_take_off_what_they_were_seen_to_add():
    found = [learn_topic(*topical_pairs(slope)) for slope in (0.0, 0.5, 1.0)]
    assert [topic.slope for topic in found if topic] == pytest.approx([0.0, 0.5, 1.0], abs=0.1)


def test_a_ratio_never_rises_with_the_shared_words_and_never_falls_under_one_for_them():
    topic = TopicDiscount((-3.0, 0.0), 0.3, 0.4)
    lowered = topic.lower(np.full(50, 1.2), np.linspace(0, 1, 50), np.full(50, 2.0))
    assert (np.diff(lowered) <= 0).all()
    assert lowered[0] == 1.2
    assert lowered[-1] == 0
    assert topic.lower([-0.7], [1.0], [2.0])[0] == -0.7


def test_nothing_is_taken_off_where_too_few_pairs_by_two_hands_share_much():
    ratios, overlaps, pairs, usual = topical_pairs(0.5)
    few = np.r_[0:60]
    assert learn_topic(ratios[few], overlaps[few], pairs.take(few), usual[few]) is None


def test_bounds_are_those_of_the_people_not_of_the_passages():
    known = replace(fit_scores(told(DIFFERENT, SAME), "s", "c"), low=-3.0, high=3.0)
    bounded = reach_of_writers(known, 10, 80)
    assert (bounded.low, bounded.high) == (-1.0, pytest.approx(np.log10(40)))
