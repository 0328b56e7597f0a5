"""How the texts of a benchmark are read: as we hold it to be right, or as the published code reads them (see `Style`)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from idiograph.style.model import Style
from idiograph.style.patches import Patches

ModelReading = Callable[[Style, Sequence[str], bool], Patches]


def sound_reading(style: Style, texts: Sequence[str], query: bool) -> Patches:
    """Both sides alike, special tokens never scored."""
    return replace(style, reading="sound").encode(texts, query)


def published_reading(style: Style, texts: Sequence[str], query: bool) -> Patches:
    """As the published code reads."""
    return replace(style, reading="published").encode(texts, query)


READINGS: dict[str, ModelReading] = {"published": published_reading, "sound": sound_reading}
