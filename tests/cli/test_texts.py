"""The commands that make and look at corpora and triplets: what they print, and what they take."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from idiograph.cli import texts
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.stats import corpus_statistics
from idiograph.errors import InputError
from idiograph.types import Author, Document


def printed(monkeypatch, show, value) -> str:
    """What a function prints for a person with 80 columns."""
    narrow = Console(width=80, record=True)
    monkeypatch.setattr(texts, "out", narrow)
    show(value)
    return narrow.export_text()


def test_the_topic_table_is_readable_at_80_columns(monkeypatch):
    names = ("BM25 (Okapi)", "BM25 (bm25s)", "character 4-grams", "function words")
    rows = [SimpleNamespace(measure=name, value=0.525, low=0.47, high=0.59) for name in names]
    mean = SimpleNamespace(mean=0.006)
    one = SimpleNamespace(name="unrestricted-10", triplets=425, paper=60.2, accuracy=rows,
                          words=SimpleNamespace(signal=mean, noise=mean))  # fmt: skip
    text = printed(monkeypatch, texts.print_topic, SimpleNamespace(checked=[one]))
    assert all(name in text for name in (*names, "unrestricted-10", "47–59", "60.2"))
    assert "…" not in text


def test_fields_that_no_document_has_first_do_not_fill_the_table(monkeypatch):
    second = tuple(f"field-{at}" for at in range(40))
    found = corpus_statistics([Document("a", "One two.", (Author("A"),), ("shs", *second), "en")])
    text = printed(monkeypatch, texts.print_stats, found)
    assert "field-7" not in text
    assert "40 more fields are named only beside another one" in text


def test_fields_may_be_listed_in_a_file(tmp_path):
    (tmp_path / "fields.txt").write_text("shs\n\n 0.info \n", encoding="utf-8")
    assert texts.read_fields(str(tmp_path / "fields.txt")) == ("shs", "0.info")
    assert texts.read_fields("auto") == "auto"
    with pytest.raises(InputError, match="neither all, auto or 13 nor a file"):
        texts.read_fields("fourteen")


def test_a_language_model_of_a_corpus_gives_its_texts_a_perplexity(idiograph, tmp_path):
    documents = [
        Document(f"{at}", f"The tide number {at} came in slowly.", (Author("A"),), lang="en") for at in range(3)
    ]
    build_corpus(documents, tmp_path / "corpus")
    assert idiograph("corpus", "language-model", tmp_path / "corpus", "-o", tmp_path / "models")[0] == 0
    status, _, err = idiograph(
        "corpus", tmp_path / "corpus", "-o", tmp_path / "again", "--perplexity", tmp_path / "models"
    )
    assert status == 0, err
    assert Corpus(tmp_path / "again").manifest.recipe["perplexity"] == str(tmp_path / "models")
    assert list((tmp_path / "again" / "en").glob("signals-*.parquet"))
