"""Who is the same person in a corpus: by id where there is one, else by name; registries do not mix."""

import pytest

from idiograph.corpus.build import WrittenText
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.identity import Identities
from idiograph.recipe import CorpusRecipe
from idiograph.types import Author, Document

ORCID, OTHER_ORCID = "0000-0002-6561-5888", "0000-0001-5109-3700"


def signed(name: str, number: str | None = None) -> dict[str, str | None]:
    return {"name": name, "id": number}


def keys_of(*bylines: list[dict[str, str | None]]) -> list[list[str | None]]:
    known = Identities.of(bylines)
    return [known.keys(byline) for byline in bylines]


def test_without_ids_the_folded_name_stands_for_a_person():
    assert keys_of([signed("Éva  Nagy")], [signed("Eva Nagy")]) == [["eva nagy"], ["eva nagy"]]


def test_one_author_with_an_id_leaves_all_others_as_they_were():
    assert keys_of([signed("Ada Roe", "17")], [signed("Ben Doe")]) == [["17"], ["ben doe"]]


def test_an_author_without_an_id_joins_the_one_person_of_that_name_who_has_one():
    assert keys_of([signed("Ada Roe", "17")], [signed("Ada Roe")]) == [["17"], ["17"]]


def test_a_name_that_two_people_bear_identifies_nobody():
    first, second, third = keys_of([signed("Li Wei", "17")], [signed("Li Wei", "18")], [signed("Li Wei")])
    assert (first, second, third) == (["17"], ["18"], [None])


def test_two_of_one_name_on_one_byline_are_two_people():
    assert keys_of([signed("Li Wei", "17"), signed("Li Wei")]) == [["17", None]]


def test_an_orcid_and_a_hal_number_of_one_name_are_one_person():
    assert keys_of([signed("Ada Roe", ORCID)], [signed("Ada Roe", "17")]) == [[ORCID], [ORCID]]


@pytest.mark.parametrize("spelling", [f"https://orcid.org/{ORCID}", f"orcid:{ORCID}", ORCID])
def test_an_orcid_is_the_same_however_it_is_written(spelling):
    assert keys_of([signed("Ada Roe", spelling)], [signed("A. Roe", ORCID)]) == [[ORCID], [ORCID]]


def test_a_name_with_two_orcids_is_not_joined_with_a_hal_number():
    found = keys_of([signed("Li Wei", ORCID)], [signed("Li Wei", OTHER_ORCID)], [signed("Li Wei", "17")])
    assert found == [[ORCID], [OTHER_ORCID], ["17"]]


def test_ids_that_sign_together_are_never_joined():
    assert keys_of([signed("Li Wei", ORCID), signed("Li Wei", "17")]) == [[ORCID, "17"]]


def test_a_corpus_gives_each_person_one_id_and_keeps_what_it_was_given(tmp_path):
    names = [Author("Ada Roe", ORCID), Author("Ada Roe", "17"), Author("Ada Roe"), Author("Ben Doe")]
    documents = [Document(f"{at}", f"Text number {at} says so.", (who,), lang="en") for at, who in enumerate(names)]
    build_corpus(map(WrittenText, documents), tmp_path / "out", CorpusRecipe(duplicates="keep"))
    corpus = Corpus(tmp_path / "out")
    assert [document.authors[0].key for document in corpus] == [ORCID, ORCID, ORCID, "ben doe"]
    assert corpus.document(2).author_set == {ORCID}
    assert [row[0]["id"] for row in corpus.table.column("authors").to_pylist()] == [ORCID, "17", None, None]
