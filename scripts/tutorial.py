"""Put into the tutorials what their commands print, on the texts that they are about; or say where a page is out of date.

    python scripts/tutorial.py CORPORA [docs/tutorial.md …] [--check]

A page names its case (`<!-- case: federalist -->`). Its console blocks are run in order in an empty folder that has the texts of
the case. A text block after `<!-- output -->` holds what the block above it printed; `<!-- output until: WORDS -->` leaves
out everything from the first line with these words on, such as passages of other people's texts. CORPORA is a folder with
`federalist.jsonl.zst` and `eltec-spa.jsonl.zst`.
"""

import argparse
import difflib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa

ROOT = Path(__file__).parents[1]
PAGES = tuple(ROOT / "docs" / name for name in ("tutorial.md", "tutorial-novels.md", "tutorial-papers.md"))
BLOCK = re.compile(
    r"^```console\n(?P<commands>.*?)^```\n|^<!-- output(?: until: (?P<until>.*?))? -->\n```text\n(?P<output>.*?)^```\n",
    re.M | re.S,
)
COLUMNS = "100"
PORT = 8765  # of the stand-in for the archive, as the page on papers has it
LONGEST_RUN_SECONDS = 3600


def read_rows(corpus: Path) -> Iterator[dict[str, Any]]:
    with pa.input_stream(str(corpus), compression="zstd") as stream:
        yield from map(json.loads, io.TextIOWrapper(stream, encoding="utf-8"))


@contextmanager
def federalist(corpora: Path, room: Path) -> Iterator[None]:
    """The signed papers by their authors' names, and the disputed ones by their numbers."""
    for folder in ("federalist", "disputed"):
        (room / folder).mkdir()
    for row in read_rows(corpora / "federalist.jsonl.zst"):
        names, number = [author["name"] for author in row["authors"]], row["id"].rpartition("-")[2]
        if len(names) == 1:
            disputed = names == ["Disputed"]
            target = Path("disputed", f"{number}.txt") if disputed else Path("federalist", f"{names[0]}_{number}.txt")
            (room / target).write_text(row["text"], encoding="utf-8")
    yield


@contextmanager
def novels(corpora: Path, room: Path) -> Iterator[None]:
    """Spanish novels; the second one by Juan Valera is the text that is asked about."""
    (room / "novelas").mkdir()
    rows = sorted(read_rows(corpora / "eltec-spa.jsonl.zst"), key=lambda row: row["id"])
    valera = [row for row in rows if row["authors"][0]["name"].startswith("Valera")]
    for row in rows:
        name = f"{row['authors'][0]['name']}_{row['title']}.txt"
        asked = row is valera[1]
        (room / ("unknown.txt" if asked else f"novelas/{name}")).write_text(row["text"], encoding="utf-8")
    yield


@contextmanager
def archive(_corpora: Path, _room: Path) -> Iterator[None]:
    """The stand-in for the archive, on this machine."""
    command = [sys.executable, "-m", "tests.standin", "hal", "--records", "200", "--port", str(PORT)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        yield
    finally:
        server.terminate()
        server.wait()


CASES: dict[str, Callable[[Path, Path], AbstractContextManager[None]]] = {
    "federalist": federalist,
    "novels": novels,
    "archive": archive,
    "none": lambda *_: nullcontext(),
}


def run_block(commands: str, room: Path) -> str:
    """What the commands of a block print; those of idiograph only are run."""
    lines = [line[2:] for line in commands.splitlines() if line.startswith("$ ")]
    printed = ""
    place = {**os.environ, "COLUMNS": COLUMNS, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for line in lines:
        if not line.startswith("idiograph "):
            continue
        print(f"$ {line}", flush=True)
        words = line.replace("idiograph ", f"{sys.executable} -m idiograph ", 1)
        ran = subprocess.run(
            words,
            shell=True,
            cwd=room,
            env=place,
            capture_output=True,
            text=True,
            timeout=LONGEST_RUN_SECONDS,
            check=False,
        )
        if ran.returncode:
            sys.exit(f"{line}\n{ran.stdout}{ran.stderr}")
        printed += ran.stdout
    return printed


def wrap_line(line: str) -> list[str]:
    """What a terminal of this width makes of a line; those of tables fit it already."""
    return textwrap.wrap(line, int(COLUMNS)) if len(line) > int(COLUMNS) else [line]


def cut_output(printed: str, until: str | None) -> str:
    """The lines before the first that has these words, without spaces at their ends."""
    lines = [part for line in printed.strip("\n").splitlines() for part in wrap_line(line.rstrip())]
    last = next((at for at, line in enumerate(lines) if until and until in line), len(lines))
    return "\n".join([*lines[:last], *(["…"] if last < len(lines) else [])]) + "\n"


def filled_page(page: Path, corpora: Path) -> str:
    """The page with what its commands print today."""
    text = page.read_text(encoding="utf-8")
    case = re.search(r"<!-- case: (\w+) -->", text)
    with tempfile.TemporaryDirectory(prefix="idiograph-tutorial-") as folder:
        room = Path(folder)
        with CASES[case[1] if case else "none"](corpora, room):
            printed = [""]

            def fill(block: re.Match[str]) -> str:
                if block["commands"] is not None:
                    printed[0] = run_block(block["commands"], room)
                    return block[0]
                mark = block[0].split("\n", 1)[0]
                return f"{mark}\n```text\n{cut_output(printed[0], block['until'])}```\n"

            return BLOCK.sub(fill, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where a page is out of date")
    given = parser.parse_args()
    old = False
    for page in given.pages:
        before, now = page.read_text(encoding="utf-8"), filled_page(page.resolve(), given.corpora.resolve())
        if given.check:
            change = difflib.unified_diff(before.splitlines(), now.splitlines(), page.name, "now", lineterm="")
            for line in change:
                print(line)
                old = True
        else:
            page.write_text(now, encoding="utf-8")
    sys.exit(1 if old else 0)


if __name__ == "__main__":
    main()
