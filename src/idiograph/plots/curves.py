"""The figures of forensic comparison, as SVG text: Tippett, PAV, cross-entropy; and who wrote which part of a text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idiograph.plots.panels import FIRST, INK, SECOND, SOFT, make_panels, svg

if TYPE_CHECKING:
    from idiograph.measures.likelihood import Curves

COLOURS = (FIRST, SECOND, "#b45309", "#7c3aed", "#be123c", "#4d7c0f", "#0369a1", "#a16207")
Floats = NDArray[np.float64]


def evidence_panels(found: "Curves") -> str:
    """Three panels: shares that exceed a ratio (Tippett), ratios against the best ones (PAV), cross-entropy (ECE)."""
    figure, (left, middle, right) = make_panels(3, width=11.0, height=3.4)
    tippett_panel(left, found)
    pav_panel(middle, found)
    entropy_panel(right, found)
    return svg(figure)


def tippett_panel(axis: Any, found: "Curves") -> None:
    for llr, label, colour in ((found.same, "one writer", FIRST), (found.different, "two writers", SECOND)):
        x = np.sort(llr)
        share = 1 - np.arange(len(x)) / len(x)
        axis.step(x, 100 * share, where="pre", color=colour, label=label)
    axis.axvline(0, color=SOFT, linewidth=0.8)
    axis.set(xlabel="log10 LR", ylabel="pairs with this ratio or more, %", title="Tippett")
    axis.legend(frameon=False, fontsize=8)


def pav_panel(axis: Any, found: "Curves") -> None:
    llr = np.concatenate([found.same, found.different])
    best = np.concatenate([found.best_same, found.best_different])
    order = np.argsort(llr, kind="stable")
    shown = np.isfinite(best[order])
    axis.plot(llr[order][shown], best[order][shown], color=FIRST, linewidth=1.4, label="best the order allows")
    ends = [float(llr.min()), float(llr.max())]
    axis.plot(ends, ends, color=SOFT, linewidth=0.8, linestyle="--", label="perfectly calibrated")
    axis.set(xlabel="log10 LR as given", ylabel="log10 LR after PAV", title="PAV")
    axis.legend(frameon=False, fontsize=8)


def entropy_panel(axis: Any, found: "Curves") -> None:
    axis.plot(found.prior, found.entropy_neutral, color=SOFT, linestyle=":", label="no evidence")
    axis.plot(found.prior, found.entropy, color=FIRST, label="as given")
    axis.plot(found.prior, found.entropy_best, color=SECOND, linestyle="--", label="best the order allows")
    axis.set(xlabel="prior, log10 odds", ylabel="cross-entropy, bits", title="ECE")
    axis.legend(frameon=False, fontsize=8)


def along_axis(starts: Sequence[int], llr: Floats, names: Sequence[str], owners: Sequence[int]) -> str:
    """Ratios of the candidates (windows, candidates) along a text, and below who each part is given to (−1: nobody)."""
    figure, (axis,) = make_panels(1, width=9.5, height=3.2)
    x = np.asarray(starts, dtype=float)
    for at, name in enumerate(names):
        axis.plot(x, llr[:, at], color=COLOURS[at % len(COLOURS)], label=name, linewidth=1.4)
    floor = float(llr.min()) - 0.35
    ends = np.append(x[1:], x[-1] + (x[-1] - x[-2] if len(x) > 1 else 1))
    for begin, end, owner in zip(x, ends, owners, strict=True):
        colour = COLOURS[owner % len(COLOURS)] if owner >= 0 else "#d5d9e0"
        axis.barh(floor, end - begin, left=begin, height=0.18, color=colour)
    axis.axhline(0, color=INK, linewidth=0.6)
    axis.set(xlabel="character of the text", ylabel="log10 LR")
    axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return svg(figure)
