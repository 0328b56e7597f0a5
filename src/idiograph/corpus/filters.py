"""Which documents and spans are not prose: one small function a rule, from a view of the text to a reason or None.

`DOCUMENT_RULES` are the seven that decide whether a document enters a corpus, `SPAN_RULES` those for a passage in a
triplet. The thresholds are those of the published corpus; where its code and its intent differ, the intent is followed.

Every rule looks at the same few things, which a `TextView` works out once per text: that makes twenty rules cheap.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from idiograph.text.words import FUNCTION_WORDS, TOKEN

Rule = Callable[["TextView"], str | None]

MARKERS = re.compile(r"\[(?:CITE|MATH|REF)\]")  # ours, not the author's: they count for nothing
UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo", "yue"})  # rules on words say nothing about these

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

_HEADER = re.compile(r"\bkey\s?words?\b")
_TAG = re.compile(r"<[^<>\n]{0,200}>")
_OPEN_END = re.compile(r"(?:et al|e\.g|i\.e|a\.d|b\.c|\bfig|\btab)\.$", re.I)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[^\W\da-z_])")
_WIDE = re.compile(r"[^\x00-\x7f]")
_LETTER = re.compile(r"[^\W\d_]")


class CharacterClass:
    """A set of characters that can be counted in a text at the speed of a memory copy."""

    def __init__(self, characters: str) -> None:
        self.narrow = "".join(c for c in characters if c.isascii()).encode()
        self.wide = frozenset(c for c in characters if not c.isascii())


LETTERS = CharacterClass("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
DIGITS = CharacterClass("0123456789")
MATHEMATICS = CharacterClass("*∀≡→∧√ΣΠθωμλ_^<>|≥≤±≈≠")
PUNCTUATION = CharacterClass(".,'\"!?")
SPACES = CharacterClass(" \t\n\r\v\f\u00a0\u2009\u202f")


class TextView:
    """One text as rules see it. `sentences`, where known, spare a rough split; `lang` chooses the function words."""

    def __init__(self, text: str, lang: str = "en", sentences: Sequence[str] | None = None) -> None:
        self.text = text
        self.lang = lang
        self._sentences = sentences

    @cached_property
    def plain(self) -> str:
        """The text without our markers."""
        return MARKERS.sub(" ", self.text) if "[" in self.text else self.text

    @cached_property
    def lower(self) -> str:
        return self.text.lower()

    @cached_property
    def tokens(self) -> list[str]:
        """Words, with inner apostrophes and hyphens, and single punctuation marks."""
        return TOKEN.findall(self.plain)

    @cached_property
    def types(self) -> Counter[str]:
        """How often each token occurs. A document has three times fewer types than tokens, so counts go over these."""
        return Counter(self.tokens)

    @cached_property
    def words(self) -> Counter[str]:
        """The types that begin with a letter, a digit or an underscore."""
        return Counter({token: n for token, n in self.types.items() if len(token) > 1 or token.isalnum()})

    @cached_property
    def word_count(self) -> int:
        return sum(self.words.values())

    @cached_property
    def frequencies(self) -> Counter[str]:
        """How often each token occurs, whatever its case."""
        folded: Counter[str] = Counter()
        for token, n in self.types.items():
            folded[token.lower()] += n
        return folded

    @cached_property
    def alphabetic(self) -> int:
        """How many tokens are letters only."""
        return sum(n for token, n in self.types.items() if token.isalpha())

    @cached_property
    def sentences(self) -> Sequence[str]:
        return self._sentences if self._sentences is not None else _SENTENCE_END.split(self.text.strip())

    @cached_property
    def function_words(self) -> int | None:
        """How many tokens are function words; None where we have no list for the language."""
        listed = FUNCTION_WORDS.get(self.lang)
        return None if listed is None else sum(n for token, n in self.frequencies.items() if token in listed)

    @cached_property
    def entropy(self) -> float:
        """Of the distribution of tokens, in nats."""
        total = len(self.tokens)
        repeated = sum(n * math.log(n) for n in self.frequencies.values() if n > 1)
        return math.log(total) - repeated / total if total else 0.0

    @cached_property
    def all_caps(self) -> int:
        return sum(n for token, n in self.types.items() if token.isupper())

    @cached_property
    def without_letters(self) -> int:
        """How many tokens hold no letter at all."""
        mixed = ((token, n) for token, n in self.types.items() if not token.isalpha())
        return sum(n for token, n in mixed if not _LETTER.search(token))

    @cached_property
    def letters(self) -> int:
        return self.count(LETTERS) + sum(map(str.isalpha, self._wide))

    @cached_property
    def subwords(self) -> int:
        """About how many pieces a subword tokenizer would make: one per five letters begun, one per wide character.

        A stand-in for mT5's count (which needs its model): 1.3 to 1.5 a word in European languages.
        """
        return sum((len(token) + 4) // 5 * n for token, n in self.types.items())

    def count(self, characters: CharacterClass) -> int:
        """How many characters of the text belong to a class."""
        narrow = len(self._bytes) - len(self._bytes.translate(None, characters.narrow))
        return narrow + (sum(c in characters.wide for c in self._wide) if characters.wide else 0)

    @cached_property
    def _bytes(self) -> bytes:
        return self.plain.encode("ascii", "ignore")

    @cached_property
    def _wide(self) -> list[str]:
        return [] if self.plain.isascii() else _WIDE.findall(self.plain)


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


def bracket_fault(reading: TextView) -> str | None:
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
    "brackets": bracket_fault,
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
