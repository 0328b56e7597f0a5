"""Evidence of several rankers as one: how near a text is to each author of a library, and what that is worth there.

Every ranker scores the text against every text of the library. A score is read against what the text scores with everybody
and what the library's text scores with everybody, so that a long or ordinary text is not everybody's neighbour. The best
few texts of an author count. The sum over rankers, with weights ≥ 0 that are drawn towards equal ones, is turned into a
likelihood ratio. Weights and ratio are learned from the library's own texts, each left out in turn.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.likelihood import Calibration, Scored, fit_scores
from idiograph.errors import InputError
from idiograph.rankers.library import NOT_IN_LIBRARY, LearnedRanker, LearningRanker, Library

EVERY_TEXT = 1_000_000  # of an author counts
BEST_TEXTS = (1, 3, EVERY_TEXT)  # how many texts of an author may count; which is learned with the weights
PRIOR_WEIGHT = 0.3  # of a ranker before anything was learned
PRIOR_STRENGTH = 1.0  # about how many questions it takes to move a weight by one; chosen on Hungarian novels
SPREAD_FLOOR = 1e-9  # scores that differ by less are equal
Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Method:
    """A way to compare that a reader can ask for: one ranker, or several views of the same thing that count alike."""

    name: str
    rankers: tuple[LearningRanker, ...]


@dataclass(frozen=True)
class ColumnStatistics:
    """What the library's other texts score with each text of it, each question brought to mean 0 and spread 1 first: how
    many, their sum and the sum of their squares. `rows` holds the scores themselves where texts may be left out."""

    count: Floats
    total: Floats
    squares: Floats
    rows: Floats | None = None

    @classmethod
    def of(cls, among: Floats, keep_rows: bool = True) -> "ColumnStatistics":
        """From the scores of the library's texts with each other, each left out in its own row."""
        rows = standardise(among, *row_statistics(among))
        known = ~np.isnan(rows)
        filled = np.where(known, rows, 0.0)
        sums = (known.sum(0).astype(np.float64), filled.sum(0), (filled**2).sum(0))
        return cls(*sums, rows if keep_rows else None)

    def mean_and_spread(self, left_out: Longs) -> tuple[Floats, Floats]:
        """Of each column, for each question without the text that it was taken from: two (questions, library)."""
        count, total, squares = (np.tile(each, (len(left_out), 1)) for each in (self.count, self.total, self.squares))
        asked = np.flatnonzero(left_out >= 0)
        if len(asked):
            if self.rows is None:
                raise ValueError("statistics without rows cannot leave a text out")
            own = self.rows[left_out[asked]]
            known = ~np.isnan(own)
            filled = np.where(known, own, 0.0)
            count[asked] -= known
            total[asked] -= filled
            squares[asked] -= filled**2
        mean = total / np.maximum(count, 1)
        return mean, np.sqrt(np.maximum(squares / np.maximum(count, 1) - mean**2, 0.0))


@dataclass(frozen=True)
class LearnedView:
    """A ranker that knows the library, and what the library's texts score with each other."""

    ranker: LearnedRanker
    columns: ColumnStatistics
    library: Library
    among: Floats | None = None  # the library's texts with each other, each left out, where that was learned just now

    def standings(self, texts: Sequence[str], left_out: Longs) -> Floats:
        """(texts, library) scores, read against everybody; NaN at the text that a question was taken from.

        A ranker whose scores weigh all texts of the library against each other (`weighs_all`) has done the half of that.
        """
        scores = self._score(texts, left_out)
        if getattr(self.ranker, "weighs_all", False):
            return standardise(scores, *row_statistics(scores))
        return read_against(scores, self.columns, left_out)

    def _score(self, texts: Sequence[str], left_out: Longs) -> Floats:
        """As the ranker scores; a whole text of the library that is left out was scored when the library was learned."""
        if self.among is None:
            return self.ranker.score(texts, left_out.tolist())
        pairs = enumerate(zip(texts, left_out.tolist(), strict=True))
        new = [at for at, (text, place) in pairs if place < 0 or text != self.library.texts[place]]
        scores = self.among[left_out]
        if new:
            scores[new] = self.ranker.score([texts[at] for at in new], left_out[new].tolist())
        return scores


class LibraryEvidence:
    """A library and everything that the methods know of it. `columns` are statistics from an earlier time, by view."""

    def __init__(
        self, library: Library, methods: Sequence[Method], columns: Sequence[ColumnStatistics] | None = None
    ) -> None:
        if len(library) < 2:
            raise InputError("a library of one text has nothing to compare with; give at least two texts")
        self.library, self.methods = library, tuple(methods)
        saved = iter(columns or ())
        self.views = [[learn_view(one, library, next(saved, None)) for one in method.rankers] for method in methods]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(method.name for method in self.methods)

    @property
    def columns(self) -> list[ColumnStatistics]:
        return [view.columns for views in self.views for view in views]

    def standings(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Floats:
        """How each question stands with each text of the library, by method: (texts, library, methods)."""
        out = np.full(len(texts), NOT_IN_LIBRARY) if left_out is None else np.asarray(left_out, np.int64)
        by_method = [np.mean([view.standings(texts, out) for view in views], axis=0) for views in self.views]
        return np.stack(by_method, axis=-1)


def learn_view(ranker: LearningRanker, library: Library, saved: ColumnStatistics | None) -> LearnedView:
    learned = ranker.learn(library)
    if saved:
        return LearnedView(learned, saved, library)
    among = learned.score(library.texts, range(len(library)))
    return LearnedView(learned, ColumnStatistics.of(among), library, among)


def read_against(scores: Floats, columns: ColumnStatistics, left_out: Longs) -> Floats:
    """Each score in units of spread: of what the question scores with everybody, and then of what the library's other texts
    score with this one; the mean of the two. The text that a question was taken from has no part in either."""
    scores = scores.astype(np.float64)
    asked = np.flatnonzero(left_out >= 0)
    scores[asked, left_out[asked]] = np.nan
    by_row = standardise(scores, *row_statistics(scores))
    return (by_row + standardise(by_row, *columns.mean_and_spread(left_out))) / 2


def row_statistics(scores: Floats) -> tuple[Floats, Floats]:
    known = ~np.isnan(scores)
    count = np.maximum(known.sum(1, keepdims=True), 1)
    mean = np.where(known, scores, 0.0).sum(1, keepdims=True) / count
    return mean, np.sqrt(np.where(known, (scores - mean) ** 2, 0.0).sum(1, keepdims=True) / count)


def standardise(scores: Floats, mean: Floats, spread: Floats) -> Floats:
    """A score that everybody has says nothing: it is 0."""
    return np.where(spread > SPREAD_FLOOR, (scores - mean) / np.maximum(spread, SPREAD_FLOOR), scores * 0.0)


def author_standings(standings: Floats, members: Sequence[Longs], best: int) -> Floats:
    """How a question stands with each author: the mean of their best few texts. NaN for one without a text that counts.

    `standings` is (questions, library, methods), `members` the places of each author's texts; (questions, authors, methods).
    """
    result = np.full((len(standings), len(members), standings.shape[2]), np.nan)
    for at, texts in enumerate(members):
        ordered = -np.sort(-np.nan_to_num(standings[:, texts], nan=-np.inf), axis=1)[:, :best]
        counts = np.isfinite(ordered)
        total = np.where(counts, ordered, 0.0).sum(axis=1)
        result[:, at] = np.where(counts.any(axis=1), total / np.maximum(counts.sum(axis=1), 1), np.nan)
    return result


@dataclass(frozen=True)
class KnownQuestions:
    """Questions whose writers are known, and how each stands with each author."""

    standings: dict[int, Floats]  # how many texts of an author count → (questions, authors, methods)
    truth: Longs  # the author of each
    sizes: Floats  # log10 of the words of each
    groups: Longs  # questions of one group are left out together

    def take(self, which: Longs | Bools) -> "KnownQuestions":
        some = {best: values[which] for best, values in self.standings.items()}
        return KnownQuestions(some, self.truth[which], self.sizes[which], self.groups[which])

    def alone(self, method: int) -> "KnownQuestions":
        """The same questions, asked of one method."""
        one = {best: values[:, :, method : method + 1] for best, values in self.standings.items()}
        return KnownQuestions(one, self.truth, self.sizes, self.groups)

    def pairs(self, best: int) -> "QuestionPairs":
        """Every question with every author that it can be by."""
        values = self.standings[best]
        question, author = np.nonzero(~np.isnan(values).any(axis=2))
        return QuestionPairs(values[question, author], author == self.truth[question], self.sizes[question])


def join_asked(parts: Sequence[KnownQuestions]) -> KnownQuestions:
    """The questions of several rounds as one."""
    standings = {best: np.concatenate([part.standings[best] for part in parts]) for best in parts[0].standings}
    rest = ([getattr(part, name) for part in parts] for name in ("truth", "sizes", "groups"))
    return KnownQuestions(standings, *map(np.concatenate, rest))


@dataclass(frozen=True, slots=True)
class QuestionPairs:
    """Questions with authors: how each pair stands, whether the author wrote it, and log10 of the question's words."""

    standings: Floats  # (pairs, methods)
    same: Bools
    sizes: Floats


@dataclass(frozen=True)
class EvidenceWeights:
    """What each method counts for in a library, how many texts of an author count, and what the weighted sum is worth."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    best_texts: int
    calibration: Calibration

    def scores(self, standings: Floats) -> Floats:
        """The weighted sum: (…, methods) → (…)."""
        return standings @ np.array(self.weights)

    def ratios(self, standings: Floats, sizes: Floats) -> Floats:
        """log10 likelihood ratios of (questions, authors, methods); NaN where an author has no text that counts."""
        scores = self.scores(standings)
        wide = np.broadcast_to(sizes[:, None], scores.shape)
        return np.where(np.isnan(scores), np.nan, self.calibration.ratios(np.nan_to_num(scores), wide))

    def shares(self, standing: Floats, size: float) -> tuple[tuple[str, float], ...]:
        """What each method adds to the log10 ratio of one question with one author; with what there is before any method
        says something (`prior`) they sum to the ratio, which is then kept within what the library supports (`bound`)."""
        _, slope, _, twist = self.calibration.weights
        steep = slope + twist * float(np.clip(size, *self.calibration.sizes))
        parts = [(name, float(w * x * steep)) for name, w, x in zip(self.names, self.weights, standing, strict=True)]
        score = float(self.scores(standing))
        whole = float(self.calibration.unbounded(np.array([score]), np.array([size]))[0])
        bounded = self.calibration.llr(score, size)
        return (*parts, ("prior", whole - sum(part for _, part in parts)), ("bound", bounded - whole))

    def to_json(self) -> dict[str, Any]:
        about = {"names": list(self.names), "weights": list(self.weights), "best_texts": self.best_texts}
        return {**about, "calibration": asdict(self.calibration)}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "EvidenceWeights":
        learned = Calibration.from_json(saved["calibration"])
        return cls(tuple(saved["names"]), tuple(saved["weights"]), saved["best_texts"], learned)


def learn_evidence(asked: KnownQuestions, names: Sequence[str], source: str = "") -> EvidenceWeights:
    """Learn the weights of the methods and what their sum is worth, from questions whose writers are known."""
    fits = {best: fit_weights(asked.pairs(best)) for best in asked.standings}
    best = min(fits, key=lambda each: fits[each][1])
    pairs, weights = asked.pairs(best), fits[best][0]
    calibration = fit_scores(Scored(pairs.standings @ weights, pairs.sizes, pairs.same), "", source, least=1)
    return EvidenceWeights(tuple(names), tuple(map(float, weights)), best, calibration)


def fit_weights(pairs: QuestionPairs) -> tuple[Floats, float]:
    """Logistic regression with weights ≥ 0 that are drawn towards equal ones, and its loss; both kinds of pair weigh the
    same in all."""
    from scipy.optimize import minimize
    from scipy.special import expit

    sign, count = np.where(pairs.same, 1.0, -1.0), max(int(pairs.same.sum()), 1)
    share = np.where(pairs.same, 1.0, count / max(len(sign) - count, 1))
    prior = np.full(pairs.standings.shape[1], PRIOR_WEIGHT)

    def loss(given: Floats) -> tuple[float, Floats]:
        margin = given[0] + pairs.standings @ given[1:]
        slope = -sign * share * expit(-sign * margin)
        away = given[1:] - prior
        total = share @ np.logaddexp(0.0, -sign * margin) + PRIOR_STRENGTH * away @ away
        return float(total), np.concatenate([[slope.sum()], pairs.standings.T @ slope + 2 * PRIOR_STRENGTH * away])

    bounds = [(None, None)] + [(0.0, None)] * len(prior)
    fitted: Any = minimize(loss, np.concatenate([[-1.0], prior]), jac=True, method="L-BFGS-B", bounds=bounds)
    return fitted.x[1:], float(fitted.fun)


def cross_fit_evidence(
    asked: KnownQuestions, names: Sequence[str], folds: int = 10, seed: int = 7
) -> tuple[Floats, Floats]:
    """The ratio of each question with each author, and the score behind it, by weights that did not see its group."""
    fold = fold_numbers(asked.groups, folds, seed)
    shape = (len(asked.truth), next(iter(asked.standings.values())).shape[1])
    ratios, scores = np.full(shape, np.nan), np.full(shape, np.nan)
    for number in np.unique(fold):
        held_out = fold == number
        learned = learn_evidence(asked.take(~held_out), names)
        standings = asked.standings[learned.best_texts][held_out]
        ratios[held_out] = learned.ratios(standings, asked.sizes[held_out])
        scores[held_out] = learned.scores(standings)
    return ratios, scores


def fold_numbers(groups: Longs, folds: int, seed: int) -> Longs:
    """Which fold each question is in: all of a group in one."""
    names, place = np.unique(groups, return_inverse=True)
    return (np.random.default_rng(seed).permutation(len(names)) % folds)[place]
