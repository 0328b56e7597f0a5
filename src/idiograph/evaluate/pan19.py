"""A ranker on PAN19 as it is: does the true candidate score higher than the others?

Each unknown text by a candidate is compared with every candidate's known texts put together, as far as the ranker reads.
`sound` takes every such text and the mean over all other candidates: the expected accuracy of a triplet whose negative is
drawn at random. `paper` takes the last fifth of the texts by file name and one other candidate each.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import InputError
from idiograph.evaluate.problems import NOBODY, Problem, macro_f1
from idiograph.evaluate.published import PAN19
from idiograph.evaluate.report import MeasuredValue, interval
from idiograph.runner import Progress
from idiograph.style.model import Ranker

if TYPE_CHECKING:
    from idiograph.recipe import PanRecipe

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Attributed:
    """One problem: how each unknown text scored against each candidate."""

    problem: Problem
    files: tuple[str, ...]
    scores: NDArray[np.float32]  # (texts, candidates)

    @property
    def true(self) -> NDArray[np.int64]:
        """The number of each text's candidate; −1 for nobody of them."""
        places = {name: at for at, name in enumerate(self.problem.candidates)}
        return np.array([places.get(self.problem.truth[file], -1) for file in self.files], dtype=np.int64)

    def answers(self) -> dict[str, str]:
        """The best candidate for each text; never `<UNK>`."""
        best = self.scores.argmax(axis=1)
        return {file: self.problem.candidates[at] for file, at in zip(self.files, best, strict=True)}


@dataclass(frozen=True)
class ZeroShot:
    """One ranker on the problems of one language. `accuracy` holds one number for each unknown text by a candidate."""

    ranker: str
    lang: str
    rows: tuple[MeasuredValue, ...]
    texts: int
    authors: int
    problems: int
    accuracy: Floats
    attributed: tuple[Attributed, ...]

    def __getitem__(self, measure: str) -> MeasuredValue:
        return next(row for row in self.rows if row.measure == measure)

    def to_json(self) -> dict[str, Any]:
        rows = {row.measure: {"value": row.value, "low": row.low, "high": row.high} for row in self.rows}
        about = {"ranker": self.ranker, "lang": self.lang, "texts": self.texts, "authors": self.authors}
        return {**about, "problems": self.problems, "measures": rows}


def evaluate_attribution(
    ranker: Ranker, problems: Sequence[Problem], recipe: "PanRecipe | None" = None, progress: Progress | None = None
) -> ZeroShot:
    """Triplet accuracy, attribution accuracy and macro-F1; intervals come from resampling authors."""
    if recipe is None:
        from idiograph.recipe import PanRecipe

        recipe = PanRecipe()
    attributed = []
    for number, problem in enumerate(problems):
        if progress:
            progress(number, len(problems), f"{ranker.name}, {problem.name}")
        attributed.append(attribute_problem(ranker, problem, recipe))
    return summarize_zero_shot(ranker.name, attributed, recipe)


def attribute_problem(ranker: Ranker, problem: Problem, recipe: "PanRecipe") -> Attributed:
    files = choose_texts(problem, recipe)
    asked_about = [first_words(problem.unknown[file], recipe.words) for file in files]
    if recipe.known == "joined":
        profiles = [first_words("\n\n".join(problem.known[name]), recipe.words) for name in problem.candidates]
        return Attributed(problem, tuple(files), ranker.compare(asked_about, profiles))
    texts = [first_words(text, recipe.words) for name in problem.candidates for text in problem.known[name]]
    sizes = np.array([len(problem.known[name]) for name in problem.candidates])
    sums = np.add.reduceat(ranker.compare(asked_about, texts), np.cumsum(sizes) - sizes, axis=1)
    return Attributed(problem, tuple(files), (sums / sizes).astype(np.float32))


def first_words(text: str, count: int) -> str:
    """The beginning of a text; all of it for 0."""
    return " ".join(text.split()[:count]) if count else text


def choose_texts(problem: Problem, recipe: "PanRecipe") -> list[str]:
    """The unknown texts that are asked about, by file name, each text once; those by nobody only where all are taken."""
    if not problem.truth:
        raise InputError(f"problem '{problem.name}' has no truth to compare with")
    files = [file for file in sorted(problem.unknown) if problem.truth.get(file)]
    if recipe.unknowns == "last":
        own = [file for file in files if problem.truth[file] != NOBODY]
        return own[int(0.8 * len(own)) :]
    asked = {text for texts in problem.known.values() for text in texts}
    return [f for f in files if problem.unknown[f] not in asked and not asked.add(problem.unknown[f])]


def summarize_zero_shot(name: str, attributed: Sequence[Attributed], recipe: "PanRecipe") -> ZeroShot:
    won = np.concatenate([triplets_won(each, recipe) for each in attributed])
    first = np.concatenate([right_answers(each) for each in attributed])
    writers = [
        f"{each.problem.name}/{each.problem.truth[f]}" for each in attributed for f, t in asked_texts(each) if t >= 0
    ]
    if not writers:
        raise InputError("no unknown text is by a candidate")
    rows = [
        bounded_measure(measure, values, writers, recipe)
        for measure, values in (("triplet accuracy", won), ("attribution accuracy", first))
    ]
    scored = [macro_f1({f: each.problem.truth[f] for f in each.files}, each.answers()) for each in attributed]
    rows.append(MeasuredValue("macro-F1", float(np.mean(scored)), float("nan"), float("nan")))
    langs = ", ".join(sorted({each.problem.lang for each in attributed}))
    return ZeroShot(name, langs, tuple(rows), len(won), len(set(writers)), len(attributed), won, tuple(attributed))


def asked_texts(each: Attributed) -> list[tuple[str, int]]:
    return list(zip(each.files, each.true.tolist(), strict=True))


def bounded_measure(measure: str, values: Floats, writers: Sequence[str], recipe: "PanRecipe") -> MeasuredValue:
    return MeasuredValue(measure, float(values.mean()), *interval(values, writers, recipe.resamples, recipe.seed))


def triplets_won(each: Attributed, recipe: "PanRecipe") -> Floats:
    """For each text by a candidate, the share of the other candidates that score lower; a tie is half."""
    draw = random.Random(f"{recipe.seed}/{each.problem.name}")
    shares = []
    for row, (_, true) in zip(each.scores, asked_texts(each), strict=True):
        if true < 0:
            continue
        others = np.delete(row, true)
        if recipe.negatives == "one":
            others = others[[draw.randrange(len(others))]]
        shares.append(float(np.mean((row[true] > others) + 0.5 * (row[true] == others))))
    return np.array(shares, np.float64)


def right_answers(each: Attributed) -> Floats:
    true = each.true
    return (each.scores.argmax(axis=1) == true)[true >= 0].astype(np.float64)


def attribution_as_markdown(results: Sequence[ZeroShot], published: Mapping[str, float] = PAN19) -> str:
    """Rankers as rows; the published value of the same grain beside ours."""
    lines = [
        "| ranker | texts | triplet accuracy | paper | attribution accuracy | macro-F1 |",
        "|---|---|---|---|---|---|",
    ]
    for one in results:
        grain = one.ranker.rpartition(" @ ")[2]
        paper = f"{published[grain]:.3f}" if grain in published and one.lang == "en" else "–"
        cells = [f"{r.value:.3f} [{r.low:.3f}, {r.high:.3f}]" for r in one.rows[:2]]
        lines.append(
            f"| {one.ranker} ({one.lang}) | {one.texts} | {cells[0]} | {paper} | {cells[1]} | {one['macro-F1'].value:.3f} |"
        )
    return "\n".join(lines)
