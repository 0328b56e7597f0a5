"""Where sentences begin and end in a text, and runs of them. Offsets only: the text itself is never changed."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]

Offsets = list[tuple[int, int]]
Abbreviations = Literal["ours", "published"]

# Where the splitter stops too early in scholarly prose. Matched at the end of a would-be sentence.
NOT_AN_END = re.compile(
    r"(?:^|[\s(\[])(?:et al|e\.g|i\.e|cf|vs|viz|approx|resp|ca|figs?|tabs?|eqs?|eqns?|secs?|sect|chaps?|refs?|nos?|vols?|pp?"
    r"|eds?|dr|mrs?|ms|prof|st|jr|sr|dept|univ|thms?|defs?|props?|cors?|lem|rem|app|suppl|proc|conf|trans|phys|lett|rev"
    r"|assoc|soc|int|[A-Z]|[A-Z]\.[A-Z])\.$",
    re.IGNORECASE,
)
ENDS_ANYWAY = re.compile(r"(?:^|[\s(\[])(?:[A-Z]|no|p|ms|st)\.$")  # "… in Figure B. We …", "Is it so? No. We …"
CONTINUES = re.compile(r"[\d(\[a-z]")
LOWER = re.compile(r"[a-z]{2,}\b")  # a plain word in lower case; not "mRNA" or "p53", with which a sentence may begin

# "J.-P. Martin", "Ch.-L. Blum", in any language; "48 av. J.-C." may end its sentence.
HYPHENATED_INITIALS = re.compile(r"(?:^|[\s(\[«'’])[^\W\d_a-z][a-zà-ÿ]{0,2}\.[-‐‑][^\W\d_a-z]\.$")
BEFORE_CHRIST = re.compile(r"\b(?:av|apr)\.\s?J\.[-‐‑]C\.$")
# A title before a name, and what stands before a number, after which no sentence begins.
FRENCH_TITLE = re.compile(r"(?:^|[\s(\[«'’-])(?:MM?|Mmes?|Mlles?|Mgrs?|Me|Prs?|Drs?|Stes?|Vve|veuve)\.$")
FRENCH_REFERENCE = re.compile(
    r"(?:^|[\s(\[«'’])(?:arts?|chap|al|t|vol|liv|env|av|apr|éds?|ann|fol|ms|n)\.$", re.IGNORECASE
)

WINDOW = 64_000  # characters given to the splitter at once
WINDOW_MARKS = 600  # of these among them: what it takes long for
MARKS = re.compile(r"""[`'"“”„‘’«»‹›「」『』()\[\].!?…。！？]""")

# The published list. It can never match "Mr." (texts are lower-cased first) and merges after every "no." and "p.".
PUBLISHED = tuple(
    "et al.|e.g.|i.e.|vs.|cf.|etc.|approx.|fig.|figs.|tab.|sec.|chap.|dr.|Mr.|mrs.|ms.|prof.|p.|pp.|vol.|no.|a.d.|b.c.".split(
        "|"
    )
)


def find_sentences(text: str, lang: str = "en", abbreviations: Abbreviations = "ours") -> Offsets:
    """(start, end) of each sentence, without the white space around it. A blank line always ends one.

    >>> text = "See Smith et al. (2001). We go on."
    >>> [text[start:end] for start, end in find_sentences(text)]
    ['See Smith et al. (2001).', 'We go on.']
    """
    joined = was_merged if abbreviations == "published" else goes_on_in_french if lang == "fr" else goes_on
    sentences: Offsets = []
    for start, end in split_generally(text, lang):
        if sentences and joined(text, sentences[-1], start):
            sentences[-1] = (sentences[-1][0], end)
        else:
            sentences.append((start, end))
    return sentences


def split_generally(text: str, lang: str) -> Iterator[tuple[int, int]]:
    """What the general splitter finds, trimmed.

    Its time grows with the square of what it is given, so it sees a text through a window: whole paragraphs, or of one
    that is longer a part, of which the ends in the first three quarters count. Every next window begins after the last end.
    """
    at = begun = 0  # `begun`: where the sentence began that the window stands in
    while at < len(text):
        stop, whole = window_end(text, at)
        ends = splitter_ends(text, at, stop, lang)
        ends = ends if whole else sure_ends(ends, at, stop)
        for end in ends:
            start, last = trim_offsets(text, begun, end)
            if start < last:
                yield start, last
            begun = end
        at = stop if whole else ends[-1] if ends else last_blank(text, at, stop)


def window_end(text: str, at: int) -> tuple[int, bool]:
    """Where the window that begins here ends, and whether that is the end of a paragraph."""
    limit = next((m.start() for m in islice(MARKS.finditer(text, at, at + WINDOW), WINDOW_MARKS, None)), at + WINDOW)
    if limit >= len(text):
        return len(text), True
    paragraph = text.rfind("\n\n", at + 1, limit)
    return (paragraph, True) if paragraph > at else (limit, False)


def splitter_ends(text: str, first: int, last: int, lang: str) -> list[int]:
    """Where the splitter ends a sentence, or the gap between two paragraphs."""
    return [first + boundary["end_index"] for boundary in get_sentence_boundaries(lang, text[first:last])]


def sure_ends(ends: list[int], at: int, stop: int) -> list[int]:
    """Those that what lies behind the window cannot change, unless a quotation or bracket is very long."""
    return [end for end in ends if end <= at + (stop - at) * 3 // 4] or ends[:-1][:1]


def last_blank(text: str, at: int, stop: int) -> int:
    """Where to read on in a sentence that is longer than the window: after the last blank, or where the window ends."""
    blank = max(text.rfind(" ", at, stop), text.rfind("\n", at, stop))
    return blank + 1 if blank > at else stop


def trim_offsets(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def goes_on(text: str, before: tuple[int, int], start: int) -> bool:
    """Was the end before `start` the full stop of an abbreviation, and no end?"""
    tail = text[max(before[0], before[1] - 12) : before[1]]
    if "\n" in text[before[1] : start]:
        return False
    if start == before[1] and text[start] in "-‐‑":  # the splitter takes "J." of "J.-P." for a sentence
        return True
    if HYPHENATED_INITIALS.search(tail) and not BEFORE_CHRIST.search(tail):
        return True
    if tail.endswith(".") and LOWER.match(text, start):
        return True
    return bool(NOT_AN_END.search(tail) and (CONTINUES.match(text[start]) or not ENDS_ANYWAY.search(tail)))


def goes_on_in_french(text: str, before: tuple[int, int], start: int) -> bool:
    """Was it that, or the full stop of "M. Dupont" or "art. 12"?"""
    if goes_on(text, before, start):
        return True
    tail = text[max(before[0], before[1] - 12) : before[1]]
    if "\n\n" in text[before[1] : start]:
        return False
    titled = FRENCH_TITLE.search(tail) and text[start].isupper()
    return bool(titled or (FRENCH_REFERENCE.search(tail) and text[start].isdigit()))


def was_merged(text: str, before: tuple[int, int], start: int) -> bool:  # noqa: ARG001
    """Does the published rule join a sentence to the next one? It looks at the end of the first alone."""
    return text[max(before[0], before[1] - 12) : before[1]].lower().endswith(PUBLISHED)


def sentence_runs(offsets: Offsets, size: int) -> Offsets:
    """Every run of `size` neighbouring sentences, or the whole text if it has fewer."""
    if len(offsets) <= size:
        return [(offsets[0][0], offsets[-1][1])] if offsets else []
    return [(offsets[at][0], offsets[at + size - 1][1]) for at in range(len(offsets) - size + 1)]


def sentence_tiles(offsets: Offsets, size: int) -> Offsets:
    """Runs that do not overlap and cover the text; a short rest joins the last one."""
    if len(offsets) < 2 * size:
        return sentence_runs(offsets, len(offsets)) if offsets else []
    starts = range(0, len(offsets) - size + 1, size)
    last = starts[-1]
    return [(offsets[at][0], offsets[-1 if at == last else at + size - 1][1]) for at in starts]
