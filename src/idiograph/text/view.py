"""A text read once: its words, sentences and counts of characters, each worked out when first asked for.

Every rule and signal looks at the same few things; reading them once per text is what makes twenty rules cheap.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from idiograph.text.words import FUNCTION_WORDS, TOKEN

MARKERS = re.compile(r"\[(?:CITE|MATH|REF)\]")  # ours, not the author's: they count for nothing
UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo", "yue"})  # rules on words say nothing about these

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
        known = FUNCTION_WORDS.get(self.lang)
        return None if known is None else sum(n for token, n in self.frequencies.items() if token in known)

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
