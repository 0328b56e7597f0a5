"""How documents look to a ranker, and how questions stand with some of them when a panel stands for all the others.

A library that is compared as a whole reads each score against everybody's. Of a large one only a panel is compared, drawn
at random: what a question scores with the panel, and what the panel scores with a document, take their place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.evidence import Bools, Floats, row_statistics, standardise
from idiograph.rankers.model import PassageVectors
from idiograph.rankers.rates import unit_rows
from idiograph.style.patches import ragged_rows

CELLS_AT_ONCE = 1 << 24  # passages times passages that are compared at a time


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """Some texts, and their passages as vectors of unit length."""

    texts: Sequence[str]
    vectors: PassageVectors


class View(Protocol):
    """What one ranker sees of a text, so that any two texts can be compared."""

    def place(self, read: ReadTexts) -> Any: ...

    def compare(self, one: Any, two: Any) -> Floats:
        """(texts, texts), of what `place` gave."""
        ...


@dataclass(frozen=True, slots=True)
class CountView:
    """What a ranker that counts sees: points, by what it learned from a sample of the library."""

    points: Callable[[Sequence[str]], Floats]  # (texts, features)

    def place(self, read: ReadTexts) -> NDArray[np.float32]:
        return unit_rows(self.points(read.texts)).astype(np.float32)

    def compare(self, one: NDArray[np.float32], two: NDArray[np.float32]) -> Floats:
        return (one @ two.T).astype(np.float64)


@dataclass(frozen=True, slots=True)
class ModelView:
    """What the model sees: the mean over passages of the best counterpart, from both sides."""

    def place(self, read: ReadTexts) -> PassageVectors:
        return read.vectors

    def compare(self, one: PassageVectors, two: PassageVectors) -> Floats:
        parts = [best_counterparts(some, two) for some in split_vectors(one, CELLS_AT_ONCE // max(len(two.vectors), 1))]
        return np.concatenate(parts)


def split_vectors(read: PassageVectors, most: int) -> list[PassageVectors]:
    """Texts in groups of at most so many passages; one that has more is a group."""
    group = (np.cumsum(read.lengths) - 1) // max(most, 1)
    return [take_texts(read, np.flatnonzero(group == number)) for number in np.unique(group)]


def take_texts(read: PassageVectors, which: Any) -> PassageVectors:
    rows = ragged_rows(read.starts[which], read.lengths[which])
    return PassageVectors(read.vectors[rows], read.lengths[which])


def best_counterparts(one: PassageVectors, two: PassageVectors) -> Floats:
    similar = one.vectors @ two.vectors.T
    forward = np.add.reduceat(np.maximum.reduceat(similar, two.starts, axis=1), one.starts, axis=0, dtype=np.float64)
    back = np.add.reduceat(np.maximum.reduceat(similar, one.starts, axis=0), two.starts, axis=1, dtype=np.float64)
    return (forward / one.lengths[:, None] + back / two.lengths) / 2


@dataclass(frozen=True)
class PanelView:
    """A view with the panel: what the panel's texts score with each other, each without itself."""

    view: View
    panel: Any
    rows: tuple[Floats, Floats]  # mean and spread of what each scores with the others: (panel, 1)
    columns: tuple[Floats, Floats]  # of what the others, so standardised, score with each: (panel, 1)

    @classmethod
    def of(cls, view: View, panel: ReadTexts) -> "PanelView":
        placed = view.place(panel)
        among = view.compare(placed, placed)
        np.fill_diagonal(among, np.nan)
        rows = row_statistics(among)
        return cls(view, placed, rows, row_statistics(standardise(among, *rows).T))

    def standings(self, asked: Any, documents: Any, out: Bools, itself: Bools) -> Floats:
        """How questions stand with the panel and with some documents: (questions, panel + documents).

        `out` says which texts of the panel do not count, `itself` which are one of the documents: (panel, documents).
        """
        on_panel = self.view.compare(asked, self.panel)
        on_panel[:, out] = np.nan
        scores = np.concatenate([on_panel, self.view.compare(asked, documents)], axis=1)
        by_row = standardise(scores, *row_statistics(on_panel))
        theirs = standardise(self.view.compare(self.panel, documents), *self.rows)
        theirs[itself] = np.nan
        mean, spread = (np.concatenate(pair).T for pair in zip(self.columns, row_statistics(theirs.T), strict=True))
        return (by_row + standardise(by_row, mean, spread)) / 2
