"""An index under s3://, in tables of LanceDB, which several machines may read and add to. The only place that talks to LanceDB.

`spans` holds passages with their packed vectors, `log` one row a change, `codebook` the directions that vectors keep, as the
files of `tables` do. An append to `spans` is one commit. The log also says which version of `spans` belongs to it, so that a
reader sees one state, whatever is written meanwhile.
"""

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from idiograph.errors import ArtifactError
from idiograph.extras import require_library
from idiograph.index.tables import (
    BOOK,
    COLUMNS_IN_MEMORY,
    ENTRY,
    SPAN,
    WHOLE,
    IndexState,
    new_change,
    rows_of_part,
    state_of,
    visible_rows,
)
from idiograph.style.tokens import Ints

SPANS, LOG, CODEBOOK, NOTES = "spans", "log", "codebook", "notes"
REMOTE = "s3://"
ALL_ROWS = 2**31 - 1  # LanceDB gives ten rows unless told
ORPHAN_AGE = timedelta(days=1)  # how long another machine may take between its passages and its row in the log
NOTE = pa.schema([("name", pa.string()), ("value", pa.string())])


class RemoteTables:
    """The tables of an index in an object store."""

    remote = True

    def __init__(self, where: str | Path, storage: Mapping[str, str] | None = None) -> None:
        require_library("lancedb", f"an index under {REMOTE}")
        import lancedb  # takes more than a second

        self.where: str = str(where)
        self.storage: Mapping[str, str] = dict(storage or {})
        self._db = lancedb.connect(self.where, storage_options=dict(self.storage) or None)
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
        """What is there now, or the documents of a part of it; later changes do not show until this is called again."""
        log = read_all_columns(self._db.open_table(LOG))
        spans = self._db.open_table(SPANS)
        if not log.num_rows:
            raise ArtifactError(f"index '{self.where}' was never finished")
        spans.checkout(max(log["spans"].to_pylist()))
        self._spans = spans
        if part != WHOLE:
            return state_of(rows_of_part(self, part), log, self.where)
        rows = read_all_columns(spans, COLUMNS_IN_MEMORY)
        return state_of((np.arange(rows.num_rows), rows), log, self.where)

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

    def append(self, change: str, batches: Iterable[pa.RecordBatch]) -> int:
        """Write passages in one commit; nobody sees them before `commit`. Returns the version to commit."""
        del change  # the rows say it
        spans = self._db.open_table(SPANS)
        spans.add(pa.RecordBatchReader.from_batches(SPAN, iter(batches)))
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
            if change in known or is_stale(change):
                documents = sorted(d for c, d in pairs if c == change)
                for at in range(0, len(documents), 500):
                    named = ", ".join(map(quote_value, documents[at : at + 500]))
                    spans.delete(f"change = {quote_value(change)} AND doc_id IN ({named})")
        spans.optimize(cleanup_older_than=timedelta(days=36_500))
        self.commit(new_change(), "compact", about, (), int(spans.version))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # LanceDB warns of readers of the old versions; so do our docs
            spans.optimize(cleanup_older_than=ORPHAN_AGE)

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


def is_stale(change: str) -> bool:
    begun = datetime.strptime(change[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return datetime.now(UTC) - begun > ORPHAN_AGE


def quote_value(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
