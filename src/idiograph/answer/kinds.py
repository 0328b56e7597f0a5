"""Is a text of the kind that a calibration was learned from? It says that a ratio may not hold, never who wrote a text.

Papers are told from other kinds by a classifier that comes with the package: rates of frequent words, how much of a text is
other words, and pairs of letters. It was learned from papers and abstracts against novels, essays and made-up prose (see
`scripts/kind_of_papers.py`). A calibration on other texts is guarded by a few rates, which hold back less.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
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

PAPERS = Path(__file__).with_name("papers.json")
PLACE_HOLDERS = re.compile(r"\[(?:CITE|REF)\]")
WINDOW_WORDS = 400  # a long text is looked at in windows
MAX_WINDOWS = 12  # spread evenly over it
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LETTER_PAIRS = tuple(a + b for a in LETTERS for b in LETTERS)
SURE_LANGUAGE = 0.9
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KindClassifier:
    """How like texts of one kind a text is: a weighted sum of square roots of rates, positive for the kind."""

    kind: str
    lang: str
    words: tuple[str, ...]
    weights: tuple[float, ...]  # of the words, of all others together, of pairs of letters
    bias: float
    least: float  # score under which a text is of another kind

    def score(self, text: str) -> float:
        """The mean over the text's windows."""
        rows = np.stack([kind_features(window, self.words) for window in kind_windows(text)])
        return float((rows @ np.array(self.weights)).mean() + self.bias)

    def strange(self, texts: Iterable[str]) -> list[str]:
        """Why there are texts of another kind, in words; nothing where all are of this one."""
        from idiograph.text.language import identify

        found = {text: identify(text) for text in texts}
        foreign = sorted({lang for lang, _ in found.values() if lang != self.lang})
        if foreign:
            return [f"text in {', '.join(foreign)}, there only {self.lang}"]
        far = sum(self.score(text) < self.least for text in found)
        return [f"{far} of {len(found)} texts do not read like {self.kind}"] if far else []

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "KindClassifier":
        return cls(**{**saved, "words": tuple(saved["words"]), "weights": tuple(saved["weights"])})


@cache
def kind_of_papers() -> KindClassifier:
    """The classifier of papers and abstracts that comes with the package."""
    return KindClassifier.from_json(json.loads(PAPERS.read_text(encoding="utf-8"))["classifier"])


def kind_windows(text: str) -> list[list[str]]:
    """The words of a text, in windows; those of a long text are spread over it."""
    words = LETTER_WORD.findall(PLACE_HOLDERS.sub(" ", text).lower())
    count = max(1, round(len(words) / WINDOW_WORDS))
    ends = np.linspace(0, len(words), count + 1).astype(int)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_WINDOWS)).astype(int))
    return [words[ends[at] : ends[at + 1]] for at in chosen]


def kind_features(words: Sequence[str], listed: Sequence[str]) -> Floats:
    """Square roots of rates: of the listed words, of all others together, of pairs of letters."""
    counts = Counter(words)
    known = np.array([counts[word] for word in listed], np.float64)
    pairs = Counter(word[at : at + 2] for word in words for at in range(len(word) - 1))
    letters = np.array([pairs[pair] for pair in LETTER_PAIRS], np.float64)
    rates = np.append(known, len(words) - known.sum()) / max(len(words), 1)
    return np.sqrt(np.concatenate([rates, letters / max(letters.sum(), 1)]))


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
