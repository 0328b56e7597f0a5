"""From a score to a likelihood ratio: how much more often does such a score come from one writer than from two?

Base-10 logarithms throughout. A ratio is bounded by the number of pairs that it was learned from: a hundred pairs cannot
support "a million to one".
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import InputError

# |log10 LR| from which each word applies; the scale of forensic text comparison.
SCALE = ((4.0, "extremely strong"), (3.0, "very strong"), (2.0, "strong"), (1.0, "moderate"), (0.0, "weak"))
INCONCLUSIVE = 0.3  # a ratio under 2 to 1 either way is no answer
LEAST = 8  # pairs of each kind under which a calibration would be a guess


@dataclass(frozen=True, slots=True)
class Calibration:
    """llr = (slope · score + intercept) / ln 10, within ± bound."""

    slope: float
    intercept: float
    bound: float
    same: int  # pairs by one writer that it was learned from
    different: int
    style: str  # fingerprint of the style whose scores it takes
    source: str  # the corpus

    def llr(self, score: float) -> float:
        """The log10 likelihood ratio of a score."""
        raw = (self.slope * score + self.intercept) / log(10)
        return max(-self.bound, min(self.bound, raw))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def fit(same: Sequence[float], different: Sequence[float], style: str, source: str) -> Calibration:
    """A logistic calibration in which both kinds of pair weigh the same, whatever their number."""
    from sklearn.linear_model import LogisticRegression

    fewest = min(len(same), len(different))
    if fewest < LEAST:
        raise InputError(
            f"only {len(same)} same-author and {len(different)} different-author pairs to calibrate on; {LEAST} of each "
            "are needed: index at least two documents of several authors"
        )
    scores = np.concatenate([same, different])
    middle, width = float(scores.mean()), float(scores.std()) or 1.0
    labels = np.repeat([1, 0], [len(same), len(different)])
    model = LogisticRegression(C=1e4, class_weight="balanced").fit(((scores - middle) / width)[:, None], labels)
    slope = float(model.coef_[0, 0]) / width
    intercept = float(model.intercept_[0]) - slope * middle
    return Calibration(slope, intercept, log10(fewest), len(same), len(different), style, source)


def words(llr: float) -> str:
    """What a likelihood ratio says, in words.

    >>> words(1.3), words(-2.5)
    ('moderate support for the same author', 'strong support for different authors')
    """
    if abs(llr) < INCONCLUSIVE:
        return "inconclusive"
    strength = next(name for least, name in SCALE if abs(llr) >= least)
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
    odds = prior_odds * 10**llr
    return odds / (1 + odds)


def cllr(same: NDArray[np.float64], different: NDArray[np.float64]) -> float:
    """The cost of a set of log10 likelihood ratios: 0 is perfect, 1 is saying nothing."""
    return 0.5 * float(np.log2(1 + 10.0**-same).mean() + np.log2(1 + 10.0**different).mean())
