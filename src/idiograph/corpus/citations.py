"""Citations in running text: how they are recognised where they are printed, and what is done with them.

Names in citations give the author away, since people cite themselves. A reader of markup, or `mark_printed` for plain
text, puts each citation between two control characters that XML cannot hold; `apply_citation_policy` then keeps, masks
or drops them, or writes `[START_REF] Smith, 2001 [END_REF]` as the published corpus does.

In plain text a citation is `(Smith et al., 2001; Doe, 2002)`, `Smith (2001)` or `[3, 5-7]`. A year or the words "et al."
are found first, then the names before them are read backwards word by word: that is linear, and it stops at the first
word that cannot be part of a name. Years and numbers that are no citation stay: intervals, vectors, dates, figures and
tables.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal, get_args

from idiograph.errors import SpecError
from idiograph.spec import unknown_choice
from idiograph.text.words import FUNCTION_WORDS

Citations = Literal["keep", "mask", "drop", "published"]
CITE = "[CITE]"
OPEN, CLOSE = "\x02", "\x03"

_MARKED = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")
_STRAY = re.compile(f"[{OPEN}{CLOSE}]")
_RUN = re.compile(rf"{OPEN}(?:[\s,;–—-]*{OPEN})+")
_BRACKETED = re.compile(rf"[\[(]\s*{OPEN}[\s,;.]*[\])]")
_UNCLOSED = re.compile(rf"[\[(]{OPEN}(?=\.(?:\s|$))")  # GROBID may lose the bracket that closes a group
_RAISED = re.compile(rf"([.,;:]){OPEN}(?=\s|$)")
_GLUED_LEFT = re.compile(rf"(?<=[^\s(\[/–—-]){OPEN}")
_GLUED_RIGHT = re.compile(rf"{OPEN}(?=\w)")
_EMPTY = re.compile(r"[ \t]*[(\[](?:see|e\.g\.|i\.e\.|cf\.|voir|also|and|for|reviewed in|[\s,;:.–-])*[)\]]")
_SPACE_BEFORE = re.compile(r"[ \t]+(?=[.,)\]])|[;,][ \t]*(?=[)\]])")  # in French, others have a space before them
_SPACES = re.compile(r"[ \t]{2,}")

REACH = 200  # characters that the names of one citation may take
MAX_WORDS = 16  # in the names of one citation
INSIDE = 600  # characters that a bracket may have been open before the year

_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?(?![\w%/]|[–-]\d|\.\d)"
_UNDATED = (
    *("in press", "in preparation", "to appear", "forthcoming", "submitted", "unpublished data", "unpublished results"),
    *("unpublished observations", "unpublished", "personal communication", "pers. comm.", "sous presse", "à paraître"),
)
# No look-behind in front of these: it would hide the first letter from the search, which then is five times slower.
_YEARS = re.compile(_YEAR)
_DATES = re.compile(rf"{_YEAR}|(?:{'|'.join(map(re.escape, _UNDATED))})(?!\w)")
_MORE_YEARS = re.compile(rf"\s*(?:[,;&]|and|et)\s*{_YEAR}")
_PAGES = re.compile(r"\s*[:,]\s*(?:pp?\.\s*)?\d{1,4}(?:\s*[–-]\s*\d{1,4})?(?![\w–-])")
_ET_AL = re.compile(r"et\s+(?:al\b\.?|coll\.)")
_AND_COLLEAGUES = re.compile(r"and (?:colleagues|coworkers|co-workers)\b")
_TOKEN = re.compile(r"\S+")
_INITIALS = re.compile(r"(?:[A-ZÀ-Þ]\.?-?){1,3}$")
_POSSESSIVE = re.compile(r"['’]s?$")
_NUMBERS = r"\[\s*[1-9]\d{0,2}(?:\s*[,;–-]\s*[1-9]\d{0,2})*\s*\]"
_NUMERIC = re.compile(rf"{_NUMBERS}(?:\s?[,;–-]?\s?{_NUMBERS})*")
_PAIR = re.compile(r"\b[A-ZÀ-Þ][\w'’-]*[a-z] (?:and|&|et|und) [A-ZÀ-Þ][\w'’-]*[a-z] $")
_RAISED_NUMBERS = re.compile(r"[⁰¹²³⁴-⁹]+(?:[,–⁻][⁰¹²³⁴-⁹]+)*")
_GALACTICA = re.compile(r"\[START_REF\].{0,600}?\[END_REF\]", re.S)
_RANGE_WORDS = re.compile(
    r"\b(?:interval|range|vector|matrix|segment|domain|between|intervalle|entre|set|index)s?\s+(?:of\s+)?$"
)
_WORD_END = re.compile(r"[a-z]{4}[.,;]?$")
_OPERATORS = frozenset("=∈<>≤≥{}〈〉⟨⟩⊂×±~≈→[")

_PARTICLES = frozenset("van von der den de del della da dos di du la le ten ter el al bin ibn zu af av".split())
_JOINTS = frozenset(["and", "&", "et", "und", "y", "e", "i", "en"])
_ET_AL_WORDS = frozenset(["al", "al.", "coll.", "colleagues", "coworkers", "co-workers"])
_NO_NAMES = frozenset(
    """
    january february march april may june july august september october november december janvier février mars avril mai
    juin juillet août septembre octobre novembre décembre januar februar märz juni juli oktober dezember enero febrero marzo
    abril mayo junio julio agosto septiembre octubre noviembre diciembre gennaio febbraio aprile maggio giugno luglio
    settembre ottobre dicembre jan feb mar apr jun jul aug sep sept oct nov dec spring summer autumn fall winter monday
    tuesday wednesday thursday friday saturday sunday figure figures fig figs table tables tab section sections sect chapter
    equation equations eq eqs appendix theorem lemma proposition corollary definition algorithm example version windows
    volume vol issue page pages posted accessed retrieved born died copyright grant project
    """.split()
)
# Words that begin a sentence before a name. Short ones are surnames too (He, So, An): what stands beside them decides.
_STARTERS = FUNCTION_WORDS["en"] | frozenset(
    "le la les dans selon pour chez avec par comme cependant ainsi der die das nach bei wie según para en como".split()
)

_NAME_MARKS = str.maketrans("", "", "-‐‑'’")

Extent = tuple[int, int]


def check_citation_policy(how: str) -> None:
    """Refuse a way of treating citations that does not exist."""
    if how not in get_args(Citations):
        raise SpecError(unknown_choice("treatment of citations", how, get_args(Citations)))


def mark_citation(printed: str) -> str:
    """A citation as `apply_citation_policy` finds it."""
    return f"{OPEN}{_STRAY.sub('', printed)}{CLOSE}"


def apply_citation_policy(text: str, how: Citations) -> str:
    """Do with every marked citation what was asked; a group of neighbours becomes one marker.

    >>> apply_citation_policy(f"as known {mark_citation('[3,')}{mark_citation('4]')}.", "mask")
    'as known [CITE].'
    """
    if OPEN not in text:
        return text
    if how == "keep":
        return _STRAY.sub("", text)
    if how == "published":
        return _STRAY.sub("", _MARKED.sub(r"[START_REF] \1 [END_REF]", text))
    text = _STRAY.sub(OPEN, _MARKED.sub(_bare, text))
    text = _RAISED.sub(rf"{OPEN}\1", _UNCLOSED.sub(OPEN, _BRACKETED.sub(OPEN, _RUN.sub(OPEN, text))))
    return _mask(text) if how == "mask" else _drop(text)


def _bare(match: re.Match[str]) -> str:
    """One marker, with the brackets that the citation opened or closed for its neighbours."""
    printed = match[1].strip()
    left = printed[0] if printed[:1] in ("(", "[") and _unmatched(printed) > 0 else ""
    right = printed[-1] if printed[-1:] in (")", "]") and _unmatched(printed) < 0 else ""
    return f"{left}{OPEN}{right}"


def _unmatched(printed: str) -> int:
    return sum(map(printed.count, "([")) - sum(map(printed.count, ")]"))


def _mask(text: str) -> str:
    spaced = _GLUED_RIGHT.sub(f"{OPEN} ", _GLUED_LEFT.sub(f" {OPEN}", text))
    return spaced.replace(OPEN, CITE)


def _drop(text: str) -> str:
    emptied = _EMPTY.sub("", _GLUED_RIGHT.sub(" ", text).replace(OPEN, ""))
    return _SPACES.sub(" ", _SPACE_BEFORE.sub("", emptied))


def mark_printed(text: str) -> str:
    """Put the marks that `apply_citation_policy` reads around every printed citation; marks that are there already stay."""
    if OPEN in text:
        return text
    pieces, at = [], 0
    for start, end in _disjoint([*_author_years(text), *_citation_groups(text), *_numbers(text)]):
        pieces += [text[at:start], mark_citation(text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def _disjoint(extents: list[Extent]) -> Iterator[Extent]:
    """The extents in order, overlapping ones joined."""
    joined: list[Extent] = []
    for start, end in sorted(extents):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return iter(joined)


def _author_years(text: str) -> Iterator[Extent]:
    """`Smith, 2001` inside brackets, and `Smith (2001)` anywhere."""
    done = 0
    dates = _DATES if any(words in text for words in _UNDATED) else _YEARS
    for date in dates.finditer(text):
        before = text[max(0, date.start() - 1) : date.start()]
        if date.start() < done or before.isalnum() or before in tuple("_/.–-"):
            continue
        opened = before in ("(", "[")
        found = (_narrative if opened else _bracketed)(text, date, done)
        if found:
            done = found[1]
            yield found


def _bracketed(text: str, date: re.Match[str], done: int) -> Extent | None:
    if not any(_is_open(text, date.start(), left, right) for left, right in ("()", "[]")):
        return None
    start = _names_before(text, date.start(), done, commas=True)
    return None if start is None else (start, _extend(text, date.end()))


def _is_open(text: str, at: int, left: str, right: str) -> bool:
    """Whether a bracket is open at a place; a count catches nested ones."""
    low = max(0, at - INSIDE)
    last = text.rfind(left, low, at)
    return last > text.rfind(right, low, at) or (last >= 0 and text.count(left, low, at) > text.count(right, low, at))


def _narrative(text: str, date: re.Match[str], done: int) -> Extent | None:
    start = _names_before(text, date.start() - 1, done, commas=False)
    if start is None:
        return None
    end = _extend(text, date.end())
    closed = text[end : end + 1] in (")", "]")
    return (start, end + 1) if closed else (start, _end_of_word(text, date.start() - 1))


def _end_of_word(text: str, at: int) -> int:
    while at and text[at - 1].isspace():
        at -= 1
    return at


def _extend(text: str, end: int) -> int:
    """Take in further years and pages: `2001, 2003b: 15-17`."""
    while more := _MORE_YEARS.match(text, end) or _PAGES.match(text, end):
        end = more.end()
    return end


def _citation_groups(text: str) -> Iterator[Extent]:
    """`Smith et al.` with no year, and the reference marks of GROBID's plain text."""
    for found in chain(_ET_AL.finditer(text), _AND_COLLEAGUES.finditer(text)):
        start = _names_before(text, found.end(), 0, commas=False)
        if start is not None:
            yield start, found.end()
    if "[START_REF]" in text:
        yield from (found.span() for found in _GALACTICA.finditer(text))


def _names_before(text: str, end: int, done: int, commas: bool) -> int | None:
    """Where the names that end at `end` begin; None if the words there are not names.

    With `commas`, as inside brackets, a comma may stand between any two names; without, only in a list with an "and".
    """
    low = max(done, end - REACH)
    tokens = list(_TOKEN.finditer(text, low, end))
    if low > done and tokens and tokens[0].start() == low:
        tokens = tokens[1:]  # it may be the tail of a word
    start, kinds = None, []
    for token in reversed(tokens):
        bracket = max(token[0].rfind("("), token[0].rfind("["))
        word = token[0][bracket + 1 :]
        if "]" in word or (word.endswith(",") and "name" in kinds and not commas and "joint" not in kinds):
            break  # a marker of ours, or the comma before the names
        kind = _kind(word.rstrip(",;)" if not kinds else ","))
        if kinds == ["et al", "joint"] and word[:1].isupper():
            kind = "name"  # whatever stands before "et al." is one: Jan, He, Du
        elif kind == "starter":
            kind = "name" if commas else "other"
        if kind == "other" or (kind == "joint" and not kinds):
            break
        kinds.append(kind)
        if len(kinds) > MAX_WORDS:
            return None
        start = start if kind == "joint" else token.start() + bracket + 1
        if bracket >= 0:
            break
    return start if "name" in kinds else None


def _kind(word: str) -> str:
    """What a word can be in a list of names."""
    bare = _POSSESSIVE.sub("", word)
    if word in _ET_AL_WORDS:
        return "et al"
    if word in _JOINTS:
        return "joint"
    if bare in _PARTICLES or bare in ("De", "Van", "Von", "Di", "Du"):
        return "particle"
    if bare in ("Jr.", "Sr.") or _INITIALS.match(bare):
        return "initials"
    return _capitalised(bare)


def _capitalised(bare: str) -> str:
    letters = bare.translate(_NAME_MARKS)
    if not (letters.isalpha() and (bare[0].isupper() or bare[:2] in ("d'", "d’", "l'", "l’"))):
        return "other"
    low = bare.lower()
    return "other" if low in _NO_NAMES else "starter" if low in _STARTERS else "name"


def _numbers(text: str) -> Iterator[Extent]:
    """`[3, 5-7]`, with the two names of `Smith and Doe [3]`, and raised numbers; not intervals, indices or sets."""
    for found in _NUMERIC.finditer(text):
        if not _is_mathematics(text, *found.span()):
            pair = _PAIR.search(text, max(0, found.start() - 60), found.start())
            yield (pair or found).start(), found.end()
    if not text.isascii():
        yield from (
            found.span()
            for found in _RAISED_NUMBERS.finditer(text)
            if _WORD_END.search(text, max(0, found.start() - 6), found.start())
        )


def _is_mathematics(text: str, start: int, end: int) -> bool:
    left, right = text[max(0, start - 30) : start], text[end : end + 3].lstrip()
    glued = (left[-1:].isalnum() and not _WORD_END.search(left)) or left.endswith(")")
    operator = left.rstrip()[-1:] in _OPERATORS or right[:1] in _OPERATORS
    return glued or operator or _RANGE_WORDS.search(left) is not None
