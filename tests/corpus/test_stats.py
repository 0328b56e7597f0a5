"""Counts of a corpus: nothing twice, labels beside it, entropy corrected for the size of the sample."""

import math
import random

import numpy as np
import pytest

from idiograph.corpus.stats import (
    KindCount,
    author_set_sizes,
    corpus_statistics,
    length_summary,
    sample_entropy,
)
from idiograph.types import Author, Document, field_of

ROE, DOE = Author("Ada Roe", "1"), Author("Ben Doe", "2")
DOCUMENTS = [
    Document("a", "One two three.", (ROE,), ("shs.langue", "info.tal"), "en"),
    Document("b", "Quatre cinq.", (ROE, DOE), ("shs",), "fr"),
    Document("c", "Six seven eight nine", (ROE,), ("info.ai", "info.tal", "shs"), "en"),
    Document("d", "Ten", (), (), ""),
]


def test_every_document_is_counted_once_by_language_and_by_first_domain() -> None:
    found = corpus_statistics(DOCUMENTS)
    assert (found.documents, found.tokens) == (4, 12)
    assert found.languages == {"en": KindCount(2, 8, 2), "fr": KindCount(1, 3, 1), "none": KindCount(1, 1, 1)}
    assert sum(tally.documents for tally in found.domains.values()) == found.documents
    assert sum(tally.tokens for tally in found.domains.values()) == found.tokens


def test_labels_are_counted_beside_it_and_once_a_document() -> None:
    domains = corpus_statistics(DOCUMENTS).domains
    assert domains["shs"] == KindCount(documents=2, tokens=7, labelled=3)
    assert domains["info"] == KindCount(documents=1, tokens=4, labelled=2)


def test_cells_are_languages_by_domains() -> None:
    cells = corpus_statistics(DOCUMENTS).cells
    assert cells["en", "shs"] == KindCount(1, 4, 2)
    assert cells["fr", "shs"] == KindCount(1, 3, 1)
    assert sum(tally.documents for tally in cells.values()) == 4


def test_tokens_may_be_counted_by_someone_else() -> None:
    assert corpus_statistics(DOCUMENTS, count=len).tokens == sum(len(document.text) for document in DOCUMENTS)


def test_documents_are_read_once_from_any_iterable() -> None:
    assert corpus_statistics(iter(DOCUMENTS)) == corpus_statistics(DOCUMENTS)


def test_a_field_is_what_mining_takes_for_one() -> None:
    """HAL's dotted codes count by their first part, other labels as they are."""
    labels = ("shs.langue", "sdv.bbm.bc", "math", "cs.CL", "bees")
    documents = [Document(f"{at}", "One.", (Author("A"),), domains=(label,)) for at, label in enumerate(labels)]
    counted = set(corpus_statistics(documents).domains)
    assert counted == {field_of(label) for label in labels} == {"shs", "sdv", "math", "cs.CL", "bees"}


def test_entropy_of_equal_counts_is_the_logarithm_of_their_number() -> None:
    found = sample_entropy([1000] * 8)
    assert found.plain == pytest.approx(3)
    assert found.corrected == pytest.approx(3, abs=1e-6)
    assert found.sample == 8000


def test_the_correction_comes_nearer_to_the_truth_than_the_plain_value() -> None:
    weights = np.array([1 / rank for rank in range(1, 2001)])
    weights /= weights.sum()
    truth = float(-(weights * np.log2(weights)).sum())
    for size in (300, 1000, 3000):
        sample = random.Random(size).choices(range(2000), weights=weights.tolist(), k=size)
        found = sample_entropy(np.bincount(sample, minlength=2000).tolist())
        assert abs(found.corrected - truth) < 0.6 * abs(found.plain - truth)


@pytest.mark.parametrize("counts", [[], [0, 0], [1], [1, 1, 1], [5]])
def test_entropy_of_next_to_nothing_is_a_number(counts: list[int]) -> None:
    found = sample_entropy(counts)
    assert math.isfinite(found.plain)
    assert math.isfinite(found.corrected)
    assert found.plain >= 0


def test_repetitive_domains_have_less_entropy() -> None:
    dice = random.Random(1)
    varied = " ".join("".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(2000))
    same = " ".join("the bee saw the bee" for _ in range(400))
    found = corpus_statistics([Document("a", varied, domains=("x",)), Document("b", same, domains=("y",))])
    assert found.trigram_entropy["y"].corrected < found.trigram_entropy["x"].corrected
    assert found.word_entropy["y"].plain == pytest.approx(sample_entropy([2, 2, 1]).plain)


def test_author_sets_are_counted_by_size_and_recurrence() -> None:
    found = corpus_statistics(DOCUMENTS).author_sets
    assert found.sizes == {0: 1, 1: 2, 2: 1}
    assert (found.sets, found.recurring, found.documents_of_recurring, found.most) == (2, 1, 2, 2)
    assert found.mean_size == pytest.approx(4 / 3)


def test_a_corpus_without_authors_has_no_sets() -> None:
    assert author_set_sizes({frozenset(): 3}).sets == 0


def test_lengths_are_summed_up_by_quartiles() -> None:
    found = length_summary([1, 2, 3, 4, 100])
    assert (found.count, found.mean, found.least, found.quartiles, found.most) == (5, 22.0, 1, (2.0, 3.0, 4.0), 100)
    assert length_summary([]).count == 0


def test_an_empty_corpus_has_empty_statistics() -> None:
    found = corpus_statistics([])
    assert (found.documents, found.tokens, found.languages, found.trigram_entropy) == (0, 0, {}, {})


def test_spans_of_a_corpus_are_measured_by_their_number_of_sentences() -> None:
    text = "One two three. Four five. Six seven eight nine. Ten eleven."
    found = corpus_statistics([Document("a", text, (Author("A"),), lang="en")])
    assert found.spans[2].count == 2
    assert (found.spans[2].least, found.spans[2].most) == (7, 8)
    assert found.spans[4].mean == 15
    assert found.spans[6].count == 0


def test_spans_have_their_share_of_marks_and_their_subwords_for_each_word() -> None:
    text = "One, two three. " * 4
    found = corpus_statistics([Document("a", text, (ROE,), lang="en")], subwords=lambda each: 6).spans[2]
    assert (found.count, found.mean, found.punctuation) == (2, 10.0, 0.4)
    assert (found.subwords, found.fertility) == (12.0, 2.0)


def test_without_a_tokenizer_nothing_is_said_of_subwords() -> None:
    assert corpus_statistics(DOCUMENTS).spans[2].fertility is None
