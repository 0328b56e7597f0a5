"""The model as a ranker that learns from a library: passages as vectors, each with its best counterpart, from both sides."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from idiograph.rankers.library import Library, Scores
from idiograph.style.model import Style
from idiograph.style.tokens import Floats, Ints

QUESTION_ROWS = 512  # passages of questions that are compared with the library at once


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


def read_passages_as_vectors(texts: Sequence[str], style: Style) -> PassageVectors:
    """Each passage's mean vector."""
    from idiograph.text.passages import passages_of

    cut = [passages_of(text) for text in texts]
    patches = style.at("whole").encode([passage for passages in cut for passage in passages])
    return PassageVectors(patches.vectors, np.array([len(passages) for passages in cut], np.int64))


class ModelRanker:
    """Learns a library by reading it. `known` are vectors of the library's texts where they have been read before."""

    name = "model"

    def __init__(self, style: Style, known: PassageVectors | None = None) -> None:
        self.style, self.known = style, known

    def learn(self, library: Library) -> "LearnedModel":
        return LearnedModel(self.style, library, self.known or read_passages_as_vectors(library.texts, self.style))


class LearnedModel:
    """The library as vectors of its passages."""

    name = "model"

    def __init__(self, style: Style, library: Library, vectors: PassageVectors) -> None:
        self.style, self.library, self.vectors = style, library, vectors

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """The mean over passages of the best counterpart, from the question's side and from the text's."""
        places = [-1] * len(texts) if left_out is None else list(left_out)
        new = [at for at, text in enumerate(texts) if places[at] < 0 or text != self.library.texts[places[at]]]
        read = read_passages_as_vectors([texts[at] for at in new], self.style) if new else None
        scores = np.empty((len(texts), len(self.library)))
        for at, place in enumerate(places):
            own = read.of(new.index(at)) if read is not None and at in new else self.vectors.of(place)
            scores[at] = self.score_vectors(own)
            if place >= 0:
                scores[at, place] = np.nan
        return scores

    def score_vectors(self, own: Floats) -> Scores:
        """One question against every text."""
        starts = self.vectors.starts
        forward, backward = np.zeros(len(starts)), np.full(len(self.vectors.vectors), -np.inf, np.float32)
        for begin in range(0, len(own), QUESTION_ROWS):
            similar = own[begin : begin + QUESTION_ROWS] @ self.vectors.vectors.T
            forward += np.maximum.reduceat(similar, starts, axis=1).sum(axis=0, dtype=np.float64)
            np.maximum(backward, similar.max(axis=0), out=backward)
        back = np.add.reduceat(backward.astype(np.float64), starts) / self.vectors.lengths
        return (forward / len(own) + back) / 2
