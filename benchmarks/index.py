"""Search over an index, against the peers: recall of exact MaxSim, time, bytes, memory, and how each grows.

    python benchmarks/index.py [CORPUS…] [--vectors real.npz] [--sizes 2000 10000] [--plaid-python PYTHON]

Real passages of the corpora, or of the built-in essays, are embedded once (`--real` of them, kept in `--vectors`). Some
are the questions. The rest is the collection; where more is asked for, further passages are made from real ones: half of
the patches of a passage are replaced by patches of another passage of the same corpus, and noise of a third of a unit is
added to each. Every contender runs in a process of its own on the same numbers and threads, and is stopped after
`--patience` seconds. Truth is MaxSim in 32 bits over everything. fast-plaid is built for one version of torch: name a Python
that has both.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

K, NOISE, BLOCK = 100, 0.35, 500
KEPT = Path(tempfile.gettempdir()) / "idiograph-bench" / "real.npz"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "LANCE_CPU_THREADS")
Search = Callable[[np.ndarray, int], list[int]]
Contender = tuple[float, dict[str, Search], Path]  # seconds to build, ways to search, what lies on disk


def real_vectors(corpora: list[Path], kept: Path, count: int, patch: str = "ngram:3") -> dict[str, np.ndarray]:
    """Patches of real passages: `v` (patches, d), `n` (patches of each passage), `source` (corpus of each passage)."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, **embedded(corpora, count, patch))
    return dict(np.load(kept))


def embedded(corpora: list[Path], count: int, patch: str) -> dict[str, np.ndarray]:
    from idiograph import load
    from idiograph.answer.passages import passages
    from idiograph.corpus.anthology import anthology
    from idiograph.corpus.documents import Corpus
    from idiograph.recipe import IndexRecipe

    sources = [Corpus(folder) for folder in corpora] or [anthology()]
    style, found, share = load(patch=patch), [], count // len(sources)
    for at, documents in enumerate(sources):
        texts = [p.text for d in documents for p in passages(d, IndexRecipe(spans_per_document=8))][: 4 * share]
        chosen = np.random.default_rng(at).permutation(len(texts))[:share]
        for begin in range(0, len(chosen), 250):
            patches = style.encode([texts[i] for i in chosen[begin : begin + 250]])
            found.append((patches.vectors.astype(np.float16), patches.lengths, np.full(len(patches), at)))
            print(f"embedded {begin + len(patches)} of {len(chosen)} passages of source {at + 1}", flush=True)
    v, n, source = (np.concatenate(column) for column in zip(*found, strict=True))
    return {"v": v, "n": n, "source": source}


def split(real: dict[str, np.ndarray], queries: int) -> tuple[list[np.ndarray], list[tuple[np.ndarray, int]]]:
    """Questions, and the passages of the collection with their corpus."""
    ends = np.cumsum(real["n"])
    spans = [real["v"][a:b].astype(np.float32) for a, b in zip(ends - real["n"], ends, strict=True)]
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


def idiograph(room: Path) -> Contender:
    """Ours: packed vectors in LanceDB, candidates from means, exact at the end."""
    import pyarrow as pa

    from idiograph.answer.build import prepared, sealed, write
    from idiograph.answer.compact import pack
    from idiograph.answer.index import Index
    from idiograph.answer.passages import Passage
    from idiograph.answer.spool import WRITTEN, Spool, batch
    from idiograph.recipe import IndexRecipe
    from idiograph.style.model import Style
    from idiograph.style.patches import Patches

    dim = opened(room)[2][0].shape[1]
    recipe, begun = IndexRecipe(), time.perf_counter()
    style: Any = Style(Given(dim), patch="ngram:3")  # type: ignore[arg-type]
    about = {
        "style": style.fingerprint,
        "model": "given",
        "source": "",
        "preset": "sound",
        "recipe": recipe.model_dump(),
    }
    with prepared(room / "idiograph", True, None) as (shelf, place):
        spool = Spool(place / "passages.arrow", dim, recipe.dtype)
        with pa.OSFile(str(spool.path), "wb") as sink, pa.ipc.new_file(sink, WRITTEN) as writer:
            for at, vectors, some in blocks(room):
                patches = Patches(vectors.astype(np.float32), some, np.zeros((len(vectors), 2), np.int64))
                found = [
                    Passage(f"{n:09d}", f"{n:09d}", "", "", (), (), (), None, "") for n in range(at, at + len(some))
                ]
                writer.write(batch(found, pack(patches, recipe.dtype)))
                spool.ids += [p.id for p in found]
        shelf.create({})
        write(shelf, spool, recipe, {}, about)
        sealed(Path(shelf.where), recipe, about, {})
    took = time.perf_counter() - begun
    index = Index.open(room / "idiograph", style)

    def ask(question: np.ndarray, k: int, **how: Any) -> list[int]:
        one = Patches(question, np.array([len(question)]), np.zeros((len(question), 2), np.int64))
        return index.nearest_to(one, k, **how)[0][0].tolist()

    def in_memory(question: np.ndarray, k: int, **how: Any) -> list[int]:
        index.load()
        return ask(question, k, **how)

    ways: dict[str, Search] = {f"depth {d}, on disk": lambda q, k, d=d: ask(q, k, depth=d) for d in (500, 1000, 2000)}
    ways |= {f"depth {d}, in memory": lambda q, k, d=d: in_memory(q, k, depth=d) for d in (500, 1000, 2000, 4000)}
    ways["default depth, in memory"] = in_memory
    ways["exact"] = lambda q, k: in_memory(q, k, exact=True)
    return took, ways, room / "idiograph"


class Given:
    """Stands for the model: the vectors are there already."""

    name, fingerprint = "given", "given"

    def __init__(self, dim: int) -> None:
        self.dim = dim


def lance(room: Path, name: str, index: bool) -> Contender:
    import lancedb
    import pyarrow as pa

    dim = opened(room)[2][0].shape[1]
    shape = pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.list_(pa.float32(), dim)))])

    def rows() -> Iterator[pa.RecordBatch]:
        for at, vectors, some in blocks(room):
            inner = pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), dim)
            offsets = pa.array(np.concatenate([[0], np.cumsum(some)]), pa.int32())
            column = pa.ListArray.from_arrays(offsets, inner)
            yield pa.record_batch([pa.array(range(at, at + len(some)), pa.int64()), column], schema=shape)

    begun = time.perf_counter()
    table = lancedb.connect(str(room / name)).create_table("spans", rows(), schema=shape, mode="overwrite")
    if index:
        table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_PQ")
    took = time.perf_counter() - begun

    def ask(question: np.ndarray, k: int, probes: int = 0, refine: int = 0) -> list[int]:
        query = table.search(question).distance_type("cosine").limit(k).select(["id"])
        query = query.nprobes(probes).refine_factor(refine) if index else query
        return query.to_arrow()["id"].to_pylist()

    if not index:
        return took, {"flat": ask}, room / name
    grid = ((20, 5), (50, 20))
    return took, {f"probes {p}, refine {r}": lambda q, k, p=p, r=r: ask(q, k, p, r) for p, r in grid}, room / name


def lancedb_flat(room: Path) -> Contender:
    """LanceDB's own multivector search, over everything."""
    return lance(room, "lancedb_flat", index=False)


def lancedb_ivf(room: Path) -> Contender:
    """LanceDB's own multivector search, over its IVF_PQ index."""
    return lance(room, "lancedb_ivf", index=True)


def qdrant(room: Path, name: str, indexed: bool) -> Contender:
    import qdrant_edge as q

    dim, begun = opened(room)[2][0].shape[1], time.perf_counter()
    multi = q.MultiVectorConfig(q.MultiVectorComparator.MaxSim)
    vectors = q.EdgeVectorParams(
        dim, q.Distance.Dot, multivector_config=multi, datatype=q.VectorStorageDatatype.Float16
    )
    threshold = 1 if indexed else 10**9
    optimizers, threads = q.EdgeOptimizersConfig(indexing_threshold=threshold), int(os.environ["OMP_NUM_THREADS"])
    config = q.EdgeConfig(vectors=vectors, optimizers=optimizers, max_search_threads=threads)
    (room / name).mkdir()
    shard = q.EdgeShard.create(str(room / name), config)
    for at, block, some in blocks(room, 100):
        parts = np.split(block.astype(np.float32), np.cumsum(some)[:-1])
        points = [q.Point(at + n, part.tolist()) for n, part in enumerate(parts)]
        shard.update(q.UpdateOperation.upsert_points(points))
    if indexed:
        shard.optimize()
    took = time.perf_counter() - begun

    def ask(question: np.ndarray, k: int, ef: int | None = None) -> list[int]:
        params = q.SearchParams(hnsw_ef=ef, exact=ef is None)
        request = q.QueryRequest(limit=k, query=q.Query.Nearest(question.tolist()), params=params)
        return [int(p.id) for p in shard.query(request)]

    if not indexed:
        return took, {"exact": ask}, room / name
    return took, {f"HNSW ef {ef}": lambda x, k, ef=ef: ask(x, k, ef) for ef in (128, 512)}, room / name


def qdrant_exact(room: Path) -> Contender:
    """qdrant-edge, over everything."""
    return qdrant(room, "qdrant_exact", indexed=False)


def qdrant_hnsw(room: Path) -> Contender:
    """qdrant-edge, over its HNSW graph."""
    return qdrant(room, "qdrant_hnsw", indexed=True)


def fast_plaid(room: Path) -> Contender:
    """fast-plaid: centroids, 4-bit residuals."""
    import torch
    from fast_plaid import search

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    vectors, lengths, _ = opened(room)
    begun = time.perf_counter()
    parts = list(torch.from_numpy(np.array(vectors)).split(lengths.tolist()))
    plaid = search.FastPlaid(index=str(room / "fast_plaid"), device="cpu")
    plaid.create(documents_embeddings=parts)
    took = time.perf_counter() - begun

    def ask(question: np.ndarray, k: int, full: int, probes: int) -> list[int]:
        asked = torch.from_numpy(question)[None]
        found = plaid.search(asked, top_k=k, n_full_scores=full, n_ivf_probe=probes, show_progress=False)
        return [at for at, _ in found[0]]

    grid = ((1024, 8), (4096, 8), (4096, 32), (16384, 32))
    return took, {f"full {f}, probes {p}": lambda q, k, f=f, p=p: ask(q, k, f, p) for f, p in grid}, room / "fast_plaid"


CONTENDERS: dict[str, Callable[[Path], Contender]] = {
    "idiograph": idiograph,
    "qdrant-edge exact": qdrant_exact,
    "fast-plaid": fast_plaid,
    "lancedb flat": lancedb_flat,
    "qdrant-edge HNSW": qdrant_hnsw,
    "lancedb IVF_PQ": lancedb_ivf,
}


def compete(name: str, room: Path, patience: float) -> None:
    """The life of a contender's process: build, search, print a line of JSON for each way to search."""
    begun = time.perf_counter()
    took, ways, disk = CONTENDERS[name](room)
    questions = opened(room)[2]
    for way, ask in ways.items():
        ask(questions[0], K)
        times, found = [], []
        for question in questions:
            start = time.perf_counter()
            found.append(ask(question, K))
            times.append(time.perf_counter() - start)
            if time.perf_counter() - begun > patience:
                break
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = sum(p.stat().st_size for p in disk.rglob("*") if p.is_file()) / len(np.load(room / "lengths.npy"))
        line = {"way": way, "build": took, "ms": float(np.median(times)) * 1e3, "qps": len(times) / sum(times)}
        print(json.dumps({**line, "memory": memory, "bytes": size, "found": found}), flush=True)


def race(name: str, room: Path, args: argparse.Namespace) -> list[dict[str, Any]]:
    python = args.plaid_python if name == "fast-plaid" else sys.executable
    if python is None:
        print(f"{name}: left out; name a Python that has it with --plaid-python")
        return []
    command = [str(python), __file__, "--contender", name, "--room", str(room), "--patience", str(args.patience)]
    env = {**os.environ, **dict.fromkeys(THREADS, str(args.threads))}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=env, timeout=args.patience * 1.5, check=False
        )
        lines, why = done.stdout, (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        lines, why = said.decode() if isinstance(said, bytes) else said, f"not done in {args.patience * 1.5:.0f} s"
    found = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    if not found:
        print(f"{name}: {why}")
    shutil.rmtree(room / name.replace("-", "_").replace(" ", "_"), ignore_errors=True)
    return found


def recall(found: list[list[int]], right: np.ndarray, k: int) -> float:
    return float(np.mean([len(set(f[:k]) & set(r[:k].tolist())) / k for f, r in zip(found, right, strict=False)]))


def one_size(base: Any, questions: list[np.ndarray], count: int, args: argparse.Namespace) -> None:
    room, begun = args.room / str(count), time.perf_counter()
    if not (room / "truth.npy").exists():
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        write_collection(base, count, questions, room)
        np.save(room / "truth.npy", truth(room))
    right = np.load(room / "truth.npy")
    patches = float(np.load(room / "lengths.npy").mean())
    took = time.perf_counter() - begun
    print(f"\n{count} passages, {patches:.1f} patches each, {len(questions)} questions; made in {took:.0f} s")
    print("| | recall@10 | @20 | @100 | ms a query | queries/s | bytes a passage | build, s | peak MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in args.contenders:
        for way in race(name, room, args):
            at = " | ".join(f"{recall(way['found'], right, k):.3f}" for k in (10, 20, 100))
            cost = f"{way['ms']:.1f} | {way['qps']:.1f} | {way['bytes']:.0f} | {way['build']:.1f} | {way['memory']:.0f}"
            asked = "" if len(way["found"]) == len(questions) else f" ({len(way['found'])} asked)"
            print(f"| {name}, {way['way']}{asked} | {at} | {cost} |", flush=True)
    if not args.keep:
        shutil.rmtree(room)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", type=Path)
    parser.add_argument("--vectors", type=Path, default=KEPT)
    parser.add_argument("--real", type=int, default=10_000)
    parser.add_argument("--patch", default="ngram:3")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 10_000])
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--patience", type=float, default=240)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--plaid-python", type=Path)
    parser.add_argument("--room", type=Path, default=KEPT.parent)
    parser.add_argument("--keep", action="store_true", help="keep the collection and the truth for another run")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contender:
        compete(args.contender, args.room, args.patience)
        return
    questions, base = split(real_vectors(args.corpora, args.vectors, args.real, args.patch), args.queries)
    for count in args.sizes:
        one_size(base, questions, count, args)


if __name__ == "__main__":
    main()
