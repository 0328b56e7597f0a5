"""Hard times for a stage: a process without rights, without disk, in a folder that may not be written."""

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from idiograph.corpus.corpus import build_corpus
from idiograph.corpus.readers import read_documents
from idiograph.errors import IdiographError

context = get_context("forkserver")
context.set_forkserver_preload(
    [f"idiograph.{name}" for name in ("corpus.readers", "hal.download", "hal.harvest", "pdf.extract")]
)


def outcome(
    send: Connection, prepare: Callable[..., None], value: Any, job: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """In a process of its own: take something away, do the job, and say what it raised."""
    prepare(value)
    try:
        job(*arguments)
        send.send("done")
    except IdiographError as error:
        send.send(f"{type(error).__name__}: {error}")


def without(prepare: Callable[..., None], value: Any, job: Callable[..., Any], *arguments: Any) -> str:
    """What a job raises, as text, or `done`."""
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=outcome, args=(send, prepare, value, job, arguments))
    process.start()
    send.close()
    said = receive.recv()
    process.join()
    return said


def make(source: str, out: Path) -> None:
    """Build a corpus."""
    build_corpus(read_documents(source), out)


def short_files(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def as_nobody(number: int) -> None:
    if os.getuid() == 0:
        os.setuid(number)


@contextmanager
def unwritable() -> Iterator[Path]:
    """A folder, empty and for reading only, that everybody can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "out").mkdir()
    (folder / "out").chmod(0o555)
    yield folder / "out"
    (folder / "out").chmod(0o755)
    shutil.rmtree(folder)
