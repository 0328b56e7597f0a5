"""The figures of the study, as SVG text; drawn with the tools of `evaluate.plots`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from idiograph.plots.panels import FIRST, INK, SECOND, SOFT, make_panels, svg
from idiograph.study.bench import Doubles
from idiograph.study.table import Cell, Table
from idiograph.study.tables.patchsize import SHAPES, Curve, coefficient

COLOURS = (FIRST, SECOND, "#b45309", "#7c3aed", "#be123c", "#4d7c0f", "#0ea5e9", "#f59e0b", INK, SOFT, "#db2777")
SHADES = (FIRST, "#5eada6", "#b45309", "#e0a458", SECOND, "#93a8e8")
TILES = 9  # tokens of each text in the drawing of scoring modes


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
            there = (at * 2 + 1) % count
            ends = [(at + 0.5) * TILES / count, (there + 0.5) * TILES / count]
            axis.plot(ends, [1.0, 0.45], color=INK, linewidth=0.8, alpha=0.6)
        axis.set(title=title, xlim=(-0.2, TILES + 0.2), ylim=(-0.1, 1.6))
        axis.axis("off")
    return svg(figure)


def rectangle(axis: Any, left: float, bottom: float, width: float, height: float, colour: str) -> None:
    right, top = left + width, bottom + height
    axis.fill([left, right, right, left], [bottom, bottom, top, top], color=colour, alpha=0.75, linewidth=0)


def line_panels(tables: Mapping[str, Table], places: Sequence[float], axis_label: str, width: float = 11.0) -> str:
    """A panel a table: its rows as lines over the columns, with intervals, a little apart."""
    figure, axes = make_panels(len(tables), width=width, height=3.9)
    for axis, (title, table) in zip(axes, tables.items(), strict=True):
        draw_rows(axis, table, places)
        axis.set(title=title, xlabel=axis_label, xticks=list(places))
    draw_legend(figure, axes)
    return svg(figure)


def draw_rows(axis: Any, table: Table, places: Sequence[float]) -> None:
    known = [(at, row) for at, row in enumerate(table.rows) if any(cell.known for cell in row.cells)]
    step = 0.06 * (places[1] - places[0] if len(places) > 1 else 1.0)
    for turn, (number, row) in enumerate(known):
        shifted = [at + step * (turn - (len(known) - 1) / 2) for at in places]
        draw_cells(axis, shifted, row.cells, row.label, COLOURS[number % len(COLOURS)])


def draw_legend(figure: Any, axes: Sequence[Any]) -> None:
    """One for all panels, below them: it hides no line."""
    found = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if found:
        columns = math.ceil(len(found) / math.ceil(len(found) / 5))
        figure.legend(
            found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8
        )


def draw_cells(
    axis: Any, places: Sequence[float], cells: Sequence[Cell], label: str, colour: str, line: str = "-"
) -> None:
    known = [(at, cell) for at, cell in zip(places, cells, strict=True) if cell.known]
    if not known:
        return
    values = np.array([cell.value for _, cell in known])
    low, high = (np.array([getattr(cell, side) for _, cell in known]) for side in ("low", "high"))
    error = np.nan_to_num(np.stack([values - low, high - values]))
    axis.errorbar(
        [at for at, _ in known], values, yerr=error, label=label or None, color=colour, marker="o", markersize=3,
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


def temperature(table: Table, published: str) -> str:
    """A line a grain over the fixed temperatures, and points for what is learned or summed; the published one is marked."""
    figure, (axis,) = make_panels(1, width=8.5, height=4.2)
    fixed = [at for at, column in enumerate(table.columns) if column.replace(".", "", 1).isdigit()]
    others = [at for at in range(len(table.columns)) if at not in fixed]
    for turn, row in enumerate(table.rows):
        shift = 0.07 * (turn - (len(table.rows) - 1) / 2)
        lined = any(row.cells[at].known for at in fixed)
        for label, part, line in ((row.label, fixed, "-"), ("" if lined else row.label, others, "")):
            draw_cells(axis, [at + shift for at in part], [row.cells[at] for at in part], label, COLOURS[turn], line)
    names = [column.replace(" (", "\n(") for column in table.columns]
    axis.set(xticks=range(len(names)), xticklabels=names, xlabel="temperature", ylabel="R@20")
    if published in table.columns:
        at = table.columns.index(published)
        axis.axvspan(at - 0.4, at + 0.4, color=SOFT, alpha=0.18, linewidth=0)
    draw_legend(figure, [axis])
    return svg(figure)


def geometry(table: Table) -> str:
    """Alignment against uniformity: ours filled, the published ones hollow."""
    figure, (axis,) = make_panels(1, width=7.5, height=4.2)
    for number, row in enumerate(table.rows):
        colour = COLOURS[number % len(COLOURS)]
        ours, theirs = ([getattr(cell, kind) for cell in row.cells] for kind in ("value", "published"))
        axis.plot(ours[1:], ours[:1], "o", color=colour, label=row.label)
        axis.plot(theirs[1:], theirs[:1], "o", color=colour, markerfacecolor="none")
    axis.set(xlabel="uniformity (lower: more spread)", ylabel="alignment (lower: closer)")
    axis.set_title("filled: here; hollow: published", fontsize=9)
    draw_legend(figure, [axis])
    return svg(figure)


def scatter(meaning: Doubles, style: Doubles, by: str, limit: int = 800) -> str:
    """Pairs by likeness of meaning and of style: positives and negatives."""
    figure, (axis,) = make_panels(1, width=6.0, height=4.2)
    for column, (label, colour) in enumerate((("same author", FIRST), ("different authors", SOFT))):
        axis.scatter(
            meaning[:limit, column], style[:limit, column], s=6, alpha=0.5, color=colour, label=label, rasterized=True
        )
    axis.set(xlabel=f"likeness of meaning ({by})", ylabel="likeness of style (trained)")
    axis.legend(frameon=False)
    return svg(figure)


def patch_sizes(curves: Mapping[str, Curve], coefficient_published: float) -> str:
    """The best size by length: how often each is chosen in resamples, and the curves through the choices."""
    figure, axes = make_panels(len(curves), width=11.0, height=3.2)
    for axis, (name, one) in zip(axes, curves.items(), strict=True):
        for at, length in enumerate(one.lengths):
            values, counts = np.unique(one.best_resampled[:, at], return_counts=True)
            axis.scatter(np.full(len(values), length), values, s=160 * counts / counts.sum(), color=FIRST, alpha=0.6)
        fine = np.linspace(one.lengths.min(), one.lengths.max(), 60)
        for number, shape in enumerate(SHAPES):
            factor, _ = coefficient(one.lengths, one.best, shape)
            axis.plot(fine, factor * SHAPES[shape](fine), color=COLOURS[number], linewidth=1, label=shape)
        axis.plot(
            fine, coefficient_published * np.sqrt(fine), color=INK, linestyle=":", linewidth=1.2, label="published"
        )
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
