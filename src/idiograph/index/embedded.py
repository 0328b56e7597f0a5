"""Documents cut, embedded and packed into a temporary file, before anything is written to an index: here, in processes or on
a cluster. What comes out does not depend on where the work was done."""

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import tee
from pathlib import Path

import numpy as np
import pyarrow as pa

from idiograph.errors import InputError
from idiograph.index.passages import Passage, passage_blocks
from idiograph.index.quantize import QuantizedPatches, from_bytes, pack_vectors, to_bytes
from idiograph.index.tables import SPAN
from idiograph.recipe import IndexRecipe
from idiograph.runner import Failure, Progress, Workers
from idiograph.seeded import hash_text
from idiograph.style.model import Style
from idiograph.style.tokens import Floats
from idiograph.types import Document

BLOCK = 512  # passages embedded and written at once
PER_PASSAGE = 4  # patches of a passage that directions are learned from
Opener = Callable[[], Style]

WRITTEN = pa.schema([f for f in SPAN if f.name not in ("change", "sketch")])


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
        work = partial(embed, pickle.dumps(self.opener), dtype)
        for found in self.pool.map(work, texts):
            if isinstance(found, Failure):
                raise InputError(f"passages could not be embedded: {found.reason} ({found.detail})")
            yield found


def embed(opener: bytes, dtype: str, texts: list[str]) -> QuantizedPatches:
    """What a worker does with a block."""
    return pack_texts(opened_style(opener), texts, dtype)


@lru_cache(maxsize=2)
def opened_style(opener: bytes) -> Style:
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
        here, there = tee(passage_blocks(documents, recipe, BLOCK))
        texts = ([p.text for p in found] for _, found in there)
        with pa.OSFile(str(self.path), "wb") as sink, pa.ipc.new_file(sink, WRITTEN) as writer:
            for (ids, found), vectors in zip(here, workers.embed(style, texts, self.dtype), strict=True):
                self._note(ids, found, vectors)
                if found:
                    writer.write(passage_batch(found, vectors))
                if progress:
                    progress(len(self.ids), None, "embedding passages")
        if len(set(self.documents)) < len(self.documents):
            twice = Counter(self.documents).most_common(1)[0][0]
            raise InputError(f"document '{twice}' was given twice; give each document once")

    def _note(self, ids: list[str], found: list[Passage], vectors: QuantizedPatches) -> None:
        have = {p.doc_id for p in found}
        self.documents += ids
        self.bare += [doc for doc in ids if doc not in have]
        self.ids += [p.id for p in found]
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
        chosen = set(sorted(self.ids, key=hash_text)[: -(-count // PER_PASSAGE)])
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
    steps = [np.unique(np.linspace(0, n - 1, PER_PASSAGE).astype(int)) for n in wide.lengths]
    return {name: wide.vectors[start + step] for name, start, step in zip(ids, wide.starts, steps, strict=True)}


def passage_batch(found: list[Passage], vectors: QuantizedPatches) -> pa.RecordBatch:
    made = {"vectors": to_bytes(vectors), "patches": vectors.lengths.tolist()}
    columns = [
        pa.array(made[f.name] if f.name in made else [getattr(p, f.name) for p in found], f.type) for f in WRITTEN
    ]
    return pa.record_batch(columns, schema=WRITTEN)
