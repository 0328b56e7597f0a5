"""The model as a ranker that learns from a library: passages as vectors, each with its best counterpart, from both sides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores
from idiograph.style.patches import Patches, unit_vectors
from idiograph.style.tokens import Floats, Ints
from idiograph.text.passages import passage_texts

QUESTION_ROWS = 512  # passages of a question that are compared with the library at once
Encode = Callable[[Sequence[str]], Patches]
Read = Callable[[Sequence[str]], "PassageVectors"]


@dataclass(frozen=True, slots=True)
class PassageVectors:
    """A unit vector for each passage of some texts, text after text."""

    vectors: Floats  # (passages, d)
    lengths: Ints  # passages of each text

    @property
    def starts(self) -> Ints:
        return np.cumsum(self.lengths) - self.lengths

    def of(self, at: int) -> Floats:
        start = int(self.starts[at])
        return self.vectors[start : start + int(self.lengths[at])]


def read_as_vectors(texts: Sequence[str], encode: Encode) -> PassageVectors:
    """The passages of each text, as the means of their patches."""
    cut = [passage_texts(text) for text in texts]
    patches = encode([passage for passages in cut for passage in passages])
    return PassageVectors(mean_patches(patches), np.array([len(passages) for passages in cut], np.int64))


def mean_patches(patches: Patches) -> Floats:
    """The mean of each text's patches, of unit length."""
    return unit_vectors(np.add.reduceat(patches.vectors.astype(np.float64), patches.starts))


def read_once(encode: Encode) -> Read:
    """Reads as `read_as_vectors` does, every text once, however often it is asked for; it keeps their vectors."""
    known: dict[str, Floats] = {}

    def read(texts: Sequence[str]) -> PassageVectors:
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            found = read_as_vectors(new, encode)
            known.update((text, found.of(at)) for at, text in enumerate(new))
        rows = [known[text] for text in texts]
        return PassageVectors(np.concatenate(rows), np.array([len(each) for each in rows], np.int64))

    return read


class ModelRanker:
    """Learns a library by reading it. `known` are vectors of the library's texts where they have been read before."""

    name = "model"

    def __init__(self, encode: Encode, known: PassageVectors | None = None, read: Read | None = None) -> None:
        self.read, self.known = read or partial(read_as_vectors, encode=encode), known

    def learn(self, library: Library) -> "LearnedModel":
        return LearnedModel(self.read, library, self.known or self.read(library.texts))


class LearnedModel:
    """The library as vectors of its passages."""

    name = "model"

    def __init__(self, read: Read, library: Library, vectors: PassageVectors) -> None:
        self.read, self.library, self.vectors = read, library, vectors

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """The mean over passages of the best counterpart, from the question's side and from the text's."""
        places = [NOT_IN_LIBRARY] * len(texts) if left_out is None else list(left_out)
        scores = np.empty((len(texts), len(self.library)))
        for at, own in enumerate(self._read(texts, places)):
            scores[at] = self._score_vectors(own)
            if places[at] != NOT_IN_LIBRARY:
                scores[at, places[at]] = np.nan
        return scores

    def between(self, texts: Sequence[str], others: Sequence[str]) -> Scores:
        """(texts, others): how near texts are to texts that the library does not have."""
        beside = LearnedModel(self.read, Library(tuple(others), tuple(others)), self.read(others))
        return beside.score(texts)

    def _read(self, texts: Sequence[str], places: Sequence[int]) -> list[Floats]:
        """The vectors of each question; a whole text of the library has been read before."""
        whole = [place >= 0 and text == self.library.texts[place] for text, place in zip(texts, places, strict=True)]
        new = [text for text, known in zip(texts, whole, strict=True) if not known]
        read = self.read(new) if new else None
        unread = iter([read.of(at) for at in range(len(new))] if read else [])
        return [self.vectors.of(place) if known else next(unread) for place, known in zip(places, whole, strict=True)]

    def _score_vectors(self, own: Floats) -> Scores:
        """One question against every text."""
        starts = self.vectors.starts
        forward, backward = np.zeros(len(starts)), np.full(len(self.vectors.vectors), -np.inf, np.float32)
        for begin in range(0, len(own), QUESTION_ROWS):
            similar = own[begin : begin + QUESTION_ROWS] @ self.vectors.vectors.T
            forward += np.maximum.reduceat(similar, starts, axis=1).sum(axis=0, dtype=np.float64)
            np.maximum(backward, similar.max(axis=0), out=backward)
        back = np.add.reduceat(backward.astype(np.float64), starts) / self.vectors.lengths
        return (forward / len(own) + back) / 2
