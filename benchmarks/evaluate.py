"""What an evaluation costs as it grows: seconds, memory, and whether the report is the one of the definition.

    python benchmarks/evaluate.py data/arxiv --split train --cache cache/ --sizes 1000x2000 2000x4000
    python benchmarks/evaluate.py data/arxiv --split train --cache cache/ --sizes 14000x28000 --part 1000 --seconds 500
    python benchmarks/evaluate.py made --cache cache/ --sizes 14000x28000 --part 1000

TRIPLETS is a folder of `idiograph mine`, or `made`: vectors as in benchmarks/maxsim.py, whose scores spread as those of real
texts, so that no text has to be read; two passages of a hundred are by the anchor's author-set. A size is so many of its anchors
against so many passages of its pool, in the order of the triplets. Texts are read once, in pieces of a thousand, which the cache
keeps. One thread; CPU seconds of the process. `--exact` also runs everything in 32 bits, so that the reports can be compared.
With `--part` the anchors are taken so many at a time, and what is done is noted in the cache: given again, the command goes on;
`--seconds` makes it stop after the part in which the time is up.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from idiograph.evaluate.retrieval import evaluate_ranker, full_precision_blocks
from idiograph.loading import load_ranker
from idiograph.mining.benchmark import Benchmark, open_benchmark
from idiograph.neural.maxsim.pruned import score_rows_pruned
from idiograph.recipe import EvaluateRecipe
from idiograph.style.model import Style
from idiograph.style.patches import Patches, join_patches
from idiograph.style.tokens import Tokens
from idiograph.types import Span

PIECE = 1000
RECIPE = EvaluateRecipe(resamples=0)


class Stored:
    """An encoder that has read all texts before."""

    name, fingerprint = "stored", ""

    def __init__(self, patches, texts):
        self.patches, self.dim = patches, patches.vectors.shape[1]
        self.place = {text: at for at, text in enumerate(texts)}

    def tokenize(self, texts, keep):  # noqa: ARG002
        one = np.ones(1, bool)
        return [
            Tokens(np.array([self.place[t]]), np.zeros((1, 2), np.int64), np.zeros(1, np.int64), one) for t in texts
        ]

    def embed(self, tokens, patch, progress=None):  # noqa: ARG002
        return self.patches.take([int(t.ids[0]) for t in tokens])

    def published_words(self, ids):
        return np.arange(len(ids))


def cut_benchmark(benchmark, anchors, pool):
    """The first anchors and the first spans of the pool: a size is part of a larger one."""
    inside = (benchmark.triplets < (anchors, pool, pool)).all(axis=1)
    return Benchmark(benchmark.name, benchmark.anchors[:anchors], benchmark.pool[:pool], benchmark.triplets[inside])


def read_spans(style, spans, cache, kind):
    """The patches of some spans, from the cache as far as they are there."""
    parts = []
    for at in range(0, len(spans), PIECE):
        path = cache / f"{kind}{at // PIECE:03}.npz"
        if not path.exists() or len(np.load(path)["lengths"]) < len(spans[at : at + PIECE]):
            begun = time.process_time()
            patches = style.encode([span.text for span in spans[at : at + PIECE]])
            print(f"read {path.stem}: {time.process_time() - begun:.0f} s", flush=True)
            np.savez(path, vectors=patches.vectors, lengths=patches.lengths, chars=patches.chars)
        stored = Patches(**np.load(path))
        parts.append(stored.take(range(len(spans[at : at + PIECE]))))
    return join_patches(parts)


def invent_benchmark(anchors, pool):
    """A benchmark of texts that nobody wrote, and the ranker that has their vectors."""
    from maxsim import collection

    def span(kind, at):
        return Span(f"{kind}{at}", 0, 1, f"{kind} {at}", frozenset({f"writer {at % 50}"}))

    spans = [tuple(span(kind, at) for at in range(count)) for kind, count in (("a", anchors), ("p", pool))]
    rows = np.arange(anchors)
    triplets = np.stack([rows, rows % 50, (rows + 1) % 50], axis=1)
    patches = join_patches([collection(count, 41, 384, seed) for seed, count in enumerate((anchors, pool), 1)])
    texts = [one.text for side in spans for one in side]
    return Benchmark("made", *spans, triplets), Style(Stored(patches, texts), patch="ngram:3")


def stored_ranker(style, benchmark, cache):
    if isinstance(style.encoder, Stored):
        return style
    sides = [read_spans(style, spans, cache, kind) for kind, spans in (("a", benchmark.anchors), ("p", benchmark.pool))]
    texts = [span.text for span in (*benchmark.anchors, *benchmark.pool)]
    return Style(Stored(join_patches(sides), texts), patch=style.patch)


def time_run(run):
    wall, cpu = time.perf_counter(), time.process_time()
    report = run()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return report, time.process_time() - cpu, time.perf_counter() - wall, memory


def evaluate_whole(style, benchmark, cache, exact):
    stored = stored_ranker(style, benchmark, cache)
    for name, way in {"settled": score_rows_pruned, **({"32 bits": full_precision_blocks} if exact else {})}.items():
        report, cpu, wall, memory = time_run(lambda way=way: evaluate_ranker(stored, benchmark, RECIPE, pairs=way))
        values = " ".join(f"{row.measure} {row.value:.6f}" for row in report.rows)
        size = f"{len(benchmark.anchors)} × {len(benchmark.pool)}"
        print(f"{size:15}{name:8} {cpu:7.1f} s CPU {wall:7.1f} s wall, peak {memory:.2f} GB; {values}", flush=True)


def evaluate_in_parts(style, benchmark, cache, part, seconds):
    """The same, a part of the anchors at a time."""
    begun, log = time.perf_counter(), cache / f"parts-{len(benchmark.anchors)}x{len(benchmark.pool)}-{part}.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    stored = stored_ranker(style, benchmark, cache)
    for first in range(len(rows) * part, len(benchmark.anchors), part):
        if time.perf_counter() - begun > seconds:
            break
        here = (benchmark.triplets[:, 0] >= first) & (benchmark.triplets[:, 0] < first + part)
        some = Benchmark(
            "", benchmark.anchors[first : first + part], benchmark.pool, benchmark.triplets[here] - (first, 0, 0)
        )
        report, cpu, wall, memory = time_run(
            lambda some=some: evaluate_ranker(stored, some, RECIPE, pairs=score_rows_pruned)
        )
        row = {"first": first, "cpu": cpu, "wall": wall, "memory": memory, "anchors": report.anchors}
        rows.append(row | {each.measure: each.value for each in report.rows})
        with log.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(json.dumps(rows[-1]), flush=True)
    cpu, covered = sum(row["cpu"] for row in rows), min(len(rows) * part, len(benchmark.anchors))
    answered = [row["anchors"] for row in rows]
    value = float(np.average([row["R@20"] for row in rows], weights=answered))
    print(f"{covered} of {len(benchmark.anchors)} × {len(benchmark.pool)}: {cpu:.0f} s CPU, R@20 {value:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("triplets", type=Path)
    parser.add_argument("--model", default="default@ngram:3")
    parser.add_argument("--split", default="test")
    parser.add_argument("--config", default="base-4")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sizes", nargs="+", default=["1000x2000", "2000x4000"])
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--part", type=int)
    parser.add_argument("--seconds", type=float, default=1e9)
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.cache.mkdir(parents=True, exist_ok=True)
    invented = str(args.triplets) == "made"
    if not invented:
        style, every = load_ranker(args.model), open_benchmark(args.triplets, args.split, args.config)
    with threadpool_limits(1):
        for size in args.sizes:
            anchors, pool = map(int, size.split("x"))
            if invented:
                benchmark, style = invent_benchmark(anchors, pool)
            else:
                benchmark = cut_benchmark(every, anchors, pool)
            if args.part:
                evaluate_in_parts(style, benchmark, args.cache, args.part, args.seconds)
            else:
                evaluate_whole(style, benchmark, args.cache, args.exact)


if __name__ == "__main__":
    main()
