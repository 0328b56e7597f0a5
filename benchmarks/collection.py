"""The passages that searches are measured on: real ones, and as many more as are asked for, made from real ones.

Real passages of corpora, or of the built-in essays, are embedded once and kept. Further passages: half of the patches of a
real one are replaced by patches of another of the same corpus, and noise of a third of a unit is added to each.
"""

import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

K, NOISE, BLOCK = 100, 0.35, 500
KEPT = Path(tempfile.gettempdir()) / "idiograph-bench" / "real.npz"


def real_vectors(
    corpora: list[Path], kept: Path, count: int, patch: str = "ngram:3", model: str = "minilm"
) -> dict[str, np.ndarray]:
    """Patches of real passages: `v` (patches, d), `n` (patches of each passage), `source` (corpus of each passage)."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, **embedded(corpora, count, patch, model))
    return dict(np.load(kept))


def drawn(corpora: list[Path], count: int) -> Iterator[list[str]]:
    """Passages of each corpus, or of the built-in essays."""
    from idiograph.corpus.corpus import Corpus
    from idiograph.index.passages import index_passages
    from idiograph.recipe import IndexRecipe
    from idiograph.synth.anthology import anthology

    sources = [Corpus(folder) for folder in corpora] or [anthology()]
    share = count // len(sources)
    for at, documents in enumerate(sources):
        found = (p.text for d in documents for p in index_passages(d, IndexRecipe(passages_per_document=8)))
        texts = list(islice(found, 4 * share))
        yield [texts[i] for i in np.random.default_rng(at).permutation(len(texts))[:share]]


def embedded(corpora: list[Path], count: int, patch: str, model: str) -> dict[str, np.ndarray]:
    from idiograph import load

    style, found = load(model, patch=patch), []
    for at, texts in enumerate(drawn(corpora, count)):
        for begin in range(0, len(texts), 250):
            patches = style.encode(texts[begin : begin + 250])
            found.append((patches.vectors.astype(np.float16), patches.lengths, np.full(len(patches), at)))
            print(f"embedded {begin + len(patches)} of {len(texts)} passages of source {at + 1}", flush=True)
    v, n, source = (np.concatenate(column) for column in zip(*found, strict=True))
    return {"v": v, "n": n, "source": source}


def split(
    real: dict[str, np.ndarray], queries: int, most: int | None = None
) -> tuple[list[np.ndarray], list[tuple[np.ndarray, int]]]:
    """Questions, and the passages of the collection with their corpus; `most` patches of each at most."""
    ends = np.cumsum(real["n"])
    spans = [real["v"][a:b][:most].astype(np.float32) for a, b in zip(ends - real["n"], ends, strict=True)]
    order = np.random.default_rng(1).permutation(len(spans))
    base = [(spans[i], int(real["source"][i])) for i in order[queries:]]
    return [spans[i] for i in order[:queries]], base


def collection(base: list[tuple[np.ndarray, int]], count: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(2)
    by_source: dict[int, list[np.ndarray]] = {}
    for span, source in base:
        by_source.setdefault(source, []).append(span)
    for at in range(count):
        if at < len(base):
            yield base[at][0]
            continue
        span, source = base[random.integers(len(base))]
        other = by_source[source][random.integers(len(by_source[source]))]
        swap = random.random(len(span)) < 0.5
        mixed = np.where(swap[:, None], other[random.integers(0, len(other), len(span))], span)
        mixed = mixed + random.standard_normal(mixed.shape, np.float32) * np.float32(NOISE / np.sqrt(mixed.shape[1]))
        yield mixed / np.linalg.norm(mixed, axis=1, keepdims=True)


def write_collection(base: list[tuple[np.ndarray, int]], count: int, questions: list[np.ndarray], room: Path) -> None:
    """Put the collection and the questions where every contender reads them: 16-bit numbers, lengths."""
    lengths = []
    with (room / "vectors.f16").open("wb") as file:
        for span in collection(base, count):
            span.astype("<f2").tofile(file)
            lengths.append(len(span))
    np.save(room / "lengths.npy", np.array(lengths))
    np.savez(room / "questions.npz", *[q.astype(np.float16) for q in questions])


def opened(room: Path) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    lengths, given = np.load(room / "lengths.npy"), np.load(room / "questions.npz")
    questions = [given[name].astype(np.float32) for name in given.files]
    vectors = np.memmap(room / "vectors.f16", "<f2", "r").reshape(-1, questions[0].shape[1])
    return vectors, lengths, questions


def blocks(room: Path, size: int = BLOCK) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """(number of the first passage, patches, lengths), some passages at a time."""
    vectors, lengths, _ = opened(room)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    for at in range(0, len(lengths), size):
        some = lengths[at : at + size]
        yield at, vectors[starts[at] : starts[at + len(some)]], some


def truth(room: Path) -> np.ndarray:
    """The K nearest of every question, by MaxSim in 32 bits over everything."""
    _, lengths, questions = opened(room)
    asked, sizes = np.concatenate(questions), np.array([len(q) for q in questions])
    scores = np.empty((len(questions), len(lengths)), np.float32)
    for at, vectors, some in blocks(room, 100):
        best = np.maximum.reduceat(asked @ vectors.astype(np.float32).T, np.cumsum(some) - some, axis=1)
        scores[:, at : at + len(some)] = np.add.reduceat(best, np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]
    return np.argsort(-scores, axis=1, kind="stable")[:, :K]
