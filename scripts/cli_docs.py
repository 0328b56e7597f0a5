"""Write docs/cli.md from the help texts of the commands; `--check` says whether it is up to date."""

import sys
from pathlib import Path

import typer

from idiograph.cli import COMMANDS, build_app

HEAD = """# The command line

Written by `make docs` from `idiograph --help`; do not edit. Inputs are positional, the output is always `-o`, `-` is
standard input, `--json` prints for machines. Exit status: 0 done, 1 the input was wrong, 2 usage.
"""
TARGET = Path(__file__).parents[1] / "docs" / "cli.md"


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(build_app())
    parts = [HEAD, section(root, "idiograph")]
    for name in COMMANDS:
        command = root.commands[name]  # type: ignore[attr-defined]
        if not command.hidden:
            parts.append(f"## {name}\n\n" + section(command, f"idiograph {name}"))
    return "\n".join(parts)


def section(command, name: str) -> str:
    with command.make_context(name, [], resilient_parsing=True, terminal_width=100, max_content_width=100) as context:
        return f"```text\n{command.get_help(context).rstrip()}\n```\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_text(encoding="utf-8") == page() else f"{TARGET} is out of date: run make docs")
    TARGET.write_text(page(), encoding="utf-8")
