"""Cosine of features weighted by TF-IDF, learned from a library without the text that was asked about."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from idiograph.rankers.counts import (
    Doubles,
    FrequentFeatures,
    Places,
    left_out_places,
    questions_by_place,
)
from idiograph.rankers.features import CountedParts
from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores
from idiograph.rankers.rates import Coordinates, name_parts, unit_rows


@dataclass(frozen=True, slots=True)
class LearnedTfIdf:
    """A library as counts on a log scale; how rare a feature is, is counted anew for each text that is left out."""

    name: str
    library: Library
    frequent: FrequentFeatures
    logs: csr_array  # (texts, features)
    fewest: int  # texts of the library that must have a feature, for it to count

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """(texts, library): the cosine; a text with none of the features scores 0."""
        scores = np.zeros((len(texts), len(self.library)))
        places = left_out_places(left_out, len(texts), len(self.library))
        asked, squares = log_counts(self.frequent.count(texts).table), self.logs.power(2)
        for place, which in questions_by_place(places):
            weight = self.weights(place)
            questions = csr_array(asked[which])
            lengths = np.sqrt(questions.power(2) @ weight)[:, None] * np.sqrt(squares @ weight)  # (questions, texts)
            together = (self.logs @ (questions.toarray() * weight).T).T
            scores[which] = together / np.where(lengths > 0, lengths, 1)
            if place != NOT_IN_LIBRARY:
                scores[which, place] = np.nan
        return scores

    def between(self, texts: Sequence[str], others: Sequence[str]) -> Scores:
        """(texts, others): how near texts are to texts that the library does not have, by what was learned from it."""
        points = unit_rows(self.points([*texts, *others]))
        return points[: len(texts)] @ points[len(texts) :].T

    def points(self, texts: Sequence[str]) -> Doubles:
        """The coordinates of any texts by what was learned from the library: (texts, features)."""
        return self.placer()(texts)

    def placer(self) -> Callable[[Sequence[str]], Doubles]:
        """`points` for many calls: what is learned from the library is learned once."""
        weight = np.sqrt(self.weights(NOT_IN_LIBRARY))
        return lambda texts: log_counts(self.frequent.count(texts).table).toarray() * weight

    def parts_between(self, a: str, b: str) -> list[CountedParts]:
        """What each feature adds to the nearness of two texts that the library does not have; they sum to it."""
        weight = np.sqrt(self.weights(NOT_IN_LIBRARY))
        one, two = unit_rows(log_counts(self.frequent.count([a, b]).table).toarray() * weight)
        return [CountedParts(self.frequent, np.arange(len(weight)), one * two)]

    def coordinates(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Iterator[Coordinates]:
        """The questions taken from one text of the library after the other, with what the library is without it."""
        places = left_out_places(left_out, len(texts), len(self.library))
        asked = log_counts(self.frequent.count(texts).table)
        for place, which in questions_by_place(places):
            weight = np.sqrt(self.weights(place))
            yield (
                place,
                which,
                asked[which].toarray() * weight,
                self.logs.toarray() * weight,
                self.frequent.counts.keys,
            )

    def features_without(self, place: int) -> list[tuple[FrequentFeatures, Places]]:  # noqa: ARG002
        """Which features the coordinates are, in their order: all, as those that do not count are 0."""
        return [(self.frequent, np.arange(len(self.frequent.counts.keys)))]

    def weights(self, place: int) -> Doubles:
        """The square of how rare each feature is in the library without a text; 0 for what does not count."""
        _, holders, texts = self.frequent.without(place)
        chosen = self.frequent.choose(place)
        chosen = chosen[holders[chosen] >= self.fewest]
        weight = np.zeros(len(holders))
        weight[chosen] = rarity(holders[chosen], texts) ** 2
        return weight

    def shares(self, text: str, place: int, left_out: int = NOT_IN_LIBRARY) -> list[tuple[str, float]]:
        """What each feature adds to the score of a text and the text at `place`, the largest first; they sum to it."""
        weight = self.weights(left_out)
        one = log_counts(self.frequent.count([text]).table).toarray()[0]
        two = self.logs[[place]].toarray()[0]
        length = np.sqrt((one**2 @ weight) * (two**2 @ weight))
        columns: Places = np.arange(len(weight))
        return name_parts(one * two * weight / (length or 1), [(self.frequent, columns)], [text])


def learn_tfidf(name: str, library: Library, frequent: FrequentFeatures, fewest: int = 1) -> LearnedTfIdf:
    return LearnedTfIdf(name, library, frequent, log_counts(frequent.counts.table), fewest)


def log_counts(counts: csr_array) -> csr_array:
    """1 plus the logarithm of each count, 0 where there is none."""
    return csr_array((1 + np.log(counts.data), counts.indices, counts.indptr), shape=counts.shape)


def rarity(holders: Doubles, texts: int) -> Doubles:
    """How rare features are that so many of the texts have; as in scikit-learn."""
    return np.log((1 + texts) / (1 + holders)) + 1
