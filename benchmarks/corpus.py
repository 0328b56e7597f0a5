"""TEI → corpus, the whole stage: documents and megabytes a second of one core, memory at N and at 10 N, datatrove beside it.

    python benchmarks/corpus.py FOLDER_WITH_TEI [--documents 600] [--workers 2] [--peer 150]

The files of the folder are multiplied; in each copy the longer words change places, so that no two are versions of one
work. `idiograph corpus` runs as people run it, in a process of its own; seconds are those that the processor worked
for it and all its children (a busy machine does not change them), memory is the most that they held together.

datatrove does the same with its own parts where it has them (ftfy, the seven rules as a filter over words split once,
MinHash in its four steps, Parquet). It has no reader of TEI, no masking of citations and no detector of languages that
works offline: for these it is handed ours, so the ratio is that of the whole line and not of the rules alone, for which
see `benchmarks/filters.py`. Needs `pip install "datatrove[processing]"`; without it only our numbers are printed.
"""

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from filters import DOCUMENT_TWINS, single_filter

from idiograph.corpus.article import Article
from idiograph.corpus.citations import apply_citation_policy, mark_printed
from idiograph.corpus.clean import tidy_space, without_cover
from idiograph.corpus.tei import read_tei
from idiograph.text.language import identify

HAL = 778_000  # documents of the published corpus
WORD = re.compile(rb"(?<=[\s>])[a-z]{5,}(?=[\s.,;<])")  # in running text, not in tags or attributes
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "ARROW_NUM_THREADS", "POLARS_MAX_THREADS"), "1")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, nargs="?")
    arguments.add_argument("--documents", type=int, default=600, help="N; the second run has ten times as many.")
    arguments.add_argument("--workers", type=int, default=2, help="Of the runner `processes`; 0 leaves it out.")
    arguments.add_argument("--peer", type=int, default=150, help="Documents that datatrove is given; 0 leaves it out.")
    arguments.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.child:
        return print(json.dumps(datatrove_line(*given.child)))
    files = sorted(given.folder.glob("*.xml")) if given.folder else []
    if not files:
        return print("name a folder with TEI files: python benchmarks/corpus.py FOLDER")
    with tempfile.TemporaryDirectory() as work:
        if given.peer:
            beside(multiply(files, Path(work) / "peer", given.peer))
        few = multiply(files, Path(work) / "n", given.documents)
        many = multiply(files, Path(work) / "ten-n", 10 * given.documents)
        for runner, workers in (("inline", 1), ("processes", given.workers)):
            if workers:
                scale(report(few, runner, workers), report(many, runner, workers))
        grow(4 * given.documents, Path(work))
    return None


def multiply(files: list[Path], folder: Path, count: int) -> Path:
    """So many papers, each with its own authors and the longer words of all papers in another place."""
    folder.mkdir()
    originals = [path.read_bytes() for path in files]
    pool = sorted({word for data in originals for word in WORD.findall(data)})
    for number, data in enumerate(islice(cycle(originals), count)):
        shuffled = random.Random(number).sample(pool, len(pool))
        place = dict(zip(pool, shuffled, strict=True))
        varied = WORD.sub(lambda word, place=place: place[word[0]], data)
        name = folder / f"hal-{number:08d}.grobid.tei.xml"
        name.write_bytes(varied.replace(b"<surname>", b"<surname>N%d " % number))
    return folder


def report(tei: Path, runner: str, workers: int) -> dict[str, float]:
    """Run the stage as people do, and print how it went."""
    found = stage(str(tei), tei.parent, "--runner", runner, "--workers", str(workers))
    found["documents"], found["bytes"] = tally(tei)
    kept = json.loads(found.pop("answer"))["documents"]
    rate = found["documents"] / found["cpu"]
    print(
        f"{runner} ({workers}): {found['documents']:,} documents, {found['bytes'] / 1e6:,.0f} MB of TEI, {kept:,} kept; "
        f"{rate:.0f} documents/s and {found['bytes'] / 1e6 / found['cpu']:.1f} MB/s of a core, {found['wall']:.0f} s by "
        f"the clock; peak {found['peak'] / 1e6:.0f} MB",
        flush=True,
    )
    return found


def stage(source: str, work: Path, *options: str) -> dict[str, Any]:
    """`idiograph corpus`, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=work) as out:
        command = [sys.executable, "-m", "idiograph", "corpus", source, "-o", f"{out}/corpus", "--json"]
        return measured([*command, *options])


def grow(count: int, work: Path) -> None:
    """Memory alone, with more and shorter documents: what each of them costs shows only where there are many."""
    source = "synth:documents={0},authors={0},sentences=12"
    few, many = (stage(source.format(each), work)["peak"] for each in (count, 10 * count))
    each = (many - few) / (9 * count)
    print(
        f"memory with {count:,} and {10 * count:,} simulated documents: {few / 1e6:.0f} and {many / 1e6:.0f} MB, "
        f"{many / few:.2f} x; {each / 1e3:.1f} kB a document: {HAL:,} would take {(few + HAL * each) / 1e9:.1f} GB",
        flush=True,
    )


def scale(few: dict[str, float], many: dict[str, float]) -> None:
    """What ten times the input costs, and what all of HAL would."""
    seconds = (many["cpu"] - few["cpu"]) / (many["documents"] - few["documents"])
    print(
        f"  {many['documents'] / few['documents']:.0f} x the documents: {many['cpu'] / few['cpu']:.1f} x the work, "
        f"{many['peak'] / few['peak']:.2f} x the memory; {HAL:,} documents would take {HAL * seconds / 3600:.1f} hours "
        "of a core",
        flush=True,
    )


def beside(tei: Path) -> None:
    """datatrove on the same files, and ours again on these alone."""
    ours = stage(str(tei), tei.parent)
    with tempfile.TemporaryDirectory(dir=tei.parent) as out:
        try:
            theirs = measured([sys.executable, __file__, "--child", str(tei), f"{out}/theirs"])
        except subprocess.CalledProcessError:
            return print("datatrove did not run; pip install 'datatrove[processing]'")
    answer, count = json.loads(theirs["answer"]), tally(tei)[0]
    # Starting an interpreter and its libraries is not the work: what nothing costs is taken off on both sides.
    start, begin = idle("idiograph.corpus.corpus"), answer["imports"]
    mine, other = ours["cpu"] - start, theirs["cpu"] - begin
    kept = json.loads(ours["answer"])["documents"]
    print(
        f"datatrove: {count} documents, {answer['kept']} kept (ours {kept}); {count / other:.1f} documents/s of a core, "
        f"ours {count / mine:.1f}: {other / mine:.1f} x; {answer['borrowed']:.1f} of its {other:.1f} s are steps that it "
        f"borrows from us; peak {theirs['peak'] / 1e6:.0f} MB, ours {ours['peak'] / 1e6:.0f}",
        flush=True,
    )
    return None


def idle(module: str) -> float:
    """Processor seconds to start and to load a language model and the libraries."""
    code = f"import {module}; from idiograph.text.language import identify; identify('Nothing but this.')"
    return measured([sys.executable, "-c", code])["cpu"]


def tally(tei: Path) -> tuple[int, int]:
    sizes = [path.stat().st_size for path in tei.glob("*.xml")]
    return len(sizes), sum(sizes)


def measured(command: list[str]) -> dict[str, Any]:
    """Run to the end: what it said, processor and clock seconds, and the peak memory of the whole tree."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **ONE_THREAD}
    )
    peak = 0
    while True:
        peak = max(peak, sum(map(resident, tree(child.pid))))
        try:
            answer, _ = child.communicate(timeout=0.05)
            break
        except subprocess.TimeoutExpired:
            continue
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"answer": answer.decode(), "cpu": cpu, "wall": time.monotonic() - began, "peak": peak}


def tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        kids = [int(kid) for task in tasks for kid in (task / "children").read_text().split()]
    except OSError:
        return
    for kid in kids:
        yield from tree(kid)


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def datatrove_line(tei: Path, out: Path) -> dict[str, Any]:
    """The same stage in datatrove, in this process; how many documents it keeps, and processor seconds by part."""
    from datatrove.data import Document
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.formatters import FTFYFormatter
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter

    identify("Nothing but this.")
    config, steps = MinhashConfig(n_grams=3), [FTFYFormatter(), single_filter()(DOCUMENT_TWINS)]
    signatures, began = MinhashDedupSignature(str(out / "signatures"), config), time.process_time()
    borrowed = Stopwatch()

    def documents() -> Iterator[Document]:
        for path in sorted(tei.glob("*.xml")):
            with borrowed:
                article = read_tei(path.read_bytes())
            yield Document(text=article.text(), id=path.name, metadata=about(article))

    def placed(stream: Iterator[Document]) -> Iterator[Document]:
        for document in stream:
            with borrowed:
                document.text = tidy_space(
                    apply_citation_policy(mark_printed(tidy_space(without_cover(document.text))), "mask")
                )
                lang, _ = identify(document.text)
            if lang == document.metadata["lang"]:
                yield document

    ftfy, rules = steps
    drain(ParquetWriter(str(out / "all")).run(rules.run(placed(ftfy.run(documents())))))
    drain(signatures.run(ParquetReader(str(out / "all")).run()))
    for bucket in range(config.num_buckets):
        MinhashDedupBuckets(str(out / "signatures"), str(out / "buckets"), config=config).run(
            None, bucket, config.num_buckets
        )
    MinhashDedupCluster(str(out / "buckets"), str(out / "remove"), config=config).run(None, 0, 1)
    kept = MinhashDedupFilter(str(out / "remove")).run(ParquetReader(str(out / "all")).run())
    count = drain(ParquetWriter(str(out / "kept")).run(kept))
    return {"kept": count, "imports": began, "borrowed": borrowed.seconds}


class Stopwatch:
    """Processor seconds spent inside its blocks."""

    seconds = 0.0

    def __enter__(self) -> None:
        self.began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self.began


def about(article: Article) -> dict[str, Any]:
    names = [author.name for author in article.authors]
    return {"title": article.title, "lang": article.lang or "en", "authors": names, "year": article.year}


def drain(stream: Any) -> int:
    return sum(1 for _ in stream or ())


if __name__ == "__main__":
    main()
