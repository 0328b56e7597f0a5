"""The split by groups of co-authors: nobody is in two splits, little is lost, and work of several authors is in all three."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from resealed import reseal

from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.mining.audit import audit_triplets
from idiograph.mining.catalog import IN_SEVERAL_SPLITS, NONE, read_catalog
from idiograph.mining.coauthors import DOCUMENT, Bylines, coauthor_ties, find_groups
from idiograph.mining.mine import mine_plan, mine_triplets
from idiograph.mining.plan import plan_mining
from idiograph.mining.split import PEOPLE_FILE, UNDECIDED, PeopleSplits, hash_person, split_groups
from idiograph.recipe import CorpusRecipe, make_recipe
from idiograph.synth.synth import synth
from idiograph.types import Author, Document, fold

AS_GIVEN = CorpusRecipe(citations="keep", filters=False, language="depositor", duplicates="keep")
TENTHS = (0.8, 0.1, 0.1)


def bylines_of(rows: list[list[int]]) -> Bylines:
    first = np.cumsum([0, *map(len, rows)])
    people = np.array([who for row in rows for who in row], dtype=np.int32)
    return Bylines(first, people, int(people.max()) + 1)


def circles(count: int, people: int, papers: int, strangers: float) -> list[list[int]]:
    """Papers of circles of people; a share of the papers has one author from another circle."""
    draw = np.random.default_rng(7)
    rows = []
    for at in range(count * papers):
        circle = at % count
        row = circle * people + draw.choice(people, size=draw.integers(1, 5), replace=False)
        if draw.random() < strangers:
            row = np.append(row, draw.integers(count * people))
        rows.append(list(dict.fromkeys(row.tolist())))
    return rows


def lost_share(rows: list[list[int]], split: np.ndarray) -> float:
    return float(np.mean([len(set(split[row])) > 1 for row in rows]))


def nobody_known(bylines: Bylines) -> np.ndarray:
    return np.full(bylines.count, UNDECIDED, dtype=np.int8)


def test_people_who_share_a_document_are_tied_by_one_over_the_others():
    ties = coauthor_ties(bylines_of([[0, 1, 2], [0, 1]])).toarray() / DOCUMENT
    assert ties.tolist() == [[0, 1.5, 0.5], [1.5, 0, 0.5], [0.5, 0.5, 0]]


def test_each_author_of_a_long_byline_has_ties_of_one_document_in_all():
    ties = coauthor_ties(bylines_of([list(range(200))]))
    assert (ties.sum(axis=1) == DOCUMENT).all()
    assert ties.nnz == 200 * 16


def test_two_circles_with_one_paper_between_them_are_two_groups():
    rows = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5], [0, 1, 2], [3, 4, 5], [2, 3]]
    bylines = bylines_of(rows)
    group = find_groups(bylines, coauthor_ties(bylines), 0.6, np.zeros(6, dtype=bool))
    assert len(set(group[:3])) == len(set(group[3:])) == 1
    assert group[0] != group[3]


def test_no_group_is_larger_than_the_limit_even_if_everybody_is_connected():
    rows = [[at, at + 1] for at in range(2000)]
    bylines = bylines_of(rows)
    group = find_groups(bylines, coauthor_ties(bylines), 0.01, np.zeros(2001, dtype=bool))
    assert bylines.profiles(group, 1).max() <= 0.01 * 2000 * DOCUMENT
    assert lost_share(rows, group) < 0.15  # two neighbours in ten or more are cut apart, not each from each


def test_a_world_of_circles_is_split_with_few_documents_lost_and_every_size_in_its_share():
    rows = circles(300, 6, 12, strangers=0.1)
    bylines = bylines_of(rows)
    split = split_groups(bylines, TENTHS, nobody_known(bylines))
    assert lost_share(rows, split) < 0.05
    for at, share in enumerate(TENTHS):
        mine = [len(row) for row in rows if set(split[row]) == {at}]
        assert abs(len(mine) / len(rows) - share) < 0.03
        for size in (1, 2, 3):
            everywhere = np.mean([len(row) == size for row in rows])
            assert abs(np.mean(np.array(mine) == size) - everywhere) < 0.05


def test_a_split_without_a_share_gets_nobody():
    bylines = bylines_of(circles(40, 6, 5, strangers=0.1))
    assert set(split_groups(bylines, (0, 0, 1), nobody_known(bylines))) == {2}


def test_whoever_is_known_stays_and_draws_the_others_along():
    rows = [[at, at + 1] for at in range(0, 400, 2)]
    bylines = bylines_of(rows)
    known = nobody_known(bylines)
    known[0:40:2] = 2
    split = split_groups(bylines, TENTHS, known)
    assert (split[0:40] == 2).all()


def documents_of(spec: str) -> list[Document]:
    return list(synth(spec))


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return documents_of("synth:documents=400,authors=120,topics=3,coauthors=0.5,sentences=9")


@pytest.fixture(scope="module")
def corpus(documents, tmp_path_factory) -> Corpus:
    return corpus_of(documents, tmp_path_factory.mktemp("split") / "corpus")


def corpus_of(documents, folder) -> Corpus:
    build_corpus(iter(documents), folder, AS_GIVEN)
    return Corpus(folder)


def settings(**changes):
    return make_recipe("sound", {"mine": {"sentences": 2, "fractions": (0.5, 0.25, 0.25), **changes}}).mine


def where(corpus: Corpus, **changes) -> dict[str, int]:
    catalog = read_catalog(corpus, settings(**changes))
    return dict(zip(catalog.shown.column("id").to_pylist(), catalog.split.tolist(), strict=True))


def test_no_co_author_of_a_document_that_is_used_is_in_another_split(documents, corpus):
    """Whoever counts as the writer."""
    for label in ("identified", "last"):
        split, seen = where(corpus, label=label), {}
        for document in documents:
            for author in document.authors:
                if split[document.id] != NONE:
                    assert seen.setdefault(author.name, split[document.id]) == split[document.id]


def test_groups_lose_a_fraction_of_what_single_people_lose(corpus):
    lost = {by: plan_mining(corpus, settings(split=by)).lost for by in ("groups", "people")}
    assert lost["groups"] < 0.2 * lost["people"]
    assert lost["people"] > 0.1


def test_the_split_depends_on_neither_the_label_nor_the_order_nor_the_rule(documents, corpus, tmp_path):
    backwards = corpus_of(documents[::-1], tmp_path / "backwards")
    assert where(corpus) == where(corpus, label="first", rule="ict") == where(backwards)


def test_another_seed_is_another_split(corpus):
    assert where(corpus) != where(corpus, seed=8)


def test_everybody_is_in_the_file_of_people_by_a_hash_and_in_one_split(documents, corpus, tmp_path):
    mine_triplets(corpus, settings(), tmp_path / "out")
    found = PeopleSplits.load(tmp_path / "out")
    names = {fold(author.name) for d in documents for author in d.authors}
    keys = np.array([hash_person("name", name) for name in names], dtype=np.uint64)
    assert (found.look_up(keys) != UNDECIDED).all()
    assert found.doubled == 0
    raw = (tmp_path / "out" / PEOPLE_FILE).read_bytes()
    assert not any(name.encode() in raw for name in names)


def test_people_keep_their_split_in_another_corpus_and_by_another_label(documents, corpus, tmp_path):
    """The other corpus has half of the documents, and new people beside them."""
    mine_triplets(corpus, settings(), tmp_path / "one")
    new = documents_of("synth:documents=200,authors=60,topics=3,coauthors=0.5,sentences=9,seed=9")
    renamed = [replace(d, id=f"n{d.id}", authors=tuple(Author(f"New {a.name}") for a in d.authors)) for d in new]
    other = corpus_of([*documents[::2], *renamed], tmp_path / "corpus")
    before, catalog = where(corpus), plan_mining(other, settings(seed=3), splits_from=[tmp_path / "one"]).catalog
    after = dict(zip(catalog.shown.column("id").to_pylist(), catalog.split.tolist(), strict=True))
    assert all(after[d.id] == before[d.id] for d in documents[::2])
    assert {after[d.id] for d in renamed} >= {0, 1, 2}


def test_splits_are_taken_over_from_triplets_that_list_no_people(documents, corpus, tmp_path):
    """By the authors whom their rows name."""
    mine_triplets(corpus, settings(split="people"), tmp_path / "one")
    (tmp_path / "one" / PEOPLE_FILE).unlink()
    reseal(tmp_path / "one", "triplets")
    catalog = plan_mining(corpus, settings(), splits_from=[tmp_path / "one"]).catalog
    mine_plan(plan_mining(corpus, settings(), splits_from=[tmp_path / "one"]), tmp_path / "two")
    split = dict(zip(catalog.shown.column("id").to_pylist(), catalog.split.tolist(), strict=True))
    for name in ("train", "valid", "test"):
        paths = sorted((tmp_path / "one" / "base-2").glob(f"{name}-*.parquet"))
        at = ("train", "valid", "test").index(name)
        ids = {row["query_halid"] for path in paths for row in pq.read_table(path).to_pylist()}
        assert {split[one] for one in ids} <= {at, NONE}


def test_what_a_plan_counts_is_what_the_corpus_holds(documents, corpus):
    plan = plan_mining(corpus, settings(split="people"))
    whole, *parts = plan.sizes
    assert whole.documents == len(documents)
    assert whole.by_authors[0] == pytest.approx(np.mean([len(d.authors) == 1 for d in documents]))
    assert sum(each.documents for each in parts) == round((1 - plan.lost) * len(documents))
    assert plan.catalog.dropped.get(IN_SEVERAL_SPLITS, 0) == round(plan.lost * len(documents))


def test_audit_finds_an_author_whom_the_list_of_people_has_in_another_split(corpus, tmp_path):
    mine_triplets(corpus, settings(), tmp_path / "out")
    assert audit_triplets(tmp_path / "out").sound
    people = PeopleSplits.load(tmp_path / "out")
    replace(people, split=np.roll(people.split, 1)).save(tmp_path / "out")
    reseal(tmp_path / "out", "triplets")
    assert any("belong into another split" in fault for fault in audit_triplets(tmp_path / "out").faults)


def test_audit_finds_somebody_who_is_listed_in_two_splits(corpus, tmp_path):
    mine_triplets(corpus, settings(), tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / PEOPLE_FILE)
    twice = pa.concat_tables([table, pa.table({"who": table["who"], "split": table["split"][::-1]})])
    pq.write_table(twice, tmp_path / "out" / PEOPLE_FILE)
    reseal(tmp_path / "out", "triplets")
    assert any("in two splits" in fault for fault in audit_triplets(tmp_path / "out").faults)
