"""Which short description of a passage finds what MaxSim would choose? The comparison behind `answer/candidates.py`.

    python benchmarks/candidates.py [CORPUS…] [--vectors real.npz] [--passages 5000] [--queries 40]
    python benchmarks/candidates.py [CORPUS…] --sketches        the mean and its variants, and nothing else
    python benchmarks/candidates.py [CORPUS…] --bytes           what a passage takes at each grain, and nothing else

Passages are embedded, kept and multiplied as `benchmarks/collection.py` says. For each way: how
many of the 10, 20 and 100 nearest by exact MaxSim in 32 bits are among so many candidates, and what the ranking of all
passages costs. Also: what storing vectors in fewer bits or directions does to exact search itself.

mean      the mean of a passage's patches, scaled to unit length; "+ 0.03 log n": and so much for its number of patches
lists     k-means centres; a patch looks up its nearest ones and credits the passages that have a patch near them
centroid  MaxSim with every patch replaced by its centre
FDE       fixed-dimensional encodings: in each repetition random planes cut space into buckets, the patches of a bucket are
          averaged (an empty one takes the nearest patch), projected at random, and all is laid end to end
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from collection import KEPT, collection, drawn, real_vectors, split

DEPTHS, KS = (100, 200, 500, 1000, 2000), (10, 20, 100)
ROUNDS = 8
GRAINS, STORED = ("ngram:1", "auto", "ngram:2", "ngram:3", "word", "whole"), ("float16", "int8", "int4")


@dataclass(frozen=True)
class Bag:
    """Passages as patches end to end."""

    vectors: np.ndarray
    lengths: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum(self.lengths) - self.lengths

    def means(self) -> np.ndarray:
        return unit(np.add.reduceat(self.vectors, self.starts, axis=0))


def bag(spans: list[np.ndarray]) -> Bag:
    return Bag(np.concatenate(spans), np.array([len(s) for s in spans]))


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)


def exact(asked: list[np.ndarray], known: Bag) -> np.ndarray:
    return np.stack([np.maximum.reduceat(q @ known.vectors.T, known.starts, axis=1).mean(axis=0) for q in asked])


def whole_numbers(rows: np.ndarray, top: int) -> np.ndarray:
    scale = np.abs(rows).max(axis=1, keepdims=True) / top
    return np.rint(rows / scale) * scale


def k_means(rows: np.ndarray, count: int) -> np.ndarray:
    random = np.random.default_rng(3)
    sample = rows[random.choice(len(rows), min(len(rows), 40 * count), replace=False)]
    centres = sample[:count]
    for _ in range(ROUNDS):
        number, sums = nearest(sample, centres), np.zeros_like(centres)
        np.add.at(sums, number, sample)
        centres = np.where(np.bincount(number, minlength=count)[:, None] > 0, unit(sums), centres)
    return centres


def nearest(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.concatenate([np.argmax(rows[at : at + 8192] @ centres.T, axis=1) for at in range(0, len(rows), 8192)])


@dataclass(frozen=True)
class Lists:
    """For each centre the passages that have a patch near it."""

    centres: np.ndarray
    members: list[np.ndarray]
    count: int

    @classmethod
    def of(cls, known: Bag, centres: np.ndarray, codes: np.ndarray) -> "Lists":
        owner = np.repeat(np.arange(len(known.lengths)), known.lengths)
        members = [np.unique(owner[codes == c]) for c in range(len(centres))]
        return cls(centres, members, len(known.lengths))

    def scores(self, question: np.ndarray, probes: int) -> np.ndarray:
        total, best = np.zeros(self.count, np.float32), np.zeros(self.count, np.float32)
        for near in question @ self.centres.T:
            chosen = np.argpartition(-near, probes)[: probes + 1]
            ranked = chosen[np.argsort(near[chosen])]
            for centre in ranked[1:]:  # the nearest is written last
                best[self.members[centre]] = near[centre] - near[ranked[0]]
            total += best
            for centre in ranked[1:]:
                best[self.members[centre]] = 0
        return total


def encodings(known: Bag, repeats: int, bits: int, width: int, fill: bool) -> np.ndarray:
    """Fixed-dimensional encodings; those of questions are sums and have nothing to fill."""
    random, parts = np.random.default_rng(5), []
    owner, count = np.repeat(np.arange(len(known.lengths)), known.lengths), len(known.lengths)
    for _ in range(repeats):
        planes = random.standard_normal((known.vectors.shape[1], bits)).astype(np.float32)
        flat = (random.choice([-1, 1], (known.vectors.shape[1], width)) / np.sqrt(width)).astype(np.float32)
        sides, rows = known.vectors @ planes > 0, known.vectors @ flat
        bucket = owner * 2**bits + sides @ (1 << np.arange(bits))
        sums = np.zeros((count * 2**bits, width), np.float32)
        np.add.at(sums, bucket, rows)
        if fill:
            held = np.bincount(bucket, minlength=len(sums))
            sums /= np.maximum(held, 1)[:, None]
            sums[held == 0] = rows[nearest_sides(known, sides, np.flatnonzero(held == 0), bits)]
        parts.append(sums.reshape(count, -1))
    return np.concatenate(parts, axis=1)


def nearest_sides(known: Bag, sides: np.ndarray, empty: np.ndarray, bits: int) -> np.ndarray:
    """For each empty bucket the patch of its passage that lies on most of its sides."""
    found, starts = [], known.starts
    for at in empty:
        passage, number = divmod(int(at), 2**bits)
        start, wanted = int(starts[passage]), (number >> np.arange(bits)) & 1 == 1
        found.append(start + int((sides[start : start + known.lengths[passage]] == wanted).sum(axis=1).argmax()))
    return np.array(found, np.int64)


def shares(ranked: np.ndarray, right: np.ndarray, depth: int) -> str:
    counts = [np.mean([np.isin(r[:k], o[:depth]).mean() for r, o in zip(right, ranked, strict=True)]) for k in KS]
    return " / ".join(f"{c:.3f}" for c in counts)


def report(name: str, scores: Callable[[], np.ndarray], right: np.ndarray) -> None:
    begun = time.perf_counter()
    found = scores()
    took = (time.perf_counter() - begun) / len(found) * 1e3
    ranked = np.argsort(-found, axis=1, kind="stable")
    print(f"| {name} | {took:.1f} | " + " | ".join(shares(ranked, right, d) for d in DEPTHS) + " |", flush=True)


def stored(asked: list[np.ndarray], known: Bag, right: np.ndarray) -> None:
    """Exact search over vectors that lost something."""
    _, directions = np.linalg.eigh(known.vectors[::7].T @ known.vectors[::7])
    kept = {d: directions[:, ::-1][:, :d] for d in (256, 192, 128)}
    ways = {f"int{b}": (asked, whole_numbers(known.vectors, top)) for b, top in ((8, 127), (4, 7))}
    ways |= {
        f"{d} of {len(directions)}": ([unit(q @ p) for q in asked], unit(known.vectors @ p)) for d, p in kept.items()
    }
    print("\n| stored as | overlap with 32 bits, the nearest 10 / 20 / 100 |\n|---|---|")
    for name, (questions, vectors) in ways.items():
        ranked = np.argsort(-exact(questions, Bag(vectors, known.lengths)), axis=1, kind="stable")
        overlap = [np.mean([np.isin(r[:k], o[:k]).mean() for r, o in zip(right, ranked, strict=True)]) for k in KS]
        print(f"| {name} | " + " / ".join(f"{o:.3f}" for o in overlap) + " |", flush=True)


def sizes(corpora: list[Path], model: str, count: int = 200) -> None:
    """What a passage takes at each grain, sketch included, beside every token's vector in 16 bits."""
    from idiograph import load
    from idiograph.index.quantize import vector_width

    style = load(model)
    texts = [text for some in drawn(corpora, count) for text in some]
    dim, tokens = style.encoder.dim, style.at("ngram:1").encode(texts).lengths.mean()
    print(f"{style.encoder.name}: {len(texts)} passages, {tokens:.1f} tokens each, {dim} numbers a vector")
    print(f"every token in 16 bits: {2 * dim * tokens:.0f} bytes a passage\n")
    print("| grain | patches | " + " | ".join(f"{dtype}: bytes, share" for dtype in STORED) + " |")
    print("|---|---|" + "---|" * len(STORED))
    for patch in GRAINS:
        patches = style.at(patch).encode(texts).lengths.mean()
        each = [vector_width(dtype).bytes(dim) * patches + vector_width("int8").bytes(dim) for dtype in STORED]
        cells = " | ".join(f"{size:.0f}, {size / (2 * dim * tokens):.3f}" for size in each)
        print(f"| {patch} | {patches:.1f} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", type=Path)
    parser.add_argument("--vectors", type=Path, default=KEPT)
    parser.add_argument("--real", type=int, default=10_000)
    parser.add_argument("--passages", type=int, default=5000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--centres", type=int, default=1024)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--sketches", action="store_true")
    parser.add_argument("--bytes", action="store_true")
    args = parser.parse_args()
    if args.bytes:
        sizes(args.corpora, args.model)
        return
    asked, base = split(real_vectors(args.corpora, args.vectors, args.real), args.queries)
    known = bag(list(collection(base, args.passages)))
    truth = exact(asked, known)
    right = np.argsort(-truth, axis=1, kind="stable")[:, : max(KS)]
    print(f"{args.passages} passages, {known.lengths.mean():.1f} patches each, {args.queries} questions")
    if not args.sketches:
        stored(asked, known, right)
    print("\nShare of the nearest 10 / 20 / 100 among so many candidates:\n")
    print(f"| | ms | {' | '.join(map(str, DEPTHS))} |\n|---|---|{'---|' * len(DEPTHS)}")
    means, questions = known.means(), bag(asked)
    report("mean", lambda: questions.means() @ means.T, right)
    rounded = whole_numbers(means, 127)
    report("mean, int8", lambda: questions.means() @ rounded.T, right)
    for weight in (0.02, 0.03, 0.05, 0.1):
        ahead = weight * np.log(known.lengths)
        report(f"mean, int8 + {weight} log n", lambda a=ahead: questions.means() @ rounded.T + a, right)
    if not args.sketches:
        others(asked, known, right, args.centres)


def others(asked: list[np.ndarray], known: Bag, right: np.ndarray, count: int) -> None:
    """Lists, centroids and encodings."""
    questions = bag(asked)
    centres = k_means(known.vectors, count)
    codes = nearest(known.vectors, centres)
    lists = Lists.of(known, centres, codes)
    for probes in (4, 16, 32):
        ask = lambda p=probes: np.stack([lists.scores(q, p) for q in asked])  # noqa: E731
        report(f"lists, {count} centres, {probes} looked up", ask, right)
    report(f"centroid, {count}", lambda: exact(asked, Bag(centres[codes], known.lengths)), right)
    for shape in ((10, 3, 16), (20, 4, 16)):
        coded, wanted = encodings(known, *shape, fill=True), encodings(questions, *shape, fill=False)  # same seed
        report(f"FDE, {coded.shape[1]} numbers", lambda c=coded, w=wanted: w @ c.T, right)


if __name__ == "__main__":
    main()
