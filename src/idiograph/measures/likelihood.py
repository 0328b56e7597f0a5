"""How good are likelihood ratios? Their cost, how much of it is a matter of calibration, and the curves behind it.

Likelihood ratios are base-10 logarithms throughout; `same` and `different` are those of pairs by one hand and by two.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cllr(same: Floats, different: Floats) -> float:
    """The cost of likelihood ratios in bits: 0 is perfect, 1 is saying nothing."""
    return 0.5 * float(mean_bits(-same).mean() + mean_bits(different).mean())


def mean_bits(llr: Floats) -> Floats:
    """log2(1 + 10^llr), without overflow."""
    return np.logaddexp(0.0, llr * np.log(10)) / np.log(2)


def best_ratios(same: Floats, different: Floats) -> tuple[Floats, Floats]:
    """The log10 likelihood ratios that the order of the scores could have had at best: ±inf where one kind stands alone.

    Ties share one value; both kinds weigh the same, whatever their number.
    """
    from sklearn.isotonic import isotonic_regression  # takes most of a second: not before something is measured

    label, scores = label_scores(same, different)
    weight = np.where(label == 1, 0.5 / len(same), 0.5 / len(different))
    _, place = np.unique(scores, return_inverse=True)
    total = np.bincount(place, weights=weight).astype(np.float64)
    share = isotonic_regression(np.bincount(place, weights=weight * label) / total, sample_weight=total)[place]
    with np.errstate(divide="ignore"):
        ratios = np.log10(share) - np.log10(1 - share)
    return ratios[: len(same)], ratios[len(same) :]


def label_scores(same: Floats, different: Floats) -> tuple[Floats, Floats]:
    """Labels and scores as scikit-learn takes them: 1 for same-author pairs, which come first."""
    return np.repeat([1.0, 0.0], [len(same), len(different)]), np.concatenate([same, different])


def cllr_min(same: Floats, different: Floats) -> float:
    """What the ratios would cost if they were calibrated as well as their order allows: what is left is discrimination."""
    return cllr(*best_ratios(same, different))


def auc(same: Floats, different: Floats) -> float:
    """The chance that a same-author pair scores higher than a different-author pair, ties counted half."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(*label_scores(same, different)))


def eer(same: Floats, different: Floats) -> float:
    """The error rate at the threshold where false acceptances and false rejections are as frequent."""
    from sklearn.metrics import roc_curve

    false, true, _ = roc_curve(*label_scores(same, different), drop_intermediate=False)
    gap = false - (1 - true)  # from -1 to 1, never falling
    at = int(np.argmax(gap >= 0))
    if at == 0 or gap[at] == gap[at - 1]:
        return float(false[at])
    part = -gap[at - 1] / (gap[at] - gap[at - 1])
    return float(false[at - 1] + part * (false[at] - false[at - 1]))


def cross_entropy(same: Floats, different: Floats, prior: Floats) -> Floats:
    """Empirical cross-entropy in bits at each prior (log10 odds): what a reader with that prior still does not know."""
    chance = 1 / (1 + 10.0**-prior)
    of_same = mean_bits(-(same[None] + prior[:, None])).mean(axis=1)
    of_different = mean_bits(different[None] + prior[:, None]).mean(axis=1)
    return chance * of_same + (1 - chance) * of_different


@dataclass(frozen=True, slots=True)
class Curves:
    """What the plots show: shares that exceed a ratio, ratios against the best ones, cross-entropy over priors."""

    same: Floats
    different: Floats
    best_same: Floats
    best_different: Floats
    prior: Floats
    entropy: Floats
    entropy_best: Floats
    entropy_neutral: Floats


def calibration_curves(same: Floats, different: Floats) -> Curves:
    prior = np.linspace(-2.5, 2.5, 101)
    best = best_ratios(same, different)
    neutral = cross_entropy(np.zeros(1), np.zeros(1), prior)
    entropy = cross_entropy(same, different, prior)
    return Curves(same, different, *best, prior, entropy, cross_entropy(*best, prior), neutral)
