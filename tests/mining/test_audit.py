"""The audit: it passes what is sound, and finds every kind of leak that is planted."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.mining.audit import Audit, audit_triplets
from idiograph.mining.leaks import HeldOutSpans, span_prints
from idiograph.mining.mine import mine_triplets
from idiograph.mining.triplets import SCHEMA
from idiograph.recipe import make_recipe
from idiograph.synth.synth import synth


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("audit") / "corpus"
    build_corpus(synth("synth:documents=300,authors=50,topics=3,coauthors=0.3"), folder)
    return Corpus(folder)


def mined(corpus: Corpus, out, preset: str = "sound", **changes):
    changes = {"fractions": (0.4, 0.3, 0.3), "sentences": 2, "per_document": 4, **changes}
    mine_triplets(corpus, make_recipe(preset, {"mine": changes}).mine, out)
    return out


def row(**changes):
    """A sound triplet."""
    found = {"query": "The anchor is here.", "positive": "The positive is here.", "negative": "The negative is here."}
    for short, doc, author in (("query", "a", "ada"), ("pos", "b", "ada"), ("neg", "c", "ben")):
        found |= {f"{short}_halid": doc, f"{short}_year": 2020, f"{short}_domain": ["bees"]}
        found |= {f"{short}_affiliations": [], f"{short}_authorids": [author]}
    return found | changes


def folder_of(tmp_path, name: str = "base-4", **splits):
    (tmp_path / name).mkdir()
    for split, rows in splits.items():
        table = pa.Table.from_pylist(rows, SCHEMA)
        pq.write_table(table, tmp_path / name / f"{split}-00000-of-00001.parquet")
    return tmp_path


def elsewhere(**changes):
    """A sound triplet by other people from other documents."""
    others = {"query_halid": "d", "pos_halid": "e", "neg_halid": "f"}
    people = {"query_authorids": ["cy"], "pos_authorids": ["cy"], "neg_authorids": ["dee"]}
    texts = {"query": "Quite another anchor.", "positive": "Another positive.", "negative": "Another negative."}
    return row(**others, **people, **texts) | changes


@pytest.mark.parametrize("negatives", ["domain", "lexical", "matched"])
def test_what_is_mined_soundly_passes(corpus, tmp_path, negatives):
    found = audit_triplets(mined(corpus, tmp_path / "out", rule=["base", "unrestricted", "ict"], negatives=negatives))
    assert found.sound, found.faults
    assert found.preset == "sound"
    assert {p.name for p in found.purity} == {"base-2", "unrestricted-2", "ict-2"}
    assert all(size > 0 for sizes in found.sizes.values() for size in sizes.values())


def test_the_published_protocol_leaks_authors_documents_sentences_and_spans(corpus, tmp_path):
    found = audit_triplets(mined(corpus, tmp_path / "out", preset="paper", per_document=10))
    assert not found.sound
    assert found.preset == "paper"
    train_test = next(o for o in found.overlaps if (o.one, o.other) == ("train", "test"))
    assert train_test.authors > 0.9 * found.sizes["test"]["authors"]
    assert train_test.documents > 0.9 * found.sizes["test"]["documents"]
    assert train_test.sentences > 0.8 * found.sizes["test"]["sentences"]
    assert train_test.near_copies > 0


def faults(folder) -> Audit:
    found = audit_triplets(folder)
    assert not found.sound
    return found


def test_two_sound_splits_pass(tmp_path):
    assert audit_triplets(folder_of(tmp_path, train=[row()], test=[elsewhere()])).sound


def test_a_shared_author_is_found(tmp_path):
    found = faults(folder_of(tmp_path, train=[row()], test=[elsewhere(neg_authorids=["ben"])]))
    assert found.faults == ("train and test share 1 authors",)


def test_a_shared_document_is_found(tmp_path):
    found = faults(folder_of(tmp_path, train=[row()], test=[elsewhere(neg_halid="c")]))
    assert found.overlaps[0].documents == 1


def test_a_shared_sentence_is_found_whatever_its_case_and_punctuation(tmp_path):
    one = "First this one. It was, as we said before, a very long and cold night."
    other = "It was as we said before a VERY long and cold night! Something else is here."
    found = faults(folder_of(tmp_path, train=[row(query=one)], test=[elsewhere(query=other)]))
    assert found.overlaps[0].sentences == 1


def test_a_short_sentence_in_two_splits_proves_nothing(tmp_path):
    folder = folder_of(
        tmp_path, train=[row(query="We thank them all.")], test=[elsewhere(query="We thank them all. Yes.")]
    )
    assert audit_triplets(folder).overlaps[0].sentences == 0


def test_a_span_that_was_edited_a_little_is_a_near_copy(tmp_path):
    words = "the tide rises and the harbour fills with boats that came in from the cold sea while the town still sleeps"
    one, other = f"So {words} and nobody saw it.", f"Now {words} but somebody saw it."
    found = faults(folder_of(tmp_path, train=[row(query=one)], test=[elsewhere(query=other)]))
    assert (found.overlaps[0].near_copies, found.overlaps[0].sentences) == (1, 0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pos_authorids": ["ada", "ben"]}, "positives by another author-set"),
        ({"pos_halid": "a"}, "positives from the anchor's own document"),
        ({"neg_authorids": ["ada", "zoe"]}, "negatives that share an author"),
        ({"neg_domain": ["maps"]}, "negatives from another field"),
    ],
)
def test_a_triplet_that_is_none_is_found(tmp_path, wrong, words):
    assert faults(folder_of(tmp_path, train=[row(**wrong)])).faults == (f"base-4: 1 {words}",)


def test_a_repeated_triplet_is_found(tmp_path):
    assert faults(folder_of(tmp_path, train=[row(), row()])).faults == ("base-4: 1 repeated triplets",)


def test_fields_are_those_of_the_first_part_of_a_code_or_the_primary_one(tmp_path):
    same = row(query_domain=["shs.langue", "info"], neg_domain=["shs.droit"])
    assert audit_triplets(folder_of(tmp_path, train=[same])).sound


def test_a_cloze_is_not_blamed_for_its_own_document(tmp_path):
    own = row(pos_halid="a", neg_halid="a", neg_authorids=["ada"])
    assert audit_triplets(folder_of(tmp_path, "ict-2", train=[own])).sound


def test_a_positive_from_the_own_document_is_allowed_in_unrestricted(tmp_path):
    assert audit_triplets(folder_of(tmp_path, "unrestricted-2", train=[row(pos_halid="a")])).sound


def test_configurations_are_compared_across(tmp_path):
    """Train of one length must not hold what test of another length holds."""
    folder_of(tmp_path, "base-2", train=[row()])
    found = faults(folder_of(tmp_path, "base-4", test=[row()]))
    assert found.overlaps[0].documents == 3


def test_the_findings_are_plain_json(corpus, tmp_path):
    found = audit_triplets(mined(corpus, tmp_path / "out"))
    back = json.loads(json.dumps(found.to_json()))
    assert back["sound"] is True
    assert back["overlaps"][0]["authors"] == 0


def test_the_near_copy_search_agrees_with_comparing_all(random):
    """Copies with a few words exchanged against fresh texts: all found, nothing else."""
    words = [f"word{at}" for at in range(400)]
    texts = [" ".join(random.choice(words, 60)) + "." for _ in range(200)]
    edited = [text.replace(text.split()[30], "changed", 1) for text in texts[:80]]
    fresh = [" ".join(random.choice(words, 60)) + "." for _ in range(80)]
    held = HeldOutSpans.of(span_prints(texts), np.ones(len(texts), dtype=np.int8))
    found = held.copies(span_prints([*edited, *fresh]), np.zeros(160, dtype=np.int8))
    assert (found[:80] == np.arange(80)).mean() > 0.97
    assert (found[80:] == -1).all()
