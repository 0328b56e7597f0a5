"""The worker's side of the embedded extractor: reads paths from its standard input, answers on its standard output.

Run as `python -m idiograph.pdf.sandbox SECONDS MEBIBYTES PAGES BYTES` by `workers`. What may go wrong here is a status
and a reason; what may not (a crash, a hang, memory) ends this process and nothing else.
"""

import os
import resource
import signal
import struct
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from idiograph.errors import InputError
from idiograph.pdf.article import read_paper
from idiograph.pdf.glyphs import read_pages
from idiograph.pdf.tei_writer import to_tei

HEADER = struct.Struct(">HI")  # a status and the length of what follows
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float
    mebibytes: int
    pages: int
    bytes: int


def answer_request(path: Path, limits: Limits) -> tuple[int, bytes]:
    """Status 200 and TEI, or another status and `reason: detail`."""
    try:
        return 200, parse_pdf(path, limits)
    except InputError as error:
        return 400, str(error).encode("utf-8", "replace")
    except LookupError as error:
        return 204, str(error.args[0]).encode()
    except MemoryError:
        return 507, b"out of memory"
    except OSError as error:
        return 400, f"cannot be opened: {error.strerror}".encode()
    except Exception as error:
        return 500, f"extractor failed: {type(error).__name__}: {error}".encode("utf-8", "replace")


def parse_pdf(path: Path, limits: Limits) -> bytes:
    size = path.stat().st_size
    if size > limits.bytes:
        raise InputError(f"too large: {size} bytes, more than {limits.bytes}")
    paper = read_paper(read_pages(path.read_bytes(), limits.pages))
    if paper is None or not (paper.parts or paper.abstract):
        raise LookupError("no text")
    return to_tei(paper, version("idiograph"))


def confine_process(limits: Limits) -> None:
    """Give up what a parser does not need: more memory, files to write, dumps to leave."""
    memory = address_space() + limits.mebibytes * MIB
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def address_space() -> int:
    """What the interpreter and its libraries have mapped already, which on a machine of many cores is a lot."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[0]) * resource.getpagesize() if pages.is_file() else 1024 * MIB


def serve_parent(source: BinaryIO, target: BinaryIO, limits: Limits) -> None:
    """Say hello, then answer until the parent closes the pipe. The timer ends a parse whose parent is gone."""
    target.write(HEADER.pack(100, 0))
    target.flush()
    while header := source.read(HEADER.size):
        path = Path(os.fsdecode(source.read(HEADER.unpack(header)[1])))
        signal.setitimer(signal.ITIMER_REAL, 2 * limits.seconds)
        status, text = answer_request(path, limits)
        signal.setitimer(signal.ITIMER_REAL, 0)
        target.write(HEADER.pack(status, len(text)) + text)
        target.flush()


def run_sandbox() -> None:
    seconds, *rest = sys.argv[1:]
    limits = Limits(float(seconds), *map(int, rest))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes the pipe
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    confine_process(limits)
    serve_parent(sys.stdin.buffer, target, limits)


if __name__ == "__main__":
    run_sandbox()
