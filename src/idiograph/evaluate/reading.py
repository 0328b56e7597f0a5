"""How the texts of a benchmark are read: as we hold it to be right, or as the published code reads them.

Published: special tokens count like any other, so that windows are over raw positions and begin at the start token; and
punctuation is left out of the queries alone, and only where each token is a patch, and belongs to the word before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from idiograph.style.model import Style
from idiograph.style.patches import Patches
from idiograph.style.tokens import Tokens

ModelReading = Callable[[Style, Sequence[str], bool], Patches]
TOKEN_BY_TOKEN = "ngram:1"


def sound_reading(style: Style, texts: Sequence[str], query: bool) -> Patches:  # noqa: ARG001
    """Both sides alike, special tokens never scored."""
    return style.encode(texts)


def published_reading(style: Style, texts: Sequence[str], query: bool) -> Patches:
    """See the module."""
    tokens = replace(style, keep="all").tokenize(texts)
    kept = [whole_text(each) for each in tokens]
    if query and style.patch == TOKEN_BY_TOKEN:
        bare = style.encoder.tokenize(texts, "words")
        kept = [keep & ~(t.keep & ~b.keep) for keep, t, b in zip(kept, tokens, bare, strict=True)]
    words = style.encoder.published_words
    read = [replace(each, keep=keep, words=words(each.ids)) for each, keep in zip(tokens, kept, strict=True)]
    return style.encoder.embed(read, style.patch, style.progress)


def whole_text(tokens: Tokens) -> np.ndarray:
    """Every token of the text and the special ones around it, but no prompt before it."""
    begins = int(np.argmax(tokens.keep))  # of the text
    keep = np.ones(len(tokens), bool)
    keep[1:begins] = False
    return keep


READINGS: dict[str, ModelReading] = {"published": published_reading, "sound": sound_reading}
