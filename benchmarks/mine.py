"""Mining: triplets a second and peak memory, how both grow with the corpus, and the published way of sampling beside it.

    python benchmarks/mine.py [--documents 1000000] [--workers 2]        a simulated corpus, also at a half and a quarter
    python benchmarks/mine.py --corpus FOLDER [--peer 300]               a corpus of yours, and the published sampler on it

The published sampler is written here as its description says: for every document the sets of allowed documents are made
from scratch, every span splits its document into sentences again, and the filters come last. It is run on the first
`--peer` documents that have a positive, with all the others to draw from, and its triplets are counted after filtering.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from idiograph.corpus.catalog import field_of
from idiograph.corpus.documents import Corpus, build
from idiograph.corpus.filters import span_fault
from idiograph.corpus.mine import mine
from idiograph.corpus.readers import read
from idiograph.corpus.sentences import runs, sentences
from idiograph.corpus.team import Team
from idiograph.recipe import recipe
from idiograph.types import Document

SENTENCES = 4
PER_DOCUMENT, SPANS = 2, 4


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--documents", type=int, default=1_000_000)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--corpus", type=Path)
    arguments.add_argument("--peer", type=int, default=300)
    arguments.add_argument(
        "--work", type=Path, help="Where the simulated corpora are kept; a temporary folder if not given."
    )
    arguments.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.child:
        print(json.dumps(timed(*given.child, given.workers)))
    elif given.corpus:
        ours = row(given.corpus, given.workers)
        peer(Corpus(given.corpus), given.peer, ours)
    else:
        with tempfile.TemporaryDirectory() as folder:
            scale(given.documents, given.workers, given.work or Path(folder))


def scale(documents: int, workers: int, folder: Path) -> None:
    """The same world at a quarter, a half and the whole size."""
    last = None
    for count in (documents // 4, documents // 2, documents):
        corpus = folder / f"synth-{count}"
        if not corpus.exists():
            world = f"synth:documents={count},authors={max(count // 3, 1)},topics=50,coauthors=0.3"
            build(read(world), corpus)
        found = row(corpus, workers)
        if last:
            print(f"  twice the documents: {found['seconds'] / last['seconds']:.2f} x the time")
        last = found
    peer(Corpus(folder / f"synth-{documents}"), 100, last or {})


def row(corpus: Path, workers: int) -> dict[str, Any]:
    """Mine in a process of its own and watch its memory."""
    with tempfile.TemporaryDirectory(dir=corpus.parent) as out:
        command = [sys.executable, __file__, "--workers", str(workers), "--child", str(corpus), f"{out}/triplets"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        watch = Watch(child.pid)
        answer, _ = child.communicate()
        found = {**json.loads(answer), "peak": watch.stop()}
    print(
        f"{corpus.name}: {found['documents']:,} documents, {found['triplets']:,} triplets in {found['seconds']:.0f} s "
        f"({found['triplets'] / found['seconds']:,.0f} a second), peak {found['peak'] / 1e9:.2f} GB, "
        f"{found['cpu']:.0f} s of processor time with {workers} workers"
    )
    for what, seconds in found["stages"].items():
        print(f"  {seconds:7.1f} s  {what}")
    return found


def timed(corpus: Path, out: Path, workers: int) -> dict[str, Any]:
    stages: dict[str, float] = {}
    begun = last = time.monotonic()

    def note(_done: int, _total: int | None, what: str) -> None:
        nonlocal last
        now = time.monotonic()
        stages[what] = stages.get(what, 0.0) + now - last
        last = now

    opened = Corpus(corpus)
    settings = recipe("sound", {"mine": {"per_document": PER_DOCUMENT, "spans_per_document": SPANS}}).mine
    counts = mine(opened, settings, out, team=Team("processes" if workers > 1 else "inline", workers, None, note))
    triplets = sum(sum(splits.values()) for splits in counts.values())
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in spent)
    seconds = time.monotonic() - begun
    return {"documents": len(opened), "triplets": triplets, "seconds": seconds, "cpu": cpu, "stages": stages}


class Watch:
    """The most memory that a process and its children held together; pages that they share count once."""

    def __init__(self, pid: int) -> None:
        self.pid, self.peak, self.over = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()

    def _look(self) -> None:
        while not self.over.wait(0.5):
            self.peak = max(self.peak, sum(map(memory, tree(self.pid))))

    def stop(self) -> int:
        self.over.set()
        self.thread.join()
        return self.peak


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(path.parent.name))
    found = [pid]
    for each in found:
        found += children[each]
    return found


def memory(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def peer(corpus: Corpus, queries: int, ours: dict[str, Any]) -> None:
    """The published sampler on the first documents that have a positive; making its indexes is not counted."""
    sampler = Published(list(corpus))
    begun = time.process_time()
    tried, kept = sampler.run(queries)
    seconds = time.process_time() - begun
    rate = kept / seconds
    print(f"published sampler: {tried} triplets drawn for {queries} documents, {kept} pass the filters")
    print(f"  {rate:,.1f} triplets a second of processor time; ours {ours['triplets'] / ours['cpu']:,.0f}:", end=" ")
    print(
        f"{ours['triplets'] / ours['cpu'] / rate:,.0f} x; {ours['triplets']:,} would take {ours['triplets'] / rate / 3600:,.1f} h"
    )


class Published:
    """Everything in memory, and sets of documents for every query."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents, self.everyone = documents, set(range(len(documents)))
        self.by_set: dict[frozenset[str], set[int]] = defaultdict(set)
        self.by_author: dict[str, set[int]] = defaultdict(set)
        self.by_domain: dict[frozenset[str], set[int]] = defaultdict(set)
        for at, document in enumerate(documents):
            self.by_set[document.author_set].add(at)
            self.by_domain[fields(document)].add(at)
            for author in document.author_set:
                self.by_author[author].add(at)

    def run(self, queries: int) -> tuple[int, int]:
        """Triplets drawn, and those that pass the filters, of the first documents that have any."""
        draw, tried, kept, done = random.Random(7), 0, 0, 0
        for at, document in enumerate(self.documents):
            positives = list(self.by_set[document.author_set] - {at})
            if not positives or done == queries:
                continue
            known = set().union(*(self.by_author[author] for author in document.author_set))
            negatives = list((self.everyone - known) & self.by_domain[fields(document)])
            done += 1
            for _ in range(PER_DOCUMENT if negatives else 0):
                three = (at, draw.choice(positives), draw.choice(negatives))
                spans = [random_span(self.documents[each].text, draw) for each in three]
                tried += 1
                kept += not any(span_fault(span) for span in spans)
        return tried, kept


def fields(document: Document) -> frozenset[str]:
    return frozenset(map(field_of, document.domains))


def random_span(text: str, draw: random.Random) -> str:
    start, end = draw.choice(runs(sentences(text, "en", "published"), SENTENCES))
    return text[start:end]


if __name__ == "__main__":
    main()
