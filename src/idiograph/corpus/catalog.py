"""What mining knows of every document without its text: who, which field, which split. Columns of numbers, not objects."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from idiograph.corpus.chance import Keys, keys
from idiograph.corpus.documents import Corpus
from idiograph.corpus.labels import LABELS
from idiograph.corpus.split import Splits, split_people
from idiograph.recipe import MineRecipe
from idiograph.types import fold

Ints = NDArray[np.int32]

HAL_DOMAINS = frozenset("shs info sdv spi phys math chim sde sdu scco stat qfin nlin".split())
COLUMNS = ["id", "authors", "domains", "year", "container", "lang"]
NONE = -1
TEXTS = pa.list_(pa.string())
SHOWN = pa.schema(
    [("id", pa.string()), ("year", pa.int32()), *((n, TEXTS) for n in ("domain", "affiliations", "authorids"))]
)

SEVERAL = "document: authors are in several splits"
REPEATED = "document: repeats another"
FOREIGN = "document: language is not the one asked for"


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: row `at` is `values[first[at] : first[at + 1]]`."""

    first: NDArray[np.int64]
    values: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> "Ragged":
        sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        values = np.fromiter((v for row in rows for v in row), dtype=np.int32, count=int(sizes.sum()))
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), values)

    @property
    def owner(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


@dataclass(frozen=True)
class Catalog:
    """One entry a document, in the order of the corpus."""

    shown: pa.Table  # what is written beside a span
    keys: Keys
    label: Ints  # number of the author-set, or NONE
    people: Ragged  # persons, joined by id and by name: nobody may be shared with a negative
    field: Ints  # number of the set of domains, or NONE
    primary: Ints
    container: Ints
    split: Splits  # NONE: left out
    langs: Mapping[str, int]
    dropped: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.keys)

    def without(self, which: NDArray[np.bool_], reason: str) -> "Catalog":
        """The same documents, those of `which` left out of every split."""
        found = int((which & (self.split != NONE)).sum())
        dropped = {**self.dropped, reason: found} if found else self.dropped
        return replace(self, split=np.where(which, NONE, self.split).astype(np.int8), dropped=dropped)


class Numbers(dict[Any, int]):
    """Numbers things in the order in which they first come."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


def field_of(domain: str) -> str:
    """HAL's dotted codes count by their first part; other labels as they are.

    >>> field_of("shs.langue"), field_of("cs.CL")
    ('shs', 'cs.CL')
    """
    top = domain.partition(".")[0]
    return top if top in HAL_DOMAINS else domain


def read_catalog(corpus: Corpus, recipe: MineRecipe) -> Catalog:
    """Everything but the texts, a shard at a time."""
    reading = _Reading(recipe, any(_has_ids(path) for path in corpus.paths))
    for path in corpus.paths:
        reading.add(pq.ParquetFile(path).read(columns=COLUMNS).to_pylist())
    return reading.result()


def _has_ids(path: Path) -> bool:
    found = pq.ParquetFile(path).read(columns=["authors.list.element.id"]).column("authors")
    return any(author["id"] for authors in found.to_pylist() for author in authors)


class _Reading:
    """The columns while shards go by."""

    def __init__(self, recipe: MineRecipe, ids: bool) -> None:
        self.recipe, self.ids = recipe, ids
        self.names, self.sets, self.fields, self.books = Numbers(), Numbers(), Numbers(), Numbers()
        self.folded: dict[str, str] = {}
        self.people: list[tuple[int, ...]] = []
        self.labels: list[tuple[int, ...]] = []
        self.columns: list[tuple[int, int, int, int]] = []  # label, field, primary, container
        self.ties: set[tuple[int, int]] = set()  # of an id and a name
        self.tables: list[pa.Table] = []
        self.keys: list[Keys] = []
        self.langs: list[str] = []

    def add(self, rows: list[dict[str, Any]]) -> None:
        shown = [self._row(row) for row in rows]
        self.tables.append(pa.Table.from_pylist(shown, SHOWN))
        self.keys.append(keys(self.recipe.seed, (row["id"] for row in rows)))
        self.langs += [row["lang"] for row in rows]

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        names = [self._person(author) for author in row["authors"]]
        label = LABELS[self.recipe.label](row["authors"], self.ids)
        marked = tuple(self.names["id" if self.ids else "name", key] for key in sorted(label))
        domains = [field_of(domain) for domain in row["domains"] or ()]
        self.people.append(tuple(dict.fromkeys(names)))
        self.labels.append(marked)
        self.columns.append(
            (
                self.sets[marked] if marked else NONE,
                self.fields[frozenset(domains)] if domains else NONE,
                self.fields[domains[0]] if domains else NONE,
                self.books[row["container"]] if row["container"] else NONE,
            )
        )
        affiliations = sorted({a for author in row["authors"] for a in author["affiliations"] or ()})
        people = sorted(label) or sorted({a["id"] or self._fold(a["name"]) for a in row["authors"]})
        shown = {"domain": row["domains"], "affiliations": affiliations, "authorids": people}
        return {"id": row["id"], "year": row["year"], **shown}

    def _person(self, author: Mapping[str, Any]) -> int:
        """The number of a person's name, tied to that of the id: the two are one person wherever either stands."""
        name = self.names["name", self._fold(author["name"])]
        if author["id"]:
            self.ties.add((self.names["id", author["id"]], name))
        return name

    def _fold(self, name: str) -> str:
        if name not in self.folded:
            self.folded[name] = fold(name)
        return self.folded[name]

    def result(self) -> Catalog:
        person = _joined(len(self.names), self.ties)
        people = Ragged.of(self.people)
        people = Ragged(people.first, person[people.values])
        label, field, primary, container = np.array(self.columns, dtype=np.int32).reshape(-1, 4).T
        labels = Ragged.of(self.labels)
        labels = Ragged(labels.first, person[labels.values])
        where = self._splits(person, people, labels, label)
        catalog = Catalog(
            shown=pa.concat_tables(self.tables),
            keys=np.concatenate(self.keys),
            label=label,
            people=people,
            field=field,
            primary=primary,
            container=container,
            split=where,
            langs=Counter(self.langs),
            dropped={SEVERAL: several} if (several := int((where == NONE).sum())) else {},
        )
        if self.recipe.lang == "any":
            return catalog
        return catalog.without(np.array([lang != self.recipe.lang for lang in self.langs]), FOREIGN)

    def _splits(self, person: Ints, people: Ragged, labels: Ragged, label: Ints) -> Splits:
        if self.recipe.split == "triplet":
            return np.zeros(len(label), dtype=np.int8)
        by_person = split_people(_least(person, self.names), self.recipe.fractions, self.recipe.seed)
        return document_splits(by_person, people, labels, label)


def _joined(count: int, ties: Iterable[tuple[int, int]]) -> Ints:
    """The person behind each name and id: those tied to each other, directly or through others, are one."""
    edges = np.array(sorted(ties), dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1].astype(np.int32)


def _least(person: Ints, names: Mapping[Any, int]) -> Iterator[str]:
    """For each person the least of their names and ids, which does not depend on the order of the corpus."""
    best: list[str] = [""] * (int(person.max(initial=NONE)) + 1)
    for (_, name), number in names.items():
        at = person[number]
        if not best[at] or name < best[at]:
            best[at] = name
    return iter(best)


def document_splits(by_person: Splits, people: Ragged, labels: Ragged, label: Ints) -> Splits:
    """The split that all the people of a document agree on, or NONE.

    Those of its author-set are asked (all, if it has none), and any co-author who is in the author-set of other documents:
    somebody whose style is tested must not have written in train.
    """
    sizes = np.bincount(label[label >= 0], minlength=1)
    recurring = np.where(label >= 0, sizes[label] > 1, False)
    marked = np.zeros(len(by_person), dtype=bool)
    marked[labels.values[np.repeat(recurring, np.diff(labels.first))]] = True
    asked = (label == NONE)[people.owner] | marked[people.values]
    owner = np.concatenate([people.owner[asked], labels.owner])
    vote = np.concatenate([by_person[people.values[asked]], by_person[labels.values]])
    low, high = np.full(len(label), 127, dtype=np.int8), np.full(len(label), NONE, dtype=np.int8)
    np.minimum.at(low, owner, vote)
    np.maximum.at(high, owner, vote)
    return np.where(low == high, low, NONE).astype(np.int8)
