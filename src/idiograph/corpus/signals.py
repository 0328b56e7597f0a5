"""Quality signals: numbers that describe a document and decide nothing. After RedPajama's, without perplexity.

Word n-grams are n-grams of words here, and a duplicate counts wherever it stands.
"""

import re
from collections.abc import Callable

import numpy as np

from idiograph.corpus.reading import Reading

Signal = Callable[[Reading], float]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SYMBOLS = re.compile(r"#|\.\.\.|…")
_BULLETS = tuple("•‣▪▫◦●○■□–*-")


def words(reading: Reading) -> float:
    return reading.word_count


def sentences(reading: Reading) -> float:
    return len(reading.sentences)


def subwords(reading: Reading) -> float:
    return reading.subwords


def mean_word_length(reading: Reading) -> float:
    return _share(sum(len(word) * n for word, n in reading.words.items()), reading.word_count)


def all_caps(reading: Reading) -> float:
    return _share(reading.all_caps, len(reading.tokens))


def without_letters(reading: Reading) -> float:
    return _share(reading.without_letters, len(reading.tokens))


def stop_words(reading: Reading) -> float:
    """Not a number where we have no list for the language."""
    return float("nan") if reading.stop_words is None else _share(reading.stop_words, len(reading.tokens))


def unique_words(reading: Reading) -> float:
    return _share(len(reading.frequencies), len(reading.tokens))


def entropy(reading: Reading) -> float:
    return reading.entropy


def symbols_per_word(reading: Reading) -> float:
    return _share(len(_SYMBOLS.findall(reading.plain)), reading.word_count)


def lorem_ipsum(reading: Reading) -> float:
    return _share(2 * reading.lower.count("lorem ipsum"), reading.word_count)


def lines_with_ellipsis(reading: Reading) -> float:
    return _lines(reading, lambda line: line.endswith(("...", "…")))


def lines_with_full_stop(reading: Reading) -> float:
    return _lines(reading, lambda line: line.endswith((".", "!", "?", '"', "'", "”", "’", "»")))


def lines_with_bullet(reading: Reading) -> float:
    return _lines(reading, lambda line: line.startswith(_BULLETS) and line[1:2].isspace())


def duplicates(n: int) -> Signal:
    """The share of characters that stand in a word n-gram which occurs more than once."""

    def signal(reading: Reading) -> float:
        tokens = [token.lower() for token in reading.tokens]
        if len(tokens) <= n:
            return 0.0
        number = {token: i for i, token in enumerate(reading.frequencies, start=1)}
        ids = np.array([number[token] for token in tokens], dtype=np.uint64)
        keys = np.zeros(len(ids) - n + 1, dtype=np.uint64)
        for i in range(n):
            keys = keys * _MIX + ids[i : len(ids) - n + 1 + i]
        _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
        starts = np.flatnonzero(counts[which] > 1)
        covered = np.zeros(len(ids), dtype=bool)
        for i in range(n):
            covered[starts + i] = True
        lengths = np.array([len(token) for token in tokens])
        return float(lengths[covered].sum() / lengths.sum())

    return signal


def _lines(reading: Reading, has: Callable[[str], bool]) -> float:
    """The share of lines that are not empty and of which something holds."""
    lines = [line.strip() for line in reading.text.split("\n") if line.strip()]
    return _share(sum(map(has, lines)), len(lines))


def _share(part: float, whole: int) -> float:
    return part / whole if whole else 0.0


SIGNALS: dict[str, Signal] = {
    "words": words,
    "sentences": sentences,
    "subwords": subwords,
    "mean_word_length": mean_word_length,
    "all_caps": all_caps,
    "without_letters": without_letters,
    "stop_words": stop_words,
    "unique_words": unique_words,
    "entropy": entropy,
    "symbols_per_word": symbols_per_word,
    "lorem_ipsum": lorem_ipsum,
    "lines_with_ellipsis": lines_with_ellipsis,
    "lines_with_full_stop": lines_with_full_stop,
    "lines_with_bullet": lines_with_bullet,
    **{f"duplicate_{n}_grams": duplicates(n) for n in range(5, 11)},
}


def signals(text: str, lang: str = "en") -> dict[str, float]:
    """Every signal of a document, by name."""
    reading = Reading(text, lang)
    return {name: signal(reading) for name, signal in SIGNALS.items()}
