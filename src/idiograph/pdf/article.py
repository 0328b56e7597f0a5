"""Lines in reading order → the article: title, abstract, sections, paragraphs whose words are whole again."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from idiograph.pdf.clutter import (
    is_caption,
    is_code,
    is_contents,
    is_cover,
    is_formula,
    marginal_lines,
    running_heads,
    tables,
)
from idiograph.pdf.glyphs import Page
from idiograph.pdf.headings import ABSTRACT, KEYWORDS, kind_of, line_style, mark_headings, opens_body, plain_head
from idiograph.pdf.layout import Column, Design, Line, find_blocks, find_lines, measure_design, reading_order
from idiograph.pdf.paragraphs import BULLET, JoinedWords, group_lines, is_sentence_like, join_lines
from idiograph.pdf.tei_writer import ComposedPaper, PaperSection

ADDRESS = re.compile(
    r"@|\b(?:univ\w*|dep(?:artmen)?t|institut\w*|laborato\w*|école|school|centre|center|cnrs|inria)\b", re.I
)


def read_paper(pages: Iterable[Page]) -> ComposedPaper | None:
    """The article in a PDF's pages, or None when they hold no text."""
    pages_of_lines = list(
        dropwhile(lambda pair: is_cover(pair[0]), ((find_lines(page), page.height) for page in pages))
    )
    heads = running_heads([lines for lines, _ in pages_of_lines], [height for _, height in pages_of_lines])
    inner = [[x for x in lines if x not in heads] for lines, _ in pages_of_lines]
    if not any(inner):
        return None
    design = measure_design(inner)
    title = find_title(inner, design)
    lines = [line for page in inner for line in read_order(page, design) if line not in title]
    heading = join_lines([x.text for x in title], JoinedWords([]))
    paper = SectionReader(design, lines).paper(heading)
    return paper if paper.paragraphs else SectionReader(design, lines, "body").paper(heading)


def read_order(lines: Sequence[Line], design: Design) -> list[Line]:
    """The lines of a page that may be text, in reading order."""
    columns = (*design.columns[lines[0].page], *design.usual_columns()) if lines else ()
    cut = marginal_lines(lines, columns) | tables(lines, design)
    blocks = reading_order(find_blocks([x for x in lines if x not in cut], design))
    lines = [line for block in blocks if not is_caption(block, design) for line in block.lines]
    return [line for line in lines if not is_code(line) and not is_contents(line)]


def find_title(pages: Sequence[Sequence[Line]], design: Design) -> list[Line]:
    """The largest lines of the first page that has any, if they are larger than the text and no section's heading."""
    first = next(lines for lines in pages if lines)
    worded = [x for x in first if sum(c.isalpha() for c in x.text) > 3]
    size = max((x.size for x in worded), default=0)
    lines = sorted((x for x in worded if x.size > 0.97 * size), key=lambda x: x.base)[:6]
    sections = any(kind_of(x.text) != "body" or opens_body(x.text) for x in lines)
    return [] if sections or size <= 1.1 * design.size else lines


@dataclass(slots=True)
class Draft:
    """A section while it is read: its lines, each text ("p") or "formula"."""

    kind: str
    head: str
    lines: list[tuple[str, Line]] = field(default_factory=list)


class SectionReader:
    """Walks once over the lines and sorts them into sections.

    `state` is the kind of text that a line belongs to now: front (title, names, addresses), abstract, lead (text before
    any heading), body, acknowledgement, annex, or references.
    """

    def __init__(self, design: Design, lines: Sequence[Line], state: str = "front") -> None:
        self.design, self.lines = design, lines
        self.heads = mark_headings(lines, design)
        self.kinds = [kind_of(x.text) if h else "" for x, h in zip(lines, self.heads, strict=True)]
        self.words = JoinedWords(lines)
        self.state, self.abstract, self.drafts = state, Draft("abstract", ""), [Draft("body", "")]
        self.closing: tuple[str, float] | None = None  # how the heading of the references looks

    def paper(self, title: str) -> ComposedPaper:
        for index, line in enumerate(self.lines):
            if self.heads[index]:
                self.enter_section(index, line)
            else:
                self.take(index, line)
        self.classify_lead()
        parts = [self.part(draft) for draft in self.drafts]
        abstract = [text for tag, text in self.part(self.abstract).items if tag == "p"]
        return ComposedPaper(title, tuple(abstract), tuple(part for part in parts if part.items))

    def enter_section(self, index: int, line: Line) -> None:
        """Go over to the section that a heading announces."""
        kind, early = self.kind_announced(index), self.state in ("front", "abstract")
        if self.grows(index, line):
            self.drafts[-1].head = join_lines([self.drafts[-1].head, line.text], self.words)
        elif kind == "references":
            self.state, self.closing = kind, line_style(line)
        elif self.state == "references" and kind == "body" and line_style(line) != self.closing:
            return  # a line of the list in another font
        elif kind == "abstract":
            self.state = "abstract" if early else "references"
        elif kind == "keywords":
            self.state = "front" if early else self.state
        elif not early or (kind == "body" and (self.state == "abstract" or self.may_open(index, line))):
            self.open(kind, line.text)

    def kind_announced(self, index: int) -> str:
        """The kind of a heading here: "Summary" may be an abstract or a section; after the references all is annex."""
        kind = self.kinds[index]
        if kind == "summary":
            following = next((self.lines[i].text for i in range(index + 1, len(self.lines)) if self.heads[i]), "")
            return "abstract" if self.state == "front" and opens_body(following) else "body"
        late = self.closing is not None and "references" not in self.kinds[index:]
        return "annex" if kind == "body" and late else kind

    def open(self, kind: str, head: str) -> None:
        self.state = kind
        self.drafts.append(Draft(kind, head))

    def grows(self, index: int, line: Line) -> bool:
        """Whether a line is the second or third of a heading."""
        above = self.lines[index - 1] if index else None
        if not (above and self.heads[index - 1] and self.drafts and not self.drafts[-1].lines and self.drafts[-1].head):
            return False
        near = above.page == line.page and 0 < line.base - above.base < 1.6 * line.size
        return near and line_style(above) == line_style(line) and plain_head(line.text) == line.text

    def may_open(self, index: int, line: Line) -> bool:
        """Whether a heading of the first page begins the text, and is not a name or a title."""
        return opens_body(line.text) or bool(self.abstract.lines) or self.is_prose(index + 1)

    def is_prose(self, index: int) -> bool:
        """Whether running text begins at a line: three full lines in the text's own font that are not addresses."""
        lines = self.lines[index : index + 3]
        full = [x for x in lines if self.design.is_body(x.size) and x.width > 0.85 * self.design.column(x).width]
        own = [x for x in full if x.font in self.design.fonts and x.width > 0.8 * self.design.measure]
        return len(own) == 3 and sum(bool(ADDRESS.search(x.text)) for x in own) < 2

    def take(self, index: int, line: Line) -> None:
        """Give a line to the section that is open."""
        if self.state == "front" and is_run_in(ABSTRACT, line):
            self.state = "abstract"
        elif self.state == "front" and self.is_prose(index):
            self.open("lead", "")
        elif self.state == "abstract" and KEYWORDS.match(line.text):
            self.state = "front"
        elif self.state == "abstract" and not self.is_abstract(line) and self.is_prose(index):
            self.open("lead", "")
        if self.state == "abstract" and self.is_abstract(line):
            self.abstract.lines.append(("p", line))
        elif self.state not in ("front", "abstract", "references"):
            self.take_text(line)

    def is_abstract(self, line: Line) -> bool:
        """Whether a line is set like the abstract's first."""
        first = self.abstract.lines[0][1] if self.abstract.lines else line
        return abs(first.size - line.size) < 0.04 * first.size

    def take_text(self, line: Line) -> None:
        if is_formula(line, self.design):
            self.drafts[-1].lines.append(("formula", line))
        elif self.design.is_body(line.size):
            self.drafts[-1].lines.append(("p", line))

    def classify_lead(self) -> None:
        """Text before the first heading is the abstract if an introduction follows it, and body otherwise."""
        for index, draft in enumerate(self.drafts):
            if draft.kind == "lead":
                following = self.drafts[index + 1].head if index + 1 < len(self.drafts) else ""
                draft.kind = "abstract" if opens_body(following) and not self.abstract.lines else "body"
        self.abstract = next((draft for draft in self.drafts if draft.kind == "abstract"), self.abstract)
        self.drafts = [draft for draft in self.drafts if draft.kind != "abstract"]

    def part(self, draft: Draft) -> PaperSection:
        items: list[tuple[str, str]] = []
        for tag, lines in group_lines(draft.lines, self.inset() if draft is self.abstract else self.design):
            text = BULLET.sub("", join_lines([line.text for line in lines], self.words))
            if draft is self.abstract and is_run_in(ABSTRACT, lines[0]):
                text = ABSTRACT.sub("", text, count=1)
            if tag == "formula" or is_sentence_like(text):
                items.append((tag, text))
        return PaperSection(draft.kind, draft.head, tuple(items))

    def inset(self) -> Design:
        """The design as the abstract has it, whose lines are often shorter than the columns."""
        lines = [line for _, line in self.abstract.lines]
        column = Column(min((x.left for x in lines), default=0), max((x.right for x in lines), default=0))
        return replace(self.design, columns={x.page: (column,) for x in lines})


def is_run_in(name: re.Pattern[str], line: Line) -> bool:
    """Whether a line begins with a heading that is set off by a sign or by its font: "Abstract. We show"."""
    match = name.match(line.text)
    if not match or match.end() == len(line.text):
        return False
    return match.group().rstrip()[-1] in ".:—–-" or line.words[0].font != line.words[-1].font
