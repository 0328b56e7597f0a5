"""Who and what other triplets validate or test on: people are split by a hash of their name within a corpus and a label, so
somebody who is tested there could still have written in train here."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from idiograph.mining.triplets import ROLES, configurations, read_rows, splits
from idiograph.store import fingerprint

TRAIN = "train"


@dataclass(frozen=True, slots=True)
class HeldOutPeople:
    """Documents and people that must not be trained on."""

    documents: frozenset[str] = frozenset()
    people: frozenset[str] = frozenset()  # ids and folded names, as they stand in triplets


def held_out_in(folders: Sequence[Path]) -> HeldOutPeople:
    """Everything in the valid and test splits of these triplets, in any role, whoever wrote the files."""
    documents, people = set[str](), set[str]()
    for folder in folders:
        for name in configurations(folder):
            for split in (found for found in splits(folder, name) if found != TRAIN):
                for row in read_rows(folder, name, split):
                    documents.update(row[f"{short}_halid"] for short, _ in ROLES.values())
                    people.update(who for short, _ in ROLES.values() for who in row[f"{short}_authorids"])
    return HeldOutPeople(frozenset(documents), frozenset(people))


def prints_of_people(folders: Sequence[Path]) -> dict[str, str]:
    """What identifies these triplets in a manifest."""
    return {f"apart from {folder}": fingerprint(folder) for folder in folders}
