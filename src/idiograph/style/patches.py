"""How the tokens of a text are grouped into patches, and what many texts' patches look like in memory.

A policy numbers the patch that each token belongs to, from 0 in reading order; −1 means none. That is all there is to
granularity: `whole` is mean pooling, `ngram:1` is token-level late interaction, the rest lies between.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from idiograph.errors import SpecError
from idiograph.spec import parse_spec
from idiograph.style.tokens import Bools, Floats, Ints, Tokens

Policy = Callable[[Tokens, Floats], Ints]


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """The patches of many texts, one after the other: no padding, no mask, and no text without a patch."""

    vectors: Floats  # (P, d), rows of unit length
    lengths: Ints  # (n,) patches of each text, all ≥ 1
    chars: Ints  # (P, 2) where each patch starts and ends in its text

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> Ints:
        """The row at which each text begins."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)[:-1]])

    def take(self, which: Sequence[int] | Ints) -> "Patches":
        """The patches of some of the texts, in the order asked for."""
        which = np.asarray(which, dtype=np.int64)
        rows = ragged_rows(self.starts[which], self.lengths[which])
        return Patches(self.vectors[rows], self.lengths[which], self.chars[rows])


def ragged_rows(starts: Ints, lengths: Ints) -> Ints:
    """start, start + 1, … for each length, end to end.

    >>> ragged_rows(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def join_patches(parts: Sequence[Patches]) -> Patches:
    """Several collections as one."""
    return Patches(
        np.concatenate([p.vectors for p in parts]),
        np.concatenate([p.lengths for p in parts]),
        np.concatenate([p.chars for p in parts]),
    )


def pool_patches(vectors: Floats, number: Ints) -> Floats:
    """The mean of each patch's token vectors, scaled to unit length."""
    inside = np.flatnonzero(number >= 0)
    order = inside[np.argsort(number[inside], kind="stable")]
    first = np.flatnonzero(np.diff(number[order], prepend=-1))  # row of each patch
    sums = np.add.reduceat(vectors[order], first, axis=0, dtype=np.float64)
    return unit_vectors(sums)  # the length of a mean does not outlive the scaling: a sum will do


def unit_vectors(rows: np.ndarray) -> Floats:
    size = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.maximum(size, 1e-12)).astype(np.float32)


def patch_extents(tokens: Tokens, number: Ints) -> Ints:
    """Where each patch starts and ends in the text: from its first token to its last."""
    count = int(number.max()) + 1
    spans = np.stack([np.full(count, np.iinfo(np.int64).max), np.full(count, -1)], axis=1)
    inside = number >= 0
    np.minimum.at(spans[:, 0], number[inside], tokens.chars[inside, 0])
    np.maximum.at(spans[:, 1], number[inside], tokens.chars[inside, 1])
    return spans


def whole_patch(tokens: Tokens, vectors: Floats) -> Ints:  # noqa: ARG001
    """One patch: mean pooling."""
    return np.where(tokens.keep, 0, -1)


def ngram_patches(tokens: Tokens, vectors: Floats, size: int) -> Ints:  # noqa: ARG001
    """Windows of `size` kept tokens; the last one may be shorter."""
    return keep_windows(tokens.keep, size)


def keep_windows(keep: Bools, size: int) -> Ints:
    return np.where(keep, (np.cumsum(keep) - 1) // size, -1)


def word_patches(tokens: Tokens, vectors: Floats) -> Ints:  # noqa: ARG001
    """One patch a word; a punctuation mark is a word of its own."""
    kept = tokens.words[tokens.keep]
    _, order = np.unique(kept, return_inverse=True)  # words are numbered in reading order
    number = np.full(len(tokens), -1, np.int64)
    number[tokens.keep] = order
    return number


def auto_size(kept: int) -> int:
    """The patch size for a text of `kept` tokens."""
    return max(1, round(0.18 * math.sqrt(kept)))  # a fit over 70 to 512 tokens in the paper, not a law


def auto_patches(tokens: Tokens, vectors: Floats) -> Ints:  # noqa: ARG001
    """Windows that grow with the square root of the text."""
    return keep_windows(tokens.keep, auto_size(int(tokens.keep.sum())))


def cluster_patches(tokens: Tokens, vectors: Floats, size: int) -> Ints:
    """Ward clusters of similar tokens, S // size of them, wherever in the text they stand.

    The hierarchical token pooling of the retrieval literature, here as a comparison: its patches are not contiguous.
    """
    number = np.full(len(tokens), -1, np.int64)
    number[tokens.keep] = ward(unit_vectors(vectors[tokens.keep]), max(int(tokens.keep.sum()) // size, 1))
    return number


def ward(rows: Floats, count: int) -> Ints:
    """Cluster numbers of unit rows, from 0 in order of first appearance."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if count >= len(rows):
        return np.arange(len(rows))
    distance = np.clip(1 - rows @ rows.T, 0, 2)
    labels = fcluster(linkage(squareform(distance, checks=False), method="ward"), t=count, criterion="maxclust")
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def learned_patches(tokens: Tokens, vectors: Floats, size: int) -> Ints:  # noqa: ARG001
    """Patches that begin where a model has learned that they should; only that model can number them."""
    raise SpecError(f"patch policy 'learned:{size}' needs a model that was trained with it")


POLICIES: dict[str, Callable[..., Ints]] = {
    "auto": auto_patches,
    "cluster:N": cluster_patches,
    "learned:N": learned_patches,
    "ngram:N": ngram_patches,
    "whole": whole_patch,
    "word": word_patches,
}
CONTIGUOUS = ("auto", "learned", "ngram", "whole", "word")


def parse_policy(text: str) -> Policy:
    """The policy that a string such as `ngram:2` names."""
    spec = parse_spec(text, "patch policy", POLICIES)
    if spec.number is None:
        return POLICIES[spec.name]
    return partial(POLICIES[f"{spec.name}:N"], size=spec.number)
