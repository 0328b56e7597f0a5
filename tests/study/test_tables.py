"""The tables of the study, from made-up outcomes whose answers are known."""

from dataclasses import replace

import numpy as np
import pytest

from idiograph.errors import ArtifactError, InputError
from idiograph.evaluate import published
from idiograph.evaluate.pan19 import evaluate_attribution, right_answers, triplets_won
from idiograph.evaluate.problems import Problem
from idiograph.mining.benchmark import Benchmark
from idiograph.neural.trial import VectorFile
from idiograph.neural.triplets import name_number
from idiograph.recipe import PanRecipe
from idiograph.study.claims import FAILS, HOLDS, UNDECIDED, above_zero, all_claims
from idiograph.study.measure import mean_over_parts, measure_scores, uniformity_parts
from idiograph.study.outcomes import (
    MEASURES,
    RunOutcome,
    Sample,
    StudyOutcomes,
    outcome_file,
    read_outcome,
    read_outcomes,
    write_outcome,
)  # fmt: skip
from idiograph.study.plan import PUBLISHED, SECOND, Size, StudyRun, never_planned, plan_runs, run_from_json
from idiograph.study.table import Cell, Table, TableRow, as_csv, latex, to_json
from idiograph.study.tables.cost import cost_table, kilobytes, operations
from idiograph.study.tables.depth import by_depth, recall_at_depth, relative_lead
from idiograph.study.tables.failures import distractors, first_hits
from idiograph.study.tables.geometry import correlate, spread_table
from idiograph.study.tables.granularity import by_corpus, lead_of, retrieval_table, swap_table
from idiograph.study.tables.pan19 import EXPECTED, pan19_sample, pan19_table
from idiograph.study.tables.patchsize import coefficient, curve, exponent, fit_curve, published_fit
from idiograph.study.tables.semantic import meaning_alone
from idiograph.study.tables.temperature import SUM, at_their_best, temperature_leads, temperatures
from idiograph.study.tables.training import boundaries, cuts_of, patches, seeds
from idiograph.types import Span

WRITERS, EACH = 8, 6


def bench(sentences: int = 4, seed: int = 0) -> Benchmark:
    """Eight writers with six texts each, in two documents; the first two texts of each are anchors."""
    labels = np.repeat(np.arange(WRITERS), EACH)
    documents = labels * 10 + np.tile([0, 0, 1, 1, 1, 1], WRITERS)
    anchors = np.flatnonzero(np.arange(len(labels)) % EACH < 2)
    pool = np.flatnonzero(np.arange(len(labels)) % EACH >= 1)
    place = {int(text): at for at, text in enumerate(pool)}
    rows = [
        (at, place[int(a // EACH * EACH + 2)], place[int((a + EACH) % len(labels) // EACH * EACH + 3)])
        for at, a in enumerate(anchors)
    ]
    spans = [
        Span(f"{document}", 0, 1, f"text {seed} number {at} by writer {label} about things", frozenset({f"a{label}"}),
             frozenset({f"d{label % 2}"}))
        for at, (label, document) in enumerate(zip(labels, documents, strict=True))
    ]  # fmt: skip
    sides = (tuple(spans[at] for at in side) for side in (anchors, pool))
    configuration = f"base-{sentences}"
    name = f"made up/{configuration}"
    return Benchmark(name, *sides, np.array(rows), corpus="made up", configuration=configuration)


def outcome(
    run: StudyRun,
    benches: list[Benchmark],
    value: float,
    chance: np.random.Generator,
    readings: dict[str, float] | None = None,
) -> RunOutcome:
    """Every measure of every anchor near `value`."""
    arrays, notes = {}, {}
    for one in benches:
        for grain, level in {run.patch: value, **(readings or {})}.items():
            key = f"{grain}|{one.name}"
            noise = chance.normal(0, 0.01, (len(one.anchors), len(MEASURES)))
            arrays[f"{key}|measures"] = (level + noise).astype(np.float32)
            arrays[f"{key}|triplets"] = np.full(len(one.triplets), float(level > 0.5), np.float32)
            notes[key] = {"patches": 30.0 * one.sentences}
        arrays[f"valid|{one.name}|measures"] = np.full((3, len(MEASURES)), value, np.float32)
    return RunOutcome(run, {"read": notes, "seconds": 1.0, "negatives": 255.0}, arrays)


@pytest.fixture
def found(random) -> StudyOutcomes:
    """Mean pooling at 0.1 under the published temperature and at 0.5 under its own; late interaction at 0.5 and 0.52."""
    benches = [bench(size, size) for size in (2, 4)]
    made = [
        outcome(StudyRun("main", "m", "whole", rule="none"), benches, 0.2, random, {"ngram:1": 0.22, "ngram:3": 0.25}),
        outcome(StudyRun("main", "m", "whole"), benches, 0.50, random, {"ngram:1": 0.51}),
        outcome(StudyRun("main", "m", "ngram:1"), benches, 0.52, random),
        outcome(StudyRun("main", "m", "ngram:2"), benches, 0.55, random),
        outcome(StudyRun("published", "m", "whole", tau=PUBLISHED, score="maxsim"), benches, 0.1, random),
        outcome(StudyRun("published", "m", "ngram:1", tau=PUBLISHED, score="maxsim"), benches, 0.5, random),
        outcome(StudyRun("temperature", "m", "whole", tau=0.05), benches, 0.53, random),
        outcome(StudyRun("temperature", "m", "ngram:1", tau=0.05), benches, 0.51, random),
    ]
    return StudyOutcomes(made, benches)


def test_a_grain_table_has_our_value_its_interval_and_the_published_one(found):
    row = retrieval_table(found, "m", 4)["late interaction (ngram:1)"]
    assert row.cells[0].value == pytest.approx(0.52, abs=0.01)
    assert row.cells[0].low < row.cells[0].value < row.cells[0].high
    assert row.cells[0].published == 0.485


def test_mean_pooling_read_as_late_interaction_is_a_row_of_its_own(found):
    row = retrieval_table(found, "m", 4)["mean pooling, read as LI (whole as ngram:1)"]
    assert row.cells[0].value == pytest.approx(0.51, abs=0.01)
    assert row.cells[0].published == 0.147


def test_each_corpus_has_a_row_of_its_own(found):
    row = by_corpus(found, "m")["made up"]
    assert row.cells[2].value == pytest.approx(0.52, abs=0.01)


def test_weights_read_at_another_grain_are_in_the_swap_matrix(found):
    assert swap_table(found, "m")["untrained"].cells[2].value == pytest.approx(0.25, abs=0.01)


def test_the_lead_is_paired_and_stands_beside_the_published_one(found):
    cell = lead_of(found, "m", "published")["ngram:1 − whole"].cells[1]
    assert cell.value == pytest.approx(0.4, abs=0.02)
    assert cell.published == pytest.approx(0.364)


def test_the_published_temperature_is_a_column_and_mean_pooling_stands_under_both_names(found):
    table = temperatures(found, "m")
    assert SUM in table.columns
    row = table["mean pooling (whole)"].cells
    assert row[table.columns.index(SUM)].value == row[table.columns.index("0.5")].value


def test_the_lead_turns_with_the_temperature(found):
    table = temperature_leads(found, "m")
    cells = dict(zip(table.columns, table["ngram:1 − whole"].cells, strict=True))
    assert cells[SUM].low > 0.3
    assert cells["0.05"].high < 0


def test_temperatures_are_chosen_on_validation_writers(found):
    table = at_their_best(found, "m")
    assert {row.label.split("τ = ")[1] for row in table.rows} == {"0.05", "learn"}


def test_no_temperature_is_chosen_without_validation_writers(found):
    seen = [
        replace(o, arrays={k: v for k, v in o.arrays.items() if not k.startswith("valid|")}) for o in found.outcomes
    ]
    blind = StudyOutcomes(seen, found.benchmarks)
    assert not at_their_best(blind, "m").rows
    assert not [claim for claim in all_claims(blind) if "chosen on other writers" in claim.quantity]


def test_the_verdict_on_the_temperature_says_how_much_of_the_published_lead_it_explains(found):
    said = next(c for c in all_claims(found) if c.claim == "The lead is an effect of the temperature")
    assert "% of the paper's +301 %, on 1 backbone, 51,200 rows a run" in said.remark


def test_a_backbone_whose_grains_read_alike_untrained_cannot_show_a_lead(found, random):
    untrained = outcome(StudyRun("main", "m", "whole", rule="none"), found.benchmarks, 0.2, random)
    whole = {name: values for name, values in untrained.arrays.items() if name.startswith("whole")}
    alike = {f"{grain}{name.removeprefix('whole')}": v for grain in ("ngram:1", "ngram:3") for name, v in whole.items()}
    one_vector = replace(untrained, arrays={**untrained.arrays, **alike})
    assert "cannot show a lead" in lead_remark(StudyOutcomes([one_vector, *found.outcomes[1:]], found.benchmarks))
    assert "cannot show a lead" not in lead_remark(found)


def lead_remark(study: StudyOutcomes) -> str:
    return next(c.remark for c in all_claims(study) if c.claim == "Late interaction is ahead of mean pooling")


def test_what_a_second_backbone_is_never_trained_on_is_listed():
    runs = plan_runs(["a", "b"], Size(), SECOND)
    (line,) = never_planned(runs)
    assert line.startswith("b: ngram:2, ngram:4, ngram:5, word, ")
    assert "learned:3 budget" in line
    assert not never_planned(plan_runs(["a"], Size()))


def test_a_negative_range_is_legible():
    cell = Cell(-0.022, -0.033, -0.012)
    assert (cell.text, cell.range) == ("−0.022", "−0.033 to −0.012")
    assert "$-$0.022 {\\tiny [$-$0.033, $-$0.012]}" in latex(Table("t", "t", ("c",), (TableRow("r", (cell,)),)))


def test_a_lead_that_goes_with_its_temperature_is_called_an_effect_of_it(found):
    verdicts = {c.quantity: c for c in all_claims(found)}
    gone = verdicts["how much of the lead goes when each grain has its own temperature"]
    assert gone.verdict == HOLDS
    assert gone.cell.value == pytest.approx(0.38, abs=0.03)


def test_a_small_lead_holds_but_is_not_called_far(found):
    verdicts = {(c.claim, c.quantity.split(", ")[-1]): c.verdict for c in all_claims(found)}
    assert verdicts["Late interaction is ahead of mean pooling", "learned temperature"] == HOLDS
    far = "Late interaction is far ahead: it finds at least twice as much"
    assert verdicts[far, "learned temperature"] == FAILS
    assert verdicts[far, "published loss"] == HOLDS


def test_under_the_published_protocol_no_table_speaks_of_a_learned_temperature(found, random):
    runs = [StudyRun("main", "m", grain, tau=PUBLISHED, score="maxsim") for grain in ("whole", "ngram:1", "ngram:2")]
    plain = StudyOutcomes(
        [found.outcomes[0], *(outcome(run, found.benchmarks, 0.3, random) for run in runs)], found.benchmarks
    )
    titles = [make(plain, "m").title for make in (lead_of, by_corpus, spread_table)] + [
        retrieval_table(plain, "m", 4).title
    ]
    titles += [claim.quantity for claim in all_claims(plain) if "ahead" in claim.claim and "Late" in claim.claim]
    assert len(titles) == 6
    assert all("published loss" in title and "learned" not in title for title in titles)


def test_cloze_pairs_and_unrestricted_are_compared_by_retrieval_too(found, random):
    other = outcome(StudyRun("decoupling", "m", "whole", "ict"), found.benchmarks, 0.3, random)
    made = all_claims(StudyOutcomes([*found.outcomes, other], found.benchmarks))
    said = next(c for c in made if c.claim == "Training on base beats cloze pairs" and c.quantity == "R@20")
    assert said.verdict == HOLDS
    assert said.cell.value == pytest.approx(0.2, abs=0.02)


def test_recall_by_depth_leaves_the_own_document_out():
    one = bench()
    right = one.relevant() & ~one.own_document()  # four each, of the other document
    top = np.argsort(~right, axis=1, kind="stable")
    assert recall_at_depth(one, top, 1).tolist() == [0.25] * len(one.anchors)
    assert recall_at_depth(one, top, 4).tolist() == [1.0] * len(one.anchors)


def test_the_lead_by_depth_is_in_per_cent_of_mean_pooling(found):
    one = found.on("base")[0]
    right = one.relevant() & ~one.own_document()
    good = np.argsort(~right, axis=1, kind="stable")
    poor = np.concatenate([good[:, :1], good[:, 4:], good[:, 1:4]], axis=1)  # one of four at once, the others last
    for o in found.outcomes:
        if o.run.stage == "published":
            o.arrays[f"{o.run.patch}|{one.name}|top"] = poor if o.run.patch == "whole" else good
    table = by_depth(found, "m", "published")
    assert table is not None
    cells = dict(zip(table.columns, table["lead in per cent"].cells, strict=True))
    assert [cells[name].value for name in ("R@1", "R@2", "R@5", "R@100")] == pytest.approx([0, 100, 300, 0])
    assert cells["R@20"].published == pytest.approx(300.8, abs=0.1)
    assert by_depth(found, "m", "main") is None  # no rankings were kept


def test_first_hits_are_counted_once_an_anchor(found):
    one = found.on("base")[0]
    right = one.relevant() & ~one.own_document()
    good = np.argsort(~right, axis=1, kind="stable")
    late = np.concatenate([good[:, 4:9], good[:, :4]], axis=1)  # five wrong ones before the right
    for o in found.outcomes:
        if o.run.stage == "published":
            o.arrays[f"{o.run.patch}|{one.name}|top"] = late if o.run.patch == "whole" else good
    table = first_hits(found, "m", "published")
    assert [cell.value for cell in table["mean pooling (whole)"].cells] == pytest.approx([0, 0, 1 / 6])
    assert [cell.value for cell in table["late interaction (ngram:1)"].cells] == [1, 1, 1]


def test_a_ratio_of_means_is_paired():
    a, b = Sample(np.array([0.2, 0.4, 0.6]), np.arange(3)), Sample(np.array([0.1, 0.2, 0.3]), np.arange(3))
    cell = relative_lead(a, b)
    assert (cell.value, cell.low, cell.high) == pytest.approx((1.0, 1.0, 1.0))


def test_a_ratio_to_next_to_nothing_is_not_given():
    a, b = Sample(np.array([0.2, 0.4]), np.arange(2)), Sample(np.array([0.0, 0.2]), np.arange(2))
    assert not relative_lead(a, b).known


def test_a_claim_is_undecided_when_its_interval_holds_zero():
    assert above_zero(Cell(0.1, -0.1, 0.3)) == UNDECIDED
    assert above_zero(Cell(0.1, 0.05, 0.3)) == HOLDS
    assert above_zero(Cell(-0.1, -0.2, -0.05)) == FAILS
    assert above_zero(Cell()) == UNDECIDED


def test_samples_of_different_anchors_cannot_be_paired():
    a, b = Sample(np.zeros(2), np.array([1, 2])), Sample(np.zeros(2), np.array([1, 3]))
    with pytest.raises(ValueError, match="cannot be paired"):
        _ = a - b


def test_spans_of_the_own_document_do_not_count_unless_the_published_protocol_is_asked_for():
    one = bench()
    relevant, own = one.relevant(), one.own_document()
    scores = np.where(relevant & own, 1.0, 0.0).astype(np.float32)  # finds its own document alone
    hit = MEASURES.index("Hit@1")
    ours = measure_scores(scores, one)["measures"][:, hit]
    theirs = measure_scores(scores, one, keep_own=True)["measures"][:, hit]
    assert theirs.mean() == 1.0
    assert ours.mean() < 0.2


def test_perfect_scores_give_perfect_measures():
    one = bench()
    found = measure_scores(one.relevant().astype(np.float32), one)
    assert found["measures"].min() == 1.0
    assert found["triplets"].min() == 1.0


def test_distractors_leave_out_everything_by_the_anchors_own_hand():
    one = bench()
    right_first = np.argsort(~one.relevant(), axis=1, kind="stable")
    author = 1
    assert np.nanmax(distractors(one, right_first)["rank 1"][:, author]) == 0.0
    assert distractors(one, right_first, published=True)["rank 1"][:, author].min() == 1.0


def test_a_constant_best_size_has_exponent_zero_and_a_rooted_one_a_half():
    lengths = np.array([64.0, 144.0, 256.0, 400.0])
    assert exponent(lengths, np.full(4, 3.0)) == pytest.approx(0.0)
    assert exponent(lengths, 0.25 * np.sqrt(lengths)) == pytest.approx(0.5)
    factor, error = coefficient(lengths, 0.25 * np.sqrt(lengths), "root")
    assert factor == pytest.approx(0.25)
    assert error == pytest.approx(0.0)


def test_the_published_points_fit_the_published_factor():
    lengths, best = (np.array(each, float) for each in zip(*published.PATCH_SIZES.values(), strict=True))
    assert coefficient(lengths, best, "root")[0] == pytest.approx(0.177, abs=0.001)
    assert published_fit()["squared error, root"] < published_fit()["squared error, constant"]


def test_a_size_that_wins_by_noise_alone_leaves_the_exponent_open(random):
    clusters = np.repeat(np.arange(30), 4)
    samples = [[Sample(random.normal(0.5, 0.1, 120), clusters) for _ in range(5)] for _ in range(5)]
    fits = fit_curve(curve(samples, [70, 130, 200, 270, 330]))
    assert fits["free exponent"].low < 0 < fits["free exponent"].high


def test_correlation_is_pearsons():
    a = np.random.default_rng(1).normal(size=(50, 2))
    b = 0.5 * a + np.random.default_rng(2).normal(size=(50, 2))
    clusters = np.arange(50) // 2
    cell = correlate(Sample(a, clusters), Sample(b, clusters), (0, 1))
    assert cell.value == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1])
    assert cell.low < cell.value < cell.high


def test_uniformity_of_one_point_is_zero_and_of_opposites_low():
    same = np.tile([[1.0, 0.0]], (4, 1)).astype(np.float32)
    assert np.log(uniformity_parts(same).mean()) == pytest.approx(0.0)
    opposite = np.array([[1, 0], [-1, 0]], np.float32)
    assert np.log(uniformity_parts(opposite).mean()) == pytest.approx(-8.0)


@pytest.fixture
def problems() -> list[Problem]:
    one = Problem("p1", "en", {"ann": ("a",), "bob": ("b", "bb")}, {"u1": "x", "u2": "z"}, {"u1": "ann", "u2": "<UNK>"})
    two = Problem("p2", "en", {"cid": ("c",), "dee": ("d",)}, {"u1": "y"}, {"u1": "dee"})
    return [one, two]


def put_to_problems(scores: dict[str, list[list[float]]]) -> RunOutcome:
    """A model that gave the unknown texts of each problem these scores against its candidates, both ways."""
    ways = ("joined", "mean")
    arrays = {f"pan|en|{name}|{how}": np.array(rows, np.float32) for name, rows in scores.items() for how in ways}
    return RunOutcome(StudyRun("main", "m", "whole"), {"read": {"pan|en": {}}}, arrays)


def test_a_text_by_nobody_of_the_candidates_is_not_asked_about(problems):
    assert [problem.answerable for problem in problems] == [["u1"], ["u1"]]
    model = put_to_problems({"p1": [[0.5, 0.4]], "p2": [[0.5, 0.4]]})
    won = pan19_sample(model, "en", problems, "joined", lambda each: triplets_won(each, EXPECTED))
    assert won.values.tolist() == [1.0, 0.0]
    assert won.clusters.tolist() == [0, 3]  # ann is the first candidate of all, dee the fourth
    assert pan19_sample(model, "en", problems, "mean", right_answers).values.tolist() == [1.0, 0.0]


def test_the_table_of_another_register_has_both_protocols(problems):
    study = StudyOutcomes([put_to_problems({"p1": [[0.5, 0.4]], "p2": [[0.5, 0.4]]})], [bench()])
    cells = pan19_table(study, problems, "en", "m")["mean pooling (whole)"].cells
    assert [cell.value for cell in cells] == [0.5, 0.5, 0.5, 0.5]
    assert cells[0].published == published.PAN19["whole"]


def test_both_protocols_on_pan19_are_those_of_the_zero_shot_table(random):
    truth = {f"u{at:02d}": f"c{at % 4}" for at in range(20)}
    known = {f"c{at}": (f"known {at}",) for at in range(4)}
    problem = Problem("p", "en", known, {file: f"unknown {file}" for file in truth}, truth)
    scores = random.random((20, 4)).astype(np.float32)

    class Drawn:
        name = "drawn"

        def compare(self, a, b):
            return scores[[int(text[-2:]) for text in a]]

    model = put_to_problems({"p": scores.tolist()})
    for recipe in (PanRecipe(), PanRecipe(unknowns="last", negatives="one")):
        ours = pan19_sample(model, "en", [problem], "joined", lambda each, r=recipe: triplets_won(each, r), recipe)
        theirs = evaluate_attribution(Drawn(), [problem], recipe)
        assert ours.values.tolist() == theirs.accuracy.tolist()


def test_a_candidate_is_the_mean_over_their_texts():
    scores = np.array([[1, 3, 2.5, 0]], np.float32)
    assert mean_over_parts(scores, [2, 1, 1]).tolist() == [[2.0, 2.5, 0.0]]


def test_a_model_of_meaning_takes_the_place_of_the_untrained_backbone(found, random):
    assert found.semantic is None
    given = [outcome(StudyRun("semantic", "e5", "whole", "none"), found.benchmarks, 0.2, random, {"ngram:1": 0.3})]
    with_it = StudyOutcomes([*found.outcomes, *given], found.benchmarks)
    assert with_it.backbones == ["m"]
    table = meaning_alone(with_it)
    assert table is not None
    assert table["late interaction (ngram:1)"].cells[0].value == pytest.approx(0.3, abs=0.01)
    assert table["mean pooling (whole)"].cells[0].published == 0.167
    assert meaning_alone(found) is None


def test_vectors_of_a_file_are_found_by_their_texts(tmp_path):
    texts = ["one", "two", "three"]
    path = tmp_path / "vectors.npz"
    np.savez(path, keys=[name_number(text) for text in texts], vectors=np.eye(3) * 2)
    given = VectorFile(path)
    patches = given.read(["three", "one"], ["whole", "ngram:1"])
    assert list(patches) == ["whole"]
    assert given.scores(patches["whole"].take(np.array([0])), patches["whole"]).tolist() == [[1.0, 0.0]]
    with pytest.raises(InputError, match="has no vector of 'four"):
        given.read(["four"], ["whole"])
    with pytest.raises(InputError, match="no file of vectors"):
        VectorFile(tmp_path / "nothing.npz")


def test_costs_are_the_published_ones_at_their_length_and_width():
    for grain, (_, flops) in published.COST.items():
        assert operations(512, 768, grain) == pytest.approx(flops, rel=0.01)
    for grain, size in published.STORAGE.items():
        assert kilobytes(512, 768, grain) == pytest.approx(size, rel=0.01)


def test_latency_is_measured_and_falls_with_the_patch_size():
    table = cost_table(64, 64)
    times = [table[label].cells[3].value for label in ("late interaction (ngram:1)", "ngram:5")]
    assert times[0] > times[1] > 0


def test_the_conclusion_is_drawn_at_each_temperature_for_itself(found):
    verdicts = {claim.claim: claim.verdict for claim in all_claims(found)}
    assert verdicts[f"ngram:1 is ahead of mean pooling at τ = {SUM}"] == HOLDS
    assert verdicts["ngram:1 is ahead of mean pooling at τ = 0.05"] == FAILS


def test_a_second_seed_stands_beside_the_run_that_it_repeats(found, random):
    again = [
        outcome(StudyRun("seeds", "m", grain, seed=8, tau=PUBLISHED, score="maxsim"), found.benchmarks, value, random)
        for grain, value in (("whole", 0.2), ("ngram:1", 0.5))
    ]
    table = seeds(StudyOutcomes([*found.outcomes, *again], found.benchmarks), "m")
    assert table is not None
    cells = table["ngram:1, published loss"].cells
    assert [cell.value for cell in cells] == pytest.approx([0.5, 0.5, 0.0, 0.4, 0.3], abs=0.02)


def test_a_second_seed_has_a_claim_of_its_own(found, random):
    again = [
        outcome(StudyRun("seeds", "m", grain, seed=8), found.benchmarks, value, random)
        for grain, value in (("whole", 0.5), ("ngram:1", 0.6))
    ]
    made = all_claims(StudyOutcomes([*found.outcomes, *again], found.benchmarks))
    said = next(c for c in made if c.claim == "Late interaction is ahead of mean pooling with another seed")
    assert said.cell.value == pytest.approx(0.1, abs=0.02)
    assert said.quantity == "R@20, ngram:1 − whole, learned temperature, seed 8"


def cutting(kind: str, found: StudyOutcomes, value: float, random) -> RunOutcome:
    """A run with learned boundaries that are all likely."""
    how = {} if kind == "budget" else {"tau": PUBLISHED, "score": "maxsim"}
    made = outcome(
        StudyRun("learned", "m", "learned:3", model={"boundaries": kind}, **how), found.benchmarks, value, random
    )
    cuts = {"cuts|chance": np.full(40, 0.9, np.float32), "cuts|lengths": np.array([20, 20])}
    return RunOutcome(made.run, made.about, {**made.arrays, **cuts})


def test_learned_boundaries_are_set_beside_fixed_patches_of_the_same_loss(found, random):
    fixed = [
        outcome(StudyRun("main", "m", "ngram:3"), found.benchmarks, 0.5, random),
        outcome(StudyRun("published", "m", "ngram:3", tau=PUBLISHED, score="maxsim"), found.benchmarks, 0.3, random),
    ]
    learned = [cutting("budget", found, 0.4, random), cutting("reg2", found, 0.4, random)]
    both = StudyOutcomes([*found.outcomes, *fixed, *learned], found.benchmarks)
    table = boundaries(both, "m")
    assert table is not None
    assert [row.cells[-1].value for row in table.rows] == pytest.approx([-0.1, 0.1], abs=0.02)
    assert table["budget, learned temperature"].cells[-3].value == 1.0  # as many patches as there are tokens
    told = [c.cell.value for c in all_claims(both) if c.claim == "Fixed patches beat learned boundaries"]
    assert told == pytest.approx([0.1, -0.1], abs=0.02)


def test_under_the_published_protocol_the_learned_row_is_the_published_penalty(found, random):
    runs = [StudyRun("main", "m", "ngram:1", tau=PUBLISHED, score="maxsim")]
    made = [*(outcome(run, found.benchmarks, 0.3, random) for run in runs), cutting("reg2", found, 0.4, random)]
    row = retrieval_table(StudyOutcomes([found.outcomes[0], *made], found.benchmarks), "m", 4)["learned:3"]
    assert row.cells[0].value == pytest.approx(0.4, abs=0.01)


def test_patches_are_counted_from_probabilities():
    chance, ends = np.array([0.1, 0.6, 0.2, 0.4, 0.8]), np.array([3, 5])
    assert patches(chance, ends, 0.5).tolist() == [2.0, 2.0]
    assert patches(chance, ends, 0.9).tolist() == [1.0, 1.0]


def test_patches_between_boundaries_end_with_their_text():
    made = RunOutcome(
        StudyRun("learned", "m", "learned:3"),
        {},
        {"cuts|chance": np.array([0.1, 0.6, 0.2, 0.4, 0.8]), "cuts|lengths": np.array([3, 2])},
    )
    assert cuts_of(made)["tokens a patch"].tolist() == [1.0, 2.0, 1.0, 1.0]


def test_every_run_of_a_plan_has_a_name_of_its_own_and_survives_json():
    runs = plan_runs(["a", "b"], Size(), SECOND)
    assert len({run.name for run in runs}) == len(runs)
    assert [run_from_json(run.to_json()).name for run in runs] == [run.name for run in runs]


def test_budgets_are_equal_but_for_the_runs_about_them():
    runs = [run for run in plan_runs(["a"], Size()) if run.rule != "none" and run.stage != "negatives"]
    assert {(run.steps, run.batch) for run in runs} == {(200, 128)}


def test_the_published_protocol_has_one_temperature_and_its_head():
    runs = [run for run in plan_runs(["a"], Size(), preset="paper") if run.rule != "none"]
    assert {(run.tau, run.score, run.model["head"]) for run in runs} == {(0.5, "maxsim", "mlp")}


def test_outcomes_come_back_as_they_were_stored(tmp_path, random):
    first = outcome(StudyRun("main", "m", "whole"), [bench()], 0.5, random)
    second = outcome(StudyRun("main", "m", "ngram:1"), [bench()], 0.6, random)
    for each in (second, first):
        write_outcome(each, tmp_path)
    again = read_outcomes(tmp_path, [first.run, StudyRun("main", "m", "word"), second.run])
    assert [o.run.patch for o in again] == ["whole", "ngram:1"]
    assert again[0].run == first.run
    assert all(np.array_equal(again[0].arrays[key], value) for key, value in first.arrays.items())


def test_a_damaged_outcome_says_what_to_remove(tmp_path, random):
    path = write_outcome(outcome(StudyRun("main", "m", "whole"), [bench()], 0.5, random), tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ArtifactError, match="is damaged .* remove it, and the run is done again"):
        read_outcome(path)


def test_runs_of_different_names_have_different_files(tmp_path):
    names = {
        outcome_file(tmp_path, run).name for run in (StudyRun("main", "a b", "whole"), StudyRun("main", "a-b", "whole"))
    }
    assert len(names) == 2
    assert all(name.startswith("a-b-whole-base-tau-learn-batch-256-steps-200-seed-7-") for name in names)


def test_tables_are_written_in_every_format():
    table = Table("t", "A & B", ("R@20",), (TableRow("x_1", (Cell(0.5, 0.4, 0.6, 0.3),)), TableRow("y", (Cell(),))))
    assert "x\\_1 & 0.500 {\\tiny [0.400, 0.600]} {\\tiny (0.300)} \\\\" in latex(table)
    assert "A \\& B" in latex(table)
    assert "x_1,R@20,0.5,0.4,0.6,0.3" in as_csv(table)
    known, unknown = to_json([table])[0]["rows"]
    assert known["cells"][0] == {"value": 0.5, "low": 0.4, "high": 0.6, "published": 0.3, "digits": 3}
    assert unknown["cells"][0]["value"] is None


@pytest.mark.parametrize("sentences", [2, 4, 6, 8, 10])
def test_published_rows_have_four_measures_that_rise_with_the_cutoff(sentences):
    for values in published.RETRIEVAL[sentences].values():
        recall, deeper, gain, deeper_gain = values
        assert recall < deeper
        assert gain < deeper_gain
