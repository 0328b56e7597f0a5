"""Triplets in memory, as training wants them: each text once, rows of positions, and an author-set label for every text.

Files are read by `idiograph.mining.triplets`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from idiograph.errors import InputError
from idiograph.mining.triplets import Passage, locate_triplets, read_json_lines, read_rows, row_passages
from idiograph.seeded import hash_text
from idiograph.style.tokens import Ints


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


def drop_held_out_rows(part: Triplets, others: Sequence[Triplets]) -> Triplets:
    """The rows of `part` in which no text, document or author-set is one that `others` has too."""
    texts = {text for one in others for text in one.texts}
    both = np.array([text in texts for text in part.texts])
    for mine, theirs in ((part.documents, [o.documents for o in others]), (part.labels, [o.labels for o in others])):
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
    numbered: list[list[int]] = []
    for row in rows:
        numbered.append([])
        for text, authors, document, *field in row:
            at = places.setdefault((document, text), len(places))
            if at == len(about):
                about.append((name_number(authors), name_number(document), name_number("".join(field))))
            numbered[-1].append(at)
    if not numbered:
        raise InputError(f"there are no triplets in '{name}'")
    if len({len(row) for row in numbered}) > 1:
        raise InputError(f"the rows of '{name}' have different numbers of negatives; give each the same number")
    texts = [text for _, text in places]
    labels, documents, fields = np.array(about, np.int64).T
    return Triplets(name, texts, np.array(numbered), labels, documents, fields)


def open_triplets(path: Path, split: str = "train", names: Sequence[str] = ()) -> Triplets:
    """Triplets from a folder, all its configurations (every k) or those in `names`, or from a .jsonl file, which holds one
    split. The path of one configuration, such as `triplets/base-4`, stands for that one.
    """
    if path.suffix == ".jsonl" and path.is_file():
        return triplets_from_rows(read_json_lines(path), path.stem)
    if not path.is_dir():
        raise InputError(f"there are no triplets at '{path}'; make them: idiograph mine CORPUS -o {path}")
    folder, wanted = locate_triplets(path, names)
    name = path.name if folder == path else f"{folder.name}/{path.absolute().name}"
    rows = (row for each in wanted for row in read_rows(folder, each, split))
    return triplets_from_rows(map(row_passages, rows), name)
