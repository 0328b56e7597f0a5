"""Pairs that differ in their writers alone, and what a comparison of two texts says: calibrated, bounded, abstaining."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from idiograph.answer.pairs import (
    PairDrawing,
    draw_pairs,
    open_pairs,
    pair_scores,
    read_passages,
    score_matrix,
    text_passages,
    text_score,
)
from idiograph.answer.verify import (
    PairCalibration,
    calibrate_on_documents,
    calibration_of_model,
    learn_from_pairs,
    open_calibration,
    verify,
)
from idiograph.errors import ArtifactError, InputError, ModelError, TooShort
from idiograph.rankers.delta import Delta
from idiograph.rankers.impostors import Impostors
from idiograph.recipe import CalibrateRecipe
from idiograph.style.patches import Patches
from idiograph.style.score import symmetric
from idiograph.synth.anthology import anthology

ESSAYS = list(anthology())
RECIPE = CalibrateRecipe(per_author=4, different=3, lengths=(120, 240))


@pytest.fixture(scope="module")
def pairs():
    return draw_pairs(ESSAYS, RECIPE)


@pytest.fixture(scope="module")
def known(style, pairs):
    return learn_from_pairs(pairs, style, "essays", RECIPE)


def test_pairs_of_one_hand_are_by_one_hand_and_the_others_by_two(pairs):
    writer = {d.id: d.author_set for d in ESSAYS}
    for pair in pairs:
        a, b = (writer[doc] for doc in pair.docs)
        assert (a == b) is pair.same
        assert pair.same or not a & b
        assert pair.writers == a | b
        assert pair.docs[0] != pair.docs[1]


def test_every_text_has_the_same_length_in_pairs_of_either_kind(pairs):
    second = {pair.b for pair in pairs if pair.same}
    assert all(pair.b in second for pair in pairs)
    assert {pair.a for pair in pairs if not pair.same} <= {pair.a for pair in pairs if pair.same}


def test_different_writers_meet_in_one_field_where_they_can(pairs):
    field = {d.id: d.domains[0] for d in ESSAYS}
    matched = {p.a: {field[o.docs[1]] for o in pairs if o.same and o.a == p.a} for p in pairs}
    shared = [field[p.docs[1]] in matched[p.a] for p in pairs if not p.same]
    assert np.mean(shared) > 0.9


def test_pairs_do_not_depend_on_the_order_of_the_documents(pairs):
    again = draw_pairs(ESSAYS[::-1], RECIPE)
    assert {(p.docs, p.same) for p in again if p.same} == {(p.docs, p.same) for p in pairs if p.same}


def test_chapters_of_one_book_are_no_pair_unless_asked_for():
    bound = [replace(d, container="one book") for d in ESSAYS[:20]]
    assert draw_pairs(bound, RECIPE) == []
    assert any(p.same for p in draw_pairs(bound, RECIPE.model_copy(update={"containers": "any"})))


def test_a_writer_gives_no_more_pairs_than_allowed():
    found = Counter(a.label for a, _ in PairDrawing(ESSAYS, RECIPE).same())
    assert set(found.values()) == {4}


def test_a_split_holds_only_its_people(anthology_corpus):
    parts = [draw_pairs(anthology_corpus, RECIPE.model_copy(update={"split": (name,)})) for name in ("train", "test")]
    train, test = ({w for p in part for w in p.writers} for part in parts)
    assert train
    assert not train & test


def test_triplets_are_pairs_too(anthology_corpus, tmp_path):
    from idiograph.mining.mine import mine_triplets
    from idiograph.recipe import MineRecipe

    mine_triplets(anthology_corpus, MineRecipe(fractions=(0, 1, 0)), tmp_path / "t")
    found, fingerprint = open_pairs(tmp_path / "t", RECIPE)
    assert Counter(p.same for p in found)[True] >= 40
    assert fingerprint
    assert all((len(p.writers) == 1) is p.same for p in found)


def test_a_corpus_without_recurring_writers_says_what_to_try(tmp_path):
    from idiograph.corpus.corpus import build_corpus

    build_corpus([ESSAYS[0], ESSAYS[20]], tmp_path / "c")
    with pytest.raises(InputError, match="no two texts of one author-set .* try --label first"):
        open_pairs(tmp_path / "c", RECIPE)


def test_a_pair_is_scored_the_same_from_both_sides(style):
    scores = score_matrix([d.text for d in ESSAYS[:4]], style)
    assert np.allclose(scores, scores.T, atol=1e-6)


def test_the_score_of_two_texts_is_that_of_all_their_patches_together(style, monkeypatch):
    texts = [ESSAYS[at].text for at in (0, 7)]
    both = read_passages(texts, style)
    one, two = (Patches(p.vectors, np.array([len(p.vectors)]), p.chars) for p in both)
    expected = float(symmetric(one, two)[0, 0])
    assert text_score(*both) == pytest.approx(expected, abs=1e-6)
    monkeypatch.setattr("idiograph.answer.pairs.SIMILARITIES_PER_TILE", 1000)  # a few rows at a time
    assert text_score(*both) == pytest.approx(expected, abs=1e-6)
    assert len(both[0]) == len(text_passages(texts[0]))


def test_any_ranker_can_be_calibrated(pairs):
    found = learn_from_pairs(pairs, Delta(), "essays", RECIPE).calibration
    assert found.style == "delta"
    assert found.llr(1.0, 2.0) > found.llr(-1.0, 2.0)


def test_impostors_tell_a_writer_from_a_stranger(pairs):
    writer = {text: pair.docs[at].split("/")[0] for pair in pairs for at, text in enumerate((pair.a, pair.b))}
    crowd = Impostors(list(writer), rounds=30, independent=lambda x, y: writer[x] != writer[y])
    scores = pair_scores(pairs, crowd)
    same = np.array([p.same for p in pairs])
    assert ((scores >= 0) & (scores <= 1)).all()
    assert scores[same].mean() > scores[~same].mean()
    assert np.array_equal(scores, pair_scores(pairs, crowd))


def test_a_verdict_says_what_it_was_learned_from_and_abstains_where_it_should(style, known):
    verdict = verify(ESSAYS[0].text, ESSAYS[1].text, style, known, prior_odds=0.5)
    assert (verdict.calibration.source, verdict.prior_odds) == ("essays", 0.5)
    assert verdict.same is (None if abs(verdict.llr) < 0.3 else verdict.llr > 0)
    assert known.calibration.low <= verdict.llr <= known.calibration.high
    assert verify(ESSAYS[0].text, ESSAYS[0].text, style, known).topic_warning


def test_two_texts_are_all_that_has_to_be_given(idiograph, tmp_path):
    import idiograph as package

    texts = [ESSAYS[at].text for at in (0, 7)]
    for name, text in zip(("a.txt", "b.txt"), texts, strict=True):
        (tmp_path / name).write_text(text)
    status, out, err = idiograph("verify", tmp_path / "a.txt", tmp_path / "b.txt", "--json")
    assert status == 0, err
    printed = json.loads(out)
    about = printed.pop("about")
    for found in (package.verify(*texts), package.verify(*texts, package.load())):
        assert json.loads(json.dumps(found.to_json())) == printed
    assert about["preset"] == "sound"


def test_a_model_without_a_calibration_is_calibrated_on_the_essays_and_one_beside_it_counts(style, known, tmp_path):
    assert "anthology" in calibration_of_model(style).calibration.source
    known.save(tmp_path / "calibration.json")
    assert calibration_of_model(replace(style, folder=tmp_path)) == known


def test_two_collections_are_compared_as_two_texts_are(style, known):
    one = verify([ESSAYS[0].text, ESSAYS[1].text], ESSAYS[2].text, style, known)
    assert one.lengths[0] == len(ESSAYS[0].text.split()) + len(ESSAYS[1].text.split())
    alone = verify([ESSAYS[0].text], [ESSAYS[2].text], style, known)
    assert alone == verify(ESSAYS[0].text, ESSAYS[2].text, style, known)


def test_texts_unlike_those_of_the_calibration_carry_a_note(style, known):
    french = "Les marées sont mesurées depuis longtemps dans les ports, mais on les prédit encore assez mal. " * 8
    notes = verify(french, ESSAYS[0].text, style, known).warnings
    assert any("the calibration is for en, but there is text in fr" in note for note in notes)
    long = verify([d.text for d in ESSAYS[:30]], [d.text for d in ESSAYS[30:]], style, known)
    assert any("longer than any" in note for note in long.warnings)


def test_too_short_or_no_text_is_refused(style, known):
    with pytest.raises(TooShort, match="a text of 4 words is too short to say who wrote it; 50 are the least"):
        verify("Only a few words.", ESSAYS[0].text, style, known)
    with pytest.raises(InputError, match="there is no text"):
        verify([], ESSAYS[0].text, style, known)
    with pytest.raises(InputError, match="prior odds must be above 0"):
        verify(ESSAYS[0].text, ESSAYS[1].text, style, known, prior_odds=0)


def test_a_calibration_is_kept_and_refused_by_another_model_grain_or_preset(style, known, tmp_path):
    path = tmp_path / "calibration.json"
    known.save(path)
    assert open_calibration(path, style) == known
    assert PairCalibration.from_json(json.loads(path.read_text())) == known
    with pytest.raises(
        ModelError, match=r"is for model .*ngram:2/all, not .*whole/all; calibrate: idiograph calibrate"
    ):
        open_calibration(path, style.at("whole"))
    with pytest.raises(ModelError, match="is for preset sound, not paper"):
        open_calibration(path, style, "paper")


def test_a_missing_or_broken_calibration_says_how_to_make_one(style, tmp_path):
    with pytest.raises(ArtifactError, match="there is no calibration .*; make it: idiograph calibrate MODEL CORPUS"):
        open_calibration(tmp_path / "calibration.json", style)
    (tmp_path / "calibration.json").write_text('{"calibration": 3}')
    with pytest.raises(ArtifactError, match="cannot be read .* make it again"):
        open_calibration(tmp_path / "calibration.json", style)


def test_a_few_dozen_essays_are_enough_to_begin_with(style):
    found = calibrate_on_documents(ESSAYS[:25], style, "essays")
    assert found.calibration.same > 40
    assert found.about["languages"] == ["en"]
