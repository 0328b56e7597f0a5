"""A table of the study: values with intervals, and beside them the published ones. As LaTeX, CSV and JSON."""

import io
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from idiograph.text.cells import PeopleCsv

NAN = float("nan")


def show_number(value: float, digits: int) -> str:
    """A number with a minus that is not taken for a hyphen or a dash.

    >>> show_number(-0.0331, 3)
    '−0.033'
    """
    return f"{value:.{digits}f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value with its 95 % interval, and what the paper reports in its place, where it does."""

    value: float = NAN
    low: float = NAN
    high: float = NAN
    published: float = NAN
    digits: int = 3

    @property
    def known(self) -> bool:
        return not math.isnan(self.value)

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        return self.value, self.low, self.high, self.published

    @property
    def text(self) -> str:
        return "–" if math.isnan(self.value) else show_number(self.value, self.digits)

    @property
    def range(self) -> str:
        if math.isnan(self.low) or math.isnan(self.high):
            return ""
        return f"{show_number(self.low, self.digits)} to {show_number(self.high, self.digits)}"

    @property
    def theirs(self) -> str:
        return "" if math.isnan(self.published) else show_number(self.published, self.digits)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A line of a table. `best` marks the one to look at."""

    label: str
    cells: tuple[Cell, ...]
    best: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `note` says what is in it and how it was made; `name` is that of its files."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    note: str = ""
    label: str = "model"

    def __getitem__(self, label: str) -> TableRow:
        return next(row for row in self.rows if row.label == label)

    def without_blanks(self) -> "Table":
        """The table without rows of which nobody knows anything."""
        known = [row for row in self.rows if any(cell.known or cell.theirs for cell in row.cells)]
        return replace(self, rows=tuple(known))


def slug_of(name: str) -> str:
    """A name as part of a file name.

    >>> slug_of("MiniLM ngram:2")
    'minilm-ngram-2'
    """
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")


def latex(table: Table) -> str:
    """A booktabs tabular with its caption, ready to be put into a paper."""
    head = " & ".join(escape_latex(each) for each in (table.label, *table.columns))
    body = "\n".join(f"{escape_latex(row.label)} & {' & '.join(map(typeset, row.cells))} \\\\" for row in table.rows)
    layout = "l" + "r" * len(table.columns)
    return (
        "\\begin{table}[ht]\n\\centering\n\\small\n"
        f"\\begin{{tabular}}{{{layout}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
        f"\\caption{{{escape_latex(table.title)}. {escape_latex(table.note)}}}\n\\label{{tab:{table.name}}}\n\\end{{table}}\n"
    )


def typeset(cell: Cell) -> str:
    interval = f" {{\\tiny [{cell.range.replace(' to ', ', ')}]}}" if cell.range else ""
    theirs = f" {{\\tiny ({cell.theirs})}}" if cell.theirs else ""
    return f"{'--' if not cell.known else cell.text}{interval}{theirs}".replace("−", "$-$")


def escape_latex(text: str) -> str:
    """Text as LaTeX takes it.

    >>> escape_latex("50 % of R@20_a")
    '50 \\\\% of R@20\\\\_a'
    """
    for character in "\\&%$#_{}":
        text = text.replace(character, f"\\{character}" if character != "\\" else "\\textbackslash ")
    return text.replace("τ", "$\\tau$").replace("√", "$\\surd$").replace("–", "--").replace("≈", "$\\approx$")


def as_csv(table: Table) -> str:
    """One line a cell: row, column, value, interval, published."""
    buffer = io.StringIO()
    rows = PeopleCsv(buffer)
    rows.row([table.label, "column", "value", "low", "high", "published"])
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            rows.row([row.label, column, *map(bare_number, (cell.value, cell.low, cell.high, cell.published))])
    return buffer.getvalue()


def bare_number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def to_json(tables: Iterable[Table]) -> list[dict[str, Any]]:
    """Every table; a value that is not there is null."""
    return [clean_number(asdict(table)) for table in tables]


def clean_number(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: clean_number(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_number(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value
