"""A library of known texts: add, replace, delete, search. A search finds candidates from a few bytes a passage and scores
these exactly; or it scores everything. A change is there as a whole or not at all, also after a kill."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np

from idiograph.errors import ArtifactError, InputError, ModelError
from idiograph.index.build import (
    MAKE,
    TEMPORARY,
    EmbeddedPassages,
    EmbeddingWorkers,
    append_passages,
    learn_directions,
    open_tables,
    prepare_index,
    project_vectors,
    seal_index,
    waiting_dtype,
)
from idiograph.index.candidates import Sketches, count_candidates, count_finalists, highest_scores, pool_neighbours
from idiograph.index.filter import Filter, IndexedDocument
from idiograph.index.passages import Hit, Passage
from idiograph.index.quantize import QuantizedPatches, from_bytes, join_packed, score_all, vector_width
from idiograph.index.remote import RemoteTables
from idiograph.index.tables import BROKEN, WHOLE, IndexState, IndexTables, end_to_end, new_change
from idiograph.loading import is_shipped, load, shipped_style
from idiograph.recipe import IndexRecipe
from idiograph.runner import Progress
from idiograph.store import change_folder, locked_folder, read_sealed_json, write_sealed_json
from idiograph.style.model import Style
from idiograph.style.patches import Patches
from idiograph.style.tokens import Floats, Ints
from idiograph.text.language import UNKNOWN
from idiograph.types import Document

MAX_BYTES_IN_MEMORY = 8 * 2**30  # packed vectors up to this size are kept in memory once everything has been scored
NOTES = ".notes"  # hidden: what is learned from an index is no part of it, and each note has its own checksum
EVERYTHING = Filter()
T = TypeVar("T")


class Index:
    """A finished index, opened with the style that made it. It shows one state until it changes itself or is reopened."""

    def __init__(self, tables: IndexTables, style: Style, part: str = WHOLE) -> None:
        self.tables, self.style, self.where, self.part = tables, style, tables.where, part
        self.folder = Path(tables.where)
        self._embedded: tuple[tuple[str, ...], Patches] | None = None
        try:
            self._state: IndexState = tables.state(part)
            self._book = tables.codebook()
        except BROKEN as error:
            raise ArtifactError(f"index '{self.where}' is damaged; rebuild it: {MAKE}") from error
        self.about: dict[str, Any] = dict(self._state.about)
        model = self.about["style"]
        if model != style.fingerprint:
            raise ModelError(
                f"index '{self.where}' was made with model {model}, not {style.fingerprint}; rebuild it: {MAKE}"
            )
        self.recipe = self._read_recipe(self.about["recipe"])

    def _read_recipe(self, saved: Mapping[str, Any]) -> IndexRecipe:
        unknown = sorted(saved.keys() - IndexRecipe.model_fields.keys())
        if unknown:
            raise ArtifactError(
                f"index '{self.where}' was made by an idiograph that cut texts in another way (its recipe has "
                f"'{unknown[0]}'); rebuild it: {MAKE}"
            )
        return IndexRecipe(**saved)

    @classmethod
    def open(
        cls,
        where: str | Path,
        style: Style | None = None,
        *,
        storage: Mapping[str, str] | None = None,
        part: str = WHOLE,
    ) -> "Index":
        """Open a folder or an s3:// place; `storage` are LanceDB's options for the latter (keys, endpoint, region).

        Without a `style` the model is opened that the index was made with: the one that comes with the package, or a folder
        that still lies where it lay. Of a `part` i/n only the documents of that part are there: nothing of the others is kept
        in memory.
        """
        tables = open_tables(where, storage)
        return cls(tables, style or style_of_index(tables), part)

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        out: str | Path,
        style: Style | None = None,
        recipe: IndexRecipe | None = None,
        *,
        source: str = "",
        preset: str = "sound",
        overwrite: bool = False,
        workers: EmbeddingWorkers | None = None,
        storage: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> "Index":
        """Embed documents and write them as a new index; without a `style`, with the model that comes with the package."""
        recipe, style = recipe or IndexRecipe(), style or shipped_style()
        about = {"style": style.fingerprint, "model": style.encoder.name, "source": source, "preset": preset}
        about |= {"recipe": recipe.model_dump()}
        if style.folder and not is_shipped(style.folder):
            about["folder"] = str(style.folder.absolute() if style.folder.is_dir() else style.folder)
        with prepare_index(out, overwrite, storage) as (tables, room):
            embedded = EmbeddedPassages(room, style.encoder.dim, waiting_dtype(recipe))
            embedded.fill(documents, style, recipe, placed_workers(workers, tables), progress)
            if not embedded.ids:
                raise InputError("there is no document to index")
            book = learn_directions(embedded, recipe)
            tables.create(book)
            append_passages(tables, embedded, recipe, book, about)
            if not tables.remote:
                counts = {"passages": len(embedded.ids), "documents": len(embedded.documents) - len(embedded.bare)}
                seal_index(Path(tables.where), recipe, about, counts)
        return cls.open(out, style, storage=storage)

    def __len__(self) -> int:
        return self._state.rows.num_rows

    @property
    def version(self) -> str:
        """The name of the last change to what is in the index."""
        return self._state.version

    def add(
        self,
        documents: Iterable[Document],
        *,
        workers: EmbeddingWorkers | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Add documents; those that are there already are replaced. All of them or none. Returns the number of passages."""
        with self._writing() as room:
            embedded = EmbeddedPassages(room, self.style.encoder.dim, waiting_dtype(self.recipe))
            embedded.fill(documents, self.style, self.recipe, placed_workers(workers, self.tables), progress)
            if embedded.documents:
                append_passages(self.tables, embedded, self.recipe, self._book, self.about)
        self.refresh()
        return len(embedded.ids)

    def delete(self, doc_ids: Sequence[str]) -> int:
        """Remove documents; returns the number of passages that went. Their bytes go with `compact`."""
        before = len(self)
        with self._writing():
            self.tables.commit(new_change(), "delete", self.about, list(doc_ids), self.tables.latest())
        self.refresh()
        return before - len(self)

    def compact(self) -> None:
        """Give back the space of what was replaced, deleted or never finished. Others must reopen the index."""
        with self._writing():
            self.tables.compact(self.about)
        self.refresh()

    def refresh(self) -> None:
        """Show what is there now."""
        self._state = self.tables.state(self.part)
        for name in ("passages", "patches", "documents", "owner", "_sketches", "_in_memory", "_derived"):
            self.__dict__.pop(name, None)

    @contextmanager
    def _writing(self) -> Iterator[Path]:
        """A place for temporary files; on disk one writer at a time."""
        if self.tables.remote:
            with TemporaryDirectory(prefix="idiograph-") as room:
                yield Path(room)
            return
        with locked_folder(self.folder):
            for left in self.folder.glob(f"{TEMPORARY}*"):
                shutil.rmtree(left)  # of a run that was killed
            with TemporaryDirectory(prefix=TEMPORARY, dir=self.folder.resolve()) as room, change_folder(self.folder):
                yield Path(room)

    @cached_property
    def documents(self) -> list[IndexedDocument]:
        """What is known of each document, in the order of their first passages."""
        rows, first = self._state.rows, np.unique(self.owner, return_index=True)[1]
        names = ["doc_id", "title", "authors", "names", "domains", "year", "lang"]
        found = rows.select(names).take(first).to_pylist()
        return [IndexedDocument(*(freeze_value(row[name]) for name in names)) for row in found]

    @cached_property
    def owner(self) -> Ints:
        """The number of each passage's document."""
        coded = self._state.rows["doc_id"].combine_chunks().dictionary_encode()
        return np.asarray(coded.indices).astype(np.int64)

    @cached_property
    def _derived(self) -> dict[str, Any]:
        return {}

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Something that follows from what is in the index: made once, and forgotten when that changes."""
        if name not in self._derived:
            self._derived[name] = make()
        return self._derived[name]

    def rows(self, only: Filter = EVERYTHING) -> Ints:
        """The passages of the documents that a filter admits."""
        if not only:
            return np.arange(len(self))
        admitted = np.array([only.admits(d) for d in self.documents], bool)
        return np.flatnonzero(admitted[self.owner]) if len(self) else np.zeros(0, np.int64)

    @cached_property
    def passages(self) -> list[Passage]:
        """Every passage, sorted by id."""
        return self.passages_at(np.arange(len(self)))

    def passages_at(self, rows: Sequence[int] | Ints) -> list[Passage]:
        """Some passages, by their place in `passages`, which need not be in memory."""
        rows = np.asarray(rows, np.int64)
        if "passages" in self.__dict__:
            return [self.passages[at] for at in rows]
        texts = self.tables.take(self._state.offsets[rows], ["text"])["text"].to_pylist()
        names = ["id", "doc_id", "title", "authors", "names", "domains", "year", "lang", "start", "end"]
        about = self._state.rows.select(names).take(rows).to_pylist()
        return [
            Passage(text=text, **{name: freeze_value(value) for name, value in row.items()})
            for text, row in zip(texts, about, strict=True)
        ]

    def texts_at(self, rows: Sequence[int] | Ints) -> list[str]:
        """The texts of some passages, and nothing else of them."""
        return self.tables.take(self._state.offsets[np.asarray(rows, np.int64)], ["text"])["text"].to_pylist()

    def means_at(self, rows: Ints) -> Floats:
        """The means of the patches of some passages as they are kept in 8 bits, of unit length."""
        few = self._sketches.take(rows)
        return few.codes.astype(np.float32) * few.scales[:, None]

    @cached_property
    def patches(self) -> Patches:
        """Every passage's patches as 32-bit vectors; large."""
        return self._read(np.arange(len(self))).wide()

    @cached_property
    def _sketches(self) -> Sketches:
        rows = self._state.rows
        return Sketches.of(end_to_end(rows["sketch"]), self._dim, np.asarray(rows["patches"]))

    @property
    def languages(self) -> dict[str, int]:
        """The languages of the documents, the commonest first, and how many are in each."""
        return dict(Counter(d.lang or UNKNOWN for d in self.documents).most_common())

    @property
    def full_documents(self) -> int:
        """How many documents have as many passages in the index as a document may have."""
        return int((np.bincount(self.owner) == self.recipe.passages_per_document).sum()) if len(self) else 0

    @property
    def bytes_per_passage(self) -> float:
        """What a passage takes for search: its vectors and its sketch."""
        sketches = len(end_to_end(self._state.rows["sketch"]))
        return (vector_width(self.recipe.dtype).bytes(self._dim) * self._count() + sketches) / max(len(self), 1)

    @property
    def _dim(self) -> int:
        return self._book["basis"].shape[1] if "basis" in self._book else self.style.encoder.dim

    def _count(self) -> int:
        return int(np.asarray(self._state.rows["patches"]).sum())

    @cached_property
    def _in_memory(self) -> tuple[QuantizedPatches, Ints]:
        """All vectors in the order in which they lie, and the place of each row among them."""
        if self.part != WHOLE:
            blocks = (self._state.offsets[at : at + 2048] for at in range(0, len(self), 2048))
            parts = (self._unpack(self.tables.take(some, ["vectors"])["vectors"]) for some in blocks)
            return join_packed(parts, self._count(), self._dim, self.recipe.dtype), np.arange(len(self))
        total = sum(int(np.asarray(batch["patches"]).sum()) for batch in self.tables.scan(["patches"]))
        parts = (self._unpack(batch["vectors"]) for batch in self.tables.scan(["vectors"]))
        return join_packed(parts, total, self._dim, self.recipe.dtype), self._state.offsets

    def _unpack(self, column: Any) -> QuantizedPatches:
        return from_bytes([v.as_buffer() for v in column], self._dim, self.recipe.dtype)

    def _read(self, rows: Ints) -> QuantizedPatches:
        if "_in_memory" in self.__dict__:
            packed, place = self._in_memory
            return packed.take(place[rows])
        return self._unpack(self.tables.take(self._state.offsets[rows], ["vectors"])["vectors"])

    def embed(self, texts: Sequence[str]) -> Patches:
        """Texts as the index sees them; those that were asked for last are not read again."""
        asked, found = tuple(texts), self._embedded
        if found is None or found[0] != asked:
            found = self._embedded = (asked, project_vectors(self.style.encode(asked), self._book.get("basis")))
        return found[1]

    def vectors_at(self, rows: Ints) -> Patches:
        """The patches of some passages, as they are stored."""
        return self._read(rows).wide()

    def load(self) -> None:
        """Bring the vectors into memory, for many searches."""
        _ = self._in_memory, self._sketches

    def scores(self, texts: Sequence[str]) -> Floats:
        """Every text against every passage, exactly: (texts, passages)."""
        self.refuse_empty()
        return self.score_everything(self.embed(texts))

    def score_everything(self, asked: Patches) -> Floats:
        """`scores`, for texts that are embedded already."""
        return self.score_many_rows(asked, np.arange(len(self)))

    def score_many_rows(self, asked: Patches, rows: Ints) -> Floats:
        """`score_rows` for any number of passages, some thousands at a time."""
        if self._count() * self._dim <= MAX_BYTES_IN_MEMORY and 4 * len(rows) >= len(self):
            self.load()
        scores = np.empty((len(asked), len(rows)), np.float32)
        for at in range(0, len(rows), 8192):
            scores[:, at : at + 8192] = self.score_rows(asked, rows[at : at + 8192])
        return scores

    def nearest(
        self,
        texts: Sequence[str],
        k: int = 10,
        *,
        only: Filter | None = None,
        exact: bool = False,
        depth: int | None = None,
    ) -> tuple[Ints, Floats]:
        """The rows of `passages` nearest to each text, and their scores: two (texts, k) arrays; −1 where there is none."""
        self.refuse_empty()
        return self.nearest_to(self.embed(texts), k, only=only, exact=exact, depth=depth)

    def nearest_to(
        self, asked: Patches, k: int, *, only: Filter | None = None, exact: bool = False, depth: int | None = None
    ) -> tuple[Ints, Floats]:
        """`nearest`, for texts that are embedded already."""
        allowed = self.rows(only or EVERYTHING)
        rows, scores = np.full((len(asked), k), -1), np.full((len(asked), k), -np.inf, np.float32)
        depth = len(allowed) if exact else count_candidates(len(allowed), k, depth)
        for at, (chosen, near) in enumerate(self._score_candidates(asked, allowed, depth, count_finalists(depth, k))):
            order = np.argsort(-near, kind="stable")[:k]
            rows[at, : len(order)], scores[at, : len(order)] = chosen[order], near[order]
        return rows, scores

    def _score_candidates(self, asked: Patches, allowed: Ints, depth: int, last: int) -> Iterator[tuple[Ints, Floats]]:
        """For each text the passages that were scored, and their scores."""
        if len(allowed) <= depth:
            yield from ((allowed, found) for found in self.score_many_rows(asked, allowed))
            return
        for at, (chosen, _) in enumerate(self.propose(asked, allowed, depth)):
            one, stored = asked.take([at]), self._read(chosen)
            if depth > last:
                few = highest_scores(score_all(pool_neighbours(one), stored, self.style.score)[0], last)
                chosen, stored = chosen[few], stored.take(few)
            yield chosen, score_all(one, stored, self.style.score)[0]

    def propose(self, asked: Patches, allowed: Ints, depth: int) -> list[tuple[Ints, Floats]]:
        """For each text the candidates among some passages, and how near they seem."""
        return self._sketches.nearest(asked, allowed, depth)

    def sketch_scores(self, asked: Patches, rows: Ints) -> Floats:
        """How near some passages seem to every text: (texts, rows)."""
        return self._sketches.compare(asked, rows)

    def score_pairs(self, asked: Patches, wanted: Sequence[Ints]) -> list[Floats]:
        """Each text against the passages wanted for it, exactly; what several want is read once."""
        rows = np.unique(np.concatenate(wanted))
        stored = self._read(rows)
        parts = ((asked.take([at]), stored.take(np.searchsorted(rows, some))) for at, some in enumerate(wanted))
        return [score_all(one, packed, self.style.score)[0] for one, packed in parts]

    def score_rows(self, asked: Patches, rows: Ints) -> Floats:
        """Every text against some passages, exactly: (texts, rows)."""
        return score_all(asked, self._read(rows), self.style.score)

    def search_many(
        self,
        texts: Sequence[str],
        k: int = 10,
        *,
        only: Filter | None = None,
        exact: bool = False,
        depth: int | None = None,
    ) -> list[list[Hit]]:
        """The passages nearest to each text, best first."""
        rows, scores = self.nearest(texts, k, only=only, exact=exact, depth=depth)
        used = np.unique(rows[rows >= 0])
        known = dict(zip(used.tolist(), self.passages_at(used), strict=True))
        return [
            [Hit(known[int(at)], float(score)) for at, score in zip(found, scored, strict=True) if at >= 0]
            for found, scored in zip(rows, scores, strict=True)
        ]

    def search(
        self,
        text: str,
        k: int = 10,
        *,
        exclude: Sequence[str] = (),
        only: Filter | None = None,
        exact: bool = False,
        depth: int | None = None,
    ) -> list[Hit]:
        """The passages nearest to a text; `exclude` names documents that do not count."""
        return self.search_many([text], k, only=index_without(only, exclude), exact=exact, depth=depth)[0]

    def refuse_empty(self) -> None:
        refuse_empty_index(self.where, len(self))

    def read_note(self, name: str) -> dict[str, Any] | None:
        """What `write_note` wrote; None if there is nothing, or nothing that is as it was written."""
        if isinstance(self.tables, RemoteTables):
            return self.tables.read_note(name)
        path = self.folder / NOTES / f"{name}.json"
        try:
            return read_sealed_json(path, "learn it again") if path.is_file() else None
        except ArtifactError:
            return None

    def write_note(self, name: str, value: Mapping[str, Any]) -> None:
        """Keep something learned from the index in it, as JSON; where that cannot be written it is learned anew."""
        if isinstance(self.tables, RemoteTables):
            self.tables.write_note(name, value)
            return
        with suppress(OSError):
            (self.folder / NOTES).mkdir(exist_ok=True)
            write_sealed_json(self.folder / NOTES / f"{name}.json", value)


def style_of_index(tables: IndexTables) -> Style:
    """The model that an index was made with, read as it was read then."""
    try:
        about = tables.state().about
    except BROKEN as error:
        raise ArtifactError(f"index '{tables.where}' is damaged; rebuild it: {MAKE}") from error
    _, patch, keep = about["style"].rsplit("/", 2)
    folder = about.get("folder")
    if folder and Path(folder).is_absolute() and not Path(folder).is_dir():
        raise ModelError(
            f"index '{tables.where}' was made with the model in '{folder}', which is no longer there; "
            "open it from where it is: Index.open(…, idiograph.load(FOLDER))"
        )
    return load(folder, patch=patch, keep=None if keep == "published" else keep, score="meansim")


def index_without(only: Filter | None, documents: Sequence[str]) -> Filter:
    wanted = only or EVERYTHING
    return replace(wanted, exclude_documents=(*wanted.exclude_documents, *documents))


def refuse_empty_index(where: str, passages: int) -> None:
    if not passages:
        raise InputError(f"index '{where}' is empty; add documents: idiograph index CORPUS -o INDEX --add")


def placed_workers(workers: EmbeddingWorkers | None, tables: IndexTables) -> EmbeddingWorkers:
    """Workers that know whether they see the temporary folder: for an index on s3:// it lies on this machine alone."""
    return replace(workers or EmbeddingWorkers(), apart=tables.remote)


def freeze_value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
