"""Who and what other triplets validate or test on: people are split by a hash of their name within a corpus and a label, so
somebody who is tested there could still have written in train here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from idiograph.corpus.triplets import ROLES, configurations, shards, splits
from idiograph.store import fingerprint

TRAIN = "train"


@dataclass(frozen=True, slots=True)
class Held:
    """Documents and people that must not be trained on."""

    documents: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()  # ids and folded names, as they stand in triplets


def held_in(folders: Sequence[Path]) -> Held:
    """Everything in the valid and test splits of these triplets, in any role."""
    documents, people = set[str](), set[str]()
    for folder in folders:
        for name in configurations(folder):
            for path in (p for s in splits(folder, name) if s != TRAIN for p in shards(folder, name, s)):
                file = pq.ParquetFile(path)
                for short, _ in ROLES.values():
                    ids, who = columns(file.schema_arrow.names, short)
                    found = file.read(columns=[ids, who])
                    documents.update(map(str, found.column(ids).to_pylist()))
                    people.update(str(p) for row in found.column(who).to_pylist() for p in row or ())
    return Held(frozenset(documents), frozenset(people))


def columns(there: Sequence[str], short: str) -> tuple[str, str]:
    """Document and author-set of a role; the published files spell one column `neg_halids`."""
    ids = f"{short}_halid"
    return (ids if ids in there else f"{ids}s"), f"{short}_authorids"


def prints_of(folders: Sequence[Path]) -> dict[str, str]:
    """What identifies these triplets in a manifest."""
    return {f"apart from {folder}": fingerprint(folder) for folder in folders}
