"""The quality signals of a corpus, one row a document, beside its shards. They describe; they drop nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from idiograph.corpus.signals import SIGNALS, signals
from idiograph.errors import ServiceError
from idiograph.runner import Failure, run

BATCH = 64
SCHEMA = pa.schema([("id", pa.string()), *((name, pa.float32()) for name in SIGNALS)])


def write_signals(
    shards: list[Path], runner: str = "inline", workers: int | None = None, address: str | None = None
) -> None:
    """For `train-X.parquet`, `signals-X.parquet`, with the same documents in the same order."""
    for shard in shards:
        with pq.ParquetWriter(shard.with_name(shard.name.replace("train", "signals", 1)), SCHEMA) as writer:
            for rows in run(described, batches(shard), runner, workers, address):
                if isinstance(rows, Failure):
                    raise ServiceError(f"quality signals: {rows.reason} ({rows.detail}); run it again")
                writer.write_table(pa.Table.from_pylist(rows, SCHEMA))


def batches(shard: Path) -> Iterator[list[dict[str, Any]]]:
    with pq.ParquetFile(shard) as file:
        yield from (batch.to_pylist() for batch in file.iter_batches(BATCH, columns=["id", "lang", "text"]))


def described(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": row["id"], **signals(row["text"], row["lang"])} for row in batch]
