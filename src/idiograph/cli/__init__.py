"""One command per verb: parse, call, print. The only place that prints, reads the environment or catches our errors."""

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from idiograph import __version__
from idiograph.cli import (
    answers,
    attribution,
    crossvalidation,
    folders,
    harvest,
    index,
    models,
    pan,
    study,
    texts,
    training,
    verification,
)
from idiograph.cli.shared import Preset, RecipeFile, printable, settings
from idiograph.errors import IdiographError
from idiograph.extras import EXTRA_OF, what_to_install
from idiograph.recipe import to_toml

INTERRUPTED = 130  # as shells count it
UsageError: Any = typer.BadParameter.__base__  # typer carries its own click, and names only the subclass


def recipe_command(preset: Preset = "sound", recipe_file: RecipeFile = None) -> None:
    """Print every setting as TOML. Change it and pass it to --recipe."""
    sys.stdout.write(to_toml(settings(preset, recipe_file, {})))


def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        sys.stdout.write(f"idiograph {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


PANELS: dict[str, dict[str, Callable[..., Any]]] = {
    "Ask": {
        "demo": answers.demo_command,
        "attribute": attribution.attribute_command,
        "verify": verification.verify_command,
        "crossvalidate": crossvalidation.crossvalidate_command,
    },
    "Look": {
        "explain": answers.explain_command,
        "search": index.search,
    },
    "Measure": {
        "evaluate": models.evaluate_command,
        "compare": models.compare_command,
        "calibrate": verification.calibrate_command,
        "audit": texts.audit_command,
        "check": folders.check_command,
        "topic": texts.topic_command,
        "pan": pan.pan_command,
        "pan19": pan.pan19_command,
        "study": study.study_command,
    },
    "Collect": {
        "harvest": harvest.harvest_command,
        "download": harvest.download_command,
        "extract": harvest.extract_command,
        "corpus": texts.corpus_command,
        "index": index.index,
        "mine": texts.mine_command,
    },
    "Train": {
        "train": training.train_command,
        "tune": training.tune_command,
        "average": training.average_command,
        "recipe": recipe_command,
    },
}
COMMANDS = {name: function for commands in PANELS.values() for name, function in commands.items()}


class PanelGroup(TyperGroup):
    """A command line whose help lists the commands by what they are for."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        width = max(map(len, self.commands))
        for panel in PANELS:
            found = {name: one for name, one in self.commands.items() if getattr(one, "rich_help_panel", "") == panel}
            summaries = [(f"{name:<{width}}", one.get_short_help_str(formatter.width)) for name, one in found.items()]
            with formatter.section(panel):
                formatter.write_dl(summaries)


def build_app() -> typer.Typer:
    """The command line, with its commands in the order in which a newcomer meets them."""
    app = typer.Typer(
        name="idiograph",
        help="Who wrote this, how sure are you, and what in the text says so?",
        cls=PanelGroup,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(root)
    for panel, commands in PANELS.items():
        for name, function in commands.items():
            app.command(name, rich_help_panel=panel)(function)
    return app


def main() -> NoReturn:
    """Run the command line: 0 done, 1 the input was wrong, 2 usage; one line on standard error, never a traceback."""
    status: object = 0
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name need not be text
    for name in ("LANCE_LOG", "LANCEDB_LOG"):
        os.environ.setdefault(name, "error")  # LanceDB warns of every table that is new
    try:
        status = build_app()(standalone_mode=False)
        if status == INTERRUPTED:  # typer answers Ctrl-C itself
            raise KeyboardInterrupt
    except UsageError as error:
        fail(f"{error.format_message()} (see idiograph {command(error)}--help)", 2)
    except (KeyboardInterrupt, typer.Abort):
        fail("stopped; nothing half-written was left behind", INTERRUPTED)
    except IdiographError as error:
        fail(str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA_OF:
            raise
        fail(what_to_install(error.name or ""), 1)
    except RecursionError:
        fail("something that was given is nested too deeply to be read", 1)
    except OSError as error:
        fail(f"{error.filename or 'the system'}: {error.strerror or error}", 1)
    sys.exit(status if isinstance(status, int) else 0)


def command(error: Any) -> str:
    return f"{error.ctx.info_name} " if error.ctx and error.ctx.parent else ""


def fail(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"idiograph: {printable(' '.join(message.split()))}\n")
    sys.exit(code)
