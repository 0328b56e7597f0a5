"""What every command shares: options, progress bars, printing for people or machines, reading a text."""

import json
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from idiograph.cli.checks import check_texts
from idiograph.cli.progress import Update, progress_bar
from idiograph.errors import InputError
from idiograph.recipe import Recipe, make_recipe, read_recipe
from idiograph.runner import MAX_WORKERS

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # what moves a cursor or colours a terminal; not tab and newline


class LiteralConsole(Console):
    """A console that shows every string as it is: names, paths and passages may hold `[b]`, `:smile:` or control characters."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


out, err = LiteralConsole(), LiteralConsole(stderr=True)

Out = Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Preset = Annotated[str, typer.Option(help="sound (our defaults) or paper (the published protocol).")]
RecipeFile = Annotated[Path | None, typer.Option("--recipe", help="A TOML file with settings; see `idiograph recipe`.")]
Model = Annotated[
    str, typer.Option(help="A model folder or Hugging Face name; `default` is ours, `minilm` a general one.")
]
Patch = Annotated[str | None, typer.Option(help="whole, word, ngram:N, auto or cluster:N; default: the model's own.")]
Keep = Annotated[str | None, typer.Option(help="all tokens, or words without punctuation.")]
Runner = Annotated[str, typer.Option(help="Where the work is done: inline, processes or ray.")]
Workers = Annotated[int | None, typer.Option(help="Processes to use; default: all cores.", min=0, max=MAX_WORKERS)]
Address = Annotated[str | None, typer.Option(help="A Ray cluster (host:port); without it, one is started here.")]
Shard = Annotated[str, typer.Option(help="Do only part i/n, so that several machines can share the work.")]
Lang = Annotated[str, typer.Option(help="The language that the texts must be in; `any` to let all pass.")]


def settings(preset: str, file: Path | None, changes: dict[str, dict[str, Any]]) -> Recipe:
    """A preset or a file, with the options given on top."""
    given = {stage: {k: v for k, v in keys.items() if v is not None} for stage, keys in changes.items()}
    if file is None:
        return make_recipe(preset, given)
    base = read_recipe(file)
    stages = [name for name in Recipe.model_fields if name != "preset"]
    return make_recipe(base.preset, {s: {**getattr(base, s).model_dump(), **given.get(s, {})} for s in stages})


def bar(what: str, total: int | None = None) -> AbstractContextManager[Update]:
    """Progress on standard error; call it with how much is done (and, if it changes, with the total and the text)."""
    return progress_bar(what, total, err)


def say(value: Any, as_json: bool, human: Callable[[], None]) -> None:
    """Print for a machine or for a person."""
    if as_json:
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
    else:
        human()


def wrote(folder: Path, what: str, dropped: Any = None) -> None:
    out.print(f"{folder}: {what}", highlight=False, markup=False, soft_wrap=True)
    for reason, count in (dropped or {}).items():
        out.print(f"  left out {count:>7}  {reason}", highlight=False, markup=False, soft_wrap=True)


def write_page(file: Path, page: str) -> None:
    """Write a page and say where."""
    file.write_text(page, encoding="utf-8")
    err.print(f"wrote {file}", highlight=False, soft_wrap=True)


def read_text(path: Path, lang: str = "any") -> str:
    """A text from a file or, for `-`, from standard input; it must be in the language asked for."""
    check_texts(path)
    from idiograph.corpus.formats import MAX_BYTES, decode, read_file
    from idiograph.text.language import identify

    if str(path) == "-":
        text = decode(sys.stdin.buffer.read(MAX_BYTES + 1))
    elif path.exists():
        text = read_file(path)
    else:
        raise InputError(f"there is no file '{path}'")
    found, sure = identify(text)
    if lang not in ("any", found) and sure > 0.9:
        raise InputError(f"'{path}' looks like '{found}', not '{lang}'; pass --lang any to compare it all the same")
    return text


def open_style(model: str, patch: str | None, keep: str | None, score: str | None = "meansim") -> Any:
    """A model by its name; without a `score`, with the one it was trained with."""
    from idiograph.loading import load

    return load(None if model == "default" else model, patch=patch, keep=keep, score=score)


def printable(text: str) -> str:
    """A text without what a terminal would obey."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def literal(text: str, style: str = "") -> Text:
    """A string as it is, in one style."""
    return Text(printable(text), style=style)


def with_note(text: str, note: str, style: str = "dim") -> Text:
    """A string, and behind it a quieter one."""
    return literal(text).append(printable(note), style=style)


def shorten_text(text: str, size: int) -> str:
    """The beginning of a text, in one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= size else flat[: size - 1] + "…"
