"""A text that is in the library already is noticed."""

from idiograph.synth.anthology import anthology
from idiograph.text.copies import find_copies

ESSAYS = [essay.text for essay in anthology()]
NAMES = [f"essay {at}" for at in range(len(ESSAYS))]


def test_a_text_of_the_library_is_found_whole():
    (copy,) = find_copies(ESSAYS[7], ESSAYS, NAMES)
    assert (copy.doc_id, copy.share) == ("essay 7", 1.0)


def test_other_spacing_and_case_do_not_hide_a_copy():
    assert find_copies(ESSAYS[7].upper().replace(" ", "\n  "), ESSAYS, NAMES)[0].doc_id == "essay 7"


def test_a_text_of_which_half_is_copied_is_found():
    mixed = ESSAYS[3][: len(ESSAYS[3]) // 2] + " something of my own that nobody else has ever written down here" * 8
    assert find_copies(mixed, ESSAYS, NAMES)[0].doc_id == "essay 3"


def test_an_essay_by_the_same_hand_is_no_copy():
    assert find_copies(ESSAYS[0], ESSAYS[1:], NAMES[1:]) == ()


def test_a_text_too_short_to_tell_is_no_copy():
    assert find_copies("so it is", ESSAYS, NAMES) == ()
