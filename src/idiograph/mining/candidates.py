"""The tables that triplets are drawn from: documents by author-set, by field and by people, as plain arrays on disk.

Groups are laid out by the documents' keys, so that the order of the corpus does not matter.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.mining.catalog import NONE, Catalog
from idiograph.mining.spans import SpanPool
from idiograph.mining.split import SPLITS
from idiograph.recipe import MineRecipe

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class CandidateGroups:
    """Documents in groups: `members[first[g] : first[g + 1]]` are those of group g; `of` is a document's group or NONE."""

    members: Longs
    first: Longs
    of: Longs

    @classmethod
    def by(cls, number: Longs, within: Longs, keys: NDArray[np.uint64]) -> "CandidateGroups":
        """Group documents by number (NONE: in no group), ordered by `within` and then by key."""
        order = np.lexsort((keys, within, number))
        order = order[number[order] != NONE]
        _, starts, dense = np.unique(number[order], return_index=True, return_inverse=True)
        of = np.full(len(number), NONE, dtype=np.int64)
        of[order] = dense
        return cls(order, np.append(starts, len(order)).astype(np.int64), of)

    def start(self, docs: Longs) -> Longs:
        """Where the group of each document begins in `members`; 0 where there is none."""
        return np.where(self.of[docs] == NONE, 0, self.first[self.of[docs]])

    def size(self, docs: Longs) -> Longs:
        return np.where(self.of[docs] == NONE, 0, self.first[self.of[docs] + 1] - self.first[self.of[docs]])


@dataclass(frozen=True)
class CandidateTables:
    """All that drawing needs, as plain arrays: saved once, mapped by every worker."""

    keys: NDArray[np.uint64]
    usable: Bools  # in a split, and with spans
    labelled: Bools
    fielded: Bools
    first: Longs  # spans of a document
    at: NDArray[np.int32]  # first sentence of a span
    mates: Longs  # documents by author-set, those of one book together
    mates_first: Longs  # where the author-set of a document begins
    mates_size: Longs
    own_first: Longs  # where its own book, or it alone, begins
    own_size: Longs
    field: Longs
    field_first: Longs
    field_size: Longs
    primary: Longs
    primary_first: Longs
    primary_size: Longs
    people_first: Longs
    people: Longs  # document · 2^32 + person, in order
    crowd: NDArray[np.uint64]  # 64 bits of who wrote it: no common bit, nobody in common

    def save(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for field in fields(self):
            np.save(folder / f"{field.name}.npy", getattr(self, field.name))

    @classmethod
    def load(cls, folder: Path) -> "CandidateTables":
        return cls(**{f.name: np.load(folder / f"{f.name}.npy", mmap_mode="r") for f in fields(cls)})


def make_tables(catalog: Catalog, pool: SpanPool, recipe: MineRecipe) -> CandidateTables:
    """The tables for one kind of span. Only documents that have spans are drawn from."""
    usable = (catalog.split != NONE) & (pool.counts > 0)
    split = catalog.split.astype(np.int64)
    zero = np.zeros(len(catalog), dtype=np.int64)
    everyone = zero if recipe.negatives == "any" else None

    def grouped(number: NDArray[Any], within: Longs = zero) -> CandidateGroups:
        whole = np.where(usable & (number != NONE), number.astype(np.int64) * len(SPLITS) + split, NONE)
        return CandidateGroups.by(whole, within, catalog.keys)

    every = np.arange(len(catalog))
    alone = (catalog.container == NONE) | (recipe.containers == "any")
    book = np.where(alone, NONE - 1 - rank_keys(catalog.keys), catalog.container)
    mates = grouped(catalog.label, book)
    own = own_ranges(mates, book)
    field = grouped(catalog.field if everyone is None else everyone)
    primary = grouped(catalog.primary if everyone is None else everyone)
    return CandidateTables(
        keys=catalog.keys,
        usable=usable,
        labelled=catalog.label != NONE,
        fielded=np.array(field.of != NONE),
        first=pool.first,
        at=pool.at,
        mates=mates.members,
        mates_first=mates.start(every),
        mates_size=mates.size(every),
        own_first=own[0],
        own_size=own[1],
        field=field.members,
        field_first=field.start(every),
        field_size=field.size(every),
        primary=primary.members,
        primary_first=primary.start(every),
        primary_size=primary.size(every),
        people_first=catalog.people.first,
        people=np.sort((catalog.people.owner << 32) + catalog.people.values),
        crowd=crowd_sizes(catalog),
    )


def rank_keys(keys: NDArray[np.uint64]) -> Longs:
    return np.argsort(np.argsort(keys, kind="stable"), kind="stable")


def own_ranges(mates: CandidateGroups, book: Longs) -> tuple[Longs, Longs]:
    """For each document where those of its own book begin in its author-set, and how many they are: at least itself."""
    members = mates.members
    first, size = np.zeros(len(book), dtype=np.int64), np.zeros(len(book), dtype=np.int64)
    if len(members):
        new = np.ones(len(members), dtype=bool)
        new[1:] = (book[members][1:] != book[members][:-1]) | (mates.of[members][1:] != mates.of[members][:-1])
        starts = np.flatnonzero(new)
        run = np.cumsum(new) - 1
        first[members] = starts[run]
        size[members] = np.diff(np.append(starts, len(members)))[run]
    return first, size


def crowd_sizes(catalog: Catalog) -> NDArray[np.uint64]:
    bits = np.uint64(1) << (catalog.people.values.astype(np.uint64) % np.uint64(64))
    found = np.zeros(len(catalog), dtype=np.uint64)
    np.bitwise_or.at(found, catalog.people.owner, bits)
    return found
