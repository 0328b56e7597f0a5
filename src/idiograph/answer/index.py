"""A library of known texts, as patches in a LanceDB table: add, replace, delete, search. Exact for now: every span is
scored. A change is one commit of the table, so that a kill leaves the old state or the new one."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa

from idiograph.corpus.sentences import sentences, tiles
from idiograph.errors import ArtifactError, InputError, ModelError
from idiograph.recipe import IndexRecipe
from idiograph.store import Manifest, draft, locked, read_manifest, seal
from idiograph.style.model import Style
from idiograph.style.patches import Patches
from idiograph.style.score import scorer
from idiograph.types import Document

TABLE, ABOUT = "spans", "about.json"
BLOCK = 512  # spans embedded and written at once
MAKE = "idiograph index CORPUS -o FOLDER"
TEXTS = pa.list_(pa.string())


@dataclass(frozen=True, slots=True)
class Passage:
    """An indexed span, without its vectors."""

    id: str
    doc_id: str
    title: str
    text: str
    authors: tuple[str, ...]
    names: tuple[str, ...]
    domains: tuple[str, ...]
    year: int | None
    lang: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, and its score."""

    passage: Passage
    score: float


def schema(dim: int, dtype: str) -> pa.Schema:
    plain = [(name, pa.string()) for name in ("id", "doc_id", "title", "text", "lang")]
    lists = [(name, TEXTS) for name in ("authors", "names", "domains")]
    vector = pa.list_(pa.float16() if dtype == "float16" else pa.float32(), dim)
    return pa.schema([*plain, *lists, ("year", pa.int32()), ("vectors", pa.list_(vector))])


def passages(document: Document, recipe: IndexRecipe) -> list[Passage]:
    """The spans of a document that go into the index."""
    people = sorted(document.authors, key=lambda a: a.key)
    found = tiles(sentences(document.text, document.lang or "en"), recipe.sentences)
    if recipe.spans_per_document:
        found = found[: recipe.spans_per_document]
    return [
        Passage(
            f"{document.id}#{start}",
            document.id,
            document.title,
            document.text[start:end],
            tuple(a.key for a in people),
            tuple(a.name for a in people),
            document.domains,
            document.year,
            document.lang,
        )
        for start, end in found
    ]


def blocks(documents: Iterable[Document], recipe: IndexRecipe) -> Iterator[list[Passage]]:
    """Passages of whole documents, about BLOCK at a time."""
    held: list[Passage] = []
    for document in documents:
        held += passages(document, recipe)
        if len(held) >= BLOCK:
            yield held
            held = []
    if held:
        yield held


def rows(found: Sequence[Passage], patches: Patches, shape: pa.Schema) -> pa.Table:
    """Passages with their vectors as an Arrow table."""
    vector = shape.field("vectors").type.value_type
    flat = pa.array(patches.vectors.astype(vector.value_type.to_pandas_dtype()).ravel(), vector.value_type)
    offsets = pa.array(np.concatenate([[0], np.cumsum(patches.lengths)]), pa.int32())
    vectors = pa.ListArray.from_arrays(offsets, pa.FixedSizeListArray.from_arrays(flat, vector.list_size))
    columns = [pa.array([getattr(p, n) for p in found], shape.field(n).type) for n in shape.names if n != "vectors"]
    return pa.table([*columns, vectors], schema=shape)


class Index:
    """A finished index, opened with the style that made it."""

    def __init__(self, folder: Path, style: Style) -> None:
        self.folder, self.style = folder, style
        self.manifest = read_manifest(folder, "index", MAKE)
        self.recipe = IndexRecipe(**self.manifest.recipe)
        self.about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        made = self.about["style"]
        if made != style.fingerprint:
            raise ModelError(
                f"index '{folder}' was made with model {made}, not {style.fingerprint}; rebuild it: {MAKE}"
            )
        try:
            self.table = lancedb.connect(str(folder)).open_table(TABLE)
        except (ValueError, OSError, RuntimeError) as error:
            raise ArtifactError(f"index '{folder}' is damaged; rebuild it: {MAKE}") from error

    @classmethod
    def open(cls, folder: str | Path, style: Style) -> "Index":
        return cls(Path(folder), style)

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        out: Path,
        style: Style,
        recipe: IndexRecipe | None = None,
        *,
        source: str = "",
        overwrite: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> "Index":
        """Embed documents and write them as a new index."""
        recipe = recipe or IndexRecipe()
        shape = schema(style.encoder.dim, recipe.dtype)
        count = 0
        with draft(out, overwrite) as folder:
            table = lancedb.connect(str(folder)).create_table(TABLE, schema=shape)
            for block in blocks(documents, recipe):
                table.add(rows(block, style.encode([p.text for p in block]), shape))
                count += len(block)
                if progress:
                    progress(count)
            if not count:
                raise InputError("there is no document to index")
            about = {"style": style.fingerprint, "model": style.encoder.name, "source": source}
            (folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")
            seal(folder, Manifest("index", recipe.model_dump(), {"corpus": source}, {"spans": count}))
        return cls(out, style)

    def __len__(self) -> int:
        return self.table.count_rows()

    def add(self, documents: Iterable[Document]) -> int:
        """Add documents; those that are there already are replaced. Returns the number of passages."""
        added = 0
        with locked(self.folder):
            for block in blocks(documents, self.recipe):
                new = rows(block, self.style.encode([p.text for p in block]), self.table.schema)
                which = ", ".join(sorted({quoted(p.doc_id) for p in block}))
                merge = self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
                merge.when_not_matched_by_source_delete(f"doc_id IN ({which})").execute(new)
                added += len(block)
        self._forget()
        return added

    def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove documents; returns the number of passages that went."""
        before = len(self)
        with locked(self.folder):
            self.table.delete(f"doc_id IN ({', '.join(map(quoted, doc_ids))})")
        self._forget()
        return before - len(self)

    def _forget(self) -> None:
        for name in ("passages", "patches"):
            self.__dict__.pop(name, None)

    @cached_property
    def passages(self) -> list[Passage]:
        """Every passage, in the order of `patches`."""
        found = self._arrow.drop_columns(["vectors"]).to_pylist()
        return [Passage(**{name: frozen(value) for name, value in row.items()}) for row in found]

    @cached_property
    def patches(self) -> Patches:
        column = self._arrow.column("vectors").combine_chunks()
        flat = np.asarray(column.flatten().flatten()).reshape(-1, self.style.encoder.dim)
        lengths = np.diff(np.asarray(column.offsets)).astype(np.int64)
        return Patches(flat.astype(np.float32), lengths, np.zeros((len(flat), 2), np.int64))

    @property
    def _arrow(self) -> pa.Table:
        return self.table.to_arrow().sort_by("id")

    def scores(self, texts: Sequence[str]) -> np.ndarray:
        """Every text against every passage: (texts, passages)."""
        if not len(self):
            raise InputError(f"index '{self.folder}' is empty; add documents: {MAKE}")
        return scorer(self.style.score)(self.style.encode(texts), self.patches)

    def search(self, text: str, k: int = 10, *, exclude: Sequence[str] = ()) -> list[Hit]:
        """The passages nearest to a text; `exclude` names documents that do not count."""
        scores = self.scores([text])[0]
        order = (at for at in np.argsort(-scores, kind="stable") if self.passages[at].doc_id not in exclude)
        return [Hit(self.passages[at], float(scores[at])) for at, _ in zip(order, range(k), strict=False)]


def frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
