"""Index, attribute, verify, explain: evidence that adds up, and honesty where there is none."""

import shutil

import numpy as np
import pytest

from idiograph.answer.attribute import attribute, background, groups, set_score
from idiograph.answer.calibrate import Calibration, cllr, fit, posterior, times, words
from idiograph.answer.explain import explain
from idiograph.answer.index import Index
from idiograph.answer.overlap import content_words, overlap
from idiograph.answer.verify import background as pair_background
from idiograph.answer.verify import cross_fitted, score_matrix, verify
from idiograph.corpus.anthology import anthology
from idiograph.errors import ArtifactError, InputError, ModelError, SpecError, TooShort

ESSAYS = list(anthology())


@pytest.fixture(scope="module")
def built(tmp_path_factory, style):
    return Index.build(ESSAYS[:20], tmp_path_factory.mktemp("built") / "index", style, source="anthology")


@pytest.fixture
def index(built, tmp_path, style):
    """A copy that a test may change."""
    shutil.copytree(built.folder, tmp_path / "index")
    return Index.open(tmp_path / "index", style)


def test_an_indexed_passage_finds_itself(index):
    passage = index.passages[7]
    best = index.search(passage.text, k=1)[0]
    assert best.passage == passage
    assert best.score == pytest.approx(1, abs=1e-3)  # vectors are kept in 16 bits


def test_the_index_scores_as_the_style_does(index, style):
    asked = ESSAYS[30].text[:400]
    expected = style.compare([asked], [p.text for p in index.passages])
    assert np.allclose(index.scores([asked]), expected, atol=2e-3)


def test_an_index_reopens_with_its_style_and_refuses_another(index, style):
    again = Index.open(index.folder, style)
    assert len(again) == len(index)
    with pytest.raises(ModelError, match=r"was made with model .*ngram:2/all, not .*whole/all; rebuild it"):
        Index.open(index.folder, style.at("whole"))


def test_adding_a_document_again_replaces_it(index):
    before, documents = len(index), {p.doc_id for p in index.passages}
    index.add(ESSAYS[:1])
    assert (len(index), {p.doc_id for p in index.passages}) == (before, documents)


def test_an_added_document_is_found_and_a_deleted_one_is_gone(index):
    new = ESSAYS[25]
    index.add([new])
    assert index.search(new.text[:300], k=1)[0].passage.doc_id == new.id
    assert index.delete([new.id]) > 0
    assert new.id not in {p.doc_id for p in index.passages}


def test_excluded_documents_are_not_found(index):
    passage = index.passages[0]
    assert passage.doc_id not in {h.passage.doc_id for h in index.search(passage.text, k=20, exclude=[passage.doc_id])}


def test_document_ids_with_quotes_are_no_sql(index):
    from dataclasses import replace

    index.add([replace(ESSAYS[25], id="x' OR '1'='1")])
    before = len(index)
    removed = index.delete(["x' OR '1'='1"])
    assert 0 < removed < before


def test_an_empty_or_damaged_index_is_refused(index, style, tmp_path):
    index.delete(sorted({p.doc_id for p in index.passages}))
    with pytest.raises(InputError, match="is empty"):
        attribute(ESSAYS[30].text, index)
    shutil.rmtree(index.folder / "spans.lance")
    with pytest.raises(ArtifactError, match="is damaged; rebuild it"):
        Index.open(index.folder, style)
    with pytest.raises(InputError, match="no document to index"):
        Index.build([], tmp_path / "none", style)
    assert not (tmp_path / "none").exists()


def test_an_attribution_ranks_author_sets_with_evidence_from_different_documents(index):
    found = attribute(ESSAYS[0].text, index, k=10)
    assert set(found.candidates[0].authors) == set(ESSAYS[0].author_set)
    assert [c.score for c in found.candidates] == sorted((c.score for c in found.candidates), reverse=True)
    for candidate in found.candidates:
        assert len({e.doc_id for e in candidate.evidence}) == len(candidate.evidence) > 0
        assert all(e.asked in ESSAYS[0].text for e in candidate.evidence)


def test_an_excluded_document_is_no_evidence(index):
    found = attribute(ESSAYS[0].text, index, k=10, exclude=[ESSAYS[0].id])
    assert ESSAYS[0].id not in {e.doc_id for c in found.candidates for e in c.evidence}


def test_candidates_can_be_named_and_unknown_ones_are_refused(index):
    found = attribute(ESSAYS[0].text, index, candidates=["Ansel Brook"])
    assert [c.names for c in found.candidates] == [("Ansel Brook",)]
    with pytest.raises(InputError, match="no author of index .* is among the candidates"):
        attribute(ESSAYS[0].text, index, candidates=["Nobody"])


def test_a_prolific_author_has_no_advantage():
    scores = np.array([[0.5, 0.5, 0.5, 0.1]], np.float32)
    assert set_score(scores, {"a": [0], "b": [1], "c": [2]}) == set_score(scores, {"a": [0]})
    assert set_score(scores, {"a": [0]}, skip="a") is None


def test_the_background_is_learned_once_and_kept(index):
    first = background(index)
    (index.folder / "background.json").stat()
    assert background(Index.open(index.folder, index.style)) == first
    assert first.calibration.same == len({d for docs in groups(index.passages).values() for d in docs})


def test_a_text_that_shares_its_topic_words_carries_a_warning(index):
    found = attribute(ESSAYS[0].text, index, k=1)
    assert found.candidates[0].topical  # the essay itself is in the index


@pytest.mark.parametrize("text", ["", "Too short to say.", "word " * 49])
def test_too_short_a_text_is_refused(index, text):
    with pytest.raises(TooShort, match="too short to say who wrote it; 50 are the least"):
        attribute(text, index)


def test_parts_of_an_explanation_sum_to_the_score(style, texts):
    from dataclasses import replace

    for score in ("maxsim", "meansim", "symmetric"):
        for patch in ("whole", "word", "ngram:1", "ngram:3", "auto"):
            one = replace(style, score=score, patch=patch)
            found = explain(texts[0], texts[1], one)
            assert sum(m.part for m in found.matches) == pytest.approx(found.score, abs=1e-9)
            assert found.score == pytest.approx(float(one.compare(texts[:1], texts[1:2])[0, 0]), abs=1e-4)


def test_matched_patches_are_the_places_they_name(style, texts):
    found = explain(texts[0], texts[0], style)
    for left, right, match in found.best(5):
        assert left == right
        assert match.similarity == pytest.approx(1, abs=1e-5)


def test_patches_of_an_explanation_cover_the_words_of_the_text(style, texts):
    found = explain(texts[0], texts[1], style)
    covered = "".join(texts[0][m.start : m.end] for m in found.matches)
    assert covered.replace(" ", "") == texts[0].replace(" ", "")


def test_scattered_patches_cannot_be_explained(style, texts):
    with pytest.raises(SpecError, match="scattered"):
        explain(texts[0], texts[1], style.at("cluster:3"))


def test_a_calibration_gives_back_the_ratio_of_two_known_hills():
    random = np.random.default_rng(0)
    same, different = random.normal(1, 1, 4000), random.normal(-1, 1, 4000)
    found = fit(same.tolist(), different.tolist(), "s", "c")
    for score in (-1.0, 0.0, 1.5):
        assert found.llr(score) == pytest.approx(2 * score / np.log(10), abs=0.08)  # two normals: LR = exp(2x)


def test_a_ratio_is_bounded_by_the_pairs_it_was_learned_from():
    found = fit([1.0] * 10 + [0.9], [0.0] * 20, "s", "c")
    assert found.llr(1000) == pytest.approx(np.log10(11))
    assert found.llr(-1000) == pytest.approx(-np.log10(11))


def test_too_few_pairs_are_no_calibration():
    with pytest.raises(InputError, match="only 3 same-author and 20 different-author pairs"):
        fit([1.0] * 3, [0.0] * 20, "s", "c")


def test_scores_that_say_nothing_give_ratios_near_one():
    random = np.random.default_rng(0)
    found = fit(random.normal(size=500).tolist(), random.normal(size=5000).tolist(), "s", "c")
    assert abs(found.llr(2.0)) < 0.2


@pytest.mark.parametrize(
    ("llr", "said"),
    [
        (0.1, "inconclusive"),
        (0.5, "weak support for the same author"),
        (-1.5, "moderate support for different authors"),
        (2.5, "strong support for the same author"),
        (-3.5, "very strong support for different authors"),
        (4.5, "extremely strong support for the same author"),
    ],
)
def test_a_ratio_is_put_in_words(llr, said):
    assert words(llr) == said


def test_the_readers_odds_are_the_readers():
    assert posterior(0, 1) == 0.5
    assert posterior(1, 1) == pytest.approx(10 / 11)
    assert posterior(2, 0.01) == pytest.approx(0.5)
    assert times(2) == "100 times more likely if the same author"


def test_saying_nothing_costs_one_bit():
    assert cllr(np.zeros(5), np.zeros(9)) == pytest.approx(1)
    assert cllr(np.full(5, 6.0), np.full(9, -6.0)) < 0.001
    assert cllr(np.full(5, -6.0), np.full(9, 6.0)) > 5


def test_a_pair_is_scored_the_same_from_both_sides(style):
    scores = score_matrix([d.text for d in ESSAYS[:4]], style)
    assert np.allclose(scores, scores.T, atol=1e-6)


def test_a_verdict_says_what_it_was_learned_from_and_abstains_where_it_should(style):
    known = pair_background(ESSAYS[:20], style, "essays")
    verdict = verify(ESSAYS[0].text, ESSAYS[1].text, style, known, prior_odds=0.5)
    assert (verdict.calibration.source, verdict.prior_odds) == ("essays", 0.5)
    assert verdict.same is (None if abs(verdict.llr) < 0.3 else verdict.llr > 0)
    assert verify(ESSAYS[0].text, ESSAYS[0].text, style, known).topic_warning


def test_a_pair_is_calibrated_on_other_writers_alone():
    writers = [n // 5 for n in range(30)]
    random = np.random.default_rng(1)
    scores = np.array([[float(a == b) for a in writers] for b in writers]) + random.normal(0, 0.1, (30, 30))
    scores[0, 1] = scores[1, 0] = -50.0  # would drag a calibration that saw it to the ground
    ratios = cross_fitted(scores, writers)
    assert ratios[2, 3] > 0.5
    assert ratios[0, 1] < 0


def test_overlap_counts_content_words_alone():
    assert overlap(content_words("the tide of the sea"), content_words("a tide and the seas")) == 1
    assert overlap(content_words("the of and"), content_words("the of and")) == 0


def test_a_calibration_reads_back():
    from idiograph.answer.verify import Background

    known = Background(Calibration(1.0, 2.0, 3.0, 4, 5, "s", "c"), 0.1)
    assert Background.from_json(known.to_json()) == known
