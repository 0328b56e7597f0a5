"""A large index by the evidence of several methods: few are compared, a panel stands for the others, and it is said."""

import string

import numpy as np
import pytest

from idiograph.answer import methods, rolling
from idiograph.answer.attribute import attribute
from idiograph.answer.authors import author_sets_of
from idiograph.answer.evidence import LibraryEvidence, Method
from idiograph.answer.large import learning, sampled
from idiograph.answer.large.learning import documents_to_ask, sampled_evidence_of_index
from idiograph.answer.large.sampled import prepare_evidence
from idiograph.answer.large.sketch import PASSAGES_OF_A_DOCUMENT, passages_to_read, word_sketches
from idiograph.answer.large.views import CountView, ModelView, PanelView, ReadTexts
from idiograph.errors import InputError
from idiograph.index.index import Index
from idiograph.rankers.library import Library
from idiograph.rankers.model import LearnedModel, PassageVectors
from idiograph.rankers.rates import unit_rows
from idiograph.recipe import IndexRecipe
from idiograph.style.patches import unit_vectors
from idiograph.synth.anthology import anthology

ESSAYS = list(anthology())
FEW = {"NEAREST_CANDIDATES": 3, "NEAREST_BY_WORDS": 2, "PANEL_CANDIDATES": 4, "TEXTS_TO_LEARN": 30}


@pytest.fixture(scope="module", autouse=True)
def small_numbers():
    """Any index is large, three candidates who seem nearest are compared, and four authors stand for the others."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(methods, "MAX_TEXTS", 10)
        patched.setattr(learning, "DOCUMENTS_TO_ASK", 24)
        for name, value in FEW.items():
            patched.setattr(sampled, name, value)
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory, style):
    recipe = IndexRecipe(words=60)
    return Index.build(ESSAYS, tmp_path_factory.mktemp("built") / "index", style, recipe, source="essays")


@pytest.fixture(scope="module")
def learned(built):
    return sampled_evidence_of_index(built)


class Letters:
    """Rates of letters, always the same 26: learning changes nothing."""

    name = "letters"

    def __init__(self, library: Library) -> None:
        self.library = library

    def points(self, texts):
        return unit_rows(np.array([[t.lower().count(c) + 0.1 for c in string.ascii_lowercase] for t in texts]))

    def score(self, texts, left_out=None):
        scores = self.points(texts) @ self.points(self.library.texts).T
        for at, place in enumerate([] if left_out is None else left_out):
            if place >= 0:
                scores[at, place] = np.nan
        return scores


class LearnsNothing:
    name = "letters"

    def learn(self, library: Library) -> Letters:
        return Letters(library)


def test_a_panel_of_everybody_gives_what_comparing_everything_gives():
    texts = tuple(essay.text for essay in ESSAYS[:20])
    library = Library(texts, tuple(essay.authors[0].name for essay in ESSAYS[:20]))
    whole = LibraryEvidence(library, [Method("letters", (LearnsNothing(),))]).standings([ESSAYS[40].text])[0, :, 0]
    nothing = PassageVectors(np.zeros((0, 2)), np.zeros(0, np.int64))
    read, asked = ReadTexts(texts, nothing), ReadTexts([ESSAYS[40].text], nothing)
    panel = PanelView.of(CountView(Letters(library).points), read)
    none, itself = np.zeros(20, bool), np.eye(20, dtype=bool)
    found = panel.standings(panel.view.place(asked), panel.view.place(read), none, itself)[0]
    assert found[:20] == pytest.approx(whole, abs=1e-3)
    assert found[20:] == pytest.approx(whole, abs=1e-3)


def test_the_view_of_the_model_scores_as_the_ranker_does(random):
    vectors = unit_vectors(random.normal(size=(30, 8)))
    known = PassageVectors(vectors[:20], np.array([3, 7, 1, 9]))
    asked = PassageVectors(vectors[20:], np.array([4, 6]))
    ranker = LearnedModel(lambda texts: None, Library(("",) * 4, ("",) * 4), known)
    right = [ranker._score_vectors(asked.of(at)) for at in range(2)]
    assert ModelView().compare(asked, known) == pytest.approx(np.array(right))


def test_word_sketches_are_near_to_delta(built):
    everybody = author_sets_of(built)
    sketches = word_sketches(built, everybody)
    texts = ["\n\n".join(built.texts_at(everybody.passages_of([at]))) for at in range(len(everybody.documents))]
    exact = sketches.ranker.between([ESSAYS[5].text], texts)[0]
    assert sketches.near(ESSAYS[5].text) == pytest.approx(exact, abs=0.02)


def test_of_a_long_document_passages_from_all_over_it_are_read(built):
    everybody = author_sets_of(built)
    whole = everybody.passages_of([0])
    assert passages_to_read(everybody, 0).tolist() == whole.tolist()
    assert len(whole) <= PASSAGES_OF_A_DOCUMENT


def test_what_was_sampled_is_said(learned):
    check = learned.known.check
    assert check.best.of == 24
    assert check.sampled_from == 60
    assert check.sentence.endswith(f"({check.texts} of its 60 texts were sampled)")


def test_the_sample_tells_the_writers_of_the_essays_apart(learned):
    check = learned.known.check
    assert check.tells_apart
    assert check.best.right >= 18
    assert set(check.weights) == {"delta", "letters", "words", "pairs", "stable", "model"}


def test_documents_that_are_asked_about_taught_the_methods_nothing(built, learned, tmp_path):
    asked = documents_to_ask(built, author_sets_of(built))
    before = learned.evidence.views[0][0].view.points([ESSAYS[0].text])
    names = [document.id for document in built.documents]
    rest = Index.build(
        [e for e in ESSAYS if e.id not in {names[at] for at in asked}], tmp_path / "i", built.style, built.recipe
    )
    everybody = author_sets_of(rest)
    evidence = prepare_evidence(rest, everybody, "delta", np.zeros(0, np.int64))
    assert evidence.views[0][0].view.points([ESSAYS[0].text]) == pytest.approx(before)
    assert not set(asked.tolist()) & set(learned.evidence.panel_documents.tolist())


def test_the_writer_of_a_text_that_is_left_out_is_named(built):
    right = 0
    for essay in ESSAYS[3::12]:
        found = attribute(essay.text, built, exclude=[essay.id])
        right += found.candidates[0].names == (essay.authors[0].name,)
        assert essay.id not in {e.doc_id for c in found.candidates for e in c.evidence}
    assert right >= 4


def test_shares_of_the_methods_sum_to_the_ratio(built):
    for candidate in attribute(ESSAYS[7].text, built, exclude=[ESSAYS[7].id]).candidates:
        assert sum(share for _, share in candidate.shares) == pytest.approx(candidate.llr)


def test_chances_of_everybody_and_of_nobody_sum_to_one(built):
    found = attribute(ESSAYS[7].text, built, k=100)
    assert sum(c.probability for c in found.candidates) + found.none.probability <= 1 + 1e-9


def test_a_copy_is_named_in_a_large_index(built):
    found = attribute(ESSAYS[7].text, built)
    assert [copy.doc_id for copy in found.copies] == [ESSAYS[7].id]


def test_whoever_is_named_is_compared_however_far_they_seem(built):
    closed = attribute(ESSAYS[0].text, built, candidates=["Tamar Quill", ESSAYS[0].authors[0].name, "Selma Thorne"])
    assert closed.none.probability == 0
    assert sum(c.probability for c in closed.candidates) == pytest.approx(1)
    assert closed.candidates[0].names == (ESSAYS[0].authors[0].name,)
    assert "Selma Thorne" in {c.names[0] for c in closed.candidates}


def test_one_method_answers_alone_in_a_large_index(built):
    found = attribute(ESSAYS[7].text, built, method="letters", exclude=[ESSAYS[7].id])
    assert found.method == "letters"
    assert list(found.check.weights) == ["letters"]


def test_a_method_that_compares_whole_libraries_says_what_to_take_instead(built):
    with pytest.raises(InputError, match=r"'grammar' compares every text .* choose from best, model, delta, letters"):
        attribute(ESSAYS[7].text, built, method="grammar")


def test_what_a_large_index_teaches_is_learned_once(monkeypatch, built, learned):
    def refuse(*_):
        raise AssertionError("learned again")

    monkeypatch.setattr(learning, "learn_by_asking", refuse)
    again = sampled_evidence_of_index(Index.open(built.folder, built.style))
    assert again.known.to_json() == learned.known.to_json()


def test_exact_search_and_sketches_agree_on_the_first(built):
    fast, exact = (attribute(ESSAYS[7].text, built, exclude=[ESSAYS[7].id], exact=how) for how in (False, True))
    assert fast.candidates[0].names == exact.candidates[0].names


def test_windows_of_a_text_by_two_hands_are_given_to_their_writers(built):
    first, second = ESSAYS[2], ESSAYS[27]
    text, both = first.text + "\n\n" + second.text, [first.authors[0].name, second.authors[0].name]
    found = rolling.rolling(text, built, window=160, candidates=both, exclude=[first.id, second.id])
    order = [names[0] for names in found.candidates]
    lead = found.llr[:, order.index(both[0])] - found.llr[:, order.index(both[1])]
    middles = np.array([(start + end) / 2 for start, end in found.windows])
    assert ((lead > 0) == (middles < len(first.text))).mean() >= 0.8
    assert found.method == "best"
    assert found.to_json()["method"] == "best"
