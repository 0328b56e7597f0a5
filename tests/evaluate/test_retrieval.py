"""Evaluation measures what it says: own document out, relevance by author-set, intervals by author-set."""

import numpy as np
import pytest

from idiograph.errors import InputError
from idiograph.evaluate.retrieval import Benchmark, evaluate_ranker, open_benchmark
from idiograph.recipe import EvaluateRecipe
from idiograph.types import Span


def span(doc, author, text, field="f"):
    return Span(doc, 0, len(text), text, frozenset({author}), frozenset({field}))


class Given:
    """A ranker whose scores are written down."""

    name = "given"

    def __init__(self, scores):
        self.scores = np.array(scores, np.float32)

    def compare(self, a, b):
        assert self.scores.shape == (len(a), len(b))
        return self.scores


def benchmark():
    anchors = (span("d1", "A", "one"), span("d3", "B", "two"))
    pool = (span("d1", "A", "own"), span("d2", "A", "hit"), span("d4", "B", "other"), span("d5", "C", "noise"))
    return Benchmark("b", anchors, pool, np.array([[0, 1, 2], [1, 2, 3]]))


SCORES = [[9.0, 1.0, 2.0, 3.0], [0.0, 4.0, 3.0, 2.0]]


def test_the_anchors_own_document_neither_counts_nor_competes():
    report = evaluate_ranker(Given(SCORES), benchmark(), EvaluateRecipe(measures=("Hit@1", "RR"), resamples=0))
    assert report["RR"].value == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert report["Hit@1"].value == 0


def test_the_published_protocol_counts_the_own_document():
    recipe = EvaluateRecipe(measures=("Hit@1",), own_document="keep", resamples=0)
    assert evaluate_ranker(Given(SCORES), benchmark(), recipe)["Hit@1"].value == 0.5


def test_triplet_accuracy_compares_positive_and_negative():
    report = evaluate_ranker(Given(SCORES), benchmark(), EvaluateRecipe(measures=("RR",), resamples=0))
    assert report["triplet accuracy"].value == 0.5


def test_a_benchmark_without_answers_is_refused():
    lonely = Benchmark(
        "b", (span("d1", "A", "x"),), (span("d2", "B", "y"), span("d3", "C", "z")), np.array([[0, 0, 1]])
    )
    with pytest.raises(InputError, match="no anchor of 'b' has a text by the same author-set"):
        evaluate_ranker(Given([[1.0, 2.0]]), lonely)


@pytest.fixture(scope="module")
def triplets(anthology_corpus, tmp_path_factory):
    from idiograph.mining.mine import mine_triplets
    from idiograph.recipe import make_recipe

    folder = tmp_path_factory.mktemp("mined") / "triplets"
    mine_triplets(anthology_corpus, make_recipe("sound", {"mine": {"fractions": (0, 0, 1)}}).mine, folder)
    return folder


def test_a_mined_benchmark_holds_each_span_once(triplets):
    found = open_benchmark(triplets)
    keys = [(s.doc_id, s.text) for s in found.pool]
    assert len(keys) == len(set(keys))
    for anchor, positive, negative in found.triplets:
        assert found.anchors[anchor].authors == found.pool[positive].authors
        assert found.anchors[anchor].doc_id != found.pool[positive].doc_id
        assert not found.anchors[anchor].authors & found.pool[negative].authors


def test_delta_finds_the_writers_of_the_anthology_and_bm25_the_topics(triplets):
    from idiograph.rankers.bm25 import BM25
    from idiograph.rankers.delta import Delta

    found = open_benchmark(triplets)
    delta, bm25 = evaluate_ranker(Delta(features=150), found), evaluate_ranker(BM25(), found)
    assert delta["Hit@1"].value > bm25["Hit@1"].value
    assert delta.same_field < 0.3 < bm25.same_field


def test_reports_are_written_as_markdown_and_json(triplets):
    from idiograph.evaluate.report import reports_as_markdown
    from idiograph.rankers.delta import Delta

    report = evaluate_ranker(Delta(), open_benchmark(triplets), EvaluateRecipe(measures=("R@20",), resamples=50))
    value = report["R@20"].value
    assert f"{value:.3f} [" in reports_as_markdown([report])
    assert report.to_json()["measures"]["R@20"]["value"] == value


def test_an_untrained_encoder_is_evaluated_at_any_grain(triplets, style):
    found = open_benchmark(triplets)
    small = Benchmark("s", found.anchors[:5], found.pool, found.triplets[found.triplets[:, 0] < 5])
    for grain in ("whole", "ngram:2"):
        assert 0 <= evaluate_ranker(style.at(grain), small)["R@20"].value <= 1


@pytest.fixture
def few_spans(triplets):
    """The first anchors and spans of the pool."""
    whole = open_benchmark(triplets)
    some = whole.triplets[(whole.triplets < (20, 300, 300)).all(axis=1)]
    return Benchmark("s", whole.anchors[:20], whole.pool[:300], some)


def test_a_style_is_measured_block_by_block_as_all_at_once(few_spans, style, monkeypatch):
    from idiograph.evaluate import retrieval as run
    from idiograph.style import stream

    monkeypatch.setattr(stream, "ANCHOR_ROWS", 40)
    streamed = evaluate_ranker(style, few_spans, EvaluateRecipe(resamples=0))
    assert len(list(run.score_blocks(style, few_spans, EvaluateRecipe()))) > 5
    scores = style.compare([s.text for s in few_spans.anchors], [s.text for s in few_spans.pool])
    whole = evaluate_ranker(Given(scores), few_spans, EvaluateRecipe(resamples=0))
    for one, other in zip(streamed.rows, whole.rows, strict=True):
        assert one.value == pytest.approx(other.value, abs=2e-3), one.measure


@pytest.mark.parametrize("own", ["exclude", "keep"])
@pytest.mark.parametrize("depth", [3, 100])
def test_a_pool_that_is_settled_from_fewer_bits_gives_the_same_report(few_spans, own, depth):
    from hashed import hashed_style

    from idiograph.neural.maxsim.pruned import score_rows_pruned

    style, found = hashed_style(), few_spans
    recipe = EvaluateRecipe(resamples=0, own_document=own, depth=depth, measures=("R@2", "nDCG@20", "Hit@1", "RR"))
    one, other = evaluate_ranker(style, found, recipe), evaluate_ranker(style, found, recipe, pairs=score_rows_pruned)
    assert [(row.measure, row.value) for row in one.rows] == [(row.measure, row.value) for row in other.rows]
    assert np.array_equal(one.top, other.top)
    assert np.allclose(one.top_scores, other.top_scores, atol=2e-6)


def test_what_is_wanted_is_the_head_the_triplets_and_where_the_first_relevant_one_is():
    from idiograph.evaluate.retrieval import wanted_scores

    found = benchmark()
    everything = wanted_scores(slice(0, 1), found, EvaluateRecipe(measures=("R@20", "RR"), depth=5))
    assert everything.depth == 20
    assert np.array_equal(everything.out, found.own_document(slice(0, 1)))
    assert np.array_equal(everything.pivots, found.relevant(slice(0, 1)) & ~everything.out)
    assert set(np.flatnonzero(everything.marked)) == set(found.triplets[found.triplets[:, 0] == 0, 1:].ravel())
    assert not wanted_scores(slice(0, 1), found, EvaluateRecipe(measures=("R@20",))).pivots.any()


def test_a_report_says_what_is_relevant_and_breaks_down_by_field():
    anchors = (span("d1", "A", "one", "bio"), span("d3", "B", "two", "law"))
    found = Benchmark("b", anchors, benchmark().pool, benchmark().triplets)
    report = evaluate_ranker(Given(SCORES), found, EvaluateRecipe(measures=("RR",), resamples=0))
    assert "by the anchor's author-set; passages of the anchor's own document are left out" in report.relevance
    assert {name: (n, rows[0].value) for name, (n, rows) in report.by_domain().items()} == {
        "bio": (1, pytest.approx(1 / 3)),
        "law": (1, 0.5),
    }
    assert report.to_json()["domains"]["law"] == {"anchors": 1, "RR": 0.5}


def test_a_smaller_pool_is_part_of_a_larger_one(triplets):
    found = open_benchmark(triplets)
    small, large = found.smaller(50), found.smaller(80)
    assert (len(small.pool), len(large.pool)) == (50, 80)
    assert set(small.pool) < set(large.pool) < set(found.pool)
    assert 0 < len(small.triplets) < len(found.triplets)
    for anchor, positive, negative in small.triplets:
        assert small.anchors[anchor].authors == small.pool[positive].authors
        assert not small.anchors[anchor].authors & small.pool[negative].authors


def test_a_run_and_its_qrels_give_the_same_numbers_to_ir_measures(triplets, tmp_path):
    import ir_measures

    from idiograph.evaluate.trec import write_qrels, write_run
    from idiograph.rankers.delta import Delta

    found = open_benchmark(triplets)
    report = evaluate_ranker(
        Delta(), found, EvaluateRecipe(measures=("R@20", "nDCG@20", "RR", "Hit@5"), resamples=0, depth=1000)
    )
    write_qrels(found, tmp_path / "qrels")
    write_run(report, tmp_path / "run")
    names = {"R@20": "R@20", "nDCG@20": "nDCG@20", "RR": "RR", "Hit@5": "Success@5"}
    asked = [ir_measures.parse_measure(name) for name in names.values()]
    qrels = ir_measures.read_trec_qrels(str(tmp_path / "qrels"))
    theirs = ir_measures.calc_aggregate(asked, qrels, ir_measures.read_trec_run(str(tmp_path / "run")))
    for name, their_name in names.items():
        assert report[name].value == pytest.approx(theirs[ir_measures.parse_measure(their_name)], abs=1e-6)


def test_a_run_leaves_the_own_document_out(tmp_path):
    from ir_measures import read_trec_run

    from idiograph.evaluate.trec import write_run

    report = evaluate_ranker(Given(SCORES), benchmark(), EvaluateRecipe(measures=("RR",), resamples=0))
    write_run(report, tmp_path / "run")
    assert [d.doc_id for d in read_trec_run(str(tmp_path / "run")) if d.query_id == "q0"] == ["p3", "p2", "p1"]


def test_a_benchmark_goes_round_as_beir(triplets, tmp_path):
    from idiograph.mining.benchmark import open_benchmarks, write_beir
    from idiograph.rankers.delta import Delta

    found = open_benchmark(triplets)
    write_beir(found, tmp_path)
    (back,) = open_benchmarks(tmp_path)
    measures = EvaluateRecipe(measures=("R@20", "RR"), resamples=0)
    first, second = evaluate_ranker(Delta(), found, measures), evaluate_ranker(Delta(), back, measures)
    assert [r.value for r in second.rows] == [first["R@20"].value, first["RR"].value]
    assert second.relevance.startswith("what the qrels name")


def test_somebody_elses_beir_folder_is_read(tmp_path):
    from idiograph.mining.benchmark import read_beir
    from idiograph.rankers.bm25 import BM25

    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "Bees", "text": "they dance"}\n{"_id": "d2", "title": "", "text": "maps lie"}\n'
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "dance of bees"}\n{"_id": "2", "text": "unjudged"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t0\n")
    found = read_beir(tmp_path)
    assert [s.text for s in found.anchors] == ["dance of bees"]
    assert evaluate_ranker(BM25(), found, EvaluateRecipe(measures=("Hit@1",), resamples=0))["Hit@1"].value == 1
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td9\t1\n")
    with pytest.raises(InputError, match="test.tsv:2': not a query, a document of the corpus"):
        read_beir(tmp_path)


def compared(gap, seed=0, anchors=200):
    from idiograph.evaluate.compare import Values, compare_rankers

    random = np.random.default_rng(seed)
    clusters = tuple(f"set {at // 4}" for at in range(anchors))
    shared = random.random(anchors)  # an anchor that is hard for one is hard for the other
    first = Values("A", "b", "f", clusters, {"R@20": shared + gap + 0.05 * random.normal(size=anchors)})
    return compare_rankers([first, Values("B", "b", "f", clusters, {"R@20": shared})], "R@20")[0]


def test_a_beats_b_only_when_it_does():
    assert compared(0.05).verdict == "A beats B"
    assert compared(-0.05).verdict == "B beats A"
    assert compared(0.0).verdict == "no difference shown"


def test_equal_rankers_are_hardly_ever_told_apart():
    verdicts = [compared(0.0, seed).verdict for seed in range(100)]
    assert verdicts.count("no difference shown") >= 90


def test_intervals_widen_with_the_number_of_comparisons():
    from idiograph.evaluate.compare import Values, compare_rankers

    random = np.random.default_rng(1)
    clusters = tuple(map(str, range(100)))
    held = [Values(f"r{at}", "b", "f", clusters, {"RR": random.random(100)}) for at in range(5)]
    alone, among = compare_rankers(held[:2], "RR")[0], compare_rankers(held, "RR")[0]
    assert among.high - among.low > 1.2 * (alone.high - alone.low)


def test_values_of_different_benchmarks_are_not_compared(triplets, tmp_path):
    from idiograph.evaluate.compare import compare_rankers, read_values, write_values
    from idiograph.rankers.bm25 import BM25
    from idiograph.rankers.delta import Delta

    found, measures = open_benchmark(triplets), EvaluateRecipe(measures=("RR",), resamples=0)
    write_values([evaluate_ranker(r, found, measures) for r in (BM25(), Delta())], tmp_path / "values.npz")
    (difference,) = compare_rankers(read_values(tmp_path), "RR")
    assert difference.verdict == "delta beats bm25"
    with pytest.raises(InputError, match="'bm25' was not measured by 'R@9'; there are RR"):
        compare_rankers(read_values(tmp_path), "R@9")
    write_values([evaluate_ranker(Delta(), found.smaller(60), measures)], tmp_path / "other.npz")
    with pytest.raises(InputError, match="were not asked the same"):
        compare_rankers([*read_values(tmp_path), *read_values(tmp_path / "other.npz")], "RR")
