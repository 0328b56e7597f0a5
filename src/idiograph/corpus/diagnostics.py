"""What extraction does badly, measured: right-to-left scripts in wrong order, scripts without spaces, formulae.

These are limits that the published corpus names without numbers. A document is hit or not; the shares are by language and
by field.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from idiograph.corpus.article import MATH
from idiograph.types import Document, fields_of

HEAD = 20_000  # characters of a document that are looked at
MIN_SCRIPT_SHARE = 0.3  # of its letters in a script, before a document counts as written in it
MIN_FINAL_LETTERS = 5  # that only end words, before their place says anything
MIN_PARAGRAPHS = 2

_LETTERS = re.compile(r"[^\W\d_]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u05ff\u0600-\u06ff\u0750-\u077f\ufb1d-\ufdff\ufe70-\ufeff]")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]")
# Letters that end a word and never begin one: teh marbuta and alef maksura; the five final forms of Hebrew.
_FINAL_AT_END = re.compile("\\w[\u0629\u0649\u05da\u05dd\u05df\u05e3\u05e5]\\b")
_FINAL_AT_START = re.compile("\\b[\u0629\u0649\u05da\u05dd\u05df\u05e3\u05e5]\\w")
_STOP_AFTER_FIRST_WORD = re.compile(r"\s*\w+[.؟!]\s")
_STOP_AT_END = re.compile(r"[.؟!]\s*$")
_FORMULA = re.compile(rf"{re.escape(MATH)}|[∀∃∑∏∫√∂∇≤≥≠≈≡∈∉⊂⊆∪∩→⇒⇔∞±×÷\U0001d400-\U0001d7ff]|\\[a-zA-Z]{{2,20}}[{{_^]")


def is_right_to_left(text: str) -> bool:
    return share_of_letters(text, _RIGHT_TO_LEFT) > MIN_SCRIPT_SHARE


def is_in_wrong_order(text: str) -> bool:
    """Whether a right-to-left text came out backwards: its letters within words, or its words within paragraphs.

    >>> is_in_wrong_order("ةملك " * 9), is_in_wrong_order("كلمة " * 9)
    (True, False)
    """
    if not is_right_to_left(text):
        return False
    start, end = (len(found.findall(text)) for found in (_FINAL_AT_START, _FINAL_AT_END))
    if max(start, end) >= MIN_FINAL_LETTERS and start > end:
        return True
    paragraphs = [each for each in text.split("\n\n") if len(each.split()) > 3]
    first = sum(bool(_STOP_AFTER_FIRST_WORD.match(each)) for each in paragraphs)
    last = sum(bool(_STOP_AT_END.search(each)) for each in paragraphs)
    return first >= MIN_PARAGRAPHS and first > last


def is_unspaced(text: str) -> bool:
    """Whether a text is in Chinese, Japanese or Korean letters, where words are no measure of length."""
    return share_of_letters(text, _UNSPACED) > MIN_SCRIPT_SHARE


def has_formulae(text: str) -> bool:
    """Whether a formula, or the marker that stands for one, is in a text."""
    return _FORMULA.search(text) is not None


def share_of_letters(text: str, script: re.Pattern[str]) -> float:
    found = len(script.findall(text))
    return found / max(1, len(_LETTERS.findall(text))) if found else 0.0


FAULTS: dict[str, Callable[[str], bool]] = {
    "right_to_left": is_right_to_left,
    "wrong_order": is_in_wrong_order,
    "unspaced": is_unspaced,
    "formulae": has_formulae,
}


@dataclass(frozen=True, slots=True)
class HitShares:
    """Of so many documents, the share that each fault hits, and the share of sentences that hold a formula."""

    documents: int
    shares: Mapping[str, float]
    sentences_with_formulae: float


@dataclass(slots=True)
class FaultCount:
    """What is hit, while documents go by."""

    documents: int = 0
    sentences: int = 0
    with_formulae: int = 0
    hits: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FAULTS, 0))

    def add(self, faults: Sequence[str], sentences: int, with_formulae: int) -> None:
        self.documents += 1
        self.sentences += sentences
        self.with_formulae += with_formulae
        for name in faults:
            self.hits[name] += 1

    def result(self) -> HitShares:
        shares = {name: count / self.documents for name, count in self.hits.items()}
        return HitShares(self.documents, shares, self.with_formulae / max(1, self.sentences))


@dataclass(slots=True)
class FaultCensus:
    """The counts by language and by first field."""

    languages: dict[str, FaultCount] = field(default_factory=dict)
    fields: dict[str, FaultCount] = field(default_factory=dict)

    def add(self, document: Document, sentences: Sequence[str], unnamed: str) -> None:
        """Look at a document; `sentences` are roughly its own."""
        head = document.text[:HEAD]
        faults = [name for name, holds in FAULTS.items() if holds(head)]
        formulae = sum(map(has_formulae, sentences)) if "formulae" in faults else 0
        named = fields_of(document.domains) or [unnamed]
        for table, name in ((self.languages, document.lang or unnamed), (self.fields, named[0])):
            table.setdefault(name, FaultCount()).add(faults, len(sentences), formulae)


def fault_shares(counts: Mapping[str, FaultCount]) -> dict[str, HitShares]:
    """By number of documents, most first."""
    return {name: count.result() for name, count in sorted(counts.items(), key=lambda each: -each[1].documents)}
