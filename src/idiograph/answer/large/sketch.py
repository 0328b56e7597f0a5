"""A second look at who seems near in a large index, by frequent words, so that what the model does not see can be found.

Of each document the z-scores of the most frequent words are kept, in 8 bits: a few hundred bytes.
"""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.authors import IndexAuthors
from idiograph.answer.crossvalidate import sample_places
from idiograph.answer.evidence import Floats
from idiograph.index.index import Index
from idiograph.rankers.delta import Delta
from idiograph.rankers.library import Library
from idiograph.rankers.model import PassageVectors
from idiograph.rankers.rates import LearnedRates, unit_rows
from idiograph.style.tokens import Ints

WORDS_OF_A_SKETCH = 300
TEXTS_TO_LEARN = 600  # from which it is learned how frequent words are
TEXTS_AT_ONCE = 512  # that are read from the disk
PASSAGES_OF_A_DOCUMENT = 20  # that are read, evenly from its beginning to its end; a novel in a large index has more
NOTE = "word-sketches"


@dataclass(frozen=True)
class WordSketches:
    """What every document of an index uses of the frequent words."""

    ranker: LearnedRates
    codes: NDArray[np.int8]  # (documents, words)

    def near(self, text: str) -> Floats:
        """How near each document seems to a text: about the cosine of Delta."""
        wanted = unit_rows(self.ranker.points([text]))[0].astype(np.float32)
        parts = range(0, len(self.codes), TEXTS_AT_ONCE * 16)
        scores = [cosines(self.codes[at : at + TEXTS_AT_ONCE * 16].astype(np.float32), wanted) for at in parts]
        return np.concatenate(scores).astype(np.float64)


def cosines(rows: NDArray[np.float32], wanted: NDArray[np.float32]) -> NDArray[np.float32]:
    return rows @ wanted / np.maximum(np.linalg.norm(rows, axis=1), 1e-9)


def word_sketches(index: Index, everybody: IndexAuthors) -> WordSketches:
    """The sketches of an index; made once, and kept beside it."""
    names = [" & ".join(document.names) for document in index.documents]
    places = sample_places(names, TEXTS_TO_LEARN)
    texts = read_texts(index, everybody, places)
    ranker = Delta(WORDS_OF_A_SKETCH).learn(Library(tuple(texts), tuple(names[at] for at in places)))
    saved = index.read_note(NOTE) or {}
    if saved.get("version") == index.version:
        codes = np.frombuffer(b64decode(saved["codes"]), np.int8).reshape(len(names), -1)
        return WordSketches(ranker, codes)
    parts = np.array_split(np.arange(len(names)), -(-len(names) // TEXTS_AT_ONCE))
    codes = np.concatenate([round_rows(ranker.points(read_texts(index, everybody, part))) for part in parts])
    index.write_note(NOTE, {"version": index.version, "codes": b64encode(codes.tobytes()).decode()})
    return WordSketches(ranker, codes)


def round_rows(rows: Floats) -> NDArray[np.int8]:
    """Each row in whole numbers up to 127."""
    return np.rint(rows * 127 / np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-9)).astype(np.int8)


def passages_to_read(everybody: IndexAuthors, document: int) -> Ints:
    """Passages from all over a document, or all that it has."""
    rows = everybody.passages_of([document])
    if len(rows) <= PASSAGES_OF_A_DOCUMENT:
        return rows
    return rows[np.arange(PASSAGES_OF_A_DOCUMENT) * len(rows) // PASSAGES_OF_A_DOCUMENT]


def read_texts(index: Index, everybody: IndexAuthors, documents: Sequence[int] | Ints) -> list[str]:
    """The texts of some documents, as far as they are read."""
    rows = [passages_to_read(everybody, int(at)) for at in documents]
    return join_passages(index.texts_at(np.concatenate([*rows, np.zeros(0, np.int64)])), [len(each) for each in rows])


def join_passages(passages: Sequence[str], lengths: Sequence[int]) -> list[str]:
    ends = np.cumsum(lengths).tolist()
    return ["\n\n".join(passages[end - size : end]) for end, size in zip(ends, lengths, strict=True)]


def read_vectors(index: Index, everybody: IndexAuthors, documents: Sequence[int] | Ints) -> PassageVectors:
    """The passages of some documents as vectors, as far as they are read."""
    rows = [passages_to_read(everybody, int(at)) for at in documents]
    lengths = np.array([len(each) for each in rows], np.int64)
    return PassageVectors(index.means_at(np.concatenate([*rows, np.zeros(0, np.int64)])), lengths)
