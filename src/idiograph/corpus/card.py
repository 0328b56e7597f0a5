"""The README that makes a folder of Parquet a Hugging Face dataset."""

from collections.abc import Mapping
from pathlib import Path

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
tags: [stylometry, authorship-attribution, contrastive]
---
# Same-author triplets

Made by idiograph from a corpus. Each row holds a query, a positive by the same author-set and a negative from the same
field by nobody of them, in the columns of HALvest-Contrastive. `manifest.json` says how they were drawn.

| configuration | train | valid | test |
|---|---|---|---|
{table}
"""


def write_card(folder: Path, languages: Mapping[str, int]) -> None:
    """The card of a corpus."""
    configs = "\n".join(
        f"- config_name: {lang}\n  data_files:\n  - split: train\n    path: {lang}/train-*.parquet"
        for lang in languages
    )
    table = "\n".join(f"| {lang} | {count} |" for lang, count in sorted(languages.items()))
    (folder / "README.md").write_text(CORPUS.format(configs=configs, table=table), encoding="utf-8")


def write_triplet_card(folder: Path, counts: Mapping[str, Mapping[str, int]]) -> None:
    """The card of a triplet folder; `counts` is configuration → split → rows."""
    configs = "\n".join(
        f"- config_name: {name}\n  data_files:\n{files(name, splits)}" for name, splits in counts.items()
    )
    table = "\n".join(f"| {name} | {' | '.join(str(n) for n in splits.values())} |" for name, splits in counts.items())
    (folder / "README.md").write_text(TRIPLETS.format(configs=configs, table=table), encoding="utf-8")


def files(name: str, splits: Mapping[str, int]) -> str:
    return "\n".join(
        f"  - split: {split}\n    path: {name}/{split}-*.parquet" for split, rows in splits.items() if rows
    )
