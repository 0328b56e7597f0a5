"""Figures of one comparison, as SVG text in the colours of the page that holds them: the ratio on a scale with its bounds, the
ratios of a population with this one among them (Tippett), what each method adds, and whether promises came true."""

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from idiograph.plots.panels import FIRST, INK, SECOND, SETTINGS, SOFT

CASE, WASH = "#b45309", "#e3e7ee"
VARIABLES = {INK: "var(--ink)", SOFT: "var(--soft)", FIRST: "var(--a)", SECOND: "var(--b)"}
VARIABLES |= {CASE: "var(--warn)", WASH: "var(--line)"}
TEXT: dict[Any, Any] = {"svg.fonttype": "none", "font.family": "sans-serif", "text.color": INK, "axes.labelcolor": INK}
TEXT |= {"axes.edgecolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT}
TEXT |= {"xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.facecolor": "none", "figure.facecolor": "none"}
LEAST_REACH = 2.0  # log10 units that a scale shows on either side, at least
WIDTH = 5.2  # inches: letters stay legible on a telephone


def page_svg(figure: Figure, label: str) -> str:
    """The figure as an <svg> whose colours are those of the page, light or dark, and whose letters are letters."""
    held = io.StringIO()
    with mpl.rc_context({**SETTINGS, **TEXT}):
        about = {"Date": None, "Creator": None, "Title": label}
        figure.savefig(held, format="svg", bbox_inches="tight", transparent=True, metadata=about)
    drawn = held.getvalue()[held.getvalue().index("<svg") :]
    for colour, variable in VARIABLES.items():
        drawn = drawn.replace(colour, variable)
    return drawn.replace("<svg ", f'<svg class="themed" role="img" aria-label="{label}" ', 1)


def make_panel(height: float) -> tuple[Figure, Any]:
    with mpl.rc_context({**SETTINGS, **TEXT}):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        return figure, figure.subplots()


def ratio_scale(llr: float, low: float, high: float) -> str:
    """A log10 ratio between "two hands" and "one hand"; the thick line is what the known pairs can support."""
    figure, axis = make_panel(1.25)
    reach = max(LEAST_REACH, abs(llr), abs(low), abs(high)) * 1.1
    axis.plot([-reach, reach], [0, 0], color=WASH, linewidth=9, solid_capstyle="round")
    axis.plot([low, high], [0, 0], color=SOFT, linewidth=9, solid_capstyle="butt")
    axis.plot([0, 0], [-0.5, 0.5], color=INK, linewidth=1)
    axis.plot([llr], [0], marker="D", markersize=11, color=CASE)
    axis.annotate(f"{llr:+.2f}", (llr, 0), (0, 13), textcoords="offset points", ha="center", color=INK, weight="bold")
    axis.set(ylim=(-1, 1.6), xlim=(-reach, reach), yticks=[], xlabel="two hands   ←   log10 LR   →   one hand")
    ticks = range(-int(reach), int(reach) + 1)
    axis.set_xticks(list(ticks), [f"{10 ** abs(tick):,}:1" if tick else "1" for tick in ticks])
    axis.spines[["left", "bottom"]].set_visible(False)
    return page_svg(figure, f"log10 likelihood ratio {llr:+.2f}, bounds {low:+.2f} and {high:+.2f}")


def tippett_of_case(same: Sequence[float], different: Sequence[float], llr: float | None) -> str:
    """The share of known pairs with a ratio of at least x, by one hand and by two, and where this pair is if it has one."""
    figure, axis = make_panel(3.2)
    for ratios, name, colour in ((same, "one hand", FIRST), (different, "two hands", SECOND)):
        ordered = sorted(ratios)
        shares = [100 * (1 - at / len(ordered)) for at in range(len(ordered))]
        axis.step([*ordered, ordered[-1]], [*shares, 0], where="pre", color=colour, label=f"known pairs by {name}")
    axis.axvline(0, color=SOFT, linewidth=0.8)
    if llr is not None:
        axis.axvline(llr, color=CASE, linewidth=2, label=f"this pair, {llr:+.2f}")
    axis.set(xlabel="log10 LR", ylabel="pairs with this ratio or more, %", ylim=(0, 102))
    draw_key(figure)
    return page_svg(figure, "Tippett plot of the known pairs, with this pair")


def share_bars(shares: Sequence[tuple[str, float]]) -> str:
    """What each part adds to the log10 ratio: to the right for one hand, to the left for two."""
    figure, axis = make_panel(0.8 + 0.3 * len(shares))
    values = [share for _, share in shares]
    axis.barh(range(len(shares)), values, color=[FIRST if value > 0 else SECOND for value in values], height=0.65)
    axis.axvline(0, color=INK, linewidth=0.8)
    reach = 1.4 * max([abs(value) for value in values] + [0.1])
    for at, value in enumerate(values):
        place = {"ha": "left" if value >= 0 else "right", "va": "center", "color": INK}
        axis.annotate(f"{value:+.2f}", (value, at), (4 if value >= 0 else -4, 0), textcoords="offset points", **place)
    axis.set(yticks=range(len(shares)), yticklabels=[name for name, _ in shares], xlim=(-reach, reach))
    axis.set_xlabel("adds to the log10 ratio")
    axis.invert_yaxis()
    return page_svg(figure, "what each method adds to the log10 ratio")


def promises_kept(curve: Sequence[tuple[float, float, int]]) -> str:
    """Probabilities that the ratios promise at even odds, against how often they came true; larger points: more pairs."""
    figure, axis = make_panel(3.2)
    axis.plot([0, 100], [0, 100], color=SOFT, linewidth=1, label="kept exactly")
    most = max(count for *_, count in curve)
    axis.plot(
        [100 * promised for promised, *_ in curve], [100 * true for _, true, _ in curve], color=FIRST, linewidth=1
    )
    sizes = [15 + 120 * count / most for *_, count in curve]
    points = [100 * promised for promised, *_ in curve], [100 * true for _, true, _ in curve]
    axis.scatter(*points, s=sizes, color=FIRST, label="known pairs")
    axis.set(xlabel="probability of one hand, promised, %", ylabel="came true, %", xlim=(-2, 102), ylim=(-2, 104))
    draw_key(figure)
    return page_svg(figure, "probabilities promised and how often they came true")


def draw_key(figure: Figure) -> None:
    """What the lines are, below the figure: it hides none."""
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9, labelcolor=INK)
