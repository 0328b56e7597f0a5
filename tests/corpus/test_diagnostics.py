"""What extraction does badly is counted: scripts in wrong order, scripts without spaces, formulae."""

import pytest

from idiograph.corpus.diagnostics import has_formulae, is_in_wrong_order, is_right_to_left, is_unspaced
from idiograph.corpus.stats import corpus_statistics
from idiograph.types import Author, Document

ARABIC = "هذه دراسة في اللغة العربية. وهي تتناول مسألة قديمة.\n\nتبدأ الدراسة بمقدمة طويلة. ثم تأتي نتيجة واضحة."
HEBREW = "המחקר הזה עוסק בשפות ובספרים. הוא בוחן דפים רבים, וגם כתבים אחרים של סופרים שונים מן הארצות."


def backwards(text: str) -> str:
    """The letters of each paragraph in the order in which a reader from the left meets them."""
    return "\n\n".join(paragraph[::-1] for paragraph in text.split("\n\n"))


def words_backwards(text: str) -> str:
    return "\n\n".join(" ".join(reversed(paragraph.split())) for paragraph in text.split("\n\n"))


@pytest.mark.parametrize("text", [ARABIC, HEBREW])
def test_letters_that_only_end_words_show_that_a_text_is_backwards(text):
    assert not is_in_wrong_order(text)
    assert is_in_wrong_order(backwards(text))


def test_a_stop_after_the_first_word_shows_that_words_are_backwards():
    assert is_in_wrong_order(words_backwards(ARABIC))


def test_a_text_from_left_to_right_is_never_in_wrong_order():
    english = "Yes. The tide came in, and nobody saw it come.\n\nNo. The boats were out at sea again today."
    assert not is_right_to_left(english)
    assert not is_in_wrong_order(english)


@pytest.mark.parametrize("text", ["この文は日本語です。", "中文句子。", "이 문장은 한국어입니다."])
def test_scripts_without_reliable_spaces_are_known(text):
    assert is_unspaced(text)
    assert not is_unspaced(ARABIC)


@pytest.mark.parametrize("text", ["where [MATH] holds", "for x ≤ y", r"as \frac{a}{b} shows"])
def test_formulae_are_seen_by_their_marker_signs_or_commands(text):
    assert has_formulae(text)
    assert not has_formulae("It rose by 3 % in 2001, or so they say.")


def test_shares_are_by_language_and_by_first_field():
    texts = {"a": ("ar", "shs", ARABIC), "b": ("ar", "shs", backwards(ARABIC)), "c": ("zh", "math", "中文句子。")}
    texts["d"] = ("en", "math", "Let [MATH] be small. We go on.")
    documents = [Document(n, text, (Author("A"),), (domain,), lang) for n, (lang, domain, text) in texts.items()]
    found = corpus_statistics(documents)
    assert found.faults_by_language["ar"].shares == {
        "right_to_left": 1.0, "wrong_order": 0.5, "unspaced": 0.0, "formulae": 0.0,
    }  # fmt: skip
    assert found.faults_by_language["zh"].shares["unspaced"] == 1.0
    assert found.faults_by_domain["math"].shares["formulae"] == 0.5
    assert found.faults_by_language["en"].sentences_with_formulae == 0.5
