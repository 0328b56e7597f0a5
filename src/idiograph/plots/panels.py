"""One figure a diagnosis, as SVG text that a page can hold. The only place that imports matplotlib."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import matplotlib as mpl
from matplotlib.figure import Figure

INK, SOFT, FIRST, SECOND = "#1d2433", "#8a93a3", "#0f766e", "#1d4ed8"
SETTINGS: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "idiograph",
}


class Interval(Protocol):
    """A measure with its interval."""

    @property
    def measure(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def svg(figure: Figure) -> str:
    """The figure as an <svg> element; the same input gives the same bytes."""
    held = io.StringIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(held, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return held.getvalue()[held.getvalue().index("<svg") :]


def make_panels(count: int, width: float = 9.0, height: float = 3.2) -> tuple[Figure, Any]:
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(1, count, squeeze=False)[0]


def retrieval_panels(names: Sequence[str], rows: Sequence[Interval], topic: Sequence[float]) -> str:
    """A measure with intervals for each ranker, and beside it how often the first hit shares the topic."""
    figure, (left, right) = make_panels(2)
    at = range(len(names))
    errors = [[r.value - r.low for r in rows], [r.high - r.value for r in rows]]
    left.barh(at, [r.value for r in rows], xerr=errors, color=FIRST, ecolor=SOFT)
    left.set(yticks=list(at), yticklabels=list(names), xlabel=rows[0].measure)
    right.barh(at, [100 * t for t in topic], color=SECOND)
    right.set(yticks=[], xlabel="first hit on the same topic, %", xlim=(0, 100))
    for axis in (left, right):
        axis.invert_yaxis()
    return svg(figure)


def right_and_reliable(
    rights: Mapping[str, tuple[float, float, float]], majority: float, curve: Sequence[tuple[float, float, int]]
) -> Figure:
    """How often each method is right with its interval, and what probabilities promise against what came true."""
    figure, (left, right) = make_panels(2)
    at = range(len(rights))
    shares = [share for share, _, _ in rights.values()]
    errors = [[share - low for share, low, _ in rights.values()], [high - share for share, _, high in rights.values()]]
    left.barh(at, shares, xerr=errors, color=FIRST, ecolor=SOFT)
    left.axvline(majority, color=SECOND, linestyle="--")
    left.set(yticks=list(at), yticklabels=list(rights), xlabel="share right; dashed: majority guess", xlim=(0, 1))
    left.invert_yaxis()
    right.plot([0, 1], [0, 1], color=SOFT, linewidth=1)
    right.plot([promised for promised, _, _ in curve], [true for _, true, _ in curve], "o-", color=FIRST)
    right.set(xlabel="probability given", ylabel="how often it was so", xlim=(0, 1), ylim=(0, 1))
    return figure


def two_hills(same: Sequence[float], different: Sequence[float]) -> str:
    """Histograms of the scores of pairs by one writer and by two."""
    figure, (axis,) = make_panels(1, width=7.0)
    low, high = min(*same, *different), max(*same, *different)
    options = {"bins": 40, "range": (low, high), "density": True, "alpha": 0.6}
    axis.hist(different, label="two writers", color=SOFT, **options)
    axis.hist(same, label="one writer", color=FIRST, **options)
    axis.set(xlabel="score of a pair of texts", ylabel="density")
    axis.legend(frameon=False)
    return svg(figure)


def signal_and_noise(words: Any) -> str:
    """Histograms of the four overlaps of a set of triplets, each with its mean."""
    figure, axes = make_panels(4, width=11.0, height=2.4)
    names = {
        "anchor_positive": "anchor ~ positive",
        "anchor_negative": "anchor ~ negative",
        "signal": "signal",
        "noise": "noise",
    }
    for axis, (name, label) in zip(axes, names.items(), strict=True):
        spread = getattr(words, name)
        axis.stairs(spread.counts, spread.edges, fill=True, color=FIRST if name == "signal" else SOFT)
        axis.axvline(spread.mean, color=INK, linewidth=1)
        shown = [edge for edge, count in zip(spread.edges, spread.counts, strict=False) if count]
        axis.set(xlabel=f"{label}, mean {spread.mean:.3f}", yticks=[], xlim=(min(shown) - 0.05, max(shown) + 0.08))
    return svg(figure)


def horizontal_bars(groups: dict[str, dict[str, float]], label: str) -> str:
    """Horizontal bars: a colour a group, a row a name."""
    names = list(dict.fromkeys(name for values in groups.values() for name in values))
    figure, (axis,) = make_panels(1, width=7.5, height=1.2 + 0.28 * len(names) * max(len(groups), 1))
    step = 0.8 / max(len(groups), 1)
    for number, (group, values) in enumerate(groups.items()):
        places = [at + number * step for at in range(len(names))]
        axis.barh(
            places,
            [values.get(n, 0.0) for n in names],
            height=step,
            label=group,
            color=(FIRST, SECOND, SOFT)[number % 3],
        )
    axis.set(yticks=[at + 0.4 - step / 2 for at in range(len(names))], yticklabels=names, xlabel=label)
    axis.invert_yaxis()
    if len(groups) > 1:
        axis.legend(frameon=False)
    return svg(figure)
