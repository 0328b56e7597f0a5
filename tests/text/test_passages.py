"""Passages: no word is lost, none is too long, whatever the text is like."""

from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idiograph.corpus.readers import json_lines
from idiograph.text.passages import count_words, cut_passages, longest_passage, passage_texts
from idiograph.text.sentences import find_sentences
from idiograph.types import Document

WORDS = st.sampled_from(
    ["one", "tail.", "Two", "e.g.", "“No", "yes?”", "1.", "(2)", "``", "«", "…", "天地玄黄。", "สวัสดี", "x" * 70]
)
BLANKS = st.sampled_from([" ", "\n", "\n\n", "  ", "\t", "\u3000"])
TEXTS = st.lists(st.tuples(WORDS, BLANKS, st.integers(1, 90)), max_size=12).map(
    lambda parts: "".join((word + blank) * times for word, blank, times in parts)
)


def sizes(text: str, lang: str = "en") -> list[int]:
    return [count_words(passage) for passage in passage_texts(text, lang)]


@given(TEXTS, st.sampled_from(["en", "zh", ""]), st.sampled_from([20, 50, 120]))
def test_passages_hold_every_letter_once_in_order_within_the_limit(text, lang, words):
    found = cut_passages(text, lang, words)
    assert bool(found) == bool(text.strip())
    assert all(a[1] <= b[0] for a, b in pairwise(found))
    assert "".join("".join(text[start:end].split()) for start, end in found) == "".join(text.split())
    assert all(1 <= count_words(text[start:end]) <= longest_passage(words) for start, end in found)
    assert found == cut_passages(text, lang, words)


@given(st.text(max_size=300))
def test_any_text_with_a_word_has_a_passage(text):
    assert bool(cut_passages(text, "en")) == bool(text.strip())


@given(st.lists(st.sampled_from(["the", "of", "stop.", "Why?", "and,", "1.", "“so"]), min_size=1, max_size=900))
def test_words_between_blanks_stay_whole(words):
    assert [word for passage in passage_texts(" ".join(words), "en") for word in passage.split()] == words


LIKE_NOTHING = {
    "no mark at all": "word " * 2000,
    "a numbered list": "".join(f"{at}. item\n" for at in range(800)),
    "verse": "so dark the night\nso long the road,\n" * 300,
    "dialogue": "“No!” — “Yes.” " * 600,
    "one sentence": "we went on and on, " * 700 + "home.",
    "Chinese": "天地玄黄，宇宙洪荒。" * 500,
    "Chinese without a mark": "天地玄黄" * 1500,
    "Thai": "สวัสดีครับ" * 900,
    "one string": "x" * 100_000,
    "marks": "``" * 4000,
    "lines": "a\n" * 3000,
    "paragraphs": "Yes.\n\n" * 3000,
}


@pytest.mark.parametrize("text", LIKE_NOTHING.values(), ids=LIKE_NOTHING)
def test_passages_are_near_the_size_aimed_at_whatever_the_text(text):
    found = sizes(text)
    assert max(found) <= 250
    assert all(size >= 60 for size in found[:-1])
    assert 100 <= sum(found) / len(found) <= 160 or len(found) < 5


def test_a_sentence_is_cut_only_where_it_is_too_long_for_a_passage():
    text = ("Long ago we went there, " + "and there, " * 20 + "and back. ") * 9
    begun = {start for start, _ in find_sentences(text)}
    assert {start for start, _ in cut_passages(text, "en")} <= begun


def test_verse_is_cut_between_its_lines_and_a_long_sentence_after_a_comma():
    verse = "so dark the night\nso long the road\n" * 100
    assert all(passage.startswith("so") and passage.endswith(("night", "road")) for passage in passage_texts(verse))
    endless = "and he who came by the old road, " * 100
    assert all(passage.endswith("road,") for passage in passage_texts(endless, "en"))


def test_a_short_rest_joins_the_passage_before():
    assert sizes("This is one more of them. " * 21) == [126]
    assert sizes("This is one more of them. " * 49) == [120, 174]


def test_the_language_is_found_where_none_is_said():
    text = "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。" * 60
    assert cut_passages(text) == cut_passages(text, "zh")


REAL = ("federalist", "eltec-hun", "eltec-spa", "pan19")


@pytest.mark.parametrize("name", REAL)
def test_real_texts_are_cut_into_passages_of_about_120_words(shared, name):
    documents = [d for d in islice(json_lines(shared / "corpora" / f"{name}.jsonl.zst"), 40) if isinstance(d, Document)]
    found = [[passage.split() for passage in passage_texts(d.text, d.lang)] for d in documents]
    assert [[w for passage in passages for w in passage] for passages in found] == [d.text.split() for d in documents]
    lengths = [len(passage) for passages in found for passage in passages]
    assert max(lengths) <= 250
    assert 110 < sum(lengths) / len(lengths) < 130
    assert sum(80 <= length <= 180 for length in lengths) > 0.9 * len(lengths)
