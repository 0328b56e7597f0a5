"""From mined triplets to a pack: what is trained on, what is measured on, and which models are to be made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.errors import InputError
from idiograph.evaluate.problems import NOBODY, Problem, read_problems
from idiograph.mining.triplets import configurations, read_triplets, splits
from idiograph.neural.triplets import Triplets, open_triplets
from idiograph.runner import Progress
from idiograph.store import write_json
from idiograph.study.bench import Bench, Bools, collect_bench, save_bench, smaller_pool
from idiograph.study.pack import LISTING, Problems, save_triplets
from idiograph.study.plan import StudyRun

CHARS = 7  # of a token at most, on average: what no model reads is not packed


@dataclass(frozen=True, slots=True)
class Portions:
    """How much goes into a pack. Numbers are for each corpus."""

    train: int = 5000  # rows of each configuration
    lengths: tuple[int, ...] = (2, 4, 8)  # of the spans that are trained on
    anchors: int = 400
    pool: int = 1600
    valid: tuple[int, int] = (150, 600)
    unrestricted: tuple[int, ...] = (2, 4, 6, 8)
    longest: int = 512  # tokens that are read
    train_longest: int = 256  # tokens that are trained on


def prepare_pack(
    sources: Mapping[str, Path],
    out: Path,
    runs: Sequence[StudyRun],
    portions: Portions,
    *,
    preset: str = "sound",
    main: int = 4,
    problems: Mapping[str, Problems] | None = None,
    seed: int = 7,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write a pack; returns what pack.json says. A configuration that a corpus lacks is left out of the pack."""
    for part in ("train", "valid", "bench"):
        (out / part).mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda done, total, what: None)  # noqa: ARG005
    about: dict[str, Any] = {"preset": preset, "main": main, "longest": portions.longest, "seed": seed}
    about |= {
        "train_longest": portions.train_longest,
        "keep_own": preset == "paper",
        "train": {},
        "valid": [],
        "benches": [],
        "pan": {},
    }
    for at, (name, folder) in enumerate(sources.items()):
        tell(at, len(sources), f"packing {name}")
        pack_training(name, folder, out, portions, main, about, seed)
        pack_benches(name, folder, out, portions, main, about, seed)
    if not about["benches"]:
        raise InputError("no corpus has a test split to measure on; mine a larger corpus")
    for lang, each in (problems or {}).items():
        about["pan"][lang] = f"pan-{lang}.npz"
        each.save(out / about["pan"][lang])
    about["runs"] = [run.to_json() for run in runs if run.rule == "none" or run.rule in about["train"]]
    write_json(out / LISTING, about)
    return about


def pack_training(
    name: str, folder: Path, out: Path, portions: Portions, main: int, about: dict[str, Any], seed: int
) -> None:
    """Triplets to learn from: those of topics decoupled in several lengths, the others in the main one."""
    there = configurations(folder)
    for rule in ("base", "unrestricted", "ict"):
        for size in portions.lengths if rule == "base" else (main,):
            configuration = f"{rule}-{size}"
            if configuration in there and "train" in splits(folder, configuration):
                part = some(open_triplets(folder, "train", [configuration]), portions.train, seed)
                path = f"train/{name}-{configuration}.npz"
                save_triplets(replace(part, name=f"{name}/{configuration}"), out / path)
                about["train"].setdefault(rule, []).append(path)


def some(triplets: Triplets, count: int, seed: int) -> Triplets:
    """At most so many rows, and the texts that they need."""
    rows = triplets.rows[np.sort(np.random.default_rng(seed).permutation(len(triplets))[:count])]
    used, new = np.unique(rows, return_inverse=True)
    texts = [triplets.texts[int(at)] for at in used]
    return Triplets(triplets.name, texts, new.reshape(rows.shape), triplets.labels[used], triplets.documents[used])


def pack_benches(
    name: str, folder: Path, out: Path, portions: Portions, main: int, about: dict[str, Any], seed: int
) -> None:
    there = [c for c in configurations(folder) if "test" in splits(folder, c) and not c.startswith("ict")]
    whole = {c: open_triplet_folder(name, folder, c, "test") for c in there}
    base = {c: bench for c, bench in whole.items() if bench.rule == "base"}
    equal = min(portions.pool, *(len(bench.pool) for bench in base.values()))
    for bench in whole.values():
        if bench.rule == "base" or bench.sentences in portions.unrestricted:
            pool = natural(bench, portions) if about["keep_own"] else equal
            write_bench(
                smaller_pool(bench, portions.anchors, pool if bench.rule == "base" else 0, seed), out, about["benches"]
            )
    if f"base-{main}" in there and "valid" in splits(folder, f"base-{main}"):
        valid = open_triplet_folder(name, folder, f"base-{main}", "valid")
        write_bench(smaller_pool(valid, *portions.valid, seed), out, about["valid"], "valid")


def natural(bench: Bench, portions: Portions) -> int:
    return min(len(bench.pool), 4 * portions.pool)


def open_triplet_folder(name: str, folder: Path, configuration: str, split: str) -> Bench:
    rule, _, size = configuration.rpartition("-")
    return collect_bench(read_triplets(folder, configuration, split), name, rule, int(size))


def write_bench(bench: Bench, out: Path, listing: list[str], part: str = "bench") -> None:
    path = f"{part}/{bench.name.replace('/', '-')}.npz"
    save_bench(bench, out / path)
    listing.append(path)


def open_pan(source: Path, langs: Sequence[str] = (), longest: int = 512) -> dict[str, Problems]:
    """The problems of a PAN19 folder or file, by language; of each text as much as a window of `longest` tokens may hold."""
    found = read_problems(source, None)
    chosen = langs or sorted({problem.lang for problem in found})
    return {lang: problems_of([p for p in found if p.lang == lang], CHARS * longest) for lang in chosen}


def problems_of(given: Sequence[Problem], chars: int = 4096) -> Problems:
    """Attribution problems as arrays; unknown texts that no candidate wrote are left out."""
    keys = [(at, name) for at, problem in enumerate(given) for name in problem.candidates]
    numbers = {key: number for number, key in enumerate(keys)}
    rows = [
        (numbers[at, problem.truth[file]], at, problem.unknown[file])
        for at, problem in enumerate(given)
        for file in sorted(problem.unknown)
        if problem.truth.get(file, NOBODY) != NOBODY
    ]
    if not rows:
        raise InputError("no unknown text is by one of the candidates")
    known = [(numbers[at, name], text) for at, name in keys for text in given[at].known[name]]
    texts = [text for *_, text in rows] + [text for _, text in known]
    texts += ["\n\n".join(given[at].known[name]) for at, name in keys]
    ends = np.cumsum([len(rows), len(known), len(keys)])
    return Problems(
        [text[:chars] for text in texts],
        np.arange(len(rows)),
        np.array([candidate for candidate, *_ in rows], np.int64),
        np.array([at for _, at, _ in rows], np.int64),
        np.array([at for at, _ in keys], np.int64),
        np.arange(ends[0], ends[1]),
        np.array([candidate for candidate, _ in known], np.int64),
        np.arange(ends[1], ends[2]),
        new_ones(given, [(at, text) for _, at, text in rows]),
        np.array([problem.name for problem in given]),
    )


def new_ones(given: Sequence[Problem], unknown: Sequence[tuple[int, str]]) -> Bools:
    """Which unknown texts are neither known ones of their problem nor were there before."""
    seen = {(at, text) for at, problem in enumerate(given) for texts in problem.known.values() for text in texts}
    fresh = []
    for each in unknown:
        fresh.append(each not in seen)
        seen.add(each)
    return np.array(fresh)
