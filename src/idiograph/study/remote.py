"""Train and measure the models of a pack, on a machine that need not have more than torch and sentence-transformers.

    python -m idiograph.study.remote PACK OUT --backbone NAME=FOLDER [--backbone …] [--workers 4] [--budget 540]

Runs that OUT (or a folder given with --done) holds already are not done again; what does not fit into the budget is left.
Speaks on standard error, one line a run.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from idiograph.runner import Progress
from idiograph.study.pack import Pack
from idiograph.study.plan import StudyRun
from idiograph.study.results import RunOutcome, Store

_packs: dict[Path, Pack] = {}  # a worker opens its pack once


def work_through(run: StudyRun, folder: Path, backbone: str, device: str) -> RunOutcome:
    """One run, in whatever process this is."""
    from idiograph.study.work import carry_out

    if folder not in _packs:
        _packs[folder] = Pack.open(folder)
    return carry_out(run, _packs[folder], backbone, device)


@dataclass(frozen=True, slots=True)
class Means:
    """What the runs are done with. No `workers`: one run after the other, in this process."""

    backbones: Mapping[str, str]  # name → folder or hub name
    workers: int = 4
    device: str = "auto"
    budget: float = math.inf  # seconds after which no run is begun
    done: tuple[Path, ...] = ()  # folders with runs that were done before


def outcomes(
    runs: Sequence[StudyRun], folder: Path, means: Means
) -> Iterator[tuple[StudyRun, RunOutcome | BaseException]]:
    """Do the runs, several at a time; none is begun after the deadline, and one that fails stops no other."""
    deadline = time.monotonic() + means.budget
    if not means.workers:
        for run in runs:
            if time.monotonic() < deadline:
                yield run, work_through(run, folder, means.backbones[run.backbone], means.device)
        return
    line = list(reversed(runs))
    with ProcessPoolExecutor(means.workers, mp_context=get_context("spawn")) as team:
        held: dict[Future[RunOutcome], StudyRun] = {}
        while line or held:
            while line and len(held) < means.workers and time.monotonic() < deadline:
                run = line.pop()
                held[team.submit(work_through, run, folder, means.backbones[run.backbone], means.device)] = run
            if not held:
                return
            for future in wait(held, return_when=FIRST_COMPLETED).done:
                error = future.exception()
                yield held.pop(future), error if error is not None else future.result()


def perform_run(pack: Pack, out: Path, means: Means, tell: Progress) -> tuple[int, int]:
    """Do what is left of a pack's runs; returns how many were done, and how many failed."""
    store, begun = Store(out), time.monotonic()
    there = set().union(*(Store(folder).names() for folder in (out, *means.done)))
    runs = [run for run in pack.runs if run.name not in there and run.backbone in means.backbones]
    counts = [0, 0]
    tell(0, len(runs), "")
    for run, found in outcomes(runs, pack.folder, means):
        if isinstance(found, RunOutcome):
            store.add(found)
            counts[0] += 1
        else:
            counts[1] += 1
        passed = time.monotonic() - begun
        left = passed / sum(counts) * (len(runs) - sum(counts))
        tell(sum(counts), len(runs), f"{run.name}: {result_words(found)}; about {left:.0f} s left")
    return counts[0], counts[1]


def result_words(found: RunOutcome | BaseException) -> str:
    """What came of a run, in a few words."""
    if not isinstance(found, RunOutcome):
        return f"failed: {found!r}"
    values = [v[:, 0].mean() for k, v in found.arrays.items() if k.startswith("valid|")]
    score = f"valid R@20 {sum(values) / len(values):.4f}, " if values else ""
    return f"{score}{found.about['seconds']:.1f} s"


def write_line(done: int, total: int | None, what: str) -> None:
    sys.stderr.write(f"{done}/{total} {what}\n")
    sys.stderr.flush()


def run_remote(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m idiograph.study.remote", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("pack", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--backbone", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--budget", type=float, default=540.0, help="seconds after which no run is begun")
    parser.add_argument("--done", type=Path, action="append", default=[], help="a folder with runs done before")
    given = parser.parse_args(arguments)
    backbones = dict(each.split("=", 1) for each in given.backbone)
    means = Means(backbones, given.workers, given.device, given.budget, tuple(given.done))
    done, failed = perform_run(Pack.open(given.pack), given.out, means, write_line)
    write_line(done, done + failed, "runs done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run_remote())
