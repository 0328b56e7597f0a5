"""Exact all-pairs MaxSim on the CPU: ours and the peers that are installed, on the same ragged texts, in one run.

    python benchmarks/maxsim.py                  # d = 128, 384, 768
    python benchmarks/maxsim.py --scale 14000 28000   # a part of a corpus-sized run, and what all of it would take

One thread each. Prints useful GFLOP/s (no padding counted) by the CPU seconds of the process, the best of several rounds, in
which everybody takes turns; the ratio to the padded product of sentence-transformers; the distance from double precision; and
how many of the ten best texts are the right ones. `idiograph nearest` finds them in 8 bits and settles them in 32: "again" is
the share of the pairs that it scores twice, which depends on how far scores are apart. The made-up texts have the spread of
real ones (untrained MiniLM at ngram:3 on 4-sentence abstracts: 0.069 around the mean of an anchor; idiograph-small: 0.10).
maxsim-cpu 0.1.0 is left out: its wheel links no BLAS here, ran at 2 GFLOP/s and gave wrong scores.
"""

import argparse
import resource
import time

import numpy as np
import torch
from sentence_transformers.util.similarity import maxsim as padded_product
from threadpoolctl import threadpool_limits

from idiograph.neural.maxsim.pruned import nearest_rows
from idiograph.style.patches import Patches
from idiograph.style.score import maxsim
from idiograph.style.stream import score_rows

SHAPES = (
    (128, 52, 64, 2000),
    (384, 45, 64, 2000),
    (384, 133, 32, 500),
    (768, 60, 32, 1000),
)  # d, patches, anchors, texts
HEAD = 10
THEMES, STRENGTH = 16, 0.22  # what texts are about, and how much that shows in each patch


def collection(texts, mean, dim, seed):
    """Texts whose patches have something in common, as those of one language do: a common part, themes, and their own."""
    random, common = np.random.default_rng(seed), np.random.default_rng(0)
    lengths = np.clip(random.normal(mean, mean / 4, texts), mean // 3, 2 * mean).astype(np.int64)
    vectors = random.standard_normal((int(lengths.sum()), dim), dtype=np.float32)
    shared_by_all = common.standard_normal(dim, dtype=np.float32)
    themes = STRENGTH * common.standard_normal((THEMES, dim), dtype=np.float32)
    own = random.standard_normal((texts, THEMES), dtype=np.float32) @ themes
    ends = np.cumsum(lengths)
    for begin, end, mine in zip(ends - lengths, ends, own, strict=True):  # in place: there may be gigabytes of it
        some = vectors[begin:end]
        some += shared_by_all + mine
        some /= np.linalg.norm(some, axis=1, keepdims=True)
    return Patches(vectors, lengths, np.zeros((len(vectors), 2), np.int64))


def separate(patches):
    return np.split(patches.vectors, patches.starts[1:])


def one_product(a, b):
    """What numpy does with one product at a time and `reduceat` along the texts."""
    found = [np.maximum.reduceat(left @ b.vectors.T, b.starts, axis=1).sum(axis=0) for left in separate(a)]
    return np.stack(found)


def with_sentence_transformers(a, b):
    left, right = ([torch.from_numpy(x) for x in separate(side)] for side in (a, b))
    return padded_product(left, right).numpy()


def contenders(a, b):
    """name → a function that gives all scores."""
    found = {
        "sentence-transformers (padded)": lambda: with_sentence_transformers(a, b),
        "numpy product, reduceat": lambda: one_product(a, b),
        "idiograph score.maxsim": lambda: maxsim(a, b),
        "idiograph stream.rows": lambda: np.concatenate([scores for _, scores in score_rows(a, b, mean=False)]),
    }
    return found | late_interaction_kernels(a, b) | numkong(a, b)


def late_interaction_kernels(a, b):
    try:
        from late_interaction_kernels.reference import maxsim_reference as theirs  # its kernels need a GPU
    except ImportError:
        return {}
    from idiograph.neural.maxsim.padded import pad_ragged

    (left, left_mask), (right, right_mask) = pad_ragged(a), pad_ragged(b)

    def scores():
        parts = [theirs(left[at : at + 8], right, left_mask[at : at + 8], right_mask) for at in range(0, len(a), 8)]
        return torch.cat(parts).numpy()

    return {"late-interaction-kernels": scores}


def numkong(a, b):
    try:
        import numkong as nk
    except ImportError:
        return {}
    left, right = ([nk.maxsim_pack(x, dtype="f32") for x in separate(side)] for side in (a, b))  # packing is not timed
    sizes = a.lengths[:, None]  # it sums angular distances, 1 − cosine
    return {"numkong packed": lambda: sizes - np.array([[nk.maxsim_packed(x, y) for y in right] for x in left])}


def in_double(a, b):
    right = b.vectors.astype(np.float64)
    found = [np.maximum.reduceat(x.astype(np.float64) @ right.T, b.starts, axis=1).sum(axis=0) for x in separate(a)]
    return np.stack(found)


def seconds(run):
    begun = time.process_time()
    result = run()
    return time.process_time() - begun, result


def head(scores):
    return np.argsort(-scores, axis=1, kind="stable")[:, :HEAD]


def shared(first, second):
    return float(np.mean([len(set(x) & set(y)) / HEAD for x, y in zip(first, second, strict=True)]))


def compare(dim, mean, anchors, texts, rounds):
    a, b = collection(anchors, mean, dim, 1), collection(texts, mean, dim, 2)
    work = 2e-9 * len(a.vectors) * len(b.vectors) * dim
    truth = in_double(a, b)
    runs = contenders(a, b)
    for k in (HEAD, 10 * HEAD):
        runs[f"idiograph nearest, k = {k}"] = lambda k=k: nearest_rows(a, b, k, mean=False, device="cpu")
    best, results = dict.fromkeys(runs, float("inf")), {}
    for _ in range(rounds):
        for name, run in runs.items():
            took, results[name] = seconds(run)
            best[name] = min(best[name], took)
    padded = best["sentence-transformers (padded)"]
    spread = (truth / a.lengths[:, None]).std(axis=1).mean()
    print(f"\nd = {dim}, {mean} patches a text, {anchors} × {texts} texts, {work:.0f} GFLOP, spread {spread:.3f}")
    print(f"{'':32}{'GFLOP/s':>9}{'× padded':>10}{'off by':>10}{'ten best':>10}{'again':>8}")
    for name, took in sorted(best.items(), key=lambda item: -item[1]):
        found = results[name]
        whole = isinstance(found, np.ndarray)
        error, right = judged(found if whole else found.scores, head(found) if whole else found.which, truth)
        again = "" if whole else f"{100 * found.rescored / truth.size:7.1f}%"
        print(f"{name:32}{work / took:9.0f}{padded / took:10.1f}{error:10.0e}{100 * right:9.1f}%{again}", flush=True)


def judged(scores, which, truth):
    """How far off scores are at most, and which part of the ten best is right."""
    exact = truth if scores.shape == truth.shape else -np.sort(-truth, axis=1)[:, : scores.shape[1]]
    return np.abs(scores / exact - 1).max(), shared(which[:, :HEAD], head(truth))


def scale(anchors, texts, part, mean=45, dim=384):
    """Some anchors of a corpus-sized run at 8 and at 32 bits; all of it is so many times as much."""
    a, b = collection(2 * part, mean, dim, 1), collection(texts, mean, dim, 2)
    print(f"\n{anchors} × {texts} texts, {mean} patches, d = {dim}: {part} and {2 * part} anchors of it")
    for name, run in {
        "nearest, k = 100": lambda some: nearest_rows(some, b, 100),
        "stream.rows": lambda some: sum(len(scores) for _, scores in score_rows(some, b)),
    }.items():
        for size in (part, 2 * part):
            some = a.take(np.arange(size))
            wall = time.perf_counter()
            took, _ = seconds(lambda some=some: run(some))
            wall = time.perf_counter() - wall
            speed = 2e-9 * len(some.vectors) * len(b.vectors) * dim / took
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            whole = took * anchors / size / 3600
            print(
                f"{name:20}{size:6} anchors {took:7.1f} s CPU {wall:7.1f} s wall {speed:5.0f} GFLOP/s, "
                f"peak {memory:.1f} GB; all: {whole:.1f} core-hours"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--scale", type=int, nargs=2, metavar=("ANCHORS", "TEXTS"))
    parser.add_argument("--part", type=int, default=45)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        if given.scale:
            scale(*given.scale, given.part)
            return
        for shape in SHAPES:
            compare(*shape, given.rounds)


if __name__ == "__main__":
    main()
