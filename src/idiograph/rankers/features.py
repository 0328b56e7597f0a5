"""What carries a comparison of two texts: features by name, what each adds, and how often it stands in both texts and in the
library. Nothing here decides anything; it shows what a ranker has counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from idiograph.rankers.counts import (
    Doubles,
    FrequentFeatures,
    LetterFeatures,
    Places,
    WordFeatures,
    WordPairFeatures,
)
from idiograph.rankers.library import Library
from idiograph.text.passages import count_words

PER_WORDS = 1000  # rates are per so many words
KINDS = {WordFeatures: "word", LetterFeatures: "letters", WordPairFeatures: "words in a row"}


@dataclass(frozen=True, slots=True)
class FeatureShare:
    """A feature that two texts were compared by: what it adds to the log10 ratio (above 0: it speaks for one hand), and how
    often it stands in each text and in the library, per thousand words. An author of the library may be a feature, too: then
    `a` and `b` say how near the texts are."""

    feature: str
    kind: str
    share: float
    a: float
    b: float
    usual: float


@dataclass(frozen=True, slots=True)
class CountedParts:
    """What each of some columns of a count adds to a score."""

    frequent: FrequentFeatures
    columns: Places
    parts: Doubles

    def times(self, factor: float) -> "CountedParts":
        return CountedParts(self.frequent, self.columns, self.parts * factor)

    def add(self, other: "CountedParts") -> "CountedParts":
        """The same columns of another pair as well."""
        return CountedParts(self.frequent, self.columns, self.parts + other.parts)


class ExplainingRanker(Protocol):
    """Can say what each feature adds to what `between` finds."""

    def parts_between(self, a: str, b: str) -> list[CountedParts]:
        """The parts of the score of two texts that the library does not have; they sum to it."""
        ...


def strongest_features(
    parts: Sequence[CountedParts], a: str, b: str, library: Library, count: int
) -> tuple[FeatureShare, ...]:
    """The `count` features that add most, and the `count` that take most away, the strongest first."""
    words = sum(map(count_words, library.texts))
    each_part = ((part, sign) for part in parts for sign in (1, -1))
    some = [each for part, sign in each_part for each in named_features(part, sign, 5 * count, (a, b), library, words)]
    return choose_strongest(some, count)


def choose_strongest(features: Sequence[FeatureShare], count: int) -> tuple[FeatureShare, ...]:
    """So many features in either direction, the strongest first. In one direction a word stands for its letters, and of
    letter sequences that hold one another the strongest."""
    ordered = sorted(features, key=lambda each: (-abs(each.share), each.kind, each.feature))
    found = [without_fragments([each for each in ordered if each.share * sign > 0])[:count] for sign in (1, -1)]
    return tuple(sorted(found[0] + found[1], key=lambda each: (-abs(each.share), each.kind, each.feature)))


def named_features(
    part: CountedParts, sign: int, count: int, texts: tuple[str, str], library: Library, words: int
) -> list[FeatureShare]:
    """The strongest features of one count in one direction, with their rates."""
    order = np.argsort(-sign * part.parts, kind="stable")[:count]
    order = order[sign * part.parts[order] > 0]
    columns = part.columns[order]
    names = part.frequent.spell(columns, (*texts, *library.texts))
    here = part.frequent.count(texts).table[:, columns].toarray()  # (2, features)
    rates = PER_WORDS * here / np.maximum([[count_words(text)] for text in texts], 1)
    usual = PER_WORDS * part.frequent.sums[columns] / max(words, 1)
    kind = KINDS[type(part.frequent.features)]
    values = zip(names, part.parts[order].tolist(), *rates.tolist(), usual.tolist(), strict=True)
    return [FeatureShare(name, kind, *numbers) for name, *numbers in values]


def without_fragments(ordered: Sequence[FeatureShare]) -> list[FeatureShare]:
    """The features but for letters that a word among them holds, or that hold, or are held by, stronger letters."""
    words = {each.feature for each in ordered if each.kind == "word"}
    kept: list[FeatureShare] = []
    for each in ordered:
        mine = each.feature.strip()
        stronger = [other.feature.strip() for other in kept if other.kind == "letters"]
        fragment = any(mine in word for word in words) or any(mine in other or other in mine for other in stronger)
        if each.kind != "letters" or not fragment:
            kept.append(each)
    return kept
