"""The published form of a corpus: files of so many documents, under the published names, with checksums that fit."""

import gzip
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from idiograph.corpus.build import WrittenText, paper_sources
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.export import export_corpus
from idiograph.recipe import CorpusRecipe
from idiograph.types import Author, Document

WRITERS = (Author("Ada Roe", "17", ("6501",)), Author("Ben Doe"), Author("Cy Poe", "0000-0002-6561-5888"))
KEPT = CorpusRecipe(duplicates="keep", language="depositor")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    texts = [Document(f"hal-{at}", f"Text number {at} says so.", WRITERS, ("shs.langue",), "en") for at in range(5)]
    texts += [replace(texts[0], id="hal-9", text="Le texte est dans la langue des autres.", lang="fr", year=2019)]
    folder = tmp_path_factory.mktemp("export") / "corpus"
    build_corpus(map(WrittenText, texts), folder, KEPT)
    return Corpus(folder)


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_each_language_is_cut_into_files_of_so_many_documents(corpus, tmp_path):
    export_corpus(corpus, tmp_path / "out", per_file=2)
    sizes = {path.name: len(lines_of(path)) for path in (tmp_path / "out").rglob("*.gz")}
    assert sizes == {"en-1.jsonl.gz": 2, "en-2.jsonl.gz": 2, "en-3.jsonl.gz": 1, "fr-1.jsonl.gz": 1}


def test_documents_have_the_published_fields_and_1_for_an_unknown_year(corpus, tmp_path):
    export_corpus(corpus, tmp_path / "out")
    row = lines_of(tmp_path / "out" / "en" / "en-1.jsonl.gz")[0]
    assert list(row) == ["halid", "lang", "title", "domain", "timestamp", "year", "url", "authors", "text"]
    assert (row["halid"], row["year"], row["domain"]) == ("hal-0", "1", ["shs.langue"])
    assert [author["halauthorid"] for author in row["authors"]] == ["17", "0", "0"]


def test_the_checksums_are_those_of_the_files(corpus, tmp_path):
    export_corpus(corpus, tmp_path / "out", per_file=2)
    for line in (tmp_path / "out" / "en" / "checksum.sha256").read_text().splitlines():
        checksum, name = line.split("\t")
        assert hashlib.sha256((tmp_path / "out" / "en" / name).read_bytes()).hexdigest() == checksum


def test_two_exports_of_one_corpus_are_the_same_bytes(corpus, tmp_path):
    for name in ("a", "b"):
        export_corpus(corpus, tmp_path / name)
    packed = [(tmp_path / name / "en" / "en-1.jsonl.gz").read_bytes() for name in ("a", "b")]
    assert packed[0] == packed[1]


def test_what_was_exported_is_read_as_a_corpus_again(corpus, tmp_path):
    export_corpus(corpus, tmp_path / "out")
    build_corpus(paper_sources([str(tmp_path / "out")]), tmp_path / "again", KEPT)
    before, after = (
        {d.id: (d.text, d.year, d.authors[0].id) for d in each} for each in (corpus, Corpus(tmp_path / "again"))
    )
    assert before == after
