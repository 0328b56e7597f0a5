"""Who wrote which part of a long text? Ratios in a window that moves along it, and the parts that follow from them.

The parts come from the likeliest path through the windows when a change of hand is rare (Viterbi). Windows overlap, so
each counts only for the share of its text that is new.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.attribute import size_of
from idiograph.answer.authors import IndexAuthors, author_sets_of
from idiograph.answer.crossvalidate import BEST
from idiograph.answer.evidence import author_standings
from idiograph.answer.large.learning import sampled_evidence_of_index
from idiograph.answer.large.sampled import SampledQuestion
from idiograph.answer.likelihood import Calibration
from idiograph.answer.methods import MODEL, evidence_of_index, is_large
from idiograph.answer.openset import calibration_of_index, why_strange
from idiograph.answer.pairs import MIN_WORDS_TO_COMPARE, text_passages
from idiograph.answer.ranking import Bools, Ranking, rank_candidates, rank_each
from idiograph.errors import InputError, TooShort
from idiograph.index.index import Index
from idiograph.rankers.model import mean_patches
from idiograph.text.passages import count_words, cut_passages

WINDOW_WORDS = 240
NEAREST_TO_A_WINDOW = (
    3,
    2,
)  # who are compared in a large index besides those near to the whole text: by model, by words
MIN_WORDS_TO_STEP = 10
CHANGE_PENALTY = 2.0  # log10 of how much rarer a change of hand between two windows is than none
NOBODY = -1
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AuthorStretch:
    """A stretch of the text and the candidate that it is given to: −1 for nobody here."""

    start: int
    end: int
    owner: int
    llr: float  # mean of the windows in it


@dataclass(frozen=True)
class Rolling:
    """Ratios of some candidates along a text: `llr` is (windows, candidates)."""

    windows: tuple[tuple[int, int], ...]  # characters
    candidates: tuple[tuple[str, ...], ...]  # names
    llr: Floats
    owners: tuple[int, ...]
    parts: tuple[AuthorStretch, ...]
    method: str = MODEL
    refusals: tuple[str, ...] = ()  # why nobody is given anything, if so

    def to_json(self) -> dict[str, Any]:
        named = [", ".join(names) for names in self.candidates]
        parts = [{**asdict(p), "owner": named[p.owner] if p.owner >= 0 else None} for p in self.parts]
        return {
            "method": self.method,
            "refusals": list(self.refusals),
            "candidates": named,
            "windows": self.windows,
            "llr": self.llr.round(4).tolist(),
            "parts": parts,
        }


def rolling(
    text: str,
    index: Index,
    k: int = 5,
    *,
    window: int = WINDOW_WORDS,
    step: int | None = None,
    exclude: Sequence[str] = (),
    candidates: Sequence[str] = (),
    exact: bool = False,
    by: str = "set",
    method: str = BEST,
) -> Rolling:
    """Put every window of about `window` words to the index, moved by `step` (a quarter of it); the k candidates with the
    most evidence anywhere are kept. `method` is `best`, the weighed evidence of all methods, or one of them by its name."""
    step = window // 4 if step is None else step
    places = word_windows(text, window, step)
    index.refuse_empty()
    everybody = author_sets_of(index, by)
    wanted = everybody.with_names(candidates) if candidates else np.ones(len(everybody.keys), bool)
    if not wanted.any():
        raise InputError(f"no author of index '{index.where}' is among the candidates")
    asked = RolledText(text, tuple(text[start:end] for start, end in places), by, tuple(exclude), exact)
    score = windows_by_model if method == MODEL else windows_sampled if is_large(index) else windows_by_evidence
    leaders, llr = score(index, everybody, asked, wanted, (method, k))
    why = why_strange(index, text)
    llr = llr * 0 if why else llr
    owners = (NOBODY,) * len(places) if why else likeliest_owners(llr, step / window)
    names = tuple(everybody.names[who] for who in leaders)
    return Rolling(tuple(places), names, llr, owners, parts_of(places, owners, llr), method, why)


@dataclass(frozen=True, slots=True)
class RolledText:
    """A long text and its windows, as they are put to an index."""

    text: str
    windows: tuple[str, ...]
    by: str
    exclude: tuple[str, ...]
    exact: bool

    @property
    def sizes(self) -> Floats:
        return np.log10([max(count_words(window), 1) for window in self.windows])


Leaders = tuple[Sequence[int], Floats]  # the candidates that are kept, and their ratios: (windows, candidates)


def windows_by_model(
    index: Index, everybody: IndexAuthors, asked: RolledText, wanted: Bools, how: tuple[str, int]
) -> Leaders:
    """By the model alone; in a large index whoever leads in one window is scored in all."""
    known = calibration_of_index(index, asked.by)
    patches, sizes = index.embed(asked.windows), [size_of(count_words(window)) for window in asked.windows]
    options: dict[str, Any] = {"exclude": asked.exclude, "exact": asked.exact}
    found = list(rank_each(index, everybody, patches, also=None if wanted.all() else wanted, **options))
    rows = [ratios_of(one.of(wanted), known.calibration, size) for one, size in zip(found, sizes, strict=True)]
    if not all(rows):
        raise InputError(f"no text by the candidates is left in index '{index.where}'")
    leaders = strongest_candidates(rows, how[1])
    chosen = np.isin(np.arange(len(wanted)), leaders)
    for at, row in enumerate(rows):
        if not row.keys() >= set(leaders):  # somebody who leads elsewhere did not seem near here
            one = rank_candidates(index, everybody, patches.take([at]), also=chosen, **options)
            row |= ratios_of(one.of(chosen), known.calibration, sizes[at])
    return leaders, np.array([[row.get(who, known.calibration.low) for who in leaders] for row in rows])


def windows_by_evidence(
    index: Index, everybody: IndexAuthors, asked: RolledText, wanted: Bools, how: tuple[str, int]
) -> Leaders:
    """By the weighed evidence: every window is compared with every text of the index."""
    learned = evidence_of_index(index, asked.by, how[0])
    weights = learned.known.weights
    standings = learned.evidence.standings(asked.windows)
    standings[:, everybody.numbers(asked.exclude)] = np.nan
    each = author_standings(standings, learned.authors.members, weights.best_texts)
    return keep_leaders(index, np.arange(len(wanted)), weights.ratios(each, asked.sizes), wanted, how[1])


def windows_sampled(
    index: Index, everybody: IndexAuthors, asked: RolledText, wanted: Bools, how: tuple[str, int]
) -> Leaders:
    """In a large index, with those who seem near to the whole text or to one of its windows."""
    learned = sampled_evidence_of_index(index, asked.by, how[0])
    evidence, weights = learned.evidence, learned.known.weights
    exclude = np.array(everybody.numbers(asked.exclude), np.int64)
    whole, *windows = sampled_questions(index, [asked.text, *asked.windows])
    also = evidence.choose(evidence.seeming(whole, exclude)) if wanted.all() else wanted
    found = evidence.ask(windows, exclude, also, NEAREST_TO_A_WINDOW)
    ratios = weights.ratios(found.authors(weights.best_texts), asked.sizes)
    return keep_leaders(index, found.who, ratios, wanted, how[1])


def sampled_questions(index: Index, texts: Sequence[str]) -> list[SampledQuestion]:
    """Texts with the vectors of their passages."""
    cut = [text_passages(text, index.recipe.words) for text in texts]
    vectors = mean_patches(index.embed([passage for passages in cut for passage in passages]))
    ends = np.cumsum([len(passages) for passages in cut])
    return [SampledQuestion(text, some) for text, some in zip(texts, np.split(vectors, ends[:-1]), strict=True)]


def keep_leaders(index: Index, who: NDArray[np.int64], ratios: Floats, wanted: Bools, k: int) -> Leaders:
    """Those k of the candidates with the most evidence anywhere: by the sum of their ratios above 1."""
    kept = np.flatnonzero(wanted[who] & ~np.isnan(ratios).any(axis=0))
    if not len(kept):
        raise InputError(f"no text by the candidates is left in index '{index.where}'")
    first = kept[np.argsort(-np.maximum(ratios[:, kept], 0).sum(axis=0), kind="stable")[:k]]
    return who[first].tolist(), ratios[:, first]


def ratios_of(ranking: Ranking, calibration: Calibration, size: float) -> dict[int, float]:
    """The ratio of each candidate that was scored, by number."""
    ratios = calibration.ratios(ranking.z, np.full(len(ranking), size))
    return dict(zip(ranking.who.tolist(), ratios.tolist(), strict=True))


def word_windows(text: str, window: int, step: int) -> list[tuple[int, int]]:
    """Windows of about `window` words, every `step`, of whole sentences where they are short; the last ends with the text."""
    if not MIN_WORDS_TO_STEP <= step <= window:
        raise InputError(
            f"a window of {window} words cannot move by {step}; the step is from {MIN_WORDS_TO_STEP} words to the window"
        )
    words = count_words(text)
    if words < 2 * max(window, MIN_WORDS_TO_COMPARE):
        raise TooShort(
            f"a text of {words} words is too short to say who wrote which part; "
            f"two windows of {window} words are the least (--window)"
        )
    pieces, count = cut_passages(text, words=step), round(window / step)
    starts = range(max(len(pieces) - count, 0) + 1)
    return [(pieces[at][0], pieces[min(at + count, len(pieces)) - 1][1]) for at in starts]


def strongest_candidates(rows: Sequence[dict[int, float]], k: int) -> list[int]:
    """The candidates with the most evidence anywhere: by the sum of their ratios above 1."""
    total: dict[int, float] = {}
    for row in rows:
        for who, llr in row.items():
            total[who] = total.get(who, 0.0) + max(llr, 0.0)
    return sorted(total, key=lambda who: -total[who])[:k]


def likeliest_owners(llr: Floats, share: float, change: float = CHANGE_PENALTY) -> tuple[int, ...]:
    """The likeliest owner of each window; somebody who is not here has a ratio of 1 everywhere."""
    gain = np.concatenate([llr, np.zeros((len(llr), 1))], axis=1) * share
    best, back = gain[0], []
    for row in gain[1:]:
        jump = int(best.argmax())
        stay = best >= best[jump] - change
        back.append(np.where(stay, np.arange(len(best)), jump))
        best = np.where(stay, best, best[jump] - change) + row
    owners = [int(best.argmax())]
    for came in reversed(back):
        owners.append(int(came[owners[-1]]))
    nobody = llr.shape[1]
    return tuple(NOBODY if owner == nobody else owner for owner in reversed(owners))


def parts_of(places: Sequence[tuple[int, int]], owners: Sequence[int], llr: Floats) -> tuple[AuthorStretch, ...]:
    """Neighbouring windows of one owner as a part; where owners change, the border is between the windows' middles."""
    middles = [(start + end) / 2 for start, end in places]
    edges = [at for at in range(1, len(owners)) if owners[at] != owners[at - 1]]
    borders = [places[0][0], *(int((middles[at - 1] + middles[at]) / 2) for at in edges), places[-1][1]]
    stretches = []
    for number, (first, last) in enumerate(zip([0, *edges], [*edges, len(owners)], strict=True)):
        owner = owners[first]
        mean = float(llr[first:last, owner].mean()) if owner >= 0 else 0.0
        stretches.append(AuthorStretch(borders[number], borders[number + 1], owner, mean))
    return tuple(stretches)
