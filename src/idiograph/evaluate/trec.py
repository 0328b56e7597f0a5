"""TREC run and qrels files, out and in: what trec_eval, ir-measures and pytrec_eval read."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from idiograph.errors import InputError
from idiograph.evaluate.report import Report
from idiograph.measures.ranking import parse_measure
from idiograph.mining.benchmark import Benchmark, relevant_pairs

TrecRun = dict[str, dict[str, float]]  # query → document → score
Qrels = dict[str, dict[str, int]]  # query → document → relevance


def write_qrels(benchmark: Benchmark, path: Path, own_document: str = "exclude") -> None:
    """`q0 0 p17 1` for each relevant span."""
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"q{a} 0 p{b} 1\n" for a, b in relevant_pairs(benchmark, own_document))


def write_run(report: Report, path: Path) -> None:
    """`q0 Q0 p17 1 0.83 ranker` for each of the first spans of each anchor, as many as the report holds."""
    tag = report.ranker.replace(" ", "")
    with path.open("w", encoding="utf-8") as stream:
        for at, (which, scores) in enumerate(zip(report.top, report.top_scores, strict=True)):
            shown = zip(which.tolist(), scores.tolist(), strict=True)
            stream.writelines(
                f"q{at} Q0 p{found} {rank} {score:.9g} {tag}\n"
                for rank, (found, score) in enumerate(shown, 1)
                if np.isfinite(score)
            )


def trec_fields(path: Path, count: int) -> Iterable[list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'") from None
    for number, line in enumerate(text.splitlines(), 1):
        found = line.split()
        if found and len(found) != count:
            raise InputError(f"'{path}:{number}': {len(found)} columns, but {count} are wanted")
        if found:
            yield found


def read_run(path: Path) -> TrecRun:
    run: TrecRun = {}
    for query, _, document, _, score, _ in trec_fields(path, 6):
        run.setdefault(query, {})[document] = float(score)
    return run


def read_qrels(path: Path) -> Qrels:
    qrels: Qrels = {}
    for query, _, document, grade in trec_fields(path, 4):
        qrels.setdefault(query, {})[document] = int(grade)
    return qrels


def measure_run(qrels: Qrels, run: TrecRun, names: Sequence[str]) -> Mapping[str, dict[str, float]]:
    """Each measure of each query that has something relevant; a query that the run leaves out gets 0."""
    functions = {name: parse_measure(name) for name in names}
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    for query, grades in qrels.items():
        total = sum(grade > 0 for grade in grades.values())
        if not total:
            continue
        ranked = sorted(run.get(query, {}).items(), key=lambda item: -item[1])
        relevant = np.array([grades.get(document, 0) > 0 for document, _ in ranked], bool)
        for name, function in functions.items():
            found[name][query] = function(relevant, total) if len(relevant) else 0.0
    return found
