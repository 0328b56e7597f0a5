"""Versions of one work are found whatever their order; different works by the same people are left alone."""

import random
import time
from pathlib import Path

import numpy as np
import pytest

from idiograph.corpus.duplicates import BINS, near_duplicates, shingle_signatures, title_key

SHARED = Path(__file__).parents[3] / "shared" / "corpora"
VOCABULARY = [f"{a}{b}{c}" for a in "bcdfghklmnprstvw" for b in "aeiou" for c in "lmnrst"]
ROE, DOE = frozenset({"roe"}), frozenset({"doe"})
TITLE = "How bees find their way"


def text(seed: int, words: int = 200) -> str:
    return " ".join(random.Random(seed).choices(VOCABULARY, k=words))


def edited(original: str, changes: int, seed: int = 0) -> str:
    words, dice = original.split(), random.Random(seed)
    for at in dice.sample(range(len(words)), changes):
        words[at] = "edited"
    return " ".join(words)


def shingles(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(words, words[1:], words[2:], strict=False))


def test_a_copy_is_found_whoever_signs_it() -> None:
    assert near_duplicates([("a", "One", ROE, text(1)), ("b", "Two", DOE, text(1).upper() + "!")]) == {"a": "b"}


def test_a_version_is_found_if_an_author_is_shared() -> None:
    version = edited(text(1), 25)
    assert near_duplicates([("a", "One", ROE | DOE, text(1)), ("b", "Two", ROE, version)]).keys() <= {"a", "b"}
    assert len(near_duplicates([("a", "One", ROE | DOE, text(1)), ("b", "Two", ROE, version)])) == 1
    assert near_duplicates([("a", "One", DOE, text(1)), ("b", "Two", ROE, version)]) == {}


def test_a_rewritten_abstract_is_found_by_its_title_and_author() -> None:
    rewritten = " ".join([*text(1).split()[:90], *text(2).split()[:110]])
    assert len(near_duplicates([("a", TITLE, ROE, text(1)), ("b", TITLE.upper() + ".", ROE, rewritten)])) == 1
    assert near_duplicates([("a", TITLE, ROE, text(1)), ("b", "Another title of a work", ROE, rewritten)]) == {}


def test_the_same_title_alone_is_not_enough() -> None:
    assert near_duplicates([("a", TITLE, ROE, text(1)), ("b", TITLE, ROE, text(2))]) == {}
    assert near_duplicates([("a", "Introduction", ROE, text(1)), ("b", "Introduction", ROE, text(2))]) == {}


def test_different_works_of_one_author_stay() -> None:
    assert near_duplicates((str(i), f"Title {i}", ROE, text(i)) for i in range(50)) == {}


def test_the_longest_version_is_kept_and_all_point_to_it() -> None:
    whole = text(1, 240)
    versions = [("a", "One", ROE, whole[:-150]), ("b", "One", ROE, whole), ("c", "One", ROE, whole[:-80])]
    assert near_duplicates(versions) == {"a": "b", "c": "b"}


def test_the_order_of_the_documents_does_not_matter() -> None:
    entries = [(f"{i}-{j}", f"T{i}", ROE, edited(text(i), 8 * j, seed=j)) for i in range(20) for j in range(3)]
    expected = near_duplicates(entries)
    assert len(expected) == 40
    for seed in range(3):
        assert near_duplicates(random.Random(seed).sample(entries, len(entries))) == expected


@pytest.mark.parametrize("words", [40, 150, 3000])
@pytest.mark.parametrize("changes", [0.02, 0.1, 0.25])
def test_a_signature_estimates_the_share_of_common_shingles(words: int, changes: float) -> None:
    estimates, truths = [], []
    for seed in range(30):
        original = text(seed, words)
        changed = edited(original, int(changes * words), seed)
        one, two = shingles(original.split()), shingles(changed.split())
        truths.append(len(one & two) / len(one | two))
        first, second = shingle_signatures([original, changed])
        estimates.append(float(np.mean(first == second)))
    assert np.mean(estimates) == pytest.approx(np.mean(truths), abs=0.05)


def test_a_signature_does_not_depend_on_its_neighbours() -> None:
    texts = [text(1), "", "word", "two words", "a zero \0 byte", text(2, 1000), "\ud800 lone"]
    together = shingle_signatures(texts)
    assert together.shape == (len(texts), BINS)
    for i, each in enumerate(texts):
        assert (shingle_signatures([each])[0] == together[i]).all()


def test_texts_without_words_are_nobody_s_copy() -> None:
    assert near_duplicates([("a", "", ROE, ""), ("b", "", ROE, "!?"), ("c", "", ROE, "")]) == {}
    assert near_duplicates([]) == {}


def test_short_texts_are_copies_only_when_they_are_the_same() -> None:
    entries = [("a", "", ROE, "Good morning"), ("b", "", DOE, "good morning!"), ("c", "", ROE, "Good evening")]
    assert near_duplicates(entries) == {"a": "b"}


def test_titles_are_folded() -> None:
    assert title_key("Éléments d’une Théorie — du style") == title_key("ELEMENTS D'UNE THEORIE: DU STYLE")


def test_a_crowd_of_copies_is_collapsed_in_linear_time() -> None:
    began = time.perf_counter()
    found = near_duplicates((f"{i:05}", "", ROE, text(1, 60)) for i in range(5000))
    assert set(found.values()) == {"00000"}
    assert len(found) == 4999
    assert time.perf_counter() - began < 20


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared corpora are not here")
def test_real_abstracts_collapse_rarely_and_in_under_a_minute() -> None:
    import io
    import json

    import pyarrow as pa

    with pa.input_stream(SHARED / "acl-abstracts.jsonl.zst", compression="zstd") as stream:
        rows = [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf-8")]
    entries = [(row["id"], row["title"], [author["name"] for author in row["authors"]], row["text"]) for row in rows]
    began = time.perf_counter()
    found = near_duplicates(entries)
    assert time.perf_counter() - began < 60
    assert found["acl:W17-43.8"] == "acl:D17-1.43"
    assert 30 < len(found) < 120


def test_signatures_that_do_not_fit_into_memory_wait_in_a_file(monkeypatch):
    entries = [(f"{i:03}", f"Title {i}", ROE, text(i % 40)) for i in range(60)]
    expected = near_duplicates(entries)
    monkeypatch.setattr("idiograph.corpus.duplicates.MAX_SIGNATURES_IN_MEMORY", 10_000)
    assert near_duplicates(entries) == expected != {}
