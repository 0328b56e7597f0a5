"""Is topic decoupled? What words alone can do with positives from anywhere and from other documents, and what models that
were trained on either can."""

from functools import lru_cache

import numpy as np

from idiograph.evaluate.published import DECOUPLING, OVERLAP
from idiograph.evaluate.topic import SCORERS, STRICT, TripletTexts, triplet_jaccard
from idiograph.study.bench import Bench, Doubles
from idiograph.study.outcomes import Sample, StudyOutcomes, show_cell
from idiograph.study.plan import UNTRAINED
from idiograph.study.results import RunOutcome
from idiograph.study.table import NAN, Table, TableRow
from idiograph.study.tables.granularity import slug_of

RULES = ("unrestricted", "base")
LEXICAL = {"BM25": STRICT, "character 4-grams": "character 4-grams", "function words": "function words"}
TRAINED = {"ict": "trained on cloze pairs", "unrestricted": "trained on unrestricted", "base": "trained on base"}


def bench_texts(bench: Bench) -> TripletTexts:
    anchor, positive, negative = bench.triplets.T
    return TripletTexts(tuple(bench.texts), bench.anchors[anchor], bench.pool[positive], bench.pool[negative])


def lexical_scores(benches: list[Bench], scorer: str) -> Sample | None:
    """How often a cheap measure puts the positive first; BM25 counts a tie as lost, as in the published study."""
    if not benches:
        return None
    return Sample(
        np.concatenate([bench_triplets_won(bench, scorer) for bench in benches]),
        np.concatenate([bench.triplet_clusters for bench in benches]),
    )


@lru_cache(256)  # a study asks for the same again with every backbone
def bench_triplets_won(bench: Bench, scorer: str) -> Doubles:
    return decoupling_outcome(SCORERS[scorer](bench_texts(bench)), scorer == STRICT)


def decoupling_outcome(scores: tuple[Doubles, Doubles], strict: bool) -> Doubles:
    positive, negative = scores
    return np.where(positive > negative, 1.0, 0.0 if strict else np.where(positive == negative, 0.5, 0.0))


def decoupling_table(found: StudyOutcomes, backbone: str) -> Table:
    """Triplet accuracy in per cent, by rule and length."""
    places = [(rule, size) for size in found.lengths for rule in RULES if found.on(rule, size)]
    rows = [
        TableRow(
            name,
            tuple(
                show_cell(lexical_scores(found.on(*at), scorer), published_decoupling(name, *at), 100, 1)
                for at in places
            ),
        )
        for name, scorer in LEXICAL.items()
    ]
    models = {UNTRAINED: "untrained", **TRAINED}
    for rule, label in models.items():
        model = trained_on(found, backbone, rule)
        cells = tuple(
            show_cell(found.triplets(model, "triplets", *at), published_decoupling(rule, *at), 100, 1) for at in places
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


def trained_on(found: StudyOutcomes, backbone: str, rule: str) -> RunOutcome | None:
    if rule == UNTRAINED:
        return found.untrained(backbone)
    return found.outcome(backbone, "whole", ("main", "decoupling"), rule=rule)


def overlap_table(found: StudyOutcomes) -> Table:
    """Jaccard overlaps of words: signal is the lead of the positive over the negative, noise what those two share."""
    rows = []
    for size in found.lengths:
        for rule in RULES:
            if benches := found.on(rule, size):
                rows.append(TableRow(f"{rule}-{size}", overlap_cells(benches, rule, size)))
    columns = ("anchor and positive", "anchor and negative", "signal", "noise")
    text = "Shares of the words of either text that both have; 2-word sets as in the published figure."
    return Table(
        "overlap", "Words in common within triplets", columns, tuple(rows), text.split(";")[0] + ".", "triplets"
    )


def overlap_cells(benches: list[Bench], rule: str, size: int):
    parts = [triplet_jaccard(bench_texts(bench)) for bench in benches]
    near, far, noise = (np.concatenate([part[at] for part in parts]) for at in range(3))
    clusters = np.concatenate([bench.triplet_clusters for bench in benches])
    signal = Sample(near - far, clusters).cell(OVERLAP.get((rule, size), NAN))
    return (Sample(near, clusters).cell(), Sample(far, clusters).cell(), signal, Sample(noise, clusters).cell())
