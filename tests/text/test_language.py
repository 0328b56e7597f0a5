"""Languages are told offline."""

import socket

import pytest

from idiograph.text.language import SAMPLE, identify

TEXTS = {
    "en": "The keeper wrote down how many of the bees had returned to the hive before noon.",
    "fr": "L'apicultrice nota combien d'abeilles étaient revenues à la ruche avant midi.",
    "de": "Die Imkerin schrieb auf, wie viele Bienen vor Mittag in den Stock zurückgekehrt waren.",
    "es": "La apicultora anotó cuántas abejas habían vuelto a la colmena antes del mediodía.",
    "it": "L'apicoltrice annotò quante api erano tornate all'alveare prima di mezzogiorno.",
    "pt": "A apicultora anotou quantas abelhas tinham voltado à colmeia antes do meio-dia.",
    "zh": "养蜂人记下了中午之前回到蜂巢的蜜蜂数量。",
    "ru": "Пасечница записала, сколько пчёл вернулось в улей до полудня.",
}


@pytest.mark.parametrize("lang", TEXTS)
def test_a_sentence_is_enough(lang: str) -> None:
    found, sure = identify(TEXTS[lang])
    assert found == lang
    assert 0 < sure <= 1


def test_capitals_do_not_matter() -> None:
    assert identify(TEXTS["fr"].upper())[0] == "fr"


@pytest.mark.parametrize("text", ["", "  \n", "12 + 34 = 46 (!)"])
def test_a_text_without_words_has_no_language(text: str) -> None:
    assert identify(text) == ("und", 0.0)


def test_an_abstract_in_another_language_does_not_decide() -> None:
    mostly_french = TEXTS["en"] * 20 + TEXTS["fr"] * 100
    assert len(mostly_french) > SAMPLE
    assert identify(mostly_french)[0] == "fr"


def test_no_connection_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert identify("Not a word of this needs a network.")[0] == "en"


def test_half_a_character_is_no_error() -> None:
    assert identify(TEXTS["en"] + "\ud800")[0] == "en"
