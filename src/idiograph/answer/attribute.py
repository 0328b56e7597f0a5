"""Who among the authors of an index wrote this? Ranked author-sets with a likelihood ratio, and the passages behind it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.calibrate import Calibration, effective, words
from idiograph.answer.cohort import Cohort, Entry, cohort
from idiograph.answer.index import Index, Passage
from idiograph.answer.openset import Background, Open, background, open_answer
from idiograph.answer.overlap import content_words, overlap
from idiograph.answer.reading import passages
from idiograph.errors import InputError

EVIDENCE = 3
Floats32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage of the question and one of the candidate's that resembles it; `topical` where shared words explain it.

    `expected` is the similarity that passages by others have when they share as many content words.
    """

    asked: str
    found: str
    doc_id: str
    title: str
    score: float
    overlap: float
    expected: float
    topical: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """An author-set, or an author over all their sets, that may have written the text."""

    authors: tuple[str, ...]
    names: tuple[str, ...]
    score: float
    llr: float
    words: str
    probability: float
    documents: int
    evidence: tuple[Evidence, ...]

    @property
    def topical(self) -> bool:
        """Would shared content words alone explain the best of the evidence, or most of it?"""
        return self.evidence[0].topical or sum(e.topical for e in self.evidence) * 2 > len(self.evidence)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "topic_warning": self.topical}


@dataclass(frozen=True, slots=True)
class Attribution:
    """Candidates, best first, and whether any of them stands out."""

    candidates: tuple[Candidate, ...]
    none: Open  # is the writer among them at all?
    none_stands_out: bool
    calibration: Calibration
    lengths: int  # words of the question
    asked: int  # passages of the question

    def to_json(self) -> dict[str, Any]:
        about = {"none_stands_out": self.none_stands_out, "open_set": asdict(self.none), "words": self.lengths}
        return {**about, "candidates": [c.to_json() for c in self.candidates]}


def attribute(
    text: str | Sequence[str],
    index: Index,
    k: int = 5,
    *,
    by: str = "set",
    exclude: Sequence[str] = (),
    candidates: Sequence[str] = (),
    unknown: float = 0.5,
) -> Attribution:
    """Rank the author-sets of an index (`by="author"`: its single authors) for a text, or for several by one hand.

    `candidates` limits them to those with one of these authors; `exclude` names documents that do not count; `unknown`
    is the reader's own probability, before seeing the text, that the writer is not in the index at all.
    """
    texts = [text] if isinstance(text, str) else list(text)
    asked = [p for one in texts for p in passages(one, index.recipe.sentences)]
    scores = index.scores(asked)
    everybody = cohort(index.passages, by)
    found = everybody.scored(scores, exclude)
    chosen = [e for e in found if not candidates or e.named(candidates)]
    if not chosen:
        raise InputError(f"no author of index '{index.where}' is among the candidates")
    known = background(index, by)
    length = sum(len(one.split()) for one in texts)
    ratios = known.calibration.ratios([e.z for e in chosen], [size_of(length)] * len(chosen))
    closed = bool(candidates)
    none = open_answer(known, chosen[0].z, size_of(length), 0.0 if closed else unknown)
    chances = shares(ratios) * (1 - none.probability)
    best = [
        candidate(index, asked, scores, entry, (float(llr), float(chance)), known)
        for entry, llr, chance in zip(chosen[:k], ratios, chances, strict=False)
    ]
    return Attribution(tuple(best), none, stands_alone(best, none, closed), known.calibration, length, len(asked))


def size_of(count: int) -> float:
    """log10 of the words of the question; what is known of the candidates counts as given."""
    return float(effective(count, 1e9))


def shares(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratios as shares of 1: how likely each candidate is if one of them it is, all being as likely before."""
    odds = 10.0 ** (ratios - ratios.max())
    return odds / odds.sum()


def stands_alone(found: Sequence[Candidate], none: Open, closed: bool) -> bool:
    """Does nobody stand out? Said of an open set where its calibrated answer is not for somebody in the index."""
    from idiograph.answer.calibrate import INCONCLUSIVE

    return found[0].llr < INCONCLUSIVE or (not closed and none.llr < INCONCLUSIVE)


def candidate(
    index: Index, asked: Sequence[str], scores: Floats32, entry: Entry, said: tuple[float, float], known: Background
) -> Candidate:
    llr, chance = said
    proof = evidence(index.passages, asked, scores, entry, known)
    return Candidate(entry.key, entry.names, entry.score, llr, words(llr), chance, len(entry.documents), proof)


def evidence(
    listed: Sequence[Passage], asked: Sequence[str], scores: Floats32, entry: Entry, known: Background
) -> tuple[Evidence, ...]:
    """The best passage pair of each document, best documents first."""
    found = []
    for doc, rows in entry.documents.items():
        part = scores[:, rows]
        i, j = divmod(int(part.argmax()), part.shape[1])
        passage = listed[rows[j]]
        shared = overlap(content_words(asked[i]), content_words(passage.text))
        usual = known.expected[0] + known.expected[1] * shared
        topical = shared > known.usual_overlap
        found.append(Evidence(asked[i], passage.text, doc, passage.title, float(part[i, j]), shared, usual, topical))
    return tuple(sorted(found, key=lambda e: -e.score)[:EVIDENCE])


__all__ = ["Attribution", "Candidate", "Cohort", "Evidence", "attribute", "background"]
