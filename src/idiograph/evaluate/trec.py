"""TREC run and qrels files, as trec_eval, ir-measures and pytrec_eval read them."""

from pathlib import Path

import numpy as np

from idiograph.evaluate.report import Report
from idiograph.mining.benchmark import Benchmark, relevant_pairs


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
