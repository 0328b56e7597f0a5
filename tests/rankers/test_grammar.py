"""The grammar of authors: the published scores, counted all at once, and leaving out that is exact."""

import numpy as np
import pytest

from idiograph.rankers import grammar
from idiograph.rankers.grammar import (
    AskedGrams,
    GrammarRanker,
    Grams,
    cut_sentences,
    lay_out,
    read_question,
    score_sentences,
)
from idiograph.rankers.library import Library
from idiograph.synth.anthology import anthology

SMALL = GrammarRanker(order=4, kept_words=60, references=3, sentences_per_model=40)
# Tokens and draws that anybody can repeat; what lambdag 0.2 says of them is pinned below.
KNOWN = [tuple("the cat sat on the mat .".split()), tuple("but the dog ran !".split()), tuple("the cat ran .".split())]
OTHERS = [
    [tuple("a dog and a cat".split()), tuple("so it goes .".split()), tuple("the dog sat on a mat .".split())],
    [tuple("it ran and ran .".split()), tuple("but it sat .".split()), ()],
]
QUESTION = [tuple("the cat sat on a dog .".split()), tuple("never but the mat ran !".split())]
PINNED = {1: 0.512930614367, 2: 3.659727315606, 3: 4.376677107883, 10: 5.105280756900}


@pytest.fixture(scope="module")
def library():
    essays = list(anthology())[:14]
    return Library(tuple(essay.text[:1500] for essay in essays), tuple(author_of(essay) for essay in essays), "en")


def author_of(essay):
    return essay.authors[0].name


@pytest.fixture(scope="module")
def learned(library):
    return SMALL.learn(library)


def by_package(order, known, question, references):
    models = pytest.importorskip("lambdag.language_models")

    def total(sentences):
        model = models.KneserNeyLanguageModel(order=order, discount=0.75)
        for sentence in sentences:
            model.fit(sentence)
        return sum(np.log10(model.probabilities(sentence)).sum() for sentence in question)

    return total(known) - np.mean([total(reference) for reference in references])


@pytest.mark.parametrize("order", PINNED)
def test_scores_are_those_that_the_published_package_gave(order):
    assert score_sentences(KNOWN, QUESTION, OTHERS, order) == pytest.approx(PINNED[order], abs=1e-9)


@pytest.mark.parametrize("order", [1, 2, 4, 10])
def test_scores_of_essays_are_those_of_the_package(library, learned, order):
    texts = [
        [tuple(learned.show(token, learned.kept) for token in cut) for cut in cut_sentences(text)]
        for text in library.texts[:4]
    ]
    expected = by_package(order, texts[0], texts[1], texts[2:])
    assert score_sentences(texts[0], texts[1], texts[2:], order) == pytest.approx(expected, abs=1e-6)


def test_what_a_library_is_asked_is_read_by_the_same_models_as_sentences_alone(library, learned):
    models, comparisons = learned.draw_models(-1)
    cuts = [cut for text in library.texts for cut in SMALL.cut(text)]
    shown = [tuple(learned.show(token, learned.kept) for token in cut) for cut in cuts]
    asked = [tuple(learned.show(token, learned.kept) for token in cut) for cut in SMALL.cut(library.texts[0])]
    references = [[shown[at] for at in models[place]] for place in comparisons[0].references]
    alone = score_sentences([shown[at] for at in models[comparisons[0].model]], asked, references, SMALL.order)
    place = int(comparisons[0].profile.places[0])
    tokens = sum(len(sentence) + 1 for sentence in asked)
    assert learned.score([library.texts[0]])[0, place] == pytest.approx(alone / tokens**0.5, abs=1e-9)


@pytest.mark.parametrize("per_text", [False, True])
@pytest.mark.parametrize("place", [0, 5, 13])
def test_a_text_that_is_left_out_leaves_no_trace(library, place, per_text):
    from dataclasses import replace

    ranker = replace(SMALL, per_text=per_text)
    others = [at for at in range(len(library)) if at != place]
    text = library.texts[place]
    row = ranker.learn(library).score([text], [place])[0]
    assert np.isnan(row[place])
    assert row[others] == pytest.approx(ranker.learn(library.take(others)).score([text])[0], abs=1e-9)


def test_leaving_out_changes_which_words_are_kept(library, learned):
    assert any((learned.without(at)[0] != learned.kept).any() for at in range(len(library)))


def test_the_order_of_the_library_and_of_the_questions_does_not_matter(library, learned):
    turned = SMALL.learn(library.take(range(len(library))[::-1]))
    texts = list(library.texts[:3])
    assert turned.score(texts[::-1])[::-1, ::-1] == pytest.approx(learned.score(texts), abs=1e-9)


def test_all_texts_of_an_author_have_the_score_of_the_author(library, learned):
    row = learned.score(["We may, in general, be wrong. It seems so."])[0]
    assert len({(author, score) for author, score in zip(library.authors, row, strict=True)}) == len(
        set(library.authors)
    )


def test_what_is_drawn_for_a_candidate_is_of_other_authors_and_as_much(library, learned):
    models, comparisons = learned.draw_models(3)
    for comparison in comparisons:
        for place in comparison.references:
            texts = learned.masked.text_of[models[place]]
            assert comparison.profile.author not in {library.authors[at] for at in texts}
            assert 3 not in texts
            assert len(models[place]) == len(models[comparison.model])


def test_an_essay_is_given_to_its_author_more_often_than_by_chance():
    essays = list(anthology())
    library = Library(tuple(essay.text for essay in essays), tuple(map(author_of, essays)))
    places = list(range(0, len(essays), 5))
    scores = SMALL.learn(library).score([library.texts[at] for at in places], places)
    right = [
        library.authors[int(np.nanargmax(row))] == library.authors[at] for at, row in zip(places, scores, strict=True)
    ]
    assert np.mean(right) >= 3 / len(set(library.authors))


@pytest.mark.parametrize("left_out", [-1, 2])
def test_the_shares_of_constructions_sum_to_the_score(library, learned, left_out):
    text, place = library.texts[2], 4
    shares = learned.shares(text, place, left_out)
    assert sum(share for _, share in shares) == pytest.approx(learned.score([text], [left_out])[0, place], abs=1e-9)
    assert abs(shares[0][1]) >= abs(shares[-1][1])


def test_a_construction_is_the_longest_run_that_the_author_has():
    texts = ("In so far as it is true. In so far as it is.", "Never mind the rest of it. Never mind that.")
    learned = GrammarRanker(kept_words=50, references=2).learn(Library(texts, ("a", "b")))
    assert "<s> in so far as it" in dict(learned.shares("In so far as it goes.", 0))


@pytest.mark.parametrize("text", ["", "   \n\n", "...", "一二三。四五六。", "word " * 500, "3 4 5\n\n6", "\ud800 lone"])
def test_no_text_is_too_odd_to_be_asked_about_or_learned(library, learned, text):
    assert np.isfinite(learned.score([text])).all()
    odd = SMALL.learn(Library((text, *library.texts[:2]), ("odd", "a", "b")))
    assert np.isfinite(odd.score([text, library.texts[0]])).all()


def test_a_library_of_one_author_has_nothing_to_read_against(library):
    one = SMALL.learn(Library(library.texts[:2], ("a", "a")))
    assert one.score([library.texts[3]]).tolist() == [[0.0, 0.0]]
    assert one.score([library.texts[0]], [0])[0, 1] == 0.0
    assert SMALL.learn(Library((), ())).score(["A text."]).shape == (1, 0)


def test_a_sentence_ends_at_a_stop_a_blank_line_or_when_it_is_too_long():
    assert cut_sentences('He said "No." Then he left.\n\nWell') == [
        ("He", "said", '"', "No", ".", '"'),
        ("Then", "he", "left", "."),
        ("Well",),
    ]
    assert cut_sentences("It cost 3 p. a day.") == [("It", "cost", "3", "p", ".", "a", "day", ".")]
    assert max(map(len, cut_sentences("on and " * 1000))) <= 120


def test_a_model_that_has_seen_nothing_foresees_nothing_and_says_so_evenly():
    grams = Grams.count(*lay_out(KNOWN), 3)
    asked = AskedGrams.find(grams, *lay_out(QUESTION))
    assert read_question(grams, [np.zeros(0, np.int64)], asked).logs.sum() == 0.0


def test_models_read_in_blocks_read_the_same(monkeypatch, library, learned):
    whole = learned.score(list(library.texts[:2]))
    monkeypatch.setattr(grammar, "CELLS_PER_BLOCK", 500)
    assert learned.score(list(library.texts[:2])) == pytest.approx(whole, abs=1e-12)
