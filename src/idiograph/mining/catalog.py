"""What mining knows of every document without its text: who, which author-set, which field, which split. Columns of numbers,
not objects."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from idiograph.corpus.corpus import MAKE, Corpus
from idiograph.errors import ArtifactError
from idiograph.identity import Byline, Identities, fold_name
from idiograph.mining.coauthors import Bylines
from idiograph.mining.leaks import HeldOutPeople
from idiograph.mining.split import PeopleSplits, Splits, hash_person, split_groups, split_people
from idiograph.recipe import MineRecipe
from idiograph.seeded import Keys, key, keys
from idiograph.types import HAL_FIELDS, field_of, fields_of

Ints = NDArray[np.int32]

COLUMNS = ["id", "authors", "domains", "year", "container", "lang"]
NONE = -1
MIN_FIELD_DOCUMENTS, MIN_FIELD_SHARE = 2, 0.001  # that a field needs, so that negatives can be found in it
TEXTS = pa.list_(pa.string())
DESCRIPTION = pa.schema(
    [("id", pa.string()), ("year", pa.int32()), *((n, TEXTS) for n in ("domain", "affiliations", "authorids"))]
)

IN_SEVERAL_SPLITS = "document: authors are in several splits"
REPEATS_ANOTHER = "document: repeats another"
OTHER_LANGUAGE = "document: language is not the one asked for"
HELD_OUT_ELSEWHERE = "document: it, or one of its authors, is validated or tested on elsewhere"

PersonKeys = Sequence[str | None]  # what stands for each author in the order of the byline; None: nobody knows who
Labeller = Callable[[PersonKeys], frozenset[str]]
NOBODY: frozenset[str] = frozenset()


def is_identified(keys: PersonKeys) -> frozenset[str]:
    """All authors, provided that each is identified: {A, unknown} is not {A}.

    >>> sorted(is_identified(["1", None]))
    []
    """
    return frozenset(filter(None, keys)) if all(keys) else NOBODY


def known_set(keys: PersonKeys) -> frozenset[str]:
    """The identified authors; others are passed over, as in the published protocol."""
    return frozenset(filter(None, keys))


def first_author(keys: PersonKeys) -> frozenset[str]:
    return is_identified(keys[:1])


def last_author(keys: PersonKeys) -> frozenset[str]:
    return is_identified(keys[-1:])


def single_author(keys: PersonKeys) -> frozenset[str]:
    return is_identified(keys) if len(keys) == 1 else NOBODY


LABELS: dict[str, Labeller] = {
    "first": first_author,
    "identified": is_identified,
    "last": last_author,
    "set": known_set,
    "single": single_author,
}


@dataclass(frozen=True)
class RaggedRows:
    """Rows of different lengths: row `at` is `values[first[at] : first[at + 1]]`."""

    first: NDArray[np.int64]
    values: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> "RaggedRows":
        sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        values = np.fromiter((v for row in rows for v in row), dtype=np.int32, count=int(sizes.sum()))
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), values)

    @classmethod
    def join(cls, parts: Sequence["RaggedRows"]) -> "RaggedRows":
        sizes = np.concatenate([np.diff(part.first) for part in parts])
        return cls(np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([part.values for part in parts]))

    def renumber(self, numbers: Ints) -> "RaggedRows":
        return RaggedRows(self.first, numbers[self.values])

    @property
    def owner(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


@dataclass(frozen=True)
class Catalog:
    """One entry a document, in the order of the corpus."""

    shown: pa.Table  # what is written beside a span
    keys: Keys
    label: Ints  # number of the author-set, or NONE
    people: RaggedRows  # persons, joined by id and by name: nobody may be shared with a negative
    field: Ints  # number of the set of domains, or NONE
    primary: Ints
    container: NDArray[np.int64]  # a hash of its name, whatever the order of the corpus, or NONE
    split: Splits  # NONE: left out
    langs: Mapping[str, int]
    dropped: Mapping[str, int]
    writers: PeopleSplits  # everybody whom the corpus names; nobody where triplets are split one by one

    def __len__(self) -> int:
        return len(self.keys)

    def without(self, which: NDArray[np.bool_], reason: str) -> "Catalog":
        """The same documents, those of `which` left out of every split."""
        count = int((which & (self.split != NONE)).sum())
        dropped = {**self.dropped, reason: count} if count else self.dropped
        return replace(self, split=np.where(which, NONE, self.split).astype(np.int8), dropped=dropped)


class Numbers(dict[Any, int]):
    """Numbers things in the order in which they first come."""

    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


def read_catalog(
    corpus: Corpus, recipe: MineRecipe, held_out: HeldOutPeople | None = None, known: PeopleSplits | None = None
) -> Catalog:
    """Everything but the texts, a shard at a time.

    Whoever and whatever is in `held_out` is not in train; whoever is `known` stays in their split.
    """
    with _readable(corpus):
        reading = _Reading(recipe, corpus.identities, _kept_fields(corpus, recipe))
        for path in corpus.paths:
            reading.add(pq.ParquetFile(path).read(columns=COLUMNS).to_pylist())
    return reading.result(held_out or HeldOutPeople(), known or PeopleSplits.nobody())


def names_fields(corpus: Corpus) -> bool:
    """Does any document say what field it is from?"""
    with _readable(corpus):
        read = (pq.ParquetFile(path).read(columns=["domains"]).column("domains") for path in corpus.paths)
        return any(len(chunk.flatten()) for column in read for chunk in column.chunks)


@contextmanager
def _readable(corpus: Corpus) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        what = str(error).splitlines()[0]
        raise ArtifactError(f"corpus '{corpus.folder}' is damaged ({what}); make it again: {MAKE}") from error


def published_keys(byline: Byline, identities: Identities) -> PersonKeys:
    """The ids, as the published code has it; names where nobody in the corpus has an id."""
    return [(author["id"] if identities.named else fold_name(author["name"])) or None for author in byline]


def _kept_fields(corpus: Corpus, recipe: MineRecipe) -> frozenset[str] | None:
    """The fields that count, or None for all."""
    if recipe.field_codes == "all":
        return None
    if recipe.field_codes == "13":
        return HAL_FIELDS
    return (
        frozenset(count_fields(corpus))
        if recipe.field_codes == "auto"
        else frozenset(map(field_of, recipe.field_codes))
    )


def count_fields(corpus: Corpus) -> dict[str, int]:
    """The fields with documents enough to draw negatives from, and how many they have, most first."""
    read = (pq.ParquetFile(path).read(columns=["domains"]).column("domains").to_pylist() for path in corpus.paths)
    counts = Counter(name for rows in read for domains in rows for name in fields_of(domains))
    least = max(MIN_FIELD_DOCUMENTS, MIN_FIELD_SHARE * len(corpus))
    return {name: count for name, count in counts.most_common() if count >= least}


class _Reading:
    """The columns while shards go by; of each shard only arrays are kept."""

    def __init__(self, recipe: MineRecipe, identities: Identities, fields: frozenset[str] | None) -> None:
        self.recipe, self.identities, self.kept = recipe, identities, fields
        self.names, self.sets, self.fields = Numbers(), Numbers(), Numbers()
        self.langs, self.ties = Counter[str](), set[tuple[int, int]]()  # ties of an id and a name
        self.people, self.labels = list[RaggedRows](), list[RaggedRows]()
        self.columns, self.foreign = list[Ints](), list[NDArray[np.bool_]]()
        self.tables, self.keys, self.books = list[pa.Table](), list[Keys](), list[NDArray[np.int64]]()

    def add(self, rows: list[dict[str, Any]]) -> None:
        bylines = [row["authors"] or () for row in rows]
        labels = [LABELS[self.recipe.label](self._keys(byline)) for byline in bylines]
        kinds = [self._kinds(byline, label) for byline, label in zip(bylines, labels, strict=True)]
        marked = [tuple(self.names[each] for each in kind) for kind in kinds]
        self.labels.append(RaggedRows.of(marked))
        self.people.append(RaggedRows.of(list(map(self._people, bylines))))
        fields = list(map(self._fields, rows))
        self.columns.append(np.array(list(map(self._numbers, fields, marked)), dtype=np.int32))
        shown = map(_describe_document, rows, labels, fields)
        self.tables.append(pa.Table.from_pylist(list(shown), DESCRIPTION))
        self.keys.append(keys(self.recipe.seed, (row["id"] for row in rows)))
        books = (key(0, row["container"]) >> 1 if row["container"] else NONE for row in rows)
        self.books.append(np.fromiter(books, dtype=np.int64, count=len(rows)))
        self.langs.update(row["lang"] for row in rows)
        self.foreign.append(np.array([self.recipe.lang not in ("any", row["lang"]) for row in rows], dtype=bool))

    def _keys(self, byline: Byline) -> PersonKeys:
        """What stands for each author."""
        published = self.recipe.identity == "ids"
        return published_keys(byline, self.identities) if published else self.identities.keys(byline)

    def _kinds(self, byline: Byline, label: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Whether each key of a label is an id or a name."""
        names = {fold_name(author["name"]) for author in byline if not author["id"]} - self.identities.named.keys()
        return (("name" if each in names else "id", each) for each in sorted(label))

    def _fields(self, row: Mapping[str, Any]) -> list[str]:
        """The fields of a document that count, the primary one first."""
        return [name for name in fields_of(row["domains"] or ()) if self.kept is None or name in self.kept]

    def _numbers(self, fields: Sequence[str], marked: tuple[int, ...]) -> tuple[int, int, int]:
        """Author-set, fields and primary field of a document."""
        return (
            self.sets[marked] if marked else NONE,
            self.fields[frozenset(fields)] if fields else NONE,
            self.fields[fields[0]] if fields else NONE,
        )

    def _people(self, authors: Byline) -> list[int]:
        """Numbers of names, tied to those of ids: the two are one person wherever either stands."""
        names = [self.names["name", fold_name(author["name"])] for author in authors]
        for author, name in zip(authors, names, strict=True):
            if author["id"]:
                for number in {author["id"], self.identities.id_of(author["id"])}:
                    self.ties.add((self.names["id", number], name))
        return list(dict.fromkeys(names))

    def result(self, held_out: HeldOutPeople, known: PeopleSplits) -> Catalog:
        person = _join_documents(len(self.names), self.ties)
        people, labels = (RaggedRows.join(parts).renumber(person) for parts in (self.people, self.labels))
        label, field, primary = np.concatenate(self.columns).T
        who = hash_names(self.names)
        by_person = self._people_splits(person, people, latest_splits(person, known.look_up(who)))
        where = self._document_splits(by_person, people, labels, label)
        catalog = Catalog(
            shown=pa.concat_tables(self.tables),
            keys=np.concatenate(self.keys),
            label=label,
            people=people,
            field=field,
            primary=primary,
            container=np.concatenate(self.books),
            split=np.zeros(len(label), dtype=np.int8),
            langs=self.langs,
            dropped={},
            writers=PeopleSplits.nobody(),
        ).without(np.concatenate(self.foreign), OTHER_LANGUAGE)
        if self.recipe.split != "triplet":
            catalog = catalog.without(where == NONE, IN_SEVERAL_SPLITS)
            where = np.where(catalog.split == NONE, NONE, where).astype(np.int8)
            catalog = replace(catalog, split=where, writers=PeopleSplits.of(who, by_person[person]))
        held = (catalog.split == 0) & self._held_out(catalog, person, labels, held_out)
        return catalog.without(held, HELD_OUT_ELSEWHERE)

    def _held_out(
        self, catalog: Catalog, person: Ints, labels: RaggedRows, held_out: HeldOutPeople
    ) -> NDArray[np.bool_]:
        """The documents that are in `held_out`, or have an author who is."""
        known = [(kind, name) for name in held_out.people for kind in ("id", "name")]
        them = person[np.array([self.names[one] for one in known if one in self.names], dtype=np.int64)]
        held_out_rows = np.isin(np.array(catalog.shown.column("id")), list(held_out.documents))
        for people in (catalog.people, labels):
            held_out_rows[people.owner[np.isin(people.values, them)]] = True
        return held_out_rows

    def _people_splits(self, person: Ints, people: RaggedRows, known: Splits) -> Splits:
        """The split of each person, by the recipe; who is known stays."""
        if self.recipe.split == "triplet":
            return np.zeros(len(known), dtype=np.int8)
        names = _least_name(person, self.names)
        if self.recipe.split == "people":
            return np.where(known == NONE, split_people(names, self.recipe.fractions, self.recipe.seed), known)
        shuffled = np.argsort(keys(self.recipe.seed, (f"group\0{name}" for name in names)), kind="stable")
        place = np.empty_like(shuffled)
        place[shuffled] = np.arange(len(shuffled))
        bylines = Bylines(*distinct_people(people, place), len(shuffled))
        return split_groups(bylines, self.recipe.fractions, known[shuffled])[place]

    def _document_splits(self, by_person: Splits, people: RaggedRows, labels: RaggedRows, label: Ints) -> Splits:
        if self.recipe.split == "people":
            return writer_splits(by_person, people, labels, label)
        return document_splits(by_person[people.values], people.owner, len(label))


def _describe_document(row: Mapping[str, Any], label: frozenset[str], fields: Sequence[str]) -> dict[str, Any]:
    """What is written beside a span. Without an author-set, everybody is named."""
    authors = row["authors"] or ()
    affiliations = sorted({a for author in authors for a in author["affiliations"] or ()})
    people = sorted(label or {author["id"] or fold_name(author["name"]) for author in authors})
    about = {"domain": fields, "affiliations": affiliations, "authorids": people}
    return {"id": row["id"], "year": row["year"], **about}


def _join_documents(count: int, ties: Iterable[tuple[int, int]]) -> Ints:
    """The person behind each name and id: those tied to each other, directly or through others, are one."""
    from scipy.sparse import coo_array  # a tenth of a second, which who only asks for a name need not wait for
    from scipy.sparse.csgraph import connected_components

    edges = np.array(sorted(ties), dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1].astype(np.int32)


def _least_name(person: Ints, names: Mapping[Any, int]) -> Iterator[str]:
    """For each person the least of their names and ids, which does not depend on the order of the corpus."""
    best: list[str] = [""] * (int(person.max(initial=NONE)) + 1)
    for (_, name), number in names.items():
        at = person[number]
        if not best[at] or name < best[at]:
            best[at] = name
    return iter(best)


def hash_names(names: Mapping[Any, int]) -> Keys:
    """What stands in a file for each name and id, in their order."""
    return np.fromiter((hash_person(kind, name) for kind, name in names), dtype=np.uint64, count=len(names))


def latest_splits(person: Ints, split: Splits) -> Splits:
    """The split of each person: the latest of their names and ids."""
    latest = np.full(int(person.max(initial=NONE)) + 1, NONE, dtype=np.int8)
    np.maximum.at(latest, person, split)
    return latest


def distinct_people(people: RaggedRows, number: NDArray[np.int64]) -> tuple[NDArray[np.int64], Ints]:
    """The people of each document under other numbers, each once: two names on one byline may be one person."""
    pairs = np.unique(people.owner * len(number) + number[people.values])
    sizes = np.bincount(pairs // len(number), minlength=len(people.first) - 1)
    return np.concatenate([[0], np.cumsum(sizes)]), (pairs % len(number)).astype(np.int32)


def writer_splits(by_person: Splits, people: RaggedRows, labels: RaggedRows, label: Ints) -> Splits:
    """The split that the writers of a document agree on, or NONE.

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
    return document_splits(vote, owner, len(label))


def document_splits(vote: Splits, owner: NDArray[np.int64], count: int) -> Splits:
    """The split that all votes on a document agree on, or NONE."""
    low, high = np.full(count, 127, dtype=np.int8), np.full(count, NONE, dtype=np.int8)
    np.minimum.at(low, owner, vote)
    np.maximum.at(high, owner, vote)
    return np.where(low == high, low, NONE).astype(np.int8)
