"""Search over an index, against the peers: recall of exact MaxSim, time, bytes, memory, and how each grows.

    python benchmarks/index.py [CORPUS…] [--vectors real.npz] [--sizes 2000 10000] [--plaid-python PYTHON]

Passages are real ones of the corpora, or of the built-in essays, and as many more as are asked for, made from these: see
`collection.py`. Some real ones are the questions. Every contender runs in a process of its own on the same numbers and
threads. It is stopped if it has not built its index after `--patience` seconds, and each of its ways to search is asked for
`--asking` seconds. Truth is MaxSim in 32 bits over everything. fast-plaid is built for one version of torch: name a Python that
has both. `--patches 12` keeps the first twelve patches of each passage, for collections that would not fit the disk:
everybody's input takes 768 bytes a patch, and ours twice 386 while it is built.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from collection import KEPT, K, blocks, opened, real_vectors, split, truth, write_collection

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "LANCE_CPU_THREADS")
MANY = 10**6  # vectors from which LanceDB and fast-plaid get fewer centres than they would choose
CENTRES = 1024  # of fast-plaid then; its own choice for 4.6 million vectors is 32,768: 10**14 operations to assign them
Search = Callable[[np.ndarray, int], list[int]]
Contender = tuple[float, dict[str, Search], Path]  # seconds to build, ways to search, what lies on disk


def idiograph(room: Path) -> Contender:
    """Ours: packed vectors in LanceDB, candidates from means, exact at the end."""
    import pyarrow as pa

    from idiograph.index.build import (
        EMBEDDED_SCHEMA,
        EmbeddedPassages,
        append_passages,
        passage_batch,
        prepare_index,
        seal_index,
    )
    from idiograph.index.index import Index
    from idiograph.index.passages import Passage
    from idiograph.index.quantize import pack_vectors
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
    with prepare_index(room / "idiograph", True, None) as (tables, place):
        embedded = EmbeddedPassages(place / "passages.arrow", dim, recipe.dtype)
        with pa.OSFile(str(embedded.path), "wb") as sink, pa.ipc.new_file(sink, EMBEDDED_SCHEMA) as writer:
            for at, vectors, some in blocks(room):
                patches = Patches(vectors.astype(np.float32), some, np.zeros((len(vectors), 2), np.int64))
                found = [
                    Passage(f"{n:09d}", f"{n:09d}", "", "", (), (), (), None, "") for n in range(at, at + len(some))
                ]
                writer.write(passage_batch(found, pack_vectors(patches, recipe.dtype)))
                embedded.ids += [p.id for p in found]
        tables.create({})
        append_passages(tables, embedded, recipe, {}, about)
        seal_index(Path(tables.where), recipe, about, {})
    took = time.perf_counter() - begun
    subprocess.run([sys.executable, __file__, "--contender", "idiograph", "--alone", "--room", str(room)], check=True)
    index = Index.open(room / "idiograph", style)

    def ask(question: np.ndarray, k: int, **how: Any) -> list[int]:
        one = Patches(question, np.array([len(question)]), np.zeros((len(question), 2), np.int64))
        return index.nearest_to(one, k, **how)[0][0].tolist()

    def in_memory(question: np.ndarray, k: int, **how: Any) -> list[int]:
        index.load()
        return ask(question, k, **how)

    ways: dict[str, Search] = {"depth 1000, on disk": lambda q, k: ask(q, k, depth=1000), "default depth, on disk": ask}
    ways |= {
        f"depth {d}, in memory": lambda q, k, d=d: in_memory(q, k, depth=d) for d in (500, 1000, 2000, 4000, 10000)
    }
    ways["default depth, in memory"] = in_memory
    ways["exact"] = lambda q, k: in_memory(q, k, exact=True)
    return took, ways, room / "idiograph"


def alone(room: Path) -> None:
    """A process that opens the index of `idiograph` and does nothing else: seconds and memory, as a note under the table."""
    from idiograph.index.index import Index
    from idiograph.style.model import Style
    from idiograph.style.patches import Patches

    def passed() -> str:
        memory = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())  # getrusage knows the parent's too
        return f"after {time.perf_counter() - begun:.1f} s ({int(memory[1]) / 1024 if memory else 0:.0f} MB)"

    question = opened(room)[2][0]
    asked = Patches(question, np.array([len(question)]), np.zeros((len(question), 2), np.int64))
    style: Any = Style(Given(question.shape[1]), patch="ngram:3")  # type: ignore[arg-type]
    begun = time.perf_counter()
    index = Index.open(room / "idiograph", style)
    said = f"open {passed()}, "
    index.nearest_to(asked, 10)
    said += f"first answer from disk {passed()}, "
    index.load()
    print(f"# {said}vectors in memory {passed()}", flush=True)


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
        # with its defaults LanceDB trains 2,000 centres on half a million vectors
        few: dict[str, int] = {"num_partitions": 512, "max_iterations": 10, "sample_rate": 64}
        fewer = few if len(opened(room)[0]) > MANY else {}
        table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_PQ", **fewer)
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
    from fast_plaid.search import fast_plaid as engine

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    vectors, lengths, _ = opened(room)
    if len(vectors) > MANY:
        engine.compute_kmeans = partial(engine.compute_kmeans, num_partitions=CENTRES)
    begun = time.perf_counter()
    parts = list(torch.from_numpy(np.array(vectors)).split(lengths.tolist()))
    plaid = engine.FastPlaid(index=str(room / "fast_plaid"), device="cpu")
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


def compete(name: str, room: Path, patience: int, asking: float) -> None:
    """The life of a contender's process: build, search, print a line of JSON for each way to search."""
    signal.alarm(patience)  # ends the process, also inside compiled code
    took, ways, disk = CONTENDERS[name](room)
    questions = opened(room)[2]
    for way, ask in ways.items():
        signal.alarm(patience)
        ask(questions[0], K)
        times, found, begun = [], [], time.perf_counter()
        for question in questions:
            start = time.perf_counter()
            found.append(ask(question, K))
            times.append(time.perf_counter() - start)
            if time.perf_counter() - begun > asking:
                break
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = sum(p.stat().st_size for p in disk.rglob("*") if p.is_file()) / len(np.load(room / "lengths.npy"))
        line = {"way": way, "build": took, "ms": float(np.median(times)) * 1e3, "qps": len(times) / sum(times)}
        print(json.dumps({**line, "memory": memory, "bytes": size, "found": found}), flush=True)


def race(name: str, room: Path, args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str], str]:
    """What a contender printed, its notes, and why there is no more of it if it did not end well."""
    python = args.plaid_python if name == "fast-plaid" else sys.executable
    if python is None:
        return [], [], "left out; name a Python that has it with --plaid-python"
    command = [str(python), __file__, "--contender", name, "--room", str(room)]
    command += ["--patience", str(args.patience), "--asking", str(args.asking)]
    env = {**os.environ, **dict.fromkeys(THREADS, str(args.threads))}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    for made in room.iterdir():
        if made.is_dir():
            shutil.rmtree(made)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    notes = [line[2:] for line in done.stdout.splitlines() if line.startswith("# ")]
    if done.returncode == -signal.SIGALRM:
        missing = "the next answer" if found else "index and first answer"
        return found, notes, f"{missing} not there after {args.patience} s"
    return found, notes, (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done.returncode else ""


def recall(found: list[list[int]], right: np.ndarray, k: int) -> float:
    return float(np.mean([len(set(f[:k]) & set(r[:k].tolist())) / k for f, r in zip(found, right, strict=False)]))


def one_size(base: Any, questions: list[np.ndarray], count: int, args: argparse.Namespace) -> None:
    room, begun = args.room / f"{count}-{args.patches or 'all'}", time.perf_counter()
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
    notes: dict[str, list[str]] = {}
    for name in args.contenders:
        found, notes[name], why = race(name, room, args)
        for way in found:
            at = " | ".join(f"{recall(way['found'], right, k):.3f}" for k in (10, 20, 100))
            cost = f"{way['ms']:.1f} | {way['qps']:.1f} | {way['bytes']:.0f} | {way['build']:.1f} | {way['memory']:.0f}"
            asked = "" if len(way["found"]) == len(questions) else f" ({len(way['found'])} asked)"
            print(f"| {name}, {way['way']}{asked} | {at} | {cost} |", flush=True)
        if why:
            print(f"| {name}: {why} | | | | | | | | |", flush=True)
    for name, said in notes.items():
        print("".join(f"\n{name}: {note}" for note in said), flush=True)
    if not args.keep:
        shutil.rmtree(room)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", type=Path)
    parser.add_argument("--vectors", type=Path, default=KEPT)
    parser.add_argument("--real", type=int, default=10_000)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--patch", default="ngram:3")
    parser.add_argument("--patches", type=int, help="patches of a passage at most")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 10_000])
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--patience", type=int, default=240, help="seconds to build the index, for each contender")
    parser.add_argument("--asking", type=float, default=60, help="seconds to ask, for each way to search")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--plaid-python", type=Path)
    parser.add_argument("--room", type=Path, default=KEPT.parent)
    parser.add_argument("--keep", action="store_true", help="keep the collection and the truth for another run")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        alone(args.room)
    elif args.contender:
        compete(args.contender, args.room, args.patience, args.asking)
    else:
        real = real_vectors(args.corpora, args.vectors, args.real, args.patch, args.model)
        questions, base = split(real, args.queries, args.patches)
        for count in args.sizes:
            one_size(base, questions, count, args)


if __name__ == "__main__":
    main()
