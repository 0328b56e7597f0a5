"""From a corpus to triplets. The positive is by the same author-set but from another document; the negative shares the
field and no author. Everything is drawn by (seed, document id): order and number of workers do not matter."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from idiograph.corpus.card import write_triplet_card
from idiograph.corpus.documents import Corpus
from idiograph.corpus.spans import SpanPool, check_language, draw_spans
from idiograph.corpus.split import SPLITS, draw, split_of_all
from idiograph.corpus.triplets import ROLES, columns, write_shards
from idiograph.errors import InputError
from idiograph.recipe import MineRecipe
from idiograph.store import Manifest, draft, seal
from idiograph.types import fold

TRIES = 40  # random draws before a document is given up on; a field with so few others is rare
BLOCK = 4096  # rows written at once
HAL_DOMAINS = frozenset("shs info sdv spi phys math chim sde sdu scco stat qfin nlin".split())

Labeller = Callable[[Sequence[Mapping[str, Any]], bool], frozenset[str]]
Numbers = tuple[int, int, int]  # span numbers of anchor, positive, negative
EMPTY: frozenset[str] = frozenset()


def key_of(author: Mapping[str, Any], ids: bool) -> str | None:
    """What stands for a person: the id in a corpus that has ids, else the folded name."""
    return author["id"] if ids else fold(author["name"])


def identified(authors: Sequence[Mapping[str, Any]], ids: bool) -> frozenset[str]:
    """All authors, provided that each is identified: {A, unknown} is not {A}."""
    keys = [key_of(author, ids) for author in authors]
    return frozenset(filter(None, keys)) if all(keys) else EMPTY


def known_set(authors: Sequence[Mapping[str, Any]], ids: bool) -> frozenset[str]:
    """The identified authors; others are passed over, as the paper does."""
    return frozenset(filter(None, (key_of(author, ids) for author in authors)))


def first(authors: Sequence[Mapping[str, Any]], ids: bool) -> frozenset[str]:
    return identified(authors[:1], ids)


def last(authors: Sequence[Mapping[str, Any]], ids: bool) -> frozenset[str]:
    return identified(authors[-1:], ids)


def single(authors: Sequence[Mapping[str, Any]], ids: bool) -> frozenset[str]:
    return identified(authors, ids) if len(authors) == 1 else EMPTY


LABELS: dict[str, Labeller] = {
    "first": first,
    "identified": identified,
    "last": last,
    "set": known_set,
    "single": single,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What mining needs to know of a document, without its text."""

    id: str
    label: frozenset[str]
    people: frozenset[str]  # ids and folded names: nobody may be shared with a negative
    field: frozenset[str]
    primary: str
    split: str | None
    container: str


def entries(corpus: Corpus, recipe: MineRecipe) -> list[Entry]:
    rows = corpus.table.select("id", "authors", "domains", "container").iter_rows(named=True)
    rows = list(rows)
    ids = any(author["id"] for row in rows for author in row["authors"])
    return [entry(row, recipe, ids) for row in rows]


def entry(row: Mapping[str, Any], recipe: MineRecipe, ids: bool) -> Entry:
    people = frozenset(fold(a["name"]) for a in row["authors"]) | frozenset(a["id"] for a in row["authors"] if a["id"])
    label = LABELS[recipe.label](row["authors"], ids)
    fields = [field_of(domain) for domain in row["domains"]]
    by_author = recipe.split == "author"
    everyone = label or people
    split = split_of_all(everyone, recipe.fractions, recipe.seed) if by_author else "all"
    return Entry(row["id"], label, people, frozenset(fields), (fields or [""])[0], split, row["container"])


def field_of(domain: str) -> str:
    """HAL's dotted codes count by their first part; other labels as they are."""
    top = domain.partition(".")[0]
    return top if top in HAL_DOMAINS else domain


class Fields:
    """Which documents share a field, within a split; only those that have spans."""

    def __init__(self, docs: Sequence[Entry], pool: SpanPool) -> None:
        self.docs = docs
        self.exact: dict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
        self.primary: dict[tuple[str, str], list[int]] = defaultdict(list)
        for at, doc in enumerate(docs):
            if doc.split and pool.of(at):
                self.exact[doc.split, doc.field].append(at)
                self.primary[doc.split, doc.primary].append(at)

    def negative(self, doc: Entry, random: Random) -> int | None:
        """A document of the same field by nobody of the same people; failing that, of the same primary field."""
        assert doc.split is not None
        for group in (self.exact[doc.split, doc.field], self.primary[doc.split, doc.primary]):
            for _ in range(TRIES):
                other = random.choice(group)
                if not self.docs[other].people & doc.people:
                    return other
        return None


def groups(docs: Sequence[Entry], pool: SpanPool) -> dict[tuple[str, frozenset[str]], list[int]]:
    """The documents of each author-set within a split."""
    found: dict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
    for at, doc in enumerate(docs):
        if doc.split and doc.label and pool.of(at):
            found[doc.split, doc.label].append(at)
    return found


def base(
    docs: Sequence[Entry], pool: SpanPool, recipe: MineRecipe, dropped: Counter[str]
) -> Iterator[tuple[int, Numbers]]:
    """(document, span numbers) of every triplet: positives from other documents of the same author-set alone."""
    fields, same = Fields(docs, pool), groups(docs, pool)
    for at, doc in enumerate(docs):
        if not pool.of(at):
            continue
        if reason := unusable(doc):
            dropped[f"document: {reason}"] += 1
            continue
        mates = [m for m in same[doc.split or "", doc.label] if m != at and apart(docs[m], doc)]
        if not mates:
            dropped["document: no other document by this author-set"] += 1
            continue
        yield from ((at, numbers) for numbers in drawn(at, doc, mates, fields, pool, recipe, dropped))


def unusable(doc: Entry) -> str | None:
    if doc.split is None:
        return "authors are in several splits"
    return None if doc.label else "an author is not identified"


def apart(one: Entry, other: Entry) -> bool:
    """Two chapters of one book share more than their writer."""
    return not one.container or one.container != other.container


def drawn(
    at: int, doc: Entry, mates: list[int], fields: Fields, pool: SpanPool, recipe: MineRecipe, dropped: Counter[str]
) -> list[Numbers]:
    """Up to `per_document` different triplets with an anchor in this document."""
    found: dict[Numbers, None] = {}
    random = Random(f"{recipe.seed}/{recipe.sentences}/{doc.id}")
    for _ in range(recipe.per_document):
        negative = fields.negative(doc, random)
        if negative is None:
            dropped["document: no document by others in this field"] += 1
            break
        for _ in range(TRIES):
            positive = random.choice(mates)
            anchor, same, other = (random.choice(pool.of(d)) for d in (at, positive, negative))
            numbers = (anchor, same, other)
            if numbers not in found:
                found[numbers] = None
                break
    return list(found)


RULES = {"base": base}


def mine(
    corpus: Corpus,
    recipe: MineRecipe,
    out: Path,
    *,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Mapping[str, int]:
    """Write triplets to `out/RULE-K/SPLIT-*.parquet`; returns rows per split."""
    name = f"{recipe.rule}-{recipe.sentences}"
    with draft(out, overwrite) as folder:
        spool = folder / ".spans.arrow"
        pool = draw_spans(iter(corpus), recipe, spool, progress)
        check_language(pool, recipe)
        docs, dropped = entries(corpus, recipe), Counter(pool.dropped)
        placed = by_split(docs, RULES[recipe.rule](docs, pool, recipe, dropped), recipe)
        counts = {split: write(corpus, docs, pool, placed[split], folder / name, split) for split in SPLITS}
        if not sum(counts.values()):
            raise InputError(no_triplets(dropped))
        spool.unlink()
        write_triplet_card(folder, {name: counts})
        inputs = {"corpus": corpus.manifest.fingerprint}
        seal(folder, Manifest("triplets", recipe.model_dump(), inputs, {name: counts}, dict(dropped)))
    return counts


def by_split(
    docs: Sequence[Entry], triplets: Iterator[tuple[int, Numbers]], recipe: MineRecipe
) -> dict[str, list[Numbers]]:
    """Triplets by split: that of the document or, in the published protocol, of each triplet alone."""
    placed: dict[str, list[Numbers]] = {split: [] for split in SPLITS}
    for at, numbers in triplets:
        split = docs[at].split or ""
        if recipe.split == "triplet":
            split = split_by(draw(recipe.seed, *numbers), recipe.fractions)
        placed[split].append(numbers)
    return placed


def split_by(at: float, fractions: Sequence[float]) -> str:
    train, valid, _ = fractions
    return "train" if at < train else "valid" if at < train + valid else "test"


def write(
    corpus: Corpus, docs: Sequence[Entry], pool: SpanPool, triplets: list[Numbers], folder: Path, split: str
) -> int:
    table = corpus.table
    owner = np.repeat(np.arange(len(docs)), np.diff(pool.first))

    def cell(number: int, role: str) -> dict[str, Any]:
        at = int(owner[number])
        row = table.row(at, named=True)
        affiliations = sorted({a for author in row["authors"] for a in author["affiliations"]})
        label = sorted(docs[at].label or docs[at].people)
        values = (docs[at].id, pool.text(number), row["year"], row["domains"], affiliations, label)
        return dict(zip(columns(role), values, strict=True))

    def rows() -> Iterator[list[dict[str, Any]]]:
        for at in range(0, len(triplets), BLOCK):
            yield [
                {k: v for n, role in zip(numbers, ROLES, strict=True) for k, v in cell(n, role).items()}
                for numbers in triplets[at : at + BLOCK]
            ]

    return write_shards(rows(), folder, split)


def no_triplets(dropped: Counter[str]) -> str:
    reasons = ", ".join(f"{reason} ({count})" for reason, count in dropped.most_common(3))
    return f"no triplet can be drawn from this corpus: {reasons or 'it is empty'}"
