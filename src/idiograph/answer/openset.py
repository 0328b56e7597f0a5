"""What scores mean in an index, and whether the writer is in it at all. Learned from the index itself: each document in
turn is the question, once with its author's other documents there and once without. Of a text that is unlike all of
them nothing was learned."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from idiograph.answer.authors import IndexAuthors, author_sets_of
from idiograph.answer.large.sketch import read_texts
from idiograph.answer.likelihood import Calibration, Scored, effective_count, fit_scores, ratio_in_words
from idiograph.answer.ranking import Ranking, rank_candidates
from idiograph.errors import InputError
from idiograph.index.index import Index
from idiograph.rankers.library import Library
from idiograph.rankers.unlike import LibraryRange, sample_to_learn_from
from idiograph.style.tokens import Ints
from idiograph.text.passages import count_words
from idiograph.text.words import content_words, usual_overlap, word_overlap

NOTES = {"set": "background", "author": "background-author"}  # kept beside the index
DOCUMENTS_TO_CALIBRATE_ON = 300  # documents that an index is calibrated on; more would change the ratio's third digit
QUESTION_PASSAGES = (1, 2, 4, 8, 16, 1_000)  # passages of a question: what a score means depends on how much was asked
STRANGERS_PER_QUESTION = 20  # different authors that each question is compared with


@dataclass(frozen=True, slots=True)
class IndexCalibration:
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
    def from_json(cls, saved: dict[str, Any]) -> "IndexCalibration":
        learned = {name: Calibration.from_json(saved[name]) for name in ("calibration", "open_set")}
        intercept, slope = saved["expected"]
        rest = {"usual_overlap": saved["usual_overlap"], "version": saved["version"]}
        return cls(**learned, **rest, expected=(intercept, slope))


@dataclass(frozen=True, slots=True)
class OpenSetAnswer:
    """Is the writer among the candidates? `probability` is that of "none of these"."""

    llr: float
    words: str
    probability: float
    prior: float


def open_answer(calibration: Calibration, z: float, size: float, prior: float) -> OpenSetAnswer:
    """What the best candidate's standing says about somebody who is not here. `prior`: of that, before the text."""
    llr = calibration.llr(z, size)
    words = ratio_in_words(llr).replace("the same author", "a writer in the index")
    words = words.replace("different authors", "a writer who is not in the index")
    chance = prior / (prior + (1 - prior) * 10**llr)
    return OpenSetAnswer(llr, words, chance, prior)


@dataclass
class OpenSetTally:
    """Comparisons while documents are asked about."""

    scores: list[float]
    sizes: list[float]
    truth: list[bool]

    def add(self, score: float, size: float, truth: bool) -> None:
        self.scores.append(score)
        self.sizes.append(size)
        self.truth.append(truth)

    def pairs(self) -> Scored:
        return Scored(np.array(self.scores), np.array(self.sizes), np.array(self.truth, dtype=bool))


def calibrate_index(index: Index, by: str = "set", seed: int = 7) -> IndexCalibration:
    """Calibrate on the index itself."""
    everybody = author_sets_of(index, by)
    owned = everybody.members[np.repeat(everybody.sizes > 1, everybody.sizes)]
    random = np.random.default_rng(seed)
    pairs, best, near = OpenSetTally([], [], []), OpenSetTally([], [], []), list[tuple[float, float]]()
    for document in dict.fromkeys(owned[random.permutation(len(owned))[:DOCUMENTS_TO_CALIBRATE_ON]].tolist()):
        rows = draw_question(everybody, document, random)
        texts = [p.text for p in index.passages_at(rows)]
        size = float(effective_count(sum(map(count_words, texts)), 1e9))
        writers = frozenset(index.documents[document].authors)
        own = everybody.of_people(writers)
        found = rank_candidates(
            index, everybody, index.vectors_at(rows), exclude=[everybody.documents[document]], also=own
        )
        ask_stranger(everybody, found, writers, size, (pairs, best), random)
        near.append(nearest_stranger(index, texts[0], found, writers))
    source = index.about.get("source") or index.where
    style = index.style.fingerprint
    texts = [p.text for p in index.passages_at(np.arange(0, len(index), max(1, len(index) // 60)))]
    crossed = [(a, b) for a in texts for b in texts if a < b]
    return IndexCalibration(
        fit_scores(pairs.pairs(), style, source),
        fit_scores(best.pairs(), style, source),
        usual_overlap([a for a, _ in crossed], [b for _, b in crossed]),
        straight(near),
        index.version,
    )


def draw_question(everybody: IndexAuthors, document: int, random: np.random.Generator) -> Ints:
    """A run of a document's passages, of a length from the ladder."""
    rows = everybody.passages_of([document])
    size = min(QUESTION_PASSAGES[int(random.integers(len(QUESTION_PASSAGES)))], len(rows))
    start = int(random.integers(len(rows) - size + 1))
    return rows[start : start + size]


def ask_stranger(
    everybody: IndexAuthors,
    ranking: Ranking,
    writers: frozenset[str],
    size: float,
    tallies: tuple[OpenSetTally, OpenSetTally],
    random: np.random.Generator,
) -> None:
    """Note how the writer and some strangers stand, and who is first with the writer there and without."""
    pairs, best = tallies
    keys = [set(everybody.keys[who]) for who in ranking.who]
    own = np.array([key <= writers for key in keys], bool)
    strangers = ranking.take(np.array([not key & writers for key in keys], bool))
    if not own.any() or not len(strangers):
        return
    for z in ranking.z[own]:
        pairs.add(float(z), size, True)
    share = strangers.weights / strangers.weights.sum()
    for at in random.choice(len(strangers), min(STRANGERS_PER_QUESTION, len(strangers)), replace=False, p=share):
        pairs.add(float(strangers.z[at]), size, False)
    first = float(strangers.z[0])
    best.add(max([first, *ranking.z[own & ranking.seen].tolist()]), size, True)
    best.add(first, size, False)


def nearest_stranger(index: Index, text: str, ranking: Ranking, writers: frozenset[str]) -> tuple[float, float]:
    """The overlap and the similarity of a passage with the one by others that is most like it."""
    scores = ranking.matches.scores[0]
    for at in np.argsort(-scores):
        row = int(ranking.matches.passages[at])
        if not writers & set(index.documents[index.owner[row]].authors):
            other = index.passages_at([row])[0].text
            return word_overlap(content_words(text), content_words(other)), float(scores[at])
    return 0.0, 0.0


def straight(points: list[tuple[float, float]]) -> tuple[float, float]:
    """The line through points by least squares, never falling."""
    if len(points) < 3:
        return 0.0, 0.0
    x, y = np.array(points).T
    slope = max(float(np.cov(x, y)[0, 1] / max(x.var(ddof=1), 1e-9)), 0.0)
    return float(y.mean() - slope * x.mean()), slope


def calibration_of_index(index: Index, by: str = "set") -> IndexCalibration:
    """What scores mean in this index; learned once, kept beside it, and learned again when documents came or went."""
    try:
        calibration = IndexCalibration.from_json(index.read_note(NOTES[by]) or {})
        if (calibration.version, calibration.calibration.style) == (index.version, index.style.fingerprint):
            return calibration
    except (ValueError, KeyError, TypeError):
        pass  # there is none yet, or an older or broken one: it is learned
    try:
        calibration = calibrate_index(index, by)
    except InputError as error:
        raise InputError(f"index '{index.where}' cannot be calibrated: {error}") from error
    index.write_note(NOTES[by], calibration.to_json())
    return calibration


def range_of_index(index: Index) -> LibraryRange:
    """What is usual in the texts of an index; of a large one, in a sample of them."""

    def learn() -> LibraryRange:
        places = sample_to_learn_from(len(index.documents))
        texts = tuple(read_texts(index, author_sets_of(index), places))
        return LibraryRange(Library(texts, tuple(" & ".join(index.documents[at].names) for at in places)))

    return index.once("range", learn)


def why_strange(index: Index, text: str) -> tuple[str, ...]:
    """Why a text is so unlike the texts of an index that what was learned from them says nothing of it."""
    found = range_of_index(index).unlikeness(text)
    if not found.strange:
        return ()
    return (
        f"the text is unlike those of this library: by its letters it lies {found.distance:.1f} spreads from what is usual "
        f"there, texts of the library itself up to {found.furthest:.1f}",
    )


def open_answer_of_strange(prior: float) -> OpenSetAnswer:
    """Is the writer here? Of a text that is unlike the library nothing is known but what was held likely before."""
    return OpenSetAnswer(0.0, ratio_in_words(0.0), prior, prior)
