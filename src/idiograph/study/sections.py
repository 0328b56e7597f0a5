"""The chapters of the report, each from what was found; one that nothing was measured for is left out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from idiograph.evaluate.problems import Problem
from idiograph.evaluate.published import MEASURES
from idiograph.plots import tables as figures
from idiograph.plots.tables import Series
from idiograph.study.outcomes import StudyOutcomes
from idiograph.study.plan import GRAINS
from idiograph.study.report import ReportSection
from idiograph.study.table import Cell, Table, TableRow
from idiograph.study.tables.composition import composition, sizes_of, span_cells, writers
from idiograph.study.tables.cost import cost_table
from idiograph.study.tables.decoupling import decoupling_table, overlap_table, texts_of_triplets
from idiograph.study.tables.depth import by_depth
from idiograph.study.tables.failures import failure_modes, first_hits, ranked_failures
from idiograph.study.tables.geometry import cosine_table, meant, semantic, spread_table
from idiograph.study.tables.granularity import by_corpus, lead_of, retrieval_table, swap_table
from idiograph.study.tables.pan19 import pan19_table
from idiograph.study.tables.patchsize import best_sizes, curve, drawn_curve, patch_size_table, samples_of
from idiograph.study.tables.semantic import meaning_alone
from idiograph.study.tables.temperature import SUM, at_their_best, temperature_leads, temperatures
from idiograph.study.tables.training import boundaries, cuts_of, kind_of_run, negatives, seeds

STAGES = ("main", "published")


@dataclass(frozen=True)
class Material:
    """Everything that a report is made from."""

    study: StudyOutcomes
    problems: Mapping[str, Sequence[Problem]] = field(default_factory=dict)  # by language
    counts: Mapping[str, Any] = field(default_factory=dict)  # corpus → configuration → split → triplets
    entropy: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # kind → domain → bits
    tokens: int = 512  # of the texts that are timed


def what_it_is(material: Material) -> ReportSection:
    study = material.study
    tables = [writers(study), span_cells(study)]
    if material.counts:
        tables.insert(0, composition(material.counts))
    drawn = {
        "Three ways to compare two texts: by one vector each, token by token, and patch by patch.": figures.scoring_modes(),
        "Share of anchors by the number of authors of their set.": figures.grouped_bars(
            sizes_of(study), "share of anchors"
        ),
    }
    if material.entropy:
        drawn["Entropy of three characters in a row and of words, by field, corrected for sample size."] = (
            figures.grouped_bars({kind: dict(values) for kind, values in material.entropy.items()}, "bits")
        )
    return ReportSection(
        "What the study is made of",
        "The texts, the triplets drawn from them, and who wrote them.",
        tuple(tables),
        drawn,
    )


def is_topic_decoupled(material: Material) -> ReportSection:
    study = material.study
    shared = overlap_table(study)
    tables = [shared, *(decoupling_table(study, backbone) for backbone in study.backbones)]
    drawn = {
        "Words in common within triplets, means.": figures.grouped_bars(
            table_columns(shared), "share of words in common"
        )
    }
    drawn |= {
        f"Signal and noise in triplets of {size} sentences, {rule}.": overlap_figure(study, rule, size)
        for rule in ("base", "unrestricted")
        for size in study.lengths
        if study.on(rule, size)
    }
    drawn |= {
        f"Accuracy by length of span, {backbone}.": length_figure(study, backbone) for backbone in study.backbones
    }
    text = (
        "If words alone find the positive, the benchmark measures topic. The gap between the two configurations is "
        "what drawing positives from other documents brings."
    )
    return ReportSection("Is topic decoupled?", text, tuple(tables), drawn)


def table_columns(table: Table) -> dict[str, dict[str, float]]:
    """Column → row → value, as bars want it."""
    return {
        column: {row.label: row.cells[at].value for row in table.rows}
        for at, column in enumerate(table.columns)
        if column != "signal"  # the difference of two of the others
    }


def overlap_figure(study: StudyOutcomes, rule: str, sentences: int) -> str:
    from idiograph.evaluate.topic import triplet_jaccard

    parts = [triplet_jaccard(texts_of_triplets(benchmark)) for benchmark in study.on(rule, sentences)]
    near, far, noise = (np.concatenate([part[at] for part in parts]) for at in range(3))
    names = {"anchor and positive": near, "anchor and negative": far, "signal": near - far, "noise": noise}
    return figures.histograms(names)


def length_figure(study: StudyOutcomes, backbone: str) -> str:
    """One panel a configuration, a line a model."""
    table = decoupling_table(study, backbone)
    panels = {f"measured on {rule}": by_length(table, rule, study.lengths) for rule in ("base", "unrestricted")}
    return figures.line_panels(panels, study.lengths, "sentences", 9.5)


def by_length(table: Table, rule: str, sizes: list[int]) -> list[Series]:
    """The columns of one configuration, one for every length; empty where there is none."""
    place = {column: at for at, column in enumerate(table.columns)}
    at = [place.get(f"{size}, {rule}") for size in sizes]
    rows = [TableRow(r.label, tuple(Cell() if n is None else r.cells[n] for n in at)) for r in table.rows]
    return series_of_rows(rows)


def series_of_rows(rows: Sequence[TableRow]) -> list[Series]:
    """The rows of a table, as a figure takes them."""
    return [Series(row.label, *np.array([cell.numbers for cell in row.cells], float).T) for row in rows]


def which_grain(material: Material) -> ReportSection:
    study = material.study
    tables: list[Table] = []
    drawn: dict[str, str] = {}
    for backbone in study.backbones:
        stages = [stage for stage in STAGES if any_trained(study, backbone, stage)]
        tables += [make(study, backbone, stage) for make in (lead_of, by_corpus) for stage in stages]
        tables += [swap_table(study, backbone)]
        tables += [table for stage in stages if (table := by_depth(study, backbone, stage)) is not None]
        tables += [retrieval_table(study, backbone, size, stage) for size in study.lengths for stage in stages]
        for stage in STAGES:
            if says_something(lead_of(study, backbone, stage)):
                caption = f"Retrieval by length of span, {backbone}, {study.loss(stage)}."
                drawn[caption] = subset_figure(study, backbone, stage)
    text = (
        "Mean pooling, tokens, and patches between them, for every length of span, under the published loss and "
        "temperature and under ones that suit each grain; and the same weights read at grains that they were not "
        "trained at."
    )
    return ReportSection("Which grain?", text, tuple(tables), drawn)


def any_trained(study: StudyOutcomes, backbone: str, stage: str) -> bool:
    """Was any grain trained so?"""
    return any(study.outcome(backbone, grain, stage) for grain in GRAINS)


def subset_figure(study: StudyOutcomes, backbone: str, stage: str) -> str:
    by_size = {size: retrieval_table(study, backbone, size, stage) for size in study.lengths}
    labels = [row.label for row in next(iter(by_size.values())).rows]
    panels = {}
    for at, measure in enumerate(MEASURES):
        rows = [TableRow(label, tuple(table[label].cells[at] for table in by_size.values())) for label in labels]
        panels[measure] = series_of_rows(rows)
    return figures.line_panels(panels, list(by_size), "sentences", 13.0)


def which_temperature(material: Material) -> ReportSection:
    study = material.study
    tables: list[Table] = []
    drawn: dict[str, str] = {}
    for backbone in study.backbones:
        table = temperatures(study, backbone)
        if table.rows:
            tables += [table, temperature_leads(study, backbone), at_their_best(study, backbone)]
            tables += [temperatures(study, backbone, "nDCG@20")]
            drawn[f"R@20 by temperature, {backbone}; the published setting is shaded."] = figures.temperature_lines(
                series_of_rows(table.rows), table.columns, SUM
            )
    text = (
        "The paper divides every score by 0.5: a cosine, which that makes nearly flat, and a sum of a hundred "
        "cosines, which it makes razor-sharp. Here each grain is trained at several temperatures."
    )
    return ReportSection("Which conclusions survive a change of temperature?", text, tuple(tables), drawn)


def where_texts_lie(material: Material) -> ReportSection:
    study = material.study
    alone = meaning_alone(study, material.problems.get("en", ()))
    tables: list[Table] = [] if alone is None else [alone]
    drawn: dict[str, str] = {}
    for backbone in study.backbones:
        stages = [stage for stage in STAGES if any_trained(study, backbone, stage)]
        tables += [make(study, backbone, stage) for stage in stages for make in (spread_table, semantic)]
        for stage in stages:
            table = spread_table(study, backbone, stage)
            drawn[f"Alignment and uniformity, {backbone}: {table.title.split(', ')[-1]}."] = figures.spread_points(
                series_of_rows(table.rows)
            )
        both = cosine_table(study, backbone)
        if both is not None:
            drawn[f"Likeness of meaning and of style, {backbone}."] = figures.likeness_scatter(
                both[0].values, both[1].values, meant(study)
            )
    return ReportSection(
        "Geometry, and whether style is more than meaning", "", tuple(table for table in tables if table.rows), drawn
    )


def what_goes_wrong(material: Material) -> ReportSection:
    study = material.study
    tables = []
    for backbone in study.backbones:
        for stage in STAGES:
            outcome = study.patched(backbone, stage)
            if outcome is not None and ranked_failures(study, outcome):
                tables += [first_hits(study, backbone, stage)]
                tables += [failure_modes(study, outcome), failure_modes(study, outcome, published=True)]
    text = (
        "Spans that stand before the right answer. The published analysis averages over the first twenty hits with "
        "the right answer among them; the second of each pair of tables does so too, to show what that does."
    )
    return ReportSection("What goes wrong", text, tuple(tables))


def another_register(material: Material) -> ReportSection:
    tables = [
        pan19_table(material.study, problems, lang, backbone, stage)
        for backbone in material.study.backbones
        for lang, problems in material.problems.items()
        for stage in STAGES
    ]
    return ReportSection(
        "Another register", "Models trained on scholarly prose, put to fan fiction.", tuple(t for t in tables if t.rows)
    )


def which_size(material: Material) -> ReportSection:
    study = material.study
    tables: list[Table] = []
    drawn: dict[str, str] = {}
    for backbone in study.backbones:
        for stage in STAGES:
            tables += [
                table
                for table in (best_sizes(study, backbone, stage), patch_size_table(study, backbone, stage))
                if table
            ]
        samples = {measure: samples_of(study, backbone, measure, "main") for measure in MEASURES}
        curves = {name: drawn_curve(curve(*each)) for name, each in samples.items() if each is not None}
        if curves:
            caption = f"Best patch size by length, {backbone}: areas show how often a size is chosen in resamples."
            drawn[caption] = figures.patch_sizes(curves)
    return ReportSection("Is there a law for the patch size?", "", tuple(tables), drawn)


def how_it_was_trained(material: Material) -> ReportSection:
    study = material.study
    tables = [make(study, backbone) for backbone in study.backbones for make in (negatives, boundaries, seeds)]
    drawn = {
        f"Learned boundaries of {outcome.run.backbone}, {kind_of_run(outcome.run)}: their probabilities, and the lengths of the "
        "patches that they would make above a half.": figures.histograms(cuts_of(outcome))
        for outcome in study.outcomes
        if "cuts|chance" in outcome.arrays
    }
    return ReportSection(
        "Negatives, learned boundaries, luck", "", tuple(table for table in tables if table is not None), drawn
    )


def what_it_costs(material: Material) -> ReportSection:
    return ReportSection("What it costs", "", (cost_table(material.tokens, 768), cost_table(material.tokens, 384)))


CHAPTERS: tuple[Callable[[Material], ReportSection], ...] = (
    what_it_is, is_topic_decoupled, which_grain, which_temperature, where_texts_lie, what_goes_wrong,
    another_register, which_size, how_it_was_trained, what_it_costs,
)  # fmt: skip


def chapters(material: Material) -> list[ReportSection]:
    """All that have something to say."""
    parts = (make(material) for make in CHAPTERS)
    written = [replace(s, tables=tuple(t.without_blanks() for t in s.tables if says_something(t))) for s in parts]
    return [section for section in written if section.tables]


def says_something(table: Table) -> bool:
    return any(cell.known for row in table.rows for cell in row.cells)
