"""A corpus on disk: what goes in comes out, in the formats of the ecosystem."""

import pytest

from idiograph.corpus.build import Dropped, WrittenText, paper_sources, prepare_papers
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.readers import UnreadableSource
from idiograph.errors import InputError
from idiograph.recipe import CorpusRecipe
from idiograph.synth.anthology import anthology
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
    build_corpus(documents, tmp_path / "c", PLAIN)
    assert list(Corpus(tmp_path / "c")) == documents


def test_every_text_can_be_had_by_its_row(tmp_path, monkeypatch):
    from idiograph.corpus import corpus as module

    monkeypatch.setattr(module, "ROW_GROUP", 3)
    monkeypatch.setattr(module, "SHARD", 6)
    documents = some(20, lang="en")
    build_corpus(documents, tmp_path / "c", PLAIN)
    corpus = Corpus(tmp_path / "c")
    assert len(corpus.paths) == 4
    assert [corpus.document(at) for at in range(20)] == documents
    assert corpus.table["id"].to_pylist() == [d.id for d in documents]


def test_what_cannot_be_used_is_counted_by_reason(tmp_path):
    items = [
        *some(2, lang="en"),
        *some(1, lang="en"),
        Document("x", "No author here."),
        UnreadableSource("f", "broken"),
    ]
    items.append(Document("y", "123 456", (Author("A"),), lang="en"))
    built = build_corpus(items, tmp_path / "c", PLAIN)
    assert built.documents == 2
    assert built.dropped == {"id given twice": 1, "no author": 1, "unreadable": 1, "no words": 1}
    assert built.failures == (UnreadableSource("f", "broken"),)


def test_a_corpus_of_nothing_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="no document with an author"):
        build_corpus([], tmp_path / "c")
    with pytest.raises(InputError, match="the first of 1 problems: 'x.txt': empty"):
        build_corpus([UnreadableSource("x.txt", "empty")], tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_a_document_without_a_language_gets_one(tmp_path):
    text = "Les marées sont mesurées depuis longtemps dans les ports de la Manche, mais on les prédit encore mal."
    build_corpus([Document("fr", text, (Author("A"),)), *some(1)], tmp_path / "c")
    assert {d.id: d.lang for d in Corpus(tmp_path / "c")} == {"fr": "fr", "d0": "en"}
    assert sorted(p.name for p in (tmp_path / "c").iterdir() if p.is_dir()) == ["en", "fr"]


def test_a_corpus_opens_as_a_hugging_face_dataset(tmp_path):
    from datasets import load_dataset

    build_corpus(some(5, lang="en"), tmp_path / "c", PLAIN)
    found = load_dataset(str(tmp_path / "c"), "en", split="train", cache_dir=str(tmp_path / "cache"))
    assert found["id"][:] == [f"d{n}" for n in range(5)]


def test_the_croissant_is_valid_and_reads_the_texts(tmp_path):
    croissant = pytest.importorskip("mlcroissant")
    build_corpus(some(3, lang="en"), tmp_path / "c", PLAIN)
    dataset = croissant.Dataset(jsonld=str(tmp_path / "c" / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    assert [row["en-train/id"].decode() for row in dataset.records("en-train")] == ["d0", "d1", "d2"]


def test_the_same_documents_give_the_same_fingerprint(tmp_path):
    for name in ("a", "b"):
        build_corpus(some(5, lang="en"), tmp_path / name)
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
    build_corpus([paper("a")], tmp_path / "masked")
    build_corpus([paper("a")], tmp_path / "kept", CorpusRecipe(citations="keep"))
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
    built = build_corpus([preprint, journal, other], tmp_path / "c", CorpusRecipe(filters=False, language="depositor"))
    assert {d.id for d in Corpus(tmp_path / "c")} == {"v2", "x"}
    assert built.dropped == {"near-duplicate of another document": 1}


def test_a_document_in_another_language_than_declared_is_dropped_and_counted(tmp_path):
    built = build_corpus([paper("a"), paper("b", lang="fr", title="Autre", name="Bo")], tmp_path / "c")
    assert built.dropped == {"language is not the one that was declared": 1}


def test_a_page_of_capitals_is_dropped_by_the_document_rules(tmp_path):
    built = build_corpus([paper("a"), paper("b", ENGLISH.upper(), title="Other", name="Bo")], tmp_path / "c")
    assert built.documents == 1
    assert sum(built.dropped.values()) == 1


def test_every_runner_and_any_number_of_workers_gives_the_same_corpus(tmp_path):
    from idiograph.corpus.readers import read_documents
    from idiograph.runner import Workers

    prints = set()
    for name, workers in {"a": Workers(), "b": Workers("processes", 2)}.items():
        build_corpus(read_documents("anthology"), tmp_path / name, workers=workers)
        prints.add(Corpus(tmp_path / name).manifest.fingerprint)
    assert len(prints) == 1


def test_shards_are_disjoint_and_together_everything(tmp_path):
    from idiograph.corpus.readers import read_documents

    ids = []
    for part in ("1/2", "2/2"):
        folder = tmp_path / part.replace("/", "-")
        build_corpus(read_documents("anthology"), folder, part=part)
        ids += [d.id for d in Corpus(folder)]
    assert sorted(ids) == sorted(d.id for d in anthology())


def test_tei_with_its_records_becomes_a_corpus(tmp_path, shared):
    """A record gives authors and field; a file without one speaks for itself."""
    from idiograph.corpus.build import paper_sources

    found = build_corpus(
        paper_sources([str(shared / "fixtures" / "grobid")]), tmp_path / "tei", CorpusRecipe(duplicates="keep")
    )
    assert found.documents == 3
    for document in Corpus(tmp_path / "tei"):
        assert document.authors
        assert "[CITE]" in document.text


@pytest.mark.parametrize("runner", ["inline", "processes"])
def test_quality_signals_stand_beside_the_documents_when_asked_for(tmp_path, runner):
    import pyarrow.parquet as pq

    from idiograph.corpus.signals import SIGNALS
    from idiograph.runner import Workers

    build_corpus(
        some(5, lang="en"), tmp_path / "c", PLAIN.model_copy(update={"signals": True}), workers=Workers(runner, 1)
    )
    rows = pq.read_table(tmp_path / "c" / "en" / "signals-00000-of-00001.parquet").to_pylist()
    assert [row["id"] for row in rows] == [document.id for document in Corpus(tmp_path / "c")]
    assert rows[0].keys() == {"id", *SIGNALS}
    assert rows[0]["words"] == 10


def test_what_is_left_out_is_listed_with_its_reason(tmp_path):
    items = [
        *some(2, lang="en"),
        *some(1, lang="en"),
        Document("x", "No author here."),
        UnreadableSource("f/g.txt", "broken"),
    ]
    build_corpus(items, tmp_path / "c", PLAIN)
    lines = (tmp_path / "c" / "left_out.csv").read_text().splitlines()
    assert lines == ["id,reason,detail", "d0,id given twice,", "x,no author,", "g.txt,unreadable,broken"]


def test_a_corpus_is_read_as_its_documents_and_nothing_else(tmp_path):
    """Neither the list of what was left out nor the signals are taken for texts."""
    from idiograph.corpus.readers import read_documents

    kept = some(3, lang="en")
    recipe = PLAIN.model_copy(update={"signals": True})
    build_corpus([*kept, Document("x", "No author here.")], tmp_path / "c", recipe)
    assert list(read_documents(str(tmp_path / "c"))) == kept


def test_shards_that_are_put_together_are_the_whole(tmp_path):
    """Versions of one work that fell into two shards are collapsed, too."""
    from itertools import chain

    from idiograph.corpus.readers import read_documents

    works = [paper(f"p{n}", f"{essay.text}", title=essay.title) for n, essay in enumerate(anthology())]
    versions = [paper(f"v{n}", f"{work.text} One more.", title=work.title) for n, work in enumerate(works)]
    build_corpus([*works, *versions], tmp_path / "whole")
    for part in (1, 2):
        build_corpus([*works, *versions], tmp_path / f"part-{part}", part=f"{part}/2")
    build_corpus(chain(*(read_documents(str(tmp_path / f"part-{part}")) for part in (1, 2))), tmp_path / "joined")
    assert len(Corpus(tmp_path / "part-1")) + len(Corpus(tmp_path / "part-2")) > len(works)
    by_id = [{document.id: document for document in Corpus(tmp_path / name)} for name in ("joined", "whole")]
    assert by_id[0] == by_id[1]
    assert len(by_id[0]) == len(works)


def test_records_describe_papers_without_being_held_in_memory(tmp_path):
    """The last word on an id stands, wherever it was harvested."""
    from idiograph.hal.records import KIND, Person, Record, RecordLookup, to_line
    from idiograph.store import Manifest, seal

    def record(halid, title):
        return Record(halid, "en", title, ("info",), "", 2020, "", (Person("Ada"),))

    first, second = tmp_path / "001-000001.jsonl", tmp_path / "002-000001.jsonl"
    first.write_text(to_line(record("hal-1", "Été")) + to_line(record("hal-2", "Old")), encoding="utf-8")
    second.write_text(to_line(record("hal-2", "New")), encoding="utf-8")
    seal(tmp_path, Manifest(KIND))
    lookup = RecordLookup(tmp_path, lambda halid: halid.upper())
    assert [lookup.get(key).title for key in ("HAL-1", "HAL-2")] == ["Été", "New"]
    assert lookup.get("HAL-3") is None


def test_records_that_are_not_utf8_are_pointed_at(tmp_path):
    from idiograph.hal.records import KIND, RecordLookup
    from idiograph.store import Manifest, seal

    (tmp_path / "001-000001.jsonl").write_bytes(b'{"halid": "\xff"}\n')
    seal(tmp_path, Manifest(KIND))
    with pytest.raises(InputError, match=r"001-000001.jsonl:1: .*utf-8"):
        RecordLookup(tmp_path, str)


NOVELS = {
    "García_La casa": (
        "—¿Y usted cree que volverá? —preguntó la vieja sin levantar los ojos de la labor—. Yo, la verdad, no lo creo.\n\n"
        "La casa estaba al final de la calle, entre dos huertas abandonadas. Nadie la había habitado desde que murió el "
        "notario, y los niños decían que por las noches se oía toser a alguien en el piso de arriba.\n\n"
        "«No me pida usted eso», dijo al fin. «Pídame dinero, pídame la finca; pero eso no.»"
    ),
    "García_Grito": "¡FUEGO! ¡FUEGO! ¡FUEGO!\n\nTodos corrieron.",
    "García_Silencio": "Silencio, noche.",
    "Jókai_A ház": (
        "– Hát eljött mégis – mondta az öregasszony, és letette a kosarat a küszöbre. – Már azt hittük, hogy a hó ott "
        "tartja a hegyek között egész télen.\n\nA fiú nem felelt. Nézte a kályhában a tüzet, és arra gondolt, hogy az apja "
        "ugyanígy ült itt tíz évvel ezelőtt, ugyanezen a széken, és ugyanígy hallgatott."
    ),
    "Jókai_Csend": "Csend. Hó, hó, hó.",
    "Li_歌": "天地玄黄。宇宙洪荒。日月盈昃。辰宿列张。",
}


def test_a_folder_of_texts_in_any_language_comes_through_whole(tmp_path):
    folder = tmp_path / "novels"
    folder.mkdir()
    for name, text in NOVELS.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    built = build_corpus(paper_sources([str(folder)]), tmp_path / "c")
    assert (built.dropped, built.failures) == ({}, ())
    kept = {d.id: d for d in Corpus(tmp_path / "c")}
    assert {name: d.text.split() for name, d in kept.items()} == {name: t.split() for name, t in NOVELS.items()}
    assert [kept[name].lang for name in ("García_La casa", "Jókai_A ház")] == ["es", "hu"]


def test_the_filters_for_extracted_papers_are_not_for_texts_from_a_folder():
    shout = Document("d", NOVELS["García_Grito"], (Author("García"),))
    found = prepare_papers(([WrittenText(shout), shout], CorpusRecipe()))
    assert [type(each) for each in found] == [Document, Dropped]


def test_signals_count_the_tokens_of_a_tokenizer_and_the_perplexity_of_a_model(tmp_path):
    import pyarrow.parquet as pq
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    from idiograph.corpus.signals import learn_language_models

    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()  # pyright: ignore[reportAttributeAccessIssue]
    words.save(str(tmp_path / "tokenizer.json"))
    build_corpus(some(5, lang="en"), tmp_path / "plain", PLAIN)
    learn_language_models(Corpus(tmp_path / "plain"), tmp_path / "models")
    asked = {"signals": True, "tokenizer": str(tmp_path / "tokenizer.json"), "perplexity": str(tmp_path / "models")}
    build_corpus(some(5, lang="en"), tmp_path / "c", PLAIN.model_copy(update=asked))
    row = pq.read_table(tmp_path / "c" / "en" / "signals-00000-of-00001.parquet").to_pylist()[0]
    assert row["tokens"] == len("Text number 0 , in English and with a few words .".split())
    assert 1 < row["perplexity"] < 5


def test_a_worker_says_what_it_wrote_and_keeps_the_texts_to_itself(tmp_path):
    import pickle

    from idiograph.corpus.build import PartTask, ReadyDocument, prepare_part

    lines = prepare_part(PartTask(tmp_path / "0.arrow", list(anthology())), CorpusRecipe())
    assert [line.row for line in lines if isinstance(line, ReadyDocument)] == list(range(len(lines)))
    assert len(pickle.dumps(lines)) < 800 * len(lines)  # half a kilobyte is what near-duplicates are found by
    assert [path.name for path in tmp_path.iterdir()] == ["0.arrow"]


def test_nothing_is_left_of_the_parts_of_a_corpus(tmp_path):
    build_corpus(anthology(), tmp_path / "corpus")
    names = {path.relative_to(tmp_path / "corpus").as_posix() for path in (tmp_path / "corpus").rglob("*")}
    assert not [name for name in names if name.startswith(".")]


def test_files_of_a_folder_of_texts_are_read_by_who_prepares_them(tmp_path):
    from idiograph.corpus.build import TextFile

    (tmp_path / "Ada_One.txt").write_text("Nothing but this was said.")
    (tmp_path / "nobody.txt").write_text("Nothing but this was said.")
    one, nobody = paper_sources([str(tmp_path)])
    assert isinstance(one, TextFile)
    assert one.id == "Ada_One"
    kept, left = prepare_papers(([one, nobody], CorpusRecipe()))
    assert isinstance(kept, Document)
    assert kept.authors == (Author("Ada"),)
    assert isinstance(left, UnreadableSource)
    assert left.reason.startswith("no author in its name")


def test_a_corpus_of_several_shards_has_each_document_once_and_in_order(tmp_path, monkeypatch):
    from idiograph.corpus import corpus as module
    from idiograph.corpus.readers import read_documents

    monkeypatch.setattr(module, "SHARD", 300)
    build_corpus(read_documents("synth:documents=700"), tmp_path / "corpus")
    names = [path.name for path in sorted((tmp_path / "corpus" / "en").glob("*.parquet"))]
    assert names == [f"train-{at:05d}-of-00003.parquet" for at in range(3)]
    ids = [document.id for document in Corpus(tmp_path / "corpus")]
    assert ids == [document.id for document in read_documents("synth:documents=700")]
