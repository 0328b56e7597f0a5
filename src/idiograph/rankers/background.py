"""Words and letters against rates that come with the package: Delta for two texts without a library.

The means and spreads of the most frequent words, and of the most frequent sequences of three and four letters, are those of
openly licensed texts of one kind. Nothing is learned from the texts compared.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.rankers.counts import SPACES, WORD_OR_SIGN
from idiograph.rankers.features import PER_WORDS, FeatureShare
from idiograph.text.passages import count_words

PLACE_HOLDERS = re.compile(r"\[[A-Z]+\]")  # of citations, formulae and references in a cleaned text
LETTER_SIZES = (3, 4)
DIGITS = 4  # kept of a mean or a spread
Floats = NDArray[np.float64]


def count_words_of_text(text: str) -> Counter[str]:
    return Counter(WORD_OR_SIGN.findall(text.lower()))


def count_letters_of_text(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for size in LETTER_SIZES:
        found.update(text[at : at + size] for at in range(len(text) - size + 1))
    return found


COUNTERS: dict[str, Callable[[str], Counter[str]]] = {"words": count_words_of_text, "letters": count_letters_of_text}


@dataclass(frozen=True)
class UsualRates:
    """How often each feature comes in texts of a kind, and how much that varies."""

    counts: str  # what is counted: a key of COUNTERS
    names: tuple[str, ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]
    weight: float

    def standard_rates(self, texts: Sequence[str]) -> Floats:
        """The z-scores of each text, as rows of length √weight: a product of two is the weighted cosine."""
        rates = np.array([rates_of(text, self.counts, self.names) for text in texts])
        scores = (rates - np.array(self.means)) / np.array(self.spreads)
        return self.weight**0.5 * scores / np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1e-12)

    def shares(self, a: str, b: str, factor: float) -> list[FeatureShare]:
        """What each feature adds to the cosine of two texts, times a factor, and how often it comes in a thousand words.

        How often letters usually come is known among letters; a word is taken to have as many as in these two texts.
        """
        one, two = self.standard_rates([a, b])
        totals = [COUNTERS[self.counts](tidy_text(text)).total() / max(count_words(text), 1) for text in (a, b)]
        rates = [
            PER_WORDS * np.array(rates_of(t, self.counts, self.names)) * n for t, n in zip((a, b), totals, strict=True)
        ]
        usual = PER_WORDS * np.array(self.means) * sum(totals) / 2
        kind = "word" if self.counts == "words" else "letters"
        values = np.stack([factor * one * two, *rates, usual], axis=1).tolist()
        return [FeatureShare(name, kind, *each) for name, each in zip(self.names, values, strict=True)]

    @classmethod
    def learn(cls, counts: str, texts: Sequence[str], features: int, weight: float) -> "UsualRates":
        """The features that are the most frequent in the mean of some texts."""
        often: Counter[str] = Counter()
        for text in map(tidy_text, texts):
            found = COUNTERS[counts](text)
            often.update({name: number / found.total() for name, number in found.items()})
        names = tuple(name for name, _ in sorted(often.items(), key=lambda each: (-each[1], each[0]))[:features])
        rates = np.array([rates_of(text, counts, names) for text in texts])
        return cls(counts, names, short(rates.mean(axis=0)), short(rates.std(axis=0) + 1e-9), weight)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "UsualRates":
        listed = {name: tuple(saved[name]) for name in ("names", "means", "spreads")}
        return cls(**{**saved, **listed})


@dataclass(frozen=True)
class BackgroundRates:
    """The sum of cosines of z-scores, of words and of letters, with weights."""

    name: str
    tables: tuple[UsualRates, ...]

    def compare(self, a: Sequence[str], b: Sequence[str]) -> NDArray[np.float32]:
        """Every text of `a` against every text of `b`: (len(a), len(b))."""
        one, two = (np.concatenate([t.standard_rates(texts) for t in self.tables], axis=1) for texts in (a, b))
        return (one @ two.T).astype(np.float32)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "BackgroundRates":
        return cls(saved["name"], tuple(map(UsualRates.from_json, saved["tables"])))


def tidy_text(text: str) -> str:
    return SPACES.sub(" ", PLACE_HOLDERS.sub(" ", text))


def rates_of(text: str, counts: str, names: Sequence[str]) -> list[float]:
    """How often each feature comes, of all that are counted in a text."""
    found = COUNTERS[counts](tidy_text(text))
    total = max(found.total(), 1)
    return [found[name] / total for name in names]


def short(values: Floats) -> tuple[float, ...]:
    return tuple(float(f"{value:.{DIGITS}g}") for value in values)
