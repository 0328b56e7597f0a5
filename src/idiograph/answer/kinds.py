"""Is a text of the kind that a calibration was learned from? Told from a few rates that differ between papers, letters and
stories, and hardly between writers of one kind. It says that a ratio may not hold, never who wrote a text."""

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

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
