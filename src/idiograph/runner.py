"""Run a pure function over many items: here, in worker processes, or on a Ray cluster. Knows nothing of what it runs.

Results come in the order of the items and are the same for every runner and every number of workers. Items are taken
lazily and only a few are in flight, so that memory does not grow with their number. An exception that the function
raises is raised here, at its item's place. A worker that dies (killed, crashed) costs its item alone: the item is tried
again, and comes out as a `Failure` if that kills its worker too.
"""

import atexit
import logging
import math
import os
import pickle
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import spawn
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from idiograph.errors import InputError, ServiceError, SpecError
from idiograph.extras import require_library
from idiograph.seeded import hash_text
from idiograph.spec import unknown_choice

Item = TypeVar("Item")
Result = TypeVar("Result")
Asked = TypeVar("Asked", contravariant=True)
Answered = TypeVar("Answered", covariant=True)

Progress = Callable[[int, int | None, str], None]  # what is done, of how many (None: nobody knows), and the work's name
Runner = Callable[[Callable[[Any], Any], Iterable[Any], "Workers"], Iterator[Any]]

MAX_WORKERS = 1024
MAX_GPUS = 8  # of one worker: those of a machine
WINDOW = 4  # items in flight per worker: enough that a slow one at the head does not starve the others
TRIES = 2
RAY_RETRIES = 3  # more than TRIES allows: on a cluster a worker also goes with its node, which no item is to blame for
RAY_OBJECT_STORE = 256 << 20  # bytes of shared memory, of a cluster that we start: a few items in flight, no results
DIED = "its worker died"
TOO_SLOW = "took too long"
SECONDS_TO_START = 60.0  # that a process may take until it is ready, on a machine that is busy
MAX_ANSWER = 64_000_000  # bytes, of a worker that is not trusted
MEBIBYTE = 1 << 20
LENGTH = struct.Struct(">Q")  # of the message that follows
WORKER = (  # before `sys.path` is that of the parent, nothing else is imported
    "import sys; sys.path[:] = sys.argv[2:]; import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from idiograph.runner import serve_items; serve_items(int(sys.argv[1]))"  # Ctrl-C is for the parent to handle
)

loading_main = threading.Event()  # in a worker, while it runs the parent's script, which must not start workers then


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
    gpus: float = 0,
) -> Iterator[Result | Failure]:
    """`function` of each item, in order. `workers` is the number of cores unless given.

    For `processes` and `ray` the function must be importable by name (or a `functools.partial` of one that is), and the
    items and results must pickle. `address` is a Ray cluster; without it, `ray` uses the connection that there is
    or starts a cluster on this machine. `gpus` is what each Ray worker has for itself, 0.5 for half of one. A worker
    lives as long as the iteration: what the function keeps in its process (a model) is made once in each.

    >>> list(run_items(abs, [3, -4]))
    [3, 4]
    """
    team = Workers(runner, workers, address, gpus=gpus)
    check_workers(team)
    return RUNNERS[runner](function, items, team)


def check_workers(team: "Workers") -> None:
    """Refuse a team that cannot be."""
    if team.runner not in RUNNERS:
        raise SpecError(unknown_choice("runner", team.runner, RUNNERS))
    if team.workers is not None and not 1 <= team.workers <= MAX_WORKERS:
        raise SpecError(f"the number of workers must be from 1 to {MAX_WORKERS}, but got {team.workers}")
    if not 0 <= team.gpus <= MAX_GPUS:
        raise SpecError(f"a worker has from 0 to {MAX_GPUS} GPUs, but got {team.gpus:g}")
    if team.gpus and team.runner != "ray":
        raise SpecError(f"GPUs are given out by the runner ray, and not by {team.runner}; add --runner ray")


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


def run_inline(function: Callable[[Item], Result], items: Iterable[Item], _team: "Workers") -> Iterator[Result]:
    """In this process, one after another."""
    return map(function, items)


def run_in_processes(
    function: Callable[[Item], Result], items: Iterable[Item], team: "Workers"
) -> Iterator[Result | Failure]:
    """In freshly started Python processes on this machine, which end with the iteration or with this process."""
    count = team.workers or cores()
    with worker_pool([PoolWorker(function, None) for _ in range(count)]) as pool:
        yield from share_items(pool, items)


def share_items(pool: "WorkerPool[Item, Result]", items: Iterable[Item]) -> Iterator[Result | Failure]:
    """The results of items that the workers of a pool take as they are free, in the order of the items."""
    count = len(pool.workers)
    threads = ThreadPoolExecutor(count)
    try:
        for _, future in ordered_results(lambda item: threads.submit(pool.call, item), items, WINDOW * count):
            yield future.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def worker_pool(workers: "Sequence[Worker[Item, Result]]") -> "Iterator[WorkerPool[Item, Result]]":
    """Workers that end with the block, or with this process."""
    pool = WorkerPool(workers)
    atexit.register(pool.close)  # for results that nobody read to the end
    try:
        yield pool
    except NeverStarted as error:
        hint = "a script must start its work under: if __name__ == '__main__'"
        raise InputError(f"a worker process ended before its first item ({error}); {hint}") from error
    finally:
        pool.close()
        atexit.unregister(pool.close)


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """For a function that reads what may be hostile: what one item may take of a worker, and how long a worker lives.

    A worker takes at most `mebibytes` of memory beyond what it has when it starts, and writes no files. It is killed
    when an item takes more than `seconds`, and replaced after `renew` items, whatever its libraries may have leaked.
    """

    seconds: float
    mebibytes: int
    renew: int = 500


class NeverStarted(Exception):
    """A worker process ended before its first item; the words say how."""


class Worker(Protocol[Asked, Answered]):
    """Does one item at a time, and keeps what the function keeps in its process."""

    def call(self, item: Asked) -> Answered | Failure: ...
    def kill(self) -> None: ...
    def bury_idle(self) -> None: ...


class WorkerPool(Generic[Item, Result]):
    """Workers for one function, each at one item at a time, so that a death has one culprit.

    As many threads as there are workers may `call` at a time; `close` ends everything, whoever is calling.
    """

    def __init__(self, workers: "Sequence[Worker[Item, Result]]") -> None:
        self.workers = workers
        self._idle: SimpleQueue[Worker[Item, Result]] = SimpleQueue()
        for worker in self.workers:
            self._idle.put(worker)

    def call(self, item: Item) -> Result | Failure:
        """The result of an item, from the next idle worker; a `Failure` if it died or took too long."""
        worker = self._idle.get()
        try:
            return worker.call(item)
        finally:
            self._idle.put(worker)

    def ask(self, items: Sequence[Item]) -> list[Result | Failure]:
        """The result of each item, each from its own worker: item i always from worker i, or i modulo their number."""
        count = len(self.workers)
        shares = [(worker, items[at::count]) for at, worker in enumerate(self.workers)]
        with ThreadPoolExecutor(count) as threads:
            found = list(threads.map(lambda share: [share[0].call(item) for item in share[1]], shares))
        return [found[at % count][at // count] for at in range(len(items))]

    def close(self) -> None:
        """End all workers, also in the middle of an item, and for good."""
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.bury_idle()


def process_pool(function: Callable[[Item], Result], count: int, limits: ProcessLimits) -> WorkerPool[Item, Result]:
    """Processes for what may be hostile.

    An item is not tried twice, and what a worker answers is not trusted: the function returns bytes, which are never
    unpickled, and must not be defined in the script that is running, because that is not loaded.
    """
    return WorkerPool([PoolWorker(function, limits) for _ in range(count)])


@dataclass(frozen=True, slots=True)
class InlineWorker(Generic[Item, Result]):
    """This process."""

    function: Callable[[Item], Result]

    def call(self, item: Item) -> Result | Failure:
        return self.function(item)

    def kill(self) -> None:
        pass

    def bury_idle(self) -> None:
        pass


class PoolWorker(Generic[Item, Result]):
    """One process at a time, started when it is first needed and again when it has died."""

    def __init__(self, function: Callable[[Item], Result], limits: ProcessLimits | None) -> None:
        self.function, self.limits = function, limits
        self.child: WorkerProcess | None = None
        self.served = 0
        self._busy, self._starting, self._closed = threading.Lock(), threading.Lock(), False

    def call(self, item: Item) -> Result | Failure:
        message = pickle.dumps(item)
        with self._busy:
            if self.limits:
                return self._try_once(item, message, self.limits)
            how = ""
            for _ in range(TRIES):
                answer = self._child().ask(message)
                if answer is not None:
                    return unpack_answer(answer)
                how = self._bury()
        return Failure(item, detail=how)

    def _try_once(self, item: Item, message: bytes, limits: ProcessLimits) -> Any:
        """The bytes that the function returns. A timeout is told from a death."""
        try:
            answer = self._child().ask(message, limits.seconds, MAX_ANSWER)
        except TimeoutError:
            self._kill_child()
            return Failure(item, TOO_SLOW, f"more than {limits.seconds:g} seconds")
        if answer is None:
            return Failure(item, detail=self._bury())
        if self.served >= limits.renew:
            self._kill_child()
        return answer

    def _child(self) -> "WorkerProcess":
        """The process for the next item, ready: its start does not count against the item."""
        child = self.child or self._start()
        self.served += 1
        return child

    def _start(self) -> "WorkerProcess":
        if loading_main.is_set():
            raise RuntimeError("a script must start its work under: if __name__ == '__main__'")
        greeting = pickle.dumps((describe_process(self.limits), self.limits, pickle.dumps(self.function)))
        with self._starting:
            if self._closed:
                raise CancelledError
            child = self.child = start_worker(quiet=self.limits is not None)
            self.served = 0
        with suppress(TimeoutError):
            if child.ask(greeting, SECONDS_TO_START, MAX_ANSWER) is not None:
                return child
        if self._closed:
            raise CancelledError
        raise NeverStarted(self._bury())

    def kill(self) -> None:
        """End the process at once, and never start another; any thread may call this."""
        with self._starting:
            self._closed = True
            if self.child:
                self.child.process.kill()

    def bury_idle(self) -> None:
        """Free what a worker that was killed had, when its last call has ended."""
        with self._busy:
            self._bury()

    def _kill_child(self) -> None:
        if self.child:
            self.child.process.kill()
        self._bury()

    def _bury(self) -> str:
        child, self.child = self.child, None
        return child.bury() if child else "never started"


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A running worker process and our end of the connection to it."""

    process: "subprocess.Popen[bytes]"
    connection: socket.socket

    def ask(self, message: bytes, seconds: float = math.inf, most: float = math.inf) -> bytes | None:
        """The process's answer; None if it died, or has more than `most` bytes to say. Else it raises TimeoutError."""
        deadline = time.monotonic() + seconds
        try:
            self.connection.settimeout(None)
            send_message(self.connection, message)
            header = self._receive(LENGTH.size, deadline)
            length = LENGTH.unpack(header)[0]
            return self._receive(length, deadline) if length <= most else None
        except TimeoutError:
            raise
        except (EOFError, OSError):
            return None

    def _receive(self, count: int, deadline: float) -> bytes:
        """Exactly so many bytes."""
        data = bytearray()
        while len(data) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.connection.settimeout(min(1.0, left))
            try:
                piece = self.connection.recv(min(1 << 20, count - len(data)))
            except TimeoutError:
                if self.process.poll() is None:
                    continue
                piece = b""  # a process that the worker started may hold the connection open after its death
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def bury(self) -> str:
        """Free what a dead process had, and say how it ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        self.process.kill()
        code = self.process.wait()
        self.connection.close()
        return describe_exit(code)


def describe_exit(code: int) -> str:
    """How a process ended, in words.

    >>> describe_exit(-11), describe_exit(1)
    ('killed by SIGSEGV', 'exit code 1')
    """
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def start_worker(quiet: bool) -> WorkerProcess:
    """A fresh Python: nothing is inherited, no locks held by threads, no open files, no GPU state."""
    ours, theirs = socket.socketpair()
    output = subprocess.DEVNULL if quiet else None
    command = [sys.executable, "-c", WORKER, str(theirs.fileno()), *map(str, sys.path)]
    try:
        with theirs:
            process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
    except BaseException:
        ours.close()
        raise
    return WorkerProcess(process, ours)


def describe_process(limits: ProcessLimits | None) -> dict[str, Any]:
    """What a worker must know of this process, by the rules of multiprocessing: a trusted one loads the same script."""
    about = spawn.get_preparation_data("idiograph worker")
    without = {"authkey", *(("init_main_from_name", "init_main_from_path") if limits else ())}
    return {key: value for key, value in about.items() if key not in without}


def send_message(connection: socket.socket, message: bytes) -> None:
    connection.sendall(LENGTH.pack(len(message)))
    connection.sendall(message)


def serve_items(descriptor: int) -> None:
    """The life of a worker process: load the function, say so, then answer items until the parent goes."""
    os.set_inheritable(descriptor, False)
    connection, messages = socket.socket(fileno=descriptor), SimpleQueue[bytes]()
    threading.Thread(target=follow_parent, args=(connection, messages), daemon=True).start()
    about, limits, pickled = pickle.loads(messages.get())
    loading_main.set()
    spawn.prepare(about)
    loading_main.clear()
    function = pickle.loads(pickled)
    if limits:
        confine_process(limits)
    else:
        share_no_lock()
    answer = b"ready"
    while True:
        with suppress(OSError):  # the parent is gone, and so will be this process
            send_message(connection, answer)
        message = messages.get()
        answer = reply_in_bytes(function, message, limits) if limits else reply(function, message)


def follow_parent(connection: socket.socket, messages: "SimpleQueue[bytes]") -> None:
    """Hand on what the parent sends, and die with it, even in the middle of an item."""
    with suppress(OSError, struct.error), connection.makefile("rb") as source:
        while header := source.read(LENGTH.size):
            messages.put(source.read(LENGTH.unpack(header)[0]))
    os._exit(1)


def confine_process(limits: ProcessLimits) -> None:
    """Give up what a parser does not need: more memory, files to write, dumps to leave."""
    memory = address_space() + limits.mebibytes * MEBIBYTE
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def address_space() -> int:
    """What the interpreter and its libraries have mapped already, which on a machine of many cores is a lot."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[0]) * resource.getpagesize() if pages.is_file() else 1024 * MEBIBYTE


def reply_in_bytes(function: Callable[[Any], bytes], message: bytes, limits: ProcessLimits) -> bytes:
    """What the function returns. The timer ends an item whose parent is gone, should it not let `follow_parent` run."""
    signal.setitimer(signal.ITIMER_REAL, 2 * limits.seconds)
    answer = function(pickle.loads(message))
    signal.setitimer(signal.ITIMER_REAL, 0)
    return answer


def share_no_lock() -> None:
    """tqdm makes a lock between processes, and a worker is killed when it is done: Python would warn of what it left."""
    with suppress(ImportError):
        from tqdm.std import TqdmDefaultWriteLock  # pyright: ignore[reportAttributeAccessIssue]

        TqdmDefaultWriteLock.mp_lock = None


def reply(function: Callable[[Any], Any], message: bytes) -> bytes:
    """The pickled result, or the pickled exception with its traceback as a note."""
    try:
        return pickle.dumps((True, function(pickle.loads(message))))
    except Exception as error:
        portable = portable_error(error)
        portable.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return pickle.dumps((False, portable))


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
    function: Callable[[Item], Result], items: Iterable[Item], team: "Workers"
) -> Iterator[Result | Failure]:
    """By Ray actors, each of which lives as long as the iteration; those of a lost node go on elsewhere."""
    with ray_workers(function, team) as workers, worker_pool(workers) as pool:
        yield from share_items(pool, items)


@contextmanager
def ray_workers(
    function: Callable[[Item], Result], team: "Workers", count: int | None = None
) -> "Iterator[list[RayWorker[Item, Result]]]":
    """Actors: as many as are asked for, or as the cluster has room for."""
    require_library("ray", "the runner 'ray'")
    import ray

    with ray_cluster(team.address, team.workers):
        room = ray_room(ray.cluster_resources(), team.gpus)
        yield [RayWorker(function, team.gpus) for _ in range(count or team.workers or room)]


def ray_room(resources: Mapping[str, float], gpus: float) -> int:
    """How many workers a cluster has room for: by its cores or, where each wants some, by its GPUs.

    >>> ray_room({"CPU": 16.0, "GPU": 4.0}, 0), ray_room({"CPU": 16.0, "GPU": 4.0}, 0.5)
    (16, 8)
    """
    room = int(resources.get("GPU", 0) // gpus) if gpus else int(resources.get("CPU", 1))
    if not room:
        raise InputError(f"the Ray cluster has {resources.get('GPU', 0):g} GPUs, but each worker wants {gpus:g}")
    return room


class RayActor:
    """What lives on a node: the function, and whatever it keeps in its process."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def call(self, item: Any) -> Any:
        return self.function(item)

    def ready(self) -> None:
        """Answers once the actor is there again."""


class RayWorker(Generic[Item, Result]):
    """An actor. If it dies, or its node, Ray starts it again where there is room, and it tries its item again.

    It wants a free core to start on, but does not keep it: so those of a lost node find room on the nodes that are left, and
    workers that wait for the results of others cannot starve them. GPUs are kept.
    """

    def __init__(self, function: Callable[[Item], Result], gpus: float) -> None:
        import ray

        wanted: dict[str, Any] = {"num_gpus": gpus} if gpus else {}
        made = ray.remote(RayActor).options(max_restarts=-1, scheduling_strategy="SPREAD", **wanted)
        self.actor: Any = made.remote(function)
        self._busy, self._closed, self._lost = threading.Lock(), False, False

    def call(self, item: Item) -> Result | Failure:
        with self._busy:
            for _ in range(RAY_RETRIES):
                answer = self._try(item)
                if not self._lost:
                    return answer
            return self._try(item)

    def _await_restart(self) -> None:
        """Ray finds out only after a while that a node is gone, and refuses calls until then: that is not an item's fault."""
        import ray
        from ray.exceptions import RayActorError

        try:
            ray.get(self.actor.ready.options(max_task_retries=-1).remote())
        except RayActorError:
            raise CancelledError from None
        self._lost = False

    def _try(self, item: Item) -> Result | Failure:
        import ray
        from ray.exceptions import NodeDiedError, ObjectLostError, OutOfMemoryError, RayActorError, RayTaskError

        if self._lost:
            self._await_restart()
        if self._closed:
            raise CancelledError
        try:
            return ray.get(self.actor.call.remote(item))
        except RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except (RayActorError, NodeDiedError, ObjectLostError, OutOfMemoryError) as error:
            if getattr(error, "actor_init_failed", False):
                said = str(error).rstrip().splitlines()[-1]
                hint = "install the same idiograph on every node"
                raise ServiceError(f"a Ray worker cannot load the work ({said}); {hint}") from None
            self._lost = True
            return Failure(item, detail=" ".join(str(error).split()))

    def kill(self) -> None:
        import ray

        self._closed = True
        if ray.is_initialized():
            ray.kill(self.actor)

    def bury_idle(self) -> None:
        """Wait until nobody listens: a connection that is closed meanwhile takes this process with it."""
        with self._busy:
            pass


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
            ray.init("local", num_cpus=workers, object_store_memory=RAY_OBJECT_STORE, **quiet)
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
    gpus: float = 0  # that each worker has for itself; the runner ray gives them out

    def tell(self, done: int, total: int | None, what: str) -> None:
        if self.progress:
            self.progress(done, total, what)

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | Failure]:
        """The result of each item, in order; a `Failure` where the worker died."""
        return run_items(function, items, self.runner, self.workers, self.address, self.gpus)

    @contextmanager
    def reside(self, function: Callable[[Item], Result], count: int) -> Iterator[WorkerPool[Item, Result]]:
        """At most `count` workers that stay for the length of the block, and are asked by their number: what the function
        keeps in its process is still there when it is asked again. In this process there is one."""
        check_workers(self)
        count = min(count, self.workers or count)
        if self.runner == "ray":
            with ray_workers(function, self, count) as workers, worker_pool(workers) as pool:
                yield pool
            return
        here = self.runner == "inline"
        with worker_pool(
            [InlineWorker(function)] if here else [PoolWorker(function, None) for _ in range(count)]
        ) as pool:
            yield pool

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
