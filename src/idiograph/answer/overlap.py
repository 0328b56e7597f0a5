"""How much two passages share in content words: where that alone would explain a match, the reader is told."""

import re
from collections.abc import Sequence

from idiograph.text.words import STOP_WORDS

WORD = re.compile(r"[^\W\d_]{3,}")


def content_words(text: str, lang: str = "en") -> frozenset[str]:
    """The words of a text that carry its topic, lower-cased and without a plural s.

    >>> sorted(content_words("The tides and the tide of the harbours"))
    ['harbour', 'tide']
    """
    stop = STOP_WORDS.get(lang, frozenset())
    return frozenset(word.removesuffix("s") for word in WORD.findall(text.lower()) if word not in stop)


def word_overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Jaccard index of two sets of words."""
    return len(a & b) / len(a | b) if a or b else 0.0


def usual_overlap(left: Sequence[str], right: Sequence[str]) -> float:
    """The overlap that 19 of 20 of these pairs stay under."""
    found = sorted(word_overlap(content_words(a), content_words(b)) for a, b in zip(left, right, strict=True))
    return found[int(0.95 * (len(found) - 1))] if found else 1.0
