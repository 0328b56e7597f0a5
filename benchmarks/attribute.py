"""Attribution in a large index: the nearest candidates and a panel against everybody. Same answers? Same ratios? How fast?

    python benchmarks/attribute.py INDEX --model minilm --patch ngram:3 [--grow 100000] [--by author] [--questions 40]

Documents of the index are the questions, each left out of the index while it is asked about. `--grow` first makes a
larger index in `--room`: further documents by people who do not exist, each made from a real one of the index (half of
the patches of every passage from another passage, and noise), so that they resemble the real ones. Nothing is made from
a question: what has half of its patches would be nearest to it by all of them and not by their mean. Last, whole answers by
the model and by `best` are compared: how often the first is right, and the CPU-seconds of an answer.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from collection import NOISE

from idiograph.answer.attribute import attribute
from idiograph.answer.authors import IndexAuthors, author_sets_of
from idiograph.answer.ranking import MAX_PASSAGES_TO_SCORE_ALL, Ranking, rank_candidates
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
from idiograph.loading import load
from idiograph.style.patches import Patches, unit_vectors

FIRST = 20  # candidates whose standing is compared
BLOCK = 100  # documents made at once


def grown(index: Index, count: int, spared: list[int], out: Path) -> Path:
    """An index of `count` passages: those that are there, and made-up documents; none is made from those spared."""
    random = np.random.default_rng(2)
    index.load()
    _ = index.passages  # both in memory: passages are read one document at a time
    with prepare_index(out, True, None) as (tables, place):
        embedded = EmbeddedPassages(place / "passages.arrow", index.style.encoder.dim, index.recipe.dtype)
        with pa.OSFile(str(embedded.path), "wb") as sink, pa.ipc.new_file(sink, EMBEDDED_SCHEMA) as writer:
            for listed, patches in pieces(index, count, spared, random):
                writer.write(passage_batch(listed, pack_vectors(patches, index.recipe.dtype)))
                embedded.ids += [p.id for p in listed]
        tables.create({})
        append_passages(tables, embedded, index.recipe, {}, index.about)
        seal_index(Path(tables.where), index.recipe, index.about, {})
    return out


def pieces(index: Index, count: int, spared: list[int], random: np.random.Generator) -> Any:
    """Passages with their patches, block by block."""
    everything, models = np.arange(len(index)), np.setdiff1d(np.arange(len(index.documents)), spared)
    others = np.flatnonzero(np.isin(index.owner, models))
    for rows in np.array_split(everything, -(-len(index) // 2000)):
        yield index.passages_at(rows), index.vectors_at(rows)
    order = np.argsort(index.owner, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(index.owner))[:-1])
    done, made = len(index), 0
    while done < count:
        listed: list[Passage] = []
        parts: list[Patches] = []
        for _ in range(BLOCK):
            rows = members[int(random.choice(models))]
            person = f"person-{made // 2:06d}"  # two documents each
            known = index.passages_at(rows)
            parts.append(mixed(index.vectors_at(rows), index.vectors_at(random.choice(others, size=len(rows))), random))
            name = {"doc_id": f"made-{made:07d}", "authors": (person,), "names": (person,)}
            listed += [replace(p, id=f"made-{made:07d}#{p.start}", **name) for p in known]
            made += 1
        done += len(listed)
        yield (
            listed,
            Patches(*(np.concatenate([getattr(p, f) for p in parts]) for f in ("vectors", "lengths", "chars"))),
        )


def mixed(one: Patches, other: Patches, random: np.random.Generator) -> Patches:
    swap = random.random(len(one.vectors)) < 0.5
    vectors = np.where(swap[:, None], other.vectors[random.integers(len(other.vectors), size=len(swap))], one.vectors)
    noise = random.standard_normal(vectors.shape, np.float32) * np.float32(NOISE / np.sqrt(vectors.shape[1]))
    return Patches(unit_vectors(vectors + noise), one.lengths, one.chars)


def questions(index: Index, everybody: IndexAuthors, count: int) -> list[int]:
    """Documents whose writers have others in the index; none that was made."""
    real = np.array([not d.id.startswith("made-") for d in index.documents])
    several = np.unique(everybody.members[np.repeat(everybody.sizes > 1, everybody.sizes)])
    chosen = several[real[several]]
    return np.random.default_rng(5).permutation(chosen)[:count].tolist()


def asked(index: Index, everybody: IndexAuthors, documents: list[int], exact: bool) -> tuple[list[Ranking], float]:
    found, took = [], 0.0
    for document in documents:
        vectors, begun = index.vectors_at(everybody.passages_of([document])), time.perf_counter()
        found.append(rank_candidates(index, everybody, vectors, exclude=[everybody.documents[document]], exact=exact))
        took += time.perf_counter() - begun
    return found, took / len(documents)


def agreement(
    index: Index, everybody: IndexAuthors, documents: list[int], exact: list[Ranking], fast: list[Ranking]
) -> str:
    first = np.mean([a.who[0] == b.who[0] for a, b in zip(exact, fast, strict=True)])
    five = np.mean(
        [len(set(a.who[:5].tolist()) & set(b.who[:5].tolist())) / 5 for a, b in zip(exact, fast, strict=True)]
    )
    right = [right_first(index, everybody, documents, found) for found in (exact, fast)]
    apart = []
    for a, b in zip(exact, fast, strict=True):
        z = dict(zip(a.who.tolist(), a.z.tolist(), strict=True))
        apart += [b.z[at] - z[int(who)] for at, who in enumerate(b.who[:FIRST])]
    return f"{first:.3f} | {five:.3f} | {right[0]:.3f} / {right[1]:.3f} | {np.mean(apart):+.3f} ± {np.std(apart):.3f}"


def right_first(index: Index, everybody: IndexAuthors, documents: list[int], found: list[Ranking]) -> float:
    """How often the first candidate is a writer of the question."""
    writers = [set(index.documents[d].authors) for d in documents]
    return float(np.mean([set(everybody.keys[r.who[0]]) <= w for r, w in zip(found, writers, strict=True)]))


def whole_answers(index: Index, everybody: IndexAuthors, documents: list[int]) -> None:
    """Answers to texts, with embedding and evidence, after whatever is learned once has been learned."""
    texts = ["\n\n".join(p.text for p in index.passages_at(everybody.passages_of([d]))) for d in documents]
    print("\n| method | right first | CPU-s an answer | CPU-s to learn |\n|---|---|---|---|")
    for method in ("model", "best"):
        begun = time.process_time()
        attribute(texts[0], index, method=method)
        learned, right = time.process_time(), 0
        for document, text in zip(documents, texts, strict=True):
            found = attribute(text, index, exclude=[everybody.documents[document]], method=method)
            right += set(found.candidates[0].authors) <= set(index.documents[document].authors)
        took = (time.process_time() - learned) / len(documents)
        print(f"| {method} | {right} of {len(documents)} | {took:.2f} | {learned - begun:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--patch")
    parser.add_argument("--by", default="set", choices=("set", "author"))
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--grow", type=int)
    parser.add_argument("--room", type=Path, default=Path(tempfile.gettempdir()) / "idiograph-bench")
    given = parser.parse_args()
    style = load(given.model, patch=given.patch)
    index = Index.open(given.index, style)
    if given.grow:
        out = given.room / f"grown-{given.grow}"
        spared = questions(index, author_sets_of(index, given.by), given.questions)
        index = Index.open(out if out.exists() else grown(index, given.grow, spared, out), style)
    begun = time.perf_counter()
    everybody = author_sets_of(index, given.by)
    first = time.perf_counter() - begun
    documents = questions(index, everybody, given.questions)
    if len(index) <= MAX_PASSAGES_TO_SCORE_ALL:
        print(f"an index of {len(index)} passages is always searched exactly")
    on_disk, slow = asked(index, everybody, documents, exact=False)
    index.load()
    fast, quick = asked(index, everybody, documents, exact=False)
    exact, full = asked(index, everybody, documents, exact=True)
    length = np.mean([len(everybody.passages_of([d])) for d in documents])
    people = f"{len(everybody.keys)} candidates, {len(documents)} questions of {length:.1f} passages"
    print(f"{len(index)} passages, {people}; candidates gathered in {first:.2f} s\n")
    print(
        "| exact, s | two stages from disk, s | in memory, s | same first | same of five "
        "| right first: exact / fast | z, fast − exact |"
    )
    print("|---|---|---|---|---|---|---|")
    said = agreement(index, everybody, documents, exact, fast)
    print(f"| {full:.2f} | {slow:.2f} | {quick:.2f} | {said} |")
    whole_answers(index, everybody, documents)
    assert all(np.array_equal(a.who, b.who) for a, b in zip(on_disk, fast, strict=True))


if __name__ == "__main__":
    main()
