"""Triplets on disk, in the columns of HALvest-Contrastive: written here, and read here whoever wrote them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from idiograph.errors import ArtifactError, InputError
from idiograph.mining.split import PEOPLE_FILE, SPLITS
from idiograph.store import MANIFEST, find_manifest
from idiograph.types import Span, Triplet

if TYPE_CHECKING:  # who only reads triplets does not load what draws them
    from idiograph.mining.spans import SpanPool

Passage = tuple[str, str, str] | tuple[str, str, str, str]  # text, author-set, document, and its field if it is known
ROLES = {"anchor": ("query", "query"), "positive": ("pos", "positive"), "negative": ("neg", "negative")}
TEXTS = pa.list_(pa.string())
SHARD, GROUP = 200_000, 16_384  # triplets in a file and in a row group


def role_columns(short: str, text: str) -> tuple[str, ...]:
    """Column names of one role, in the published order."""
    return (f"{short}_halid", text, *(f"{short}_{what}" for what in ("year", "domain", "affiliations", "authorids")))


KINDS = (pa.string(), pa.string(), pa.int32(), TEXTS, TEXTS, TEXTS)
SCHEMA = pa.schema([item for names in ROLES.values() for item in zip(role_columns(*names), KINDS, strict=True)])
PUBLISHED_NAMES = {"neg_halid": "neg_halids"}
UNKNOWN_YEAR = 1


def repeating_columns(schema: pa.Schema) -> Any:
    """Columns whose values come again and again; texts hardly do."""
    texts = {text for _, text in ROLES.values()}
    return [f"{f.name}.list.element" if f.type == TEXTS else f.name for f in schema if f.name not in texts]


def configurations(folder: Path) -> list[str]:
    """The `base-4`, `base-10`, `unrestricted-2`, … that a folder holds, by rule and number of sentences."""
    folders = folder.iterdir() if folder.is_dir() else ()
    names = (path.name for path in folders if path.is_dir() and any(path.glob("*.parquet")))
    ordered = sorted(names, key=lambda name: (name.rstrip("0123456789"), len(name), name))
    if not ordered:
        raise ArtifactError(f"there are no triplets in '{folder}'; make them: idiograph mine CORPUS -o {folder}")
    return ordered


def locate_triplets(path: Path, names: Sequence[str] = ()) -> tuple[Path, list[str]]:
    """The folder of triplets that a path leads to, and which of its configurations: those in `names`, or all.

    The path of one configuration, such as `triplets/base-4`, stands for that one. A folder of ours must be as it was written.
    """
    if (
        any(each.name != PEOPLE_FILE for each in path.glob("*.parquet"))
        and not (path / MANIFEST).exists()
        and set(names) <= {path.absolute().name}
    ):
        find_manifest(path.absolute().parent)
        return path.absolute().parent, [path.absolute().name]
    find_manifest(path)
    return path, list(names) or configurations(path)


def shards(folder: Path, name: str, split: str) -> list[Path]:
    paths = sorted((folder / name).glob(f"{split}-*.parquet"))
    if not paths:
        raise InputError(
            f"'{folder}' has no split '{split}' in '{name}'; mine a larger corpus, or choose another split"
        )
    return paths


def splits(folder: Path, name: str) -> list[str]:
    """The splits that a configuration has."""
    return [split for split in SPLITS if any((folder / name).glob(f"{split}-*.parquet"))]


def read_triplets(folder: Path, name: str, split: str) -> Iterator[Triplet]:
    """The triplets of one configuration and split."""
    for row in read_rows(folder, name, split):
        yield Triplet(*(span_of_row(row, role) for role in ROLES))


def read_rows(folder: Path, name: str, split: str) -> Iterator[dict[str, Any]]:
    """The rows of one configuration and split, under the names of `SCHEMA` whoever wrote them."""
    for path in shards(folder, name, split):
        try:
            file = pq.ParquetFile(path)
            for batch in file.iter_batches(batch_size=1024):
                yield from map(rename_columns, batch.to_pylist())
        except (pa.ArrowInvalid, OSError) as error:
            raise ArtifactError(f"'{path}' is damaged ({str(error).splitlines()[0]}); make it again") from error
        except KeyError as error:
            raise InputError(f"'{path}' has no column {error}; triplets have {', '.join(SCHEMA.names)}") from error


def rename_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row under our names. The published files spell one column `neg_halids`, and those of the cloze task name their
    one document once."""
    renamed = dict(row)
    for short, text in ROLES.values():
        if "halid" in row:
            about = (row["halid"], row[text], row["year"], row["domains"], row["affiliations"], row["authors"])
        else:
            halid = row[f"{short}_halid"] if f"{short}_halid" in row else row[f"{short}_halids"]
            about = (halid, row[text], *(row.get(f"{short}_{what}") for what in ("year", "domain", "affiliations")))
            about = (*about, row[f"{short}_authorids"])
        renamed |= dict(zip(role_columns(short, text), tidy_text(about), strict=True))
    return renamed


def tidy_text(about: tuple[Any, ...]) -> Iterator[Any]:
    """Ids as text, a year as a number (1 stands for unknown), and lists that are there even if they are empty."""
    halid, text, year, *lists = about
    yield from (str(halid), text, int(year) if str(year or "").isdigit() and int(year) > 1 else None)
    yield from ([each] if isinstance(each, str) else list(map(str, each or ())) for each in lists)


def row_passages(row: Mapping[str, Any]) -> list[Passage]:
    """The three texts of a row, and who wrote each where; of its fields the first, which is the primary one."""
    passages: list[Passage] = []
    for short, text in ROLES.values():
        fields = row[f"{short}_domain"]
        authors = " ".join(sorted(row[f"{short}_authorids"]))
        passages.append((row[text], authors, row[f"{short}_halid"], fields[0] if fields else ""))
    return passages


def read_json_lines(path: Path) -> Iterator[list[Passage]]:
    """Rows of one object a line: `anchor`, `positive`, `negative` (a text or a list). If it is known: `author`, who wrote anchor
    and positive, `negative_author`, and for each role its document, such as `anchor_document`."""
    with path.open(encoding="utf-8") as lines:
        for at, line in enumerate(lines, 1):
            yield line_passages(f"{path}:{at}", line)


def line_passages(place: str, line: str) -> list[Passage]:
    """The texts of a line. A writer who is not named is the same for anchor and positive, and nobody else."""
    try:
        row = json.loads(line)
        texts = {"anchor": [row["anchor"]], "positive": [row["positive"]], "negative": row.get("negative", [])}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{place}: not a triplet ({error!r}); give it 'anchor', 'positive', 'negative'") from error
    if isinstance(texts["negative"], str):
        texts["negative"] = [texts["negative"]]
    if not all(isinstance(text, str) for some in texts.values() for text in some):
        raise InputError(f"{place}: not a triplet (a text is none); give it 'anchor', 'positive', 'negative' as texts")
    author = row.get("author", place)
    authors = {"anchor": author, "positive": author, "negative": row.get("negative_author", f"{place}: others")}
    documents = {role: str(row.get(f"{role}_document", f"{place}: {role}")) for role in texts}
    return [(text, str(authors[role]), documents[role]) for role, some in texts.items() for text in some]


def span_of_row(row: Mapping[str, Any], role: str) -> Span:
    """One span of a row."""
    short, text = ROLES[role]
    return Span(
        doc_id=row[f"{short}_halid"],
        start=0,
        end=len(row[text]),
        text=row[text],
        authors=frozenset(row[f"{short}_authorids"]),
        domains=frozenset(row[f"{short}_domain"]),
        year=row[f"{short}_year"] or None,
    )


def write_triplets(
    rows: NDArray[np.int64], source: "TripletSource", folder: Path, split: str, limit: int = SHARD
) -> int:
    """Write triplets, given as span numbers (T, 3), as Parquet shards under the hub's names; returns how many they are."""
    schema = schema_of(source.form)
    shards = -(-len(rows) // limit)
    for number in range(shards):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{split}-{number:05d}-of-{shards:05d}.parquet"
        with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=repeating_columns(schema)) as writer:
            for at in range(number * limit, min((number + 1) * limit, len(rows)), GROUP):
                writer.write_table(source.table(rows[at : min(at + GROUP, (number + 1) * limit)]))
    return len(rows)


@dataclass(frozen=True)
class TripletSource:
    """Where the texts of triplets and what is known of their documents come from, and in which form they are written."""

    pool: "SpanPool"
    documents: pa.Table
    form: str = "ours"

    def table(self, rows: NDArray[np.int64]) -> pa.Table:
        """Triplets, given as span numbers, with their texts and what is known of their documents."""
        columns: list[Any] = []
        for role in range(len(ROLES)):
            about = self.documents.take(pa.array(self.pool.owners(rows[:, role])))
            beside = {name: about.column(name) for name in about.column_names}
            year = published_years(beside["year"]) if self.form == "published" else beside["year"]
            columns += [beside["id"], self.pool.texts(rows[:, role]), year, beside["domain"]]
            columns += [beside["affiliations"], beside["authorids"]]
        return pa.Table.from_arrays(columns, schema=schema_of(self.form))


def published_years(years: pa.ChunkedArray) -> pa.Array:
    """Years as the published files have them: text, and 1 where it is not known."""
    return pa.array([str(year or UNKNOWN_YEAR) for year in years.to_pylist()], pa.string())


def schema_of(form: str) -> pa.Schema:
    """The columns of a triplet folder; the published ones spell one in the plural and hold years as text."""
    if form == "ours":
        return SCHEMA
    names = [PUBLISHED_NAMES.get(name, name) for name in SCHEMA.names]
    kinds = [pa.string() if name.endswith("_year") else SCHEMA.field(name).type for name in SCHEMA.names]
    return pa.schema(list(zip(names, kinds, strict=True)))
