"""One writer or two? A calibrated likelihood ratio for a pair of texts: evidence, not a verdict, and it may abstain."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.calibrate import INCONCLUSIVE, Calibration, fit, posterior, times, words
from idiograph.answer.overlap import content_words, overlap, usual
from idiograph.corpus.sentences import sentences, tiles
from idiograph.errors import TooShort
from idiograph.style.model import Style
from idiograph.style.score import symmetric
from idiograph.types import Document

LEAST_WORDS = 50
SENTENCES = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the comparison of two texts says. `same` is None where it abstains."""

    score: float
    llr: float
    words: str
    times: str
    same: bool | None
    probability: float
    prior_odds: float
    overlap: float
    topic_warning: bool
    calibration: Calibration

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Background:
    """What pairs from a known corpus look like: their scores, and how many content words they share."""

    calibration: Calibration
    usual_overlap: float

    def to_json(self) -> dict[str, Any]:
        return {"calibration": self.calibration.to_json(), "usual_overlap": self.usual_overlap}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Background":
        return cls(Calibration(**found["calibration"]), found["usual_overlap"])


def passages(text: str, size: int = SENTENCES) -> list[str]:
    """A text in passages of `size` sentences; refuses a text that is too short to say anything about."""
    count = len(text.split())
    if count < LEAST_WORDS:
        raise TooShort(f"a text of {count} words is too short to say who wrote it; {LEAST_WORDS} are the least")
    return [text[start:end] for start, end in tiles(sentences(text), size)]


def score_matrix(texts: Sequence[str], style: Style) -> NDArray[np.float64]:
    """The score of every text with every other: the mean over all pairs of their passages, looked at from both sides."""
    parts = [passages(text) for text in texts]
    between = symmetric(encoded := style.encode([p for part in parts for p in part]), encoded)
    starts = np.cumsum([0, *map(len, parts)])[:-1]
    sums = np.add.reduceat(np.add.reduceat(between, starts, axis=0), starts, axis=1)
    sizes = np.array([len(part) for part in parts])
    return sums.astype(np.float64) / np.outer(sizes, sizes)


def cross_fitted(scores: NDArray[np.float64], writers: Sequence[object]) -> dict[tuple[int, int], float]:
    """The log10 likelihood ratio of every pair, each learned from pairs of other writers alone."""
    pairs = list(combinations(range(len(writers)), 2))
    calibrations: dict[frozenset[object], Calibration] = {}
    found = {}
    for a, b in pairs:
        left_out = frozenset((writers[a], writers[b]))
        if left_out not in calibrations:
            rest = [(i, j) for i, j in pairs if writers[i] not in left_out and writers[j] not in left_out]
            same = [float(scores[i, j]) for i, j in rest if writers[i] == writers[j]]
            different = [float(scores[i, j]) for i, j in rest if writers[i] != writers[j]]
            calibrations[left_out] = fit(same, different, "", "other writers")
        found[a, b] = calibrations[left_out].llr(float(scores[a, b]))
    return found


def background(documents: Iterable[Document], style: Style, source: str) -> Background:
    """Learn from documents of known writers what scores mean."""
    known = [d for d in documents if len(d.text.split()) >= LEAST_WORDS]
    scores = score_matrix([d.text for d in known], style)
    pairs = list(combinations(range(len(known)), 2))
    same = [(a, b) for a, b in pairs if known[a].author_set == known[b].author_set]
    different = [(a, b) for a, b in pairs if not known[a].author_set & known[b].author_set]
    one, two = ([float(scores[pair]) for pair in kind] for kind in (same, different))
    return Background(fit(one, two, style.fingerprint, source), usual([d.text for d in known], different))


def verify(a: str, b: str, style: Style, known: Background, prior_odds: float = 1.0) -> Verdict:
    """Compare two texts; `prior_odds` are the reader's own, before seeing the texts."""
    score = float(score_matrix([a, b], style)[0, 1])
    llr = known.calibration.llr(score)
    shared = overlap(content_words(a), content_words(b))
    return Verdict(
        score=score,
        llr=llr,
        words=words(llr),
        times=times(llr),
        same=None if abs(llr) < INCONCLUSIVE else llr > 0,
        probability=posterior(llr, prior_odds),
        prior_odds=prior_odds,
        overlap=shared,
        topic_warning=shared > known.usual_overlap,
        calibration=known.calibration,
    )
