"""The README that makes a folder of Parquet a Hugging Face dataset."""

from collections.abc import Mapping
from pathlib import Path

from idiograph.recipe import MineRecipe

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
        f"- config_name: {name}\n  data_files:\n{files(name, splits)}" for name, splits in counts.items()
    )
    about = "Made by idiograph from a corpus. " + " ".join(RULES[rule] for rule in recipe.rule)
    values = {
        "configs": configs,
        "lang": recipe.lang if recipe.lang != "any" else "multilingual",
        "size": next((size for most, size in SIZES.items() if total < most), "n>10M"),
        "about": about,
        "split": APART if recipe.split == "author" else TOGETHER,
        "table": "\n".join(row(name, *splits.values()) for name, splits in counts.items()),
        "dropped": "\n".join(row(reason, count) for reason, count in sorted(dropped.items())),
    }
    (folder / "README.md").write_text(TRIPLETS.format(**values), encoding="utf-8")
    return f"{about} {values['split']}".replace("**", "")


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def files(name: str, splits: Mapping[str, int]) -> str:
    return "\n".join(
        f"  - split: {split}\n    path: {name}/{split}-*.parquet" for split, rows in splits.items() if rows
    )
