"""What a page carries besides the author's prose: covers, running heads, margins, tables, captions, formulas, code.

Each rule looks at lines and says which of them to leave out; none looks at more than it needs.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from idiograph.pdf.layout import Column, Design, Line, TextBlock, overlap_points

COVER = tuple(
    re.compile(mark, re.I)
    for mark in (
        r"\bHAL Id\s*:",
        r"multi-?disciplinary open access",
        r"archive ouverte pluridisciplinaire",
        r"\bTo cite this version\b",
        r"\bSubmitted on \d",
        r"\b(?:hal\.science|archives-ouvertes\.fr)/",
    )
)
CAPTION = re.compile(
    r"(?:supplementary |extended data )?"
    r"(?:fig(?:ure|\.|s\.)?|tab(?:le|leau|elle|la|ela|\.)|scheme|schéma|algorithm|listing|plate|planche|abb(?:ildung|\.)"
    r"|figura|graphique|encadré|box|chart|map|carte|photo)\s*(?:[A-Z]?\.?\d+(?:[.\-]\d+)*|[IVX]+)\s*(?P<rest>.*)",
    re.I,
)
MONO = re.compile(r"mono|courier|typewriter|consol|menlo|cmtt|txtt|lmtt|pcr[rb]|inconsolata|code", re.I)
BOLD = re.compile(r"bold|black|heavy|medi(?!um-?ital)|semib|demi|cmbx|cmssbx|[-.,]b(?![a-z])|bd(?![a-z])", re.I)
NUMBER = re.compile(r"\d+|[ivxlc]+", re.I)
LEADERS = re.compile(r"(?:[.…]\s*){5,}\w{0,6}$")
LABEL = re.compile(r"[(\[ð]\s*[A-Z]?\.?\d+(?:\.\d+)*[a-z]?\s*[)\]Þ]")


def is_cover(lines: Sequence[Line]) -> bool:
    """Whether a page was put before the paper by the archive: one mark may be a citation, two are not."""
    text = " ".join(line.text for line in lines)
    return sum(bool(mark.search(text)) for mark in COVER) > 1


def running_heads(pages: Sequence[Sequence[Line]], heights: Sequence[float]) -> set[Line]:
    """Lines at the top or bottom of pages that come again on other pages, and page numbers."""
    wordings: dict[str, list[Line]] = defaultdict(list)
    offsets: dict[int, list[Line]] = defaultdict(list)
    alone: set[Line] = set()
    for index, (lines, height) in enumerate(zip(pages, heights, strict=True)):
        for line in outer_lines(lines, height, 3):
            if sum(c.isalpha() for c in line.text) > 3:
                wordings[re.sub(r"\d+", "#", line.text.casefold())].append(line)
        for line in outer_lines(lines, height, 1):
            alone |= {line} if NUMBER.fullmatch(line.text.strip("-–—[]() ")) else set()
            for number in re.findall(r"^\d+(?=\s|$)|(?<=\s)\d+$", line.text):
                offsets[int(number) - index].append(line)
    again = {line for group in wordings.values() for line in recurring_lines(group)}
    counting = [group for group in offsets.values() if len({x.page for x in group}) > max(1, len(pages) // 3)]
    return again | alone | {line for group in counting for line in group if len(line.words) < 16}


def outer_lines(lines: Sequence[Line], height: float, rows: int) -> list[Line]:
    """The outermost rows at each end of a page, where they are in its outer parts."""
    bases = sorted({round(line.base) for line in lines})
    top, bottom = bases[:rows], bases[-rows:]
    high = [x for x in lines if round(x.base) in top and x.base < 0.16 * height]
    return high + [x for x in lines if round(x.base) in bottom and x.base > 0.86 * height]


def recurring_lines(group: Sequence[Line]) -> set[Line]:
    """Those of equally worded lines that stand at the same height as another one on another page."""
    lines = sorted(group, key=lambda line: line.base)
    pairs = [(one, two) for one, two in pairwise(lines) if two.base - one.base < 3 and one.page != two.page]
    return {line for pair in pairs for line in pair}


def marginal_lines(lines: Sequence[Line], columns: Sequence[Column]) -> set[Line]:
    """Lines beside the columns: line numbers, notes and boxes in the margin."""
    if not columns:
        return set()
    return {x for x in lines if max(overlap_points(column, x) for column in columns) < 0.3 * max(x.width, 1)}


def tables(lines: Sequence[Line], design: Design) -> set[Line]:
    """Lines of tables: rows in which a column of the page holds several cells, and what stands between such rows."""
    out: set[Line] = set()
    for column in design.columns.get(lines[0].page, ()) if lines else ():
        inside = sorted((x for x in lines if overlap_points(column, x) > 0.6 * x.width), key=lambda x: (x.base, x.left))
        for rows in table_runs(inside, column, design):
            out |= fill_table(rows, inside, column, design)
    return out


def table_runs(lines: Sequence[Line], column: Column, design: Design) -> Iterator[list[list[Line]]]:
    """Tabular rows near each other with no full line of text between them, two at least."""
    run: list[list[Line]] = []
    for row in rows_of(lines, design.size):
        if is_tabular(row, column):
            if run and row[0].base - run[-1][0].base > 6 * design.pitch:
                yield from [run] if len(run) > 1 else []
                run = []
            run.append(row)
        elif any(x.width > 0.8 * column.width for x in row):
            yield from [run] if len(run) > 1 else []
            run = []
    yield from [run] if len(run) > 1 else []


def rows_of(lines: Sequence[Line], size: float) -> list[list[Line]]:
    rows: list[list[Line]] = []
    for line in lines:
        if rows and abs(rows[-1][0].base - line.base) < 0.3 * size:
            rows[-1].append(line)
        else:
            rows.append([line])
    return rows


def is_tabular(row: Sequence[Line], column: Column) -> bool:
    """Whether a row has cells: not a formula and its number, an item and its sign, or a line of text with wide gaps."""
    cells = [x for x in row if not LABEL.fullmatch(x.text) and len(x.text) > 1]
    inked = sum(x.width for x in cells)
    return len(cells) > 1 and max(x.width for x in cells) < 0.75 * column.width and inked < 0.9 * column.width


def fill_table(rows: Sequence[Sequence[Line]], lines: Sequence[Line], column: Column, design: Design) -> set[Line]:
    """All lines from the first row of a table to the last, and those that go on with a cell below it."""
    top, bottom = rows[0][0].base, rows[-1][0].base
    out = {x for x in lines if top - 0.3 * design.size <= x.base <= bottom + 0.3 * design.size}
    for line in lines:
        hangs = any(abs(line.left - x.left) < 2 and 0 < line.base - x.base < 1.4 * design.pitch for x in out)
        if line.base > bottom and hangs and line.left > column.left + 2 * design.size:
            out.add(line)
    return out


def is_caption(block: TextBlock, design: Design) -> bool:
    """Whether a block is the legend of a figure or table, not a sentence that begins with one ("Figure 2 shows")."""
    first = block.lines[0]
    match = CAPTION.match(first.text)
    if not match:
        return False
    rest = match["rest"]
    other = not design.is_body(first.size) or first.words[0].font not in design.fonts
    return other or not rest or rest[0] in ".:|-–—" or rest[0].isupper()


def is_formula(line: Line, design: Design) -> bool:
    """Whether a line is mathematics set apart: hardly a word in the text's own font, and not at the left edge."""
    letters = sum(len(w.text) for w in line.words if w.font in design.fonts and sum(c.islower() for c in w.text) > 2)
    if letters > 0.35 * sum(len(w.text) for w in line.words) or not design.is_body(max(w.size for w in line.words)):
        return False
    column = design.column(line)
    apart = line.left > column.left + 0.5 * design.size or LABEL.fullmatch(line.words[-1].text)
    return bool(apart) and is_symbolic(line)


def is_symbolic(line: Line) -> bool:
    """Whether signs and short names prevail, as they do not in a line of names or in another font's prose."""
    words = [word.strip(".,;:()") for word in line.text.split()]
    return sum(3 < len(w) < 25 and w.isalpha() and w[1:].islower() for w in words) <= 0.25 * len(words)


def is_contents(line: Line) -> bool:
    """Whether dots lead from a title to its page."""
    return bool(LEADERS.search(line.text))


def is_code(line: Line) -> bool:
    total = sum(len(w.text) for w in line.words)
    return sum(len(w.text) for w in line.words if MONO.search(w.font)) > 0.7 * total
