"""Where an index lies: Arrow files in a folder, a file for the passages of each change, and a log of the changes.

A change first writes its passages, each marked with the change's name, and then its line in the log. Only what the log names
is there: a kill before that line leaves the old state, one after it the new state. Of a document that several changes touch,
the last one in the log counts. A file is never changed once it is written, so a reader sees one state, whatever is written
meanwhile. Rows that nobody sees any more, and files of changes that never ended, go when the index is compacted.

Under `s3://` the same tables are kept by LanceDB: `remote`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa

from idiograph.errors import ArtifactError
from idiograph.runner import bucket
from idiograph.store import read_ledger, write_ledger
from idiograph.style.tokens import Ints

SPANS, LOG, CODEBOOK = "spans", "log.jsonl", "codebook.arrow"
FIRST_EDITION = "spans.lance"  # in the folder of an index that LanceDB wrote
WHOLE = "1/1"  # the part of an index that is all of it
ROWS_TAKEN = 2048  # at once, of a part
BROKEN = (ValueError, OSError, RuntimeError, KeyError)
TEXTS = pa.list_(pa.string())

SPAN = pa.schema(
    [(name, pa.string()) for name in ("id", "doc_id", "change", "title", "text", "lang")]
    + [(name, TEXTS) for name in ("authors", "names", "domains")]
    + [("year", pa.int32()), ("patches", pa.int32()), ("start", pa.int64()), ("end", pa.int64())]
    + [("vectors", pa.large_binary()), ("sketch", pa.large_binary())]
)
ENTRY = pa.schema(
    [("change", pa.string()), ("kind", pa.string()), ("gone", TEXTS), ("spans", pa.int64()), ("about", pa.string())]
)
BOOK = pa.schema([("name", pa.string()), ("shape", pa.list_(pa.int64())), ("data", pa.large_binary())])
COLUMNS_IN_MEMORY = [name for name in SPAN.names if name not in ("vectors", "text")]
PlacedRows = tuple[Ints, pa.Table]  # where passages lie in `spans`, and what is known of each


@dataclass(frozen=True)
class IndexState:
    """The passages that are there: everything but text and vectors, sorted by id, and where each lies in `spans`."""

    rows: pa.Table
    offsets: Ints
    about: Mapping[str, Any]
    version: str


class IndexTables(Protocol):
    """The tables of one index, wherever they lie."""

    where: str
    remote: bool
    storage: Mapping[str, str]  # how a server is reached

    def create(self, codebook: Mapping[str, np.ndarray]) -> None:
        """Empty tables; `codebook` is kept for good."""
        ...

    def codebook(self) -> dict[str, np.ndarray]: ...

    def state(self, part: str = WHOLE) -> IndexState:
        """What is there now; later changes do not show until this is called again. Of part i/n, the documents whose id falls
        into it: all passages of a document are in one part, and so is everything that decides which of them are seen."""
        ...

    def take(self, offsets: Ints, columns: Sequence[str]) -> pa.Table:
        """Some columns of some passages, in the order asked for."""
        ...

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of every row of `spans`, seen or not, in the order in which they lie."""
        ...

    def append(self, change: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write passages; nobody sees them before `commit`, which is given what this returns."""
        ...

    def commit(self, change: str, kind: str, about: Mapping[str, Any], gone: Sequence[str], spans: int) -> None:
        """Make a change visible."""
        ...

    def latest(self) -> int:
        """What a change without passages commits."""
        ...

    def compact(self, about: Mapping[str, Any]) -> None:
        """Remove the rows that nobody sees, and what changes left that never ended."""
        ...


class FolderTables:
    """The tables of an index in a folder."""

    remote = False

    def __init__(self, where: str | Path) -> None:
        self.where, self._folder = str(where), Path(where)
        self.storage: Mapping[str, str] = {}
        self._batches: list[pa.RecordBatch] = []  # of `spans`; mapped, and read from the disk where they are looked at

    def create(self, codebook: Mapping[str, np.ndarray]) -> None:
        (self._folder / SPANS).mkdir()
        rows = [{"name": n, "shape": a.shape, "data": a.astype("<f4").tobytes()} for n, a in codebook.items()]
        write_arrow(self._folder / CODEBOOK, BOOK, pa.Table.from_pylist(rows, BOOK).to_batches())
        write_ledger(self._folder / LOG, ())

    def codebook(self) -> dict[str, np.ndarray]:
        rows = pa.Table.from_batches(read_arrow(self._folder / CODEBOOK), BOOK).to_pylist()
        return {r["name"]: np.frombuffer(r["data"], "<f4").reshape(r["shape"]) for r in rows}

    def state(self, part: str = WHOLE) -> IndexState:
        log = self._log()
        self._batches = self._committed(log)
        if part != WHOLE:
            return state_of(rows_of_part(self, part), log_table(log), self.where)
        rows = select_columns(self._batches, COLUMNS_IN_MEMORY)
        return state_of((np.arange(rows.num_rows), rows), log_table(log), self.where)

    def take(self, offsets: Ints, columns: Sequence[str]) -> pa.Table:
        unique, back = np.unique(offsets, return_inverse=True)
        ends = np.cumsum([batch.num_rows for batch in self._batches])
        found: list[pa.RecordBatch] = []
        for at in np.unique(np.searchsorted(ends, unique, side="right")).tolist():
            batch, first = self._batches[at], ends[at] - self._batches[at].num_rows
            wanted = unique[(unique >= first) & (unique < ends[at])] - first
            found.append(batch.select(list(columns)).take(pa.array(wanted)))
        return select_columns(found, columns).take(pa.array(back))

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from (batch.select(list(columns)) for batch in self._batches)

    def append(self, change: str, batches: Iterable[pa.RecordBatch]) -> int:
        """How many rows the file of the change has."""
        return write_arrow(self._part(change), SPAN, batches)

    def commit(self, change: str, kind: str, about: Mapping[str, Any], gone: Sequence[str], spans: int) -> None:
        line = {"change": change, "kind": kind, "gone": list(gone), "spans": spans, "about": dict(about)}
        write_ledger(self._folder / LOG, [*self._log(), line])

    def latest(self) -> int:
        return 0

    def compact(self, about: Mapping[str, Any]) -> None:
        change, log = new_change(), self._log()
        batches = self._committed(log)
        visible = visible_rows(select_columns(batches, COLUMNS_IN_MEMORY), log_table(log))
        ends = np.cumsum([batch.num_rows for batch in batches])[:-1]
        kept = (b.filter(pa.array(some)) for b, some in zip(batches, np.split(visible, ends), strict=True))
        self.commit(change, "compact", about, (), self.append(change, kept))
        for path in (self._folder / SPANS).iterdir():
            if path != self._part(change):
                path.unlink()

    def _part(self, change: str) -> Path:
        return self._folder / SPANS / f"{change}.arrow"

    def _log(self) -> list[dict[str, Any]]:
        if not (self._folder / LOG).is_file():
            raise FileNotFoundError(f"{LOG} is missing")
        return list(read_ledger(self._folder / LOG))

    def _committed(self, log: Sequence[Mapping[str, Any]]) -> list[pa.RecordBatch]:
        """What the changes of a log have written since the index was last compacted, in their order."""
        compacted = max((at for at, line in enumerate(log) if line["kind"] == "compact"), default=0)
        changes = [line["change"] for line in log[compacted:] if line["spans"]]
        return [batch for change in changes for batch in read_arrow(self._part(change))]


def select_columns(batches: Sequence[pa.RecordBatch], columns: Sequence[str]) -> pa.Table:
    """Some columns of some batches of `spans`."""
    schema = pa.schema([SPAN.field(name) for name in columns])
    return pa.Table.from_batches([batch.select(schema.names) for batch in batches], schema)


def log_table(log: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{**line, "about": json.dumps(line["about"])} for line in log], ENTRY)


def write_arrow(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write a file of record batches as they come; how many rows it has."""
    rows = 0
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write(batch)
            rows += batch.num_rows
    return rows


def read_arrow(path: Path) -> Iterator[pa.RecordBatch]:
    """The record batches of a file. They stay readable when it is closed, and even when another run removes it."""
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        for at in range(reader.num_record_batches):
            yield reader.get_batch(at)


def rows_of_part(tables: IndexTables, part: str) -> PlacedRows:
    """The passages of a part; of the rest the documents' ids go by and no more."""
    wanted, of = map(int, part.split("/"))
    found, first = [np.zeros(0, np.int64)], 0
    for batch in tables.scan(["doc_id"]):
        coded = dictionary(batch["doc_id"])
        mine = np.array([bucket(name, of) == wanted - 1 for name in coded.dictionary.to_pylist()], bool)
        found.append(first + np.flatnonzero(mine[np.asarray(coded.indices)]))
        first += batch.num_rows
    places = np.concatenate(found)
    blocks = [places[at : at + ROWS_TAKEN] for at in range(0, len(places), ROWS_TAKEN)]
    parts = [tables.take(block, COLUMNS_IN_MEMORY) for block in blocks]
    empty = SPAN.empty_table().select(COLUMNS_IN_MEMORY)
    return places, pa.concat_tables([empty, *parts]).combine_chunks()


def state_of(placed: PlacedRows, log: pa.Table, where: str) -> IndexState:
    """What the log makes visible of some rows of `spans`."""
    places, rows = placed
    if not log.num_rows:
        raise ArtifactError(f"index '{where}' was never finished")
    visible = np.flatnonzero(visible_rows(rows, log))
    by_id = pa.table({"id": rows["id"].take(visible), "at": visible}).sort_by("id")  # UTF-8 sorts as characters do
    order = np.asarray(by_id["at"])
    about = json.loads(log["about"][-1].as_py())
    changes = [row["change"] for row in log.to_pylist() if row["kind"] != "compact"]
    return IndexState(rows.take(order), places[order].astype(np.int64), about, changes[-1])


def end_to_end(column: Any) -> memoryview:
    """The values of a binary column, one after the other."""
    values = column.combine_chunks()
    if not len(values):
        return memoryview(b"")
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    return memoryview(values.buffers()[2])[offsets[0] : offsets[-1]]


def visible_rows(rows: pa.Table, log: pa.Table) -> np.ndarray:
    """Which rows of `spans` the log makes visible: those of the last change that touched their document."""
    if not rows.num_rows:
        return np.zeros(0, bool)
    place = {change: at for at, change in enumerate(log["change"].to_pylist())}
    changes, documents = rows["change"].combine_chunks(), rows["doc_id"].combine_chunks()
    coded, owned = dictionary(changes), dictionary(documents)
    rank = np.array([place.get(c, -1) for c in coded.dictionary.to_pylist()], np.int64)[np.asarray(coded.indices)]
    owner = np.asarray(owned.indices)
    last = np.full(len(owned.dictionary), -1, np.int64)
    np.maximum.at(last, owner, rank)
    went = [(at, doc) for at, gone in enumerate(log["gone"].to_pylist()) for doc in gone]
    number = {doc: at for at, doc in enumerate(owned.dictionary.to_pylist())} if went else {}
    for at, doc in went:
        if doc in number:
            last[number[doc]] = max(last[number[doc]], at)
    return (rank >= 0) & (rank == last[owner])


def dictionary(column: Any) -> Any:
    return column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()


def new_change() -> str:
    """A name for a change; begins with the time, so that one that never ended can be told by its age."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{uuid4().hex[:8]}"
