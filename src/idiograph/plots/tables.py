"""Figures of tables, as SVG text: rows as lines, bars, points or histograms. Which numbers they show is decided elsewhere."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.plots.panels import FIRST, INK, SECOND, SOFT, make_panels, svg

Doubles = NDArray[np.float64]

COLOURS = (FIRST, SECOND, "#b45309", "#7c3aed", "#be123c", "#4d7c0f", "#0ea5e9", "#f59e0b", INK, SOFT, "#db2777")
SHADES = (FIRST, "#5eada6", "#b45309", "#e0a458", SECOND, "#93a8e8")
TILES = 9  # tokens of each text in the drawing of scoring modes


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A row of values with their intervals, and what was published in their place; NaN where there is nothing."""

    label: str
    values: Doubles
    low: Doubles
    high: Doubles
    published: Doubles

    @property
    def known(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.values)

    def at(self, columns: Sequence[int], label: str) -> "Series":
        """Some of the columns, under another label."""
        places = list(columns)
        return Series(label, self.values[places], self.low[places], self.high[places], self.published[places])


@dataclass(frozen=True, slots=True, eq=False)
class SizeChoices:
    """The patch size that is best for each length of text, in resamples, and curves through the choices."""

    lengths: Doubles  # (K,)
    chosen: Doubles  # (R, K)
    fine: Doubles  # (F,) lengths at which the curves are given
    fits: Mapping[str, Doubles]  # name → (F,)
    published: Doubles  # (F,)


def scoring_modes() -> str:
    """Three ways to compare two texts: one vector each, a vector a token, a vector a patch."""
    figure, axes = make_panels(3, width=10.0, height=2.4)
    for axis, (title, size) in zip(
        axes, (("mean pooling", TILES), ("late interaction", 1), ("patches of three", 3)), strict=True
    ):
        for row, colour in ((1.0, FIRST), (0.0, SECOND)):
            for start in range(0, TILES, size):
                rectangle(axis, start + 0.08, row, min(size, TILES - start) - 0.16, 0.45, colour)
        count = math.ceil(TILES / size)
        for at in range(count):
            other = (at * 2 + 1) % count
            ends = [(at + 0.5) * TILES / count, (other + 0.5) * TILES / count]
            axis.plot(ends, [1.0, 0.45], color=INK, linewidth=0.8, alpha=0.6)
        axis.set(title=title, xlim=(-0.2, TILES + 0.2), ylim=(-0.1, 1.6))
        axis.axis("off")
    return svg(figure)


def rectangle(axis: Any, left: float, bottom: float, width: float, height: float, colour: str) -> None:
    right, top = left + width, bottom + height
    axis.fill([left, right, right, left], [bottom, bottom, top, top], color=colour, alpha=0.75, linewidth=0)


def line_panels(panels: Mapping[str, Sequence[Series]], places: Sequence[float], label: str, width: float) -> str:
    """A panel a table: its rows as lines over the columns, with intervals, side by side a little."""
    figure, axes = make_panels(len(panels), width=width, height=3.9)
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        draw_rows(axis, rows, places)
        axis.set(title=title, xlabel=label, xticks=list(places))
    draw_legend(figure, axes)
    return svg(figure)


def draw_rows(axis: Any, rows: Sequence[Series], places: Sequence[float]) -> None:
    known = [(at, row) for at, row in enumerate(rows) if row.known.any()]
    step = 0.06 * (places[1] - places[0] if len(places) > 1 else 1.0)
    for turn, (number, row) in enumerate(known):
        shifted = [at + step * (turn - (len(known) - 1) / 2) for at in places]
        draw_series(axis, shifted, row, COLOURS[number % len(COLOURS)])


def draw_legend(figure: Any, axes: Sequence[Any]) -> None:
    """One for all panels, below them: it hides no line."""
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if handles:
        columns = math.ceil(len(handles) / math.ceil(len(handles) / 5))
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8
        )


def draw_series(axis: Any, places: Sequence[float], row: Series, colour: str, line: str = "-") -> None:
    known = row.known
    if not known.any():
        return
    values, low, high = row.values[known], row.low[known], row.high[known]
    error = np.nan_to_num(np.stack([values - low, high - values]))
    axis.errorbar(
        np.array(places)[known], values, yerr=error, label=row.label or None, color=colour, marker="o", markersize=3,
        linestyle=line, linewidth=1.2, elinewidth=0.7,
    )  # fmt: skip


def grouped_bars(groups: Mapping[str, Mapping[str, float]], label: str) -> str:
    """Bars side by side, a colour for each group."""
    names = list(dict.fromkeys(name for values in groups.values() for name in values))
    figure, (axis,) = make_panels(1, width=8.0, height=0.8 + len(names) * (0.12 + 0.1 * len(groups)))
    share = 0.8 / max(len(groups), 1)
    for number, (group, values) in enumerate(groups.items()):
        places = np.arange(len(names)) + share * (number - (len(groups) - 1) / 2)
        axis.barh(places, [values.get(name, 0.0) for name in names], share, label=group, color=SHADES[number % 6])
    axis.set(yticks=range(len(names)), yticklabels=names, xlabel=label)
    axis.invert_yaxis()
    draw_legend(figure, [axis])
    return svg(figure)


def temperature_lines(rows: Sequence[Series], columns: Sequence[str], published: str) -> str:
    """A line a grain over the fixed temperatures, and points for what is learned or summed; the published one is marked."""
    figure, (axis,) = make_panels(1, width=8.5, height=4.2)
    fixed = [at for at, column in enumerate(columns) if column.replace(".", "", 1).isdigit()]
    others = [at for at in range(len(columns)) if at not in fixed]
    for turn, row in enumerate(rows):
        shift = 0.07 * (turn - (len(rows) - 1) / 2)
        lined = bool(row.known[fixed].any())
        for label, part, line in ((row.label, fixed, "-"), ("" if lined else row.label, others, "")):
            draw_series(axis, [at + shift for at in part], row.at(part, label), COLOURS[turn], line)
    names = [column.replace(" (", "\n(") for column in columns]
    axis.set(xticks=range(len(names)), xticklabels=names, xlabel="temperature", ylabel="R@20")
    if published in columns:
        at = columns.index(published)
        axis.axvspan(at - 0.4, at + 0.4, color=SOFT, alpha=0.18, linewidth=0)
    draw_legend(figure, [axis])
    return svg(figure)


def spread_points(rows: Sequence[Series]) -> str:
    """Alignment (the first value) against uniformity (the second): ours filled, the published ones hollow."""
    figure, (axis,) = make_panels(1, width=7.5, height=4.2)
    for number, row in enumerate(rows):
        colour = COLOURS[number % len(COLOURS)]
        axis.plot(row.values[1:], row.values[:1], "o", color=colour, label=row.label)
        axis.plot(row.published[1:], row.published[:1], "o", color=colour, markerfacecolor="none")
    axis.set(xlabel="uniformity (lower: more spread)", ylabel="alignment (lower: closer)")
    axis.set_title("filled: here; hollow: published", fontsize=9)
    draw_legend(figure, [axis])
    return svg(figure)


def likeness_scatter(meaning: Doubles, style: Doubles, by: str, limit: int = 800) -> str:
    """Pairs by likeness of meaning and of style: positives and negatives, (pairs, 2)."""
    figure, (axis,) = make_panels(1, width=6.0, height=4.2)
    for column, (label, colour) in enumerate((("same author", FIRST), ("different authors", SOFT))):
        axis.scatter(
            meaning[:limit, column], style[:limit, column], s=6, alpha=0.5, color=colour, label=label, rasterized=True
        )
    axis.set(xlabel=f"likeness of meaning ({by})", ylabel="likeness of style (trained)")
    axis.legend(frameon=False)
    return svg(figure)


def patch_sizes(panels: Mapping[str, SizeChoices]) -> str:
    """The best size by length: how often each is chosen in resamples, and the curves through the choices."""
    figure, axes = make_panels(len(panels), width=11.0, height=3.2)
    for axis, (name, one) in zip(axes, panels.items(), strict=True):
        for at, length in enumerate(one.lengths):
            values, counts = np.unique(one.chosen[:, at], return_counts=True)
            axis.scatter(np.full(len(values), length), values, s=160 * counts / counts.sum(), color=FIRST, alpha=0.6)
        for number, (shape, fit) in enumerate(one.fits.items()):
            axis.plot(one.fine, fit, color=COLOURS[number], linewidth=1, label=shape)
        axis.plot(one.fine, one.published, color=INK, linestyle=":", linewidth=1.2, label="published")
        axis.set(title=name, xlabel="tokens of a span", ylim=(0.5, 5.5))
    axes[-1].legend(frameon=False, fontsize=7)
    return svg(figure)


def histograms(parts: Mapping[str, Doubles]) -> str:
    """One distribution a panel, with its mean: signal and noise of word overlap."""
    figure, axes = make_panels(len(parts), width=2.6 * len(parts), height=2.3)
    for axis, (name, values) in zip(axes, parts.items(), strict=True):
        axis.hist(values, bins=30, color=FIRST)
        axis.axvline(float(values.mean()), color=INK, linewidth=1)
        axis.set(xlabel=f"{name}\nmean {values.mean():.3f}", yticks=[])
    return svg(figure)
