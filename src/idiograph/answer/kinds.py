"""Is a text of a kind that a calibration was learned from? It says that a ratio may not hold, never who wrote a text.

Three kinds are known: scholarly papers, their abstracts, English fiction. Each has a rule that tells it from other kinds,
after the language: how often frequent words come, how much of a text is other words, on which letters those end, how long
words are, and marks. None of these follows the field of a paper. The rules come with the package (`scripts/kinds.py` learns
them from openly licensed texts). A calibration on other texts is guarded by a few rates, which hold back less.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.text.sentences import find_sentences
from idiograph.text.words import LETTER_WORD

PER_THOUSAND_WORDS = {
    "I and you": r"\b(?:i|me|my|mine|you|your|yours)\b",
    "he and she": r"\b(?:he|him|his|she|her|hers)\b",
    "contractions": r"\b\w+(?:n['’]t|['’](?:re|ll|ve|d|m))\b",
    "quotation marks": r"[\"“”«»]",
    "questions and exclamations": r"[?!]",
    "figures": r"\d+",
    "brackets": r"[(\[]",
}
PATTERNS = {name: re.compile(pattern) for name, pattern in PER_THOUSAND_WORDS.items()}
PERCENT_BEYOND_RANGE = 0.5  # per cent of the known texts that lie beyond a range, on either side
MAX_RATES_OUT_OF_RANGE = 1  # rates out of range that say nothing yet
RateRanges = Mapping[str, Sequence[float]]

KINDS_FILE = Path(__file__).with_name("kinds.json")
PLACE_HOLDERS = re.compile(r"\[[A-Z]+\]")  # of citations, formulae and references in a cleaned text
PLAIN_MARKS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "—": "-", "–": "-"})
WORDS_AND_MARKS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|[,;:?!()\"-]")
COUNTED_MARKS = ',;:?!("-'
LONGEST_WORD = 14  # letters; longer words count as this long
LETTERS_OF_ENDING = 3
WINDOW_WORDS = 400  # a long text is looked at in windows
MAX_WINDOWS = 12  # spread evenly over it
TEXTS_REMEMBERED = 32
VOCABULARY_FILE = Path(__file__).with_name("kinds-words.txt")  # every word of the novels but names
UNLIKE = "unlike"  # by its language or its rule
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinearRule:
    """A weighted sum of a text's rates."""

    weights: tuple[float, ...]
    bias: float

    def score(self, rows: Floats) -> float:
        """The mean over the windows of a text."""
        return float((rows @ np.array(self.weights)).mean() + self.bias)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "LinearRule":
        return cls(tuple(saved["weights"]), saved["bias"])


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of text. `rather` decides between two kinds that share a rule, as papers and abstracts do.

    A rule does not see that a story was written yesterday; `new_words` does: together the texts may have this share of words
    that are not in the kind's vocabulary, and so much more over the root of their number of words.
    """

    name: str
    says: str  # in words
    lang: str
    rule: LinearRule
    least: float  # score under which a text is of another kind
    rather: LinearRule | None = None
    new_words: tuple[float, float] | None = None
    least_words: int = 0  # of each text; shorter ones cannot be told

    def reads_new(self, texts: Sequence[str]) -> bool:
        """Whether texts together have more words outside the vocabulary than texts of this kind."""
        if not self.new_words:
            return False
        words = [word for text in texts for word in plain_words(text)]
        share = sum(word not in vocabulary() for word in words) / max(len(words), 1)
        return share > self.new_words[0] + self.new_words[1] / max(len(words), 1) ** 0.5

    def likeness(self, rows: Floats) -> float:
        """How far above the least a text scores, and how much rather it is of this kind than of its sibling."""
        return self.rule.score(rows) - self.least + (self.rather.score(rows) if self.rather else 0.0)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Kind":
        rather = LinearRule.from_json(saved["rather"]) if saved["rather"] else None
        new = {"new_words": tuple(saved["new_words"]) if saved["new_words"] else None}
        return cls(**{**saved, "rule": LinearRule.from_json(saved["rule"]), "rather": rather, **new})


@dataclass(frozen=True)
class KnownKinds:
    """The kinds that can be told, and what is counted to tell them."""

    words: tuple[str, ...]
    endings: tuple[str, ...]  # of words that are not among `words`
    kinds: tuple[Kind, ...]

    @cached_property
    def word_places(self) -> dict[str, int]:
        return {word: at for at, word in enumerate(self.words)}

    @cached_property
    def ending_places(self) -> dict[str, int]:
        return {ending: at for at, ending in enumerate(self.endings)}

    def named(self, name: str) -> Kind | None:
        return next((kind for kind in self.kinds if kind.name == name), None)

    def rows(self, text: str) -> Floats:
        """The rates of a text, a row for each window."""
        return np.stack([kind_features(window, self.word_places, self.ending_places) for window in kind_windows(text)])

    def accepts(self, kind: Kind, text: str) -> bool:
        """Whether a text is of a kind: its language, and its score."""
        return language_of(text) == kind.lang and kind.rule.score(rows_of(self, text)) >= kind.least

    def choose(self, texts: Sequence[str]) -> Kind | None:
        """The kind that all of some texts are of, the likeliest if there are several."""
        fitting = [kind for kind in self.kinds if not self.why_not(kind, texts)]
        return max(fitting, key=lambda kind: sum(kind.likeness(rows_of(self, t)) for t in texts), default=None)

    def strange(self, texts: Iterable[str], kind: Kind | None = None) -> list[str]:
        """Why there are texts of none of the kinds (or not of this one), in words; nothing where all are."""
        texts, among = list(texts), (kind,) if kind else self.kinds
        known = {each.lang for each in among}
        foreign = sorted({lang for lang in map(language_of, texts) if lang not in known})
        if foreign:
            return [f"text in {', '.join(foreign)}, there only {', '.join(sorted(known))}"]
        reasons = [self.why_not(each, texts) for each in among]
        if "" in reasons:
            return []
        if special := next((reason for reason in reasons if reason != UNLIKE), ""):
            return [special]
        far = sum(not any(self.accepts(each, text) for each in among) for text in texts)
        if not far:
            return ["the texts are of two kinds"]
        *head, last = [each.says for each in among]
        return [
            f"{far} of {len(texts)} texts do not read like {' or '.join([', '.join(head), last] if head else [last])}"
        ]

    def why_not(self, kind: Kind, texts: Sequence[str]) -> str:
        """Why some texts are not of a kind; "" where all are."""
        if not all(self.accepts(kind, text) for text in texts):
            return UNLIKE
        if min(len(text.split()) for text in texts) < kind.least_words:
            return f"{kind.says} of under {kind.least_words} words is too short to compare without a reference"
        return f"their words are not those of the {kind.says} that is known" if kind.reads_new(texts) else ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "KnownKinds":
        return cls(tuple(saved["words"]), tuple(saved["endings"]), tuple(map(Kind.from_json, saved["kinds"])))


@cache
def known_kinds() -> KnownKinds:
    """The kinds that come with the package."""
    return KnownKinds.from_json(json.loads(KINDS_FILE.read_text(encoding="utf-8"))["known"])


@cache
def vocabulary() -> frozenset[str]:
    """The words of the novels that fiction is known by."""
    return frozenset(VOCABULARY_FILE.read_text(encoding="utf-8").split())


def plain_words(text: str) -> list[str]:
    """The words of a text that do not begin with a capital: no names."""
    return [token for token in WORDS_AND_MARKS.findall(text.translate(PLAIN_MARKS)) if token[0].islower()]


@lru_cache(maxsize=TEXTS_REMEMBERED)
def language_of(text: str) -> str:
    from idiograph.text.language import identify

    return identify(text)[0]


@lru_cache(maxsize=TEXTS_REMEMBERED)
def rows_of(kinds: KnownKinds, text: str) -> Floats:
    """The rates of a text; those of the last few texts are remembered, as every kind asks for them."""
    return kinds.rows(text)


def kind_windows(text: str) -> list[list[str]]:
    """The words and marks of a text, in windows of about as many words; those of a long text are spread over it."""
    tokens = WORDS_AND_MARKS.findall(PLACE_HOLDERS.sub(" ", text).translate(PLAIN_MARKS))
    count = max(1, round(sum(token[0].isalpha() for token in tokens) / WINDOW_WORDS))
    ends = np.linspace(0, len(tokens), count + 1).astype(int)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_WINDOWS)).astype(int))
    return [tokens[ends[at] : ends[at + 1]] for at in chosen]


def kind_features(tokens: Sequence[str], words: Mapping[str, int], endings: Mapping[str, int]) -> Floats:
    """Square roots of rates: of the listed words and all others together, of the endings of those others, of the lengths
    of words, of marks, of capitals and apostrophes."""
    spelled = [token for token in tokens if token[0].isalpha()]
    lower = [word.lower() for word in spelled]
    others = [word for word in lower if word not in words]
    count = max(len(lower), 1)
    listed = np.bincount([words.get(word, len(words)) for word in lower], minlength=len(words) + 1) / count
    ended = [endings.get(word[-LETTERS_OF_ENDING:], len(endings)) for word in others]
    ending = np.bincount(ended, minlength=len(endings) + 1) / max(len(others), 1)
    lengths = np.bincount([min(len(word), LONGEST_WORD) for word in lower], minlength=LONGEST_WORD + 1)[1:] / count
    marks = Counter(tokens)
    rates = [marks[mark] for mark in COUNTED_MARKS]
    rates += [sum(word[0].isupper() for word in spelled), sum("'" in word for word in lower)]
    return np.sqrt(np.concatenate([listed, ending, lengths, np.array(rates) / count]))


def kind_rates(text: str) -> dict[str, float]:
    """How often each thing comes in a thousand words, and how long words and sentences are."""
    lower = text.lower()
    words = LETTER_WORD.findall(lower)
    count = max(len(words), 1)
    rates = {name: 1000 * len(pattern.findall(lower)) / count for name, pattern in PATTERNS.items()}
    rates["letters a word"] = sum(map(len, words)) / count
    return rates | {"words a sentence": count / max(len(find_sentences(text)), 1)}


def ranges_of_texts(texts: Iterable[str]) -> dict[str, list[float]]:
    """Between which rates the texts of a collection lie, all but a hundredth of them."""
    known = [kind_rates(text) for text in texts]
    if not known:
        return {}
    edges = (PERCENT_BEYOND_RANGE, 100 - PERCENT_BEYOND_RANGE)
    ends = {name: np.percentile([one[name] for one in known], edges) for name in known[0]}
    return {name: [round(float(low), 3), round(float(high), 3)] for name, (low, high) in ends.items()}


def unlike_ranges(texts: Iterable[str], known: RateRanges) -> list[str]:
    """The rates by which texts fall out of the known ranges, in words; nothing where only one does."""
    worst: list[str] = []
    for text in texts:
        here = kind_rates(text)
        out = [name for name, (low, high) in known.items() if not low <= here[name] <= high]
        if len(out) > max(MAX_RATES_OUT_OF_RANGE, len(worst)):
            worst = [f"{name} {here[name]:.3g}, there {known[name][0]:.3g} to {known[name][1]:.3g}" for name in out]
    return worst
