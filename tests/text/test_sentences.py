"""Sentences: where they end in scholarly prose, and that offsets point into the text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idiograph.text import sentences
from idiograph.text.sentences import find_sentences, sentence_runs, sentence_tiles


def cut(text: str, lang: str = "en", **how) -> list[str]:
    return [text[start:end] for start, end in find_sentences(text, lang, **how)]


@pytest.mark.parametrize(
    "text",
    [
        "We follow Smith et al. (2001) here.",
        "See Fig. 3 and Tab. 2 for details.",
        "This holds, e.g. in Eq. 4, and i.e. there.",
        "Dr. Who met Prof. X at St. Mary's.",
        "J. R. R. Tolkien wrote it.",
        "It rose by 3.5 per cent.",
        "See Proc. of the conf. held there.",
        "The value was No. 5 of Vol. 3.",
        "By Thm. 2 and Def. 4 it follows.",
    ],
)
def test_an_abbreviation_does_not_end_a_sentence(text):
    assert cut(f"{text} Then we left.") == [text, "Then we left."]


@pytest.mark.parametrize(
    "text",
    [
        "Selon M. Dupont, la loi est juste.",
        "J.-P. Martin et M. Dupont le nient.",
        "MM. Durand et Petit lisent Mme. Leroy.",
        "Le Pr. Grand et Mgr. Dupuis parlent.",
        "Comme le dit P. Bourdieu, rien ne change.",
        "Voir l'art. 12 de la loi et le t. 3.",
        "« M. Thiers » répond à Ch.-L. Blum.",
        "En 48 av. J.-C., il part.",
    ],
)
def test_a_french_title_or_initial_does_not_end_a_sentence(text):
    assert cut(f"{text} Puis il part.", "fr") == [text, "Puis il part."]


def test_a_year_before_christ_may_end_a_sentence():
    assert cut("Il vit au siècle av. J.-C. Il meurt jeune.", "fr") == ["Il vit au siècle av. J.-C.", "Il meurt jeune."]


def test_hyphenated_initials_are_no_sentence_in_any_language():
    assert cut("J.-P. Martin disagrees. He left.") == ["J.-P. Martin disagrees.", "He left."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We use method B. We like it.", ["We use method B.", "We like it."]),
        ('"Really?" he asked. Yes.', ['"Really?" he asked.', "Yes."]),
        ("It ended. mRNA was found.", ["It ended.", "mRNA was found."]),
        ("One [CITE]. Two [MATH].", ["One [CITE].", "Two [MATH]."]),
        ("Ends without a stop\n\nBegins anew.", ["Ends without a stop", "Begins anew."]),
        ("中文句子。第二句。", ["中文句子。", "第二句。"]),
    ],
)
def test_a_sentence_ends_where_a_reader_would_say(text, expected):
    assert cut(text) == expected


def test_the_published_list_merges_after_every_no_and_never_after_other_abbreviations():
    assert cut("Is it so? He said no. We left.", abbreviations="published") == ["Is it so?", "He said no. We left."]
    assert len(cut("See Prop. 3. We left.", abbreviations="published")) >= len(cut("See Prop. 3. We left."))


@pytest.mark.parametrize("lang", ["en", "fr", "und", "", "zz-ZZ"])
def test_an_unknown_language_is_split_all_the_same(lang):
    assert cut("It was late. We left. They stayed.", lang) == ["It was late.", "We left.", "They stayed."]


@given(st.text(alphabet=st.sampled_from("Ab é.!?\n\t\0«\U0001f600中。1"), max_size=80))
def test_offsets_are_in_order_and_cover_every_letter(text):
    found = find_sentences(text)
    assert all(start < end for start, end in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))
    left_out = set(range(len(text))) - {at for start, end in found for at in range(start, end)}
    assert all(text[at].isspace() or text[at] in "\0\x1c\x1d\x1e\x1f\x85" for at in left_out)


def test_runs_are_every_neighbouring_group_and_a_short_text_is_one():
    offsets = [(0, 1), (2, 3), (4, 5)]
    assert sentence_runs(offsets, 2) == [(0, 3), (2, 5)]
    assert sentence_runs(offsets, 5) == [(0, 5)]
    assert sentence_runs([], 2) == []


def test_tiles_cover_the_text_without_overlap():
    offsets = [(at, at + 1) for at in range(0, 22, 2)]
    found = sentence_tiles(offsets, 4)
    assert found == [(0, 7), (8, 21)]


def test_a_long_paragraph_is_split_as_its_paragraphs_would_be():
    sentence = "He said “One came. Two left. Three (or four. Or five.) stayed.” and went. See Fig. 3. "
    text = sentence * 900  # longer than what the splitter is given at once
    one = find_sentences(sentence)
    assert len(find_sentences(text)) == 900 * len(one)
    assert [text[start:end] for start, end in find_sentences(text)[-len(one) :]] == cut(sentence)


@pytest.mark.parametrize("unit", ["`` ", "“", "«", "(", "你好。", "word ", "x", "A b. ", "\n\nA"])
def test_time_grows_with_the_length_of_a_text_and_not_with_its_square(monkeypatch, unit):
    given = []
    splitter = sentences.get_sentence_boundaries

    def count(lang, text):
        given.append(len(text) * max(1, min(len(text), len(sentences.MARKS.findall(text)))))
        return splitter(lang, text)

    monkeypatch.setattr(sentences, "get_sentence_boundaries", count)
    steps = []
    for size in (40_000, 160_000):
        given.clear()
        find_sentences(unit * (size // len(unit)))
        steps.append(sum(given))
    assert steps[1] < 6 * steps[0]
