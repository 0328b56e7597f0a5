"""Texts as rates of frequent features, on scales that are learned from a library without the text that was asked about."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from idiograph.rankers.counts import (
    Doubles,
    FeatureCounts,
    FrequentFeatures,
    Keys,
    Places,
    left_out_places,
    questions_by_place,
)
from idiograph.rankers.features import CountedParts
from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores

Transform = Callable[[Doubles], Doubles]  # rates (texts, features) to coordinates (texts, features)
Fit = Callable[[Doubles, Sequence[str]], Transform]  # from the rates of a library and who wrote each text
Nearness = Literal["angle", "distance"]
Coordinates = tuple[
    int, Places, Doubles, Doubles, Keys
]  # left out, questions, their points, the library's, feature keys
NO_SPREAD = 1e-9  # of a mean: below it, a feature is the same in all texts and says nothing


@dataclass(frozen=True, slots=True)
class RateTable:
    """The rates of frequent features in every text of a library."""

    frequent: FrequentFeatures
    rates: Doubles  # (texts, features)


def table_of(frequent: FrequentFeatures) -> RateTable:
    return RateTable(frequent, as_rates(frequent.counts))


def as_rates(counts: FeatureCounts) -> Doubles:
    """Counts as shares of everything in the text that was counted."""
    return counts.table.toarray() / np.maximum(counts.totals, 1)[:, None]


@dataclass(frozen=True, slots=True)
class LearnedRates:
    """A library as points, and how near a text is to each. What `fit` learns, it learns without the left-out text."""

    name: str
    library: Library
    tables: tuple[RateTable, ...]
    fit: Fit
    nearness: Nearness = "angle"

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """(texts, library): cosine, or less by as much as they differ; a text with none of the features scores 0."""
        scores = np.zeros((len(texts), len(self.library)))
        for place, which, questions, known, _ in self.coordinates(texts, left_out):
            scores[which] = NEARNESS[self.nearness](questions, known)
            if place != NOT_IN_LIBRARY:
                scores[which, place] = np.nan
        return scores

    def between(self, texts: Sequence[str], others: Sequence[str]) -> Scores:
        """(texts, others): how near texts are to texts that the library does not have, by what was learned from it."""
        points = self.points([*texts, *others])
        return NEARNESS[self.nearness](points[: len(texts)], points[len(texts) :])

    def points(self, texts: Sequence[str]) -> Doubles:
        """The coordinates of any texts by what was learned from the library: (texts, features)."""
        return self.placer()(texts)

    def placer(self) -> Callable[[Sequence[str]], Doubles]:
        """`points` for many calls: what is learned from the library is learned once."""
        columns = self._columns(NOT_IN_LIBRARY)
        known = np.hstack([table.rates[:, at] for table, at in zip(self.tables, columns, strict=True)])
        transform = self.fit(known, self.library.authors)

        def place(texts: Sequence[str]) -> Doubles:
            pairs = zip(self.tables, columns, strict=True)
            rows = np.hstack([as_rates(table.frequent.count(texts))[:, at] for table, at in pairs])
            return transform(rows) * rows.any(axis=1, keepdims=True)

        return place

    def parts_between(self, a: str, b: str) -> list[CountedParts]:
        """What each feature adds to the nearness of two texts that the library does not have; they sum to it."""
        columns = self._columns(NOT_IN_LIBRARY)
        asked = [as_rates(table.frequent.count([a, b])) for table in self.tables]
        (one, two), _ = self._points(asked, columns, NOT_IN_LIBRARY)
        if self.nearness == "angle":
            parts = unit_rows(one[None])[0] * unit_rows(two[None])[0]
        else:
            parts = -np.abs(one - two) / max(len(one), 1) * one.any()
        cuts = np.cumsum([len(at) for at in columns])[:-1]
        each = zip(self.tables, columns, np.split(parts, cuts), strict=True)
        return [CountedParts(table.frequent, at, own) for table, at, own in each]

    def remoteness(self, texts: Sequence[str]) -> Doubles:
        """How far from the middle of the library each text lies: the root of the mean square of its coordinates."""
        return np.sqrt((self.points(texts) ** 2).mean(axis=1))

    def coordinates(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Iterator[Coordinates]:
        """The questions taken from one text of the library after the other, with what the library is without it."""
        places = left_out_places(left_out, len(texts), len(self.library))
        asked = [as_rates(table.frequent.count(texts)) for table in self.tables]
        for place, which in questions_by_place(places):
            columns = self._columns(place)
            questions, known = self._points([rates[which] for rates in asked], columns, place)
            pairs = zip(self.tables, columns, strict=True)
            yield place, which, questions, known, np.concatenate([t.frequent.counts.keys[at] for t, at in pairs])

    def features_without(self, place: int) -> list[tuple[FrequentFeatures, Places]]:
        """Which features the coordinates are, in their order, where a text is left out."""
        return list(zip([table.frequent for table in self.tables], self._columns(place), strict=True))

    def _columns(self, place: int) -> list[Places]:
        return [table.frequent.choose(place) for table in self.tables]

    def _points(self, asked: Sequence[Doubles], columns: Sequence[Places], place: int) -> tuple[Doubles, Doubles]:
        """The coordinates of the questions and of the library; a text that has none of the features is at the origin."""
        known = np.hstack([table.rates[:, at] for table, at in zip(self.tables, columns, strict=True)])
        questions = np.hstack([rates[:, at] for rates, at in zip(asked, columns, strict=True)])
        rest = np.flatnonzero(np.arange(len(known)) != place)
        transform = self.fit(known[rest], [self.library.authors[at] for at in rest])
        return tuple(transform(rows) * rows.any(axis=1, keepdims=True) for rows in (questions, known))  # pyright: ignore[reportReturnType]

    def shares(self, text: str, place: int, left_out: int = NOT_IN_LIBRARY) -> list[tuple[str, float]]:
        """What each feature adds to the score of a text and the text at `place`, the largest first; they sum to it."""
        columns = self._columns(left_out)
        asked = [as_rates(table.frequent.count([text])) for table in self.tables]
        (question,), known = self._points(asked, columns, left_out)
        if self.nearness == "angle":
            parts = unit_rows(question[None])[0] * unit_rows(known[[place]])[0]
        else:
            parts = -np.abs(question - known[place]) / max(len(question), 1) * question.any()
        return name_parts(parts, self.features_without(left_out), self._around(text, place))

    def _around(self, text: str, place: int) -> list[str]:
        """The texts in which letters of features are looked up: the two that were compared before all others."""
        return [text, self.library.texts[place], *self.library.texts]


def name_parts(
    parts: Doubles, tables: Sequence[tuple[FrequentFeatures, Places]], texts: Sequence[str]
) -> list[tuple[str, float]]:
    """Shares of a score with the features that they belong to, the largest first, without those that are 0."""
    found: list[tuple[str, float]] = []
    start = 0
    for frequent, columns in tables:
        mine = parts[start : start + len(columns)]
        at = np.flatnonzero(mine)
        found += zip(frequent.spell(columns[at], texts), mine[at].tolist(), strict=True)
        start += len(columns)
    return sorted(found, key=lambda each: (-abs(each[1]), each[0]))


def unit_rows(rows: Doubles) -> Doubles:
    """Each row with length 1; rows of zeros stay as they are."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def angles(questions: Doubles, known: Doubles) -> Scores:
    """The cosine of each question with each text."""
    return unit_rows(questions) @ unit_rows(known).T


def differences(questions: Doubles, known: Doubles) -> Scores:
    """Less than 0 by the mean difference of coordinates; 0 all through for a question with nothing in it."""
    from scipy.spatial.distance import cdist  # loads slowly

    return -cdist(questions, known, "cityblock") / max(known.shape[1], 1) * questions.any(axis=1, keepdims=True)


NEARNESS: dict[Nearness, Callable[[Doubles, Doubles], Scores]] = {"angle": angles, "distance": differences}


def fit_z_scores(rates: Doubles, _authors: Sequence[str]) -> Transform:
    """How many standard deviations a rate is above the mean of the library."""
    mean, spread = rates.mean(axis=0), rates.std(axis=0)
    scale = np.where(spread > NO_SPREAD * mean, 1 / np.maximum(spread, 1e-300), 0)
    return lambda rows: (rows - mean) * scale


def fit_eder(rates: Doubles, authors: Sequence[str]) -> Transform:
    """Z-scores that count the more the more frequent a feature is (Eder's Delta, as in stylo)."""
    standard = fit_z_scores(rates, authors)
    features = rates.shape[1]
    weight = (1 + np.arange(features, 0, -1)) / max(features, 1)
    return lambda rows: standard(rows) * weight


def fit_entropy(rates: Doubles, _authors: Sequence[str]) -> Transform:
    """Logarithms of rates in per cent, that count the more the less evenly a feature is spread over the library (as in stylo)."""
    shares = (100 * rates + 1) / (100 * rates + 1).sum(axis=0)
    evenness = np.maximum(-(shares * np.log(shares)).sum(axis=0), NO_SPREAD)
    return lambda rows: np.log(100 * rows + 2) / evenness
