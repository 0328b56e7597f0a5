"""Lines of a section → paragraphs whose words are whole again. Knows where a paragraph begins, not what it is about."""

import re
from collections.abc import Sequence

from idiograph.pdf.glyphs import HYPHEN
from idiograph.pdf.headings import ends_sentence
from idiograph.pdf.layout import Design, Line

ITEM = re.compile(r"(?:[•●◦▪■‣∙·–—*✓➢]|\(?(?:\d{1,2}|[a-z]|[ivx]+)[.)]|\[\d+\])\s+\S|[•●▪■]")
BULLET = re.compile(r"^[•●◦▪■‣∙·✓➢]\s*")
SPLIT = re.compile(r"([^\W\d_](?:[\w-]*\w)?)[-\x02]$")
TAIL = re.compile(r"[^\W\d_]+")


def is_sentence_like(text: str) -> bool:
    """Whether a paragraph is made of words; labels of figures and rests of tables are not."""
    words = text.split()
    letters = sum(c.isalpha() for c in text)
    enough = len(words) > 3 or letters > 30 or (len(words) > 1 and ends_sentence(text))  # not all scripts have spaces
    return enough and letters > 0.5 * len(text.replace(" ", ""))


def group_lines(lines: Sequence[tuple[str, Line]], design: Design) -> list[tuple[str, list[Line]]]:
    """Lines parted into paragraphs and formulas."""
    out: list[tuple[str, list[Line]]] = []
    for tag, line in lines:
        if out and out[-1][0] == tag and (tag == "formula" or not begins_paragraph(line, out[-1][1], design)):
            out[-1][1].append(line)
        else:
            out.append((tag, [line]))
    return out


def begins_paragraph(line: Line, paragraph: Sequence[Line], design: Design) -> bool:
    """Whether a line begins a new paragraph after the lines of the last one."""
    last, column, size = paragraph[-1], design.column(line), design.size
    done = ends_sentence(last.text)
    fresh = done or not line.text[:1].islower()
    jump = line.page != last.page or line.base < last.base
    if ITEM.match(line.text) and (done or is_short(last, design) or ITEM.match(paragraph[0].text)):
        return True
    if is_short(last, design) and done:
        return True
    if jump:
        return done and line.left > column.left + 0.7 * size
    if line.base - last.base > 1.28 * design.pitch:
        return fresh
    hanging = len(paragraph) == 1 and ITEM.match(last.text)
    if line.left > last.left + 0.7 * size and not hanging:
        return fresh
    if line.left >= last.left - 0.7 * size or not fresh:
        return False
    return line.left < paragraph[0].left if len(paragraph) > 1 else bool(hanging) and is_short(last, design)


def is_short(line: Line, design: Design) -> bool:
    """Whether a line ends well before its column does, as the last of a paragraph."""
    column = design.column(line)
    room = 2.5 * design.size if design.justified else 0.3 * column.width
    return line.right < column.right - room


class JoinedWords:
    """The words of a document, asked whether a hyphen at the end of a line belongs to the word."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.plain: set[str] = set()
        self.compound: set[str] = set()
        for line in lines:
            tokens = [token.strip(".,;:!?()[]\"'“”’‘").casefold() for token in tidy_hyphens(line.text).split()]
            for token in tokens[1:-1]:
                (self.compound if "-" in token else self.plain).add(token)

    def knows(self, word: str) -> bool:
        return word.casefold() in self.plain

    def join(self, head: str, tail: str) -> str:
        """Two parts of a word that a line break and a hyphen part.

        >>> JoinedWords([]).join("repro", "ducible")
        'reproducible'
        """
        one, two = head.casefold(), tail.casefold()
        whole = self.knows(one + two)
        kept = f"{one}-{two}" in self.compound or "-" in one or (len(one) > 2 and {one, two} <= self.plain)
        return f"{head}-{tail}" if kept and not whole else head + tail


def tidy_hyphens(text: str) -> str:
    """Text with one kind of hyphen."""
    return text.replace("‐", "-").replace("‑", "-").replace("\xa0", " ")


def join_lines(texts: Sequence[str], words: JoinedWords) -> str:
    """One text of many lines, with words that were parted at a line's end put together."""
    tokens: list[str] = []
    for text in texts:
        fresh = tidy_hyphens(text).split()
        if fresh and tokens and tokens[-1][-1] in f"-{HYPHEN}":
            tokens[-1:] = mend(tokens[-1], fresh.pop(0), words)
        tokens += fresh
    return " ".join(tokens).replace(HYPHEN, "-")


def mend(one: str, two: str, words: JoinedWords) -> list[str]:
    """The last word of a line that ends in a hyphen and the first of the next: one word, or two after a dash."""
    head, tail = SPLIT.search(one[-80:]), TAIL.match(two)
    if head and tail and (tail[0][0].islower() or words.knows(head[1] + tail[0])):
        return [one[: -len(head[0])] + words.join(head[1], tail[0]) + two[tail.end() :]]
    return [f"{one[:-1]}-{two}"] if len(one) > 1 else ["-", two]
