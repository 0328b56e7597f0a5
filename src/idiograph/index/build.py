"""How an index comes to be: documents cut, embedded and packed into a temporary file, here, in processes or on a cluster; the
directions that vectors keep; and the passages written to a place. What comes out does not depend on where the work was done.
"""

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

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
    apart: bool = False  # the nodes of a cluster do not see the folder in which an index is made

    def embed(self, style: Style, tasks: Iterable["BlockTask"], dtype: str) -> Iterator["EmbeddedBlock"]:
        """What is said of each block, when its worker has written it."""
        if self.pool.runner == "inline":
            yield from (embed_passages(style, task, dtype) for task in tasks)
            return
        if self.opener is None:
            raise InputError(f"the runner '{self.pool.runner}' needs to know how a worker opens the model")
        work = partial(embed_block, pickle.dumps(self.opener), dtype)
        for block in self.pool.map(work, tasks):
            if isinstance(block, Failure):
                raise InputError(f"passages could not be embedded: {block.reason} ({block.detail})")
            yield block


@dataclass(frozen=True)
class BlockTask:
    """Passages to embed, and the file for them; no file if whoever asks cannot see those of a worker."""

    path: Path | None
    documents: list[str]
    passages: list[Passage]


@dataclass(frozen=True)
class EmbeddedBlock:
    """What is said of passages that were embedded: not their texts, nor their vectors."""

    documents: list[str]
    bare: list[str]
    ids: list[str]
    patches: int
    batch: pa.RecordBatch | None = None  # where there was no file for it


def embed_block(opener: bytes, dtype: str, task: BlockTask) -> EmbeddedBlock:
    """What a worker does with a block."""
    return embed_passages(unpickle_style(opener), task, dtype)


def embed_passages(style: Style, task: BlockTask, dtype: str) -> EmbeddedBlock:
    vectors = pack_texts(style, [p.text for p in task.passages], dtype)
    batch = passage_batch(task.passages, vectors)
    if task.path:
        write_batch(batch, task.path)
    have = {p.doc_id for p in task.passages}
    bare, ids = [doc for doc in task.documents if doc not in have], [p.id for p in task.passages]
    return EmbeddedBlock(task.documents, bare, ids, int(vectors.lengths.sum()), None if task.path else batch)


def write_batch(batch: pa.RecordBatch, path: Path) -> None:
    """A file that is there as a whole or not at all, whoever is killed."""
    hidden = path.with_name(f".{path.name}-{uuid4().hex}")
    with pa.OSFile(str(hidden), "wb") as sink, pa.ipc.new_file(sink, EMBEDDED_SCHEMA) as writer:
        writer.write_batch(batch)
    hidden.replace(path)


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
    """Embedded passages in a folder, in files that workers have written."""

    folder: Path
    dim: int
    dtype: str
    documents: list[str] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)  # documents that have no passage
    ids: list[str] = field(default_factory=list)
    patches: int = 0
    blocks: list[Path] = field(default_factory=list)

    def fill(
        self,
        documents: Iterable[Document],
        style: Style,
        recipe: IndexRecipe,
        workers: EmbeddingWorkers,
        progress: Progress | None = None,
    ) -> None:
        """Embed documents into files; each id may come once."""
        seen = not (workers.pool.runner == "ray" and workers.apart)
        blocks = passage_blocks(documents, recipe, PASSAGES_PER_BLOCK)
        tasks = (BlockTask(self._path(at) if seen else None, *block) for at, block in enumerate(blocks))
        for at, block in enumerate(workers.embed(style, tasks, self.dtype)):
            if block.batch is not None:
                write_batch(block.batch, self._path(at))
            self._note(block, self._path(at))
            if progress:
                progress(len(self.ids), None, "embedding passages")
        if len(set(self.documents)) < len(self.documents):
            twice = Counter(self.documents).most_common(1)[0][0]
            raise InputError(f"document '{twice}' was given twice; give each document once")

    def _path(self, at: int) -> Path:
        return self.folder / f"{at:08d}.arrow"

    def _note(self, block: EmbeddedBlock, path: Path) -> None:
        self.documents += block.documents
        self.bare += block.bare
        self.ids += block.ids
        self.patches += block.patches
        if block.ids:
            self.blocks.append(path)

    def batches(self) -> Iterator[tuple[pa.RecordBatch, QuantizedPatches]]:
        """The passages as they were written, and their vectors."""
        for path in self.blocks:
            with pa.memory_map(str(path)) as source:
                some = pa.ipc.open_file(source).get_batch(0)
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
        with draft(Path(out), overwrite) as folder, TemporaryDirectory(prefix=TEMPORARY, dir=folder.resolve()) as room:
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
