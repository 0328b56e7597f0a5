"""Near-duplicate documents: the preprint and the journal version of one work, a text deposited twice.

Every text becomes a signature of 128 numbers by one-permutation MinHash over shingles of three words: one hash a word
and no Python loop over words. Texts that agree in a band of the signature, or share a folded title and an author, are
compared; those that are the same work are joined. Titles and authors are kept as hashes, too, so that a document costs
little more than its signature and its id; the signatures of many documents wait in a file that nobody sees, and are read
band by band. Prints of works may be made anywhere, `WorkTable` compares them in one place.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

import numpy as np

from idiograph.seeded import hash_text
from idiograph.types import fold

BINS = 128
ROWS = 3  # of a signature in a band: 42 bands, which find 996 of 1000 pairs at a resemblance of 0.5
SHINGLE = 3

COPY = 0.85  # the same text, whoever signs it
VERSION = 0.50  # the same text in parts, with an author in common
TITLED = 0.20  # the same title and an author in common: an abstract may have been written anew
MIN_TITLE_WORDS = 4  # "Introduction" and "Editorial" name no work

MAX_SIGNATURES_IN_MEMORY = 16 << 20  # bytes
_BLOCK = 16_384 * BINS * 4  # bytes of signatures that are read at once
_BATCH = 2_000_000  # characters hashed at a time: about 100 MB of arrays
_END = "\0"  # between two texts
_EMPTY = np.uint32(0xFFFFFFFF)
_PRIME = np.uint64(0x100000001B3)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_WORD_BYTES = np.zeros(256, dtype=bool)
_WORD_BYTES[[*range(48, 58), *range(97, 123), *range(128, 256)]] = True
_NOT_WORD = re.compile(r"[^\w\s]+")


class DedupEntry(NamedTuple):
    """What is known of a document: `authors` are the keys that an author-set is made of."""

    id: str
    title: str
    authors: frozenset[str]
    text: str


def near_duplicates(entries: Iterable[tuple[str, str, Iterable[str], str]]) -> dict[str, str]:
    """For each document that repeats another, the id of the one to keep: the longest text, then the least id.

    The answer does not depend on the order of the entries.
    """
    table = WorkTable()
    for batch in _text_batches(DedupEntry(i, title, frozenset(authors), text) for i, title, authors, text in entries):
        for entry, work in zip(batch, work_prints(batch), strict=True):
            table.add(entry.id, work)
    return table.copies()


def _text_batches(entries: Iterable[DedupEntry]) -> Iterator[list[DedupEntry]]:
    """Entries in lists of a bounded number of characters."""
    batch, size = [], 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.text) + 1
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class WorkPrint(NamedTuple):
    """What is compared of a document, in half a kilobyte."""

    title: int  # 0: too short to name a work
    authors: tuple[int, ...]
    length: int
    signature: bytes


def work_prints(entries: Sequence[DedupEntry]) -> list[WorkPrint]:
    """The prints of some documents; each depends on its own document alone."""
    signatures = [row for batch in _text_batches(entries) for row in shingle_signatures([e.text for e in batch])]
    keys = [title_key(entry.title) for entry in entries]
    return [
        WorkPrint(hash_text(key) if key else 0, tuple(map(hash_text, e.authors)), len(e.text), signature.tobytes())
        for e, key, signature in zip(entries, keys, signatures, strict=True)
    ]


class Signatures:
    """The signatures of all documents, one after the other: in memory while they are few, else in a file."""

    def __init__(self, folder: Path | None = None) -> None:
        self.file = SpooledTemporaryFile(MAX_SIGNATURES_IN_MEMORY, dir=folder and str(folder))  # noqa: SIM115 (lives as long as this)

    def add(self, signature: bytes) -> None:
        self.file.write(signature)

    def band(self, start: int) -> np.ndarray:
        """The columns of a band: (documents, ROWS)."""
        self.file.seek(0)
        parts = [np.zeros((0, ROWS), np.uint32)]
        while data := self.file.read(_BLOCK):
            parts.append(np.frombuffer(data, np.uint32).reshape(-1, BINS)[:, start : start + ROWS].copy())
        return np.concatenate(parts)

    def row(self, at: int) -> np.ndarray:
        self.file.seek(at * BINS * 4)
        return np.frombuffer(self.file.read(BINS * 4), np.uint32)


@dataclass(slots=True)
class WorkTable:
    """The documents seen so far, column by column."""

    signatures: Signatures = field(default_factory=Signatures)
    ids: list[str] = field(default_factory=list)
    titles: "array[int]" = field(default_factory=lambda: array("Q"))
    authors: "array[int]" = field(default_factory=lambda: array("Q"))  # those of all documents in a row
    ends: "array[int]" = field(default_factory=lambda: array("Q", [0]))  # of each document's authors, after a zero
    lengths: "array[int]" = field(default_factory=lambda: array("Q"))

    def add(self, identity: str, work: WorkPrint) -> None:
        self.ids.append(identity)
        self.titles.append(work.title)
        self.authors.extend(work.authors)
        self.ends.append(len(self.authors))
        self.lengths.append(work.length)
        self.signatures.add(work.signature)

    def authors_of(self, at: int) -> set[int]:
        return set(self.authors[self.ends[at] : self.ends[at + 1]])

    def copies(self) -> dict[str, str]:
        """For each document that repeats another, the id of the one to keep."""
        if not self.ids:
            return {}
        return _copies_of_groups(self, [pair for pair in _candidates(self) if _is_same_work(self, *pair)])


def title_key(title: str) -> str:
    """A title without case, accents and punctuation; empty if it is too short to name a work.

    >>> title_key("Déjà vu: a Study of Things.")
    'deja vu a study of things'
    """
    words = _NOT_WORD.sub(" ", fold(title)).split()
    return " ".join(words) if len(words) >= MIN_TITLE_WORDS else ""


def shingle_signatures(texts: list[str]) -> np.ndarray:
    """One signature a text: for each of 128 bins the least hash of the shingles that fall into it.  # (texts, 128)"""
    joined = "".join(f"{text.lower().replace(_END, ' ')}{_END}" for text in texts)
    data = np.frombuffer(joined.encode("utf-8", "replace"), dtype=np.uint8)
    words, owner = _words(data, len(texts))
    shingles = _shingles(words, owner)
    bins = (shingles >> np.uint64(57)).astype(np.int64)
    least = np.full(len(texts) * BINS, _EMPTY, dtype=np.uint32)
    np.minimum.at(least, owner * BINS + bins, (shingles & np.uint64(0xFFFFFFFE)).astype(np.uint32))
    return _densify(least.reshape(len(texts), BINS))


def _words(data: np.ndarray, texts: int) -> tuple[np.ndarray, np.ndarray]:
    """A hash for every word and the text that it is in. Texts are separated by a zero byte."""
    inside = np.concatenate([[False], _WORD_BYTES[data], [False]])
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = edges[::2], edges[1::2]
    # A polynomial over the bytes, summed from the left: the hash of a word is a difference, scaled back to its start.
    powers, inverses = _powers(len(data))
    sums = np.concatenate([[np.uint64(0)], np.cumsum(data * powers, dtype=np.uint64)])
    hashes = (sums[ends] - sums[starts]) * inverses[starts]
    owner = np.searchsorted(np.flatnonzero(data == 0), starts)
    return _mix(hashes + (ends - starts).astype(np.uint64)), np.minimum(owner, texts - 1)


def _powers(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The powers of an odd number modulo 2^64, and those of its inverse."""
    inverse = np.uint64(pow(int(_PRIME), -1, 1 << 64))
    return _cumulative_powers(_PRIME, n), _cumulative_powers(inverse, n)


def _cumulative_powers(base: np.uint64, n: int) -> np.ndarray:
    factors = np.full(n, base, dtype=np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


def _shingles(words: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """A hash for every three words in a row; where a text ends, nothing stands in for the words that are missing."""
    rolled = words * np.uint64(3)
    for i in range(1, min(SHINGLE, len(words))):
        inside = owner[i:] == owner[:-i]
        rolled[:-i] += np.where(inside, words[i:], np.uint64(0)) * np.uint64(2 * i + 3)
    return _mix(rolled)


def _mix(values: np.ndarray) -> np.ndarray:
    """Spread every bit of a hash over all of them."""
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def _densify(sparse: np.ndarray) -> np.ndarray:
    """Fill empty bins from full ones, the same way in every text, so that short texts keep their resemblance."""
    filled = sparse.copy()
    for attempt in range(1, BINS):
        rows, columns = np.nonzero(filled == _EMPTY)
        if not len(rows):
            break
        source = (columns * 37 + attempt * 53) % BINS if attempt < 16 else (columns + attempt) % BINS
        filled[rows, columns] = sparse[rows, source]
    return filled


def _candidates(table: WorkTable) -> Iterator[tuple[int, int]]:
    """Pairs that may be the same work, each once; within a crowd a document is paired with a few, not with all."""
    count, seen = len(table.ids), set()
    rank = np.empty(count, dtype=np.int64)
    rank[sorted(range(count), key=table.ids.__getitem__)] = np.arange(count)
    for pair in chain(_by_band(table, rank), _by_title(table, rank)):
        key = pair[0] * count + pair[1]
        if key not in seen:
            seen.add(key)
            yield pair


def _by_band(table: WorkTable, rank: np.ndarray) -> Iterator[tuple[int, int]]:
    for start in range(0, BINS - ROWS + 1, ROWS):
        band = table.signatures.band(start).astype(np.uint64)
        keys = _mix(np.sum([_mix(band[:, i] + np.uint64(i)) * np.uint64(2 * i + 1) for i in range(ROWS)], axis=0))
        among = np.flatnonzero((band != _EMPTY).all(axis=1))
        yield from _neighbours(keys[among], among, rank)


def _by_title(table: WorkTable, rank: np.ndarray) -> Iterator[tuple[int, int]]:
    """Those that share a title and an author."""
    owner = np.repeat(np.arange(len(table.ids)), np.diff(np.asarray(table.ends).astype(np.int64)))
    titles = np.asarray(table.titles)[owner]
    keys = _mix(_mix(titles) + np.asarray(table.authors))
    titled = titles != 0
    yield from _neighbours(keys[titled], owner[titled], rank)


def _neighbours(keys: np.ndarray, owner: np.ndarray, rank: np.ndarray) -> Iterator[tuple[int, int]]:
    """Pair each document with the first and with the one before it among those with the same key, in order of id."""
    order = np.lexsort((rank[owner], keys))
    keys, owner = keys[order], owner[order]
    first = 0
    for at in np.flatnonzero(keys[1:] == keys[:-1]).tolist():
        first = first if at and keys[at] == keys[first] else at
        for other in {first, at}:
            a, b = int(owner[other]), int(owner[at + 1])
            yield min(a, b), max(a, b)


def _is_same_work(table: WorkTable, a: int, b: int) -> bool:
    alike = float(np.mean(table.signatures.row(a) == table.signatures.row(b)))
    if alike >= COPY:
        return True
    if not table.authors_of(a) & table.authors_of(b):
        return False
    titled = bool(table.titles[a]) and table.titles[a] == table.titles[b]
    return alike >= VERSION or (titled and alike >= TITLED)


def _copies_of_groups(table: WorkTable, pairs: list[tuple[int, int]]) -> dict[str, str]:
    """The documents of each connected group but one, mapped to that one."""
    parent = list(range(len(table.ids)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for a, b in pairs:
        parent[root(a)] = root(b)
    best: dict[int, int] = {}
    linked = sorted({i for pair in pairs for i in pair})
    for i in linked:
        best[root(i)] = min(best.get(root(i), i), i, key=lambda each: (-table.lengths[each], table.ids[each]))
    return {table.ids[i]: table.ids[best[root(i)]] for i in linked if best[root(i)] != i}
