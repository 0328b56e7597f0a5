"""Words on pages → lines → blocks in the order in which a person reads them, and the measurements of the page design.

Geometry only: what a block says is the business of `furniture` and `prose`.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeVar

import numpy as np

from idiograph.pdf.glyphs import Page, Word

T = TypeVar("T")
INITIAL = 2.2  # times the size of the text: a letter so large begins a chapter, it does not go on with a line
PRINTED, GUESSED = 0.07, 0.3
GUTTER = 1.2  # ems; a wider gap parts two columns or cells, a narrower one two words of a loosely set line


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Words on one baseline of one column."""

    page: int
    words: tuple[Word, ...]
    left: float
    right: float
    base: float
    size: float
    font: str
    text: str

    @property
    def width(self) -> float:
        return self.right - self.left


@dataclass(frozen=True, slots=True, eq=False)
class TextBlock:
    """Lines that stand under each other at one spacing."""

    lines: tuple[Line, ...]
    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Column:
    left: float
    right: float

    @property
    def width(self) -> float:
        return self.right - self.left


@dataclass(frozen=True, slots=True)
class Design:
    """How a document sets its running text: type size and fonts, distance of baselines, columns of each page.

    `slack` is how far the size may stray: little in print, much in a text layer that a scanner's software guessed.
    """

    size: float
    slack: float
    fonts: frozenset[str]
    pitch: float
    measure: float
    justified: bool
    columns: dict[int, tuple[Column, ...]]

    def column(self, line: Line) -> Column:
        """The column that a line belongs to, or its own extent if it is in none."""
        best = max(self.columns.get(line.page, ()), key=lambda c: overlap_points(c, line), default=None)
        return (
            best
            if best and overlap_points(best, line) > 0.5 * min(line.width, best.width)
            else Column(line.left, line.right)
        )

    def usual_columns(self) -> tuple[Column, ...]:
        """The columns that a quarter of the pages have."""
        counts = Counter(column for columns in self.columns.values() for column in columns)
        return tuple(column for column, count in counts.items() if count >= 0.25 * len(self.columns))

    def is_body(self, size: float) -> bool:
        return abs(size - self.size) <= self.slack * self.size

    def is_larger(self, size: float) -> bool:
        return size > (1 + self.slack) * self.size


def overlap_points(one: Column | Line | TextBlock, other: Column | Line | TextBlock) -> float:
    """How much of a horizontal stretch two things share, in points; negative for the gap between them."""
    return min(one.right, other.right) - max(one.left, other.left)


def find_lines(page: Page) -> list[Line]:
    """The lines of a page: words that the file draws one after another, then neighbours that it draws apart."""
    groups: list[list[Word]] = []
    for word in page.words:
        if groups and follows(groups[-1], word):
            groups[-1].append(word)
        else:
            groups.append([word])
    return adopt_initials([make_line(page.number, words) for words in reunite(groups)])


def follows(words: list[Word], word: Word) -> bool:
    """Whether a word goes on with the line: level with it, raised or lowered, and right behind its last word."""
    near, last = words[-8:], words[-1]
    size = max(max(w.size for w in near), word.size)
    if size > INITIAL * min(last.size, word.size):
        return False
    return abs(word.base - level(near)) < 0.45 * size and -0.5 * size < word.left - last.right < GUTTER * size


def level(words: Sequence[Word]) -> float:
    """The baseline of the largest words."""
    return max(words, key=lambda w: w.size * len(w.text)).base


def reunite(groups: list[list[Word]]) -> list[list[Word]]:
    """Pieces of one line that were drawn at different moments, put together from left to right."""
    done: list[list[Word]] = []
    rows: dict[int, list[list[Word]]] = defaultdict(list)
    for words in sorted(groups, key=lambda words: (words[0].left, words[0].base)):
        row = round(level(words))
        near = [g for r in (row - 1, row, row + 1) for g in rows[r] if touches(g, words)]
        if near:
            host, first = max(near, key=lambda g: g[-1].right), words[0]
            glued = abs(first.left - host[-1].right) < 0.15 * first.size
            host += [replace(first, glued=glued), *words[1:]]
        else:
            done.append(words)
            rows[row].append(words)
    return done


def touches(words: list[Word], other: list[Word]) -> bool:
    one, two = words[-1], other[0]
    size = max(one.size, two.size)
    if size > INITIAL * min(one.size, two.size):
        return False
    return abs(level(words) - level(other)) < 0.25 * size and -size < two.left - one.right < 0.8 * size


def adopt_initials(lines: Sequence[Line]) -> list[Line]:
    """Lines that have their large first letter back, which stands beside them and hangs over two or three of them."""
    out = list(lines)
    for initial in lines:
        if len(initial.text) == 1 and initial.text.isupper():
            beside = [x for x in out if INITIAL * x.size < initial.size and is_beside(initial, x)]
            if beside:
                first = min(beside, key=lambda x: x.base)
                out[out.index(first)] = with_initial(initial.words[0], first)
                out.remove(initial)
    return out


def with_initial(letter: Word, line: Line) -> Line:
    """A line after its large first letter, which is a word by itself only where the language has such words."""
    head, *rest = line.words
    alone = letter.text in "AIOYÀ" and not head.text.isupper()
    first = replace(letter, base=line.base, size=line.size, font=line.font)
    return make_line(line.page, [first, replace(head, glued=not alone), *rest])


def is_beside(initial: Line, line: Line) -> bool:
    """Whether a line begins right of a large letter, at its height."""
    near = -0.3 * line.size < line.left - initial.right < 1.2 * line.size
    return near and initial.base - 1.1 * initial.size < line.base < initial.base + 0.3 * line.size


def make_line(page: int, words: Sequence[Word]) -> Line:
    size = weigh((w.size, len(w.text)) for w in words)
    font = weigh((w.font, len(w.text)) for w in words)
    base = weigh((w.base, len(w.text)) for w in words if w.size > 0.85 * size or w.size == size)
    kept = [w for i, w in enumerate(words) if not is_call(words[i - 1] if i else None, w, base, size)]
    text = "".join(w.text if w.glued or i == 0 else f" {w.text}" for i, w in enumerate(kept))
    return Line(page, tuple(words), words[0].left, max(w.right for w in words), base, size, font, text)


def weigh(pairs: Iterable[tuple[T, float]]) -> T:
    """The value with the most weight; the first of equals."""
    sums: dict[T, float] = defaultdict(float)
    for value, weight in pairs:
        sums[value] += weight
    return max(sums, key=lambda value: sums[value])


def is_call(before: Word | None, word: Word, base: float, size: float) -> bool:
    """Whether a raised sign calls a note or a reference; powers after digits and short symbols are not calls."""
    if before is None or word.size > 0.85 * size or base - word.base < 0.2 * size:
        return False
    tail = before.text.rstrip(".,;:)”’\"'")
    behind_word = not tail or (len(tail) > 2 and tail[-1].isalpha())
    return behind_word and all(c in "0123456789,-–—*∗†‡§¶ " for c in word.text)


def nearest_below(lines: Sequence[Line]) -> list[list[int]]:
    """For each line the line or lines of the first row under it that share some of its width."""
    order = sorted(range(len(lines)), key=lambda i: lines[i].base)
    bases = [lines[i].base for i in order]
    below: list[list[int]] = [[] for _ in lines]
    for index, line in enumerate(lines):
        start = bisect_right(bases, line.base + 0.4 * line.size)
        stop = bisect_left(bases, line.base + 3 * line.size)
        row = [j for j in order[start:stop] if overlap_points(line, lines[j]) > 0]
        below[index] = [j for j in row if lines[j].base - lines[row[0]].base < 0.4 * line.size]
    return below


def measure_design(pages: Sequence[Sequence[Line]]) -> Design:
    """The type, spacing and columns that most of the letters of a document have."""
    every = [line for lines in pages for line in lines]
    prose = [line for line in every if len(line.words) > 4] or every
    size, slack = typical_size(prose)
    body = [line for line in prose if abs(line.size - size) <= slack * size]
    measure = 4 * weigh((round(line.width / 4), line.width) for line in body)
    full = [line for line in body if 0.9 * measure < line.width < 1.1 * measure]
    flush = [abs(line.width - measure) < 0.35 * size + 2 for line in full]
    pitch = typical_pitch(pages, size, slack)
    columns = {lines[0].page: find_columns(lines, size, slack, measure) for lines in pages if lines}
    return Design(size, slack, typical_fonts(body), pitch, measure, sum(flush) > 0.6 * len(flush), columns)


def typical_size(lines: Sequence[Line]) -> tuple[float, float]:
    """The size of most letters, and how far lines of the same text stray from it."""
    size = weigh((round(line.size, 1), len(line.text)) for line in lines)
    total = sum(len(line.text) for line in lines)
    same = sum(len(line.text) for line in lines if abs(line.size - size) <= 0.015 * size)
    if same > 0.3 * total:
        return size, PRINTED
    ordered = sorted((line.size, len(line.text)) for line in lines)
    below = list(accumulate(weight for _, weight in ordered))
    return ordered[bisect_left(below, total / 2)][0], GUESSED


def typical_fonts(lines: Sequence[Line]) -> frozenset[str]:
    """The fonts of the text; one typeface may have several names in a file."""
    letters = Counter[str]()
    for line in lines:
        letters[line.font] += len(line.text)
    return frozenset(font for font, count in letters.items() if count > 0.15 * letters.total())


def typical_pitch(pages: Sequence[Sequence[Line]], size: float, slack: float) -> float:
    steps = Counter[int]()
    for lines in pages:
        for line, under in zip(lines, nearest_below(lines), strict=True):
            for other in under[:1]:
                if max(abs(line.size - size), abs(lines[other].size - size)) <= slack * size:
                    steps[round(4 * (lines[other].base - line.base))] += 1
    return steps.most_common(1)[0][0] / 4 if steps else 1.2 * size


def find_columns(lines: Sequence[Line], size: float, slack: float, measure: float) -> tuple[Column, ...]:
    """Where the full lines of a page begin and end."""
    body = [x for x in lines if abs(x.size - size) <= slack * size]
    full = [x for x in body if 0.9 * measure < x.width < 1.1 * measure]
    groups: list[list[Line]] = []
    for line in sorted(full, key=lambda x: x.left):
        home = next((g for g in groups if overlap_points(g[0], line) > 0.6 * measure), None)
        home.append(line) if home else groups.append([line])
    return tuple(Column(edge(g, lambda x: x.left), edge(g, lambda x: x.right)) for g in groups)


def edge(lines: Sequence[Line], side: Callable[[Line], float]) -> float:
    return weigh((round(side(line)), 1) for line in lines)


def find_blocks(lines: Sequence[Line], design: Design) -> list[TextBlock]:
    """Lines joined to the one line under them, where neither has another neighbour and size and spacing agree."""
    below = nearest_below(lines)
    above: dict[int, list[int]] = defaultdict(list)
    for index, under in enumerate(below):
        for other in under:
            above[other].append(index)
    chained = {i for i, under in enumerate(below) if len(under) == 1 and joins(lines, i, under[0], above, design)}
    heads = set(range(len(lines))) - {below[i][0] for i in chained}
    return [make_block([lines[i] for i in chain(head, below, chained)]) for head in sorted(heads)]


def joins(lines: Sequence[Line], one: int, two: int, above: dict[int, list[int]], design: Design) -> bool:
    upper, lower = lines[one], lines[two]
    if len(above[two]) > 1 or not 0.88 < upper.size / lower.size < 1.14:
        return False
    limit = max(1.35 * design.pitch * max(upper.size, lower.size) / design.size, 1.3 * upper.size)
    return lower.base - upper.base <= limit


def chain(head: int, below: list[list[int]], chained: set[int]) -> list[int]:
    out = [head]
    while out[-1] in chained:
        out.append(below[out[-1]][0])
    return out


def make_block(lines: Sequence[Line]) -> TextBlock:
    left, right = min(x.left for x in lines), max(x.right for x in lines)
    return TextBlock(
        tuple(lines), left, right, lines[0].base - 0.7 * lines[0].size, lines[-1].base + 0.2 * lines[-1].size
    )


def reading_order(blocks: Sequence[TextBlock]) -> list[TextBlock]:
    """Blocks as they are read: down a column, and from left to right unless something wide stands in between.

    A block comes before another if it is above it and shares some of its width; or if it is wholly to its left and no
    block between their heights spans into both. The cost grows with the cube of the number, hence the cap.
    """
    if len(blocks) > 300:
        blocks = sorted(blocks, key=lambda b: -sum(len(x.text) for x in b.lines))[:300]
    blocks = sorted(blocks, key=lambda b: (b.top, b.left))
    before = precedence(blocks)
    done: list[int] = []
    state = [False] * len(blocks)
    for index in range(len(blocks)):
        visit(index, before, state, done)
    return [blocks[i] for i in done]


def visit(index: int, before: list[list[int]], state: list[bool], done: list[int]) -> None:
    """Put down a block after all that come before it; a circle, which odd layouts can make, is cut where it closes."""
    stack = [(index, iter(before[index]))]
    if state[index]:
        return
    state[index] = True
    while stack:
        current, rest = stack[-1]
        following = next((other for other in rest if not state[other]), None)
        if following is None:
            done.append(current)
            stack.pop()
        else:
            state[following] = True
            stack.append((following, iter(before[following])))


def precedence(blocks: Sequence[TextBlock]) -> list[list[int]]:
    """For each block those that must come before it, in the order of their places on the page."""
    box = np.array([(b.left, b.right, (b.top + b.bottom) / 2) for b in blocks]).reshape(-1, 3)
    left, right, height = box.T
    shared = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    over = shared > 0.5  # (n, n) share some width
    above = over & (height[:, None] < height)
    beside = right[:, None] <= left + 0.5  # (n, n) a wholly left of b
    low, high = np.minimum(height[:, None], height), np.maximum(height[:, None], height)
    for one, two in zip(*np.nonzero(beside), strict=True):
        between = (height > low[one, two]) & (height < high[one, two])
        if (between & over[one] & over[two]).any():
            beside[one, two] = False
    earlier = above | beside
    return [np.nonzero(earlier[:, i])[0].tolist() for i in range(len(blocks))]
