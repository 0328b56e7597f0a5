"""The inverse cloze task: an anchor, the sentences around it as its positive, and a passage elsewhere as its negative."""

from random import Random

from idiograph.text.sentences import Offsets

KEEP_ANCHOR = 0.10  # how often the context still holds the anchor, so that shared words may count a little


def make_cloze(text: str, offsets: Offsets, at: int, size: int, random: Random) -> list[tuple[str, int]]:
    """(text, first sentence) of anchor, context and negative for an anchor of `size` sentences that begins at `at`.

    The context is `size` sentences before and `size` after; the negative is 2 · `size` sentences that overlap with
    neither. A text of 5 · `size` sentences has room for that wherever the anchor is, unless it is in the very middle.
    """
    around = (at - size, at + 2 * size)
    elsewhere = [s for s in range(len(offsets) - 2 * size + 1) if s + 2 * size <= around[0] or s >= around[1]]
    if not elsewhere:
        return []
    negative = random.choice(elsewhere)
    keep = random.random() < KEEP_ANCHOR
    before, anchor, after = (piece_at(text, offsets, at + step * size, size) for step in (-1, 0, 1))
    context = piece_at(text, offsets, at - size, 3 * size) if keep else f"{before} {after}"
    return [(anchor, at), (context, at - size), (piece_at(text, offsets, negative, 2 * size), negative)]


def piece_at(text: str, offsets: Offsets, at: int, size: int) -> str:
    return text[offsets[at][0] : offsets[at + size - 1][1]]
