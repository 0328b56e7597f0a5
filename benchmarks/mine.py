"""Mining: triplets a second and peak memory, how both grow with the corpus, and the published way of sampling beside it.

    python benchmarks/mine.py [--documents 1000000] [--workers 2] [--work FOLDER]     a simulated corpus, and a tenth of it
    python benchmarks/mine.py --corpus FOLDER [--workers 2] [--peer 300]              a corpus of yours
    python benchmarks/mine.py --split FOLDER… [--documents 1000000]                   only who is in which split, and what is lost

The published sampler is written here as its description says: for every document the sets of allowed documents are made
from scratch, every span splits its document into sentences again, and the filters come last. It holds all texts in memory, so
it is run on the small corpus, on the first `--peer` documents that have a positive, with all the others to draw from. What
it would need for as many triplets as ours is an extrapolation: the sets of one document cost in proportion to the corpus, a
triplet always the same. Memory is that of the whole process tree; pages that processes share count once.
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

import numpy as np

from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.filters import span_fault
from idiograph.corpus.readers import read_documents
from idiograph.mining.catalog import document_splits
from idiograph.mining.coauthors import Bylines, coauthor_ties
from idiograph.mining.mine import mine_triplets
from idiograph.mining.plan import plan_mining
from idiograph.mining.split import UNDECIDED, split_groups
from idiograph.recipe import CorpusRecipe, make_recipe
from idiograph.runner import Workers
from idiograph.text.sentences import find_sentences, sentence_runs
from idiograph.types import Document, field_of

SENTENCES = 4
PER_DOCUMENT, SPANS = 2, 4
PUBLISHED = 100  # triplets a document in the published settings
AS_GIVEN = CorpusRecipe(citations="keep", filters=False, language="depositor", duplicates="keep")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--documents", type=int, default=1_000_000)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--corpus", type=Path)
    arguments.add_argument("--peer", type=int, default=300)
    arguments.add_argument(
        "--work", type=Path, help="Where simulated corpora are kept; a temporary folder if not given."
    )
    arguments.add_argument(
        "--split",
        nargs="*",
        type=Path,
        help="Corpora to split by groups and by people; then a made-up graph of co-authors.",
    )
    arguments.add_argument("--bylines", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.child:
        corpus, out = given.child
        print(json.dumps(timed(corpus, out, given.workers)))
    elif given.bylines:
        print(json.dumps(split_bylines(given.bylines)))
    elif given.split is not None:
        split_corpora(given.split)
        split_graphs(given.documents)
    elif given.corpus:
        ours = row(given.corpus, given.workers)
        compare(peer(Corpus(given.corpus), given.peer), ours)
    else:
        with tempfile.TemporaryDirectory() as folder:
            scale(given.documents, given.workers, given.work or Path(folder), given.peer)


def scale(documents: int, workers: int, folder: Path, queries: int) -> None:
    """The same kind of world at a tenth and at the whole size."""
    small, whole = (world(documents // share, folder) for share in (10, 1))
    tenth = row(small, workers)
    found = peer(Corpus(small), queries)
    compare(found, tenth)
    ours = row(whole, workers)
    times, growth = ours["seconds"] / tenth["seconds"], ours["cpu"] / tenth["cpu"]
    print(f"  ten times the documents: {times:.1f} x the time, {growth:.1f} x the processor time", end=", ")
    print(f"{ours['peak'] / tenth['peak']:.1f} x the memory")
    compare(found, ours)


def world(documents: int, folder: Path) -> Path:
    """A simulated corpus in which an author writes three papers; as it is, without cleaning."""
    corpus = folder / f"synth-{documents}"
    if not corpus.exists():
        spec = f"synth:documents={documents},authors={max(documents // 3, 1)},topics=50,coauthors=0.3"
        build_corpus(read_documents(spec), corpus, AS_GIVEN)
    return corpus


def row(corpus: Path, workers: int) -> dict[str, Any]:
    """Mine in a process of its own and watch its memory."""
    with tempfile.TemporaryDirectory(dir=corpus.absolute().parent) as out:
        command = [sys.executable, __file__, "--workers", str(workers), "--child", str(corpus), f"{out}/triplets"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        watch = Watch(child.pid)
        answer, _ = child.communicate()
        peak = watch.stop()
    if child.returncode:
        sys.exit(
            f"mining ended with status {child.returncode} (negative: killed by that signal) at {peak / 1e9:.2f} GB"
        )
    found = {**json.loads(answer), "peak": peak}
    print(
        f"{corpus.name}: {found['documents']:,} documents, {found['triplets']:,} triplets in {found['seconds']:.0f} s "
        f"({found['triplets'] / found['seconds']:,.0f} a second), peak {found['peak'] / 1e9:.2f} GB, "
        f"{found['cpu']:.0f} s of processor time with {workers} workers",
        flush=True,
    )
    for what, seconds in found["stages"].items():
        print(f"  {seconds:7.1f} s  {what}", flush=True)
    return found


def timed(corpus: Path, out: Path, workers: int) -> dict[str, Any]:
    stages: dict[str, float] = {}
    begun = last = time.monotonic()
    stage = "opening"

    def note(_done: int, _total: int | None, what: str) -> None:
        nonlocal last, stage
        now = time.monotonic()
        stages[stage] = stages.get(stage, 0.0) + now - last
        last, stage = now, what

    opened = Corpus(corpus)
    settings = make_recipe("sound", {"mine": {"per_document": PER_DOCUMENT, "spans_per_document": SPANS}}).mine
    counts = mine_triplets(
        opened, settings, out, workers=Workers("processes" if workers > 1 else "inline", workers, None, note)
    )
    note(0, None, "the end")
    triplets = sum(sum(splits.values()) for splits in counts.values())
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in spent)
    seconds = time.monotonic() - begun
    return {"documents": len(opened), "triplets": triplets, "seconds": seconds, "cpu": cpu, "stages": stages}


def split_corpora(folders: list[Path]) -> None:
    """What each way of splitting loses, and the share of documents by one, two, three and more people in every split."""
    for folder in folders:
        for by in ("people", "groups"):
            begun = time.process_time()
            plan = plan_mining(Corpus(folder), make_recipe("sound", {"mine": {"split": by}}).mine)
            print(f"{folder.name}, by {by}: {100 * plan.lost:.1f} % of {plan.asked:,} lost", end=", ")
            print(f"{time.process_time() - begun:.1f} CPU-seconds, peak {peak_memory():.2f} GB")
            for each in plan.sizes:
                shares = " ".join(f"{100 * share:5.1f}" for share in each.by_authors)
                print(f"  {each.name:5} {each.documents:8,} documents, by 1 2 3 4+ (%): {shares}", end="; ")
                print(f"{each.anchors:,} in recurring author-sets, {100 * each.single_anchors:.0f} % of them by one")


def split_graphs(documents: int) -> None:
    """A made-up graph of co-authors at a tenth and at the whole size, each in a process of its own."""
    for count in (documents // 10, documents):
        command = [sys.executable, __file__, "--bylines", str(count)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{count:,} made-up documents, {found['people']:,} people, {found['ties']:,} ties: ", end="")
        print(f"{100 * found['lost']:.1f} % lost, {found['cpu']:.0f} CPU-seconds, peak {found['peak']:.2f} GB", end=" ")
        print(f"({found['before']:.2f} GB before), documents by split: {found['documents']}", flush=True)


def split_bylines(documents: int) -> dict[str, Any]:
    """Split a made-up graph; what it took."""
    bylines = made_up_bylines(documents)
    before, begun = peak_memory(), time.process_time()
    split = split_groups(bylines, (0.8, 0.1, 0.1), np.full(bylines.count, UNDECIDED, dtype=np.int8))
    cpu, peak = time.process_time() - begun, peak_memory()
    where = document_splits(split[bylines.people], np.repeat(np.arange(documents), bylines.sizes), documents)
    sizes = np.bincount(where[where >= 0], minlength=3).tolist()
    found = {"people": bylines.count, "ties": coauthor_ties(bylines).nnz // 2, "lost": float((where < 0).mean())}
    return {**found, "cpu": cpu, "peak": peak, "before": before, "documents": sizes}


def made_up_bylines(documents: int) -> Bylines:
    """Documents of labs of twelve: a sixth of the co-authors are from elsewhere in the field, one in fifty from anywhere.

    Some people write much more than others, and one document in a thousand has between a hundred and a thousand authors.
    """
    draw, count = np.random.default_rng(7), 12 * (documents // 12)
    sizes = np.minimum(draw.geometric(0.28, documents), 40)
    large = draw.random(documents) < 0.001
    sizes[large] = draw.integers(100, 1000, int(large.sum()))
    lead = np.repeat((count * draw.random(documents) ** 1.5).astype(np.int64), sizes)
    lab, field = lead // 12 * 12 + draw.integers(0, 12, len(lead)), lead + draw.integers(-3000, 3000, len(lead))
    chance = draw.random(len(lead))
    people = np.select([chance < 0.02, chance < 0.19], [draw.integers(0, count, len(lead)), field % count], lab)
    people[np.cumsum(sizes) - 1] = lead[np.cumsum(sizes) - 1]
    owner = np.repeat(np.arange(documents), sizes)
    each = np.unique(owner * count + draw.permutation(count)[people])
    first = np.concatenate([[0], np.cumsum(np.bincount(each // count, minlength=documents))])
    return Bylines(first, (each % count).astype(np.int32), count)


def peak_memory() -> float:
    """In gigabytes, of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


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


def peer(corpus: Corpus, queries: int) -> dict[str, float]:
    """What the published sampler costs on some documents; making its indexes is not counted."""
    sampler = Published(list(corpus))
    found = sampler.run(queries)
    print(
        f"published sampler, {len(corpus):,} documents: {found['tried']:.0f} triplets drawn for {queries} documents",
        end=", ",
    )
    print(
        f"{found['kept']:.0f} pass the filters; {1000 * found['sets'] / queries:.2f} ms for the sets of a document",
        end=", ",
    )
    print(f"{1000 * found['draws'] / found['tried']:.2f} ms a triplet, all in processor time", flush=True)
    return {**found, "queries": queries, "documents": len(corpus)}


def compare(found: dict[str, float], ours: dict[str, Any]) -> None:
    """How long the published sampler would take for our triplets, at ours a document and at its own."""
    sets = found["sets"] / found["queries"] * ours["documents"] / found["documents"]
    draw = found["draws"] / found["kept"]
    for per_document in (PER_DOCUMENT, PUBLISHED):
        seconds = ours["triplets"] * (draw + sets / per_document * found["tried"] / found["kept"])
        print(
            f"  published, {per_document} a document: {seconds / 3600:,.2f} h of processor time for {ours['triplets']:,} "
            f"(extrapolated); ours {ours['cpu'] / 3600:.2f} h: {seconds / ours['cpu']:,.1f} x",
            flush=True,
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

    def run(self, queries: int) -> dict[str, float]:
        """Triplets drawn, those that pass the filters, and the seconds for sets and for draws."""
        draw, done = random.Random(7), 0
        found: dict[str, float] = {"tried": 0.0, "kept": 0.0, "sets": 0.0, "draws": 0.0}
        for at, document in enumerate(self.documents):
            if len(self.by_set[document.author_set]) < 2 or done == queries:
                continue
            done += 1
            begun = time.process_time()
            positives, negatives = self.allowed(at, document)
            drawing = time.process_time()
            found["sets"] += drawing - begun
            for _ in range(PER_DOCUMENT if negatives else 0):
                three = (at, draw.choice(positives), draw.choice(negatives))
                spans = [random_span(self.documents[each].text, draw) for each in three]
                found["tried"] += 1
                found["kept"] += not any(span_fault(span) for span in spans)
            found["draws"] += time.process_time() - drawing
        return found

    def allowed(self, at: int, document: Document) -> tuple[list[int], list[int]]:
        known = set().union(*(self.by_author[author] for author in document.author_set))
        negatives = (self.everyone - known) & self.by_domain[fields(document)]
        return list(self.by_set[document.author_set] - {at}), list(negatives)


def fields(document: Document) -> frozenset[str]:
    return frozenset(map(field_of, document.domains))


def random_span(text: str, draw: random.Random) -> str:
    start, end = draw.choice(sentence_runs(find_sentences(text, "en", "published"), SENTENCES))
    return text[start:end]


if __name__ == "__main__":
    main()
