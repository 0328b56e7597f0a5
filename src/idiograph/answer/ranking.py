"""Candidates in the order of their nearness to a text. In a small index everything is scored; in a large one those who
seem nearest, and a panel of the others drawn at random.

Sketches (one vector a passage) say who seems near, and which passages of a document do; only these are scored exactly. A
likelihood ratio rests on how a candidate stands among *all* the others, so those who are not scored must not be left out:
the panel stands for them. Their mean and spread are the panel's, moved by what the sketches, which everybody has, say about the
difference between the panel and everybody (a regression estimate, as in survey sampling). The calibration of an index
asks its questions in this same way, so that it learns what such figures mean, errors included.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.authors import AuthorBest, Bools, Floats, IndexAuthors
from idiograph.index.index import Index
from idiograph.style.patches import Patches
from idiograph.style.tokens import Ints

MAX_PASSAGES_TO_SCORE_ALL = 4_000
NEAREST_CANDIDATES, PANEL_CANDIDATES = 100, 200  # that are scored: who seem nearest, and who stand for the rest
DOCUMENTS_PER_CANDIDATE = 30  # further ones go by their sketches
PASSAGES_PER_DOCUMENT = 4  # for each passage of the text
TEXT_PASSAGES_PER_BLOCK = 32  # passages of the text whose sketches are compared with everything at once
Floats32 = NDArray[np.float32]


@dataclass(frozen=True)
class Matches:
    """The passages that were scored, and the scores: (passages of the text, passages); −inf where a pair was not scored."""

    passages: Ints
    scores: Floats32
    near: Floats  # of each document; NaN where it does not count or was not scored

    def best(self, everybody: IndexAuthors, document: int) -> tuple[int, int, float]:
        """The passage of the text and the passage of a document that are most alike, and their score."""
        rows = np.intersect1d(everybody.passages_of([document]), self.passages, assume_unique=True)
        part = self.scores[:, np.searchsorted(self.passages, rows)]
        i, j = divmod(int(part.argmax()), len(rows))
        return i, int(rows[j]), float(part[i, j])


@dataclass(frozen=True)
class Ranking:
    """The candidates that were scored, nearest first."""

    who: Ints  # their numbers
    scores: Floats
    z: Floats  # how each stands among all the others
    weights: Floats  # how many candidates each one stands for
    seen: Bools  # would be here even if nobody had named them
    matches: "Matches"

    def __len__(self) -> int:
        return len(self.who)

    def take(self, which: Ints | Bools) -> "Ranking":
        """Some of the candidates."""
        some = {name: getattr(self, name)[which] for name in ("who", "scores", "z", "weights", "seen")}
        return replace(self, **some)

    def of(self, wanted: Bools) -> "Ranking":
        """Those who are wanted."""
        return self.take(wanted[self.who])


def rank_candidates(
    index: Index,
    everybody: IndexAuthors,
    asked: Patches,
    *,
    exclude: Sequence[str] = (),
    also: Bools | None = None,
    exact: bool = False,
) -> Ranking:
    """Rank the candidates for a text of one or more passages.

    `exclude` names documents that do not count, `also` candidates who are scored however far they seem.
    """
    index.refuse_empty()
    if exact or len(index) <= MAX_PASSAGES_TO_SCORE_ALL:
        return everybody_ranking(everybody, index.score_everything(asked), exclude)
    seems = seeming_scores(index, everybody, asked)
    seems[everybody.numbers(exclude)] = np.nan
    return staged_scores(index, everybody, asked, seems, np.zeros(len(everybody.keys), bool) if also is None else also)


def rank_each(
    index: Index,
    everybody: IndexAuthors,
    asked: Patches,
    *,
    exclude: Sequence[str] = (),
    also: Bools | None = None,
    exact: bool = False,
) -> Iterator[Ranking]:
    """`rank`, for every text alone."""
    if exact or len(index) <= MAX_PASSAGES_TO_SCORE_ALL:
        yield from (everybody_ranking(everybody, row[None], exclude) for row in index.score_everything(asked))
        return
    for at in range(len(asked)):
        yield rank_candidates(index, everybody, asked.take([at]), exclude=exclude, also=also)


def everybody_ranking(everybody: IndexAuthors, scores: Floats32, exclude: Sequence[str]) -> Ranking:
    """Everybody, from the scores of all passages."""
    passages = np.arange(scores.shape[1])
    near = everybody.near(passages, scores)
    near[everybody.numbers(exclude)] = np.nan
    each = everybody.scores(near)
    who = np.flatnonzero(~np.isnan(each))
    z = AuthorBest.of(each[who]).standing(each[who])
    one = np.ones(len(who))
    return order_candidates(Ranking(who, each[who], z, one, one > 0, Matches(passages, scores, near)))


def order_candidates(ranking: Ranking) -> Ranking:
    return ranking.take(np.argsort(-ranking.scores, kind="stable"))


def seeming_scores(index: Index, everybody: IndexAuthors, asked: Patches) -> Floats:
    """How near each document seems by its sketches."""
    rows, total = np.arange(len(index)), np.zeros(len(everybody.documents))
    for begin in range(0, len(asked), TEXT_PASSAGES_PER_BLOCK):
        some = asked.take(np.arange(begin, min(begin + TEXT_PASSAGES_PER_BLOCK, len(asked))))
        total += everybody.near(rows, index.sketch_scores(some, rows)) * len(some)
    return total / len(asked)


def staged_scores(index: Index, everybody: IndexAuthors, asked: Patches, seems: Floats, also: Bools) -> Ranking:
    """Score those who seem near and the panel, and say how they stand among everybody."""
    first = everybody.scores(seems)
    here = np.flatnonzero(~np.isnan(first))
    nearest = here[np.argsort(-first[here], kind="stable")[:NEAREST_CANDIDATES]]
    sure = np.union1d(nearest, here[also[here]])
    panel = draw_documents(np.setdiff1d(here, sure), len(everybody.keys))
    who = np.union1d(sure, panel)
    matches = match_passages(index, everybody, asked, choose_documents(everybody, who, seems))
    scores = everybody.scores(carry_over(matches.near, seems))
    z = estimate_score(first, scores, here, sure, panel).standing(scores[who])
    weights = np.where(np.isin(who, panel), (len(here) - len(sure)) / max(len(panel), 1), 1.0)
    return order_candidates(Ranking(who, scores[who], z, weights, np.isin(who, np.union1d(nearest, panel)), matches))


def draw_documents(rest: Ints, count: int) -> Ints:
    """The panel: some of the rest, the same people for every question as far as they are among it."""
    order = np.random.default_rng(7).permutation(count)
    return order[np.isin(order, rest)][:PANEL_CANDIDATES]


def choose_documents(everybody: IndexAuthors, who: Ints, seems: Floats) -> Ints:
    """The documents that are scored: those of each candidate that seem nearest."""
    chosen = []
    for at in who.tolist():
        documents = everybody.documents_of(at)
        documents = documents[~np.isnan(seems[documents])]
        chosen.append(documents[np.argsort(-seems[documents], kind="stable")[:DOCUMENTS_PER_CANDIDATE]])
    return np.unique(np.concatenate(chosen))


def match_passages(index: Index, everybody: IndexAuthors, asked: Patches, documents: Ints) -> Matches:
    """The passages of some documents that seem nearest to each passage of the text, scored exactly."""
    rows = np.sort(everybody.passages_of(documents))
    owner = everybody.owner[rows]
    wanted = []
    for seems in index.sketch_scores(asked, rows):
        order = np.lexsort((-seems, owner))
        place = np.arange(len(rows)) - np.searchsorted(owner[order], owner[order])
        wanted.append(np.sort(rows[order[place < PASSAGES_PER_DOCUMENT]]))
    passages = np.unique(np.concatenate(wanted))
    scores = np.full((len(asked), len(passages)), -np.inf, np.float32)
    for at, (some, found) in enumerate(zip(wanted, index.score_pairs(asked, wanted), strict=True)):
        scores[at, np.searchsorted(passages, some)] = found
    return Matches(passages, scores, everybody.near(passages, scores))


def match_candidates(
    index: Index, everybody: IndexAuthors, asked: Patches, who: Ints, documents: Ints, exact: bool
) -> Matches:
    """The passages of some candidates, in those documents that count, scored exactly: all, or in a large index those that
    seem nearest."""
    owned = np.concatenate([everybody.documents_of(int(at)) for at in who])
    kept = np.intersect1d(owned, documents)
    if not exact and len(index) > MAX_PASSAGES_TO_SCORE_ALL:
        return match_passages(index, everybody, asked, kept)
    rows = np.sort(everybody.passages_of(kept))
    scores = index.score_rows(asked, rows)
    return Matches(rows, scores, everybody.near(rows, scores))


def carry_over(near: Floats, seems: Floats) -> Floats:
    """Documents that were not scored, as their sketches let one expect from those that were."""
    known = ~np.isnan(near)
    slope = slope_of(seems[known], near[known])
    guess = near[known].mean() + slope * (seems - seems[known].mean())
    return np.where(known, near, guess)


def slope_of(x: Floats, y: Floats) -> float:
    """The slope of y over x by least squares; 0 where x does not vary."""
    away = x - x.mean()
    return float(away @ y / (away @ away)) if len(x) > 2 and away @ away > 1e-12 else 0.0


def estimate_score(first: Floats, scores: Floats, here: Ints, sure: Ints, panel: Ints) -> AuthorBest:
    """The scores of everybody: some are known, the panel stands for the rest, corrected for how it differs by sketches."""
    known = AuthorBest.of(scores[sure])
    rest = np.setdiff1d(here, sure)
    if not len(rest):
        return known
    slope = slope_of(first[panel], scores[panel])
    mean = scores[panel].mean() + slope * (first[rest].mean() - first[panel].mean())
    spread = scores[panel].var() + slope**2 * (first[rest].var() - first[panel].var())
    squares = len(rest) * (max(spread, 0.0) + mean**2)
    return AuthorBest(len(here), known.total + len(rest) * float(mean), known.squares + float(squares))
