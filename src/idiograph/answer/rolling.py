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
from idiograph.answer.authors import author_sets_of
from idiograph.answer.likelihood import Calibration
from idiograph.answer.openset import calibration_of_index
from idiograph.answer.pairs import MIN_WORDS_TO_COMPARE
from idiograph.answer.ranking import Ranking, rank_candidates, rank_each
from idiograph.errors import InputError, TooShort
from idiograph.index.index import Index
from idiograph.text.passages import count_words, cut_passages

WINDOW_WORDS = 240
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

    def to_json(self) -> dict[str, Any]:
        named = [", ".join(names) for names in self.candidates]
        parts = [{**asdict(p), "owner": named[p.owner] if p.owner >= 0 else None} for p in self.parts]
        return {"candidates": named, "windows": self.windows, "llr": self.llr.round(4).tolist(), "parts": parts}


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
) -> Rolling:
    """Put every window of about `window` words to the index, moved by `step` (a quarter of it); the k candidates that come
    first most often are kept."""
    step = window // 4 if step is None else step
    places = word_windows(text, window, step)
    index.refuse_empty()
    everybody, known = author_sets_of(index), calibration_of_index(index)
    wanted = everybody.with_names(candidates) if candidates else np.ones(len(everybody.keys), bool)
    asked = index.embed([text[start:end] for start, end in places])
    sizes = [size_of(count_words(text[start:end])) for start, end in places]
    how: dict[str, Any] = {"exclude": exclude, "exact": exact}
    found = list(rank_each(index, everybody, asked, also=wanted if candidates else None, **how))
    rows = [ratios_of(one.of(wanted), known.calibration, size) for one, size in zip(found, sizes, strict=True)]
    if not all(rows):
        raise InputError(f"no author of index '{index.where}' is among the candidates")
    leaders = strongest_candidates(rows, k)
    chosen = np.isin(np.arange(len(wanted)), leaders)
    for at, row in enumerate(rows):
        if not row.keys() >= set(leaders):  # somebody who leads elsewhere did not seem near here
            one = rank_candidates(index, everybody, asked.take([at]), also=chosen, **how)
            row |= ratios_of(one.of(chosen), known.calibration, sizes[at])
    llr = np.array([[row.get(who, known.calibration.low) for who in leaders] for row in rows])
    owners = likeliest_owners(llr, step / window)
    names = tuple(everybody.names[who] for who in leaders)
    return Rolling(tuple(places), names, llr, owners, parts_of(places, owners, llr))


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
