"""Index, attribute, explain: evidence that adds up, and honesty where there is none."""

import shutil

import numpy as np
import pytest

from idiograph.answer.attribute import attribute
from idiograph.answer.authors import AuthorBest, IndexAuthors, author_sets_of
from idiograph.answer.explain import explain
from idiograph.answer.openset import calibration_of_index
from idiograph.errors import ArtifactError, InputError, ModelError, SpecError, TooShort
from idiograph.index.index import Index
from idiograph.synth.anthology import anthology
from idiograph.text.words import content_words, word_overlap

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
    shutil.rmtree(index.folder / "spans")
    with pytest.raises(ArtifactError, match="is damaged .*make it again: idiograph index"):
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
    members, sizes = np.array([0, 1, 2, 0, 0, 3]), np.array([3, 1, 2])
    people = (("prolific",), ("one",), ("uneven",))
    everybody = IndexAuthors(people, people, ("a", "b", "c", "d"), np.arange(4), members, sizes)
    prolific, one, uneven = everybody.scores(np.array([0.5, 0.5, 0.5, 0.1]))
    assert prolific == pytest.approx(one)
    assert 0.3 < uneven < 0.5  # nearer to the near document than a plain mean


def test_a_candidate_is_read_against_all_the_others():
    scores = np.array([0.9, 0.5, 0.5, 0.6, 0.4, 0.5, 0.5])
    found = AuthorBest.of(scores).standing(scores)
    others = np.array([0.5, 0.5, 0.6, 0.4, 0.5, 0.5])
    assert found[0] == pytest.approx((0.9 - others.mean()) / others.std())


def test_single_authors_are_ranked_over_all_their_sets(index, style, tmp_path):
    from dataclasses import replace

    by_two = replace(ESSAYS[1], id="both", authors=(*ESSAYS[1].authors, *ESSAYS[10].authors))
    index.add([by_two])
    sets, people = author_sets_of(index, "set"), author_sets_of(index, "author")
    assert max(map(len, sets.keys)) == 2
    assert max(map(len, people.keys)) == 1
    mine = [people.documents[d] for d in people.documents_of(people.keys.index((ESSAYS[1].authors[0].key,)))]
    assert "both" in mine
    assert len(mine) > 1
    with pytest.raises(SpecError, match="unknown kind of candidate 'person'"):
        author_sets_of(index, "person")


def test_the_background_is_learned_once_and_kept_until_the_index_changes(index):
    first = calibration_of_index(index)
    assert calibration_of_index(Index.open(index.folder, index.style)) == first
    assert first.calibration.same == len({p.doc_id for p in index.passages})
    index.add([ESSAYS[25]])
    assert calibration_of_index(index) != first


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


def test_overlap_counts_content_words_alone():
    assert word_overlap(content_words("the tide of the sea"), content_words("a tide and the seas")) == 1
    assert word_overlap(content_words("the of and"), content_words("the of and")) == 0
