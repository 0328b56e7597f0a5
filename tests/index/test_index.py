"""The index as a store of passages: what is put in is found, changed and removed, whole or not at all."""

import json
import random as chance
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hashed import hashed_style

from idiograph.errors import ArtifactError, InputError, ModelError, SpecError
from idiograph.index.candidates import (
    VECTORS_PER_QUESTION,
    Sketches,
    highest_scores,
    mean_vectors,
    pool_neighbours,
    sketches,
)
from idiograph.index.filter import Filter, IndexedDocument
from idiograph.index.index import Index
from idiograph.index.passages import index_passages, spread_passages
from idiograph.index.quantize import WIDTHS, from_bytes, pack_vectors, score_all, to_bytes, vector_width
from idiograph.index.remote import is_stale
from idiograph.index.tables import visible_rows
from idiograph.recipe import IndexRecipe
from idiograph.store import locked_folder
from idiograph.style.patches import Patches, unit_vectors
from idiograph.style.score import SCORERS
from idiograph.synth.anthology import anthology
from idiograph.text.passages import count_words
from idiograph.types import Document

ESSAYS = list(anthology())
PLACES = {"maps": 2001, "bees": 2005}


def dated(document: Document) -> Document:
    """An essay with a year, a field below another and, for one topic, another language."""
    topic = document.domains[0]
    lang = "fr" if topic == "bees" else "en"
    return replace(document, year=PLACES.get(topic), domains=(topic, f"{topic}.essay"), lang=lang)


@pytest.fixture(scope="module")
def built(tmp_path_factory, style):
    return Index.build(map(dated, ESSAYS[:24]), tmp_path_factory.mktemp("built") / "index", style, source="anthology")


@pytest.fixture
def index(built, tmp_path, style):
    """A copy that a test may change."""
    import shutil

    shutil.copytree(built.folder, tmp_path / "index")
    return Index.open(tmp_path / "index", style)


def some_patches(random, lengths=(3, 1, 5), dim=10) -> Patches:
    total = sum(lengths)
    return Patches(unit_vectors(random.normal(size=(total, dim))), np.array(lengths), np.zeros((total, 2), np.int64))


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("dim", [10, 7])
def test_packed_vectors_come_back_as_near_as_their_bits_allow(random, dtype, dim):
    patches = some_patches(random, dim=dim)
    stored = to_bytes(pack_vectors(patches, dtype))
    back = from_bytes(stored, dim, dtype)
    assert [len(b) for b in stored] == [n * vector_width(dtype).bytes(dim) for n in patches.lengths]
    assert back.lengths.tolist() == patches.lengths.tolist()
    step = {"float32": 0, "float16": 1e-3, "int8": 1 / 127, "int4": 1 / 7}[dtype]
    assert np.abs(back.wide().vectors - patches.vectors).max() <= step * 0.51 + 1e-7


def test_eight_bits_take_half_of_sixteen_and_a_scale():
    assert [vector_width(d).bytes(384) for d in ("float32", "float16", "int8", "int4")] == [1536, 768, 386, 194]


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("score", SCORERS)
def test_packed_texts_are_scored_as_wide_ones(random, score, dtype):
    asked, known = some_patches(random, (2, 4)), pack_vectors(some_patches(random, (3, 1, 5, 2)), dtype)
    assert np.allclose(score_all(asked, known, score), SCORERS[score](asked, known.wide()), atol=1e-6)
    assert np.allclose(known.take([2, 0]).wide().vectors, known.wide().take([2, 0]).vectors)


def test_an_unknown_dtype_is_refused(random):
    with pytest.raises(SpecError, match=r"unknown dtype 'int9'.*did you mean 'int8'"):
        pack_vectors(some_patches(random), "int9")


def test_a_sketch_is_the_mean_of_the_patches(random):
    patches = some_patches(random)
    assert np.allclose(mean_vectors(patches)[1], patches.vectors[3], atol=1e-6)  # a text of one patch is its own mean
    known = Sketches.of(b"".join(sketches(patches)), 10, np.ones(3))
    assert np.abs(known.codes * known.scales[:, None] - mean_vectors(patches)).max() < 1 / 127
    (rows, near), *_ = known.nearest(patches.take([2]), np.arange(3), 1)
    assert rows.tolist() == [2]
    assert near[0] == pytest.approx(1, abs=0.01)


def test_of_passages_with_the_same_mean_the_one_with_more_patches_seems_nearer(random):
    asked = some_patches(random).take([0])
    known = Sketches.of(b"".join(sketches(asked) * 5), 10, np.array([5, 50, 20, 1, 1]))
    assert known.compare(asked, np.arange(5))[0][:3].argsort().tolist() == [0, 2, 1]
    for some in ([1, 0], [2]):  # most of them, and few
        assert np.allclose(known.compare(asked, np.array(some)), known.compare(asked, np.arange(5))[:, some])


def test_a_question_in_few_vectors_is_the_means_of_neighbours():
    lengths, vectors = np.array([3, 4 * VECTORS_PER_QUESTION]), np.eye(4 * VECTORS_PER_QUESTION + 3, dtype=np.float32)
    chars = np.stack([np.arange(len(vectors)), np.arange(len(vectors)) + 1], axis=1)
    few = pool_neighbours(Patches(vectors, lengths, chars))
    assert few.lengths.tolist() == [3, VECTORS_PER_QUESTION]
    assert (few.vectors[:3] == vectors[:3]).all()
    assert few.vectors[3].tolist() == [0] * 3 + [0.5] * 4 + [0] * (4 * VECTORS_PER_QUESTION - 4)
    assert few.chars[3].tolist() == [3, 7]
    assert few.chars[-1].tolist() == [len(vectors) - 4, len(vectors)]


def test_only_the_candidates_nearest_to_the_few_vectors_are_scored_with_all(built, monkeypatch):
    monkeypatch.setattr("idiograph.index.candidates.MIN_FINALISTS", 0)
    monkeypatch.setattr("idiograph.index.candidates.FINALISTS_PER_ANSWER", 1)
    asked = built.embed([ESSAYS[40].text[:900]])
    assert asked.lengths[0] >= 2 * VECTORS_PER_QUESTION
    chosen, _ = built.propose(asked, np.arange(len(built)), 60)[0]
    few = chosen[highest_scores(built.score_rows(pool_neighbours(asked), chosen)[0], 5)]
    right = built.score_rows(asked, few)[0]
    rows, scores = built.nearest_to(asked, 5, depth=60)
    assert rows[0].tolist() == few[np.argsort(-right, kind="stable")].tolist()
    assert np.allclose(scores[0], np.sort(right)[::-1], atol=1e-6)


def test_the_highest_scores_are_found_and_ties_go_to_the_first(random):
    scores = np.round(random.normal(size=50), 1).astype(np.float32)
    best = sorted(range(50), key=lambda at: (-scores[at], at))[:13]
    assert highest_scores(scores, 13).tolist() == sorted(best)


def test_candidates_scored_exactly_have_the_scores_of_everything(built):
    asked = [ESSAYS[40].text[:500], ESSAYS[50].text[:500]]
    every = built.scores(asked)
    rows, scores = built.nearest(asked, 5, depth=20)
    assert np.allclose(scores, np.take_along_axis(every, rows, 1), atol=1e-6)
    assert (np.diff(scores) <= 0).all()


def test_two_stages_find_nearly_what_exact_search_finds(built):
    asked = [d.text[:600] for d in ESSAYS[30:50]]
    exact, _ = built.nearest(asked, 10, exact=True)
    quick, _ = built.nearest(asked, 10, depth=len(built) // 2)
    shared = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(exact, quick, strict=True)])
    assert shared > 0.7  # of random weights, whose patches hardly differ; half would be chance
    whole, _ = built.nearest(asked, 10, depth=len(built))
    assert (whole == exact).all()


def test_vectors_in_memory_and_on_disk_give_the_same_scores(built, style):
    fresh = Index.open(built.folder, style)
    asked = fresh.embed([ESSAYS[40].text[:500]])
    on_disk = fresh.score_rows(asked, np.array([5, 0, 9]))
    fresh.load()
    assert (fresh.score_rows(asked, np.array([5, 0, 9])) == on_disk).all()


def test_vectors_in_memory_are_the_right_ones_after_a_deletion(index, style):
    index.delete([index.documents[1].id])
    fresh = Index.open(index.folder, style)
    asked, every = fresh.embed([ESSAYS[40].text[:500]]), np.arange(len(fresh))
    on_disk = fresh.score_rows(asked, every)
    fresh.load()
    assert (fresh.score_rows(asked, every) == on_disk).all()


def test_an_index_that_is_too_large_for_memory_is_scored_from_disk(built, style, monkeypatch):
    asked = [ESSAYS[40].text[:500]]
    expected = built.scores(asked)
    monkeypatch.setattr("idiograph.index.index.MAX_BYTES_IN_MEMORY", 0)
    fresh = Index.open(built.folder, style)
    assert np.allclose(fresh.scores(asked), expected, atol=1e-6)
    assert "_resident" not in fresh.__dict__


def test_passages_know_where_they_stood(built):
    texts = {d.id: d.text for d in ESSAYS}
    assert all(texts[p.doc_id][p.start : p.end] == p.text for p in built.passages)
    assert [p.id for p in built.passages] == sorted(p.id for p in built.passages)
    assert built.passages_at([3]) == [built.passages[3]]


FILTERS = {
    "a field": (Filter(domains=("maps",)), lambda p: "maps" in p.domains),
    "a field below": (Filter(domains=("maps.essay",)), lambda p: "maps.essay" in p.domains),
    "a language": (Filter(langs=("fr",)), lambda p: p.lang == "fr"),
    "years": (Filter(since=2000, until=2003), lambda p: p.year == 2001),
    "an author by name": (Filter(authors=("ansel BROOK",)), lambda p: "Ansel Brook" in p.names),
    "no author": (Filter(exclude_authors=("Ansel Brook",)), lambda p: "Ansel Brook" not in p.names),
    "no document": (Filter(exclude_documents=(ESSAYS[0].id,)), lambda p: p.doc_id != ESSAYS[0].id),
    "a document": (Filter(documents=(ESSAYS[0].id,)), lambda p: p.doc_id == ESSAYS[0].id),
    "two things": (Filter(domains=("maps",), exclude_authors=("Ansel Brook",)), None),
}


@pytest.mark.parametrize("case", FILTERS)
@pytest.mark.parametrize("exact", [True, False])
def test_a_search_finds_only_what_a_filter_admits(built, case, exact):
    only, rule = FILTERS[case]
    rule = rule or (lambda p: "maps" in p.domains and "Ansel Brook" not in p.names)
    wanted = [at for at, p in enumerate(built.passages) if rule(p)]
    assert 0 < len(wanted) < len(built)
    assert built.rows(only).tolist() == wanted
    rows, scores = built.nearest([ESSAYS[40].text[:500]], len(built), only=only, exact=exact)
    found = rows[0][rows[0] >= 0]
    assert sorted(found.tolist()) == wanted
    assert np.isneginf(scores[0][len(wanted) :]).all()


def test_a_filter_holds_among_candidates_too(built):
    only = Filter(domains=("maps",))
    hits = built.search(ESSAYS[40].text[:500], 3, only=only, depth=4)
    assert len(hits) == 3
    assert all("maps" in h.passage.domains for h in hits)


def test_years_that_exclude_each_other_are_refused():
    with pytest.raises(InputError, match="no year is both since 2005 and until 2001"):
        Filter(since=2005, until=2001)
    assert not Filter(since=2000).admits(IndexedDocument("d", "", (), (), (), None, ""))


def test_a_document_gives_as_many_passages_as_allowed_from_all_over_it():
    document = replace(ESSAYS[0], text=" ".join(d.text for d in ESSAYS[:4]))
    every = index_passages(document, IndexRecipe())
    few = index_passages(document, IndexRecipe(passages_per_document=3))
    assert [p.start for p in few] == [every[0].start, every[round((len(every) - 1) / 2)].start, every[-1].start]
    assert spread_passages([(0, 1), (2, 3)], 1) == [(0, 1)]


def test_a_document_of_any_kind_is_indexed_in_passages_of_about_120_words():
    for text in ("no full stop at all and on it goes " * 400, "1. item\n" * 900, "天地玄黄，宇宙洪荒。" * 600):
        found = index_passages(replace(ESSAYS[0], text=text), IndexRecipe())
        assert all(60 <= count_words(p.text) <= 250 for p in found)
        assert sum(count_words(p.text) for p in found) == count_words(text)


def test_of_a_long_document_200_passages_are_taken_and_counted_as_such(tmp_path):
    long = replace(ESSAYS[0], text="We came to the harbour late. They had left it. " * 3000)
    index = Index.build([long, ESSAYS[1]], tmp_path / "index", hashed_style())
    assert [index.full_documents, sum(p.doc_id == long.id for p in index.passages)] == [1, 200]
    whole = Index.build([long], tmp_path / "whole", hashed_style(), IndexRecipe(passages_per_document=0))
    assert [whole.full_documents, len(whole)] == [0, 250]


def test_an_index_whose_passages_were_counted_in_sentences_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    with monkeypatch.context() as earlier:
        saved = {"sentences": 4, "spans_per_document": 0, "dtype": "int8", "dim": "none"}
        earlier.setattr(IndexRecipe, "model_dump", lambda _: saved)
        with pytest.raises(ArtifactError):
            Index.build(ESSAYS[:2], folder, hashed_style())
    with pytest.raises(
        ArtifactError, match=r"cut texts in another way \(its recipe has 'sentences'\); rebuild it: idio"
    ):
        Index.open(folder, hashed_style())


def test_fewer_directions_and_bits_still_find_a_passage_itself(tmp_path, style):
    recipe = IndexRecipe(dim=16, dtype="int4")
    index = Index.build(ESSAYS[:6], tmp_path / "index", style, recipe)
    assert index.bytes_per_passage < 0.4 * Index.build(ESSAYS[:6], tmp_path / "full", style).bytes_per_passage
    again = Index.open(tmp_path / "index", style)
    for at in (0, 5):
        assert again.search(again.passages[at].text, 1)[0].passage == again.passages[at]


def test_an_index_remembers_its_model_and_settings(built, style):
    again = Index.open(built.folder, style)
    assert again.about["preset"] == "sound"
    assert again.recipe == IndexRecipe()
    with pytest.raises(ModelError, match="was made with model"):
        Index.open(built.folder, style.at("word"))


def test_notes_are_kept_beside_the_index(index, style):
    assert index.read_note("lesson") is None
    index.write_note("lesson", {"a": 1})
    assert Index.open(index.folder, style).read_note("lesson") == {"a": 1}


def test_a_replaced_document_has_its_new_passages_alone(index):
    old = index.passages[0].doc_id
    short = replace(next(d for d in ESSAYS if d.id == old), text=ESSAYS[50].text[:400])
    before = index.version
    index.add([short])
    found = [p for p in index.passages if p.doc_id == old]
    assert [p.text for p in found] == [p.text for p in index_passages(short, index.recipe)]
    assert index.version != before


def test_a_document_that_became_empty_goes(index):
    gone = index.passages[0].doc_id
    index.add([Document(gone, "", ESSAYS[0].authors)])
    assert gone not in {p.doc_id for p in index.passages}


def test_a_deleted_document_can_come_back(index):
    first = dated(ESSAYS[0])
    before = index.passages
    index.delete([first.id])
    assert len(index) < len(before)
    index.add([first])
    assert index.passages == before


def test_a_document_given_twice_is_refused_and_nothing_changes(index):
    before = index.version
    with pytest.raises(InputError, match="was given twice"):
        index.add([ESSAYS[30], ESSAYS[30]])
    index.refresh()
    assert index.version == before


def test_a_reader_sees_one_state_while_another_writes(index, style):
    reader = Index.open(index.folder, style)
    before = reader.search(ESSAYS[40].text[:400], 5)
    index.add([ESSAYS[40]])
    index.delete([ESSAYS[0].id])
    assert reader.search(ESSAYS[40].text[:400], 5) == before
    reader.refresh()
    assert reader.search(ESSAYS[40].text[:400], 1)[0].passage.doc_id == ESSAYS[40].id


def test_compacting_gives_back_space_and_changes_nothing_else(index, style):
    index.add(map(dated, ESSAYS[:12]))
    index.delete([ESSAYS[20].id])
    found, before = index.passages, size_of(index.folder)
    index.compact()
    assert index.passages == found
    assert size_of(index.folder) < 0.8 * before
    assert ESSAYS[20].text[:60].encode() not in b"".join(p.read_bytes() for p in index.folder.rglob("*") if p.is_file())
    assert Index.open(index.folder, style).search(found[3].text, 1)[0].passage == found[3]


def size_of(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def test_compacting_is_no_change_and_reads_ids_as_they_are(index):
    index.add([replace(ESSAYS[30], id="x' OR '1'='1")])
    index.delete(["x' OR '1'='1"])
    found, version = index.passages, index.version
    index.compact()
    assert (index.passages, index.version) == (found, version)


def test_passages_without_words_are_left_out(tmp_path):
    stars = Document("d", "* * *\n\n* * *", ESSAYS[0].authors)
    assert index_passages(stars, IndexRecipe()) == []
    index = Index.build([stars, ESSAYS[0]], tmp_path / "index", hashed_style())
    assert {d.id for d in index.documents} == {ESSAYS[0].id}


def test_a_second_writer_is_refused(index):
    with locked_folder(index.folder), pytest.raises(ArtifactError, match="another run is writing"):
        index.add([ESSAYS[30]])


def test_an_index_in_a_place_that_cannot_be_written_is_refused(tmp_path, style):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ArtifactError, match="cannot make the folder"):
        Index.build(ESSAYS[:2], tmp_path / "file" / "index", style)


@pytest.mark.parametrize("harm", ["log.jsonl", "spans", "codebook.arrow"])
def test_a_broken_folder_is_told_in_one_line(index, style, harm):
    for path in [index.folder / harm, *(index.folder / harm).rglob("*")]:
        if path.is_file():
            path.write_bytes(b"broken")
    with pytest.raises(ArtifactError, match="is damaged .*make it again: idiograph index") as caught:
        Index.open(index.folder, style)
    assert "\n" not in str(caught.value)


def test_an_index_in_tables_of_lancedb_is_refused(index, style):
    (index.folder / "spans.lance").mkdir()
    with pytest.raises(ArtifactError, match="made by an earlier idiograph, with LanceDB; rebuild it: idiograph index"):
        Index.open(index.folder, style)


def test_who_has_an_index_open_reads_it_as_it_was_though_another_run_compacts_it(index, style):
    opened, first = Index.open(index.folder, style), index.documents[0].id
    before = [passage.text for passage in index.passages]
    index.delete([first])
    index.compact()
    assert [passage.text for passage in opened.passages] == before
    assert first not in {d.id for d in index.documents}


def test_passages_of_a_change_that_never_ended_are_not_there(index, style, tmp_path):
    from idiograph.index.build import EmbeddedPassages, EmbeddingWorkers, passage_rows

    embedded = EmbeddedPassages(tmp_path, style.encoder.dim, index.recipe.dtype)
    embedded.fill([ESSAYS[40]], style, index.recipe, EmbeddingWorkers())
    before = index.passages
    (index.folder / ".changing").touch()
    index.tables.append("never-ended", passage_rows(embedded, "never-ended", index.recipe, {}))
    index.refresh()
    assert index.passages == before
    index.delete([ESSAYS[0].id])
    assert ESSAYS[40].id not in {p.doc_id for p in index.passages}
    index.compact()
    (left,) = (index.folder / "spans").iterdir()
    assert ESSAYS[40].text[:60].encode() not in left.read_bytes()


def test_the_last_change_that_touched_a_document_counts():
    import pyarrow as pa

    spans = pa.table({"change": ["a", "a", "b", "x"], "doc_id": ["1", "2", "1", "3"]})
    log = pa.table({"change": ["a", "b", "c"], "gone": [[], [], ["2"]]})
    assert visible_rows(spans, log).tolist() == [False, False, True, False]
    assert visible_rows(spans, log.slice(0, 1)).tolist() == [True, True, False, False]
    assert is_stale("20200101T000000000000-x")


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from idiograph.index.index import Index
from idiograph.synth.anthology import anthology
from hashed import hashed_style
index = Index.open(sys.argv[1], hashed_style())
essays = list(anthology())
print("ready", flush=True)
old, new = (essays[30:36], essays[24:30]) if int(sys.argv[3]) % 2 else (essays[24:30], essays[30:36])
index.add(new)
print("added", flush=True)
index.delete([d.id for d in old])
print("deleted", flush=True)
"""
TURNS, LONGEST = 12, 0.35  # a turn takes about 0.3 seconds


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_the_old_state_or_the_new(tmp_path):
    """An add of six documents, then a delete of six others, killed at random moments: four states may be found."""
    style, folder = hashed_style(), tmp_path / "index"
    base = {p.doc_id for p in Index.build(ESSAYS[:24], folder, style).passages}
    one, two = ({d.id for d in ESSAYS[24:30]}, {d.id for d in ESSAYS[30:36]})
    states = [base, base | one, base | two, base | one | two]
    luck, ends = chance.Random(7), set()
    for turn in range(TURNS):
        ends.add(run_and_kill(folder, turn, luck.random() * LONGEST))
        again = Index.open(folder, style)
        assert {p.doc_id for p in again.passages} in states
        assert len(again.vectors_at(np.arange(len(again)))) == len(again)  # no passage without its vectors
    assert "" in ends or "added" in ends  # at least one kill came in time
    found = again.passages
    again.compact()
    assert again.passages == found


def run_and_kill(folder: Path, turn: int, after: float) -> str:
    """What the writer had said last when it was killed."""
    command = [sys.executable, "-c", WRITER, str(folder), str(Path(__file__).parents[1]), str(turn)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
        time.sleep(after)
        writer.kill()
        return (["", *writer.stdout.read().split()])[-1]


def test_the_settings_of_an_index_are_in_its_manifest(built):
    found = json.loads((built.folder / "manifest.json").read_text())
    assert (found["kind"], found["recipe"]["dtype"]) == ("index", "int8")
    assert found["counts"]["passages"] == len(built)
