"""What comes from outside is shown as it is."""

import pytest
from rich.table import Table

from idiograph.cli.shared import LiteralConsole, literal, printable, with_note

HOSTILE = "notes [sic], [/x], [bold]b[/bold] and :smile:"


def shown(*things, **options):
    console = LiteralConsole()
    console.width = 200
    with console.capture() as capture:
        for thing in things:
            console.print(thing, **options)
    return capture.get()


def table(cell):
    made = Table(cell, title=cell, caption=cell)
    made.add_column(cell)
    made.add_row(cell, cell)
    return made


@pytest.mark.parametrize("thing", [HOSTILE, literal(HOSTILE), with_note("a ", HOSTILE), table(HOSTILE)])
def test_brackets_and_colons_are_shown_and_not_obeyed(thing):
    assert HOSTILE in shown(thing)


def test_control_characters_do_not_reach_the_terminal():
    assert "\x1b" not in shown("a\x1b[2Jb", literal("a\x1b]0;title\x07b"), table("c\x9bd"))
    assert printable("a\tb\nc\x1bd") == "a\tb\nc\ufffdd"
