"""A folder of Parquet files described in Croissant 1.0, the JSON-LD that dataset catalogues read. Written by hand: no library."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from idiograph.store import digest, write_json

NAME = "croissant.json"
TEXTS = pa.list_(pa.string())
CONFORMS = "http://mlcommons.org/croissant/1.0"
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        term: f"cr:{term}"
        for term in (
            "equivalentProperty extract field fileProperty fileObject fileSet format includes isLiveDataset jsonPath key "
            "md5 parentField path recordSet references regex repeated replace samplingRate separator source subField "
            "transform"
        ).split()
    },
}


def write_croissant(
    folder: Path,
    counts: Mapping[str, Mapping[str, int]],
    about: str,
    name: str,
    schema: pa.Schema,
) -> None:
    """Describe the Parquet files of a folder: one file set and one record set a configuration and split.

    Columns of text, numbers and lists of texts are described; nested ones, such as a corpus's authors, are left to Parquet.
    """
    parts = [(part, split) for part, splits in counts.items() for split, rows in splits.items() if rows]
    files = [path for part, split in parts for path in sorted((folder / part).glob(f"{split}-*.parquet"))]
    write_json(
        folder / NAME,
        {
            "@context": CONTEXT,
            "@type": "sc:Dataset",
            "name": name,
            "description": about,
            "conformsTo": CONFORMS,
            "keywords": ["stylometry", "authorship attribution"],
            "distribution": [
                *(file_object(folder, path) for path in files),
                *(file_set(part, split) for part, split in parts),
            ],
            "recordSet": [record_set(part, split, schema) for part, split in parts],
        },
    )


def file_object(folder: Path, path: Path) -> dict[str, Any]:
    name = path.relative_to(folder).as_posix()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": digest(path),
    }


def file_set(name: str, split: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"files-{name}-{split}",
        "name": f"files-{name}-{split}",
        "encodingFormat": "application/x-parquet",
        "includes": f"{name}/{split}-*.parquet",
    }


def record_set(name: str, split: str, schema: pa.Schema) -> dict[str, Any]:
    identity = f"{name}-{split}"
    flat = (column for column in schema if column.type in (pa.string(), pa.int32(), TEXTS))
    fields = [field(identity, column.name, column.type) for column in flat]
    return {"@type": "cr:RecordSet", "@id": identity, "name": identity, "field": fields}


def field(records: str, column: str, kind: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{records}/{column}",
        "name": column,
        "description": column.replace("_", " "),
        "dataType": "sc:Integer" if kind == pa.int32() else "sc:Text",
        "source": {"fileSet": {"@id": f"files-{records}"}, "extract": {"column": column}},
    }
    return {**found, "repeated": True} if kind == TEXTS else found
