"""What is done with marked citations in running text: kept, masked or dropped.

Names in citations give the author away, since people cite themselves. A reader of markup, or `printed` for plain text,
puts each citation between two control characters that XML cannot hold; `settle` then does what was asked.
"""

import re
from typing import Literal, get_args

from idiograph.errors import SpecError
from idiograph.spec import unknown_choice

Citations = Literal["keep", "mask", "drop"]
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


def check_citation_policy(how: str) -> None:
    """Refuse a way of treating citations that does not exist."""
    if how not in get_args(Citations):
        raise SpecError(unknown_choice("treatment of citations", how, get_args(Citations)))


def mark_citation(printed: str) -> str:
    """A citation as `settle` finds it."""
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
