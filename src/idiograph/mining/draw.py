"""Which spans make a triplet: positives by the same author-set, negatives from the same field by nobody of them.

Documents by author-set, by field and by people are plain arrays on disk, laid out by the documents' keys, so that the order of
the corpus does not matter. All documents of a block are drawn for at once, in numpy. A draw depends on the seed, the
document's id and the number of the triplet, never on a neighbour.
"""

from collections import Counter
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from idiograph.mining.catalog import NONE, Catalog
from idiograph.mining.spans import SpanPool
from idiograph.mining.split import SPLITS
from idiograph.recipe import MineRecipe
from idiograph.seeded import below
from idiograph.text.counts import Lexicon, Terms

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

LEXICAL = ("lexical", "matched")  # negatives that are chosen by their words
DRAWS_PER_FIELD = 40  # draws before a field is given up on; one of no more than so many documents is gone through whole
REDRAWS = 8  # draws again where a triplet was there already
ANCHOR, POSITIVE, NEGATIVE, MATE, OTHER, START = range(6)  # what is drawn

NO_LABEL = "an author is not identified"
NO_MATE = "no other document by this author-set"
NO_OTHER_BOOK = "no other document by this author-set outside its book"
NO_SECOND = "no other document by this author-set, nor a second span"
NO_DOMAIN = "no domain"
NO_OTHER = "no document by others in this field"


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

    def group_documents(number: NDArray[Any], within: Longs = zero) -> CandidateGroups:
        whole = np.where(usable & (number != NONE), number.astype(np.int64) * len(SPLITS) + split, NONE)
        return CandidateGroups.by(whole, within, catalog.keys)

    every = np.arange(len(catalog))
    alone = (catalog.container == NONE) | (recipe.containers == "any")
    book = np.where(alone, NONE - 1 - rank_keys(catalog.keys), catalog.container)
    mates = group_documents(catalog.label, book)
    own = own_ranges(mates, book)
    field = group_documents(catalog.field if everyone is None else everyone)
    primary = group_documents(catalog.primary if everyone is None else everyone)
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


@dataclass(frozen=True)
class DrawnTriplets:
    """Triplets as span numbers, with the anchor's document; and why documents gave none."""

    rows: Longs  # (T, 4): document, anchor, positive, negative
    dropped: Counter[str]


@dataclass(frozen=True)
class DrawTask:
    """What a worker is to draw: a rule, where its tables are, and the settings."""

    rule: str
    size: int
    folder: Path
    terms: Path | None
    recipe: MineRecipe


@lru_cache(maxsize=1)
def open_drawing(folder: Path, terms: Path | None) -> tuple[CandidateTables, Lexicon | None]:
    """Once per worker and kind."""
    if terms is None:
        return CandidateTables.load(folder), None
    return CandidateTables.load(folder), Lexicon(Terms.open(terms))


def candidates_per_document(recipe: MineRecipe) -> int:
    """How many candidates are held at once for one document."""
    return recipe.per_document * (DRAWS_PER_FIELD + (recipe.candidates if recipe.negatives in LEXICAL else 1))


def draw_triplets(docs: Longs, task: DrawTask) -> DrawnTriplets:
    """The triplets with an anchor in one of these documents."""
    return TripletDrawing(*open_drawing(task.folder, task.terms), task).triplets(docs)


class TripletDrawing:
    """One rule at work on the tables."""

    def __init__(self, tables: CandidateTables, lexicon: Lexicon | None, task: DrawTask) -> None:
        self.t, self.lexicon, self.recipe, self.size = tables, lexicon, task.recipe, task.size
        self.own = task.rule == "unrestricted"  # may a positive come from the anchor's own document?

    def triplets(self, docs: Longs) -> DrawnTriplets:
        dropped: Counter[str] = Counter()
        docs = self._fit(docs[self.t.usable[docs]], dropped)
        doc = np.repeat(docs, self.recipe.per_document)
        number = np.tile(np.arange(self.recipe.per_document), len(docs))
        rows = self._draw(doc, number, 0)
        for again in range(1, 1 if self.recipe.repeats else REDRAWS):
            repeated = np.flatnonzero(~first_of_each(rows) & (rows != NONE).all(axis=1))
            if not len(repeated):
                break
            rows[repeated] = self._draw(doc[repeated], number[repeated], again)
        if not self.recipe.repeats:
            rows = rows[first_of_each(rows)]
        gone, found = (rows == NONE).any(axis=1), (rows != NONE).all(axis=1)
        barren = np.setdiff1d(rows[gone, 0], rows[found, 0])
        lonely = np.isin(barren, rows[rows[:, 2] == NONE, 0])
        dropped[NO_SECOND] += int(lonely.sum())
        dropped[NO_OTHER] += int((~lonely).sum())
        return DrawnTriplets(rows[found], +dropped)

    def _fit(self, docs: Longs, dropped: Counter[str]) -> Longs:
        """The documents that can be anchors, as far as one sees without drawing."""
        tests = {
            NO_LABEL: self.t.labelled[docs],
            NO_MATE: (self.t.mates_size[docs] > 1) | self.own,
            NO_OTHER_BOOK: (self.t.mates_size[docs] > self.t.own_size[docs]) | self.own,
            NO_DOMAIN: self.t.fielded[docs],
        }
        fit = np.ones(len(docs), dtype=bool)
        for reason, passed in tests.items():
            dropped[reason] += int((fit & ~passed).sum())
            fit &= passed
        return docs[fit]

    def _draw(self, doc: Longs, number: Longs, again: int) -> Longs:
        """One triplet for each document and number: (document, anchor, positive, negative), NONE for what was not found."""
        anchor = self._slot(doc, doc, ANCHOR, number, again)
        positive = self._positive(doc, anchor, number, again)
        negative = self._negative(doc, anchor, positive, number, again)
        return np.stack([doc, anchor, positive, negative], axis=1)

    def _slot(self, owner: Longs, doc: Longs, *draw: ArrayLike) -> Longs:
        """A span of `doc`, drawn for a triplet of `owner`."""
        count = self.t.first[doc + 1] - self.t.first[doc]
        return self.t.first[doc] + below(self.t.keys[owner], count, self.size, *draw)

    def _positive(self, doc: Longs, anchor: Longs, number: Longs, again: int) -> Longs:
        far = self.recipe.positives == "far"
        width = self.recipe.candidates if far else DRAWS_PER_FIELD if self.own else 1
        trial = np.arange(width)[None]
        doc_, number_ = doc[:, None], number[:, None]  # (T, 1)
        mate = self._mate(doc_, number_ // self.recipe.negatives_per_positive, again, trial)  # (T, width)
        span = self._slot(doc_, mate, POSITIVE, number_, again, trial)
        far_enough = np.abs(self.t.at[span] - self.t.at[anchor][:, None]) >= self.size
        fine = (mate != doc_) | (far_enough | self.recipe.repeats)
        if far and self.lexicon:
            scores = np.where(fine, self.lexicon.scores(anchor, span), np.inf)
            return np.where(fine.any(axis=1), pick_from_rows(span, scores.argmin(axis=1)), NONE)
        return np.where(fine.any(axis=1), pick_from_rows(span, fine.argmax(axis=1)), NONE)

    def _mate(self, doc: Longs, number: Longs, again: int, trial: Longs) -> Longs:
        """Another document of the author-set, not of the same book; the document itself where a rule allows and must."""
        own, begin = self.t.own_first[doc], self.t.mates_first[doc]
        others = self.t.mates_size[doc] - self.t.own_size[doc]
        at = begin + below(self.t.keys[doc], others, self.size, MATE, number, again, trial)
        at = np.where(at >= own, at + self.t.own_size[doc], at)
        return np.where(others > 0, self.t.mates[np.minimum(at, len(self.t.mates) - 1)], doc)

    def _negative(self, doc: Longs, anchor: Longs, positive: Longs, number: Longs, again: int) -> Longs:
        """A span from the same field, by nobody of the same people; failing that, from the same primary field."""
        wanted = self.recipe.candidates if self.lexicon and self.recipe.negatives in LEXICAL else 1
        other, fine = self._others(doc, number, again, wanted, "field")
        empty = np.flatnonzero(~fine.any(axis=1))
        if len(empty) and self.recipe.fields == "primary":
            other[empty], fine[empty] = self._others(doc[empty], number[empty], again, wanted, "primary")
        span = self._slot(doc[:, None], other, NEGATIVE, number[:, None], again, np.arange(wanted)[None])
        best = fine.argmax(axis=1) if wanted == 1 else self._best(anchor, positive, span, fine)
        return np.where(fine.any(axis=1), pick_from_rows(span, best), NONE)

    def _best(self, anchor: Longs, positive: Longs, span: Longs, fine: Bools) -> Longs:
        """The candidate that is lexically nearest to the anchor or, for `matched`, as near to it as the positive is."""
        assert self.lexicon is not None
        scores = self.lexicon.scores(anchor, span)
        if self.recipe.negatives == "matched":
            scores = -np.abs(scores - self.lexicon.scores(anchor, np.maximum(positive, 0)[:, None]))
        return np.where(fine, scores, -np.inf).argmax(axis=1)

    def _others(self, doc: Longs, number: Longs, again: int, wanted: int, group: str) -> tuple[Longs, Bools]:
        """The first `wanted` documents drawn from a field that share nobody with `doc`: (T, wanted), and which are there."""
        members: Longs = getattr(self.t, group)
        first, size = (getattr(self.t, f"{group}_{what}")[doc][:, None] for what in ("first", "size"))
        trial = np.arange(wanted - 1 + DRAWS_PER_FIELD)[None]
        key = self.t.keys[doc][:, None]
        start = below(key, size, self.size, START, number[:, None], again)
        drawn = below(key, size, self.size, OTHER, number[:, None], again, trial)
        at = np.where(size <= DRAWS_PER_FIELD, (start + trial) % np.maximum(size, 1), drawn)
        other = members[np.minimum(first + at, len(members) - 1)]
        fine = self._strangers(doc, other) & (size > 0)
        order = np.argsort(~fine, axis=1, kind="stable")[:, :wanted]
        return np.take_along_axis(other, order, axis=1), np.take_along_axis(fine, order, axis=1)

    def _strangers(self, doc: Longs, other: Longs) -> Bools:
        """Which of `other` (T, n) share nobody with `doc` (T,)?"""
        strangers = (self.t.crowd[doc][:, None] & self.t.crowd[other]) == 0
        row, column = np.nonzero(~strangers)
        strangers[row, column] = ~self._share(doc[row], other[row, column])
        return strangers

    def _share(self, one: Longs, other: Longs) -> Bools:
        """Have the documents of each pair an author in common? Each author of the one is looked up among the other's."""
        first = self.t.people_first
        sizes = first[one + 1] - first[one]
        pair = np.repeat(np.arange(len(one)), sizes)
        flat = np.arange(int(sizes.sum())) + (first[one] - np.cumsum(sizes) + sizes)[pair]
        wanted = (other[pair] << 32) + (self.t.people[flat] & 0xFFFFFFFF)
        at = np.minimum(np.searchsorted(self.t.people, wanted), len(self.t.people) - 1)
        return np.bincount(pair, weights=self.t.people[at] == wanted, minlength=len(one)) > 0


def pick_from_rows(table: Longs, column: Longs) -> Longs:
    """One entry of each row."""
    return np.take_along_axis(table, column[:, None], axis=1)[:, 0]


def first_of_each(rows: Longs) -> Bools:
    """Which rows were not there before?"""
    order = np.lexsort(rows.T)
    first = np.ones(len(rows), dtype=bool)
    first[order[1:]] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    return first
