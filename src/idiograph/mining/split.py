"""Who is in train, valid and test, before any mining, so that a triplet cannot cross splits.

By groups of co-authors, whole groups in one split, so that work of several authors is in all three; or person by person,
by a hash of the name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from idiograph.mining.coauthors import DOCUMENT, Bylines, Floats, Ties, coauthor_ties, find_groups, merge_ties
from idiograph.seeded import Keys, hash_text, key

SPLITS = ("train", "valid", "test")
Splits = NDArray[np.int8]  # places in SPLITS
UNDECIDED = -1
PEOPLE_FILE = "people.parquet"
MAX_GROUP_SHARE = 0.01  # of all documents: ten groups fill a split of a tenth
SIZES_BALANCED = 4  # documents by one, two, three, and four or more people are shared out alike
BALANCE = 3.0  # documents lost that are as bad as one of imbalance, as chi-squared counts it
ROUNDS = 4  # in which every group may change its split once


def place_draws(draws: ArrayLike, fractions: Sequence[float]) -> Splits:
    """The split of each draw from [0, 1): `fractions` of them in train, valid and test."""
    edges = np.cumsum(fractions)[:-1] / sum(fractions)
    return np.searchsorted(edges, np.atleast_1d(draws), side="right").astype(np.int8)


def split_people(names: Iterable[str], fractions: Sequence[float], seed: int) -> Splits:
    """The split of each person, by name and seed alone."""
    draws = np.fromiter((key(seed, "split", name) / 2.0**64 for name in names), dtype=np.float64)
    return place_draws(draws, fractions)


def split_groups(bylines: Bylines, fractions: Sequence[float], known: Splits) -> Splits:
    """The split of each person: that of their group, or the one that is `known`.

    The numbers of the people are to be shuffled, since they decide between equals.
    """
    if not len(bylines.people):
        return np.zeros(bylines.count, dtype=np.int8)
    ties = coauthor_ties(bylines)
    group = find_groups(bylines, ties, MAX_GROUP_SHARE, known != UNDECIDED)
    given = np.full(int(group.max()) + 1, UNDECIDED, dtype=np.int8)
    given[group] = known  # who is known is alone in a group
    profiles = bylines.profiles(group, SIZES_BALANCED) / DOCUMENT
    return deal_groups(merge_ties(ties, group), profiles, fractions, given)[group]


def deal_groups(ties: Ties, profiles: Floats, fractions: Sequence[float], given: Splits) -> Splits:
    """The split of each group, large ones first: few ties are cut, and each split has its share of every size."""
    table = DealtGroups(ties, profiles, fractions, given)
    magnitude = np.floor(np.log2(np.maximum(profiles.sum(axis=1), 2.0**-20)))
    order = [at for at in np.argsort(-magnitude, kind="stable").tolist() if given[at] == UNDECIDED]
    for _ in range(ROUNDS):
        if not sum(map(table.place, order)):
            break
    return np.array(table.split, dtype=np.int8)


class DealtGroups:
    """Groups with the splits they are in so far. Plain lists: it is asked for one number at a time."""

    def __init__(self, ties: Ties, profiles: Floats, fractions: Sequence[float], given: Splits) -> None:
        self.first, self.other = ties.indptr.tolist(), ties.indices.tolist()
        self.tie, self.profiles = (ties.data / DOCUMENT).tolist(), profiles.tolist()
        self.split: list[int] = given.tolist()
        want = np.outer(fractions, profiles.sum(axis=0)) / sum(fractions)
        self.want = want.tolist()
        self.price = np.divide(BALANCE, want, out=np.zeros_like(want), where=want > 0).tolist()
        self.have = [profiles[given == at].sum(axis=0).tolist() for at in range(len(fractions))]
        self.allowed = [at for at, share in enumerate(fractions) if share > 0]

    def place(self, group: int) -> bool:
        """Put a group where it costs least; says whether that is somewhere else than before."""
        before, links = self.split[group], self._links(group)
        self._count(before, group, -1)
        self.split[group] = min(self.allowed, key=lambda at: self._imbalance(at, group) - links[at])
        self._count(self.split[group], group, 1)
        return self.split[group] != before

    def _links(self, group: int) -> list[float]:
        """How many documents tie a group to each split."""
        links = [0.0] * len(self.have)
        for place in range(self.first[group], self.first[group + 1]):
            where = self.split[self.other[place]]
            if where != UNDECIDED:
                links[where] += self.tie[place]
        return links

    def _imbalance(self, split: int, group: int) -> float:
        """By how much chi-squared grows if a group comes to a split."""
        columns = zip(self.profiles[group], self.have[split], self.want[split], self.price[split], strict=True)
        return sum(price * more * (2 * (have - want) + more) for more, have, want, price in columns)

    def _count(self, split: int, group: int, sign: int) -> None:
        if split != UNDECIDED:
            rows = zip(self.have[split], self.profiles[group], strict=True)
            self.have[split] = [have + sign * more for have, more in rows]


@dataclass(frozen=True, slots=True)
class PeopleSplits:
    """Who is in which split, by a hash of each name and id, so that the file names nobody."""

    who: Keys  # in order, each once
    split: Splits
    doubled: int = 0  # who were given with two splits

    @classmethod
    def of(cls, who: Keys, split: Splits) -> "PeopleSplits":
        """Of somebody who is in several, the latest counts: test is kept whole."""
        order = np.argsort(who, kind="stable")
        distinct, first = np.unique(who[order], return_index=True)
        if not len(distinct):
            return cls.nobody()
        latest, earliest = np.maximum.reduceat(split[order], first), np.minimum.reduceat(split[order], first)
        return cls(distinct, latest.astype(np.int8), int((latest != earliest).sum()))

    @classmethod
    def nobody(cls) -> "PeopleSplits":
        return cls(np.zeros(0, np.uint64), np.zeros(0, np.int8))

    def look_up(self, who: Keys) -> Splits:
        """The split of each, or UNDECIDED."""
        if not len(self.who):
            return np.full(len(who), UNDECIDED, dtype=np.int8)
        at = np.minimum(np.searchsorted(self.who, who), len(self.who) - 1)
        return np.where(self.who[at] == who, self.split[at], UNDECIDED).astype(np.int8)

    def save(self, folder: Path) -> None:
        splits = pa.DictionaryArray.from_arrays(pa.array(self.split), pa.array(SPLITS))
        table = pa.table({"who": pa.array(self.who), "split": splits})
        pq.write_table(table, folder / PEOPLE_FILE, compression="zstd")

    @classmethod
    def load(cls, folder: Path) -> "PeopleSplits":
        table = pq.read_table(folder / PEOPLE_FILE, columns=["who", "split"])
        places = {name: at for at, name in enumerate(SPLITS)}
        split = np.array([places[name] for name in table.column("split").to_pylist()], dtype=np.int8)
        return cls.of(table.column("who").to_numpy(), split)


def hash_person(kind: str, name: str) -> int:
    """What stands for a person's `name` or `id` in `people.parquet`.

    >>> hash_person("name", "ada lovelace")
    10692962093065386568
    """
    return hash_text(f"{kind}\0{name}")
