"""Texts cut into passages of about 120 words, in any language and whatever the text is like: what questions, libraries and
pairs are compared in. Runs of k sentences, which triplets are made of, are `mining`'s.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from idiograph.text.language import identify
from idiograph.text.sentences import Offsets, find_sentences, trim_offsets

PASSAGE_WORDS = 120  # what a passage aims at
LETTERS_PER_WORD = 50  # a longer string without a blank counts as several words
PAUSES = tuple(",;:–—，；：、")

# Where no blanks stand between words, two characters of Chinese or Japanese count as a word, and five of Thai, Lao, Tibetan,
# Burmese or Khmer.
_IDEOGRAPHS = "\u2e80-\u2fff\u3001-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff"
_SYLLABLES = "\u0e00-\u109f\u1780-\u17ff"
COUNTED_WORD = re.compile(
    rf"[{_IDEOGRAPHS}]{{1,2}}|[{_SYLLABLES}]{{1,5}}|[^\s{_IDEOGRAPHS}{_SYLLABLES}]{{1,{LETTERS_PER_WORD}}}"
)


def cut_passages(text: str, lang: str = "", words: int = PASSAGE_WORDS) -> Offsets:
    """(start, end) of passages of about `words` words, never over 25/12 of that (250 of 120); together they hold every word.

    Sentences stay whole where they are not too long. Without a `lang` the language is found.

    >>> text = "We came late. They had left. " * 60
    >>> [len(text[start:end].split()) for start, end in cut_passages(text)]
    [120, 120, 120]
    """
    starts = word_starts(text)
    if not starts:
        return []
    edges = short_edges(text, starts, sentence_edges(text, starts, lang or identify(text)[0]), words)
    chosen = join_short_passages(pack_pieces(edges, words), words)
    return [
        trim_offsets(text, starts[first], starts[last] if last < len(starts) else len(text))
        for first, last in pairwise(chosen)
    ]


def passage_texts(text: str, lang: str = "", words: int = PASSAGE_WORDS) -> list[str]:
    """The passages of a text themselves."""
    return [text[start:end] for start, end in cut_passages(text, lang, words)]


def longest_passage(words: int) -> int:
    """The most words of a passage that aims at `words`.

    >>> longest_passage(120)
    250
    """
    return words * 25 // 12


def count_words(text: str) -> int:
    """How many words a text has, also where no blanks stand between them.

    >>> count_words("He said: 天地玄黄。")
    5
    """
    return sum(1 for _ in COUNTED_WORD.finditer(text))


def word_starts(text: str) -> list[int]:
    return [found.start() for found in COUNTED_WORD.finditer(text)]


def sentence_edges(text: str, starts: Sequence[int], lang: str) -> list[int]:
    """The number of the word that each sentence begins with, and how many words there are."""
    begun = {bisect_left(starts, start) for start, _ in find_sentences(text, lang)}
    return sorted(begun | {0, len(starts)})


def short_edges(text: str, starts: Sequence[int], edges: Sequence[int], words: int) -> list[int]:
    """The same with further cuts in sentences that are too long for a passage, evenly, at good places."""
    found = [0]
    for first, last in pairwise(edges):
        parts = round((last - first) / words) if last - first > longest_passage(words) else 1
        even = (first + (last - first) * part // parts for part in range(1, parts))
        found += [place_to_cut(text, starts, at, words // 4) for at in even]
        found.append(last)
    return found


def place_to_cut(text: str, starts: Sequence[int], target: int, reach: int) -> int:
    """The word near `target` to begin a passage with: best after a line's end, then after a pause, then after a blank."""
    ranks = {at: pause_before(text, starts, at) for at in range(target - reach, target + reach + 1)}
    return min(ranks, key=lambda at: (ranks[at], abs(at - target), at))


def pause_before(text: str, starts: Sequence[int], at: int) -> int:
    """0 after a line's end, 1 after a comma or the like, 2 after a blank, 3 within a string."""
    before = text[starts[at - 1] : starts[at]]
    word = before.rstrip()
    if "\n" in before[len(word) :]:
        return 0
    if word.endswith(PAUSES):
        return 1
    return 2 if len(word) < len(before) else 3


def pack_pieces(edges: Sequence[int], words: int) -> list[int]:
    """Where passages begin that take in pieces as long as that brings them nearer to `words`, and the end."""
    chosen = [0]
    for first, last in pairwise(edges):
        size, grown = first - chosen[-1], last - chosen[-1]
        enough = size >= words // 2 and abs(grown - words) > abs(size - words)
        if size and (enough or grown > longest_passage(words)):
            chosen.append(first)
    return [*chosen, edges[-1]]


def join_short_passages(edges: Sequence[int], words: int) -> list[int]:
    """The same without passages of less than half the size, where the one before has room for them."""
    kept = [0]
    for first, last in pairwise(edges[1:]):
        if last - first >= words // 2 or last - kept[-1] > longest_passage(words):
            kept.append(first)
    return [*kept, edges[-1]]
