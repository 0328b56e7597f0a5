"""Who writes with whom: groups of people that few documents cross, so that a corpus can be split without losing much of it.

Everybody joins the group with which they share most documents, as long as it is not too large; then the groups do the same,
and so on (label propagation with a limit, in levels). People who share a document with n authors are tied by 1 / (n - 1) of
it. All weights are whole numbers, so that their sums, and with them the groups, do not depend on the order of the documents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.seeded import uniform

DOCUMENT = 720_720.0  # the weight of one: 1 to 16 people share it without a rest
MAX_PAIRED = 17  # people of a document who are all tied to each other; of more, each to the 16 beside them
SWEEPS = 12  # over everybody, in each level
MIN_MOVED = 0.001  # of all; a sweep that moves fewer is the last
MIN_MERGED = 0.02  # of all groups; a level that merges fewer is the last

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Ties = Any  # a scipy.sparse.csr_array, which is imported where it is used: it takes a tenth of a second


@dataclass(frozen=True, slots=True)
class Bylines:
    """The people of every document, as numbers below `count`, each once: `people[first[at] : first[at + 1]]`."""

    first: Longs
    people: Ints
    count: int

    @property
    def sizes(self) -> Longs:
        return np.diff(self.first)

    def profiles(self, group: Ints, sizes: int) -> Floats:
        """How much of the documents by one, two, … and at least `sizes` people each group wrote: (groups, sizes)."""
        share, place = np.floor(DOCUMENT / np.maximum(self.sizes, 1)), np.minimum(self.sizes, sizes) - 1
        cell = group[self.people].astype(np.int64) * sizes + np.repeat(place, self.sizes)
        groups = int(group.max(initial=-1)) + 1
        sums = np.bincount(cell, np.repeat(share, self.sizes), groups * sizes)
        return sums.astype(np.float64).reshape(groups, sizes)


def find_groups(bylines: Bylines, ties: Ties, limit: float, alone: NDArray[np.bool_]) -> Ints:
    """The number of each person's group; a group writes at most `limit` of all documents, unless it is one person.

    Whoever is `alone` is a group of one.
    """
    weight = bylines.profiles(np.arange(bylines.count, dtype=np.int32), 1).sum(axis=1)
    most = limit * float(weight.sum())
    group = np.arange(bylines.count, dtype=np.int32)
    ties = without_people(ties, alone)
    for level in range(bylines.count):
        joined = join_neighbours(ties, weight, most, level)
        count = int(joined.max(initial=-1)) + 1
        group, weight = joined[group], np.bincount(joined, weight, count).astype(np.float64)
        if count > (1 - MIN_MERGED) * len(joined):
            break
        ties = merge_ties(ties, joined)
    return group


def coauthor_ties(bylines: Bylines) -> Ties:
    """How much each two people wrote together: (people, people), both ways."""
    from scipy.sparse import csr_array

    half = csr_array((bylines.count, bylines.count), dtype=np.float64)
    for left, right, weight in tied_pairs(bylines):
        weights = np.full(len(left), weight)
        half = half + csr_array((weights, (left, right)), shape=half.shape)
    return csr_array(half + half.T)


def tied_pairs(bylines: Bylines) -> Iterator[tuple[Ints, Ints, float]]:
    """Pairs of co-authors and what a pair weighs, documents of one size at a time."""
    sizes = bylines.sizes
    for size in np.unique(sizes[sizes > 1]).tolist():
        rows = np.flatnonzero(sizes == size)
        people = np.sort(bylines.people[bylines.first[rows][:, None] + np.arange(size)], axis=1)
        left, right = places_to_tie(size)
        yield people[:, left].ravel(), people[:, right].ravel(), DOCUMENT / min(size - 1, MAX_PAIRED - 1)


def places_to_tie(size: int) -> tuple[Longs, Longs]:
    """Which places of a byline are tied: all of a short one, of a long one each to the next eight, round in a ring."""
    if size <= MAX_PAIRED:
        left, right = np.triu_indices(size, 1)
        return left, right
    steps = (MAX_PAIRED - 1) // 2
    left = np.repeat(np.arange(size), steps)
    return left, (left + np.tile(np.arange(1, steps + 1), size)) % size


def without_people(ties: Ties, gone: NDArray[np.bool_]) -> Ties:
    """The same ties, but none with those who are `gone`."""
    from scipy.sparse import diags_array

    if not gone.any():
        return ties
    rest = diags_array((~gone).astype(np.float64))
    left = (rest @ ties @ rest).tocsr()
    left.eliminate_zeros()
    return left


def merge_ties(ties: Ties, group: Ints) -> Ties:
    """The ties between groups: the sums of those between their members; within one they are left out."""
    from scipy.sparse import csr_array

    member = membership(group)
    merged = csr_array(member.T @ ties @ member)
    merged.setdiag(0)
    merged.eliminate_zeros()
    merged.sort_indices()
    return merged


def membership(group: Ints) -> Ties:
    """One row a member, with a one in the column of its group."""
    from scipy.sparse import csr_array

    count = len(group)
    shape = (count, int(group.max(initial=-1)) + 1)
    return csr_array((np.ones(count), group, np.arange(count + 1)), shape=shape)


def join_neighbours(ties: Ties, weight: Floats, most: float, level: int) -> Ints:
    """The group of each member, from 0 on, after each has begun alone and moved to where its ties are."""
    count = len(weight)
    group, numbers = np.arange(count, dtype=np.int32), np.arange(count, dtype=np.uint64)
    for sweep in range(SWEEPS):
        asked = uniform(numbers, level, sweep) < 0.5  # if all moved at once, two would change places for ever
        movers, targets = choose_moves(ties, group, weight, most, asked)
        group[movers] = targets
        if len(movers) < MIN_MOVED * count:
            break
    return np.unique(group, return_inverse=True)[1].astype(np.int32)


def choose_moves(
    ties: Ties, group: Ints, weight: Floats, most: float, asked: NDArray[np.bool_]
) -> tuple[Longs, NDArray[Any]]:
    """Which of those `asked` move, and where to: the strongest tie first, until a group is full."""
    from scipy.sparse import csr_array

    links: Ties = csr_array(ties @ membership(group))
    links.sort_indices()
    row = np.repeat(np.arange(len(group)), np.diff(np.asarray(links.indptr, np.int64)))
    column, strength = np.asarray(links.indices), np.asarray(links.data)
    size = np.bincount(group, weight).astype(np.float64)
    own = column == group[row]
    here = np.zeros(len(group))
    here[row[own]] = strength[own]
    gain = strength - here[row]
    possible = asked[row] & ~own & (gain > 0) & (size[column] + weight[row] <= most)
    row, column, gain = row[possible], column[possible], gain[possible]
    order = np.lexsort((column, -gain, row))
    best = order[np.flatnonzero(np.diff(row[order], prepend=-1))]
    return fill_groups(row[best], column[best], gain[best], (weight, size, most))


def fill_groups(
    movers: Longs, targets: NDArray[Any], gain: Floats, room: tuple[Floats, Floats, float]
) -> tuple[Longs, NDArray[Any]]:
    """Those who still have room where they want to go, by what they gain."""
    weight, size, most = room
    order = np.lexsort((movers, -gain, targets))
    movers, targets = movers[order], targets[order]
    total = np.cumsum(weight[movers])
    new = np.flatnonzero(np.diff(targets, prepend=-1))
    before = np.repeat(total[new] - weight[movers[new]], np.diff(np.append(new, len(targets))))
    fits = size[targets] + total - before <= most
    return movers[fits], targets[fits]
