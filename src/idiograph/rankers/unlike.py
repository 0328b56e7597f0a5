"""How unlike the texts of a library a text is: of what is unlike anything in it, a library can say nothing.

Two things count, in any language: how far the rates of letters in threes are from what is usual in the library, and which
share of the letters in fours no other text there has. Both are read against the library's own texts, each left out and as
long as the text that is asked about. The two were chosen on Federalist papers, novels and school essays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from idiograph.rankers.counts import Doubles, Keys, LetterFeatures, Places, count_features, count_known, most_frequent
from idiograph.rankers.library import NOT_IN_LIBRARY, Library
from idiograph.rankers.rates import LearnedRates, fit_z_scores, table_of

USUAL, RARE = LetterFeatures(3), LetterFeatures(4)
USUAL_FEATURES = 2000
TEXTS_TO_LEARN_FROM = 400  # of a library; more are sampled
TEXTS_TO_READ_AGAINST = 200  # of them, each left out
LEAST_LENGTH = 0.8  # of the length that is compared: shorter texts of the library are not read against
FEWEST_TEXTS = 3  # that have a spread
SURE = 0.995  # one text in 200 that is like the library's is taken for unlike them, where the library's are few
NO_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class Unlikeness:
    """How far a text is from a library's own texts of its length, in spreads; and how far their furthest is."""

    distance: float
    furthest: float

    @property
    def strange(self) -> bool:
        return self.distance > self.furthest


@dataclass(frozen=True)
class LibraryRange:
    """What is usual in a library."""

    library: Library

    @classmethod
    def of(cls, library: Library) -> "LibraryRange":
        """From the library, or from a sample of a large one."""
        return cls(library.take(sample_to_learn_from(len(library))))

    @cached_property
    def rates(self) -> LearnedRates:
        table = table_of(most_frequent(self.library.texts, USUAL, USUAL_FEATURES))
        return LearnedRates("letters", self.library, (table,), fit_z_scores)

    @cached_property
    def holders(self) -> tuple[Keys, Places]:
        """The letters in fours of the library, and how many of its texts have each."""
        counts = count_features(self.library.texts, RARE)
        return counts.keys, np.bincount(counts.table.indices, minlength=len(counts.keys))

    def unlikeness(self, text: str) -> Unlikeness:
        """A text longer than most of the library's is compared by as much of its middle as they have."""
        lengths = np.array([len(each) for each in self.library.texts])
        size = int(min(len(text), np.median(lengths)))
        places = np.flatnonzero(lengths >= LEAST_LENGTH * size)[:TEXTS_TO_READ_AGAINST]
        if len(places) < FEWEST_TEXTS:
            return Unlikeness(0.0, np.inf)
        own = [middle_of(self.library.texts[at], size) for at in places]
        among = self._distances(own, places.tolist())
        here = self._distances([middle_of(text, size)], [NOT_IN_LIBRARY])
        spread = np.maximum(among.std(axis=0, ddof=1), NO_SPREAD)
        totals = [((each - among.mean(axis=0)) / spread).sum(axis=1) for each in (among, here)]
        unit = max(float(totals[0].std(ddof=1)), NO_SPREAD)
        return Unlikeness(
            float(totals[1][0] / unit), max(float(totals[0].max() / unit), expected_furthest(len(places)))
        )

    def _distances(self, texts: Sequence[str], left_out: Sequence[int]) -> Doubles:
        """(texts, 2): how far the usual letters are from the library's, and the share of those that it does not have."""
        far = np.zeros(len(texts))
        for _, which, points, _, _ in self.rates.coordinates(texts, left_out):
            far[which] = np.log(np.maximum(np.sqrt((points**2).mean(axis=1)), NO_SPREAD))
        return np.stack([far, self._unseen(texts, left_out)], axis=1)

    def _unseen(self, texts: Sequence[str], left_out: Sequence[int]) -> Doubles:
        keys, holders = self.holders
        found = count_known(texts, RARE, keys)
        owner = np.repeat(np.arange(len(texts)), np.diff(found.table.indptr))
        others = (
            holders[found.table.indices] - (np.array(left_out) != NOT_IN_LIBRARY)[owner]
        )  # a text has its own letters
        seen = np.bincount(owner, found.table.data * (others > 0), len(texts))
        return 1 - seen / np.maximum(found.totals, 1)


def sample_to_learn_from(texts: int, seed: int = 7) -> list[int]:
    """The places of the texts that count: all of them, or the same ones of many each time."""
    return sorted(np.random.default_rng(seed).permutation(texts)[:TEXTS_TO_LEARN_FROM].tolist())


def middle_of(text: str, size: int) -> str:
    """So many characters from the middle of a text.

    >>> middle_of("abcdefg", 3)
    'cde'
    """
    start = max(0, len(text) // 2 - size // 2)
    return text[start : start + size]


def expected_furthest(texts: int) -> float:
    """How many spreads from the mean of so many texts another one like them lies at most, nearly always."""
    from scipy.special import stdtrit  # loads slowly

    return float(stdtrit(texts - 1, SURE) * np.sqrt(1 + 1 / texts))
