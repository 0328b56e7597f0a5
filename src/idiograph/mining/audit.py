"""Does a folder of triplets keep what it promises? Counts what splits share, and what is wrong within a triplet.

Works on any folder in the published columns, whoever made it. Every count is of distinct things: an author, a document, a
sentence of eight words or more, a span. A span counts as a near-copy if another split holds one much like it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.mining.leaks import HeldOutSpans, SpanPrints, span_prints
from idiograph.mining.split import PEOPLE_FILE, SPLITS, UNDECIDED, PeopleSplits, hash_person
from idiograph.mining.triplets import ROLES, configurations, read_rows, splits
from idiograph.runner import Progress
from idiograph.store import find_manifest
from idiograph.types import fields_of

ROWS_PER_BATCH = 2048  # rows looked at together
TEXTS = tuple(text for _, text in ROLES.values())


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two splits have in common, over all configurations of the folder."""

    one: str
    other: str
    authors: int
    documents: int
    sentences: int
    near_copies: int  # spans of `one` that nearly repeat a span of `other`

    @property
    def nothing(self) -> bool:
        return not (self.authors or self.documents or self.sentences or self.near_copies)


@dataclass(frozen=True, slots=True)
class Purity:
    """What is wrong within the triplets of one configuration."""

    name: str
    triplets: Mapping[str, int]
    repeated: int  # triplets that were there before
    other_author_set: int  # positives by another author-set than the anchor's
    own_document: int  # positives from the anchor's own document
    shared_author: int  # negatives that share an author with the anchor
    other_field: int  # negatives from another field

    @property
    def total(self) -> int:
        return sum(self.triplets.values())


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found. `sound` if nothing speaks against it; `faults` says what does."""

    folder: str
    preset: str
    overlaps: tuple[Overlap, ...]
    purity: tuple[Purity, ...]
    sizes: Mapping[str, Mapping[str, int]]  # split → distinct authors, documents, spans, sentences
    faults: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "sound": self.sound}


@dataclass(slots=True)
class _Side:
    """What one split holds."""

    authors: set[str] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)
    spans: set[int] = field(default_factory=set)
    prints: list[SpanPrints] = field(default_factory=list)

    def add(self, rows: list[dict[str, Any]]) -> None:
        for short in (short for short, _ in ROLES.values()):
            self.documents.update(row[f"{short}_halid"] for row in rows)
            self.authors.update(author for row in rows for author in row[f"{short}_authorids"])
        texts = {hash(text): text for row in rows for text in map(row.__getitem__, TEXTS)}
        fresh = [text for number, text in texts.items() if number not in self.spans]
        self.spans.update(texts)
        self.prints.append(span_prints(fresh))


def audit_triplets(folder: Path, progress: Progress | None = None) -> Audit:
    """Look at every triplet of a folder."""
    sides: dict[str, _Side] = defaultdict(_Side)
    purity, recipe = [], _recipe(folder)
    for name in configurations(folder):
        check = _Check(name)
        for split in splits(folder, name):
            for rows in _triplet_batches(folder, name, split):
                sides[split].add(rows)
                check.add(rows, split)
                if progress:
                    progress(check.counts.total(), None, f"{name}/{split}")
        purity.append(check.result())
    present = [split for split in SPLITS if split in sides]
    overlaps = tuple(_overlap(a, sides[a], b, sides[b]) for a, b in combinations(present, 2))
    faults = (*_leaks(overlaps), *_strays(folder, sides), *_impurities(purity, recipe.get("negatives") == "any"))
    sizes = {split: _sizes(sides[split]) for split in present}
    preset = "as published" if not recipe else "paper" if recipe.get("split") == "triplet" else "sound"
    return Audit(str(folder), preset, overlaps, tuple(purity), sizes, faults)


def _recipe(folder: Path) -> Mapping[str, Any]:
    manifest = find_manifest(folder)
    return manifest.recipe if manifest else {}


def _triplet_batches(folder: Path, name: str, split: str) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in read_rows(folder, name, split):
        batch.append(row)
        if len(batch) == ROWS_PER_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _sizes(side: _Side) -> dict[str, int]:
    sentences = np.unique(np.concatenate([np.zeros(0, np.uint64), *(part.sentences for part in side.prints)]))
    sizes = {"authors": len(side.authors), "documents": len(side.documents), "spans": len(side.spans)}
    return {**sizes, "sentences": len(sentences)}


def _overlap(one: str, a: _Side, other: str, b: _Side) -> Overlap:
    left, right = SpanPrints.join(a.prints), SpanPrints.join(b.prints)
    index = HeldOutSpans.of(right, np.ones(len(right.sketch), dtype=np.int8))
    before = np.zeros(len(left.sketch), dtype=np.int8)
    return Overlap(
        one,
        other,
        len(a.authors & b.authors),
        len(a.documents & b.documents),
        len(np.unique(left.sentences[index.rows_in_common(left, before)])),
        int((index.copies(left, before) >= 0).sum()),
    )


class _Check:
    """Counts what is wrong within triplets while rows go by."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.seen: set[int] = set()

    def add(self, rows: list[dict[str, Any]], split: str) -> None:
        self.counts[split] += len(rows)
        for row in rows:
            whole = hash(tuple(row[text] for text in TEXTS))
            anchor, positive, negative = (frozenset(row[f"{short}_authorids"]) for short, _ in ROLES.values())
            self.faults["repeated"] += whole in self.seen
            self.faults["other_author_set"] += anchor != positive
            self.faults["own_document"] += row["query_halid"] == row["pos_halid"]
            self.faults["shared_author"] += bool(anchor & negative)
            self.faults["other_field"] += not same_field(row["query_domain"], row["neg_domain"])
            self.seen.add(whole)

    def result(self) -> Purity:
        kinds = ("repeated", "other_author_set", "own_document", "shared_author", "other_field")
        return Purity(self.name, dict(self.counts), *(self.faults[kind] for kind in kinds))


def same_field(one: list[str] | None, other: list[str] | None) -> bool:
    """The same set of fields, or the same primary one."""
    a, b = (fields_of(domains or ()) for domains in (one, other))
    return bool(a and b) and (set(a) == set(b) or a[0] == b[0])


def _leaks(overlaps: tuple[Overlap, ...]) -> Iterator[str]:
    for each in overlaps:
        if not each.nothing:
            what = {"authors": each.authors, "documents": each.documents, "sentences": each.sentences}
            shared = [f"{count} {name}" for name, count in what.items() if count]
            copies = [f"{each.near_copies} near-copies of spans"] if each.near_copies else []
            yield f"{each.one} and {each.other} share {', '.join(shared + copies)}"


def _strays(folder: Path, sides: Mapping[str, _Side]) -> Iterator[str]:
    """Authors who, by the folder's own list of people, belong into another split than their triplets are in."""
    if not (folder / PEOPLE_FILE).is_file():
        return
    known = PeopleSplits.load(folder)
    if known.doubled:
        yield f"{PEOPLE_FILE} has {known.doubled} people in two splits"
    for split, side in sides.items():
        keys = [[hash_person(kind, name) for kind in ("id", "name")] for name in side.authors]
        listed = known.look_up(np.array(keys, dtype=np.uint64).reshape(-1, 2))
        astray = int(((listed != UNDECIDED) & (listed != SPLITS.index(split))).any(axis=1).sum())
        if astray:
            yield f"{astray} authors in {split} belong into another split by {PEOPLE_FILE}"
        missing = int((listed == UNDECIDED).all(axis=1).sum())
        if missing:
            yield f"{missing} authors in {split} are not in {PEOPLE_FILE}"


def _impurities(purity: list[Purity], any_field: bool) -> Iterator[str]:
    for each in purity:
        rule = each.name.partition("-")[0]
        wrong = {
            "repeated triplets": each.repeated,
            "positives by another author-set": each.other_author_set,
            "positives from the anchor's own document": each.own_document if rule == "base" else 0,
            "negatives that share an author": each.shared_author if rule != "ict" else 0,
            "negatives from another field": each.other_field if rule != "ict" and not any_field else 0,
        }
        yield from (f"{each.name}: {count} {what}" for what, count in wrong.items() if count)
