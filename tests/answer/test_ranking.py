"""Attribution in a large index: few are scored, and what is said about everybody still holds."""

import numpy as np
import pytest

from idiograph.answer import ranking
from idiograph.answer.attribute import attribute, size_of
from idiograph.answer.authors import AuthorBest, author_sets_of
from idiograph.answer.openset import calibration_of_index
from idiograph.answer.ranking import estimate_score, rank_candidates
from idiograph.answer.rolling import rolling
from idiograph.errors import InputError
from idiograph.index.index import Index
from idiograph.recipe import IndexRecipe
from idiograph.synth.anthology import anthology

ESSAYS = list(anthology())


@pytest.fixture(scope="module")
def built(tmp_path_factory, style):
    many = IndexRecipe(words=60)  # passages: as in a large index
    found = Index.build(ESSAYS[::2], tmp_path_factory.mktemp("built") / "index", style, many, source="essays")
    calibration_of_index(found)
    return found


@pytest.fixture
def large(monkeypatch, built):
    """The index, searched as if it were large: three candidates who seem nearest, and three others."""
    monkeypatch.setattr(ranking, "MAX_PASSAGES_TO_SCORE_ALL", 1)
    monkeypatch.setattr(ranking, "NEAREST_CANDIDATES", 3)
    monkeypatch.setattr(ranking, "PANEL_CANDIDATES", 3)
    return built


@pytest.fixture
def asked(built):
    return built.embed([ESSAYS[4].text[:700], ESSAYS[4].text[700:1400]])


def test_when_all_are_scored_the_ranking_is_the_exact_one(monkeypatch, large, asked):
    monkeypatch.setattr(ranking, "NEAREST_CANDIDATES", 1000)
    monkeypatch.setattr(ranking, "PASSAGES_PER_DOCUMENT", 1000)
    everybody = author_sets_of(large)
    fast, exact = rank_candidates(large, everybody, asked), rank_candidates(large, everybody, asked, exact=True)
    assert fast.who.tolist() == exact.who.tolist()
    assert np.allclose(fast.z, exact.z, atol=1e-4)
    assert fast.weights.tolist() == [1.0] * len(fast)


def test_a_panel_stands_for_those_who_were_not_scored(large, asked):
    everybody = author_sets_of(large)
    found = rank_candidates(large, everybody, asked)
    assert len(found) == 6 < len(everybody.keys)
    assert found.weights.sum() == pytest.approx(len(everybody.keys))
    assert sorted(found.weights)[:3] == [1.0, 1.0, 1.0]


def test_fewer_passages_are_read_than_the_index_has(large, asked):
    found = rank_candidates(large, author_sets_of(large), asked)
    assert len(found.matches.passages) < len(large) / 2


def test_what_is_scored_is_scored_exactly(large, asked):
    everybody = author_sets_of(large)
    found, right = rank_candidates(large, everybody, asked).matches, large.score_everything(asked)[:, :]
    made = np.isfinite(found.scores)
    assert np.allclose(found.scores[made], right[:, found.passages][made], atol=1e-5)


def test_everybody_is_estimated_from_a_panel():
    random = np.random.default_rng(3)
    seems = random.normal(0.5, 0.1, 5000)
    scores = 0.2 + 0.9 * seems + random.normal(0, 0.03, 5000)
    here = np.arange(5000)
    sure = np.argsort(-seems)[:100]
    panel = np.setdiff1d(random.permutation(5000)[:200], sure)
    found, right = estimate_score(seems, scores, here, sure, panel), AuthorBest.of(scores)
    z, truth = found.standing(scores[sure]), right.standing(scores[sure])
    assert np.abs(z - truth).max() < 0.15
    without = AuthorBest.of(scores[panel]).standing(scores[sure])  # the panel alone, as if it were everybody
    assert np.abs(z - truth).mean() < np.abs(without - truth).mean()


def test_what_sketches_say_exactly_needs_no_luck_with_the_panel():
    seems = np.linspace(0, 1, 1000)
    scores = 0.1 + 0.5 * seems
    found = estimate_score(seems, scores, np.arange(1000), np.arange(990, 1000), np.arange(300))  # a panel from one end
    right = AuthorBest.of(scores)
    assert (found.total, found.squares) == pytest.approx((right.total, right.squares))


def test_candidates_who_are_named_are_scored_however_far_they_seem(large, asked):
    everybody = author_sets_of(large)
    last = rank_candidates(large, everybody, asked, exact=True).who[-1]
    named = np.arange(len(everybody.keys)) == last
    assert last not in rank_candidates(large, everybody, asked).who[:1]
    found = rank_candidates(large, everybody, asked, also=named)
    assert found.of(named).who.tolist() == [last]
    assert not found.of(named).seen[0] or last in rank_candidates(large, everybody, asked).who
    closed = attribute(ESSAYS[4].text, large, candidates=[everybody.names[last][0]])
    assert [c.names for c in closed.candidates] == [everybody.names[last]]


def test_a_large_index_gives_the_answer_that_everything_gives(large):
    fast, exact = attribute(ESSAYS[4].text, large, k=2), attribute(ESSAYS[4].text, large, k=2, exact=True)
    assert fast.candidates[0].authors == exact.candidates[0].authors
    assert fast.candidates[0].score == pytest.approx(exact.candidates[0].score, abs=0.02)
    assert {e.doc_id for e in fast.candidates[0].evidence} <= {d.id for d in ESSAYS[::2]}
    assert sum(c.probability for c in fast.candidates) + fast.none.probability <= 1 + 1e-9


def test_an_excluded_document_does_not_count_in_a_large_index(large):
    found = attribute(ESSAYS[4].text, large, k=3, exclude=[ESSAYS[4].id])
    assert ESSAYS[4].id not in {e.doc_id for c in found.candidates for e in c.evidence}


def test_somebody_who_leads_in_one_window_has_a_ratio_in_all(large):
    text = ESSAYS[0].text + "\n\n" + ESSAYS[20].text
    found = rolling(text, large, k=2, window=120, step=60, method="model")
    everybody, known = author_sets_of(large), calibration_of_index(large).calibration
    kept = np.array([names in found.candidates for names in everybody.names])
    for (start, end), llr in zip(found.windows, found.llr, strict=True):
        one = rank_candidates(large, everybody, large.embed([text[start:end]]), also=kept).of(kept)
        size = size_of(len(text[start:end].split()))
        right = {everybody.names[who]: known.llr(float(z), size) for who, z in zip(one.who, one.z, strict=True)}
        assert [right[names] for names in found.candidates] == pytest.approx(llr.tolist(), abs=0.35)


def test_the_calibration_asks_as_the_search_does(monkeypatch, large, tmp_path, style):
    monkeypatch.setattr(ranking, "MAX_PASSAGES_TO_SCORE_ALL", 1)
    fresh = Index.build(ESSAYS[:20], tmp_path / "index", style)
    few = calibration_of_index(fresh)
    fresh.add(ESSAYS[20:21])
    monkeypatch.setattr(ranking, "MAX_PASSAGES_TO_SCORE_ALL", 10_000)
    assert calibration_of_index(fresh).calibration.weights != few.calibration.weights


def test_what_follows_from_the_index_is_made_once_and_forgotten_when_it_changes(tmp_path, style):
    index = Index.build(ESSAYS[:4], tmp_path / "index", style)
    assert author_sets_of(index) is author_sets_of(index)
    before = author_sets_of(index)
    index.add(ESSAYS[20:21])
    assert author_sets_of(index) is not before


def test_an_index_without_authors_is_refused(tmp_path, style):
    from dataclasses import replace

    index = Index.build([replace(d, authors=()) for d in ESSAYS[:2]], tmp_path / "index", style)
    with pytest.raises(InputError, match="names an author"):
        attribute(ESSAYS[4].text, index, by="author")
