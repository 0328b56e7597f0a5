"""What in two texts made their score or their ratio. By the model: which patch matched which, and how much each match gave.
Among a reference: what each method adds to the ratio, the features that carry it, and where they stand. Parts sum to the whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from idiograph.answer.pairs import text_passages
from idiograph.answer.reference import MethodShare, Reference
from idiograph.answer.verify import Verdict, verify
from idiograph.corpus.formats import given_text
from idiograph.errors import SpecError
from idiograph.html import notebook_rows
from idiograph.loading import shipped_style
from idiograph.rankers.counts import WORD_SIGN_OR_MARK
from idiograph.rankers.features import FeatureShare
from idiograph.style.model import Style
from idiograph.style.patches import CONTIGUOUS, Patches
from idiograph.text.language import identify
from idiograph.text.passages import cut_passages
from idiograph.text.words import content_words, word_overlap

WORDS_TO_SHOW = 60  # of a passage in which features are marked
PASSAGES_TO_SHOW = 3  # of each text, or pairs of passages
TIMES_USUAL = 2.0  # a feature that comes so much more, or less, often is worth marking
ROWS_IN_NOTEBOOK = 20
MATCH_SCHEMA = pa.schema(
    {
        "first": pa.string(),
        "second": pa.string(),
        "similarity": pa.float64(),
        "part": pa.float64(),
        **dict.fromkeys(("start", "end", "other_start", "other_end"), pa.int64()),
        "from_b": pa.bool_(),
    }
)
REASON_SCHEMA = pa.schema(
    {
        **dict.fromkeys(("method", "feature", "kind"), pa.string()),
        **dict.fromkeys(("share", "a", "b", "usual"), pa.float64()),
    }
)


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

    @property
    def sentence(self) -> str:
        """The score in a sentence."""
        return f"score {self.score:.4f}, {self.scorer} over {self.patch} patches"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "says": self.sentence}

    def to_frame(self) -> pa.Table:
        """A row a match; `part` is what it adds to the score. `first` is the patch, `second` its counterpart."""
        rows = []
        for m in self.matches:
            one, two = (self.b, self.a) if m.from_b else (self.a, self.b)
            texts = {"first": one[m.start : m.end], "second": two[m.other_start : m.other_end]}
            rows.append({**asdict(m), **texts})
        return pa.Table.from_pylist(rows, MATCH_SCHEMA)

    def __repr__(self) -> str:
        return f"Explanation(score={self.score:.4f}, patch={self.patch!r}, matches={len(self.matches)})"

    def _repr_html_(self) -> str:
        rows = [
            {"in the first": left, "in the second": right, "similarity": match.similarity}
            for left, right, match in self.best()
        ]
        return notebook_rows(self.sentence, rows)


@dataclass(frozen=True, slots=True)
class FeatureMark:
    """A place in a text where a feature stands, and what the feature adds to the log10 ratio in all."""

    start: int
    end: int
    feature: str
    share: float


@dataclass(frozen=True, slots=True)
class MarkedPassage:
    """A passage in which features stand that the ratio rests on; offsets are those of the whole text."""

    start: int
    end: int
    marks: tuple[FeatureMark, ...]


@dataclass(frozen=True, slots=True)
class PassagePair:
    """A passage of either text that the model finds alike, and how many content words they share."""

    a: str
    b: str
    similarity: float
    overlap: float


@dataclass(frozen=True)
class Reasons:
    """Why two texts get the ratio that they get.

    `verdict.shares` has what each method adds and the features that carry it; `in_a` and `in_b` are passages where such
    features stand; `pairs` are the passages that the model finds most alike, where the model took part.
    """

    a: str
    b: str
    verdict: Verdict
    in_a: tuple[MarkedPassage, ...] = ()
    in_b: tuple[MarkedPassage, ...] = ()
    pairs: tuple[PassagePair, ...] = ()

    @property
    def sentence(self) -> str:
        """The answer, and what most speaks for and against one hand."""
        said = [self.verdict.sentence]
        for how, sign in (("alike in", 1), ("unlike in", -1)):
            names = [f"“{row['feature']}”" for row in self._features() if row["share"] * sign > 0][:3]
            said += [f"{how} {', '.join(names)}"] if names else []
        return "; ".join(said)

    def _features(self) -> list[dict[str, Any]]:
        """Every feature with its method, the strongest first."""
        rows = [{"method": each.method, **asdict(feature)} for each in self.verdict.shares for feature in each.features]
        return sorted(rows, key=lambda row: -abs(row["share"]))

    def to_json(self) -> dict[str, Any]:
        about = {"in_a": self.in_a, "in_b": self.in_b, "pairs": self.pairs}
        marked = {name: [asdict(one) for one in each] for name, each in about.items()}
        return {**self.verdict.to_json(), **marked, "says": self.sentence}

    def to_frame(self) -> pa.Table:
        """A row a feature, and for each method a row for all other features and one for what is usual; `share` sums to the
        log10 ratio."""
        rest = [
            {"method": each.method, "kind": kind, "share": share}
            for each in self.verdict.shares
            for kind, share in (
                (("all others", each.others), ("usual", each.usual)) if each.features else (("", each.share),)
            )
        ]
        return pa.Table.from_pylist([*self._features(), *rest], REASON_SCHEMA)

    def __repr__(self) -> str:
        return f"Reasons({self.sentence!r})"

    def _repr_html_(self) -> str:
        return notebook_rows(self.sentence, self._features()[:ROWS_IN_NOTEBOOK], self.verdict.warnings)


@overload
def explain(a: str | Path, b: str | Path, style: Style | None = None, *, reference: None = None) -> Explanation: ...


@overload
def explain(a: str | Path, b: str | Path, style: None = None, *, reference: Reference) -> Reasons: ...


def explain(
    a: str | Path, b: str | Path, style: Style | None = None, *, reference: Reference | None = None
) -> Explanation | Reasons:
    """Take the score of two texts apart, or with a `reference` (documents, a corpus, an index) their ratio.

    A text may also be a file: a Path, or a string such as "letter.txt" that names one. The model is the one that comes with
    the package if no `style` is given.
    """
    one, two = given_text(a), given_text(b)
    if reference is not None:
        return find_reasons(one, two, verify([one], [two], reference=reference))
    return explain_score(one, two, style or shipped_style())


def find_reasons(a: str, b: str, verdict: Verdict, style: Style | None = None) -> Reasons:
    """Where the features stand that a verdict rests on; with the `style` that read the texts, what it finds alike."""
    found = Reasons(a, b, verdict, mark_passages(a, verdict.shares), mark_passages(b, verdict.shares))
    return replace(found, pairs=alike_passages(a, b, style)) if style else found


def mark_passages(text: str, shares: Sequence[MethodShare]) -> tuple[MarkedPassage, ...]:
    """The passages with the most evidence that stands out, in their order; each feature counts once in a passage."""
    worth: dict[str, float] = {}
    for feature in (feature for each in shares for feature in each.features if stands_out(feature)):
        worth[feature.feature] = worth.get(feature.feature, 0.0) + feature.share
    marks = list(find_features(text, worth))
    found = []
    for start, end in cut_passages(text, identify(text)[0], WORDS_TO_SHOW):
        inside = tuple(mark for mark in marks if start <= mark.start and mark.end <= end)
        found.append((sum({mark.feature: abs(mark.share) for mark in inside}.values()), start, end, inside))
    best = sorted((each for each in found if each[3]), key=lambda each: (-each[0], each[1]))[:PASSAGES_TO_SHOW]
    return tuple(MarkedPassage(start, end, inside) for _, start, end, inside in sorted(best, key=lambda each: each[1]))


def stands_out(feature: FeatureShare) -> bool:
    """Is it a word, or words in a row, that comes much more or much less often than usual in either text?"""
    far = max(feature.a, feature.b) >= TIMES_USUAL * feature.usual
    return feature.kind not in ("letters", "author") and (
        far or min(feature.a, feature.b) * TIMES_USUAL <= feature.usual
    )


def find_features(text: str, worth: dict[str, float]) -> Iterator[FeatureMark]:
    """Where words, and words in a row, stand in a text; of two that begin at one place the longer."""
    tokens = [(found.group().lower(), *found.span()) for found in WORD_SIGN_OR_MARK.finditer(text)]
    for (word, start, end), (follower, _, far) in zip(tokens, [*tokens[1:], ("", 0, 0)], strict=True):
        if (both := f"{word} {follower}") in worth:
            yield FeatureMark(start, far, both, worth[both])
        elif word in worth:
            yield FeatureMark(start, end, word, worth[word])


def alike_passages(a: str, b: str, style: Style) -> tuple[PassagePair, ...]:
    """The pairs of passages that a model finds most alike; no passage comes twice."""
    one, two = text_passages(a), text_passages(b)
    similar = style.compare(one, two)
    pairs: list[PassagePair] = []
    for _ in range(min(PASSAGES_TO_SHOW, *similar.shape)):
        i, j = np.unravel_index(similar.argmax(), similar.shape)
        shared = word_overlap(content_words(one[i]), content_words(two[j]))
        pairs.append(PassagePair(one[i], two[j], float(similar[i, j]), shared))
        similar[i], similar[:, j] = -np.inf, -np.inf
    return tuple(pairs)


def explain_score(a: str, b: str, style: Style) -> Explanation:
    """Take the score of two texts by a model apart."""
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
