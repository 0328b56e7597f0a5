"""How an index comes to be: documents cut, embedded and packed into a temporary file, here, in processes or on a cluster; the
directions that vectors keep; and the passages written to a place. What comes out does not depend on where the work was done.
"""

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import tee
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from idiograph.errors import ArtifactError, InputError, ServiceError
from idiograph.index.candidates import sketches
from idiograph.index.passages import Passage, passage_blocks
from idiograph.index.quantize import QuantizedPatches, from_bytes, pack_vectors, to_bytes
from idiograph.index.remote import REMOTE, RemoteTables
from idiograph.index.tables import BROKEN, FIRST_EDITION, SPAN, FolderTables, IndexTables, new_change
from idiograph.recipe import IndexRecipe
from idiograph.runner import Failure, Progress, Workers
from idiograph.seeded import hash_text
from idiograph.store import Manifest, draft, read_manifest, seal
from idiograph.style.model import Style
from idiograph.style.patches import Patches, unit_vectors
from idiograph.style.tokens import Floats
from idiograph.types import Document

MAKE = "idiograph index CORPUS -o FOLDER"
TEMPORARY = ".spool-"  # how the names of folders begin that go when a run ends
PATCHES_TO_LEARN_FROM = 50_000  # patches that directions are learned from
PASSAGES_PER_BLOCK = 512  # passages embedded and written at once
PATCHES_PER_PASSAGE = 4  # patches of a passage that directions are learned from
Opener = Callable[[], Style]

EMBEDDED_SCHEMA = pa.schema([f for f in SPAN if f.name not in ("change", "sketch")])


@dataclass(frozen=True)
class EmbeddingWorkers:
    """Who embeds: this process with the style that it has, or workers that each open their own."""

    pool: Workers = field(default_factory=Workers)
    opener: Opener | None = None

    def embed(self, style: Style, texts: Iterable[list[str]], dtype: str) -> Iterator[QuantizedPatches]:
        if self.pool.runner == "inline":
            yield from (pack_texts(style, some, dtype) for some in texts)
            return
        if self.opener is None:
            raise InputError(f"the runner '{self.pool.runner}' needs to know how a worker opens the model")
        work = partial(embed_block, pickle.dumps(self.opener), dtype)
        for packed in self.pool.map(work, texts):
            if isinstance(packed, Failure):
                raise InputError(f"passages could not be embedded: {packed.reason} ({packed.detail})")
            yield packed


def embed_block(opener: bytes, dtype: str, texts: list[str]) -> QuantizedPatches:
    """What a worker does with a block."""
    return pack_texts(unpickle_style(opener), texts, dtype)


@lru_cache(maxsize=2)
def unpickle_style(opener: bytes) -> Style:
    """The style of this worker, opened once."""
    return pickle.loads(opener)()


def pack_texts(style: Style, texts: list[str], dtype: str) -> QuantizedPatches:
    if not texts:
        return QuantizedPatches(
            np.zeros((0, 1), np.int8), np.zeros(0, np.float16), np.zeros(0, np.int64), style.encoder.dim, dtype
        )
    return pack_vectors(style.encode(texts), dtype)


@dataclass
class EmbeddedPassages:
    """A file of embedded passages."""

    path: Path
    dim: int
    dtype: str
    documents: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)  # documents that have no passage
    ids: list[str] = field(default_factory=list)
    patches: int = 0

    def fill(
        self,
        documents: Iterable[Document],
        style: Style,
        recipe: IndexRecipe,
        workers: EmbeddingWorkers,
        progress: Progress | None = None,
    ) -> None:
        """Embed documents into the file; each id may come once."""
        here, there = tee(passage_blocks(documents, recipe, PASSAGES_PER_BLOCK))
        texts = ([p.text for p in passages] for _, passages in there)
        with pa.OSFile(str(self.path), "wb") as sink, pa.ipc.new_file(sink, EMBEDDED_SCHEMA) as writer:
            for (ids, passages), vectors in zip(here, workers.embed(style, texts, self.dtype), strict=True):
                self._note(ids, passages, vectors)
                if passages:
                    writer.write(passage_batch(passages, vectors))
                if progress:
                    progress(len(self.ids), None, "embedding passages")
        if len(set(self.documents)) < len(self.documents):
            twice = Counter(self.documents).most_common(1)[0][0]
            raise InputError(f"document '{twice}' was given twice; give each document once")

    def _note(self, ids: list[str], passages: list[Passage], vectors: QuantizedPatches) -> None:
        have = {p.doc_id for p in passages}
        self.documents += ids
        self.bare += [doc for doc in ids if doc not in have]
        self.ids += [p.id for p in passages]
        self.patches += int(vectors.lengths.sum())

    def batches(self) -> Iterator[tuple[pa.RecordBatch, QuantizedPatches]]:
        """The passages as they were written, and their vectors."""
        with pa.memory_map(str(self.path)) as source:
            reader = pa.ipc.open_file(source)
            for at in range(reader.num_record_batches):
                some = reader.get_batch(at)
                yield some, from_bytes([v.as_buffer() for v in some["vectors"]], self.dim, self.dtype)

    def sample(self, count: int) -> Floats:
        """About `count` patches to learn from: chosen by the passages' ids alone, and in their order."""
        chosen = set(sorted(self.ids, key=hash_text)[: -(-count // PATCHES_PER_PASSAGE)])
        drawn: dict[str, Floats] = {}
        for some, vectors in self.batches():
            ids = some["id"].to_pylist()
            rows = [at for at, name in enumerate(ids) if name in chosen]
            if rows:
                drawn |= few_passages(vectors.take(rows), [ids[at] for at in rows])
        return np.concatenate([drawn[name] for name in sorted(drawn)])


def few_passages(vectors: QuantizedPatches, ids: list[str]) -> dict[str, Floats]:
    """A few patches of each passage, evenly from its beginning to its end."""
    wide = vectors.wide()
    steps = [np.unique(np.linspace(0, n - 1, PATCHES_PER_PASSAGE).astype(int)) for n in wide.lengths]
    return {name: wide.vectors[start + step] for name, start, step in zip(ids, wide.starts, steps, strict=True)}


def passage_batch(passages: list[Passage], vectors: QuantizedPatches) -> pa.RecordBatch:
    arrays = {"vectors": to_bytes(vectors), "patches": vectors.lengths.tolist()}
    columns = [
        pa.array(arrays[f.name] if f.name in arrays else [getattr(p, f.name) for p in passages], f.type)
        for f in EMBEDDED_SCHEMA
    ]
    return pa.record_batch(columns, schema=EMBEDDED_SCHEMA)


def open_tables(where: str | Path, storage: Mapping[str, str] | None) -> IndexTables:
    """The tables of an index that is there; says what is wrong if it is not."""
    if not str(where).startswith(REMOTE):
        read_manifest(Path(where), "index", MAKE)
        if (Path(where) / FIRST_EDITION).exists():
            raise ArtifactError(f"index '{where}' was made by an earlier idiograph, with LanceDB; rebuild it: {MAKE}")
        return FolderTables(where)
    tables, exists = reach_tables(str(where), storage)
    if not exists:
        raise ArtifactError(f"there is no index at '{where}'; make one: {MAKE}")
    return tables


def reach_tables(where: str, storage: Mapping[str, str] | None) -> tuple[RemoteTables, bool]:
    """A remote place, and whether there is an index; says so if it cannot be reached."""
    try:
        tables = RemoteTables(where, storage)
        return tables, tables.has_tables()
    except BROKEN as error:
        reason = " ".join(str(error).split())[:200]
        raise ServiceError(
            f"'{where}' cannot be reached ({reason}); check the address and the AWS_ settings"
        ) from error


@contextmanager
def prepare_index(
    out: str | Path, overwrite: bool, storage: Mapping[str, str] | None
) -> Iterator[tuple[IndexTables, Path]]:
    """Tables to fill, and a folder for temporary files. On disk the index appears only if the body ends well."""
    if not str(out).startswith(REMOTE):
        with draft(Path(out), overwrite) as folder, TemporaryDirectory(prefix=TEMPORARY, dir=folder) as room:
            yield FolderTables(folder), Path(room)
        return
    tables, exists = reach_tables(str(out), storage)
    if exists and not overwrite:
        raise ArtifactError(f"'{out}' is there already; choose another -o, or pass --overwrite")
    with TemporaryDirectory(prefix="idiograph-") as room:
        yield tables, Path(room)


def waiting_dtype(recipe: IndexRecipe) -> str:
    """How vectors wait: as they will be stored, unless directions are still to be left out."""
    return recipe.dtype if recipe.dim == "none" else "float16"


def learn_directions(embedded: EmbeddedPassages, recipe: IndexRecipe) -> dict[str, Floats]:
    """The directions to keep, learned from the passages that an index begins with; nothing if all are kept."""
    if recipe.dim == "none" or recipe.dim >= embedded.dim:
        return {}
    return {"basis": principal_directions(embedded.sample(PATCHES_TO_LEARN_FROM), recipe.dim)}


def principal_directions(sample: Floats, dim: int) -> Floats:
    """The directions in which vectors are longest, as columns: inner products survive best in these."""
    _, vectors = np.linalg.eigh((sample.T @ sample).astype(np.float64))
    return np.ascontiguousarray(vectors[:, ::-1][:, :dim], np.float32)


def project_vectors(patches: Patches, basis: Floats | None) -> Patches:
    return patches if basis is None else Patches(unit_vectors(patches.vectors @ basis), patches.lengths, patches.chars)


def append_passages(
    tables: IndexTables,
    embedded: EmbeddedPassages,
    recipe: IndexRecipe,
    book: Mapping[str, Floats],
    about: Mapping[str, Any],
) -> None:
    """Append the passages of a file of embedded ones, then make them visible at once."""
    change = new_change()
    version = tables.append(change, passage_rows(embedded, change, recipe, book)) if embedded.ids else tables.latest()
    tables.commit(change, "add", about, embedded.bare, version)


def passage_rows(
    embedded: EmbeddedPassages, change: str, recipe: IndexRecipe, book: Mapping[str, Floats]
) -> Iterator[pa.RecordBatch]:
    for some, packed in embedded.batches():
        wide = project_vectors(packed.wide(), book.get("basis"))
        arrays: dict[str, Any] = {"change": [change] * len(packed), "sketch": sketches(wide)}
        if "basis" in book:
            arrays["vectors"] = to_bytes(pack_vectors(wide, recipe.dtype))
        columns = [pa.array(arrays[f.name], f.type) if f.name in arrays else some[f.name] for f in SPAN]
        yield pa.record_batch(columns, schema=SPAN)


def seal_index(folder: Path, recipe: IndexRecipe, about: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    seal(folder, Manifest("index", recipe.model_dump(), {"corpus": about["source"], "style": about["style"]}, counts))
