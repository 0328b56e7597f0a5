"""The README that makes a folder of Parquet a Hugging Face dataset."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from idiograph.recipe import MineRecipe
from idiograph.store import digest, write_json

CORPUS = """---
configs:
{configs}
tags: [stylometry, authorship-attribution]
---
# A corpus of documents and their authors

Made by idiograph. One configuration a language, one row a document: `id`, `title`, `authors` (`name`, `id`,
`affiliations`), `domains`, `year`, `lang`, `licence`, `source`, `container`, `url`, `text`. `manifest.json` says what
it was made from, with which settings, and what was left out. Each document keeps its own licence.

| language | documents |
|---|---|
{table}
"""

TRIPLETS = """---
configs:
{configs}
language: [{lang}]
size_categories: [{size}]
task_categories: [text-retrieval, sentence-similarity]
tags: [stylometry, authorship-attribution, contrastive]
---
# Same-author triplets

{about}

Each row holds a query, a positive by the same author-set and a negative, in the columns of HALvest-Contrastive: for each
of `query`, `pos` and `neg` the `_halid` of the document, its `_year`, `_domain`, `_affiliations` and `_authorids` (the
author-set that counts as its writer), and the texts `query`, `positive` and `negative`. {split}

| configuration | train | valid | test |
|---|---|---|---|
{table}

Left out on the way:

| reason | times |
|---|---|
{dropped}

`manifest.json` holds every setting, `croissant.json` describes the files. Each text keeps the licence of its document.
"""

RULES = {
    "base": (
        "**base**: the positive is from another document by the same author-set; the negative from the same field, "
        "by nobody of them."
    ),
    "unrestricted": (
        "**unrestricted**: as base, but where an author-set has no other document the positive is from the anchor's own."
    ),
    "ict": (
        "**ict** (inverse cloze task): the positive is what surrounds the anchor, the negative another passage of the "
        "same document."
    ),
}
APART = (
    "Authors are split before anything is drawn: nobody who counts as a writer in one split wrote in another, and no "
    "sentence of eight words or more is in two."
)
TOGETHER = "Triplets are split one by one, as in the published protocol: authors, documents and sentences are in several splits."
SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 1_000_000: "100K<n<1M", 10_000_000: "1M<n<10M"}


def write_card(folder: Path, languages: Mapping[str, int]) -> None:
    """The card of a corpus."""
    configs = "\n".join(
        f"- config_name: {lang}\n  data_files:\n  - split: train\n    path: {lang}/train-*.parquet"
        for lang in languages
    )
    table = "\n".join(f"| {lang} | {count} |" for lang, count in sorted(languages.items()))
    (folder / "README.md").write_text(CORPUS.format(configs=configs, table=table), encoding="utf-8")


def write_triplet_card(
    folder: Path, counts: Mapping[str, Mapping[str, int]], recipe: MineRecipe, dropped: Mapping[str, int]
) -> str:
    """The card of a triplet folder; `counts` is configuration → split → rows. Returns what it says of the rules."""
    total = sum(sum(splits.values()) for splits in counts.values())
    configs = "\n".join(
        f"- config_name: {name}\n  data_files:\n{file_rows(name, splits)}" for name, splits in counts.items()
    )
    about = "Made by idiograph from a corpus. " + " ".join(RULES[rule] for rule in recipe.rule)
    values = {
        "configs": configs,
        "lang": recipe.lang if recipe.lang != "any" else "multilingual",
        "size": next((size for most, size in SIZES.items() if total < most), "n>10M"),
        "about": about,
        "split": TOGETHER if recipe.split == "triplet" else APART,
        "table": "\n".join(card_row(name, *splits.values()) for name, splits in counts.items()),
        "dropped": "\n".join(card_row(reason, count) for reason, count in sorted(dropped.items())),
    }
    (folder / "README.md").write_text(TRIPLETS.format(**values), encoding="utf-8")
    return f"{about} {values['split']}".replace("**", "")


def card_row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def file_rows(name: str, splits: Mapping[str, int]) -> str:
    return "\n".join(
        f"  - split: {split}\n    path: {name}/{split}-*.parquet" for split, rows in splits.items() if rows
    )


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
    fields = [croissant_field(identity, column.name, column.type) for column in flat]
    return {"@type": "cr:RecordSet", "@id": identity, "name": identity, "field": fields}


def croissant_field(records: str, column: str, kind: Any) -> dict[str, Any]:
    description: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{records}/{column}",
        "name": column,
        "description": column.replace("_", " "),
        "dataType": "sc:Integer" if kind == pa.int32() else "sc:Text",
        "source": {"fileSet": {"@id": f"files-{records}"}, "extract": {"column": column}},
    }
    return {**description, "repeated": True} if kind == TEXTS else description
