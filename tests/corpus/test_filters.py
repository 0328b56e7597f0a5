"""Every rule has a text that it drops and one that it lets through; the reasons are those that a report counts."""

import math

import pytest

from idiograph.corpus.filters import DOCUMENT_RULES, SPAN_RULES, TextView, document_fault, span_fault
from idiograph.corpus.signals import SIGNALS, signals

PROSE = (
    "The bees returned to the hive before noon, and the keeper wrote down how many of them there were. "
    "It was not the first time that she had seen so few. "
    "What had become of the others was a question which nobody in the village could answer."
)

DOCUMENTS = {
    "words": ("Too short", PROSE, "too few words"),
    "capitals": ("THE BEES RETURNED to the hive and that was all of it", PROSE, "too many words in capitals"),
    "letters": ("12 34 56 78 90 + - / the of 11", PROSE, "too many words without letters"),
    "lorem_ipsum": ("Lorem ipsum the lorem ipsum of", PROSE, "lorem ipsum"),
    "short_words": ("a b c d e f g h i the", PROSE, "words too short"),
    "stop_words": ("Bees returned hives keepers wrote", PROSE, "no stop words"),
    "long_words": ("thebeesreturnedtothehivebeforenoonandthekeeper " * 3, PROSE, "too few words for its subwords"),
}

SPANS = {
    "tab": (PROSE.replace(" to ", "\t", 1), "a tab"),
    "layout": ("Write to keeper@hive.org. " + PROSE, "an address"),
    "start": (PROSE[4:], "starts in mid-sentence"),
    "end": (PROSE[:-1], "ends in mid-sentence"),
    "brackets": (PROSE.replace("noon", "(noon"), "unbalanced brackets"),
    "web": (PROSE.replace("noon", "www.noon.org"), "an address or a tag"),
    "header": ("Keywords and more. " + PROSE, "a header"),
    "mathematics": (PROSE.replace("e", "≥", 20), "too much mathematics"),
    "digits": (PROSE.replace("the", "12345"), "too many digits"),
    "symbols": ("".join("#" if c in "ethoi" else c for c in PROSE), "too many symbols"),
    "words": ("The bees returned to the hive.", "too few alphabetic words"),
    "stop_words": (
        "Bees returned hives keepers wrote numbers villages answered questions honey gardens flowers winter.",
        "too few stop words",
    ),
    "single_letters": ("A b c the bees x y z of q r returned to a hive and w was u in v.", "too many single letters"),
    "capitals": (
        "THE BEES RETURNED TO THE HIVE BEFORE NOON and the keeper wrote down how many there were.",
        "too many words in capitals",
    ),
    "variety": ("The the the the the the the the the the bee bee bee bee bee.", "too little variety"),
    "evenness": (
        "The bees returned to the hive. It was late, and the keeper, who had been waiting for them since the morning "
        "with all the patience that she had, wrote down in her book how many of them there were on that day. Few. "
        "So it was.",
        "sentences of too uneven length",
    ),
}


@pytest.mark.parametrize("rule", DOCUMENT_RULES)
def test_a_document_rule_drops_what_it_should_and_nothing_else(rule: str) -> None:
    bad, good, reason = DOCUMENTS[rule]
    assert DOCUMENT_RULES[rule](TextView(bad)) == reason
    assert DOCUMENT_RULES[rule](TextView(good)) is None


@pytest.mark.parametrize("rule", SPAN_RULES)
def test_a_span_rule_drops_what_it_should_and_nothing_else(rule: str) -> None:
    bad, reason = SPANS[rule]
    assert SPAN_RULES[rule](TextView(bad)) == reason
    assert SPAN_RULES[rule](TextView(PROSE)) is None


def test_prose_passes_everything() -> None:
    assert document_fault(PROSE) is None
    assert span_fault(PROSE) is None


def test_the_first_reason_is_told() -> None:
    assert span_fault("see www.hive.org") == "starts in mid-sentence"
    assert document_fault("BEES") == "too few words"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Write.\n\n\nto\n\n\nthe\n\nhive.", "too many lines for its sentences"),
        (PROSE + "\n\n" + PROSE, None),
    ],
)
def test_lines_are_counted_against_sentences(text: str, reason: str | None) -> None:
    assert SPAN_RULES["layout"](TextView(text)) == reason


def test_a_span_must_not_end_in_an_abbreviation() -> None:
    assert span_fault(PROSE[:-1] + ", as shown by Roe et al.") == "ends in an abbreviation"
    assert span_fault(PROSE[:-1] + ", and so does the stag.") is None


def test_tags_are_found_but_not_a_comparison() -> None:
    assert SPAN_RULES["web"](TextView("The <b>bees</b> returned.")) == "an address or a tag"
    assert SPAN_RULES["web"](TextView("The p < 0.05 was low.")) is None


def test_our_own_markers_count_for_nothing() -> None:
    marked = PROSE.replace(",", " [CITE],").replace(".", " [MATH].")
    assert span_fault(marked) is None
    assert TextView(marked).all_caps == 0


def test_stop_words_are_those_of_the_language() -> None:
    text = (
        "Les abeilles sont revenues dans la ruche avant midi, et personne ne savait ce que les autres étaient devenues."
    )
    assert SPAN_RULES["stop_words"](TextView(text, "fr")) is None
    assert DOCUMENT_RULES["stop_words"](TextView("Les abeilles reviennent", "de")) == "no stop words"


def test_a_language_without_a_list_is_not_judged_by_stop_words() -> None:
    assert DOCUMENT_RULES["stop_words"](TextView("Mehiläiset palasivat pesään", "fi")) is None


def test_a_script_without_spaces_is_not_judged_by_words() -> None:
    text = "蜜蜂在中午之前回到蜂巢，养蜂人写下了它们的数量。这不是第一次看到这么少。"
    assert document_fault(text, "zh") is None
    assert span_fault(text, "zh") is None


def test_given_sentences_are_used_for_evenness() -> None:
    halves = [PROSE[:100], PROSE[100:]]
    assert SPAN_RULES["evenness"](TextView(PROSE, sentences=halves)) is None
    assert (
        SPAN_RULES["evenness"](TextView(PROSE, sentences=["one two", PROSE, "three"]))
        == "sentences of too uneven length"
    )


def test_an_empty_text_is_too_short_and_breaks_no_rule() -> None:
    assert document_fault("") == "too few words"
    assert all(rule(TextView("")) is None or isinstance(rule(TextView("")), str) for rule in SPAN_RULES.values())
    assert all(not value or math.isnan(value) or name == "sentences" for name, value in signals("").items())


def test_signals_are_what_one_counts_by_hand() -> None:
    found = signals("The bee saw the BEE... It left.\n\n• A list item")
    assert found["words"] == 10
    assert found["all_caps"] == pytest.approx(2 / 15)
    assert found["lines_with_bullet"] == 0.5
    assert found["lines_with_full_stop"] == 0.5
    assert found["symbols_per_word"] == pytest.approx(1 / 10)
    assert found["lorem_ipsum"] == 0


def test_a_repeated_passage_shows_in_the_duplicate_signals_of_its_length() -> None:
    passage = "one two three four five six"
    found = signals(f"{passage} seven {passage} eight nine ten eleven twelve")
    assert found["duplicate_6_grams"] == pytest.approx(46 / 76, abs=0.05)
    assert found["duplicate_7_grams"] == 0


def test_entropy_of_four_equal_words_is_two_bits() -> None:
    assert SIGNALS["entropy"](TextView("a b c d")) == pytest.approx(math.log(4))


def test_sentences_are_counted_by_the_splitter_also_where_no_space_parts_them() -> None:
    assert signals("中文句子。第二句。第三句。", "zh")["sentences"] == 3
    assert signals("It was Dr. Roe. She left.")["sentences"] == 2
