"""Simulated documents carry the author and the topic where, and only where, they were told to."""

import os
import re
import subprocess
import sys
import tracemalloc
from collections import Counter, deque
from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np
import py3langid
import pytest

from idiograph.errors import InputError, SpecError
from idiograph.runner import run_items, shard
from idiograph.synth import lexicon
from idiograph.synth.grammar import english
from idiograph.synth.synth import World, document_id, make_document, parse_world, preferences, synth
from idiograph.types import Document

CONTENT = {piece.strip() for piece in english().pieces[len(english().words) :]}


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+|[,;:–()]", text.lower())


def is_content(word: str) -> bool:
    return word in CONTENT


def is_function(word: str) -> bool:
    return word not in CONTENT


def sentences(document: Document) -> list[str]:
    return re.split(r"(?<=\.)\s+", document.text)


def accuracy(documents: list[Document], labels: list[str], kept) -> float:
    """How often the nearest centroid of standardised word shares is right, learning on the even half."""
    counts = [Counter(filter(kept, words(document.text))) for document in documents]
    vocabulary = sorted(set().union(*counts))
    shares = np.array([[count[word] for word in vocabulary] for count in counts], float)  # (documents, words)
    shares /= shares.sum(1, keepdims=True)
    points = (shares - shares.mean(0)) / (shares.std(0) + 1e-9)
    learn, names = np.arange(len(labels)) % 2 == 0, np.array(labels)
    known = np.array(sorted(set(names[learn])))
    centroids = np.array([points[learn & (names == name)].mean(0) for name in known])  # (labels, words)
    far = ((points[~learn, None] - centroids[None]) ** 2).sum(-1)
    return float((known[far.argmin(1)] == names[~learn]).mean())


def author_accuracy(spec: str, kept=is_function) -> float:
    documents = list(synth(spec))
    return accuracy(documents, [document.authors[0].key for document in documents], kept)


def topic_accuracy(spec: str, kept=is_content) -> float:
    documents = list(synth(spec))
    return accuracy(documents, [document.domains[0] for document in documents], kept)


SMALL = "synth:documents=600,authors=10,topics=10,coauthors=0"
CHANCE = pytest.approx(0.1, abs=0.05)  # three standard errors of 300 guesses among ten


def test_without_style_function_words_are_at_chance_on_authors():
    assert author_accuracy(f"{SMALL},style=0") == CHANCE


def test_with_style_function_words_find_the_author():
    assert author_accuracy(f"{SMALL},style=1") > 0.8


def test_more_style_is_easier():
    weak, middle, strong = (author_accuracy(f"{SMALL},style={style}") for style in (0.2, 0.4, 0.8))
    assert weak < middle < strong


def test_without_topic_content_words_are_at_chance_on_topics():
    assert topic_accuracy(f"{SMALL},topic=0") == CHANCE


def test_with_topic_content_words_find_the_topic():
    assert topic_accuracy(f"{SMALL},topic=1") > 0.9


def test_function_words_do_not_betray_the_topic():
    assert topic_accuracy(f"{SMALL},topic=1", is_function) == CHANCE


def test_without_loyalty_the_topic_does_not_betray_the_author():
    assert author_accuracy(f"{SMALL},style=0,loyalty=0", is_content) == CHANCE


def test_with_loyalty_a_lab_keeps_to_its_topic():
    topics = {document.domains for document in synth("synth:documents=50,authors=8,loyalty=1")}
    assert len(topics) == 1


def test_function_and_content_words_do_not_overlap():
    habits = re.findall(r"[a-z']+", " ".join(lexicon.HABITS.values()).lower())
    assert CONTENT.isdisjoint(habits)


@pytest.mark.parametrize("name", lexicon.HABITS)
def test_alternatives_of_a_habit_differ(name: str):
    choices = lexicon.HABITS[name].split("|")
    assert len(set(choices)) == len(choices)


def test_without_style_all_authors_have_the_same_preferences():
    assert preferences("synth:style=0", [3]) == preferences("synth:style=0", [4])


def test_preferences_are_shares_and_differ_by_author():
    mine, theirs = preferences("synth", [3]), preferences("synth", [4])
    assert mine != theirs
    assert {round(sum(shares.values()), 9) for shares in mine.values()} == {1.0}


def test_documents_keep_to_their_authors_preferences():
    spec = "synth:documents=400,authors=1,topic=0,coauthors=0"
    text = " ".join(document.text for document in synth(spec)).lower()
    truth = preferences(spec, [0])["perhaps"]
    found = {
        word: text.count(word) for word in ("probably", "possibly", "apparently", "arguably", "presumably", "maybe")
    }
    total, share = sum(found.values()), sum(truth[word] for word in found)
    assert total > 200
    assert {w: n / total for w, n in found.items()} == {w: pytest.approx(truth[w] / share, abs=0.1) for w in found}


def test_spellings_go_together():
    """Over many authors, a taste for one British spelling foretells another; an unrelated pair does not."""
    every = [preferences("synth:authors=400", [author]) for author in range(400)]
    analysed = [shares["studied"]["analysed"] - shares["studied"]["analyzed"] for shares in every]
    learnt = [shares["found"]["learnt that"] - shares["found"]["learned that"] for shares in every]
    moreover = [shares["however"]["moreover"] for shares in every]
    assert np.corrcoef(analysed, learnt)[0, 1] > 0.4
    assert abs(np.corrcoef(analysed, moreover)[0, 1]) < 0.2


def test_text_is_made_of_sentences():
    for made in synth("synth:documents=50,sentences=9"):
        assert len(sentences(made)) == 9
        assert all(
            re.fullmatch(r"[A-Z][^.\n]{10,}[a-z]\.|[A-Z][^.\n]{10,}\)\.", sentence) for sentence in sentences(made)
        )


def test_articles_agree_with_the_next_word():
    text = " ".join(document.text for document in synth("synth:documents=100"))
    assert not re.search(r"\b[Aa] [aeiou]|\b[Aa]n [^aeiou]", text)


def test_a_language_identifier_reads_english():
    found = Counter(
        py3langid.classify(sentence)[0] for made in synth("synth:documents=60") for sentence in sentences(made)
    )
    assert found["en"] / found.total() > 0.95


def test_the_same_spec_gives_the_same_documents():
    assert list(synth("synth:documents=20")) == list(synth(World(documents=20)))


def test_documents_do_not_depend_on_the_process_that_makes_them():
    code = "from idiograph.synth.synth import make_document; print(make_document('synth', 5))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed == [f"{make_document('synth', 5)}\n"] * 2


def test_documents_never_change():
    made = make_document("synth:seed=1", 5)
    assert made.text.startswith("Only to erode a rate, the dialect with the systems isn't a little local und")
    assert (made.id, made.authors[0].id, made.domains) == ("synth-d000000005", "synth-a000087", ("synth-t000000",))


def test_another_seed_gives_other_documents():
    assert make_document("synth:seed=1", 0).text != make_document("synth:seed=2", 0).text


def test_style_changes_how_and_not_who_or_what():
    plain, tilted = make_document("synth:style=0", 3), make_document("synth:style=1", 3)
    assert plain.text != tilted.text
    assert (plain.authors, plain.domains) == (tilted.authors, tilted.domains)


def test_any_document_of_ten_million_comes_at_once():
    spec = "synth:documents=10000000,authors=1000000"
    assert next(synth(spec)) == make_document(spec, 0)
    assert make_document(spec, 9_999_999).id == "synth-d009999999"


def test_memory_does_not_grow_with_the_documents():
    stream = synth("synth:documents=5000,authors=1000000,topics=1000,sentences=2")
    tracemalloc.start()
    used = []
    for _ in range(3):
        deque(islice(stream, 1500), maxlen=0)
        used.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert used[2] - used[1] < 1_000_000


def test_a_document_out_of_range_is_refused():
    with pytest.raises(InputError, match="there is no document 10; they are numbered from 0 to 9"):
        make_document("synth:documents=10", 10)


def test_a_shard_is_made_alone():
    whole = synth("synth:documents=60")
    assert list(synth("synth:documents=60", "2/3")) == list(shard(whole, "2/3", key=lambda made: made.id))


def test_documents_are_the_same_from_worker_processes():
    spec = "synth:documents=30"
    assert list(run_items(partial(make_document, spec), range(30), "processes", 2)) == list(synth(spec))


def test_some_documents_have_several_authors_and_their_sets_recur():
    made = list(synth("synth:documents=2000,authors=100,coauthors=0.3"))
    several = Counter(document.author_set for document in made if len(document.authors) > 1)
    assert several.total() / 2000 == pytest.approx(0.3, abs=0.04)
    assert {len(authors) for authors in several} == {2, 3, 4}
    assert min(several.values()) >= 2


def test_a_lone_author_has_no_coauthors():
    assert {document.author_set for document in synth("synth:documents=20,authors=1,coauthors=1")} == {
        frozenset({"synth-a000000"})
    }


def test_no_two_authors_share_a_name():
    made = islice(synth("synth:documents=3000,authors=1000000,coauthors=0"), 3000)
    names = {document.authors[0].id: document.authors[0].name for document in made}
    assert len(set(names.values())) == len(names)


def test_every_author_and_topic_appears():
    made = list(synth("synth:documents=1000,authors=20,topics=5"))
    assert len({author.id for document in made for author in document.authors}) == 20
    assert {document.domains[0] for document in made} == {f"synth-t00000{n}" for n in range(5)}


def test_a_spec_is_what_its_parser_accepts():
    world = World(documents=5, style=0.25, seed=3)
    assert parse_world(str(world)) == world
    assert parse_world("synth") == World()


def bad_specs() -> Iterator[tuple[str, str]]:
    known = "authors, coauthors, documents, loyalty, seed, sentences, style, topic, topics"
    yield "synth:autors=3", f"unknown setting of synth 'autors'; choose from {known} (did you mean 'authors'?)"
    yield "synth:authors=0", "synth: authors must be from 1 to 1e+09, but got 0"
    yield "synth:style=nan", "synth: style must be from 0 to 100, but got nan"
    yield "synth:style=-1", "synth: style must be from 0 to 100, but got -1.0"
    yield "synth:documents=1.5", "synth: documents must be a whole number, but got '1.5'"
    yield "synth:style", "synth: style must be a number, but got ''"
    yield "synth:seed=1,seed=2", "'synth:seed=1,seed=2' sets seed twice"
    yield "sinth:seed=1", "'sinth:seed=1' is not a simulated corpus; write synth:documents=1000,authors=100"


@pytest.mark.parametrize(("spec", "words"), bad_specs())
def test_a_bad_spec_is_refused_with_what_would_be_right(spec: str, words: str):
    with pytest.raises(SpecError) as caught:
        synth(spec)
    assert str(caught.value) == words


def test_document_ids_sort_like_their_numbers():
    assert document_id(9) < document_id(10)
