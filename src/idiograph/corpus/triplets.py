"""Triplets on disk, in the columns of HALvest-Contrastive: written here, and read here whoever wrote them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from idiograph.errors import ArtifactError, InputError
from idiograph.types import Span, Triplet

ROLES = {"anchor": ("query", "query"), "positive": ("pos", "positive"), "negative": ("neg", "negative")}
TEXTS = pa.list_(pa.string())


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


def write_shards(rows: Iterator[Sequence[dict[str, Any]]], folder: Path, split: str, limit: int = 200_000) -> int:
    """Write blocks of rows as Parquet shards under the hub's names; returns how many rows there were."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    total = held = 0
    writer: pq.ParquetWriter | None = None
    for block in rows:
        if writer is None or held >= limit:
            if writer is not None:
                writer.close()
            paths.append(folder / f"{split}-{len(paths):05d}.parquet")
            writer, held = pq.ParquetWriter(paths[-1], SCHEMA, compression="zstd"), 0
        writer.write_table(pa.Table.from_pylist(list(block), SCHEMA))
        held, total = held + len(block), total + len(block)
    if writer is not None:
        writer.close()
    for path in paths:
        path.rename(path.with_name(f"{path.stem}-of-{len(paths):05d}.parquet"))
    return total
