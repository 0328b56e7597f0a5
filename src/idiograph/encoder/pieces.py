"""What the pieces of a vocabulary are: text or not, punctuation, the beginning of a word; and so a text's words.

`idiograph.neural.layers` has the same rules on tensors, because that file travels with saved models; tests tie the two.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from idiograph.style.tokens import Bools, Ints, Tokens

BYTE_SPACE, PIECE_SPACE, PIECE_INNER = "Ġ", "▁", "##"
PART = "\ufffd"  # what a piece that ends inside a character reads as


class Decoder(Protocol):
    """Turns pieces of a vocabulary into the text that they stand for."""

    def decode(self, tokens: list[str], /) -> str: ...


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """For each token id: is it no text (special or blank), is it punctuation alone, does it begin a word?"""

    special: Bools
    mark: Bools
    start: Bools

    def starts(self, ids: Ints) -> Bools:
        """Where a word begins: at a token that the tokenizer marks so, at punctuation, and after it."""
        alone = self.mark[ids] | self.special[ids]
        return begin_after(self.start[ids] | alone, alone)

    def published_words(self, ids: Ints) -> Ints:
        """The word of each token by the published rule: only where the tokenizer marks it, and around special tokens.
        Punctuation thus joins the word before it."""
        alone = self.special[ids] & ~self.start[ids]  # a space by itself is none
        return np.cumsum(begin_after(self.start[ids] | alone, alone)) - 1

    def tokens(self, ids: Ints, chars: Ints, keep: str, cut: bool = False) -> Tokens:
        """A text's tokens from what its tokenizer found: `chars` below 0 are those of a prompt."""
        kept = ~self.special[ids] & (chars[:, 1] > 0)
        if keep == "words":
            kept &= ~self.mark[ids]
        words = np.cumsum(self.starts(ids)) - 1
        return Tokens(ids.astype(np.int64), np.maximum(chars, 0).astype(np.int64), words, kept, cut)


def begin_after(begins: Bools, alone: Bools) -> Bools:
    """Also where a token before stands alone, and at the first."""
    begins = begins.copy()
    begins[1:] |= alone[:-1]
    begins[:1] = True
    return begins


def read_pieces(vocabulary: Mapping[str, int], special: Iterable[int], decoder: Decoder) -> Pieces:
    """Look at each piece of a vocabulary once."""
    size = 1 + max(vocabulary.values())
    pieces = Pieces(*(np.zeros(size, bool) for _ in range(3)))
    spaces = sum(piece.startswith((BYTE_SPACE, PIECE_SPACE)) for piece in vocabulary)
    inner = sum(piece.startswith(PIECE_INNER) for piece in vocabulary) > spaces  # those with spaces have a few "##"
    for piece, at in vocabulary.items():
        text = piece_text(piece, decoder)
        pieces.special[at] = not text
        pieces.mark[at] = bool(text) and not (text.isalnum() or any(c.isalnum() or c == PART for c in text))
        spaced = piece.startswith((BYTE_SPACE, PIECE_SPACE))
        pieces.start[at] = not piece.startswith(PIECE_INNER) if inner else spaced
    pieces.special[list(special)] = True
    return pieces


def piece_text(piece: str, decoder: Decoder) -> str:
    """The characters behind a piece; byte-level pieces spell others than ASCII with stand-ins that look like letters."""
    bare = piece.lstrip(BYTE_SPACE + PIECE_SPACE)
    return bare if bare.isascii() else decoder.decode([piece]).strip()
