"""A corpus on disk: what goes in comes out, in the formats of the ecosystem."""

import pytest

from idiograph.corpus.anthology import anthology
from idiograph.corpus.documents import Corpus, build
from idiograph.corpus.readers import Failure
from idiograph.errors import InputError
from idiograph.recipe import CorpusRecipe
from idiograph.types import Author, Document

PLAIN = CorpusRecipe(citations="keep", filters=False, language="depositor", duplicates="keep")


def some(count, **changes):
    return [
        Document(f"d{n}", f"Text number {n}, in English and with a few words.", (Author("A B"),), **changes)
        for n in range(count)
    ]


def test_documents_come_back_as_they_went_in(tmp_path):
    documents = [
        Document(
            "a", "One text.", (Author("A", "1", ("x",)), Author("B")), ("info",), "en", "T", 1999, "u", "l", "s", "c"
        ),
        Document("b", "Another.", (Author("C"),), (), "en"),
    ]
    build(documents, tmp_path / "c", PLAIN)
    assert list(Corpus(tmp_path / "c")) == documents


def test_every_text_can_be_had_by_its_row(tmp_path, monkeypatch):
    from idiograph.corpus import documents as module

    monkeypatch.setattr(module, "ROW_GROUP", 3)
    monkeypatch.setattr(module, "SHARD", 6)
    documents = some(20, lang="en")
    build(documents, tmp_path / "c", PLAIN)
    corpus = Corpus(tmp_path / "c")
    assert len(corpus.paths) == 4
    assert [corpus.document(at) for at in range(20)] == documents
    assert corpus.table["id"].to_list() == [d.id for d in documents]


def test_what_cannot_be_used_is_counted_by_reason(tmp_path):
    items = [*some(2, lang="en"), *some(1, lang="en"), Document("x", "No author here."), Failure("f", "broken")]
    items.append(Document("y", "123 456", (Author("A"),), lang="en"))
    built = build(items, tmp_path / "c", PLAIN)
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

    build(some(5, lang="en"), tmp_path / "c", PLAIN)
    found = load_dataset(str(tmp_path / "c"), "en", split="train", cache_dir=str(tmp_path / "cache"))
    assert found["id"][:] == [f"d{n}" for n in range(5)]


def test_the_croissant_is_valid_and_reads_the_texts(tmp_path):
    croissant = pytest.importorskip("mlcroissant")
    build(some(3, lang="en"), tmp_path / "c", PLAIN)
    dataset = croissant.Dataset(jsonld=str(tmp_path / "c" / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert [row["en-train/id"].decode() for row in dataset.records("en-train")] == ["d0", "d1", "d2"]


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


ENGLISH = (
    "The tide has been measured at this harbour for as long as anyone can remember, and the books are still there. "
    "We read them with some care, since the hand changes and the ink has faded in places (Smith et al., 2001). "
    "What the keepers wrote was not always what they saw; a storm could wash a week away, and a new clerk could "
    "invent it again. In the end the figures agree with the theory rather better than they should."
)


def paper(identifier, text=ENGLISH, lang="en", title="On tides", name="Ann Ong"):
    return Document(identifier, text, (Author(name),), ("sdu",), lang, title)


def test_printed_citations_are_masked_because_names_give_authors_away(tmp_path):
    build([paper("a")], tmp_path / "masked")
    build([paper("a")], tmp_path / "kept", CorpusRecipe(citations="keep"))
    assert "Smith" not in next(iter(Corpus(tmp_path / "masked"))).text
    assert "Smith" in next(iter(Corpus(tmp_path / "kept"))).text


def test_two_versions_of_one_work_are_collapsed(tmp_path):
    preprint, journal = (
        paper("v1"),
        paper("v2", ENGLISH + " The journal added this sentence, and nothing more than that."),
    )
    other = paper(
        "x", ENGLISH[::-1].swapcase() * 2 + " and the rest of it is also quite different, in fact.", title="Other"
    )
    built = build([preprint, journal, other], tmp_path / "c", CorpusRecipe(filters=False, language="depositor"))
    assert {d.id for d in Corpus(tmp_path / "c")} == {"v2", "x"}
    assert built.dropped == {"near-duplicate of another document": 1}


def test_a_document_in_another_language_than_declared_is_dropped_and_counted(tmp_path):
    built = build([paper("a"), paper("b", lang="fr", title="Autre", name="Bo")], tmp_path / "c")
    assert built.dropped == {"language is not the one that was declared": 1}


def test_a_page_of_capitals_is_dropped_by_the_document_rules(tmp_path):
    built = build([paper("a"), paper("b", ENGLISH.upper(), title="Other", name="Bo")], tmp_path / "c")
    assert built.documents == 1
    assert sum(built.dropped.values()) == 1


def test_every_runner_and_any_number_of_workers_gives_the_same_corpus(tmp_path):
    from idiograph.corpus.documents import Team
    from idiograph.corpus.readers import read

    prints = set()
    for name, team in {"a": Team(), "b": Team("processes", 2)}.items():
        build(read("anthology"), tmp_path / name, team=team)
        prints.add(Corpus(tmp_path / name).manifest.fingerprint)
    assert len(prints) == 1


def test_shards_are_disjoint_and_together_everything(tmp_path):
    from idiograph.corpus.documents import Team
    from idiograph.corpus.readers import read

    ids = []
    for part in ("1/2", "2/2"):
        folder = tmp_path / part.replace("/", "-")
        build(read("anthology"), folder, team=Team(part=part))
        ids += [d.id for d in Corpus(folder)]
    assert sorted(ids) == sorted(d.id for d in anthology())


def test_tei_with_its_records_becomes_a_corpus(tmp_path, shared):
    """A record gives authors and field; a file without one speaks for itself."""
    from idiograph.corpus.assemble import sources

    found = build(sources([str(shared / "fixtures" / "grobid")]), tmp_path / "tei", CorpusRecipe(duplicates="keep"))
    assert found.documents == 3
    for document in Corpus(tmp_path / "tei"):
        assert document.authors
        assert "[CITE]" in document.text


def test_a_killed_build_leaves_the_target_absent_and_the_next_one_whole(tmp_path):
    import random
    import signal
    import subprocess
    import sys
    import time

    code = "import sys; from pathlib import Path; from idiograph.corpus.documents import build; "
    code += "from idiograph.corpus.readers import read; build(read('synth:documents=400,seed=3'), Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "whole")], check=True)
    chance = random.Random(7)
    for _ in range(3):
        running = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "killed")])
        time.sleep(chance.uniform(0.5, 2.5))
        running.send_signal(signal.SIGKILL)
        running.wait()
    if not (tmp_path / "killed").exists():
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "killed")], check=True)
    assert Corpus(tmp_path / "killed").manifest.fingerprint == Corpus(tmp_path / "whole").manifest.fingerprint
