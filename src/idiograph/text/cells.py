"""Tables that people open in a spreadsheet: CSV in which no cell is a formula, whatever somebody called their document."""

import csv
import re
from collections.abc import Iterable
from typing import Any, TextIO

NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # how a cell begins that a spreadsheet computes


class PeopleCsv:
    """Writes rows to a file that is open. Numbers stay numbers, and texts that would be formulas begin with an apostrophe."""

    def __init__(self, file: TextIO) -> None:
        self.writer = csv.writer(file, lineterminator="\n")

    def row(self, cells: Iterable[Any]) -> None:
        self.writer.writerow([disarm(cell) for cell in cells])


def disarm(cell: Any) -> Any:
    """A cell that no spreadsheet computes.

    >>> disarm("=HYPERLINK(1)"), disarm("+1+1"), disarm("-1.50"), disarm("Ada")
    ("'=HYPERLINK(1)", "'+1+1", '-1.50', 'Ada')
    """
    if not isinstance(cell, str) or NUMBER.fullmatch(cell):
        return cell
    line = cell.replace("\r", " ")  # which some readers take for the end of a row
    return f"'{line}" if cell.lstrip(" ").startswith(FORMULA) else line
