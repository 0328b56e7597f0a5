"""What a run costs the process that shares it out: its memory and its time, and what a second worker saves.

    python benchmarks/cluster.py [--documents 10000] [--runner processes] [--driver 1000000]

`idiograph corpus` runs on a simulated corpus with one worker and with two. On a busy machine the clock says nothing, so what
is compared is the processor time of the process that has most of it: nobody can be done before that, and on a quiet machine
with a core for each nobody is done much later. The last worker to finish, and a driver that has to wait, are left out.

`--driver N` measures the driver alone: the lines of N documents as workers return them, made up, so that a million takes
half a minute.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from idiograph.corpus import corpus as module
from idiograph.corpus.build import ReadyDocument
from idiograph.corpus.corpus import Notes, keep_documents
from idiograph.corpus.duplicates import BINS, WorkPrint
from idiograph.recipe import CorpusRecipe
from idiograph.runner import Workers
from idiograph.text.cells import PeopleCsv

TICKS = os.sysconf("SC_CLK_TCK")
BATCH = 64


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--documents", type=int, default=10_000, help="0 leaves it out.")
    arguments.add_argument("--runner", default="processes", choices=["processes", "ray"])
    arguments.add_argument("--driver", type=int, default=0)
    given = arguments.parse_args()
    if given.driver:
        measure_driver(given.driver)
    if given.documents:
        one, two = (measure_run(given.documents, given.runner, workers) for workers in (1, 2))
        print(f"from one worker to two: {one / two:.2f} times")


def measure_run(documents: int, runner: str, workers: int) -> float:
    """Seconds of the processor of whichever process had most; prints that, and the driver's memory."""
    source = f"synth:documents={documents},authors={documents},sentences=12"
    with TemporaryDirectory() as out:
        command = [sys.executable, "-m", "idiograph", "corpus", source, "-o", f"{out}/corpus"]
        with subprocess.Popen(
            [*command, "--runner", runner, "--workers", str(workers)], stdout=subprocess.DEVNULL
        ) as child:
            seconds, peak = watch(child)
    driver = seconds.pop(child.pid)
    busiest = max(seconds.values())
    print(
        f"{runner} ({workers}): driver {driver:.1f} s and {peak:.0f} MB, busiest worker {busiest:.1f} s, "
        f"all workers {sum(seconds.values()):.1f} s",
        flush=True,
    )
    return max(driver, busiest)


def watch(child: "subprocess.Popen[bytes]") -> tuple[dict[int, float], float]:
    """Processor seconds of a process and its descendants that run Python, and the most memory that it had itself."""
    seconds, peak = {child.pid: 0.0}, 0.0
    while child.poll() is None:
        for pid in descendants(child.pid):
            if (found := processor_seconds(pid)) is not None:
                seconds[pid] = found
        peak = max(peak, resident(child.pid))
        time.sleep(0.1)
    return seconds, peak


def descendants(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            inner = task.read_text().split()
        except OSError:
            continue
        for each in inner:
            yield from descendants(int(each))


def processor_seconds(pid: int) -> float | None:
    """None for what is no worker of ours: Ray's own processes have their names."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return None
    ours = name.startswith(("python", "ray::RayActor"))
    return sum(map(int, rest.split()[11:13])) / TICKS if ours else None


def resident(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
    except (OSError, IndexError):
        return 0.0


def measure_driver(count: int) -> None:
    """Keep the documents of made-up lines and plan their shards, as `corpus` does."""
    module.prepared_parts = partial(made_up_parts, count)
    begun = time.process_time()
    with TemporaryDirectory() as room:
        notes = Notes(PeopleCsv(StringIO()), Counter(), [])
        kept = keep_documents([], CorpusRecipe(), Workers(), notes, Path(room))
        shards = sum(1 for _ in kept.shards(Path(room)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"driver of {count:,} documents ({shards} shards): {peak:.0f} MB, {time.process_time() - begun:.1f} s")


def made_up_parts(count: int, *given: Any) -> Iterator[tuple[Path, list[ReadyDocument]]]:
    room, random = given[-1], np.random.default_rng(0)
    for at in range(0, count, BATCH):
        signatures = random.integers(0, 2**31, (BATCH, BINS), dtype=np.uint32)
        numbers = random.integers(2**63, size=(BATCH, 3)).tolist()
        yield (
            room / f"{at:08d}.arrow",
            [
                ReadyDocument(f"synth-d{at + i:09d}", i, "en", "", WorkPrint(title, tuple(people), 5000, row.tobytes()))
                for i, ((title, *people), row) in enumerate(zip(numbers, signatures, strict=True))
            ],
        )


if __name__ == "__main__":
    main()
