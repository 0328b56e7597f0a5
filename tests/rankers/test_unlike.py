"""A text that is unlike a library is noticed; those that are like it are let through, also by writers it does not have."""

import numpy as np
import pytest

from idiograph.rankers.library import Library
from idiograph.rankers.unlike import LibraryRange, expected_furthest
from idiograph.synth.anthology import anthology
from idiograph.text.passages import count_words

CASUAL = """So I was walking home and this guy goes, hey, you know where the bus is? And I'm like, dude, no clue, I just
moved here. He laughed. I laughed. We ended up talking about pizza and video games for maybe ten minutes, which was kinda
weird but okay. Anyway he told me there's a coffee place that does crazy good rolls, so I checked it out, why not, right?
Totally worth it. The owner's super nice, been running it since the eighties. I'm gonna bring my laptop next week and get
some work done there, because sitting in my apartment all day is making me crazy, lol. My sister says I need to get out
more and, yeah, she's probably right about that one, not that I'd ever tell her so to her face, no way, never ever."""
SPANISH = """En un lugar de la costa vivía un pescador que no sabía leer. Todas las mañanas salía con su barca antes de que
amaneciera, y todas las tardes volvía con lo que el mar le había querido dar. Un día encontró en la red una botella con
una carta dentro. La llevó al maestro del pueblo, que se la leyó en voz alta mientras los niños escuchaban desde la puerta.
Era de una mujer que pedía noticias de su hijo, embarcado hacía muchos años hacia un país del que nadie volvía."""


@pytest.fixture(scope="module")
def essays():
    return [(essay.text, essay.authors[0].name) for essay in anthology()]


@pytest.fixture(scope="module")
def half(essays):
    """The essays of every other writer."""
    names = sorted({name for _, name in essays})
    mine = [each for each in essays if names.index(each[1]) % 2 == 0]
    return LibraryRange.of(Library(*map(tuple, zip(*mine, strict=True))))


@pytest.mark.parametrize("text", [CASUAL, SPANISH, "qwe zxc " * 80], ids=["chat", "Spanish", "noise"])
def test_what_nobody_there_would_write_is_strange(half, text):
    assert half.unlikeness(text).strange


def test_essays_by_other_writers_are_not_strange(essays, half):
    others = [text for text, name in essays if name not in half.library.authors]
    assert np.mean([half.unlikeness(text).strange for text in others]) <= 0.15
    shorter = [" ".join(text.split()[:120]) for text in others]
    assert np.mean([half.unlikeness(text).strange for text in shorter]) <= 0.15


def test_a_text_of_the_library_is_not_strange(half):
    assert not any(half.unlikeness(text).strange for text in half.library.texts[:5])


def test_length_alone_makes_nothing_strange(half):
    long = " ".join(half.library.texts[:6])
    assert count_words(long) > 4 * count_words(half.library.texts[0])
    assert not half.unlikeness(long).strange


def test_two_texts_have_no_range(essays):
    few = LibraryRange.of(Library(tuple(text for text, _ in essays[:2]), ("a", "b")))
    assert not few.unlikeness(CASUAL).strange


def test_few_texts_are_not_trusted_to_show_how_far_others_may_lie():
    assert expected_furthest(4) > 2 * expected_furthest(40)


def test_the_order_of_a_library_does_not_matter(half):
    turned = half.library.take(range(len(half.library))[::-1])
    one, two = (LibraryRange(each).unlikeness(CASUAL) for each in (half.library, turned))
    assert one.distance == pytest.approx(two.distance)
    assert one.furthest == pytest.approx(two.furthest)
