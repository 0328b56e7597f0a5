"""A corpus on disk: what goes in comes out, in the formats of the ecosystem."""

import pytest

from idiograph.corpus.anthology import anthology
from idiograph.corpus.documents import Corpus, build
from idiograph.corpus.readers import Failure
from idiograph.errors import InputError
from idiograph.types import Author, Document


def some(count, **changes):
    return [
        Document(f"d{n}", f"Text number {n}, in English and with a few words.", (Author("A B"),), **changes) for n in range(count)
    ]


def test_documents_come_back_as_they_went_in(tmp_path):
    documents = [
        Document("a", "One text.", (Author("A", "1", ("x",)), Author("B")), ("info",), "en", "T", 1999, "u", "l", "s", "c"),
        Document("b", "Another.", (Author("C"),), (), "en"),
    ]
    build(documents, tmp_path / "c")
    assert list(Corpus(tmp_path / "c")) == documents


def test_every_text_can_be_had_by_its_row(tmp_path, monkeypatch):
    from idiograph.corpus import documents as module

    monkeypatch.setattr(module, "ROW_GROUP", 3)
    monkeypatch.setattr(module, "SHARD", 6)
    documents = some(20, lang="en")
    build(documents, tmp_path / "c")
    corpus = Corpus(tmp_path / "c")
    assert len(corpus.paths) == 4
    assert [corpus.document(at) for at in range(20)] == documents
    assert corpus.table["id"].to_list() == [d.id for d in documents]


def test_what_cannot_be_used_is_counted_by_reason(tmp_path):
    items = [*some(2, lang="en"), *some(1, lang="en"), Document("x", "No author here."), Failure("f", "broken")]
    items.append(Document("y", "123 456", (Author("A"),), lang="en"))
    built = build(items, tmp_path / "c")
    assert built.documents == 2
    assert built.dropped == {"id given twice": 1, "no author": 1, "unreadable": 1, "no words": 1}
    assert built.failures == (Failure("f", "broken"),)


def test_a_corpus_of_nothing_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="no document with an author"):
        build([], tmp_path / "c")
    with pytest.raises(InputError, match="the first of 1 problems: 'x.txt': empty"):
        build([Failure("x.txt", "empty")], tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_a_document_without_a_language_gets_one(tmp_path):
    text = "Les marées sont mesurées depuis longtemps dans les ports de la Manche, mais on les prédit encore mal."
    build([Document("fr", text, (Author("A"),)), *some(1)], tmp_path / "c")
    assert {d.id: d.lang for d in Corpus(tmp_path / "c")} == {"fr": "fr", "d0": "en"}
    assert sorted(p.name for p in (tmp_path / "c").iterdir() if p.is_dir()) == ["en", "fr"]


def test_a_corpus_opens_as_a_hugging_face_dataset(tmp_path):
    from datasets import load_dataset

    build(some(5, lang="en"), tmp_path / "c")
    found = load_dataset(str(tmp_path / "c"), "en", split="train", cache_dir=str(tmp_path / "cache"))
    assert found["id"][:] == [f"d{n}" for n in range(5)]


def test_the_same_documents_give_the_same_fingerprint(tmp_path):
    for name in ("a", "b"):
        build(some(5, lang="en"), tmp_path / name)
    assert Corpus(tmp_path / "a").manifest.fingerprint == Corpus(tmp_path / "b").manifest.fingerprint


def test_the_anthology_crosses_writers_and_topics():
    essays = list(anthology())
    writers = {d.author_set for d in essays}
    topics = {d.domains for d in essays}
    assert len(essays) >= 60
    assert len(writers) >= 12
    assert len(topics) >= 5
    for writer in writers:
        assert len({d.domains for d in essays if d.author_set == writer}) >= 5
    for topic in topics:
        assert len({d.author_set for d in essays if d.domains == topic}) >= 8


def test_every_essay_is_long_enough():
    assert min(len(d.text.split()) for d in anthology()) >= 250
