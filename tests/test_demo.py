"""The demo: from the built-in essays to a page that says what to believe."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from idiograph import demo as module
from idiograph.demo import demo_questions, follows_topic, run_demo
from idiograph.synth.anthology import anthology

SHORT = 1000  # characters of an essay: the whole ones take half a minute


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GRAINS", ("ngram:3",))
        patch.setattr(module, "BASELINES", ("delta",))
        patch.setattr(module, "read_documents", lambda _: (replace(d, text=d.text[:SHORT]) for d in anthology()))
        return run_demo(folder, lambda *_: None, "1.2.3")


def test_the_page_names_writers_ratios_probabilities_and_passages(made):
    page = made.page.read_text(encoding="utf-8")
    assert [r.ranker for r in made.reports] == ["delta", "idiograph-small @ ngram:3"]
    assert len(made.asked) == 12
    for asked in made.asked:
        assert asked.writer in page
        assert f"{asked.first.llr:+.2f}" in page
        assert f"{100 * asked.first.probability:.0f} %" in page
    assert made.page.parent.joinpath("index", "manifest.json").exists()
    assert "the question</small><blockquote>" in page
    assert f"Cllr = {made.cllr:.3f}" in page


def test_the_page_opens_with_one_case_then_the_others_then_the_methods(made):
    page = made.page.read_text(encoding="utf-8")
    said = (
        "Who wrote it?",
        "How sure?",
        "What says so?",
        "How often is that right?",
        "The other eleven",
        "Which method?",
    )
    places = [page.index(each) for each in said]
    assert places == sorted(places)
    assert any(asked.says and f"asked about: {asked.says}." in page for asked in made.asked)


def test_what_the_ratios_promise_stands_beside_what_came_true(made):
    page = made.page.read_text(encoding="utf-8")
    promised, asked, right = re.search(r"promise ([\d.]+) right first candidates in (\d+); (\d+) are", page).groups()
    assert (int(asked), int(right)) == (12, sum(q.rank == 1 for q in made.asked))
    assert float(promised) == pytest.approx(sum(q.first.probability for q in made.asked), abs=0.05)
    assert 1 < float(promised) <= 12


def test_the_page_warns_of_a_model_that_follows_the_topic(made):
    model = made.reports[1]
    assert ("Read this before you trust the model" in made.page.read_text()) == (
        model.same_field > model["Hit@1"].value
    )


@pytest.mark.parametrize(
    ("grains", "warned"),
    [([(0.7, 0.2), (0.6, 0.5)], True), ([(0.7, 0.2), (0.4, 0.5)], False), ([(0.2, 0.6)], False)],
)
def test_a_model_follows_the_topic_if_it_does_so_at_every_grain(grains, warned):
    class Found(dict):
        same_field = 0.0

    def report(topic: float, hit: float) -> Found:
        found = Found({"Hit@1": SimpleNamespace(value=hit)})
        found.same_field = topic
        return found

    baselines = [report(1.0, 0.0) for _ in module.BASELINES]
    assert follows_topic([*baselines, *(report(*grain) for grain in grains)]) == warned


def test_right_answers_and_promised_ones_are_counted():
    asked = [
        SimpleNamespace(rank=rank, first=SimpleNamespace(probability=p)) for rank, p in [(1, 0.5), (3, 0.25), (1, 0.75)]
    ]
    counted = demo_questions(asked, asked[0])
    assert (counted["right"], counted["expected"]) == (2, 1.5)
