"""Results do not depend on the runner, dying workers cost one item, and nothing is left running."""

import functools
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import pytest

from idiograph.errors import InputError, ServiceError, SpecError
from idiograph.runner import (
    RUNNERS,
    TOO_SLOW,
    WINDOW,
    Failure,
    ProcessLimits,
    WorkerPool,
    Workers,
    process_pool,
    run_items,
    shard,
)

LOCAL = [runner for runner in RUNNERS if runner != "ray"]
PATIENCE = 30.0  # seconds until a test that waits for another process gives up


def square(number: int) -> int:
    return number * number


def double(text: str) -> str:
    return text + text


def refuse_three(number: int) -> int:
    if number == 3:
        raise ValueError("three is refused")
    return number


class Awkward(Exception):
    """Pickles, but does not unpickle: its constructor wants two arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


def fail_awkwardly(_: int) -> None:
    raise Awkward("salt", "pepper")


def return_a_lambda(_: int) -> object:
    return lambda: None


def die_on_three(number: int, how: signal.Signals = signal.SIGKILL) -> int:
    if number == 3:
        os.kill(os.getpid(), how)
    return number


def die_the_first_time(marker: Path) -> str:
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return marker.name


def press_ctrl_c(number: int) -> int:
    os.kill(os.getpid(), signal.SIGINT)
    return number


def die_leaving_a_child(_: int) -> None:
    if os.fork() == 0:
        time.sleep(8)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


def pause_on_two(number: int, fifo: Path) -> int:
    if number == 2:
        with fifo.open("w") as held:
            held.write("r")
            held.flush()
            signal.pause()
    return number


def nap(number: int, folder: Path) -> int:
    """Note which Ray node this runs on, long enough that a node can be killed meanwhile."""
    import ray

    (folder / f"{number}-{ray.get_runtime_context().get_node_id()}").touch()
    time.sleep(0.3)
    return number * number


@pytest.mark.parametrize("runner", LOCAL)
@pytest.mark.parametrize("workers", [1, 3])
def test_results_are_those_of_map_in_order(runner: str, workers: int):
    assert list(run_items(square, range(50), runner, workers)) == [n * n for n in range(50)]


@pytest.mark.parametrize("runner", LOCAL)
def test_no_items_give_no_results(runner: str):
    assert list(run_items(square, [], runner)) == []


@pytest.mark.parametrize("runner", LOCAL)
def test_endless_items_are_taken_a_few_at_a_time(runner: str):
    taken = []
    items = (taken.append(n) or n for n in count())
    assert list(islice(run_items(square, items, runner, 2), 3)) == [0, 1, 4]
    assert len(taken) <= 3 + WINDOW * 2


def test_nothing_is_taken_before_the_first_result_is_asked_for():
    taken = []
    run_items(square, (taken.append(n) or n for n in range(3)), "processes", 1)
    assert taken == []


def test_items_and_results_larger_than_a_pipe_pass_through():
    text = "x" * 3_000_000
    assert list(run_items(double, [text, "a", text], "processes", 2)) == [text + text, "aa", text + text]


@pytest.mark.parametrize("runner", LOCAL)
def test_an_exception_is_raised_at_its_items_place(runner: str):
    results = run_items(refuse_three, range(6), runner, 2)
    assert list(islice(results, 3)) == [0, 1, 2]
    with pytest.raises(ValueError) as caught:
        next(results)
    assert str(caught.value) == "three is refused"


def test_an_exception_from_a_worker_carries_the_workers_traceback():
    with pytest.raises(ValueError) as caught:
        list(run_items(refuse_three, [3], "processes", 1))
    assert "in refuse_three" in caught.value.__notes__[0]


def test_an_exception_that_cannot_travel_arrives_as_words():
    with pytest.raises(RuntimeError) as caught:
        list(run_items(fail_awkwardly, [1], "processes", 1))
    assert str(caught.value) == "Awkward: salt and pepper"


def test_a_result_that_cannot_travel_is_an_error_and_not_a_death():
    with pytest.raises(Exception, match="pickle"):
        list(run_items(return_a_lambda, [1], "processes", 1))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_dies_costs_its_item_alone(how: signal.Signals):
    results = list(run_items(functools.partial(die_on_three, how=how), range(20), "processes", 2))
    assert results == [Failure(n) if n == 3 else n for n in range(20)]
    assert results[3].reason == "its worker died"
    assert results[3].detail == f"killed by {how.name}"


def test_a_worker_that_dies_once_costs_nothing(tmp_path: Path):
    markers = [tmp_path / name for name in "abcd"]
    assert list(run_items(die_the_first_time, markers, "processes", 2)) == ["a", "b", "c", "d"]


def test_ctrl_c_is_for_the_parent_to_handle_and_not_for_workers():
    assert list(run_items(press_ctrl_c, [1, 2], "processes", 1)) == [1, 2]


def test_a_death_is_noticed_though_a_grandchild_holds_the_pipe():
    before = time.monotonic()
    assert list(run_items(die_leaving_a_child, [1], "processes", 1)) == [Failure(1)]
    assert time.monotonic() - before < 7


def test_an_unknown_runner_is_refused_with_a_suggestion():
    with pytest.raises(SpecError) as caught:
        run_items(square, [1], "procesess")
    known = "inline, processes, ray"
    assert str(caught.value) == f"unknown runner 'procesess'; choose from {known} (did you mean 'processes'?)"


def test_a_team_of_nobody_is_refused():
    with pytest.raises(SpecError, match="the number of workers must be from 1 to 1024, but got 0"):
        run_items(square, [1], "processes", 0)


def test_every_item_is_in_exactly_one_shard():
    names = [f"document-{n}" for n in range(1000)]
    parts = [list(shard(names, f"{i}/7", key=str)) for i in range(1, 8)]
    assert sorted(chain(*parts)) == sorted(names)
    assert all(90 < len(part) < 200 for part in parts)


def test_a_shard_depends_on_the_key_alone():
    forwards = set(shard(range(100), "2/3", key=str))
    assert set(shard(reversed(range(50, 100)), "2/3", key=str)) == {n for n in forwards if n >= 50}


def test_shards_never_change():
    assert list(shard(range(20), "1/3", key=str)) == [15, 17]


def test_a_file_name_that_is_not_text_has_a_shard_too():
    assert list(shard(["\udcff.pdf"], "1/1", key=str)) == ["\udcff.pdf"]


@pytest.mark.parametrize("part", ["0/4", "5/4", "1", "1/0", "a/b", "1/2/3", "-1/2", " 1/2", "1.0/2", "²/3", ""])
def test_a_shard_that_does_not_exist_is_refused(part: str):
    with pytest.raises(SpecError, match="write i/n with i from 1 to n, such as '1/4'"):
        shard([], part, key=str)


HOLD = """
import signal, sys
from idiograph.runner import run_items

def hold(path):
    sys.held = open(path, "w")
    sys.held.write("r")
    sys.held.flush()
    signal.pause()

if __name__ == "__main__":
    results = run_items(hold, [sys.argv[1]] * 2, "processes", 2)
    next(results)
"""


class Fifo:
    """A named pipe that workers hold open: it ends when, and only when, all of them are gone."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self.file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read(self) -> bytes:
        assert select.select([self.file], [], [], PATIENCE)[0], "waited too long for a worker"
        return os.read(self.file, 1)

    def await_end(self) -> None:
        while self.read():
            pass


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Fifo]:
    made = Fifo(tmp_path / "fifo")
    yield made
    os.close(made.file)


def start(script: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    path = folder / "script.py"
    path.write_text(script)
    return subprocess.Popen(
        [sys.executable, path, *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_an_interrupted_run_leaves_no_orphans_and_one_traceback(fifo: Fifo, tmp_path: Path):
    process = start(HOLD, tmp_path, str(fifo.path))
    assert fifo.read() + fifo.read() == b"rr"
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
    words = process.communicate(timeout=PATIENCE)[1]
    fifo.await_end()
    assert words.count("Traceback") == 1
    assert words.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_killed_leaves_no_orphans(how: signal.Signals, fifo: Fifo, tmp_path: Path):
    process = start(HOLD, tmp_path, str(fifo.path))
    assert fifo.read() == b"r"
    process.send_signal(how)
    process.communicate(timeout=PATIENCE)
    fifo.await_end()


def test_results_that_nobody_reads_to_the_end_leave_no_orphans(fifo: Fifo, tmp_path: Path):
    process = start(HOLD.replace("signal.pause()", "pass"), tmp_path, str(fifo.path))
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    fifo.await_end()


def test_an_iterator_that_is_closed_ends_its_workers(fifo: Fifo):
    results = run_items(functools.partial(pause_on_two, fifo=fifo.path), [1, 2], "processes", 2)
    assert next(results) == 1
    assert fifo.read() == b"r"
    del results
    fifo.await_end()


def test_workers_that_cannot_start_are_an_error_and_not_a_list_of_failures(tmp_path: Path):
    script = "from idiograph.runner import run_items\nprint(list(run_items(abs, [1, 2], 'processes', 1)))"
    process = start(script, tmp_path)
    words = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 1
    assert f"{InputError.__name__}: a worker process ended before its first item" in words
    assert "under: if __name__ == '__main__'" in words


def hang(_: int) -> bytes:
    signal.pause()
    return b""


def take_memory(mebibytes: int) -> bytes:
    return str(len(bytearray(mebibytes << 20))).encode()


def write_file(path: Path) -> bytes:
    try:
        path.write_text("x")
    except OSError as error:
        return str(error.strerror).encode()
    return b"written"


def say_gpus(_: int) -> str:
    time.sleep(0.05)
    return os.environ["CUDA_VISIBLE_DEVICES"]


def say_who(_: int) -> bytes:
    return str(os.getpid()).encode()


class Hostile:
    """Does harm when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (7,)


def answer_with_a_trap(_: int) -> bytes:
    return pickle.dumps((True, Hostile()))


@pytest.fixture
def confined() -> Iterator[Callable[..., WorkerPool[Any, bytes]]]:
    """Pools of one worker with limits."""
    pools: list[WorkerPool[Any, bytes]] = []

    def make(function: Callable[[Any], bytes], seconds: float = 60, mebibytes: int = 256, renew: int = 500):
        pools.append(process_pool(function, 1, ProcessLimits(seconds, mebibytes, renew)))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def test_an_item_over_its_time_is_a_failure_and_the_next_one_has_a_new_worker(confined):
    pool = confined(hang, seconds=0.2)
    for number in (1, 2):
        failure = pool.call(number)
        assert (failure, failure.detail) == (Failure(number, TOO_SLOW), "more than 0.2 seconds")


def test_a_limited_worker_gets_no_more_memory_and_its_death_costs_its_item_alone(confined):
    pool = confined(take_memory)
    assert pool.call(1) == str(1 << 20).encode()
    assert pool.call(500) == Failure(500)
    assert pool.call(2) == str(2 << 20).encode()


def test_a_limited_worker_writes_no_file(confined, tmp_path: Path):
    assert confined(write_file).call(tmp_path / "x") == b"File too large"


def test_an_item_that_kills_a_limited_worker_is_not_tried_again(confined, tmp_path: Path):
    assert confined(die_the_first_time).call(tmp_path / "a") == Failure(tmp_path / "a")


def test_what_a_limited_worker_answers_is_never_unpickled(confined):
    assert confined(answer_with_a_trap).call(1) == answer_with_a_trap(1)


def test_a_limited_worker_is_replaced_after_so_many_items(confined):
    pool = confined(say_who, renew=2)
    who = [pool.call(number) for number in range(4)]
    assert who[0] == who[1] != who[2] == who[3]


LIMITED = """
from idiograph.runner import ProcessLimits, process_pool

print("the script runs")
pool = process_pool(str.encode, 1, ProcessLimits(60, 256))
print(pool.call("an answer"))
pool.close()
"""


def test_a_limited_worker_does_not_load_the_script_that_is_running(tmp_path: Path):
    (tmp_path / "script.py").write_text(LIMITED)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=True)
    assert done.stdout == "the script runs\nb'an answer'\n"


def say_who_and_what(item: str) -> tuple[int, str]:
    return os.getpid(), item


def test_a_resident_worker_is_asked_by_its_number():
    with Workers("processes", 2).reside(say_who_and_what, 3) as team:
        first, second = team.ask(list("abcde")), team.ask(list("abcde"))
    assert [item for _, item in first] == list("abcde")
    assert first == second
    who = [each for each, _ in first]
    assert who[0] == who[2] == who[4] != who[1] == who[3]


def test_a_resident_worker_that_dies_is_there_again(tmp_path: Path):
    with Workers("processes").reside(die_the_first_time, 2) as team:
        assert team.ask([tmp_path / "a", tmp_path / "b"]) == ["a", "b"]


def test_inline_there_is_one_resident_worker_and_it_is_this_process():
    with Workers().reside(say_who_and_what, 3) as team:
        assert team.ask(["a", "b"]) == [(os.getpid(), "a"), (os.getpid(), "b")]


def test_gpus_are_for_ray_alone():
    with pytest.raises(SpecError, match="GPUs are given out by the runner ray, and not by processes; add --runner ray"):
        run_items(square, [1], "processes", gpus=1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """The head of a Ray cluster on this machine; nodes that tests add are further processes."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'idiograph[ray]'")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)  # the same code is on every node
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        yield made
        made.shutdown()


@pytest.mark.slow
def test_ray_gives_the_results_of_inline(cluster):
    node = cluster.add_node(num_cpus=1)
    results = list(run_items(square, range(300), "ray", address=cluster.address))
    cluster.remove_node(node)
    assert results == list(run_items(square, range(300)))


@pytest.mark.slow
def test_a_ray_node_killed_in_mid_run_does_not_change_the_results(cluster, tmp_path: Path):
    node = cluster.add_node(num_cpus=2)
    results = run_items(functools.partial(nap, folder=tmp_path), range(60), "ray", address=cluster.address)
    first = list(islice(results, 10))
    used = {path.name.partition("-")[2] for path in tmp_path.iterdir()}
    cluster.remove_node(node, allow_graceful=False)
    assert first + list(results) == [n * n for n in range(60)]
    assert len(used) == 2


@pytest.mark.slow
def test_an_item_that_kills_ray_workers_is_the_same_failure_as_elsewhere(cluster):
    results = list(run_items(die_on_three, range(6), "ray", address=cluster.address))
    assert results == list(run_items(die_on_three, range(6), "processes", 2))
    assert results[3].reason == "its worker died"


@pytest.mark.slow
def test_an_exception_on_ray_is_the_functions_own(cluster):
    with pytest.raises(ValueError, match=r"^three is refused$") as caught:
        list(run_items(refuse_three, range(6), "ray", address=cluster.address))
    assert type(caught.value) is ValueError


@pytest.mark.slow
def test_ray_takes_a_few_items_at_a_time(cluster):
    taken = []
    items = (taken.append(n) or n for n in count())
    assert list(islice(run_items(square, items, "ray", 2, cluster.address), 3)) == [0, 1, 4]
    assert len(taken) <= 3 + WINDOW * 2


@pytest.mark.slow
def test_a_ray_worker_keeps_what_it_has_until_the_run_ends(cluster):
    who = set(run_items(say_who, range(20), "ray", 2, cluster.address))
    assert len(who) == 2


@pytest.mark.slow
def test_each_ray_worker_has_gpus_of_its_own(cluster):
    node = cluster.add_node(num_cpus=2, num_gpus=2)
    seen = set(run_items(say_gpus, range(40), "ray", address=cluster.address, gpus=1))
    cluster.remove_node(node)
    assert seen == {"0", "1"}


@pytest.mark.slow
def test_gpus_that_no_cluster_has_are_refused_and_not_waited_for(cluster):
    with pytest.raises(InputError, match="the Ray cluster has 0 GPUs, but each worker wants 1"):
        list(run_items(square, [1], "ray", address=cluster.address, gpus=1))


@pytest.mark.slow
def test_resident_ray_workers_outlive_their_node(cluster):
    node = cluster.add_node(num_cpus=1)
    with Workers("ray", address=cluster.address).reside(say_who_and_what, 4) as team:
        before = team.ask(list("abcd"))
        cluster.remove_node(node, allow_graceful=False)
        after = team.ask(list("abcd"))
    assert [item for _, item in before] == [item for _, item in after] == list("abcd")
    assert len({who for who, _ in before}) == len({who for who, _ in after}) == 4


@pytest.mark.slow
def test_a_ray_cluster_that_is_not_there_is_named():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'idiograph[ray]'")
    with pytest.raises(ServiceError, match=r"no Ray cluster answers at '127.0.0.1:9'; start one: ray start --head"):
        list(run_items(square, [1], "ray", address="127.0.0.1:9"))


WITH_BARS = """
from idiograph.runner import run_items

def barred(number):
    from tqdm import tqdm
    return sum(tqdm(range(number), disable=False))

if __name__ == "__main__":
    assert list(run_items(barred, [3, 4], "processes", 2)) == [3, 6]
"""


def test_workers_that_draw_bars_leave_nothing_to_warn_of(tmp_path):
    process = start(WITH_BARS, tmp_path)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "leaked" not in said
