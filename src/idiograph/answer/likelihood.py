"""From a score to a likelihood ratio: how much more often does such a score come from one writer than from two?

Base-10 logarithms throughout. What a score means depends on how much text it rests on, so the ratio is a function of the
score and of the length of the two texts. It is bounded by what the pairs it was learned from can support (ELUB): a
hundred pairs cannot say "a million to one". Resemblance never counts against one hand: where it would, the ratio is 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import log, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idiograph.errors import InputError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# |log10 LR| from which each word applies; the scale of forensic text comparison.
VERBAL_SCALE = ((4.0, "extremely strong"), (3.0, "very strong"), (2.0, "strong"), (1.0, "moderate"), (0.0, "weak"))
INCONCLUSIVE = 0.3  # a ratio under 2 to 1 either way is no answer
MIN_PAIRS_TO_CALIBRATE = 8  # pairs of each kind under which a calibration would be a guess
RIDGE = 1e-4  # keeps the weights finite where the two kinds do not overlap
BOUND_GRID = np.arange(0.0, 12.005, 0.01)  # log10 LR at which bounds are looked for
CURVE_POINTS = 65  # points of a curve that is not a straight line

TOPIC_SLOPES = np.arange(0.0, 2.005, 0.02)  # log10 LR taken off per spread that are tried
MIN_PAIRS_ON_ONE_TOPIC = 20  # by two hands, under which nothing was measured
LEAST_OVERLAP = 0.005  # two texts that share nothing are as if they shared this


@dataclass(frozen=True, slots=True)
class Calibration:
    """log10 LR of a score: weights · (1, score, size, score × size), through a curve if there is one, within bounds."""

    weights: tuple[float, float, float, float]
    low: float
    high: float
    sizes: tuple[
        float, float
    ]  # log10 effective words of the pairs it was learned from; beyond them, the nearest counts
    same: int  # pairs by one writer that it was learned from
    different: int
    style: str  # fingerprint of the style whose scores it takes
    source: str  # the corpus
    method: str = "logistic"
    knots: tuple[tuple[float, float], ...] = ()

    def llr(self, score: float, size: float = 0.0) -> float:
        """The log10 likelihood ratio of a score between texts of `size`, see `effective`."""
        return float(self.ratios(np.array([score]), np.array([size]))[0])

    def ratios(self, scores: ArrayLike, sizes: ArrayLike) -> Floats:
        return np.clip(
            self.unbounded(np.asarray(scores, np.float64), np.asarray(sizes, np.float64)), self.low, self.high
        )

    def unbounded(self, scores: Floats, sizes: Floats) -> Floats:
        raw = score_columns(scores, np.clip(sizes, *self.sizes)) @ np.array(self.weights)
        if not self.knots:
            return raw
        x, y = np.array(self.knots).T
        return np.interp(raw, x, y)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Calibration":
        listed = {name: tuple(saved[name]) for name in ("weights", "sizes")}
        return cls(**{**saved, **listed, "knots": tuple((float(x), float(y)) for x, y in saved["knots"])})


@dataclass(frozen=True)
class Scored:
    """Scores of known pairs, how much text each rests on, and whether one hand wrote both texts."""

    scores: Floats
    sizes: Floats
    same: Bools

    def take(self, which: Any) -> "Scored":
        return Scored(self.scores[which], self.sizes[which], self.same[which])


def effective_count(words_a: ArrayLike, words_b: ArrayLike) -> Any:
    """log10 of how many words a comparison rests on: half their harmonic mean, so that the shorter text decides.

    >>> float(effective_count(2000, 2000)), round(float(effective_count(100, 1000000)), 3)
    (3.0, 2.0)
    """
    return -np.log10(1 / np.asarray(words_a, np.float64) + 1 / np.asarray(words_b, np.float64))


def score_columns(scores: Floats, sizes: Floats) -> Floats:
    return np.stack([np.ones_like(scores), scores, sizes, scores * sizes], axis=-1)


def fit_scores(
    pairs: Scored, style: str, source: str, method: str = "logistic", least: int = MIN_PAIRS_TO_CALIBRATE
) -> Calibration:
    """Learn what scores mean. Both kinds of pair weigh the same, whatever their number."""
    same, different = int(pairs.same.sum()), int((~pairs.same).sum())
    if min(same, different) < least:
        raise InputError(
            f"only {same} same-author and {different} different-author pairs to calibrate on; {least} of each "
            "are needed: give at least two documents of several authors"
        )
    ends = (float(pairs.sizes.min()), float(pairs.sizes.max()))
    weights = fit_line(pairs, ends)
    plain = Calibration(weights, -np.inf, np.inf, ends, same, different, style, source, method)
    raw = plain.unbounded(pairs.scores, pairs.sizes)
    curved = replace(plain, knots=CURVES[method](raw, pairs.same))
    low, high = bounds_of_ratios(curved.unbounded(pairs.scores, pairs.sizes), pairs.same)
    return replace(curved, low=low, high=high)


def fit_line(pairs: Scored, ends: tuple[float, float]) -> tuple[float, float, float, float]:
    """The weights, from a slope at either end of the sizes; a slope that would count against one hand is set to 0."""
    slopes = [True, True]
    low, high, weights = 0.0, 0.0, np.zeros(4)
    for _ in range(3):
        low, high, weights = fit_slopes(pairs, ends, slopes)
        if min(low, high) >= 0:
            break
        slopes = [slopes[0] and low >= 0, slopes[1] and high >= 0]
    return (float(weights[0]), float(weights[1]), float(weights[2]), float(weights[3]))


def fit_slopes(pairs: Scored, ends: tuple[float, float], slopes: Sequence[bool]) -> tuple[float, float, Floats]:
    """The slopes at the shortest and longest texts, and the weights of (1, score, size, score × size) in log10 units."""
    (least, most), middle, width = ends, float(pairs.scores.mean()), float(pairs.scores.std()) or 1.0
    span = (most - least) or 1.0
    place = (pairs.sizes - least) / span  # 0 for the shortest, 1 for the longest
    score = (pairs.scores - middle) / width
    table = np.stack([place, score * (1 - place), score * place], axis=1)
    wanted = np.array([most > least, slopes[0], slopes[1] and most > least])
    beta = np.zeros(4)
    beta[np.append(True, wanted)] = fit_logistic(table[:, wanted], pairs.same) / log(10)
    shift, drift, low, high = beta
    slope, twist = (low - (high - low) * least / span) / width, (high - low) / (span * width)
    weights = np.array([shift - drift * least / span - slope * middle, slope, drift / span - twist * middle, twist])
    return float(low), float(high) if most > least else float(low), weights


def fit_logistic(x: Floats, same: Bools) -> Floats:
    """Weights of (1, columns of `x`) by logistic regression, both kinds with the same total weight and a slight ridge."""
    from sklearn.linear_model import LogisticRegression  # half a second: not for those who open a calibration

    if not x.shape[1]:
        return np.zeros(1)  # the two kinds weigh the same
    weight = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum()) * len(same)
    model = LogisticRegression(C=1 / RIDGE, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(x, same, sample_weight=weight)
    return np.concatenate([np.atleast_1d(model.intercept_), model.coef_[0]])


def no_curve(raw: Floats, same: Bools) -> tuple[tuple[float, float], ...]:  # noqa: ARG001
    """The straight line is the ratio."""
    return ()


def isotonic_curve(raw: Floats, same: Bools) -> tuple[tuple[float, float], ...]:
    """The best monotone curve; its ends are as far out as one more pair of the other kind would leave them."""
    from sklearn.isotonic import IsotonicRegression

    one, two = int(same.sum()), int((~same).sum())
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    model.fit(raw, same.astype(np.float64), sample_weight=np.where(same, 0.5 / one, 0.5 / two))
    x = np.unique(np.quantile(raw, np.linspace(0, 1, CURVE_POINTS)))
    share = np.clip(model.predict(x), 0.5 / (two + 1), 1 - 0.5 / (one + 1))
    return tuple(zip(x.tolist(), np.log10(share / (1 - share)).tolist(), strict=True))


def kernel_curve(raw: Floats, same: Bools) -> tuple[tuple[float, float], ...]:
    """The ratio of two kernel densities."""
    from scipy.stats import gaussian_kde

    x = np.linspace(float(raw.min()), float(raw.max()), CURVE_POINTS)
    if x[0] == x[-1]:
        return ((float(x[0]), 0.0), (float(x[0]) + 1.0, 0.0))
    hills = [gaussian_kde(spread_values(raw[kind]))(x) + 1e-12 for kind in (same, ~same)]
    return tuple(zip(x.tolist(), np.log10(hills[0] / hills[1]).tolist(), strict=True))


def spread_values(values: Floats) -> Floats:
    """Values that are all equal have no density: give them a hair's breadth."""
    return values if values.std() > 1e-9 else values + np.linspace(-1e-6, 1e-6, len(values))


CURVES: dict[str, Callable[[Floats, Bools], tuple[tuple[float, float], ...]]] = {
    "isotonic": isotonic_curve,
    "kde": kernel_curve,
    "logistic": no_curve,
}


def bounds_of_ratios(llr: Floats, same: Bools) -> tuple[float, float]:
    """Empirical lower and upper bound of log10 LR (Vergeer and others, 2016).

    As far out as decisions by these ratios cost less than decisions without any, with one more misleading pair of each
    kind than was seen. At a threshold t, what is decided wrongly costs P(LR ≤ t | same) + t · P(LR > t | different);
    deciding without a ratio costs min(1, t).
    """
    one, two = np.sort(llr[same]), np.sort(llr[~same])
    high = ratio_reach(one, two)
    low = ratio_reach(-two[::-1], -one[::-1])  # the same question with the two kinds exchanged
    return -low, high


def ratio_reach(right: Floats, wrong: Floats) -> float:
    """The largest log10 threshold up to which the ratios are worth having; `right` should exceed it, `wrong` should not."""
    missed = (np.searchsorted(right, BOUND_GRID, side="right") + 1) / len(right)
    misled = (len(wrong) - np.searchsorted(wrong, BOUND_GRID, side="right") + 1) / len(wrong)
    worse = missed + 10.0**BOUND_GRID * misled > 1
    return float(BOUND_GRID[max(int(worse.argmax()) - 1, 0)]) if worse.any() else float(BOUND_GRID[-1])


def cross_fit(pairs: Scored, writers: Sequence[frozenset[str]], method: str = "logistic") -> Floats:
    """The log10 ratio of every pair, each learned from the pairs in which none of its writers has a part."""
    rows: dict[str, list[int]] = {}
    for at, people in enumerate(writers):
        for person in people:
            rows.setdefault(person, []).append(at)
    together: dict[frozenset[str], list[int]] = {}
    for at, people in enumerate(writers):
        together.setdefault(people, []).append(at)
    ratios = np.zeros(len(writers))
    for people, places in together.items():
        others = np.ones(len(writers), dtype=bool)
        others[[at for person in people for at in rows[person]]] = False
        learned = fit_scores(pairs.take(others), "", "other writers", method)
        ratios[places] = learned.ratios(pairs.scores[places], pairs.sizes[places])
    return ratios


@dataclass(frozen=True, slots=True)
class RatioCheck:
    """What the ratios of a calibration were worth on pairs by writers of whom it knew nothing."""

    pairs: str  # which: "150 words and more", "on one topic"
    same: int
    different: int
    cllr: float
    cllr_cal: float
    auc: float


@dataclass(frozen=True, slots=True)
class TopicDiscount:
    """What a ratio loses where two texts share more content words than texts by two hands usually do.

    How many they usually share grows with the length: log overlap is `usual[0] + usual[1] * size`, give or take `spread`.
    """

    usual: tuple[float, float]
    spread: float
    slope: float  # log10 LR that is taken off for each spread above the usual

    def excess(self, overlaps: ArrayLike, sizes: ArrayLike) -> Floats:
        """How many spreads more than usual two texts share; 0 up to one spread."""
        logs = np.log(np.maximum(np.asarray(overlaps, np.float64), LEAST_OVERLAP))
        above = (logs - self.usual[0] - self.usual[1] * np.asarray(sizes, np.float64)) / self.spread
        return np.maximum(above - 1, 0.0)

    def lower(self, ratios: ArrayLike, overlaps: ArrayLike, sizes: ArrayLike) -> Floats:
        """Ratios above 1, lowered by what was measured, but not under 1; others as they are."""
        llr = np.asarray(ratios, np.float64)
        return np.where(llr > 0, np.maximum(llr - self.slope * self.excess(overlaps, sizes), 0.0), llr)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "TopicDiscount":
        return cls(**{**saved, "usual": tuple(saved["usual"])})


def learn_topic(ratios: Floats, overlaps: Floats, pairs: Scored, usual: Bools) -> TopicDiscount | None:
    """Learn from pairs with their log10 ratios what shared words take off; `usual` are those not chosen for their topic.

    Pairs by two hands count as much if they were chosen for their topic as if not, and both together as much as pairs by
    one. None where too few by two hands share more than usual.
    """
    logs, plain = np.log(np.maximum(overlaps, LEAST_OVERLAP)), usual & ~pairs.same
    grade, start = np.polyfit(pairs.sizes[plain], logs[plain], 1)
    spread = float((logs[plain] - start - grade * pairs.sizes[plain]).std()) or 1.0
    found = TopicDiscount((float(start), float(grade)), spread, 0.0)
    if ((found.excess(overlaps, pairs.sizes) > 0) & ~pairs.same).sum() < MIN_PAIRS_ON_ONE_TOPIC:
        return None
    weights = weights_of_groups([pairs.same, plain, ~usual & ~pairs.same])
    signs = np.where(pairs.same, -log(10), log(10))
    tried = [replace(found, slope=round(float(slope), 2)) for slope in TOPIC_SLOPES]
    costs = [weights @ np.logaddexp(0, signs * each.lower(ratios, overlaps, pairs.sizes)) for each in tried]
    return tried[int(np.argmin(costs))]


def weights_of_groups(groups: Sequence[Bools]) -> Floats:
    """Weights with which the first group counts as much as the others together, and each of those the same."""
    first, *others = [group for group in groups if group.any()]
    weights = first / first.sum()
    for group in others:
        weights = weights + group / group.sum() / len(others)
    return weights


def reach_of_writers(known: Calibration, same: int, writers: int) -> Calibration:
    """Bounds that so few people support: `same` with pairs of their own, `writers` in all, no two pairs with one of them."""
    low, high = -log10(max(same, 1)), log10(max(writers / 2, 1))
    return replace(known, low=max(known.low, low), high=min(known.high, high))


def ratio_in_words(llr: float) -> str:
    """What a likelihood ratio says, in words.

    >>> ratio_in_words(1.3), ratio_in_words(-2.5)
    ('moderate support for the same author', 'strong support for different authors')
    """
    if abs(llr) < INCONCLUSIVE:
        return "inconclusive"
    strength = next(name for least, name in VERBAL_SCALE if abs(llr) >= least)
    return f"{strength} support for {'the same author' if llr > 0 else 'different authors'}"


def times(llr: float) -> str:
    """The ratio as people say it.

    >>> times(1.0), times(-0.3)
    ('10 times more likely if the same author', '2.0 times more likely if different authors')
    """
    ratio = 10 ** abs(llr)
    size = f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"
    return f"{size} times more likely if {'the same author' if llr >= 0 else 'different authors'}"


def posterior(llr: float, prior_odds: float) -> float:
    """The probability of one writer for a reader who came with these odds."""
    return 1 / (1 + 10 ** -(llr + log10(prior_odds)))
