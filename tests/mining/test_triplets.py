"""Triplet folders: in the published columns, readable by the tools that people have, and readable whoever wrote them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from idiograph.errors import ArtifactError, InputError
from idiograph.mining.mine import mine_triplets
from idiograph.mining.triplets import SCHEMA, configurations, read_triplets, splits
from idiograph.recipe import make_recipe

PUBLISHED = (
    "query_halid query query_year query_domain query_affiliations query_authorids "
    "pos_halid positive pos_year pos_domain pos_affiliations pos_authorids "
    "neg_halid negative neg_year neg_domain neg_affiliations neg_authorids"
).split()


@pytest.fixture(scope="module")
def folder(anthology_corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("triplets") / "out"
    settings = make_recipe("sound", {"mine": {"sentences": [2, 4], "fractions": (0.4, 0.3, 0.3)}}).mine
    mine_triplets(anthology_corpus, settings, out)
    return out


def published_row(**changes):
    """A row as the published files have it, with the plural that they have."""
    row = {name: None for name in PUBLISHED if name != "neg_halid"}
    row |= {"query_halid": "01234567", "pos_halid": "01234568", "neg_halids": "01234569"}
    row |= {"query": "The anchor.", "positive": "The positive.", "negative": "The negative."}
    for short, author in (("query", "17099"), ("pos", "17099"), ("neg", "42")):
        row |= {f"{short}_year": "2019", f"{short}_domain": ["info"], f"{short}_affiliations": ["6501"]}
        row |= {f"{short}_authorids": [author]}
    return row | changes


def written(tmp_path, name: str, rows: list[dict]):
    (tmp_path / name).mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / name / "test-00000-of-00001.parquet")
    return tmp_path


def test_the_columns_are_the_eighteen_that_were_published(folder):
    assert SCHEMA.names == PUBLISHED
    shard = next((folder / "base-4").glob("test-*.parquet"))
    assert pq.read_schema(shard).names == PUBLISHED


def test_datasets_opens_a_configuration_by_name(folder, tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    found = datasets.load_dataset(str(folder), "base-4", cache_dir=str(tmp_path))
    counts = json.loads((folder / "manifest.json").read_text())["counts"]["base-4"]
    assert {split: len(rows) for split, rows in found.items()} == counts
    assert found["test"].column_names == PUBLISHED


def test_the_card_counts_every_configuration(folder):
    card = (folder / "README.md").read_text()
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    for name, rows in counts.items():
        assert f"| {name} | {rows['train']} | {rows['valid']} | {rows['test']} |" in card


def test_the_croissant_is_valid_and_reads_the_same_texts(folder, caplog):
    croissant = pytest.importorskip("mlcroissant")
    dataset = croissant.Dataset(jsonld=str(folder / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    read = [row["base-2-test/query"].decode() for row in dataset.records("base-2-test")]
    assert read == [t.anchor.text for t in read_triplets(folder, "base-2", "test")]


def test_the_croissant_names_every_file_with_its_checksum(folder):
    from idiograph.store import digest

    found = json.loads((folder / "croissant.json").read_text())
    named = {entry["@id"]: entry["sha256"] for entry in found["distribution"] if entry["@type"] == "cr:FileObject"}
    assert named == {str(p.relative_to(folder)): digest(p) for p in folder.glob("*/*.parquet")}


def test_a_folder_says_what_it_holds(folder):
    assert configurations(folder) == ["base-2", "base-4"]
    assert splits(folder, "base-4") == ["train", "valid", "test"]


def test_configurations_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("unrestricted-2", "base-10", "base-4"):
        written(tmp_path, name, [published_row()])
    assert configurations(tmp_path) == ["base-4", "base-10", "unrestricted-2"]


def test_the_published_columns_open_with_their_plural(tmp_path):
    folder = written(tmp_path, "base-4", [published_row()])
    (triplet,) = read_triplets(folder, "base-4", "test")
    assert (triplet.anchor.doc_id, triplet.positive.doc_id, triplet.negative.doc_id) == (
        "01234567",
        "01234568",
        "01234569",
    )
    assert triplet.anchor.authors == triplet.positive.authors == {"17099"}
    assert (triplet.negative.text, triplet.negative.year, triplet.negative.domains) == ("The negative.", 2019, {"info"})


def test_a_published_year_of_one_means_unknown_and_missing_lists_are_empty(tmp_path):
    folder = written(tmp_path, "base-4", [published_row(query_year="1", query_affiliations=None)])
    (triplet,) = read_triplets(folder, "base-4", "test")
    assert triplet.anchor.year is None


def test_the_published_cloze_columns_open_too(tmp_path):
    row = {"halid": "01", "year": 2020, "domains": ["shs"], "affiliations": ["7"], "authors": ["17099"]}
    folder = written(tmp_path, "ict-2", [{**row, "query": "A.", "positive": "B.", "negative": "C."}])
    (triplet,) = read_triplets(folder, "ict-2", "test")
    assert [s.doc_id for s in (triplet.anchor, triplet.positive, triplet.negative)] == ["01"] * 3
    assert (triplet.positive.text, triplet.positive.authors, triplet.positive.domains) == ("B.", {"17099"}, {"shs"})


def test_a_folder_without_triplets_says_what_to_type(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ArtifactError, match="idiograph mine CORPUS"):
            configurations(folder)


def test_a_split_that_is_not_there_is_named(folder):
    with pytest.raises(InputError, match="has no split 'dev' in 'base-4'"):
        next(read_triplets(folder, "base-4", "dev"))


def test_a_file_without_a_column_says_which(tmp_path):
    row = {name: value for name, value in published_row().items() if name != "pos_halid"}
    with pytest.raises(InputError, match="has no column 'pos_halids'"):
        list(read_triplets(written(tmp_path, "base-4", [row]), "base-4", "test"))


def test_a_damaged_file_is_named(tmp_path):
    folder = written(tmp_path, "base-4", [published_row()])
    (folder / "base-4" / "test-00000-of-00001.parquet").write_bytes(b"PAR1")
    with pytest.raises(ArtifactError, match="is damaged"):
        list(read_triplets(folder, "base-4", "test"))
