"""What goes through a model at once: texts of like length together, and a text longer than the window piece by piece."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idiograph.style.tokens import Ints, Tokens


@dataclass(frozen=True, slots=True, eq=False)
class TokenWindow:
    """What the model is given at once. `own` are the places whose vectors are the text's; the others only frame it."""

    ids: Ints
    own: slice


def token_windows(tokens: Tokens, window: int) -> list[TokenWindow]:
    """The text in as few pieces as the window allows, all of about one length, each framed as the whole text is."""
    if len(tokens) <= window:
        return [TokenWindow(tokens.ids, slice(0, len(tokens)))]
    inside = np.flatnonzero(tokens.chars[:, 1] > 0)
    first, last = int(inside[0]), int(inside[-1]) + 1
    head, body, tail = np.split(tokens.ids, [first, last])
    room = window - len(head) - len(tail)
    parts = np.array_split(body, -(-len(body) // room))
    framed = [np.concatenate([head, part, tail]) for part in parts]
    return [TokenWindow(ids, own_vectors(at, len(parts), first, len(ids) - len(tail))) for at, ids in enumerate(framed)]


def own_vectors(at: int, count: int, first: int, last: int) -> slice:
    """The first piece keeps the frame before the text, the last the one behind it."""
    return slice(0 if at == 0 else first, None if at == count - 1 else last)


def padded_groups(lengths: Sequence[int], limit: int) -> list[slice]:
    """Runs of neighbours whose padded size stays within `limit`, or one that alone is longer.

    >>> padded_groups([2, 2, 3, 9], limit=6)
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    found, begin, longest = [], 0, 0
    for at, length in enumerate(lengths):
        longest = max(longest, length)
        if at > begin and (at + 1 - begin) * longest > limit:
            found.append(slice(begin, at))
            begin, longest = at, length
    return [*found, slice(begin, len(lengths))]


def length_groups(lengths: Sequence[int], limit: int) -> list[Ints]:
    """The places of all texts from the shortest to the longest, in groups whose padded size stays within `limit`.

    >>> [group.tolist() for group in length_groups([9, 2, 3, 2], limit=6)]
    [[1, 3], [2], [0]]
    """
    order = np.argsort(lengths, kind="stable")
    return [order[group] for group in padded_groups([lengths[at] for at in order], limit)] if len(order) else []
