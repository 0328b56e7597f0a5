"""What a study is made of: triplets by configuration and split, writers, and how long spans are."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.evaluate.published import AUTHOR_SETS, TRIPLETS
from idiograph.study.bench import Bench
from idiograph.study.outcomes import Sample, StudyOutcomes
from idiograph.study.table import NAN, Cell, Table, TableRow

SPLITS = ("train", "valid", "test")


def counts_of(folder: Path) -> dict[str, dict[str, int]]:
    """What a triplet folder says of itself: configuration → split → triplets."""
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["counts"]


def composition(counts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Table:
    """Triplets that were mined, by corpus; the paper's are of its released set."""
    rows = []
    for corpus, found in counts.items():
        for name in sorted(found, key=split_order):
            rule, size = split_order(name)[0], split_order(name)[1]
            theirs = TRIPLETS.get(size, (NAN,) * 3) if rule == "base" else (NAN,) * 3
            cells = [Cell(found[name].get(s, 0), published=p, digits=0) for s, p in zip(SPLITS, theirs, strict=True)]
            rows.append(TableRow(f"{corpus} {name}", tuple(cells)))
    text = "Authors are in one split only under `sound`; under `paper` triplets are split after they were drawn."
    return Table("composition", "Triplets by corpus, configuration and split", SPLITS, tuple(rows), text, "triplets")


def split_order(name: str) -> tuple[str, int]:
    rule, _, size = name.rpartition("-")
    return rule, int(size)


def writers(found: StudyOutcomes) -> Table:
    """Author-sets that are measured, and how many people are in one."""
    rows = [TableRow(bench.corpus, writer_cells(bench)) for bench in found.on("base")]
    columns = ("author-sets", "mean size", "median size", "largest", "single-author share", "anchors")
    text = f"Of the anchors of {found.main} sentences; where the label is one author (first, last), every set has one."
    return Table("writers", "Author-sets measured on", columns, tuple(rows), text, "corpus")


def writer_cells(bench: Bench) -> tuple[Cell, ...]:
    sets, first = np.unique(bench.clusters, return_index=True)
    sizes = np.array([len(bench.authors[int(bench.anchors[at])]) for at in first], float)
    values = {"mean size": sizes.mean(), "median size": np.median(sizes), "largest": sizes.max()}
    values["single-author share"] = (sizes == 1).mean()
    cells = [Cell(float(value), published=AUTHOR_SETS[name], digits=2) for name, value in values.items()]
    return (Cell(len(sets), digits=0), *cells, Cell(len(bench.anchors), digits=0))


def sizes_of(found: StudyOutcomes) -> dict[str, dict[str, float]]:
    """Share of anchors by the size of their author-set, for a figure: length → size → share."""
    result: dict[str, dict[str, float]] = {}
    for length in found.lengths:
        sizes = [min(len(b.authors[int(at)]), 6) for b in found.on("base", length) for at in b.anchors]
        names = {size: f"{size}" if size < 6 else "6 or more" for size in sorted(set(sizes))}
        result[f"{length} sentences"] = {name: sizes.count(size) / len(sizes) for size, name in names.items()}
    return result


def span_cells(found: StudyOutcomes) -> Table:
    """Characters, words and word overlap by length."""
    rows = []
    for length in found.lengths:
        benches = found.on("base", length)
        texts: list[Any] = [bench.text_of(bench.anchors) for bench in benches]
        clusters = np.concatenate([bench.clusters for bench in benches])
        words = np.array([len(text.split()) for group in texts for text in group], float)
        characters = np.array([len(text) for group in texts for text in group], float)
        cells = Sample(words, clusters).cell(digits=1), Sample(characters, clusters).cell(digits=0)
        rows.append(TableRow(f"{length} sentences", cells))
    return Table("spans", "How long anchors are", ("words", "characters"), tuple(rows), label="length")
