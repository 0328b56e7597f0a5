"""Self-contained HTML pages from the templates in `templates/`: no network, no scripts from elsewhere, all text escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class ShadedPiece:
    """A stretch of a text as a page shows it: its patch number (−1: none), its partner's, and a shade from 0 to 1."""

    text: str
    patch: int = -1
    partner: int = -1
    shade: float = 0.0
    note: str = ""


@cache
def environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # loads slowly, and few answers become a page

    return Environment(
        loader=PackageLoader("idiograph", "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )


def render(template: str, **values: Any) -> str:
    """A page as a string."""
    return environment().get_template(template).render(**values)


def notebook_table(lead: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str] = ()) -> str:
    """A sentence and a small table, for a notebook to show; figures to the right."""
    return render("notebook.html", lead=lead, columns=columns, rows=rows, notes=notes)


def notebook_rows(sentence: str, rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> str:
    """A result as a notebook shows it: its sentence, then a table of rows that have the same columns."""
    columns = list(rows[0]) if rows else []
    return notebook_table(as_sentence(sentence), columns, [list(row.values()) for row in rows], notes)


def as_sentence(said: str) -> str:
    """With a capital and a full stop."""
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def cut_at_marks(text: str, marks: Sequence[tuple[int, int, ShadedPiece]]) -> list[ShadedPiece]:
    """A text cut at marks (start, end, what to show there), in order; what lies between them is plain."""
    pieces, at = [], 0
    for start, end, piece in sorted(marks, key=lambda mark: mark[:2]):
        if start > at:
            pieces.append(ShadedPiece(text[at:start]))
        if end > max(at, start):
            pieces.append(ShadedPiece(text[max(at, start) : end], piece.patch, piece.partner, piece.shade, piece.note))
            at = end
    return [*pieces, ShadedPiece(text[at:])] if at < len(text) else pieces
