"""What is known about a deposit, one JSON object a line. Knows nothing of where it came from."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from idiograph.errors import InputError
from idiograph.store import read_manifest
from idiograph.types import Author

KIND = "records"
MAKE = "idiograph harvest -o FOLDER"
SHARDS = "[0-9]*-[0-9]*.jsonl"
NOBODY = "0"  # HAL's person number of an author whom nobody has identified


@dataclass(frozen=True, slots=True)
class Person:
    """An author of a record. `halauthorid` is HAL's person number; affiliations are HAL's structure numbers."""

    name: str
    halauthorid: str = NOBODY
    affiliations: tuple[str, ...] = ()
    orcid: str = ""

    @property
    def author(self) -> Author:
        return Author(self.name, None if self.halauthorid == NOBODY else self.halauthorid, self.affiliations)


@dataclass(frozen=True, slots=True)
class Record:
    """One deposit.

    `timestamp` is when the archive last changed it, so that two harvests of one state are equal. `identified` says
    that every author has a person number, `complete` that the list of authors is known to be whole. `embargo` is the
    day from which the file may be fetched, `kind` how the file came about (`author`, `greenPublisher`, …).
    """

    halid: str
    lang: str
    title: str
    domain: tuple[str, ...]
    timestamp: str
    year: int | None
    url: str
    authors: tuple[Person, ...]
    licence: str = ""
    doctype: str = ""
    version: int = 1
    identified: bool = False
    complete: bool = False
    embargo: str = ""
    kind: str = ""
    uri: str = ""


def published_moment(stamped: str) -> str:
    """A moment as the published files write it.

    >>> published_moment("2024-06-01T20:41:20Z"), published_moment("2024/06/01 20:41:20")
    ('2024/06/01 20:41:20', '2024/06/01 20:41:20')
    """
    return f"{datetime.fromisoformat(stamped.replace('/', '-')):%Y/%m/%d %H:%M:%S}" if stamped else ""


def to_line(record: Record) -> str:
    return json.dumps(asdict(record), ensure_ascii=False) + "\n"


def from_line(line: str | bytes) -> Record:
    """The record of a line that `to_line` wrote; a ValueError says what is wrong with another."""
    try:
        raw: dict[str, Any] = json.loads(line)
        people = tuple(Person(**{**person, "affiliations": tuple(person["affiliations"])}) for person in raw["authors"])
        return Record(**{**raw, "authors": people, "domain": tuple(raw["domain"])})
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a record: {error}") from error


def read_records(folder: Path) -> Iterator[Record]:
    """The records of a finished harvest, each id once: what was harvested last stands."""
    read_manifest(folder, KIND, MAKE)
    last = {halid: place for place, halid in enumerate(record_ids(folder))}
    return (record for place, record in enumerate(all_records(folder)) if last[record.halid] == place)


def record_ids(folder: Path) -> Iterator[str]:
    return (record.halid for record in all_records(folder))


def all_records(folder: Path) -> Iterator[Record]:
    """All records of all shards in the order of their harvest, replaced ones among them."""
    for path in sorted(folder.glob(SHARDS)):
        yield from (record for _, record in locate_records(path))


def locate_records(path: Path) -> Iterator[tuple[int, Record]]:
    """The records of one shard, each with the byte at which its line begins."""
    place = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield place, from_line(line)
            except ValueError as error:
                raise InputError(f"{path}:{number}: {error}; harvest again: {MAKE}") from error
            place += len(line)


class RecordLookup:
    """The records of a finished harvest by a key of their ids. They stay on disk: in memory are the keys alone."""

    def __init__(self, folder: Path, key: Callable[[str], str]) -> None:
        read_manifest(folder, KIND, MAKE)
        self.paths = sorted(folder.glob(SHARDS))
        shards = ((number, *found) for number, path in enumerate(self.paths) for found in locate_records(path))
        self.places = {key(record.halid): (number, place) for number, place, record in shards}  # the last one stands

    def get(self, key: str) -> Record | None:
        if key not in self.places:
            return None
        number, place = self.places[key]
        with self.paths[number].open("rb") as file:
            file.seek(place)
            return from_line(file.readline())


def pdf_name(halid: str) -> str:
    """A name in the output folder and nowhere else, another one for each id.

    >>> pdf_name("hal-01956501"), pdf_name("../../etc/passwd")
    ('hal-01956501.pdf', '______etc_passwd~3754d6cb3a.pdf')
    """
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", halid):
        return f"{halid}.pdf"
    safe = re.sub(r"[^a-z0-9_-]", "_", halid.lower())[:64]
    return f"{safe}~{hashlib.sha256(halid.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}.pdf"
