"""Triplets on disk, in the columns of HALvest-Contrastive: written here, and read here whoever wrote them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from idiograph.corpus.spans import SpanPool
from idiograph.errors import ArtifactError, InputError
from idiograph.types import Span, Triplet

ROLES = {"anchor": ("query", "query"), "positive": ("pos", "positive"), "negative": ("neg", "negative")}
TEXTS = pa.list_(pa.string())
SHARD, GROUP = 200_000, 4096  # triplets in a file and in a row group


def columns(role: str) -> dict[str, Any]:
    """Column names of one role, in the published order, with their types."""
    short, text = ROLES[role]
    return {
        f"{short}_halid": pa.string(),
        text: pa.string(),
        f"{short}_year": pa.int32(),
        f"{short}_domain": TEXTS,
        f"{short}_affiliations": TEXTS,
        f"{short}_authorids": TEXTS,
    }


SCHEMA = pa.schema([item for role in ROLES for item in columns(role).items()])
REPEATING: Any = [  # columns whose values come again and again; texts hardly do
    f"{field.name}.list.element" if field.type == TEXTS else field.name
    for field in SCHEMA
    if field.name not in {text for _, text in ROLES.values()}
]


def configurations(folder: Path) -> list[str]:
    """The `base-4`, `unrestricted-2`, … that a folder holds."""
    found = sorted(path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*.parquet")))
    if not found:
        raise ArtifactError(f"there are no triplets in '{folder}'; make them: idiograph mine CORPUS -o {folder}")
    return found


def shards(folder: Path, name: str, split: str) -> list[Path]:
    found = sorted((folder / name).glob(f"{split}-*.parquet"))
    if not found:
        raise InputError(
            f"'{folder}' has no split '{split}' in '{name}'; mine a larger corpus, or choose another split"
        )
    return found


def read_triplets(folder: Path, name: str, split: str) -> Iterator[Triplet]:
    """The triplets of one configuration and split."""
    for path in shards(folder, name, split):
        for batch in pq.ParquetFile(path).iter_batches(batch_size=1024):
            for found in batch.to_pylist():
                yield Triplet(*(span(found, role) for role in ROLES))


def span(found: Mapping[str, Any], role: str) -> Span:
    """One span of a row; the published files spell one column `neg_halids`."""
    short, text = ROLES[role]
    halid = found[f"{short}_halid"] if f"{short}_halid" in found else found[f"{short}_halids"]
    year = found.get(f"{short}_year")
    return Span(
        doc_id=str(halid),
        start=0,
        end=len(found[text]),
        text=found[text],
        authors=frozenset(map(str, found[f"{short}_authorids"])),
        domains=frozenset(found[f"{short}_domain"] or ()),
        year=int(year) if year else None,
    )


def write_triplets(
    rows: NDArray[np.int64], pool: SpanPool, shown: pa.Table, folder: Path, split: str, limit: int = SHARD
) -> int:
    """Write triplets, given as span numbers (T, 3), as Parquet shards under the hub's names; returns how many they are."""
    shards = -(-len(rows) // limit)
    for number in range(shards):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{split}-{number:05d}-of-{shards:05d}.parquet"
        with pq.ParquetWriter(path, SCHEMA, compression="zstd", use_dictionary=REPEATING) as writer:
            for at in range(number * limit, min((number + 1) * limit, len(rows)), GROUP):
                writer.write_table(table_of(rows[at : min(at + GROUP, (number + 1) * limit)], pool, shown))
    return len(rows)


def table_of(rows: NDArray[np.int64], pool: SpanPool, shown: pa.Table) -> pa.Table:
    """Triplets with their texts and what is known of their documents."""
    found: list[Any] = []
    for role in range(len(ROLES)):
        about = shown.take(pa.array(pool.owners(rows[:, role])))
        beside = {name: about.column(name) for name in about.column_names}
        found += [beside["id"], pool.texts(rows[:, role]), beside["year"], beside["domain"]]
        found += [beside["affiliations"], beside["authorids"]]
    return pa.Table.from_arrays(found, schema=SCHEMA)
