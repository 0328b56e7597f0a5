"""Run a pure function over many items: here, in worker processes, or on a Ray cluster. Knows nothing of what it runs.

Results come in the order of the items and are the same for every runner and every number of workers. Items are taken
lazily and only a few are in flight, so that memory does not grow with their number. An exception that the function
raises is raised here, at its item's place. A worker that dies (killed, crashed) costs its item alone: the item is tried
again, and comes out as a `Failure` if that kills its worker too.
"""

import atexit
import logging
import os
import pickle
import re
import signal
import socket
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from idiograph.errors import InputError, ServiceError, SpecError
from idiograph.seeded import hash_text
from idiograph.spec import unknown_choice

Item = TypeVar("Item")
Result = TypeVar("Result")

Progress = Callable[[int, int | None, str], None]  # what is done, of how many (None: nobody knows), and the work's name
Runner = Callable[[Callable[[Any], Any], Iterable[Any], int | None, str | None], Iterator[Any]]

CONTEXT = get_context("spawn")  # nothing is inherited: no locks held by threads, no open files, no GPU state
WINDOW = 4  # items in flight per worker: enough that a slow one at the head does not starve the others
TRIES = 2
RAY_RETRIES = 3  # more than TRIES allows: on a cluster a worker also goes with its node, which no item is to blame for
DIED = "its worker died"


@dataclass(frozen=True, slots=True)
class Failure:
    """Stands in the results for an item whose worker died each time; `detail` says how, and differs by runner."""

    item: Any
    reason: str = DIED
    detail: str = field(default="", compare=False)


def run_items(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    runner: str = "inline",
    workers: int | None = None,
    address: str | None = None,
) -> Iterator[Result | Failure]:
    """`function` of each item, in order. `workers` is the number of cores unless given.

    For `processes` and `ray` the function must be importable by name (or a `functools.partial` of one that is), and the
    items and results must pickle. `address` is a Ray cluster; without it, `ray` uses the connection that there is
    or starts a cluster on this machine.

    >>> list(run_items(abs, [3, -4]))
    [3, 4]
    """
    if runner not in RUNNERS:
        raise SpecError(unknown_choice("runner", runner, RUNNERS))
    if workers is not None and workers < 1:
        raise SpecError(f"the number of workers must be 1 or more, but got {workers}")
    return RUNNERS[runner](function, items, workers, address)


def shard(items: Iterable[Item], part: str, key: Callable[[Item], str]) -> Iterator[Item]:
    """The items of part `i/n`, from 1/n to n/n: every item is in exactly one, chosen by a hash of its key.

    >>> list(shard(["ada", "ben", "cy"], "1/2", key=str)), list(shard(["ada", "ben", "cy"], "2/2", key=str))
    (['ben', 'cy'], ['ada'])
    """
    match = re.fullmatch(r"([0-9]+)/([0-9]+)", part)
    wanted, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= wanted <= of:
        raise SpecError(f"unknown shard '{part}'; write i/n with i from 1 to n, such as '1/4'")
    return (item for item in items if bucket(key(item), of) == wanted - 1)


def bucket(key: str, of: int) -> int:
    """Which of `of` equal buckets a key falls into; stable across machines, runs and versions."""
    return hash_text(key) % of


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_results(
    submit: Callable[[Item], Future[Result]], items: Iterable[Item], window: int
) -> Iterator[tuple[Item, Future[Result]]]:
    """Submit items as results leave, at most `window` ahead; futures come out in the order of the items."""
    pending: deque[tuple[Item, Future[Result]]] = deque()
    for item in items:
        pending.append((item, submit(item)))
        while pending and (len(pending) >= window or pending[0][1].done()):
            yield pending.popleft()
    while pending:
        yield pending.popleft()


def run_inline(
    function: Callable[[Item], Result], items: Iterable[Item], _workers: int | None, _address: str | None
) -> Iterator[Result]:
    """In this process, one after another."""
    return map(function, items)


def run_in_processes(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | None, _address: str | None
) -> Iterator[Result | Failure]:
    """In freshly started Python processes on this machine, which end with the iteration or with this process."""
    workers = workers or cores()
    with start_children(function, workers) as submit:
        for _, future in ordered_results(submit, items, WINDOW * workers):
            yield future.result()


@contextmanager
def start_children(
    function: Callable[[Item], Result], workers: int
) -> Iterator[Callable[[Item], Future[Result | Failure]]]:
    """A function that hands an item to the next idle worker. A thread per worker waits for the answers."""
    members = [RunnerChild(function) for _ in range(workers)]
    idle: SimpleQueue[RunnerChild[Item, Result]] = SimpleQueue()
    for member in members:
        idle.put(member)

    def call(item: Item) -> Result | Failure:
        member = idle.get()
        try:
            return member.call(item)
        finally:
            idle.put(member)

    def dismiss() -> None:
        threads.shutdown(wait=False, cancel_futures=True)
        for member in members:
            member.kill()
        threads.shutdown()
        for member in members:
            member.bury()

    threads = ThreadPoolExecutor(workers)
    atexit.register(dismiss)  # for results that nobody read to the end; runs before multiprocessing waits for children
    try:
        yield lambda item: threads.submit(call, item)
    finally:
        dismiss()
        atexit.unregister(dismiss)


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A running worker process and our end of the pipe to it."""

    process: BaseProcess
    pipe: Connection

    def ask(self, message: bytes) -> bytes | None:
        """The child's answer, or None if it died."""
        try:
            self.pipe.send_bytes(message)
        except OSError:
            return None
        return self.hear()

    def hear(self) -> bytes | None:
        try:
            while not self.pipe.poll(1.0):  # a process that the child started may hold the pipe open after its death
                if not self.process.is_alive():
                    return None
            return self.pipe.recv_bytes()
        except (EOFError, OSError):
            return None

    def bury(self) -> str:
        """Free what a dead child held, and say how it ended."""
        self.process.join(1.0)
        self.process.kill()
        self.process.join()
        self.pipe.close()
        code = self.process.exitcode or 0
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


class RunnerChild(Generic[Item, Result]):
    """A process that answers one item at a time, so that a death has one culprit; started when needed, and again."""

    def __init__(self, function: Callable[[Item], Result]) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._closed = False
        self._child: WorkerProcess | None = None

    def call(self, item: Item) -> Result | Failure:
        message, how = pickle.dumps(item), ""
        for _ in range(TRIES):
            answer = (self._child or self._start()).ask(message)
            if answer is not None:
                return unpack_answer(answer)
            how = self.bury()
        return Failure(item, detail=how)

    def _start(self) -> WorkerProcess:
        ours, theirs = CONTEXT.Pipe()
        child = WorkerProcess(CONTEXT.Process(target=serve_items, args=(theirs, self._function)), ours)
        with self._lock:
            if self._closed:
                raise CancelledError
            child.process.start()
            self._child = child
        theirs.close()
        if child.hear() is None:
            raise InputError(
                f"a worker process ended before its first item ({self.bury()}); "
                "a script must start its work under: if __name__ == '__main__'"
            )
        return child

    def kill(self) -> None:
        """End the process at once and for good; any thread may call this."""
        with self._lock:
            self._closed = True
            if self._child:
                self._child.process.kill()

    def bury(self) -> str:
        child, self._child = self._child, None
        return child.bury() if child else "never started"


def serve_items(pipe: Connection, function: Callable[[Any], Any]) -> None:
    """The life of a worker process: say that it is there, then answer items until the parent goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent says what happens
    threading.Thread(target=follow_parent, daemon=True).start()
    share_no_lock()
    pipe.send_bytes(b"ready")
    while True:
        try:
            message = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send_bytes(reply(function, message))


def share_no_lock() -> None:
    """tqdm makes a lock between processes, and a worker is killed when it is done: Python would warn of what it left."""
    with suppress(ImportError):
        from tqdm.std import TqdmDefaultWriteLock  # pyright: ignore[reportAttributeAccessIssue]

        TqdmDefaultWriteLock.mp_lock = None


def follow_parent() -> None:
    """Die with the parent, even in the middle of an item."""
    parent = parent_process()
    if parent:
        parent.join()
        os._exit(1)


def reply(function: Callable[[Any], Any], message: bytes) -> bytes:
    """The pickled result, or the pickled exception with its traceback as a note."""
    try:
        return pickle.dumps((True, function(pickle.loads(message))))
    except Exception as error:
        told = portable_error(error)
        told.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return pickle.dumps((False, told))


def portable_error(error: Exception) -> Exception:
    """The error itself if it survives pickling, else its words."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def unpack_answer(answer: bytes) -> Any:
    good, value = pickle.loads(answer)
    if not good:
        raise value
    return value


def run_on_ray(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | None, address: str | None
) -> Iterator[Result | Failure]:
    """As Ray tasks; those of a lost node run again elsewhere. `workers` is the size of a cluster that we start here."""
    try:
        import ray
        from ray.exceptions import NodeDiedError, ObjectLostError, OutOfMemoryError, RayTaskError, WorkerCrashedError
    except ModuleNotFoundError as error:
        raise SpecError("the runner 'ray' needs Ray; install it: pip install 'idiograph[ray]'") from error

    with ray_cluster(address, workers):
        task, shared = ray.remote(max_retries=RAY_RETRIES)(apply), ray.put(function)  # sent to each node once
        window = WINDOW * (workers or int(ray.cluster_resources().get("CPU", 1)))
        for item, future in ordered_results(lambda item: task.remote(shared, item).future(), items, window):
            try:
                yield future.result()
            except RayTaskError as error:
                raise (error.cause if isinstance(error.cause, Exception) else error) from None
            except (NodeDiedError, ObjectLostError, OutOfMemoryError, WorkerCrashedError) as error:
                yield Failure(item, detail=str(error))


def apply(function: Callable[[Item], Result], item: Item) -> Result:
    return function(item)


@contextmanager
def ray_cluster(address: str | None, workers: int | None) -> Iterator[None]:
    """A Ray connection: the one that the caller has made, or else one that ends with the run."""
    import ray

    if ray.is_initialized():
        yield
        return
    try:
        if address:
            knock(address)
            ray.init(address, log_to_driver=False, logging_level=logging.WARNING)
        else:
            quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.WARNING}
            ray.init("local", num_cpus=workers, **quiet)
    except OSError as error:
        raise ServiceError(f"no Ray cluster answers at '{address}'; start one: ray start --head") from error
    try:
        yield
    finally:
        ray.shutdown()


def knock(address: str) -> None:
    """Fail at once if nobody listens at `host:port`; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


RUNNERS: dict[str, Runner] = {"inline": run_inline, "processes": run_in_processes, "ray": run_on_ray}


@dataclass(frozen=True)
class Workers:
    """`inline`, `processes` or `ray`, with how many workers and on which cluster."""

    runner: str = "inline"
    workers: int | None = None
    address: str | None = None
    progress: Progress | None = None

    def tell(self, done: int, total: int | None, what: str) -> None:
        if self.progress:
            self.progress(done, total, what)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | Failure]:
        """The result of each item, in order; a `Failure` where the worker died."""
        return run_items(function, items, self.runner, self.workers, self.address)

    def run(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        what: str,
        weight: Callable[[Item], int] = lambda _: 1,
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, in order; tells how much is done. A worker that died ends the stage, not for good."""
        total, done = sum(map(weight, items)), 0
        for item, result in zip(items, self.map(function, items), strict=True):
            if isinstance(result, Failure):
                raise ServiceError(
                    f"{what}: {result.reason} ({result.detail}); run it again, perhaps with fewer workers"
                )
            done += weight(item)
            yield item, result
            self.tell(done, total, what)
