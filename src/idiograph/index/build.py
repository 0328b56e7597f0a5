"""How an index comes to be: the place for it, the directions that its vectors keep, and the passages written to it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from idiograph.errors import ArtifactError, ServiceError
from idiograph.index.candidates import sketches
from idiograph.index.embedded import EmbeddedPassages
from idiograph.index.quantize import pack_vectors, to_bytes
from idiograph.index.tables import BROKEN, REMOTE, SPAN, IndexTables, new_change
from idiograph.recipe import IndexRecipe
from idiograph.store import Manifest, draft, read_manifest, seal
from idiograph.style.patches import Patches, unit_vectors
from idiograph.style.tokens import Floats

MAKE = "idiograph index CORPUS -o FOLDER"
SPOOL = ".spool-"
SAMPLE = 50_000  # patches that directions are learned from


def finished_index(where: str | Path, storage: Mapping[str, str] | None) -> IndexTables:
    """The tables of an index that is there; says what is wrong if it is not."""
    if not str(where).startswith(REMOTE):
        read_manifest(Path(where), "index", MAKE)
        return IndexTables(where)
    shelf, there = reached_documents(str(where), storage)
    if not there:
        raise ArtifactError(f"there is no index at '{where}'; make one: {MAKE}")
    return shelf


def reached_documents(where: str, storage: Mapping[str, str] | None) -> tuple[IndexTables, bool]:
    """A remote place, and whether there is an index; says so if it cannot be reached."""
    try:
        shelf = IndexTables(where, storage)
        return shelf, shelf.has_tables()
    except BROKEN as error:
        said = " ".join(str(error).split())[:200]
        raise ServiceError(f"'{where}' cannot be reached ({said}); check the address and the AWS_ settings") from error


@contextmanager
def prepare_index(
    out: str | Path, overwrite: bool, storage: Mapping[str, str] | None
) -> Iterator[tuple[IndexTables, Path]]:
    """Tables to fill, and a folder for temporary files. On disk the index appears only if the body ends well."""
    if not str(out).startswith(REMOTE):
        with draft(Path(out), overwrite) as folder, TemporaryDirectory(prefix=SPOOL, dir=folder) as room:
            yield IndexTables(folder), Path(room)
        return
    shelf, there = reached_documents(str(out), storage)
    if there and not overwrite:
        raise ArtifactError(f"'{out}' is there already; choose another -o, or pass --overwrite")
    with TemporaryDirectory(prefix="idiograph-") as room:
        yield shelf, Path(room)


def spool_passages(recipe: IndexRecipe) -> str:
    """How vectors wait: as they will be stored, unless directions are still to be left out."""
    return recipe.dtype if recipe.dim == "none" else "float16"


def codebook(spool: EmbeddedPassages, recipe: IndexRecipe) -> dict[str, Floats]:
    """The directions to keep, learned from the passages that an index begins with; nothing if all are kept."""
    if recipe.dim == "none" or recipe.dim >= spool.dim:
        return {}
    return {"basis": principal(spool.sample(SAMPLE), recipe.dim)}


def principal(sample: Floats, dim: int) -> Floats:
    """The directions in which vectors are longest, as columns: inner products survive best in these."""
    _, vectors = np.linalg.eigh((sample.T @ sample).astype(np.float64))
    return np.ascontiguousarray(vectors[:, ::-1][:, :dim], np.float32)


def project_vectors(patches: Patches, basis: Floats | None) -> Patches:
    return patches if basis is None else Patches(unit_vectors(patches.vectors @ basis), patches.lengths, patches.chars)


def append_passages(
    shelf: IndexTables,
    spool: EmbeddedPassages,
    recipe: IndexRecipe,
    book: Mapping[str, Floats],
    about: Mapping[str, Any],
) -> None:
    """Append the passages of a spool, then make them visible at once."""
    change = new_change()
    version = shelf.append(passage_rows(spool, change, recipe, book)) if spool.ids else shelf.latest()
    shelf.commit(change, "add", about, spool.bare, version)


def passage_rows(
    spool: EmbeddedPassages, change: str, recipe: IndexRecipe, book: Mapping[str, Floats]
) -> Iterator[pa.RecordBatch]:
    for some, packed in spool.batches():
        wide = project_vectors(packed.wide(), book.get("basis"))
        made: dict[str, Any] = {"change": [change] * len(packed), "sketch": sketches(wide)}
        if "basis" in book:
            made["vectors"] = to_bytes(pack_vectors(wide, recipe.dtype))
        columns = [pa.array(made[f.name], f.type) if f.name in made else some[f.name] for f in SPAN]
        yield pa.record_batch(columns, schema=SPAN)


def seal_index(folder: Path, recipe: IndexRecipe, about: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    seal(folder, Manifest("index", recipe.model_dump(), {"corpus": about["source"], "style": about["style"]}, counts))
