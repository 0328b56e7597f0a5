"""How often would an answer be right on texts like these? Every text of a library is left out in turn and asked about.

What is reported of `best` comes from weights and ratios that did not see the text (nor its author, where there are enough
authors). It is compared with the majority guess: naming the author of the most texts every time.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from idiograph.answer.evidence import (
    BEST_TEXTS,
    EvidenceWeights,
    Floats,
    KnownQuestions,
    LibraryEvidence,
    Longs,
    author_standings,
    cross_fit_evidence,
    join_asked,
    learn_evidence,
)
from idiograph.answer.likelihood import Calibration, Scored, bounds_of_ratios, fit_scores
from idiograph.errors import InputError
from idiograph.html import notebook_rows
from idiograph.measures.likelihood import cllr, cllr_min
from idiograph.rankers.library import Library
from idiograph.text.passages import count_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEST = "best"
MIN_AUTHORS_TO_LEAVE_OUT = 10  # with fewer, texts are left out and not authors: who is left must still be many
MAX_TEXTS = 500  # of a library that are compared with each other, which costs their square; of more a sample is
QUESTION_WORDS = (150, 500)  # of shorter questions that a library is asked, besides whole texts


CHECK_SCHEMA = pa.schema(
    {
        "method": pa.string(),
        "right": pa.int64(),
        "of": pa.int64(),
        **dict.fromkeys(("low", "high", "weight", "cllr", "cllr_cal"), pa.float64()),
    }
)


@dataclass(frozen=True, slots=True)
class MethodCheck:
    """How often one method is right on a library, and what its ratios are worth there."""

    name: str
    right: int
    of: int
    interval: tuple[float, float]  # of the share that is right, 95 %
    cllr: float
    cllr_cal: float  # how much of it better calibration would save
    reliability: tuple[tuple[float, float, int], ...]  # promised probability, how often it came true, pairs

    def to_json(self) -> dict[str, Any]:
        rest = {"cllr": self.cllr, "cllr_cal": self.cllr_cal, "reliability": [list(row) for row in self.reliability]}
        return {"right": self.right, "of": self.of, "interval": list(self.interval), **rest}

    @classmethod
    def from_json(cls, name: str, saved: dict[str, Any]) -> "MethodCheck":
        curve = tuple((float(a), float(b), int(c)) for a, b, c in saved["reliability"])
        low, high = saved["interval"]
        return cls(name, saved["right"], saved["of"], (low, high), saved["cllr"], saved["cllr_cal"], curve)


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """What leaving out every text of a library shows."""

    methods: dict[str, MethodCheck]
    weights: dict[str, float]
    authors: dict[str, dict[str, int]]  # of each: texts asked about, and how many are right
    confusion: dict[str, dict[str, int]]  # true author → named author → texts
    majority: int  # right answers of naming one author every time
    texts: int
    lang: str
    words: int  # that a question was cut to; 0: whole texts
    sampled_from: int = 0  # texts that the library has, where only `texts` of them were compared; 0: all were

    @property
    def best(self) -> MethodCheck:
        return self.methods[BEST]

    @property
    def tells_apart(self) -> bool:
        """Is the weighed evidence surely better than the majority guess, or any method by itself? The luckiest of several
        that were tried is more often better by chance, so each must be the surer the more there are (Bonferroni)."""
        from scipy.special import ndtri  # loads slowly

        chance, sure = self.majority / self.best.of, float(-ndtri(0.025 / len(self.methods)))
        alone = (wilson_interval(check.right, check.of, sure)[0] > chance for check in self.methods.values())
        return self.best.interval[0] > chance or any(alone)

    @property
    def sentence(self) -> str:
        """How often this is right, in words."""
        best = self.best
        sample = f" ({self.texts:,} of its {self.sampled_from:,} texts were sampled)" if self.sampled_from else ""
        if not self.tells_apart:
            return (
                f"these texts do not tell their authors apart by anything that was tried (right in {best.right} of "
                f"{best.of}; naming one author every time is right in {self.majority}){sample}"
            )
        return f"on texts of this library this is right in {best.right} of {best.of}{sample}"

    def to_json(self) -> dict[str, Any]:
        about = {"majority": self.majority, "texts": self.texts, "lang": self.lang, "words": self.words}
        about |= {"sampled_from": self.sampled_from}
        checks = {name: check.to_json() for name, check in self.methods.items()}
        learned = {"authors": self.authors, "weights": self.weights, "confusion": self.confusion}
        return {"methods": checks, **learned, **about, "tells_apart": self.tells_apart, "says": self.sentence}

    def to_frame(self) -> pa.Table:
        """A row a method: how often it is right, its weight, what its ratios are worth."""
        return pa.Table.from_pylist(self._rows(), CHECK_SCHEMA)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "method": name,
                "right": check.right,
                "of": check.of,
                "low": check.interval[0],
                "high": check.interval[1],
                "weight": self.weights.get(name),
                "cllr": check.cllr,
                "cllr_cal": check.cllr_cal,
            }
            for name, check in self.methods.items()
        ]

    def plot(self) -> "Figure":
        """How often each method is right, and whether probabilities come true."""
        from idiograph.plots.panels import right_and_reliable  # loads matplotlib

        rights = {name: (check.right / check.of, *check.interval) for name, check in self.methods.items()}
        return right_and_reliable(rights, self.majority / self.best.of, self.best.reliability)

    def __repr__(self) -> str:
        return f"CrossValidation({self.sentence!r}, texts={self.texts}, methods={list(self.methods)})"

    def _repr_html_(self) -> str:
        said = f"{self.sentence}; naming one author every time is right in {self.majority}"
        rows = [{**row, "weight": "" if row["weight"] is None else row["weight"]} for row in self._rows()]
        return notebook_rows(said if self.tells_apart else self.sentence, rows)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "CrossValidation":
        checks = {name: MethodCheck.from_json(name, check) for name, check in saved["methods"].items()}
        rest = {name: saved[name] for name in ("weights", "authors", "confusion", "majority", "texts", "lang", "words")}
        return cls(checks, **rest, sampled_from=saved.get("sampled_from", 0))


@dataclass(frozen=True)
class LibraryAuthors:
    """Who may have written a text: names, and the places of the texts of each in the library."""

    names: tuple[str, ...]
    members: tuple[Longs, ...]

    @classmethod
    def of(cls, library: Library) -> "LibraryAuthors":
        names, place = np.unique(library.authors, return_inverse=True)
        return cls(tuple(map(str, names)), tuple(np.flatnonzero(place == at) for at in range(len(names))))

    def known_writers(self, texts: int) -> Longs:
        """The author of each text who has another one; −1 where there is none, or where several may be meant."""
        writers, count = np.full(texts, -1, np.int64), np.zeros(texts, np.int64)
        for who, places in enumerate(self.members):
            count[places] += 1
            writers[places] = who if len(places) > 1 else -1
        return np.where(count == 1, writers, -1)


def crossvalidate_evidence(
    evidence: LibraryEvidence, authors: LibraryAuthors | None = None, words: int = 0
) -> CrossValidation:
    """Leave out every text by an author with another one, cut to `words` from its middle if that is not 0."""
    authors = authors or LibraryAuthors.of(evidence.library)
    return check_asked(evidence, authors, ask_library(evidence, authors, words), words)


def check_asked(
    evidence: LibraryEvidence, authors: LibraryAuthors, asked: KnownQuestions, words: int
) -> CrossValidation:
    """What questions with known writers show of every method, and of all together."""
    learned = learn_evidence(asked, evidence.names)
    ratios, scores = cross_fit_evidence(asked, evidence.names)
    checks = {BEST: check_ratios(BEST, ratios, scores, asked.truth)}
    if len(evidence.names) > 1:
        checks |= {
            name: check_ratios(name, *cross_fit_evidence(asked.alone(at), [name]), asked.truth)
            for at, name in enumerate(evidence.names)
        }
    named = best_author(scores)
    counts = Counter(asked.truth.tolist())
    right = named == asked.truth
    return CrossValidation(
        methods=checks,
        weights={name: round(weight, 4) for name, weight in zip(learned.names, learned.weights, strict=True)},
        authors={
            authors.names[who]: {"of": n, "right": int(right[asked.truth == who].sum())} for who, n in counts.items()
        },
        confusion=confusion_of(authors.names, asked.truth, named),
        majority=max(counts.values()),
        texts=len(evidence.library),
        lang=evidence.library.lang,
        words=words,
    )


def ask_library(evidence: LibraryEvidence, authors: LibraryAuthors, words: int = 0) -> KnownQuestions:
    """Every text whose author has another one as a question."""
    library = evidence.library
    writers = authors.known_writers(len(library))
    places = np.flatnonzero(writers >= 0)
    if len(places) < 2:
        raise InputError(
            "no author of the library has two texts, so none can be left out; add texts by the same authors"
        )
    texts = [cut_middle(library.texts[at], words) for at in places.tolist()]
    each = evidence.standings(texts, places.tolist())
    standings = {best: author_standings(each, authors.members, best) for best in BEST_TEXTS}
    sizes = np.log10([max(count_words(text), 1) for text in texts])
    return KnownQuestions(standings, writers[places], sizes, groups_of(writers[places], places))


@dataclass(frozen=True)
class LibraryKnowledge:
    """What a library teaches about itself: weights, what the best author's score says of an unknown writer, and the check."""

    weights: EvidenceWeights
    open_set: Calibration
    check: CrossValidation

    def to_json(self) -> dict[str, Any]:
        rest = {"open_set": self.open_set.to_json(), "check": self.check.to_json()}
        return {"weights": self.weights.to_json(), **rest}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "LibraryKnowledge":
        check = CrossValidation.from_json(saved["check"])
        return cls(EvidenceWeights.from_json(saved["weights"]), Calibration.from_json(saved["open_set"]), check)


def learn_library(evidence: LibraryEvidence, authors: LibraryAuthors) -> LibraryKnowledge:
    """Learn from whole texts and from shorter questions: what a score is worth depends on how much was asked."""
    whole, *shorter = ask_at_lengths(evidence, authors)
    asked = join_asked([whole, *shorter])
    ratios, scores = cross_fit_evidence(asked, evidence.names)
    check = check_asked(evidence, authors, whole, 0)
    count = len(whole.truth)  # texts: a shorter question from one of them is no further comparison
    weights = learn_evidence(asked, evidence.names)
    same, different = split_by_truth(ratios[:count], whole.truth)
    weights = replace(weights, calibration=keep_within(weights.calibration, same, different))
    return LibraryKnowledge(weights, learn_open_set(asked, scores, count), check)


def ask_at_lengths(evidence: LibraryEvidence, authors: LibraryAuthors) -> list[KnownQuestions]:
    """Whole texts as questions, and then shorter ones from them."""
    whole = ask_library(evidence, authors)
    middle = float(np.median(10**whole.sizes))
    return [whole, *(ask_library(evidence, authors, words) for words in QUESTION_WORDS if 2 * words < middle)]


def keep_within(calibration: Calibration, same: Floats, different: Floats) -> Calibration:
    """A calibration whose ratios go no further than these comparisons, which it did not see, can support."""
    by_one = np.arange(len(same) + len(different)) < len(same)
    low, high = bounds_of_ratios(np.concatenate([same, different]), by_one)
    return replace(calibration, low=max(calibration.low, low), high=min(calibration.high, high))


def split_by_truth(ratios: Floats, truth: Longs) -> tuple[Floats, Floats]:
    """The ratios of the questions with their writers, and with everybody else."""
    rows = np.arange(len(truth))
    others = ratios.copy()
    others[rows, truth] = np.nan
    return ratios[rows, truth], others[~np.isnan(others)]


def learn_open_set(asked: KnownQuestions, scores: Floats, count: int) -> Calibration:
    """What the best author's score is where the writer is in the library, and where the writer's texts are not; bounded by
    the first `count` questions."""
    filled = np.where(np.isnan(scores), -np.inf, scores)
    there = filled.max(axis=1)
    filled[np.arange(len(filled)), asked.truth] = -np.inf
    absent = filled.max(axis=1)
    kept = np.isfinite(absent)
    best, sizes = np.concatenate([there[kept], absent[kept]]), np.tile(asked.sizes[kept], 2)
    learned = fit_scores(Scored(best, sizes, np.arange(len(best)) < kept.sum()), "", "", least=1)
    first = np.flatnonzero(kept[:count])
    here = [learned.unbounded(values[first], asked.sizes[first]) for values in (there, absent)]
    return keep_within(learned, *here)


def groups_of(truth: Longs, places: Longs) -> Longs:
    """What is left out together when weights are learned: all texts of an author, or a text where authors are few."""
    return truth if len(np.unique(truth)) >= MIN_AUTHORS_TO_LEAVE_OUT else places


def cut_middle(text: str, words: int) -> str:
    """So many words from the middle of a text; all of it for 0.

    >>> cut_middle("one two three four five", 3)
    'two three four'
    """
    parts = text.split(" ")
    start = max(0, len(parts) // 2 - words // 2)
    return " ".join(parts[start : start + words]) if words else text


def check_ratios(name: str, ratios: Floats, scores: Floats, truth: Longs) -> MethodCheck:
    """How often the writer comes first (by scores, as ratios are bounded and tie), and what the ratios are worth."""
    right = int((best_author(scores) == truth).sum())
    same, different = split_by_truth(ratios, truth)
    whole, least = cllr(same, different), cllr_min(same, different)
    curve = reliability_curve(same, different)
    return MethodCheck(name, right, len(truth), wilson_interval(right, len(truth)), whole, whole - least, curve)


def best_author(scores: Floats) -> Longs:
    return np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1)


def wilson_interval(right: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """The share that is right, with the uncertainty of so many questions.

    >>> [round(end, 2) for end in wilson_interval(66, 70)]
    [0.86, 0.98]
    >>> wilson_interval(70, 70)[1]  # rounding must not take the share itself out of it
    1.0
    """
    share, room = right / of, z * z / of
    middle = (share + room / 2) / (1 + room)
    half = z / (1 + room) * np.sqrt(share * (1 - share) / of + room / (4 * of))
    return float(np.clip(middle - half, 0.0, share)), float(np.clip(middle + half, share, 1.0))


def reliability_curve(same: Floats, different: Floats, bins: int = 8) -> tuple[tuple[float, float, int], ...]:
    """Of pairs with about this probability of one hand (both kinds as likely before), how many are by one hand."""
    ratios = np.concatenate([same, different])
    weight = np.concatenate(
        [np.full(len(same), 0.5 / len(same)), np.full(len(different), 0.5 / max(len(different), 1))]
    )
    by_one = np.arange(len(ratios)) < len(same)
    promised = 1 / (1 + 10.0**-ratios)
    place = np.minimum((promised * bins).astype(int), bins - 1)
    rows = []
    for number in range(bins):
        here = place == number
        if here.any():
            total = weight[here].sum()
            true = float(weight[here & by_one].sum() / total)
            rows.append((float((promised * weight)[here].sum() / total), true, int(here.sum())))
    return tuple(rows)


def confusion_of(names: Sequence[str], truth: Longs, named: Longs) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for true, guess in zip(truth, named, strict=True):
        row = table.setdefault(names[int(true)], {})
        row[names[int(guess)]] = row.get(names[int(guess)], 0) + 1
    return table


def sample_library(library: Library, limit: int = MAX_TEXTS) -> Library:
    """At most so many texts: authors with several first, in an order that depends on their names alone."""
    return library if len(library) <= limit else library.take(sample_places(library.authors, limit))


def sample_places(authors: Sequence[str], limit: int, seed: int = 7) -> list[int]:
    """The places of the texts that a sample has, by the author of each."""
    counts = Counter(authors)
    order = np.random.default_rng(seed).permutation(sorted(counts))
    rank = {name: at for at, name in enumerate(sorted(order.tolist(), key=lambda name: counts[name] < 2))}
    return sorted(sorted(range(len(authors)), key=lambda at: rank[authors[at]])[:limit])
