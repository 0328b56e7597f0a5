"""Who among the authors of an index wrote this? Ranked author-sets with a likelihood ratio, and the passages behind it."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.calibrate import INCONCLUSIVE, Calibration, fit, words
from idiograph.answer.index import Index, Passage
from idiograph.answer.overlap import content_words, overlap, usual
from idiograph.answer.verify import Background, passages
from idiograph.errors import InputError
from idiograph.store import write_json

BACKGROUND = "background.json"
SAMPLE = 300  # documents that an index is calibrated on; more would change the ratio's third digit
EVIDENCE = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage of the question and one of the candidate's that resembles it; `topical` where shared words explain it."""

    asked: str
    found: str
    doc_id: str
    title: str
    score: float
    overlap: float
    topical: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """An author-set that may have written the text."""

    authors: tuple[str, ...]
    names: tuple[str, ...]
    score: float
    llr: float
    words: str
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
    none_stands_out: bool
    calibration: Calibration


def groups(found: Sequence[Passage]) -> dict[tuple[str, ...], dict[str, list[int]]]:
    """Author-set → document → rows."""
    by: dict[tuple[str, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, passage in enumerate(found):
        by[passage.authors][passage.doc_id].append(at)
    return by


def set_score(scores: NDArray[np.float32], documents: dict[str, list[int]], skip: str = "") -> float | None:
    """How near an author-set is: each of its documents gives its best passage for each part of the text; all the
    documents count the same, so that a prolific author has no advantage."""
    nearest = [scores[:, rows].max(axis=1).mean() for doc, rows in documents.items() if doc != skip]
    return float(np.mean(nearest)) if nearest else None


def learn(index: Index, seed: int = 7) -> Background:
    """Calibrate on the index itself: each document in turn is the question, without its own passages."""
    by = groups(index.passages)
    owner = {doc: authors for authors, documents in by.items() for doc in documents}
    asked = [doc for doc, authors in owner.items() if len(by[authors]) > 1]
    asked = [asked[at] for at in np.random.default_rng(seed).permutation(len(asked))[:SAMPLE]]
    same: list[float] = []
    different: list[float] = []
    for doc in asked:
        scores = index.scores([index.passages[at].text for at in by[owner[doc]][doc]])
        for authors, documents in by.items():
            score = set_score(scores, documents, skip=doc)
            if score is not None and (authors == owner[doc] or not set(authors) & set(owner[doc])):
                (same if authors == owner[doc] else different).append(score)
    texts = [p.text for p in index.passages[:: max(1, len(index.passages) // 200)]]
    pairs = [(a, b) for a in range(len(texts)) for b in range(a)]
    source = index.about["source"] or str(index.folder)
    return Background(fit(same, different, index.style.fingerprint, source), usual(texts, pairs))


def background(index: Index) -> Background:
    """What scores mean in this index; learned once, then kept beside it."""
    path = index.folder / BACKGROUND
    if path.is_file():
        return Background.from_json(json.loads(path.read_text(encoding="utf-8")))
    found = learn(index)
    write_json(path, found.to_json())
    return found


def attribute(
    text: str, index: Index, k: int = 5, *, exclude: Sequence[str] = (), candidates: Sequence[str] = ()
) -> Attribution:
    """Rank the author-sets of an index for a text. `candidates` limits them to sets with one of these authors."""
    asked = passages(text, index.recipe.sentences)
    scores = index.scores(asked)
    known = background(index)
    ranked = []
    for authors, documents in groups(index.passages).items():
        kept = {doc: rows for doc, rows in documents.items() if doc not in exclude}
        if kept and (
            not candidates or set(candidates) & {*authors, *index.passages[next(iter(kept.values()))[0]].names}
        ):
            ranked.append((set_score(scores, kept) or 0.0, kept))
    if not ranked:
        raise InputError(f"no author of index '{index.folder}' is among the candidates")
    ranked.sort(key=lambda entry: -entry[0])
    found = tuple(candidate(index, asked, scores, score, documents, known) for score, documents in ranked[:k])
    return Attribution(found, found[0].llr < INCONCLUSIVE, known.calibration)


def candidate(
    index: Index,
    asked: Sequence[str],
    scores: NDArray[np.float32],
    score: float,
    documents: dict[str, list[int]],
    known: Background,
) -> Candidate:
    llr = known.calibration.llr(score)
    one = index.passages[next(iter(documents.values()))[0]]
    proof = evidence(index, asked, scores, documents, known.usual_overlap)
    return Candidate(one.authors, one.names, score, llr, words(llr), len(documents), proof)


def evidence(
    index: Index, asked: Sequence[str], scores: NDArray[np.float32], documents: dict[str, list[int]], limit: float
) -> tuple[Evidence, ...]:
    """The best passage pair of each document, best documents first."""
    found = []
    for doc, rows in documents.items():
        part = scores[:, rows]
        i, j = divmod(int(part.argmax()), part.shape[1])
        passage = index.passages[rows[j]]
        shared = overlap(content_words(asked[i]), content_words(passage.text))
        value = float(part[i, j])
        found.append(Evidence(asked[i], passage.text, doc, passage.title, value, shared, shared > limit))
    return tuple(sorted(found, key=lambda e: -e.score)[:EVIDENCE])
