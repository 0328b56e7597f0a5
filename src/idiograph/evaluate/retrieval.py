"""Put a ranker to a benchmark: every anchor against a pool of spans, by its own or somebody else's hand."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import InputError
from idiograph.evaluate.compare import VALUES, write_values
from idiograph.evaluate.report import MeasuredValue, Report, domains_markdown, interval, reports_as_markdown
from idiograph.evaluate.trec import write_qrels, write_run
from idiograph.measures.ranking import measure_rankings, rank_needed, rank_scores, triplet_accuracy
from idiograph.mining.benchmark import Benchmark, Bools, open_benchmark, open_benchmarks, write_beir
from idiograph.recipe import EvaluateRecipe
from idiograph.runner import Progress
from idiograph.style.model import Ranker, Style
from idiograph.style.patches import Patches
from idiograph.style.stream import WantedScores
from idiograph.style.stream import score_rows as streamed

__all__ = ["Benchmark", "evaluate_ranker", "open_benchmark", "open_benchmarks"]

Scores = NDArray[np.float32]
Doubles = NDArray[np.float64]
Blocks = Iterator[tuple[slice, Scores]]
AllPairs = Callable[[Patches, Patches, bool, Callable[[slice], WantedScores]], Blocks]
ModelReading = Callable[[Style, Sequence[str], bool], Patches]


def sound_reading(style: Style, texts: Sequence[str], query: bool) -> Patches:
    """Both sides alike, special tokens never scored."""
    return replace(style, reading="sound").encode(texts, query)


def published_reading(style: Style, texts: Sequence[str], query: bool) -> Patches:
    """As the published code reads."""
    return replace(style, reading="published").encode(texts, query)


READINGS: dict[str, ModelReading] = {"published": published_reading, "sound": sound_reading}


def full_precision_blocks(a: Patches, b: Patches, mean: bool, wanted: Callable[[slice], WantedScores]) -> Blocks:  # noqa: ARG001
    """All scores in 32 bits, whatever is done with them."""
    return streamed(a, b, mean)


@dataclass
class ScoreTally:
    """What is kept of the scores while they pass by: nothing that grows with the number of pairs."""

    values: dict[str, list[Doubles]]
    answered: list[Bools] = field(default_factory=list)
    same_field: list[Bools] = field(default_factory=list)
    won: list[Doubles] = field(default_factory=list)
    triplets: list[NDArray[np.int64]] = field(default_factory=list)  # anchors, in the order of `won`
    top: list[NDArray[np.int64]] = field(default_factory=list)
    top_scores: list[Scores] = field(default_factory=list)


def evaluate_ranker(
    ranker: Ranker,
    benchmark: Benchmark,
    recipe: EvaluateRecipe | None = None,
    progress: Progress | None = None,
    pairs: AllPairs = full_precision_blocks,
) -> Report:
    """Rank the pool for every anchor and measure; intervals come from resampling author-sets, not spans.

    `pairs` is how a style's patches are compared; `fast_score_blocks` of `neural.maxsim.pruned` gives the same report of a
    large pool in a third of the time.
    """
    recipe = recipe or EvaluateRecipe()
    tally = ScoreTally({name: [] for name in recipe.measures})
    for block, scores in score_blocks(ranker, benchmark, recipe, pairs):
        count_block(tally, block, scores, benchmark, recipe)
        if progress:
            progress(block.stop, len(benchmark.anchors), f"ranking with {ranker.name}")
    return summarize(ranker.name, tally, benchmark, recipe)


def score_blocks(
    ranker: Ranker, benchmark: Benchmark, recipe: EvaluateRecipe, pairs: AllPairs = full_precision_blocks
) -> Blocks:
    """Anchors with their scores against the whole pool. A style's scores come block by block; others' all at once."""
    anchors, pool = [s.text for s in benchmark.anchors], [s.text for s in benchmark.pool]
    if isinstance(ranker, Style) and ranker.score in ("maxsim", "meansim"):
        reading = READINGS[recipe.reading]
        left, right = reading(ranker, anchors, True), reading(ranker, pool, False)
        yield from pairs(left, right, ranker.score == "meansim", lambda block: wanted_scores(block, benchmark, recipe))
    else:
        yield slice(0, len(anchors)), ranker.compare(anchors, pool)


def wanted_scores(block: slice, benchmark: Benchmark, recipe: EvaluateRecipe) -> WantedScores:
    """Which scores of a block of anchors the measures depend on: the head of the ranking, the triplets and, for a measure
    that looks to the end, where the first relevant span is."""
    shape = len(benchmark.anchors[block]), len(benchmark.pool)
    out = benchmark.own_document(block) if recipe.own_document == "exclude" else np.zeros(shape, bool)
    depths = [rank_needed(name) for name in recipe.measures]
    marked = np.zeros(shape, bool)
    anchor, *others = triplets_in(benchmark, block)
    for each in others:
        marked[anchor - block.start, each] = True
    pivots = benchmark.relevant(block) & ~out if None in depths else np.zeros(shape, bool)
    return WantedScores(max(recipe.depth, *(depth or 1 for depth in depths), 1), out, marked, pivots)


def count_block(tally: ScoreTally, block: slice, scores: Scores, benchmark: Benchmark, recipe: EvaluateRecipe) -> None:
    """Measure a block of anchors."""
    won, anchors = triplet_outcomes(scores, benchmark, block)
    relevant = benchmark.relevant(block)
    if recipe.own_document == "exclude":
        own = benchmark.own_document(block)
        scores, relevant = np.where(own, -np.inf, scores), relevant & ~own
    order = rank_scores(scores)
    for name, values in measure_rankings(order, relevant, recipe.measures).items():
        tally.values[name].append(values)
    tally.answered.append(np.asarray(relevant.any(axis=1)))
    tally.same_field.append(shared_field(order[:, 0], block, benchmark))
    tally.won.append(won)
    tally.triplets.append(anchors)
    top = order[:, : recipe.depth]
    tally.top.append(top)
    tally.top_scores.append(np.take_along_axis(scores, top, axis=1))


def triplet_outcomes(scores: Scores, benchmark: Benchmark, block: slice) -> tuple[Doubles, NDArray[np.int64]]:
    """Of the triplets whose anchors are in the block: who won, and whose they are."""
    anchor, positive, negative = triplets_in(benchmark, block)
    at = anchor - block.start
    return triplet_accuracy(scores[at, positive], scores[at, negative]), anchor


def triplets_in(benchmark: Benchmark, block: slice) -> NDArray[np.int64]:
    """(3, n): the triplets whose anchors are in the block."""
    anchor = benchmark.triplets[:, 0]
    return benchmark.triplets[(anchor >= block.start) & (anchor < block.stop)].T


def shared_field(first: NDArray[np.int64], block: slice, benchmark: Benchmark) -> Bools:
    """Does the first hit share a field with the anchor? A ranker that follows the topic gives itself away."""
    anchors = benchmark.anchors[block]
    return np.array([bool(a.domains & benchmark.pool[at].domains) for a, at in zip(anchors, first, strict=True)], bool)


def summarize(name: str, tally: ScoreTally, benchmark: Benchmark, recipe: EvaluateRecipe) -> Report:
    answered = np.concatenate(tally.answered)
    if not answered.any():
        raise InputError(f"no anchor of '{benchmark.name}' has a text by the same author-set in the pool")
    clusters = [author_set_name(s.authors, s.doc_id) for s in benchmark.anchors]
    mine = tuple(c for c, wanted in zip(clusters, answered, strict=True) if wanted)
    values = {measure: np.concatenate(found)[answered] for measure, found in tally.values.items()}
    rows = [measured_value(measure, found, mine, recipe) for measure, found in values.items()]
    won = np.concatenate(tally.won)
    if len(won):
        by_triplet = [clusters[at] for at in np.concatenate(tally.triplets)]
        rows.append(measured_value("triplet accuracy", won, by_triplet, recipe))
    return Report(
        name,
        benchmark.name,
        tuple(rows),
        int(answered.sum()),
        len(benchmark.pool),
        float(np.concatenate(tally.same_field).mean()),
        values,
        source=benchmark.source,
        clusters=mine,
        domains=tuple(s.domains for s, wanted in zip(benchmark.anchors, answered, strict=True) if wanted),
        relevance=relevance_in_words(benchmark, recipe),
        top=np.concatenate(tally.top),
        top_scores=np.concatenate(tally.top_scores),
    )


def author_set_name(authors: frozenset[str], doc_id: str) -> str:
    """An author-set as text; a text of unknown authors stands for itself."""
    return " & ".join(sorted(authors)) or doc_id


def relevance_in_words(benchmark: Benchmark, recipe: EvaluateRecipe) -> str:
    """What counts as relevant, in words."""
    what = "what the qrels name" if benchmark.qrels is not None else "every passage by the anchor's author-set"
    own = "left out" if recipe.own_document == "exclude" else "kept, and relevant"
    return f"{what}; passages of the anchor's own document are {own}"


def measured_value(name: str, values: Doubles, clusters: Sequence[str], recipe: EvaluateRecipe) -> MeasuredValue:
    low, high = interval(values, clusters, recipe.resamples, recipe.seed)
    return MeasuredValue(name, float(values.mean()), low, high)


def size_pools(benchmarks: Sequence[Benchmark], pool: int | str, seed: int) -> list[Benchmark]:
    """Pools as they are, cut to the smallest, or to a number of passages."""
    if pool == "natural":
        return list(benchmarks)
    size = min(len(each.pool) for each in benchmarks) if pool == "equal" else int(pool)
    return [each.smaller(size, seed) for each in benchmarks]


def write_evaluation(
    reports: Sequence[Report],
    benchmarks: Sequence[Benchmark],
    folder: Path,
    recipe: EvaluateRecipe,
    *,
    trec: bool = False,
    beir: bool = False,
) -> None:
    """report.json, report.md and what `compare` reads; TREC and BEIR files too, where they are asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [report.to_json() for report in reports]
    (folder / "report.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    pages = [f"## {each.name}\n\n{reports_as_markdown(reports_on(reports, each))}\n" for each in benchmarks]
    pages += [f"### {r.ranker}, {r.benchmark}, by field\n\n{domains_markdown(r)}\n" for r in reports if r.domains]
    (folder / "report.md").write_text("\n".join(pages), encoding="utf-8")
    write_values(reports, folder / VALUES)
    own = recipe.own_document
    for each in benchmarks:
        place = each.name.replace("/", "-")
        if trec:
            write_qrels(each, folder / f"{place}.qrels", own)
            for report in reports_on(reports, each):
                write_run(report, folder / f"{place}.{name_as_file(report.ranker)}.run")
        if beir:
            write_beir(each, folder / f"beir-{place}", recipe.split, own)


def reports_on(reports: Sequence[Report], benchmark: Benchmark) -> list[Report]:
    return [report for report in reports if report.benchmark == benchmark.name]


def name_as_file(ranker: str) -> str:
    """A ranker's name as part of a file's."""
    return "".join(c if c.isalnum() or c in "-._@" else "-" for c in ranker.replace(" ", ""))
