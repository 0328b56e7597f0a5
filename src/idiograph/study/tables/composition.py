"""What a study is made of: triplets by configuration and split, writers, and how long spans are."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from idiograph.evaluate.published import AUTHOR_SETS, TRIPLETS
from idiograph.mining.benchmark import Benchmark
from idiograph.store import MAKE, read_manifest
from idiograph.study.outcomes import Sample, StudyOutcomes
from idiograph.study.table import NAN, Cell, Table, TableRow

SPLITS = ("train", "valid", "test")


def counts_of(folder: Path) -> dict[str, dict[str, int]]:
    """What a triplet folder says of itself: configuration → split → triplets."""
    return dict(read_manifest(folder, "triplets", MAKE["triplets"]).counts)


def composition(counts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Table:
    """Triplets that were mined, by corpus; the paper's are of its released set."""
    rows = []
    for corpus, by_name in counts.items():
        for name in sorted(by_name, key=split_order):
            rule, size = split_order(name)[0], split_order(name)[1]
            theirs = TRIPLETS.get(size, (NAN,) * 3) if rule == "base" else (NAN,) * 3
            cells = [Cell(by_name[name].get(s, 0), published=p, digits=0) for s, p in zip(SPLITS, theirs, strict=True)]
            rows.append(TableRow(f"{corpus} {name}", tuple(cells)))
    text = "Authors are in one split only under `sound`; under `paper` triplets are split after they were drawn."
    return Table("composition", "Triplets by corpus, configuration and split", SPLITS, tuple(rows), text, "triplets")


def split_order(name: str) -> tuple[str, int]:
    rule, _, size = name.rpartition("-")
    return rule, int(size)


def writers(study: StudyOutcomes) -> Table:
    """Author-sets that are measured, and how many people are in one."""
    rows = [TableRow(benchmark.corpus, writer_cells(benchmark)) for benchmark in study.on("base")]
    columns = ("author-sets", "mean size", "median size", "largest", "single-author share", "anchors")
    text = f"Of the anchors of {study.main} sentences; where the label is one author (first, last), every set has one."
    return Table("writers", "Author-sets measured on", columns, tuple(rows), text, "corpus")


def writer_cells(benchmark: Benchmark) -> tuple[Cell, ...]:
    sets, first = np.unique(benchmark.clusters, return_index=True)
    sizes = np.array([len(benchmark.anchors[at].authors) for at in first], float)
    values = {"mean size": sizes.mean(), "median size": np.median(sizes), "largest": sizes.max()}
    values["single-author share"] = (sizes == 1).mean()
    cells = [Cell(float(value), published=AUTHOR_SETS[name], digits=2) for name, value in values.items()]
    return (Cell(len(sets), digits=0), *cells, Cell(len(benchmark.anchors), digits=0))


def sizes_of(study: StudyOutcomes) -> dict[str, dict[str, float]]:
    """Share of anchors by the size of their author-set, for a figure: length → size → share."""
    result: dict[str, dict[str, float]] = {}
    for length in study.lengths:
        sizes = [min(len(span.authors), 6) for b in study.on("base", length) for span in b.anchors]
        names = {size: f"{size}" if size < 6 else "6 or more" for size in sorted(set(sizes))}
        result[f"{length} sentences"] = {name: sizes.count(size) / len(sizes) for size, name in names.items()}
    return result


def span_cells(study: StudyOutcomes) -> Table:
    """Characters, words and word overlap by length."""
    rows = []
    for length in study.lengths:
        benchmarks = study.on("base", length)
        texts = [span.text for benchmark in benchmarks for span in benchmark.anchors]
        clusters = np.concatenate([benchmark.clusters for benchmark in benchmarks])
        words = np.array([len(text.split()) for text in texts], float)
        characters = np.array([len(text) for text in texts], float)
        cells = Sample(words, clusters).cell(digits=1), Sample(characters, clusters).cell(digits=0)
        rows.append(TableRow(f"{length} sentences", cells))
    return Table("spans", "How long anchors are", ("words", "characters"), tuple(rows), label="length")
