"""How often words and character n-grams stand in texts, for rankers that learn from a library. Any language, any script.

A feature is known by a hash of 64 bits, so that a million of them are counted by arrays; its letters are looked up in a text
when somebody wants to read them. Nothing here depends on the order of the texts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from idiograph.errors import InputError
from idiograph.rankers.library import NOT_IN_LIBRARY
from idiograph.seeded import hash_text

Keys = NDArray[np.uint64]
Places = NDArray[np.int64]
Doubles = NDArray[np.float64]

SPACES = re.compile(r"\s+")
IDEOGRAPHS = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # scripts without spaces: each sign counts as a word
)
WORD_OR_SIGN = re.compile(rf"[{IDEOGRAPHS}]|[^\W{IDEOGRAPHS}]+")
WORD_SIGN_OR_MARK = re.compile(rf"{WORD_OR_SIGN.pattern}|[^\w\s]")
SPREADING = np.uint64(0x9E3779B97F4A7C15)  # odd, without pattern
SLACK = 1.25  # how many more features are kept than are used, for when a text is left out
TEXTS_AT_ONCE = 256  # texts whose counts are dense in memory at a time
BYTES_REMEMBERED = 400_000_000  # of tallies


word_key = lru_cache(maxsize=1 << 18)(hash_text)  # a library has few words, many times


class Features(Protocol):
    """What is counted in a text."""

    def tally(self, text: str) -> tuple[Keys, NDArray[np.int64]]:
        """The features of a text, each once and in order of their keys, and how often each stands there."""
        ...

    def spell(self, text: str) -> Iterator[tuple[int, str]]:
        """Features of a text with their keys, for people to read."""
        ...


@dataclass(frozen=True, slots=True)
class WordFeatures:
    """Lower-cased words: runs of letters and digits, or single signs where a script has no spaces."""

    def tally(self, text: str) -> tuple[Keys, NDArray[np.int64]]:
        counted = Counter(WORD_OR_SIGN.findall(text.lower()))
        keys = np.fromiter(map(word_key, counted), np.uint64, len(counted))
        order = np.argsort(keys)
        return keys[order], np.fromiter(counted.values(), np.int64, len(counted))[order]

    def spell(self, text: str) -> Iterator[tuple[int, str]]:
        return ((word_key(word), word) for word in dict.fromkeys(WORD_OR_SIGN.findall(text.lower())))


@dataclass(frozen=True, slots=True)
class LetterFeatures:
    """Character n-grams of one size. Case counts; any run of white space is one space."""

    size: int

    def tally(self, text: str) -> tuple[Keys, NDArray[np.int64]]:
        return count_keys(self.keys(SPACES.sub(" ", text)))

    def keys(self, text: str) -> Keys:
        """The key of the n-gram at each place of a text."""
        letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        places = max(len(letters) - self.size + 1, 0)
        keys = np.zeros(places, np.uint64)
        for at in range(self.size):
            keys = keys * SPREADING + letters[at : at + places]
            keys ^= keys >> np.uint64(29)
        return keys

    def spell(self, text: str) -> Iterator[tuple[int, str]]:
        plain = SPACES.sub(" ", text)
        keys, first = np.unique(self.keys(plain), return_index=True)
        return ((int(key), plain[at : at + self.size]) for key, at in zip(keys, first, strict=True))


@dataclass(frozen=True, slots=True)
class WordPairFeatures:
    """Two words in a row, lower-cased, or a word and a mark: a comma before "which", a dash after "and"."""

    def tally(self, text: str) -> tuple[Keys, NDArray[np.int64]]:
        return count_keys(pair_keys(words_and_marks(text)))

    def spell(self, text: str) -> Iterator[tuple[int, str]]:
        tokens = words_and_marks(text)
        keys, first = np.unique(pair_keys(tokens), return_index=True)
        return ((int(key), f"{tokens[at]} {tokens[at + 1]}") for key, at in zip(keys, first, strict=True))


def words_and_marks(text: str) -> list[str]:
    return WORD_SIGN_OR_MARK.findall(text.lower())


def pair_keys(tokens: Sequence[str]) -> Keys:
    """The key of each two tokens in a row."""
    known = {token: word_key(token) for token in set(tokens)}
    keys = np.fromiter((known[token] for token in tokens), np.uint64, len(tokens))
    paired = keys[:-1] * SPREADING + keys[1:]
    return paired ^ (paired >> np.uint64(29))


def count_keys(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Each key once, in order, and how often it comes."""
    ordered = np.sort(keys)
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    return ordered[starts], np.diff(np.append(starts, len(ordered)))


class TallyMemory:
    """What was counted in texts that will be counted again, as long as there is room."""

    def __init__(self, room: int = BYTES_REMEMBERED) -> None:
        self.room, self.known = room, dict[tuple[Features, str], tuple[Keys, Places]]()

    def tally(self, features: Features, text: str) -> tuple[Keys, Places]:
        if (found := self.known.get((features, text))) is None:
            found = features.tally(text)
            size = len(text) + sum(each.nbytes for each in found)
            if size <= self.room:
                self.room -= size
                self.known[features, text] = found
        return found


_memory: ContextVar[TallyMemory | None] = ContextVar("tallies that are remembered", default=None)


@contextmanager
def remember_tallies() -> Iterator[None]:
    """Within this nothing is counted twice: libraries that are learned from one after the other have texts in common."""
    before = _memory.set(_memory.get() or TallyMemory())
    try:
        yield
    finally:
        _memory.reset(before)


def tally_texts(texts: Sequence[str], features: Features) -> list[tuple[Keys, Places]]:
    memory = _memory.get()
    return [memory.tally(features, text) if memory else features.tally(text) for text in texts]


@dataclass(frozen=True, slots=True)
class FeatureCounts:
    """How often each feature stands in each text, and how many there are in the text, with those that have no column."""

    keys: Keys  # in order
    table: csr_array  # (texts, features)
    totals: Doubles

    def take(self, columns: Places) -> "FeatureCounts":
        """Some of the features, in the order of their keys."""
        return FeatureCounts(self.keys[columns], csr_array(self.table[:, columns]), self.totals)


def count_features(texts: Sequence[str], features: Features) -> FeatureCounts:
    """Everything that stands in any of the texts."""
    tallies = tally_texts(texts, features)
    found = np.concatenate([keys for keys, _ in tallies] or [np.zeros(0, np.uint64)])
    keys, columns = np.unique(found, return_inverse=True)
    return _as_counts(keys, [columns], tallies)


def count_known(texts: Sequence[str], features: Features, known: Keys) -> FeatureCounts:
    """What of the known features stands in the texts."""
    tallies = tally_texts(texts, features)
    totals = [often.sum() for _, often in tallies]
    columns, kept = [], []
    for keys, often in tallies:
        at = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
        hit = known[at] == keys if len(known) else np.zeros(len(keys), bool)
        columns.append(at[hit])
        kept.append((keys[hit], often[hit]))
    return _as_counts(known, columns, kept, totals)


def _as_counts(
    keys: Keys, columns: Sequence[Places], tallies: Sequence[tuple[Keys, Places]], totals: Any = None
) -> FeatureCounts:
    often = [often for _, often in tallies]
    starts = np.cumsum([0, *map(len, often)])
    values = np.concatenate([*often, np.zeros(0)]).astype(np.float64)
    where = np.concatenate([*columns, np.zeros(0, np.int64)]).astype(np.int64)
    table = csr_array((values, where, starts), shape=(len(often), len(keys)))
    totals = [each.sum() for each in often] if totals is None else totals
    return FeatureCounts(keys, table, np.array(totals, np.float64))


@dataclass(frozen=True, slots=True)
class FrequentFeatures:
    """The most frequent features of a library, whichever of its texts is left out.

    There are more columns than `limit`, as leaving a text out may let a rarer feature in: `choose` says which ones count.
    """

    features: Features
    counts: FeatureCounts
    limit: int | None
    culling: float
    sums: Doubles
    holders: Doubles  # texts that have the feature

    def choose(self, place: int) -> Places:
        """The columns that count where a text is left out, the most frequent first."""
        sums, holders, texts = self.without(place)
        usable = np.flatnonzero(can_be_used(sums, holders, texts, self.culling))
        if self.limit is None:
            return usable
        return usable[np.lexsort((self.counts.keys[usable], -sums[usable]))][: self.limit]

    def without(self, place: int) -> tuple[Doubles, Doubles, int]:
        """How often each feature stands in the library, and in how many texts, of how many, where one is left out."""
        texts = len(self.counts.totals)
        if place == NOT_IN_LIBRARY:
            return self.sums, self.holders, texts
        own = self.counts.table[[place]].toarray()[0]
        return self.sums - own, self.holders - (own > 0), texts - 1

    def count(self, texts: Sequence[str]) -> FeatureCounts:
        """How often these features stand in other texts."""
        return count_known(texts, self.features, self.counts.keys)

    def spell(self, columns: Places, texts: Iterable[str]) -> list[str]:
        """The letters of some features, found in these texts."""
        wanted = {int(key) for key in self.counts.keys[columns]}
        names: dict[int, str] = {}
        for text in texts:
            names |= {key: name for key, name in self.features.spell(text) if key in wanted}
            if len(names) == len(wanted):
                break
        return [names[int(key)] for key in self.counts.keys[columns]]


def can_be_used(sums: Doubles, holders: Doubles, texts: int, culling: float) -> NDArray[np.bool_]:
    """Whether each feature is there at all, and in as many texts as culling asks for."""
    return (sums > 0) & (holders >= culling * texts - 1e-9)


def most_frequent(
    texts: Sequence[str], features: Features, limit: int | None = None, culling: float = 0.0
) -> FrequentFeatures:
    """Count a library, and keep every feature that is among the `limit` most frequent whichever text is left out."""
    counts = count_features(texts, features)
    if limit is not None:
        counts = counts.take(_never_missed(counts, limit, culling))
    sums, holders = _sum_columns(counts.table)
    return FrequentFeatures(features, counts, limit, culling, sums, holders)


def _sum_columns(table: csr_array) -> tuple[Doubles, Doubles]:
    features = table.shape[1]  # pyright: ignore[reportOptionalSubscript]
    holders = np.bincount(table.indices, minlength=features)
    return np.bincount(table.indices, table.data, features).astype(np.float64), holders.astype(np.float64)


def _never_missed(counts: FeatureCounts, limit: int, culling: float) -> Places:
    """Columns outside of which nothing gets among the `limit` most frequent, whichever text is left out."""
    sums, holders = _sum_columns(counts.table)
    order = np.lexsort((counts.keys, -sums))
    size = int(SLACK * limit) + 64
    while size < len(order):
        head = order[:size]
        table = csr_array(counts.table[:, head])
        if _least_chosen(table, sums[head], holders[head], (limit, culling)) > sums[order[size]]:
            return np.sort(head)
        size *= 2
    return np.arange(len(order))


def _least_chosen(table: csr_array, sums: Doubles, holders: Doubles, rule: tuple[int, float]) -> float:
    """How frequent the last feature that is chosen is at least, over all texts that may be left out."""
    limit, culling = rule
    texts, size = table.shape  # pyright: ignore[reportGeneralTypeIssues]
    usable = can_be_used(sums, holders, texts, culling)
    least = float(np.partition(np.where(usable, sums, -1), size - limit)[size - limit])
    for start in range(0, texts, TEXTS_AT_ONCE):
        own = table[start : start + TEXTS_AT_ONCE].toarray()  # (texts, features)
        rest = sums - own
        rest[~can_be_used(rest, holders - (own > 0), texts - 1, culling)] = -1
        least = min(least, float(np.partition(rest, size - limit, axis=1)[:, size - limit].min()))
    return least


def left_out_places(left_out: Sequence[int] | None, questions: int, texts: int) -> Places:
    """Which text of the library each question was taken from, checked."""
    places = np.full(questions, NOT_IN_LIBRARY) if left_out is None else np.array(left_out, np.int64).reshape(-1)
    if len(places) != questions:
        raise InputError(f"left_out names {len(places)} places for {questions} texts; give one for each text")
    wrong = places[(places < NOT_IN_LIBRARY) | (places >= texts)]
    if len(wrong):
        raise InputError(
            f"left_out names place {wrong[0]} of a library of {texts} texts; give 0 to {texts - 1}, or {NOT_IN_LIBRARY}"
        )
    return places


def questions_by_place(places: Places) -> Iterator[tuple[int, Places]]:
    """The questions that leave out the same text, together."""
    for place in np.unique(places):
        yield int(place), np.flatnonzero(places == place)
