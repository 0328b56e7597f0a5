"""Mining: what a triplet is, that nothing leaks, and that neither order, workers nor a kill change the result."""

import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.errors import ArtifactError, InputError, SpecError
from idiograph.mining.audit import same_field
from idiograph.mining.catalog import HELD_OUT_ELSEWHERE, LABELS, count_fields
from idiograph.mining.mine import mine_plan, mine_triplets
from idiograph.mining.plan import plan_mining
from idiograph.mining.spans import make_cloze
from idiograph.mining.split import SPLITS
from idiograph.mining.triplets import read_rows, read_triplets
from idiograph.recipe import CorpusRecipe, make_recipe
from idiograph.runner import Workers
from idiograph.synth.synth import synth
from idiograph.text.counts import K1, B, Lexicon, term_counts
from idiograph.text.sentences import find_sentences
from idiograph.types import Author, Document, Triplet, field_of

WORLD = "synth:documents=500,authors=80,topics=4,coauthors=0.4"
THIRDS = (0.4, 0.3, 0.3)


def settings(preset: str = "sound", **changes):
    return make_recipe(preset, {"mine": {"fractions": THIRDS, **changes}}).mine


AS_GIVEN = CorpusRecipe(citations="keep", filters=False, language="depositor", duplicates="keep")


def corpus_of(documents, folder: Path) -> Corpus:
    """The documents as they are: mining must not rely on what was done before."""
    build_corpus(iter(documents), folder, AS_GIVEN)
    return Corpus(folder)


def triplets(folder: Path, name: str = "base-4") -> dict[str, list[Triplet]]:
    return {
        split: list(read_triplets(folder, name, split))
        for split in SPLITS
        if any((folder / name).glob(f"{split}-*.parquet"))
    }


def every(folder: Path, name: str = "base-4") -> list[Triplet]:
    return [triplet for found in triplets(folder, name).values() for triplet in found]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.parquet"))}


def key(triplet: Triplet) -> tuple[str, ...]:
    return tuple(
        part for span in (triplet.anchor, triplet.positive, triplet.negative) for part in (span.doc_id, span.text)
    )


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(synth(WORLD))


@pytest.fixture(scope="module")
def corpus(documents, tmp_path_factory) -> Corpus:
    return corpus_of(documents, tmp_path_factory.mktemp("world") / "corpus")


@pytest.fixture(scope="module")
def mined(corpus, tmp_path_factory) -> Path:
    """Every rule, at two lengths."""
    out = tmp_path_factory.mktemp("mined") / "triplets"
    mine_triplets(corpus, settings(rule=["base", "unrestricted", "ict"], sentences=[2, 4]), out)
    return out


# What a triplet is


def test_positives_are_by_the_same_author_set_from_another_document(mined, documents):
    authors = {d.id: d.author_set for d in documents}
    for triplet in every(mined):
        assert triplet.anchor.doc_id != triplet.positive.doc_id
        assert authors[triplet.anchor.doc_id] == authors[triplet.positive.doc_id] == triplet.anchor.authors


def test_negatives_are_from_the_same_field_by_nobody_of_the_same_people(mined, documents):
    by_id = {d.id: d for d in documents}
    for triplet in every(mined):
        anchor, negative = by_id[triplet.anchor.doc_id], by_id[triplet.negative.doc_id]
        assert same_field(list(anchor.domains), list(negative.domains))
        assert not anchor.author_set & negative.author_set


@pytest.mark.parametrize("size", [2, 4])
def test_a_span_is_as_many_sentences_of_its_document_as_asked(mined, documents, size):
    texts = {d.id: d.text for d in documents}
    for triplet in every(mined, f"base-{size}")[:50]:
        for span in (triplet.anchor, triplet.positive, triplet.negative):
            start = texts[span.doc_id].index(span.text)
            inside = [s for s in find_sentences(texts[span.doc_id]) if start <= s[0] < start + len(span.text)]
            assert len(inside) == size


def test_a_document_gives_no_more_triplets_than_asked_and_none_twice(corpus, tmp_path):
    mine_triplets(corpus, settings(per_document=3), tmp_path / "out")
    found = every(tmp_path / "out")
    assert max(np.unique([t.anchor.doc_id for t in found], return_counts=True)[1]) == 3
    assert len({key(t) for t in found}) == len(found)


def test_unrestricted_takes_a_second_span_of_the_document_only_if_there_is_no_other_document(mined, documents):
    wrote = {}
    for document in documents:
        wrote.setdefault(document.author_set, []).append(document.id)
    found = every(mined, "unrestricted-2")
    own = [t for t in found if t.anchor.doc_id == t.positive.doc_id]
    assert own
    based = {t.anchor.doc_id for t in every(mined, "base-2")}
    assert not based & {t.anchor.doc_id for t in own}
    assert {t.anchor.doc_id for t in found} > based


def test_a_second_span_of_the_same_document_does_not_overlap_the_first(mined, documents):
    texts = {d.id: d.text for d in documents}
    own = [t for t in every(mined, "unrestricted-2") if t.anchor.doc_id == t.positive.doc_id]
    for triplet in own:
        a, b = (texts[s.doc_id].index(s.text) for s in (triplet.anchor, triplet.positive))
        assert a + len(triplet.anchor.text) <= b or b + len(triplet.positive.text) <= a


def test_a_cloze_is_an_anchor_in_its_context_and_a_passage_elsewhere(mined, documents):
    texts = {d.id: d.text for d in documents}
    found = every(mined, "ict-2")
    assert found
    for triplet in found:
        text, sizes = texts[triplet.anchor.doc_id], []
        assert len({s.doc_id for s in (triplet.anchor, triplet.positive, triplet.negative)}) == 1
        for span in (triplet.anchor, triplet.positive, triplet.negative):
            sizes.append(len(find_sentences(span.text)))
        assert sizes[0] == 2
        assert sizes[1] == (6 if triplet.anchor.text in triplet.positive.text else 4)
        assert sizes[2] == 4
        assert triplet.negative.text in text
        assert triplet.anchor.text not in triplet.negative.text


def test_one_context_in_ten_keeps_its_anchor():
    text = " ".join(f"Sentence number {at} ends here." for at in range(40))
    offsets, draw = find_sentences(text), random.Random(7)
    drawn = [make_cloze(text, offsets, 10, 4, draw) for _ in range(2000)]
    kept = np.mean([anchor[0] in context[0] for anchor, context, _ in drawn])
    assert 0.08 < kept < 0.12


def test_two_chapters_of_one_book_are_no_positive_pair(documents, tmp_path):
    writer = documents[0].authors[:1]
    own = [
        replace(d, authors=writer, container="a book" if at < 3 else "another") for at, d in enumerate(documents[:4])
    ]
    corpus = corpus_of([*own, *documents[4:]], tmp_path / "corpus")
    wanted = settings(fractions=(1, 0, 0), sentences=2)
    mine_triplets(corpus, wanted, tmp_path / "out")
    books = {d.id: d.container for d in own}
    found = [t for t in every(tmp_path / "out", "base-2") if t.anchor.doc_id in books]
    pairs = {(books[t.anchor.doc_id], books.get(t.positive.doc_id)) for t in found}
    assert ("a book", "a book") not in pairs
    assert ("a book", "another") in pairs


def test_a_corpus_whose_writers_have_one_book_each_says_what_to_type(documents, tmp_path):
    shelved = [replace(d, container=f"by {d.authors[0].name}") for d in documents]
    corpus = corpus_of(shelved, tmp_path / "corpus")
    with pytest.raises(InputError, match=r"outside its book .*--containers any"):
        mine_triplets(corpus, settings(sentences=2), tmp_path / "out")
    assert sum(mine_triplets(corpus, settings(sentences=2, containers="any"), tmp_path / "out")["base-2"].values()) > 0


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("identified", [set(), {"1", "3"}]),
        ("set", [{"1"}, {"1", "3"}]),
        ("first", [{"1"}, {"1"}]),
        ("last", [set(), {"3"}]),
        ("single", [set(), set()]),
    ],
)
def test_a_label_says_who_counts_as_the_writer(label, expected):
    assert [LABELS[label](keys) for keys in (["1", None], ["1", "3"])] == expected


def test_hal_codes_count_by_their_first_part_and_others_as_they_are():
    assert [field_of(code) for code in ("shs.langue", "cs.CL", "bees")] == ["shs", "cs.CL", "bees"]
    assert {field_of(code) for code in ("0.phys", "1.phys.meca", "PHYS.MECA.ACOU", " phys ", "phys")} == {"phys"}


def without_ids(document: Document) -> Document:
    return replace(document, authors=tuple(Author(a.name) for a in document.authors))


def test_one_author_with_an_id_costs_no_triplet(documents, tmp_path):
    bare = [without_ids(d) for d in documents]
    ada = replace(
        bare[0], id="another", text="It is one sentence and no more.", authors=(Author("Ada of Another World", "17"),)
    )
    without, beside = (
        mine_triplets(corpus_of(some, tmp_path / name / "corpus"), settings(sentences=2), tmp_path / name / "out")
        for name, some in (("none", bare), ("one", [*bare, ada]))
    )
    assert sum(beside["base-2"].values()) > 0.95 * sum(without["base-2"].values()) > 1000


def test_a_person_with_an_id_in_one_document_and_without_in_another_gives_a_positive_pair(documents, tmp_path):
    ada = [Author("Ada Roe", "17"), Author("Ada Roe")]
    own = [replace(documents[at], authors=(who,)) for at, who in enumerate(ada)]
    others = [without_ids(d) for d in documents[2:]]
    wanted = settings(sentences=2, fractions=(1, 0, 0))
    mine_triplets(corpus_of([*own, *others], tmp_path / "corpus"), wanted, tmp_path / "out")
    assert {own[0].id, own[1].id} <= {t.anchor.doc_id for t in every(tmp_path / "out", "base-2")}


def test_the_published_protocol_counts_nobody_without_an_id_where_there_are_ids(documents, tmp_path):
    mixed = [without_ids(d) if at % 2 else d for at, d in enumerate(documents)]
    wanted = settings(sentences=2, identity="ids", label="set")
    mine_triplets(corpus_of(mixed, tmp_path / "corpus"), wanted, tmp_path / "out")
    identified = {d.id for d in mixed if d.authors[0].id}
    assert {t.anchor.doc_id for t in every(tmp_path / "out", "base-2")} <= identified


# The published form


@pytest.fixture(scope="module")
def published(documents, tmp_path_factory) -> Path:
    """As `--preset paper` writes it, of documents of which one has no year."""
    folder = tmp_path_factory.mktemp("published")
    corpus = corpus_of([replace(documents[0], year=None), *documents[1:]], folder / "corpus")
    mine_triplets(corpus, settings("paper", sentences=2), folder / "out")
    return folder / "out"


def test_the_published_columns_are_written_under_their_names_with_years_as_text(published):
    written = pq.read_table(next((published / "base-2").glob("train-*.parquet")))
    assert "neg_halids" in written.column_names
    assert "neg_halid" not in written.column_names
    years = {year for role in ("query", "pos", "neg") for year in written.column(f"{role}_year").to_pylist()}
    assert "1" in years
    assert all(year.isdigit() for year in years)


def test_what_is_written_in_the_published_form_is_read_as_any_other(published, documents):
    by_id = {d.id: d for d in documents[1:]}
    for triplet in every(published, "base-2"):
        for span in (triplet.anchor, triplet.positive, triplet.negative):
            assert span.year == (by_id[span.doc_id].year if span.doc_id in by_id else None)


def test_each_of_ten_positives_comes_with_ten_negatives(published):
    drawn = {}
    for triplet in every(published, "base-2"):
        drawn.setdefault(triplet.anchor.doc_id, []).append(triplet)
    whole = [some for some in drawn.values() if len(some) == 100]
    assert whole
    for some in whole:
        positives = np.unique([t.positive.doc_id for t in some], return_counts=True)[1]
        assert all(count % 10 == 0 for count in positives)
        assert len({t.negative.doc_id for t in some}) > 10


# Fields


def spelled(documents, spellings) -> list[Document]:
    return [replace(d, domains=(spellings[at % len(spellings)],)) for at, d in enumerate(documents)]


def test_any_spelling_of_a_hal_code_is_its_field_in_negatives_and_in_what_is_written(documents, tmp_path):
    some = spelled(documents, ["0.phys", "1.phys.meca", "PHYS.MECA.ACOU", "phys"])
    mine_triplets(corpus_of(some, tmp_path / "corpus"), settings(sentences=2), tmp_path / "out")
    rows = [row for split in SPLITS for row in read_rows(tmp_path / "out", "base-2", split)]
    assert {tuple(row[f"{role}_domain"]) for row in rows for role in ("query", "pos", "neg")} == {("phys",)}


def test_a_field_that_is_not_listed_gives_no_triplet(documents, tmp_path):
    some = spelled(documents, ["shs.langue", "demo"])
    mine_triplets(corpus_of(some, tmp_path / "corpus"), settings(sentences=2, field_codes="13"), tmp_path / "out")
    rows = [row for split in SPLITS for row in read_rows(tmp_path / "out", "base-2", split)]
    assert {name for row in rows for name in row["query_domain"]} == {"shs"}


def test_fields_are_derived_from_how_many_documents_they_have(documents, tmp_path):
    rare = replace(documents[0], id="rare", domains=("qfin.st",))
    corpus = corpus_of([*spelled(documents, ["shs.langue", "info.info-cl"]), rare], tmp_path / "corpus")
    assert list(count_fields(corpus)) == ["shs", "info"]


# Splits


def test_no_author_and_no_document_is_in_two_splits(mined):
    seen = {}
    for name in ("base-2", "base-4", "unrestricted-2", "ict-2"):
        for split, found in triplets(mined, name).items():
            for span in (s for t in found for s in (t.anchor, t.positive, t.negative)):
                for what in (("document", span.doc_id), *(("author", author) for author in span.authors)):
                    assert seen.setdefault(what, split) == split


def test_a_person_known_by_id_here_and_by_name_there_is_one_person(documents, tmp_path):
    """Half of the documents lose the ids of their authors; the names remain."""
    bare = [
        replace(d, authors=tuple(Author(a.name) for a in d.authors)) if at % 2 else d for at, d in enumerate(documents)
    ]
    mine_triplets(corpus_of(bare, tmp_path / "corpus"), settings(sentences=2), tmp_path / "out")
    names = {d.id: {a.name for a in d.authors} for d in documents}
    seen = {}
    for split, found in triplets(tmp_path / "out", "base-2").items():
        for triplet in found:
            assert not names[triplet.anchor.doc_id] & names[triplet.negative.doc_id]
            for span in (triplet.anchor, triplet.positive, triplet.negative):
                assert all(seen.setdefault(name, split) == split for name in names[span.doc_id])


def test_with_one_author_as_label_no_co_author_is_a_writer_in_another_split(documents, tmp_path):
    mine_triplets(corpus_of(documents, tmp_path / "corpus"), settings(sentences=2, label="last"), tmp_path / "out")
    people = {d.id: d.author_set for d in documents}
    found = triplets(tmp_path / "out", "base-2")
    writers = {split: {a for t in rows for a in t.anchor.authors} for split, rows in found.items()}
    for split, rows in found.items():
        others = set().union(*(names for other, names in writers.items() if other != split))
        assert not any(people[s.doc_id] & others for t in rows for s in (t.anchor, t.positive, t.negative))


def test_whoever_is_tested_in_other_triplets_is_not_in_train(documents, corpus, tmp_path):
    wrote = {d.id: d.author_set for d in documents}

    def written(folder, *splits):
        spans = [s for name in splits for t in triplets(folder)[name] for s in (t.anchor, t.positive, t.negative)]
        return {s.doc_id for s in spans}

    mine_triplets(corpus, settings(label="last"), tmp_path / "last")
    held = written(tmp_path / "last", "valid", "test")
    tested = {
        who for split in ("valid", "test") for t in triplets(tmp_path / "last")[split] for who in t.anchor.authors
    }
    mine_triplets(corpus, settings(label="first", seed=3), tmp_path / "careless")
    mine_triplets(corpus, settings(label="first", seed=3), tmp_path / "careful", apart=[tmp_path / "last"])
    leaks = [d for d in written(tmp_path / "careless", "train") if d in held or wrote[d] & tested]
    assert leaks  # otherwise this would show nothing
    assert not [d for d in written(tmp_path / "careful", "train") if d in held or wrote[d] & tested]
    assert written(tmp_path / "careful", "train")
    for split in ("valid", "test"):
        assert {key(t) for t in triplets(tmp_path / "careful")[split]} == {
            key(t) for t in triplets(tmp_path / "careless")[split]
        }
    made = json.loads((tmp_path / "careful" / "manifest.json").read_text())
    last = json.loads((tmp_path / "last" / "manifest.json").read_text())
    assert made["inputs"][f"apart from {tmp_path / 'last'}"] == last["fingerprint"]
    assert made["dropped"][HELD_OUT_ELSEWHERE] >= len(leaks)


def test_shares_of_authors_are_about_those_asked_for(tmp_path):
    corpus = corpus_of(synth("synth:documents=1200,authors=400,topics=2,coauthors=0,sentences=3"), tmp_path / "corpus")
    mine_triplets(corpus, settings(fractions=(0.5, 0.25, 0.25), sentences=2), tmp_path / "out")
    found = triplets(tmp_path / "out", "base-2")
    sizes = np.array([len({a for t in found[split] for a in t.anchor.authors}) for split in SPLITS])
    assert np.abs(sizes / sizes.sum() - (0.5, 0.25, 0.25)).max() < 0.08  # three standard errors of 325 authors


def test_a_sentence_that_a_later_split_holds_too_is_not_in_train(documents, tmp_path):
    """Every document says the same sentence somewhere: it may stay in one split alone."""
    line = "The remainder of this paper is organised in the following way for the reader."
    said = [replace(d, text=d.text.replace(". ", f". {line} ", 1)) for d in documents]
    mine_triplets(corpus_of(said, tmp_path / "corpus"), settings(sentences=2), tmp_path / "out")
    found = triplets(tmp_path / "out", "base-2")
    spans = {split: {s.text for t in rows for s in (t.anchor, t.positive, t.negative)} for split, rows in found.items()}
    assert {split for split, texts in spans.items() if any(line in text for text in texts)} == {"test"}
    dropped = json.loads((tmp_path / "out" / "manifest.json").read_text())["dropped"]
    assert dropped["base-2: shares a sentence with a later split"] > 0


def test_of_two_versions_of_a_work_one_is_used(documents, tmp_path):
    copies = [replace(d, id=f"{d.id}-preprint", text=f"{d.text} It was sent in.") for d in documents[:100]]
    corpus = corpus_of([*documents, *copies], tmp_path / "corpus")
    mine_triplets(corpus, settings(sentences=2), tmp_path / "out")
    used = {s.doc_id for t in every(tmp_path / "out", "base-2") for s in (t.anchor, t.positive, t.negative)}
    assert not used & {d.id for d in documents[:100]}
    kept = json.loads((tmp_path / "out" / "manifest.json").read_text())["dropped"]["document: repeats another"]
    assert 50 < kept <= 100  # those whose authors are in one split


# Words


def test_bm25_of_given_pairs_is_that_of_the_definition(texts):
    lexicon = Lexicon(term_counts(texts))
    counts = [dict(zip(*np.unique(row, return_counts=True), strict=True)) for row in words_of(texts)]
    mean = np.mean([sum(c.values()) for c in counts])

    def bm25(query: dict, doc: dict) -> float:
        total, length = 0.0, sum(doc.values())
        for word, times in query.items():
            df = sum(word in c for c in counts)
            tf = doc.get(word, 0)
            idf = np.log1p((len(counts) - df + 0.5) / (df + 0.5))
            total += times * idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / mean))
        return total

    numbers = np.arange(len(texts))
    found = lexicon.scores(numbers, np.tile(numbers, (len(texts), 1)))
    expected = [[bm25(a, b) for b in counts] for a in counts]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def words_of(texts) -> list[list[int]]:
    terms = [term_counts([text]) for text in texts]
    return [np.repeat(t.words, t.times).tolist() for t in terms]


@pytest.fixture(scope="module")
def overlap(corpus, tmp_path_factory):
    """Mean share of common words of (anchor, positive) and (anchor, negative), by how they were chosen."""

    def measured(**how) -> tuple[float, float]:
        out = tmp_path_factory.mktemp("words") / "out"
        mine_triplets(corpus, settings(candidates=20, **how), out)

        def shared(a: str, b: str) -> float:
            one, other = set(a.lower().split()), set(b.lower().split())
            return len(one & other) / len(one | other)

        pairs = [(t.anchor.text, t.positive.text, t.negative.text) for t in every(out)]
        return np.mean([shared(a, p) for a, p, _ in pairs]), np.mean([shared(a, n) for a, _, n in pairs])

    return measured


def test_lexical_negatives_have_more_words_of_the_anchor_and_far_positives_fewer(overlap):
    plain, lexical, far = overlap(), overlap(negatives="lexical"), overlap(positives="far")
    assert lexical[1] > 1.15 * plain[1]
    assert lexical[0] == pytest.approx(plain[0])
    assert far[0] < 0.95 * plain[0]
    assert far[1] == pytest.approx(plain[1], rel=1e-3)  # a few triplets fewer or more share a sentence with test


def test_matched_negatives_have_as_many_words_of_the_anchor_as_the_positive(overlap):
    positive, negative = overlap(negatives="matched")
    assert negative == pytest.approx(positive, rel=0.05)


def test_the_lexical_negative_is_the_nearest_of_those_that_were_drawn(corpus, tmp_path):
    """With more candidates the nearest cannot be farther away."""
    means = []
    for candidates in (2, 10, 50):
        out = tmp_path / str(candidates)
        mine_triplets(corpus, settings(negatives="lexical", candidates=candidates, per_document=1), out)
        found = every(out)
        texts = sorted({s.text for t in found for s in (t.anchor, t.negative)})
        place = {text: at for at, text in enumerate(texts)}
        lexicon = Lexicon(term_counts(texts))
        anchors = np.array([place[t.anchor.text] for t in found])
        negatives = np.array([[place[t.negative.text]] for t in found])
        means.append(float(lexicon.scores(anchors, negatives).mean()))
    assert means[0] < means[1] < means[2]


# The same whatever the order, the workers and the kills


def test_the_order_of_the_corpus_does_not_matter(documents, tmp_path):
    shelved = [replace(d, container=f"volume {at % 7}" if at % 3 else "") for at, d in enumerate(documents)]
    mixed = random.Random(3).sample(shelved, len(shelved))
    for name, given in (("one", shelved), ("other", mixed)):
        mine_triplets(corpus_of(given, tmp_path / f"{name}-corpus"), settings(negatives="lexical"), tmp_path / name)
    assert [key(t) for t in every(tmp_path / "one")] == [key(t) for t in every(tmp_path / "other")]


def test_another_document_in_the_corpus_moves_few_triplets_if_people_stay_in_their_splits(documents, corpus, tmp_path):
    more = [*documents, replace(documents[0], id="new", text=" ".join(reversed(documents[0].text.split(". "))))]
    mine_triplets(corpus, settings(), tmp_path / "one")
    plan = plan_mining(corpus_of(more, tmp_path / "corpus"), settings(), splits_from=[tmp_path / "one"])
    mine_plan(plan, tmp_path / "other")
    one, other = ({key(t) for t in every(tmp_path / name)} for name in ("one", "other"))
    assert len(one & other) > 0.9 * len(one)


def test_worker_processes_give_the_same_bytes(corpus, tmp_path):
    wanted = settings(rule=["base", "ict"], sentences=2, negatives="lexical")
    mine_triplets(corpus, wanted, tmp_path / "one")
    mine_triplets(corpus, wanted, tmp_path / "other", workers=Workers("processes", 2))
    assert files(tmp_path / "one") == files(tmp_path / "other")


@pytest.mark.slow
def test_a_ray_cluster_of_two_nodes_gives_the_same_bytes(corpus, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'idiograph[ray]'")
    from ray.cluster_utils import Cluster

    wanted = settings(rule=["base", "ict"], sentences=2, negatives="lexical")
    mine_triplets(corpus, wanted, tmp_path / "one")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        mine_triplets(corpus, wanted, tmp_path / "other", workers=Workers("ray", None, cluster.address))
    finally:
        cluster.shutdown()
    assert files(tmp_path / "one") == files(tmp_path / "other")


def test_the_same_seed_draws_the_same_and_another_one_others(corpus, tmp_path):
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        mine_triplets(corpus, settings(seed=seed), tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "same")
    one, other = ({t.anchor.doc_id for t in triplets(tmp_path / n)["test"]} for n in ("one", "other"))
    assert one != other


KILLED = """
import os, signal, sys
from pathlib import Path
from idiograph.corpus.corpus import Corpus
from idiograph.mining.mine import mine_plan, mine_triplets
from idiograph.mining.plan import plan_mining
from idiograph.runner import Workers
from idiograph.recipe import make_recipe

def progress(done, total, what):
    if what == sys.argv[3] and done:
        os.kill(os.getpid(), signal.SIGKILL)

settings = make_recipe("sound", {"mine": {"sentences": 2, "fractions": (0.4, 0.3, 0.3)}}).mine
mine_triplets(Corpus(Path(sys.argv[1])), settings, Path(sys.argv[2]), workers=Workers(progress=progress))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Corpus:
    """More than one block of documents."""
    world = "synth:documents=2500,authors=500,topics=3,sentences=3"
    return corpus_of(synth(world), tmp_path_factory.mktemp("large") / "corpus")


@pytest.fixture(scope="module")
def unbroken(large, tmp_path_factory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("unbroken") / "out"
    mine_triplets(large, settings(sentences=2), out)
    return files(out)


@pytest.mark.parametrize("stage", ["drawing spans", "drawing base-2", "comparing spans-2", "writing base-2"])
def test_a_killed_run_leaves_nothing_half_done_and_goes_on_where_it_was(large, unbroken, tmp_path, stage):
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(large.folder), str(out), stage]
    assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    assert not out.exists()
    work = tmp_path / ".out.work"
    first = (work / "000000.npz").stat().st_mtime_ns
    stamps = []
    mine_triplets(large, settings(sentences=2), out, progress=lambda *_: stamps.append(stamp(work)))
    assert max(filter(None, stamps)) == first
    assert files(out) == unbroken
    assert not work.exists()


def stamp(work: Path) -> int:
    path = work / "000000.npz"
    return path.stat().st_mtime_ns if path.is_file() else 0


def test_what_another_recipe_left_behind_is_not_used(large, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(large.folder), str(out), "drawing base-2"]
    subprocess.run(command, check=False, timeout=120)
    mine_triplets(large, settings(sentences=2, seed=8, per_document=1), out)
    mine_triplets(large, settings(sentences=2, seed=8, per_document=1), tmp_path / "fresh")
    assert files(out) == files(tmp_path / "fresh")


def test_a_run_that_raises_keeps_its_work_for_the_next(large, unbroken, tmp_path):
    def interrupt(done: int, total: int | None, what: str) -> None:
        if what == "drawing base-2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mine_triplets(large, settings(sentences=2), tmp_path / "out", progress=interrupt)
    assert os.listdir(tmp_path) == [".out.work"]
    mine_triplets(large, settings(sentences=2), tmp_path / "out")
    assert files(tmp_path / "out") == unbroken


def test_progress_tells_what_is_done_of_how_much(corpus, tmp_path):
    told = []
    mine_triplets(corpus, settings(), tmp_path / "out", progress=lambda *what: told.append(what))
    assert (500, 500, "drawing spans") in told
    assert all(total is None or done <= total for done, total, _ in told)


# Settings


def test_one_value_stands_for_a_list_of_one():
    assert settings(rule="ict", sentences=2).rule == ("ict",)
    assert settings(sentences=[2, 4, 2]).sentences == (2, 4)


@pytest.mark.parametrize(
    "wrong", [{"rule": "bse"}, {"sentences": 0}, {"negatives": "hard"}, {"fractions": (0, 0, 0)}, {"rule": []}]
)
def test_a_setting_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(SpecError, match=r"\[mine\]"):
        make_recipe("sound", {"mine": wrong})


def test_the_published_protocol_keeps_short_documents_and_repeats(documents, tmp_path):
    short = [replace(d, text=" ".join(d.text.split(". ")[:2]).strip(".") + ".") for d in documents]
    short = [replace(d, text=d.text.split(". ")[0].rstrip(".") + ".") for d in short]
    out = tmp_path / "out"
    mine_triplets(corpus_of(short, tmp_path / "corpus"), settings("paper", per_document=30), out)
    found = every(out)
    assert len({key(t) for t in found}) < len(found)


def test_documents_in_another_language_and_spans_that_the_detector_doubts_are_left_out(documents, tmp_path):
    french = " ".join(["Nous ne savons pas encore ce que cela veut dire pour les gens du pays."] * 6)
    foreign = [replace(d, lang="fr") for d in documents[:50]]
    hidden = [replace(d, text=french) for d in documents[50:100]]
    out = tmp_path / "out"
    mine_triplets(
        corpus_of([*foreign, *hidden, *documents[100:]], tmp_path / "corpus"),
        settings(filters=False, near_duplicates="keep"),
        out,
    )
    used = {s.doc_id for t in every(out) for s in (t.anchor, t.positive, t.negative)}
    assert used
    assert not used & {d.id for d in documents[:100]}
    dropped = json.loads((out / "manifest.json").read_text())["dropped"]
    assert 25 < dropped["document: language is not the one asked for"] <= 50  # those whose authors are in one split
    assert dropped["span: the detector finds another language"] > 0


def test_reasons_for_leaving_spans_out_are_counted(documents, tmp_path):
    noisy = [
        replace(d, text=f"{d.text}\n\nWrite to me@example.org for the code. And so on it went for us all.")
        for d in documents
    ]
    mine_triplets(corpus_of(noisy, tmp_path / "corpus"), settings(sentences=2), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["dropped"]["span: an address"] > 0
    assert not any(
        "example.org" in s.text for t in every(tmp_path / "out", "base-2") for s in (t.anchor, t.positive, t.negative)
    )


# Bad input


def test_a_corpus_by_one_author_is_refused_in_words(documents, tmp_path):
    alone = [replace(d, authors=(Author("Ada", "1"),)) for d in documents[:60]]
    with pytest.raises(InputError, match="no document by others in this field"):
        mine_triplets(corpus_of(alone, tmp_path / "corpus"), settings(), tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["corpus"]


def test_a_corpus_without_domains_says_what_to_type(documents, tmp_path):
    corpus = corpus_of([replace(d, domains=()) for d in documents], tmp_path / "corpus")
    with pytest.raises(InputError, match=r"no domain .*--negatives any"):
        mine_triplets(corpus, settings(), tmp_path / "out")
    assert sum(mine_triplets(corpus, settings(negatives="any"), tmp_path / "out")["base-4"].values()) > 0


def test_a_corpus_of_single_sentences_says_what_to_type(documents, tmp_path):
    corpus = corpus_of([replace(d, text=d.text.split(". ")[0] + ".") for d in documents], tmp_path / "corpus")
    with pytest.raises(InputError, match=r"fewer than 4 sentences .*--sentences 2"):
        mine_triplets(corpus, settings(), tmp_path / "out")


def test_a_corpus_where_nobody_wrote_twice_says_what_to_type(documents, tmp_path):
    corpus = corpus_of([replace(d, authors=(Author(d.id),)) for d in documents[:50]], tmp_path / "corpus")
    with pytest.raises(InputError, match=r"no other document by this author-set .*--rule unrestricted"):
        mine_triplets(corpus, settings(), tmp_path / "out")


def test_a_language_that_the_corpus_does_not_have_is_named(corpus, tmp_path):
    with pytest.raises(InputError, match=r"no document is in 'fr'; the corpus has en \(500\): try --lang en"):
        mine_triplets(corpus, settings(lang="fr"), tmp_path / "out")


def test_a_damaged_corpus_is_named(documents, tmp_path):
    corpus = corpus_of(documents, tmp_path / "corpus")
    corpus.paths[0].write_bytes(b"PAR1 not really")
    with pytest.raises(ArtifactError, match="is damaged"):
        mine_triplets(corpus, settings(), tmp_path / "out")


def test_a_folder_that_is_there_is_not_written_over_unless_asked(corpus, tmp_path):
    mine_triplets(corpus, settings(), tmp_path / "out")
    with pytest.raises(ArtifactError, match="is there already"):
        mine_triplets(corpus, settings(), tmp_path / "out")
    mine_triplets(corpus, settings(per_document=1), tmp_path / "out", overwrite=True)


def test_a_configuration_without_triplets_is_left_out_of_the_card(corpus, tmp_path):
    counts = mine_triplets(corpus, settings(sentences=[2, 50]), tmp_path / "out")
    assert list(counts) == ["base-2"]
    assert "base-50" not in (tmp_path / "out" / "README.md").read_text().split("Left out")[0]


@pytest.mark.slow
def test_a_hundred_thousand_documents_by_one_author_set_end_in_a_message(tmp_path):
    text = next(islice(synth("synth:documents=1,sentences=5"), 1))
    crowd = (replace(text, id=str(at), text=f"Number {at} is this one here. {text.text}") for at in range(100_000))
    corpus = corpus_of(crowd, tmp_path / "corpus")
    with pytest.raises(InputError, match="no document by others in this field"):
        mine_triplets(corpus, settings(near_duplicates="keep", spans_per_document=1), tmp_path / "out")
