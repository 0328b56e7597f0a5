"""Which documents and spans are not prose: one small function a rule, from a reading to a reason or None.

`DOCUMENT_RULES` are the seven that decide whether a document enters a corpus, `SPAN_RULES` those for a passage in a
triplet. The thresholds are those of the published corpus; where its code and its intent differ, the intent is followed.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence

from idiograph.text.view import DIGITS, UNSPACED, CharacterClass, TextView

Rule = Callable[[TextView], str | None]

MIN_DOCUMENT_WORDS = 3
MAX_DOCUMENT_ALL_CAPS = 0.10
MAX_DOCUMENT_WITHOUT_LETTERS = 0.60
MAX_LOREM_IPSUM = 0.20
MIN_MEAN_WORD_LENGTH = 1.5
MIN_WORDS_PER_SUBWORD = 0.20

MIN_ALPHABETIC_WORDS = 10
MAX_LINES_PER_SENTENCE = 2.0
MAX_MATHEMATICS = 0.05
MIN_STOP_WORDS = 0.05
MIN_ENTROPY = 1.8
MAX_SYMBOLS = 0.30
MAX_DIGITS_PER_LETTER = 0.15
MAX_SINGLE_LETTERS = 0.20
MAX_ALL_CAPS = 0.40
MIN_WORDS_FOR_ALL_CAPS = 5
MAX_LENGTH_VARIATION = 0.6
MIN_LENGTH_FOR_VARIATION = 4.0

MATHEMATICS = CharacterClass("*∀≡→∧√ΣΠθωμλ_^<>|≥≤±≈≠")
PUNCTUATION = CharacterClass(".,'\"!?")
SPACES = CharacterClass(" \t\n\r\v\f\u00a0\u2009\u202f")

_HEADER = re.compile(r"\bkey\s?words?\b")
_TAG = re.compile(r"<[^<>\n]{0,200}>")
_OPEN_END = re.compile(r"(?:et al|e\.g|i\.e|a\.d|b\.c|\bfig|\btab)\.$", re.I)


def too_few_words(reading: TextView) -> str | None:
    words = len(reading.text.split(None, MIN_DOCUMENT_WORDS))
    return "too few words" if words < MIN_DOCUMENT_WORDS and reading.lang not in UNSPACED else None


def too_many_capitals(reading: TextView) -> str | None:
    share = _share_of(reading.all_caps, len(reading.tokens))
    return "too many words in capitals" if share > MAX_DOCUMENT_ALL_CAPS else None


def too_few_letters(reading: TextView) -> str | None:
    few = _share_of(reading.without_letters, len(reading.tokens)) > MAX_DOCUMENT_WITHOUT_LETTERS
    return "too many words without letters" if few else None


def is_lorem_ipsum(reading: TextView) -> str | None:
    found = 2 * reading.lower.count("lorem ipsum")
    return "lorem ipsum" if _share_of(found, reading.word_count) > MAX_LOREM_IPSUM else None


def words_too_short(reading: TextView) -> str | None:
    if reading.lang in UNSPACED or not reading.words:
        return None
    letters = sum(len(word) * n for word, n in reading.words.items())
    return "words too short" if letters < MIN_MEAN_WORD_LENGTH * reading.word_count else None


def no_stop_words(reading: TextView) -> str | None:
    return "no stop words" if reading.function_words == 0 else None


def words_too_long(reading: TextView) -> str | None:
    if reading.lang in UNSPACED or not reading.subwords:
        return None
    few = len(reading.tokens) / reading.subwords < MIN_WORDS_PER_SUBWORD
    return "too few words for its subwords" if few else None


def too_short(reading: TextView) -> str | None:
    short = reading.alphabetic < MIN_ALPHABETIC_WORDS and reading.lang not in UNSPACED
    return "too few alphabetic words" if short else None


def not_running_text(reading: TextView) -> str | None:
    if "@" in reading.text:
        return "an address"
    lines = reading.text.count("\n")
    broken = lines >= 2 and lines / max(1, len(reading.sentences)) > MAX_LINES_PER_SENTENCE
    return "too many lines for its sentences" if broken else None


def header(reading: TextView) -> str | None:
    low = reading.lower
    found = "a b s t r a c t" in low or (("keyword" in low or "key word" in low) and _HEADER.search(low))
    return "a header" if found else None


def mathematics(reading: TextView) -> str | None:
    return "too much mathematics" if reading.count(MATHEMATICS) > MAX_MATHEMATICS * len(reading.plain) else None


def too_few_stop_words(reading: TextView) -> str | None:
    found = reading.function_words
    return "too few stop words" if found is not None and found < MIN_STOP_WORDS * len(reading.tokens) else None


def too_little_variety(reading: TextView) -> str | None:
    return "too little variety" if reading.entropy < MIN_ENTROPY and reading.lang not in UNSPACED else None


def symbols(reading: TextView) -> str | None:
    plain = reading.letters + sum(map(reading.count, (DIGITS, PUNCTUATION, SPACES)))
    return "too many symbols" if len(reading.plain) - plain > MAX_SYMBOLS * len(reading.plain) else None


def digits(reading: TextView) -> str | None:
    return "too many digits" if reading.count(DIGITS) > MAX_DIGITS_PER_LETTER * reading.letters else None


def single_letters(reading: TextView) -> str | None:
    if reading.lang in UNSPACED:
        return None
    found = sum(n for word, n in reading.words.items() if len(word) == 1 and word.isalpha())
    return "too many single letters" if _share_of(found, reading.word_count) > MAX_SINGLE_LETTERS else None


def bad_start(reading: TextView) -> str | None:
    first = reading.text[:1]
    cased = first.lower() != first.upper()
    return None if first.isupper() or first.isdigit() or (first.isalpha() and not cased) else "starts in mid-sentence"


def unbalanced(reading: TextView) -> str | None:
    counts = map(reading.text.count, "()[]")
    left, right, opened, closed = counts
    return "unbalanced brackets" if left != right or opened != closed else None


def bad_end(reading: TextView) -> str | None:
    if not reading.text.endswith((".", "?", "!", '"', "'", "。", "？", "！", "”", "’", "»")):
        return "ends in mid-sentence"
    return "ends in an abbreviation" if _OPEN_END.search(reading.text, max(0, len(reading.text) - 8)) else None


def web(reading: TextView) -> str | None:
    found = any(sign in reading.lower for sign in ("http:", "https:", "ftp:", "www."))
    return "an address or a tag" if found or ("<" in reading.text and _TAG.search(reading.text)) else None


def capitals(reading: TextView) -> str | None:
    if reading.word_count < MIN_WORDS_FOR_ALL_CAPS:
        return None
    found = sum(n for word, n in reading.words.items() if len(word) > 1 and word.isupper())
    return "too many words in capitals" if found > MAX_ALL_CAPS * reading.word_count else None


def uneven(reading: TextView) -> str | None:
    lengths = [len(sentence.split()) for sentence in reading.sentences]
    mean = sum(lengths) / max(1, len(lengths))
    if len(lengths) < 2 or mean < MIN_LENGTH_FOR_VARIATION:
        return None
    deviation = math.sqrt(sum((length - mean) ** 2 for length in lengths) / (len(lengths) - 1))
    return "sentences of too uneven length" if deviation > MAX_LENGTH_VARIATION * mean else None


def tab(reading: TextView) -> str | None:
    return "a tab" if "\t" in reading.text else None


def _share_of(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


DOCUMENT_RULES: dict[str, Rule] = {
    "words": too_few_words,
    "capitals": too_many_capitals,
    "letters": too_few_letters,
    "lorem_ipsum": is_lorem_ipsum,
    "short_words": words_too_short,
    "stop_words": no_stop_words,
    "long_words": words_too_long,
}

# The cheapest and those that drop most come first: the first reason ends the reading.
SPAN_RULES: dict[str, Rule] = {
    "tab": tab,
    "layout": not_running_text,
    "start": bad_start,
    "end": bad_end,
    "brackets": unbalanced,
    "web": web,
    "header": header,
    "mathematics": mathematics,
    "digits": digits,
    "symbols": symbols,
    "evenness": uneven,
    "words": too_short,
    "stop_words": too_few_stop_words,
    "single_letters": single_letters,
    "capitals": capitals,
    "variety": too_little_variety,
}


def first_fault(reading: TextView, rules: Mapping[str, Rule]) -> str | None:
    """The first reason against a text, or None if it passes every rule.

    >>> first_fault(TextView("See www.example.org for more."), SPAN_RULES)
    'an address or a tag'
    """
    for rule in rules.values():
        if reason := rule(reading):
            return reason
    return None


def document_fault(text: str, lang: str = "en") -> str | None:
    """Why a document does not enter a corpus, or None."""
    return first_fault(TextView(text, lang), DOCUMENT_RULES)


def span_fault(text: str, lang: str = "en", sentences: Sequence[str] | None = None) -> str | None:
    """Why a passage does not enter a triplet, or None."""
    return first_fault(TextView(text, lang, sentences), SPAN_RULES)
