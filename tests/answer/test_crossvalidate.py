"""How often an answer is right, told by leaving out every text of a library."""

from dataclasses import replace

import numpy as np
import pytest

from idiograph.answer.crossvalidate import (
    CrossValidation,
    LibraryAuthors,
    LibraryKnowledge,
    crossvalidate_evidence,
    cut_middle,
    learn_library,
    sample_library,
    wilson_interval,
)
from idiograph.answer.evidence import LibraryEvidence, Method
from idiograph.answer.methods import METHODS, choose_methods, crossvalidate, library_of
from idiograph.errors import InputError, SpecError
from idiograph.rankers.delta import Delta
from idiograph.rankers.library import Library
from idiograph.rankers.words import WordTfIdf
from idiograph.synth.anthology import anthology
from idiograph.types import Author, Document

QUICK = [Method("delta", (Delta(150),)), Method("words", (WordTfIdf(),))]


@pytest.fixture(scope="module")
def library() -> Library:
    return library_of(anthology())


@pytest.fixture(scope="module")
def evidence(library) -> LibraryEvidence:
    return LibraryEvidence(library, QUICK)


@pytest.fixture(scope="module")
def check(evidence) -> CrossValidation:
    return crossvalidate_evidence(evidence)


def test_the_writers_of_the_essays_are_told_apart(check):
    assert check.tells_apart
    assert check.best.of == 60
    assert check.best.right > 3 * check.majority
    assert check.sentence == f"on texts of this library this is right in {check.best.right} of 60"


def test_best_is_not_worse_than_the_weakest_method(check):
    assert check.best.right >= min(check.methods[name].right for name in ("delta", "words"))


def test_a_method_that_follows_the_topic_gets_little_weight(check):
    assert check.weights["delta"] > check.weights["words"]


def test_counts_by_author_and_confusion_agree(check):
    assert sum(counts["right"] for counts in check.authors.values()) == check.best.right
    assert sum(n for row in check.confusion.values() for n in row.values()) == check.best.of
    assert all(check.confusion[name].get(name, 0) == counts["right"] for name, counts in check.authors.items())


def test_texts_that_say_nothing_of_their_writers_are_said_to_say_nothing():
    draw = np.random.default_rng(2)
    words = "of the and to in that it is was he for as with on at by not but from they".split()
    texts = tuple(" ".join(draw.choice(words, 300)) for _ in range(40))
    writers = tuple("abcd"[at % 4] for at in range(40))
    found = crossvalidate_evidence(LibraryEvidence(Library(texts, writers), QUICK))
    assert not found.tells_apart
    assert found.sentence.startswith("these texts do not tell their authors apart by anything that was tried")
    assert found.best.cllr > 0.85


def test_one_lucky_method_of_many_does_not_tell_authors_apart(check):
    lucky = replace(check.best, right=15, of=20, interval=wilson_interval(15, 20))
    unlucky = replace(lucky, right=10, interval=wilson_interval(10, 20))
    names = [name for name in check.methods if name != "best"]
    assert lucky.interval[0] > 10 / 20
    assert not replace(
        check, methods={"best": unlucky, names[0]: lucky, **dict.fromkeys(names[1:], unlucky)}, majority=10
    ).tells_apart
    assert replace(check, methods={"best": lucky, **dict.fromkeys(names, unlucky)}, majority=10).tells_apart


def test_six_texts_are_enough_for_an_answer_and_too_few_for_a_strong_one(library):
    few = library.take([0, 1, 5, 6, 10, 11])
    known = learn_library(LibraryEvidence(few, QUICK), LibraryAuthors.of(few))
    assert known.check.best.of == 6
    assert known.weights.calibration.high <= 1.0


def test_authors_with_one_text_are_candidates_and_not_asked_about(library):
    one = library.take([0, 1, 2, 5])
    found = crossvalidate_evidence(LibraryEvidence(one, QUICK))
    assert found.best.of == 3
    assert len(found.authors) == 1


def test_a_library_in_which_nobody_has_two_texts_is_refused(library):
    single = library.take([0, 5, 10])
    with pytest.raises(InputError, match="no author of the library has two texts"):
        crossvalidate_evidence(LibraryEvidence(single, QUICK))


def test_questions_are_cut_from_the_middle_and_the_library_stays_whole(evidence):
    short = crossvalidate_evidence(evidence, words=60)
    assert short.words == 60
    assert short.best.right < 60
    assert cut_middle("a b c d e f g", 3) == "c d e"


def test_what_a_library_teaches_survives_json(evidence, library):
    known = learn_library(evidence, LibraryAuthors.of(library))
    assert LibraryKnowledge.from_json(known.to_json()).to_json() == known.to_json()


def test_the_order_of_the_texts_does_not_matter(library, check):
    turned = library.take(list(reversed(range(len(library)))))
    other = crossvalidate_evidence(LibraryEvidence(turned, QUICK))
    assert {name: one.right for name, one in other.methods.items() if name != "best"} == {
        name: one.right for name, one in check.methods.items() if name != "best"
    }


def test_a_large_library_is_sampled_by_its_authors(library):
    some = sample_library(library, limit=22)
    assert len(some) == 22
    counts = [some.authors.count(name) for name in set(some.authors)]
    assert sorted(counts)[1:] == [5] * 4


def test_every_method_answers_alone_and_by_name(library):
    few = library.take(range(15))
    for name in METHODS:
        found = crossvalidate_evidence(LibraryEvidence(few, choose_methods(name)))
        assert list(found.methods) == ["best"]
        assert list(found.weights) == [name]
        assert found.best.of == 15


def test_a_method_that_does_not_exist_is_named_with_the_choices():
    with pytest.raises(
        SpecError, match="unknown method 'delt'; choose from best, delta, grammar, .*did you mean 'delta'"
    ):
        choose_methods("delt")


def test_documents_in_any_language_are_asked_about():
    quijote = "En un lugar de la tierra, de cuyo nombre no me acuerdo, vivía un hombre que leía mucho y dormía poco. "
    regenta = "La ciudad dormía la siesta; el viento del sur, caliente y perezoso, empujaba las nubes hacia el norte. "
    texts = [
        base * 8 + " ".join(f"palabra{n}" for n in range(at, at + 20))
        for base in (quijote, regenta)
        for at in (0, 9, 30)
    ]
    documents = [Document(str(at), text, (Author("ab"[at // 3]),)) for at, text in enumerate(texts)]
    found = crossvalidate(documents, method="letters", model=False)
    assert found.lang == "es"
    assert found.best.right == 6
