"""The chapters of the report, each from what was found; one that nothing was measured for is left out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from idiograph.evaluate.published import COEFFICIENT, MEASURES
from idiograph.study import figures
from idiograph.study.outcomes import StudyOutcomes
from idiograph.study.pack import Problems
from idiograph.study.plan import GRAINS
from idiograph.study.report import ReportSection
from idiograph.study.table import Cell, Table, TableRow
from idiograph.study.tables.composition import composition, sizes_of, span_cells, writers
from idiograph.study.tables.cost import cost_table
from idiograph.study.tables.decoupling import bench_texts, decoupling_table, overlap_table
from idiograph.study.tables.depth import by_depth
from idiograph.study.tables.failures import failure_modes, first_hits, ranked_failures
from idiograph.study.tables.geometry import cosine_table, meant, semantic, spread_table
from idiograph.study.tables.granularity import by_corpus, lead_of, retrieval_table, swap_table
from idiograph.study.tables.pan19 import pan19_tables
from idiograph.study.tables.patchsize import best_sizes, curve, patch_size_table, samples_of
from idiograph.study.tables.semantic import meaning_alone
from idiograph.study.tables.temperature import SUM, at_their_best, temperature_leads, temperatures
from idiograph.study.tables.training import boundaries, cuts_of, kind_of_run, negatives, seeds

STAGES = ("main", "published")


@dataclass(frozen=True)
class Material:
    """Everything that a report is made from."""

    found: StudyOutcomes
    problems: Mapping[str, Problems] = field(default_factory=dict)  # by language
    counts: Mapping[str, Any] = field(default_factory=dict)  # corpus → configuration → split → triplets
    entropy: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # kind → domain → bits
    tokens: int = 512  # of the texts that are timed


def what_it_is(given: Material) -> ReportSection:
    found = given.found
    tables = [writers(found), span_cells(found)]
    if given.counts:
        tables.insert(0, composition(given.counts))
    drawn = {
        "Three ways to compare two texts: by one vector each, token by token, and patch by patch.": figures.scoring_modes(),
        "Share of anchors by the number of authors of their set.": figures.grouped_bars(
            sizes_of(found), "share of anchors"
        ),
    }
    if given.entropy:
        drawn["Entropy of three characters in a row and of words, by field, corrected for sample size."] = (
            figures.grouped_bars({kind: dict(values) for kind, values in given.entropy.items()}, "bits")
        )
    return ReportSection(
        "What the study is made of",
        "The texts, the triplets drawn from them, and who wrote them.",
        tuple(tables),
        drawn,
    )


def is_topic_decoupled(given: Material) -> ReportSection:
    found = given.found
    shared = overlap_table(found)
    tables = [shared, *(decoupling_table(found, backbone) for backbone in found.backbones)]
    drawn = {
        "Words in common within triplets, means.": figures.grouped_bars(
            table_columns(shared), "share of words in common"
        )
    }
    drawn |= {
        f"Signal and noise in triplets of {size} sentences, {rule}.": overlap_figure(found, rule, size)
        for rule in ("base", "unrestricted")
        for size in found.lengths
        if found.on(rule, size)
    }
    drawn |= {
        f"Accuracy by length of span, {backbone}.": length_figure(found, backbone) for backbone in found.backbones
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


def overlap_figure(found: StudyOutcomes, rule: str, sentences: int) -> str:
    from idiograph.evaluate.topic import triplet_jaccard

    parts = [triplet_jaccard(bench_texts(bench)) for bench in found.on(rule, sentences)]
    near, far, noise = (np.concatenate([part[at] for part in parts]) for at in range(3))
    names = {"anchor and positive": near, "anchor and negative": far, "signal": near - far, "noise": noise}
    return figures.histograms(names)


def length_figure(found: StudyOutcomes, backbone: str) -> str:
    """One panel a configuration, a line a model."""
    table = decoupling_table(found, backbone)
    shown = {f"measured on {rule}": by_length(table, rule, found.lengths) for rule in ("base", "unrestricted")}
    return figures.line_panels(shown, found.lengths, "sentences", 9.5)


def by_length(table: Table, rule: str, sizes: list[int]) -> Table:
    """The columns of one configuration, one for every length; empty where there is none."""
    place = {column: at for at, column in enumerate(table.columns)}
    at = [place.get(f"{size}, {rule}") for size in sizes]
    rows = tuple(TableRow(r.label, tuple(Cell() if n is None else r.cells[n] for n in at)) for r in table.rows)
    return Table(rule, rule, tuple(map(str, sizes)), rows)


def which_grain(given: Material) -> ReportSection:
    found = given.found
    tables: list[Table] = []
    drawn: dict[str, str] = {}
    for backbone in found.backbones:
        stages = [stage for stage in STAGES if any_trained(found, backbone, stage)]
        tables += [make(found, backbone, stage) for make in (lead_of, by_corpus) for stage in stages]
        tables += [swap_table(found, backbone)]
        tables += [table for stage in stages if (table := by_depth(found, backbone, stage)) is not None]
        tables += [retrieval_table(found, backbone, size, stage) for size in found.lengths for stage in stages]
        for stage in STAGES:
            if says_something(lead_of(found, backbone, stage)):
                caption = f"Retrieval by length of span, {backbone}, {found.loss(stage)}."
                drawn[caption] = subset_figure(found, backbone, stage)
    text = (
        "Mean pooling, tokens, and patches between them, for every length of span, under the published loss and "
        "temperature and under ones that suit each grain; and the same weights read at grains that they were not "
        "trained at."
    )
    return ReportSection("Which grain?", text, tuple(tables), drawn)


def any_trained(found: StudyOutcomes, backbone: str, stage: str) -> bool:
    """Was any grain trained so?"""
    return any(found.outcome(backbone, grain, stage) for grain in GRAINS)


def subset_figure(found: StudyOutcomes, backbone: str, stage: str) -> str:
    by_size = {size: retrieval_table(found, backbone, size, stage) for size in found.lengths}
    labels = [row.label for row in next(iter(by_size.values())).rows]
    panels = {}
    for at, measure in enumerate(MEASURES):
        rows = tuple(TableRow(label, tuple(table[label].cells[at] for table in by_size.values())) for label in labels)
        panels[measure] = Table(measure, measure, tuple(map(str, by_size)), rows)
    return figures.line_panels(panels, list(by_size), "sentences", 13.0)


def which_temperature(given: Material) -> ReportSection:
    found = given.found
    tables: list[Table] = []
    drawn: dict[str, str] = {}
    for backbone in found.backbones:
        table = temperatures(found, backbone)
        if table.rows:
            tables += [table, temperature_leads(found, backbone), at_their_best(found, backbone)]
            tables += [temperatures(found, backbone, "nDCG@20")]
            drawn[f"R@20 by temperature, {backbone}; the published setting is shaded."] = figures.temperature(
                table, SUM
            )
    text = (
        "The paper divides every score by 0.5: a cosine, which that makes nearly flat, and a sum of a hundred "
        "cosines, which it makes razor-sharp. Here each grain is trained at several temperatures."
    )
    return ReportSection("Which conclusions survive a change of temperature?", text, tuple(tables), drawn)


def where_texts_lie(given: Material) -> ReportSection:
    found = given.found
    alone = meaning_alone(found, given.problems.get("en"))
    tables: list[Table] = [] if alone is None else [alone]
    drawn: dict[str, str] = {}
    for backbone in found.backbones:
        stages = [stage for stage in STAGES if any_trained(found, backbone, stage)]
        tables += [make(found, backbone, stage) for stage in stages for make in (spread_table, semantic)]
        for stage in stages:
            table = spread_table(found, backbone, stage)
            drawn[f"Alignment and uniformity, {backbone}: {table.title.split(', ')[-1]}."] = figures.geometry(table)
        both = cosine_table(found, backbone)
        if both is not None:
            drawn[f"Likeness of meaning and of style, {backbone}."] = figures.scatter(
                both[0].values, both[1].values, meant(found)
            )
    return ReportSection(
        "Geometry, and whether style is more than meaning", "", tuple(table for table in tables if table.rows), drawn
    )


def what_goes_wrong(given: Material) -> ReportSection:
    found = given.found
    tables = []
    for backbone in found.backbones:
        for stage in STAGES:
            outcome = found.patched(backbone, stage)
            if outcome is not None and ranked_failures(found, outcome):
                tables += [first_hits(found, backbone, stage)]
                tables += [failure_modes(found, outcome), failure_modes(found, outcome, published=True)]
    text = (
        "Spans that stand before the right answer. The published analysis averages over the first twenty hits with "
        "the right answer among them; the second of each pair of tables does so too, to show what that does."
    )
    return ReportSection("What goes wrong", text, tuple(tables))


def another_register(given: Material) -> ReportSection:
    tables = [
        pan19_tables(given.found, problems, lang, backbone, stage)
        for backbone in given.found.backbones
        for lang, problems in given.problems.items()
        for stage in STAGES
    ]
    return ReportSection(
        "Another register", "Models trained on scholarly prose, put to fan fiction.", tuple(t for t in tables if t.rows)
    )


def which_size(given: Material) -> ReportSection:
    found = given.found
    tables: list[Table] = []
    drawn: dict[str, str] = {}
    for backbone in found.backbones:
        for stage in STAGES:
            tables += [
                table
                for table in (best_sizes(found, backbone, stage), patch_size_table(found, backbone, stage))
                if table
            ]
        given_samples = {measure: samples_of(found, backbone, measure, "main") for measure in MEASURES}
        curves = {name: curve(*each) for name, each in given_samples.items() if each is not None}
        if curves:
            caption = f"Best patch size by length, {backbone}: areas show how often a size is chosen in resamples."
            drawn[caption] = figures.patch_sizes(curves, COEFFICIENT)
    return ReportSection("Is there a law for the patch size?", "", tuple(tables), drawn)


def how_it_was_trained(given: Material) -> ReportSection:
    found = given.found
    made = [make(found, backbone) for backbone in found.backbones for make in (negatives, boundaries, seeds)]
    drawn = {
        f"Learned boundaries of {outcome.run.backbone}, {kind_of_run(outcome.run)}: their probabilities, and the lengths of the "
        "patches that they would make above a half.": figures.histograms(cuts_of(outcome))
        for outcome in found.outcomes
        if "cuts|chance" in outcome.arrays
    }
    return ReportSection(
        "Negatives, learned boundaries, luck", "", tuple(table for table in made if table is not None), drawn
    )


def what_it_costs(given: Material) -> ReportSection:
    return ReportSection("What it costs", "", (cost_table(given.tokens, 768), cost_table(given.tokens, 384)))


CHAPTERS: tuple[Callable[[Material], ReportSection], ...] = (
    what_it_is, is_topic_decoupled, which_grain, which_temperature, where_texts_lie, what_goes_wrong,
    another_register, which_size, how_it_was_trained, what_it_costs,
)  # fmt: skip


def chapters(given: Material) -> list[ReportSection]:
    """All that have something to say."""
    made = (make(given) for make in CHAPTERS)
    told = [replace(s, tables=tuple(t.without_blanks() for t in s.tables if says_something(t))) for s in made]
    return [section for section in told if section.tables]


def says_something(table: Table) -> bool:
    return any(cell.known for row in table.rows for cell in row.cells)
