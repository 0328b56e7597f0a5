"""Is topic decoupled? What words alone can do with positives from anywhere and from other documents, and what models that
were trained on either can."""

from functools import lru_cache

import numpy as np

from idiograph.evaluate.published import DECOUPLING, OVERLAP
from idiograph.evaluate.topic import SCORERS, STRICT, TripletTexts, triplet_jaccard
from idiograph.mining.benchmark import Benchmark
from idiograph.study.outcomes import Doubles, RunOutcome, Sample, StudyOutcomes, show_cell
from idiograph.study.plan import UNTRAINED
from idiograph.study.table import NAN, Table, TableRow, slug_of

RULES = ("unrestricted", "base")
LEXICAL = {"BM25": STRICT, "character 4-grams": "character 4-grams", "function words": "function words"}
TRAINED = {"ict": "trained on cloze pairs", "unrestricted": "trained on unrestricted", "base": "trained on base"}


def texts_of_triplets(benchmark: Benchmark) -> TripletTexts:
    anchor, positive, negative = benchmark.triplets.T
    anchors, pool = benchmark.anchor_places, benchmark.pool_places
    return TripletTexts(benchmark.texts, anchors[anchor], pool[positive], pool[negative])


def lexical_scores(benchmarks: list[Benchmark], scorer: str) -> Sample | None:
    """How often a cheap measure puts the positive first; BM25 counts a tie as lost, as in the published study."""
    if not benchmarks:
        return None
    return Sample(
        np.concatenate([lexical_outcomes(benchmark, scorer) for benchmark in benchmarks]),
        np.concatenate([benchmark.triplet_clusters for benchmark in benchmarks]),
    )


@lru_cache(256)  # a study asks for the same again with every backbone
def lexical_outcomes(benchmark: Benchmark, scorer: str) -> Doubles:
    return decoupling_outcome(SCORERS[scorer](texts_of_triplets(benchmark)), scorer == STRICT)


def decoupling_outcome(scores: tuple[Doubles, Doubles], strict: bool) -> Doubles:
    positive, negative = scores
    return np.where(positive > negative, 1.0, 0.0 if strict else np.where(positive == negative, 0.5, 0.0))


def decoupling_table(study: StudyOutcomes, backbone: str) -> Table:
    """Triplet accuracy in per cent, by rule and length."""
    places = [(rule, size) for size in study.lengths for rule in RULES if study.on(rule, size)]
    rows = [
        TableRow(
            name,
            tuple(
                show_cell(lexical_scores(study.on(*at), scorer), published_decoupling(name, *at), 100, 1)
                for at in places
            ),
        )
        for name, scorer in LEXICAL.items()
    ]
    models = {UNTRAINED: "untrained", **TRAINED}
    for rule, label in models.items():
        model = trained_on(study, backbone, rule)
        cells = tuple(
            show_cell(study.triplets(model, "triplets", *at), published_decoupling(rule, *at), 100, 1) for at in places
        )
        rows.append(TableRow(f"{label} (mean pooling)", cells))
    columns = tuple(f"{size}, {rule}" for rule, size in places)
    title = f"Triplet accuracy in per cent by length and configuration, {backbone}"
    text = (
        "In `unrestricted` the positive may be from the anchor's own document. The same number of steps for every model. "
        "The paper's trained models are RoBERTa's, ours mean pooling on the backbone named."
    )
    return Table(f"decoupling-{slug_of(backbone)}", title, columns, tuple(rows), text)


def published_decoupling(model: str, rule: str, sentences: int) -> float:
    return DECOUPLING.get((model, rule, sentences), NAN)


def trained_on(study: StudyOutcomes, backbone: str, rule: str) -> RunOutcome | None:
    if rule == UNTRAINED:
        return study.untrained(backbone)
    return study.outcome(backbone, "whole", ("main", "decoupling"), rule=rule)


def overlap_table(study: StudyOutcomes) -> Table:
    """Jaccard overlaps of words: signal is the lead of the positive over the negative, noise what those two share."""
    rows = []
    for size in study.lengths:
        for rule in RULES:
            if benchmarks := study.on(rule, size):
                rows.append(TableRow(f"{rule}-{size}", overlap_cells(benchmarks, rule, size)))
    columns = ("anchor and positive", "anchor and negative", "signal", "noise")
    text = "Shares of the words of either text that both have; 2-word sets as in the published figure."
    return Table(
        "overlap", "Words in common within triplets", columns, tuple(rows), text.split(";")[0] + ".", "triplets"
    )


def overlap_cells(benchmarks: list[Benchmark], rule: str, size: int):
    parts = [triplet_jaccard(texts_of_triplets(benchmark)) for benchmark in benchmarks]
    near, far, noise = (np.concatenate([part[at] for part in parts]) for at in range(3))
    clusters = np.concatenate([benchmark.triplet_clusters for benchmark in benchmarks])
    signal = Sample(near - far, clusters).cell(OVERLAP.get((rule, size), NAN))
    return (Sample(near, clusters).cell(), Sample(far, clusters).cell(), signal, Sample(noise, clusters).cell())
