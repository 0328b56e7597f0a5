"""Triplets in memory, as training wants them: each text once, rows of positions, and an author-set label for every text.

Reads what `idiograph mine` writes, JSON lines, and an .npz file of its own that needs nothing but numpy to open.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.errors import InputError
from idiograph.mining.triplets import ROLES, locate_triplets, read_rows
from idiograph.seeded import hash_text
from idiograph.style.tokens import Ints

Passage = tuple[str, str, str] | tuple[str, str, str, str]  # text, author-set, document, and its field if it is known


@dataclass(frozen=True, slots=True, eq=False)
class Triplets:
    """Rows of anchor, positive and any number of negatives. Equal labels mean the same author-set, in any collection."""

    name: str
    texts: Sequence[str]
    rows: Ints  # (n, 2 + negatives), positions in `texts`
    labels: Ints  # (texts,)
    documents: Ints  # (texts,)
    fields: Ints | None = None  # (texts,) what each is about, where that is known

    def __len__(self) -> int:
        return len(self.rows)

    def save(self, path: Path) -> None:
        """Write one .npz file; `open_npz` reads it where there is numpy and nothing else."""
        encoded = [text.encode() for text in self.texts]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
        raw = np.frombuffer(b"".join(encoded), np.uint8)
        named = {"raw": raw, "ends": ends, "name": np.array(self.name)}
        named |= {} if self.fields is None else {"fields": self.fields}
        np.savez_compressed(path, rows=self.rows, labels=self.labels, documents=self.documents, **named)  # pyright: ignore


def author_sets_differ(part: Triplets, held: Sequence[Triplets]) -> Triplets:
    """The rows of `part` in which no text, document or author-set is one that `held` has too."""
    texts = {text for one in held for text in one.texts}
    both = np.array([text in texts for text in part.texts])
    for mine, theirs in ((part.documents, [o.documents for o in held]), (part.labels, [o.labels for o in held])):
        both |= np.isin(mine, np.concatenate([np.zeros(0, np.int64), *theirs]))
    rows = part.rows[~both[part.rows].any(axis=1)]
    if not len(rows):
        raise InputError(
            f"every row of '{part.name}' is held out for validation or test; train on others, or set apart = false"
        )
    return replace(part, rows=rows)


def name_number(text: str) -> int:
    """A 63-bit number for a name, the same in every process; two names of a million collide once in 10⁷ runs."""
    return hash_text(text) >> 1


def triplets_from_rows(rows: Iterable[Sequence[Passage]], name: str = "triplets") -> Triplets:
    """Triplets from rows of (text, author-set, document, field): anchor, positive, negatives; as many in each row."""
    places: dict[tuple[str, str], int] = {}
    about: list[tuple[int, int, int]] = []
    found: list[list[int]] = []
    for row in rows:
        found.append([])
        for text, authors, document, *field in row:
            at = places.setdefault((document, text), len(places))
            if at == len(about):
                about.append((name_number(authors), name_number(document), name_number("".join(field))))
            found[-1].append(at)
    if not found:
        raise InputError(f"there are no triplets in '{name}'")
    if len({len(row) for row in found}) > 1:
        raise InputError(f"the rows of '{name}' have different numbers of negatives; give each the same number")
    texts = [text for _, text in places]
    labels, documents, fields = np.array(about, np.int64).T
    return Triplets(name, texts, np.array(found), labels, documents, fields)


def open_npz(path: Path) -> Triplets:
    """What `Triplets.save` wrote."""
    with np.load(path, allow_pickle=False) as file:
        raw, ends = file["raw"].tobytes(), file["ends"]
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        texts = [raw[a:b].decode() for a, b in zip(starts, ends, strict=True)]
        fields = file["fields"] if "fields" in file.files else None
        return Triplets(str(file["name"]), texts, file["rows"], file["labels"], file["documents"], fields)


def read_jsonl(path: Path) -> Triplets:
    """One object a line: `anchor`, `positive`, `negative` (a text or a list). If it is known: `author`, who wrote anchor
    and positive, `negative_author`, and for each role its document, such as `anchor_document`."""
    with path.open(encoding="utf-8") as lines:
        return triplets_from_rows((line_passages(path, at, line) for at, line in enumerate(lines, 1)), path.stem)


def line_passages(path: Path, at: int, line: str) -> list[Passage]:
    try:
        row = json.loads(line)
        texts = {"anchor": [row["anchor"]], "positive": [row["positive"]], "negative": row.get("negative", [])}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}:{at}: not a triplet ({error!r}); give it 'anchor', 'positive', 'negative'") from error
    if isinstance(texts["negative"], str):
        texts["negative"] = [texts["negative"]]
    author = row.get("author", f"{path}:{at}")  # unknown: the same for these two, and for nobody else
    authors = {"anchor": author, "positive": author, "negative": row.get("negative_author", f"{path}:{at}: others")}
    documents = {role: str(row.get(f"{role}_document", f"{path}:{at}: {role}")) for role in texts}
    return [(text, str(authors[role]), documents[role]) for role, found in texts.items() for text in found]


def read_folder(path: Path, split: str = "train", names: Sequence[str] = ()) -> Triplets:
    """A split of a folder that `idiograph mine` wrote: all its configurations (every k), or those in `names`.

    The path of one configuration, such as `triplets/base-4`, stands for that one.
    """
    folder, wanted = locate_triplets(path, names)
    name = path.name if folder == path else f"{folder.name}/{path.absolute().name}"
    rows = (row for each in wanted for row in read_rows(folder, each, split))
    return triplets_from_rows(([row_passage(row, role) for role in ROLES] for row in rows), name)


def row_passage(row: Mapping[str, Any], role: str) -> Passage:
    """One text of a row, and who wrote it where; of its fields the first, which is the primary one."""
    short, text = ROLES[role]
    fields = row[f"{short}_domain"]
    return row[text], " ".join(sorted(row[f"{short}_authorids"])), row[f"{short}_halid"], fields[0] if fields else ""


def open_triplets(path: Path, split: str = "train") -> Triplets:
    """Triplets from a folder of ours, a .jsonl file or an .npz file; the two files hold one split."""
    if path.suffix == ".npz" and path.is_file():
        return open_npz(path)
    if path.suffix == ".jsonl" and path.is_file():
        return read_jsonl(path)
    if not path.is_dir():
        raise InputError(f"there are no triplets at '{path}'; make them: idiograph mine CORPUS -o {path}")
    return read_folder(path, split)
