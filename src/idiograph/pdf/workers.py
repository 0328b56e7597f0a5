"""The embedded extractor behind walls: each PDF is parsed in a process of limited time and memory that may die.

The parent sends a path, the worker answers with a status and bytes (never with pickles: what parsed a hostile file is
not trusted). A worker that hangs is killed, one that dies is replaced; both cost their document alone.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue

from idiograph import runner
from idiograph.errors import ServiceError
from idiograph.pdf.extractor import Extraction
from idiograph.pdf.sandbox import HEADER
from idiograph.recipe import ExtractRecipe

CELL = "idiograph.pdf.sandbox"
STARTING = 60.0  # seconds that a process may take until it is ready, on a machine that is busy
MAX_ANSWER = 64_000_000
RENEW = 500  # documents until a worker is replaced, whatever its libraries may have leaked


class Embedded:
    """An `Extractor` that needs nothing but this machine."""

    def __init__(self, recipe: ExtractRecipe) -> None:
        self.name = own_name()
        self.slots = 1 if recipe.runner == "inline" else recipe.workers or runner.cores()
        self.workers = [PdfWorker(recipe) for _ in range(self.slots)]
        self.idle: SimpleQueue[PdfWorker] = SimpleQueue()
        for worker in self.workers:
            self.idle.put(worker)

    def __call__(self, pdf: Path) -> Extraction:
        worker = self.idle.get()
        try:
            return worker.extract(pdf)
        finally:
            self.idle.put(worker)

    def close(self) -> None:
        for worker in self.workers:
            worker.close()


class PdfWorker:
    """One process at a time, started when it is first needed and again when it has died."""

    def __init__(self, recipe: ExtractRecipe) -> None:
        self.recipe = recipe
        self.process: subprocess.Popen[bytes] | None = None
        self.served = 0
        self.closed = False
        self.busy = threading.Lock()

    def extract(self, pdf: Path) -> Extraction:
        with self.busy:
            process = self.ready()
            outcome = ask_worker(process, pdf, self.recipe.timeout)
            if outcome is None:
                return Extraction(500, reason="worker died", detail=describe_answer(self.bury(process)))
            if outcome.status == 408 or self.served >= RENEW:
                self.bury(process)
            return outcome

    def ready(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            self.process, self.served = launch(self.recipe), 0
            self.greet(self.process)
        if self.closed:  # asked after the start: `close` kills what it sees, and this is what it may not have seen
            self.bury(self.process)
            raise ServiceError("the extraction was stopped")
        self.served += 1
        return self.process

    def greet(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a new process is ready, so that its start does not count against its first document."""
        with suppress(TimeoutError):
            if exchange(process, b"", STARTING) or self.closed:
                return
        code = describe_answer(self.bury(process))
        raise ServiceError(f"a worker of the extractor did not start ({code}); see why: python -m {CELL} 9 999 9 999")

    def bury(self, process: subprocess.Popen[bytes]) -> int:
        """See a process off and give its exit code, which is its own if it was dead already."""
        process.kill()
        self.process = None
        for pipe in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):
                pipe.close() if pipe else None
        return process.wait()

    def close(self) -> None:
        self.closed = True
        if process := self.process:
            process.kill()
        with self.busy:
            if self.process:
                self.bury(self.process)


def own_name() -> str:
    """What the ledger calls the embedded extractor."""
    return f"idiograph {version('idiograph')}"


@cache
def resident_worker(settings: str) -> PdfWorker:
    """The worker of this process, for a runner that brings processes of its own."""
    return PdfWorker(ExtractRecipe.model_validate_json(settings))


def extract_one(pdf: Path, settings: str) -> Extraction:
    """What a runner calls; `settings` is a recipe as JSON."""
    return resident_worker(settings).extract(pdf)


def launch(recipe: ExtractRecipe) -> subprocess.Popen[bytes]:
    limits = map(str, (recipe.timeout, recipe.memory, recipe.max_pages, recipe.max_bytes))
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", CELL, *limits], stdin=pipe, stdout=pipe, stderr=null)


def ask_worker(process: subprocess.Popen[bytes], pdf: Path, timeout: float) -> Extraction | None:
    """A worker's answer; status 408 if it takes too long, None if it has died."""
    message = os.fsencode(pdf)
    try:
        told = exchange(process, HEADER.pack(0, len(message)) + message, timeout)
    except TimeoutError:
        return Extraction(408, reason="took too long", detail=f"more than {timeout:g} seconds")
    return outcome_of(*told) if told else None


def exchange(process: subprocess.Popen[bytes], message: bytes, timeout: float) -> tuple[int, bytes] | None:
    """Send a message and wait for status and body; None if the process is gone, or talks nonsense."""
    if not process.stdin or not process.stdout:
        raise ValueError("the worker was launched without pipes")
    source, deadline = process.stdout.fileno(), time.monotonic() + timeout
    try:
        process.stdin.write(message)
        process.stdin.flush()
    except BrokenPipeError:
        return None
    header = receive_answer(source, HEADER.size, deadline)
    status, length = HEADER.unpack(header) if header else (0, MAX_ANSWER + 1)
    body = receive_answer(source, length, deadline) if length <= MAX_ANSWER else None
    return None if body is None else (status, body)


def receive_answer(source: int, count: int, deadline: float) -> bytes | None:
    """Exactly so many bytes from a pipe, None if it is closed before."""
    data = bytearray()
    while len(data) < count:
        if not select.select([source], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        piece = os.read(source, min(1 << 20, count - len(data)))
        if not piece:
            return None
        data += piece
    return bytes(data)


def outcome_of(status: int, body: bytes) -> Extraction:
    if status == 200:
        return Extraction(200, tei=body)
    reason, _, detail = body.decode("utf-8", "replace").partition(": ")
    return Extraction(status, reason=reason, detail=detail[:300])


def describe_answer(code: int) -> str:
    """How a process ended, in words.

    >>> describe_answer(-11), describe_answer(1)
    ('killed by SIGSEGV', 'exit code 1')
    """
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
