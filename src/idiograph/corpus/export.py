"""A corpus in the form in which HALvest is published: gzipped JSON lines, so many documents a file, and their checksums.

In a folder for each language lie `en-1.jsonl.gz`, `en-2.jsonl.gz`, … and `checksum.sha256`. The same corpus gives the
same bytes. Our readers, and anything that reads the published files, read them.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from idiograph.corpus.corpus import Corpus
from idiograph.hal.records import NOBODY, Record, RecordLookup, published_moment
from idiograph.identity import bare_id, registry_of
from idiograph.store import Manifest, digest, draft, seal
from idiograph.types import Author, Document

KIND = "halvest"
DOCUMENTS_PER_FILE = 2000  # of the raw corpus as published; the filtered one has 10,000
UNKNOWN_YEAR = "1"
CHECKSUMS = "checksum.sha256"


def export_corpus(
    corpus: Corpus, out: Path, records: Path | None = None, per_file: int = DOCUMENTS_PER_FILE, overwrite: bool = False
) -> Mapping[str, int]:
    """Write the corpus in the published form; returns how many documents there are by language.

    With the records that it was made of, `timestamp` is theirs; otherwise it says when the corpus was made.
    """
    lookup = RecordLookup(records, str) if records else None
    made = published_moment(corpus.manifest.created)
    counts: Counter[str] = Counter()
    with draft(out, overwrite) as folder:
        for lang, documents in groupby(corpus, key=lambda document: document.lang):
            rows = (published_row(each, lookup.get(each.id) if lookup else None, made) for each in documents)
            counts[lang] += write_language(rows, folder / (lang or "und"), per_file)
        inputs = {"corpus": corpus.manifest.fingerprint}
        seal(folder, Manifest(KIND, {"documents_per_file": per_file}, inputs, {"documents": counts.total(), **counts}))
    return dict(counts)


def write_language(rows: Iterable[Mapping[str, Any]], folder: Path, per_file: int) -> int:
    """The files of one language, and the list of their checksums; returns how many documents are in them."""
    folder.mkdir(parents=True)
    lines, written, sums = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows), 0, []
    for number, batch in enumerate(batches(lines, per_file), 1):
        path = folder / f"{folder.name}-{number}.jsonl.gz"
        with path.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
            packed.write("".join(batch).encode("utf-8", "replace"))
        written += len(batch)
        sums.append(f"{digest(path)}\t{path.name}\n")
    (folder / CHECKSUMS).write_text("".join(sums), encoding="utf-8")
    return written


def batches(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(lines)
    while batch := list(islice(rest, size)):
        yield batch


def published_row(document: Document, record: Record | None, made: str) -> dict[str, Any]:
    """A document under the published names; a year that is not known is 1, an author without a number 0."""
    return {
        "halid": document.id,
        "lang": document.lang,
        "title": document.title,
        "domain": list(document.domains),
        "timestamp": published_moment(record.timestamp) if record and record.timestamp else made,
        "year": str(document.year or UNKNOWN_YEAR),
        "url": document.url,
        "authors": [published_author(author) for author in document.authors],
        "text": document.text,
    }


def published_author(author: Author) -> dict[str, Any]:
    """An author under the published names; an ORCID is not a number of HAL."""
    known = {"affiliations": list(author.affiliations), "name": author.name, "halauthorid": NOBODY}
    if author.id is None:
        return known
    return (
        {**known, "orcid": bare_id(author.id)}
        if registry_of(author.id) == "orcid"
        else {**known, "halauthorid": author.id}
    )
