"""Evaluation measures what it says: own document out, relevance by author-set, intervals by author-set."""

import numpy as np
import pytest

from idiograph.errors import InputError
from idiograph.evaluate.run import Benchmark, evaluate, open_benchmark
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
    report = evaluate(Given(SCORES), benchmark(), EvaluateRecipe(measures=("Hit@1", "RR"), resamples=0))
    assert report["RR"].value == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert report["Hit@1"].value == 0


def test_the_published_protocol_counts_the_own_document():
    recipe = EvaluateRecipe(measures=("Hit@1",), own_document="keep", resamples=0)
    assert evaluate(Given(SCORES), benchmark(), recipe)["Hit@1"].value == 0.5


def test_triplet_accuracy_compares_positive_and_negative():
    report = evaluate(Given(SCORES), benchmark(), EvaluateRecipe(measures=("RR",), resamples=0))
    assert report["triplet accuracy"].value == 0.5


def test_a_benchmark_without_answers_is_refused():
    lonely = Benchmark(
        "b", (span("d1", "A", "x"),), (span("d2", "B", "y"), span("d3", "C", "z")), np.array([[0, 0, 1]])
    )
    with pytest.raises(InputError, match="no anchor of 'b' has a text by the same author-set"):
        evaluate(Given([[1.0, 2.0]]), lonely)


@pytest.fixture(scope="module")
def triplets(anthology_corpus, tmp_path_factory):
    from idiograph.corpus.mine import mine
    from idiograph.recipe import recipe

    folder = tmp_path_factory.mktemp("mined") / "triplets"
    mine(anthology_corpus, recipe("sound", {"mine": {"fractions": (0, 0, 1)}}).mine, folder)
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
    from idiograph.baselines.bm25 import BM25
    from idiograph.baselines.delta import Delta

    found = open_benchmark(triplets)
    delta, bm25 = evaluate(Delta(), found), evaluate(BM25(), found)
    assert delta["Hit@1"].value > bm25["Hit@1"].value
    assert delta.same_field < 0.3 < bm25.same_field


def test_reports_are_written_as_markdown_and_json(triplets):
    from idiograph.baselines.delta import Delta
    from idiograph.evaluate.report import markdown

    report = evaluate(Delta(), open_benchmark(triplets), EvaluateRecipe(measures=("R@20",), resamples=50))
    value = report["R@20"].value
    assert f"{value:.3f} [" in markdown([report])
    assert report.to_json()["measures"]["R@20"]["value"] == value


def test_an_untrained_encoder_is_evaluated_at_any_grain(triplets, style):
    found = open_benchmark(triplets)
    small = Benchmark("s", found.anchors[:5], found.pool, found.triplets[found.triplets[:, 0] < 5])
    for grain in ("whole", "ngram:2"):
        assert 0 <= evaluate(style.at(grain), small)["R@20"].value <= 1
