"""Where an index lies: LanceDB tables in a folder or under s3://. The only place that talks to LanceDB.

`spans` holds passages with their packed vectors, `log` one row a change, `codebook` the directions that vectors keep.
A change first appends its passages, each marked with the change's name, in one commit, and then one row to the log. Only
what the log names is there: a kill before that row leaves the old state, one after it the new state. Of a document that
several changes touch, the last one in the log counts. The log also says which version of `spans` belongs to it, so that a
reader sees one state, whatever is written meanwhile. Rows that nobody sees any more go when the index is compacted.
"""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from idiograph.errors import ArtifactError
from idiograph.runner import bucket
from idiograph.style.tokens import Ints

SPANS, LOG, CODEBOOK, NOTES = "spans", "log", "codebook", "notes"
REMOTE = "s3://"
WHOLE = "1/1"  # the part of an index that is all of it
BROKEN = (ValueError, OSError, RuntimeError, KeyError)
TEXTS = pa.list_(pa.string())
ALL_ROWS = 2**31 - 1  # LanceDB gives ten rows unless told
ORPHAN_AGE = timedelta(days=1)  # how long another machine may take between its passages and its row in the log

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
NOTE = pa.schema([("name", pa.string()), ("value", pa.string())])
COLUMNS_IN_MEMORY = [name for name in SPAN.names if name not in ("vectors", "text")]


@dataclass(frozen=True)
class IndexState:
    """The passages that are there: everything but text and vectors, sorted by id, and where each lies in `spans`."""

    rows: pa.Table
    offsets: Ints
    about: Mapping[str, Any]
    version: str


class IndexTables:
    """The tables of one index."""

    def __init__(self, where: str | Path, storage: Mapping[str, str] | None = None) -> None:
        import lancedb  # takes more than a second, which nobody waits for who only compares texts

        self.where = str(where)
        self.remote = self.where.startswith(REMOTE)
        self.storage = dict(storage or {})
        self._db = lancedb.connect(self.where, storage_options=self.storage or None)
        self._spans: Any = None

    def has_tables(self) -> bool:
        """Is there an index at all? Asks the store, which may refuse."""
        return LOG in self._db.list_tables().tables

    def create(self, codebook: Mapping[str, np.ndarray]) -> None:
        """Empty tables; `codebook` is kept for good."""
        for name, schema in ((SPANS, SPAN), (CODEBOOK, BOOK), (LOG, ENTRY)):
            self._db.create_table(name, schema=schema, mode="overwrite")
        rows = [{"name": n, "shape": a.shape, "data": a.astype("<f4").tobytes()} for n, a in codebook.items()]
        if rows:
            self._db.open_table(CODEBOOK).add(pa.Table.from_pylist(rows, BOOK))

    def codebook(self) -> dict[str, np.ndarray]:
        rows = read_all_columns(self._db.open_table(CODEBOOK)).to_pylist()
        return {r["name"]: np.frombuffer(r["data"], "<f4").reshape(r["shape"]) for r in rows}

    def state(self, part: str = WHOLE) -> IndexState:
        """What is there now; later changes do not show until this is called again. Of part i/n, the documents whose id falls
        into it: all passages of a document are in one part, and so is everything that decides which of them are seen."""
        log = read_all_columns(self._db.open_table(LOG))
        spans = self._db.open_table(SPANS)
        if not log.num_rows:
            raise ArtifactError(f"index '{self.where}' was never finished")
        spans.checkout(max(log["spans"].to_pylist()))
        self._spans = spans
        places, rows = self._rows_of(part)
        visible = np.flatnonzero(visible_rows(rows, log))
        by_id = pa.table({"id": rows["id"].take(visible), "at": visible}).sort_by("id")  # UTF-8 sorts as characters do
        order = np.asarray(by_id["at"])
        about = json.loads(log["about"][-1].as_py())
        changes = [row["change"] for row in log.to_pylist() if row["kind"] != "compact"]
        return IndexState(rows.take(order), places[order], about, changes[-1])

    def _rows_of(self, part: str) -> tuple[Ints, pa.Table]:
        """Where the passages of a part lie, and what is known of each; of the rest the ids go by and no more."""
        if part == WHOLE:
            rows = read_all_columns(self._spans, COLUMNS_IN_MEMORY)
            return np.arange(rows.num_rows), rows
        wanted, of = map(int, part.split("/"))
        found, first = [np.zeros(0, np.int64)], 0
        for batch in self.scan(["doc_id"]):
            coded = dictionary(batch["doc_id"])
            mine = np.array([bucket(name, of) == wanted - 1 for name in coded.dictionary.to_pylist()], bool)
            found.append(first + np.flatnonzero(mine[np.asarray(coded.indices)]))
            first += batch.num_rows
        places = np.concatenate(found)
        blocks = [places[at : at + 2048] for at in range(0, len(places), 2048)]
        parts = [self.take(block, COLUMNS_IN_MEMORY) for block in blocks]
        empty = SPAN.empty_table().select(COLUMNS_IN_MEMORY)
        return places, pa.concat_tables([empty, *parts]).combine_chunks()

    def take(self, offsets: Ints, columns: Sequence[str]) -> pa.Table:
        """Some columns of some passages, in the order asked for."""
        if not len(offsets):
            return SPAN.empty_table().select(list(columns))
        unique, back = np.unique(offsets, return_inverse=True)
        found = self._spans.take_offsets(unique.tolist()).select(list(columns)).to_arrow()
        return found.take(back)

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of every row of `spans`, seen or not, in the order in which they lie."""
        query = self._spans.search().select(list(columns)).limit(ALL_ROWS)
        yield from query.to_batches(batch_size=2048)

    def append(self, batches: Iterator[pa.RecordBatch]) -> int:
        """Write passages in one commit; nobody sees them before `commit`. Returns the version to commit."""
        spans = self._db.open_table(SPANS)
        spans.add(pa.RecordBatchReader.from_batches(SPAN, batches))
        return int(spans.version)

    def commit(self, change: str, kind: str, about: Mapping[str, Any], gone: Sequence[str], spans: int) -> None:
        """Make a change visible."""
        row = {"change": change, "kind": kind, "gone": list(gone), "spans": spans, "about": json.dumps(about)}
        self._db.open_table(LOG).add(pa.Table.from_pylist([row], ENTRY))

    def latest(self) -> int:
        """The version of `spans` that a change without passages commits."""
        return int(self._db.open_table(SPANS).version)

    def compact(self, about: Mapping[str, Any]) -> None:
        """Remove the rows that nobody sees, and the versions before this one."""
        spans, log = self._db.open_table(SPANS), read_all_columns(self._db.open_table(LOG))
        rows = read_all_columns(spans, ["change", "doc_id"])
        known = set(log["change"].to_pylist())
        hidden = rows.filter(pa.array(~visible_rows(rows, log)))
        pairs = {(r["change"], r["doc_id"]) for r in hidden.to_pylist()}
        for change in sorted({c for c, _ in pairs}):
            if change in known or not self.remote or is_stale(change):
                documents = sorted(d for c, d in pairs if c == change)
                for at in range(0, len(documents), 500):
                    named = ", ".join(map(quote_value, documents[at : at + 500]))
                    spans.delete(f"change = {quote_value(change)} AND doc_id IN ({named})")
        spans.optimize(cleanup_older_than=timedelta(days=36_500))
        self.commit(new_change(), "compact", about, (), int(spans.version))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # LanceDB warns of readers of the old versions; so do our docs
            age = ORPHAN_AGE if self.remote else timedelta(0)
            spans.optimize(cleanup_older_than=age, delete_unverified=not self.remote)

    def read_note(self, name: str) -> Any | None:
        if NOTES not in self._db.list_tables().tables:
            return None
        rows = [r for r in read_all_columns(self._db.open_table(NOTES)).to_pylist() if r["name"] == name]
        return json.loads(rows[-1]["value"]) if rows else None

    def write_note(self, name: str, value: Any) -> None:
        table = self._db.create_table(NOTES, schema=NOTE, exist_ok=True)
        table.add(pa.Table.from_pylist([{"name": name, "value": json.dumps(value, default=str)}], NOTE))


def read_all_columns(table: Any, columns: Sequence[str] | None = None) -> pa.Table:
    query = table.search().limit(ALL_ROWS)
    return (query.select(list(columns)) if columns else query).to_arrow()


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


def is_stale(change: str) -> bool:
    begun = datetime.strptime(change[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return datetime.now(UTC) - begun > ORPHAN_AGE


def quote_value(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
