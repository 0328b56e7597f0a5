"""What scores mean in an index, and whether the writer is in it at all. Learned from the index itself: each document in
turn is the question, once with its author's other documents there and once without."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.calibrate import Calibration, Scored, effective, fit, words
from idiograph.answer.cohort import Cohort, Entry, cohort
from idiograph.answer.index import Index
from idiograph.answer.overlap import content_words, overlap, usual
from idiograph.errors import InputError

NOTES = {"set": "background", "author": "background-author"}  # kept beside the index
SAMPLE = 300  # documents that an index is calibrated on; more would change the ratio's third digit
LENGTHS = (1, 2, 4, 8, 16, 1_000)  # passages of a question: what a score means depends on how much was asked
STRANGERS = 20  # different authors that each question is compared with
Floats32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Background:
    """What comparisons inside an index look like."""

    calibration: Calibration  # of a candidate's standing
    open_set: Calibration  # of the best candidate's standing: is the writer here?
    usual_overlap: float
    expected: tuple[float, float]  # similarity of passages by others = first + second · overlap
    version: str  # of the index when this was learned

    def to_json(self) -> dict[str, Any]:
        rest = {"usual_overlap": self.usual_overlap, "expected": list(self.expected), "version": self.version}
        return {"calibration": self.calibration.to_json(), "open_set": self.open_set.to_json(), **rest}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Background":
        learned = {name: Calibration.from_json(found[name]) for name in ("calibration", "open_set")}
        intercept, slope = found["expected"]
        rest = {"usual_overlap": found["usual_overlap"], "version": found["version"]}
        return cls(**learned, **rest, expected=(intercept, slope))


@dataclass(frozen=True, slots=True)
class Open:
    """Is the writer among the candidates? `probability` is that of "none of these"."""

    llr: float
    words: str
    probability: float
    prior: float


def open_answer(known: Background, z: float, size: float, prior: float) -> Open:
    """What the best candidate's standing says about somebody who is not here. `prior`: of that, before the text."""
    llr = known.open_set.llr(z, size)
    said = words(llr).replace("the same author", "a writer in the index")
    said = said.replace("different authors", "a writer who is not in the index")
    chance = prior / (prior + (1 - prior) * 10**llr)
    return Open(llr, said, chance, prior)


@dataclass
class Tally:
    """Comparisons while documents are asked about."""

    scores: list[float]
    sizes: list[float]
    truth: list[bool]

    def add(self, score: float, size: float, truth: bool) -> None:
        self.scores.append(score)
        self.sizes.append(size)
        self.truth.append(truth)

    def scored(self) -> Scored:
        return Scored(np.array(self.scores), np.array(self.sizes), np.array(self.truth, dtype=bool))


def learn(index: Index, by: str = "set", seed: int = 7) -> Background:
    """Calibrate on the index itself."""
    everybody = cohort(index.passages, by)
    owned = [doc for rows in everybody.documents if len(rows) > 1 for doc in rows]
    random = np.random.default_rng(seed)
    asked = [owned[at] for at in random.permutation(len(owned))[:SAMPLE]] if owned else []
    pairs, best, near = Tally([], [], []), Tally([], [], []), list[tuple[float, float]]()
    for doc in dict.fromkeys(asked):
        rows = question(everybody, doc, random)
        texts = [index.passages[at].text for at in rows]
        scores = index.scores(texts)
        size = float(effective(sum(len(t.split()) for t in texts), 1e9))
        ask(everybody.scored(scores, [doc]), set(index.passages[rows[0]].authors), size, (pairs, best), random)
        near.append(nearest_stranger(index, texts[0], scores[0], doc))
    source = index.about.get("source") or index.where
    style = index.style.fingerprint
    texts = [p.text for p in index.passages[:: max(1, len(index.passages) // 60)]]
    crossed = [(a, b) for a in texts for b in texts if a < b]
    return Background(
        fit(pairs.scored(), style, source),
        fit(best.scored(), style, source),
        usual([a for a, _ in crossed], [b for _, b in crossed]),
        straight(near),
        index.version,
    )


def question(everybody: Cohort, doc: str, random: np.random.Generator) -> list[int]:
    """The rows of a run of a document's passages, of a length from the ladder."""
    rows = next(found[doc] for found in everybody.documents if doc in found)
    size = min(LENGTHS[int(random.integers(len(LENGTHS)))], len(rows))
    start = int(random.integers(len(rows) - size + 1))
    return rows[start : start + size]


def ask(found: list[Entry], writers: set[str], size: float, tallies: tuple[Tally, Tally], random: Any) -> None:
    """Note how the writer and some strangers stand, and who is first with the writer there and without."""
    pairs, best = tallies
    own = [e for e in found if set(e.key) <= writers]
    strangers = [e for e in found if not set(e.key) & writers]
    if not own or not strangers:
        return
    for e in own:
        pairs.add(e.z, size, True)
    for at in random.permutation(len(strangers))[:STRANGERS]:
        pairs.add(strangers[at].z, size, False)
    best.add(max(own[0].z, strangers[0].z), size, True)
    best.add(strangers[0].z, size, False)


def nearest_stranger(index: Index, text: str, scores: Floats32, doc: str) -> tuple[float, float]:
    """The overlap and the similarity of a passage with the one by others that is most like it."""
    mine = {p for at, passage in enumerate(index.passages) if passage.doc_id == doc for p in index.passages[at].authors}
    order = (at for at in np.argsort(-scores) if not mine & set(index.passages[at].authors))
    at = next(order, None)
    if at is None:
        return 0.0, 0.0
    return overlap(content_words(text), content_words(index.passages[at].text)), float(scores[at])


def straight(points: list[tuple[float, float]]) -> tuple[float, float]:
    """The line through points by least squares, never falling."""
    if len(points) < 3:
        return 0.0, 0.0
    x, y = np.array(points).T
    slope = max(float(np.cov(x, y)[0, 1] / max(x.var(ddof=1), 1e-9)), 0.0)
    return float(y.mean() - slope * x.mean()), slope


def background(index: Index, by: str = "set") -> Background:
    """What scores mean in this index; learned once, kept beside it, and learned again when documents came or went."""
    try:
        found = Background.from_json(index.read_note(NOTES[by]) or {})
        if (found.version, found.calibration.style) == (index.version, index.style.fingerprint):
            return found
    except (ValueError, KeyError, TypeError):
        pass  # there is none yet, or an older or broken one: it is learned
    try:
        found = learn(index, by)
    except InputError as error:
        raise InputError(f"index '{index.where}' cannot be calibrated: {error}") from error
    index.write_note(NOTES[by], found.to_json())
    return found
