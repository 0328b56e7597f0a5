"""What in two texts made their score: which patch matched which, and how much each match gave. The parts sum to the score."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import SpecError
from idiograph.style.model import Style
from idiograph.style.patches import CONTIGUOUS, Patches


@dataclass(frozen=True, slots=True)
class Match:
    """One patch of a text and its best counterpart in the other. `part` is what it adds to the score."""

    start: int
    end: int
    other_start: int
    other_end: int
    similarity: float
    part: float
    from_b: bool = False  # the patch is of the second text: only where the score looks both ways


@dataclass(frozen=True)
class Explanation:
    """Two texts, their score, and the matches that add up to it."""

    a: str
    b: str
    score: float
    matches: tuple[Match, ...]
    patch: str
    scorer: str
    cut: bool = False  # a text went on where the model's window ended

    def best(self, count: int = 10) -> list[tuple[str, str, Match]]:
        """The matches that stand out most: most similar first, each place in the second text once."""
        seen: set[tuple[int, int]] = set()
        best = []
        for match in sorted(self.matches, key=lambda m: -m.similarity):
            place = (match.other_start, match.other_end)
            if not match.from_b and place not in seen:
                seen.add(place)
                best.append((self.a[match.start : match.end], self.b[match.other_start : match.other_end], match))
        return best[:count]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def explain(a: str, b: str, style: Style) -> Explanation:
    """Take the score of two texts apart."""
    if style.patch.partition(":")[0] not in CONTIGUOUS:
        raise SpecError(f"patches of '{style.patch}' are scattered over the text; explain with {', '.join(CONTIGUOUS)}")
    both = style.encode([a, b])
    one, two = both.take([0]), both.take([1])
    similar = one.vectors @ two.vectors.T
    matches = list(one_way_matches(similar, one, two, patch_weight(style.score, len(similar)), from_b=False))
    if style.score == "symmetric":
        matches += one_way_matches(similar.T, two, one, patch_weight(style.score, similar.shape[1]), from_b=True)
    cut = any(tokens.cut for tokens in style.tokenize([a, b]))
    return Explanation(a, b, fsum(m.part for m in matches), tuple(matches), style.patch, style.score, cut)


def patch_weight(score: str, patches: int) -> float:
    """What one patch's similarity counts for in the score."""
    return {"maxsim": 1.0, "meansim": 1 / patches, "symmetric": 0.5 / patches}[score]


def one_way_matches(
    similar: NDArray[np.float32], one: Patches, two: Patches, share: float, from_b: bool
) -> list[Match]:
    best = similar.argmax(axis=1)
    matches = []
    for i, j in enumerate(best):
        (start, end), (other_start, other_end) = one.chars[i].tolist(), two.chars[j].tolist()
        value = float(similar[i, j])
        matches.append(Match(start, end, other_start, other_end, value, value * share, from_b))
    return matches


def without_patches(text: str, places: Sequence[tuple[int, int]]) -> str:
    """A text without some of its patches; what is left is joined as it stood.

    >>> without_patches("one two three", [(4, 8)])
    'one three'
    """
    runs, at = [], 0
    for start, end in sorted(places):
        runs.append(text[at:start])
        at = max(at, end)
    return "".join([*runs, text[at:]])
