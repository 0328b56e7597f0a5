"""Fan fiction (PAN19): how often does the true candidate stand above another one, by every method and by all together?

    python benchmarks/fanfiction.py ../shared/corpora/pan19.jsonl.zst --lang es --texts 40

Each problem is a library of its own: nine candidates with seven known texts each, and what the methods are worth is learned on
these 63 texts alone. Asked are all unknown texts by a candidate, each text once, copies of known texts left out. Printed are the
expected triplet accuracy (the share of the other candidates that score lower; a tie is half) with its interval over authors, and
how often the true candidate is first. Nothing may be chosen on these figures.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from idiograph.answer.crossvalidate import LibraryAuthors, ask_at_lengths
from idiograph.answer.evidence import (
    Floats,
    KnownQuestions,
    LibraryEvidence,
    author_standings,
    join_asked,
    learn_evidence,
)
from idiograph.answer.methods import choose_methods
from idiograph.evaluate.pan19 import Attributed, choose_texts, summarize_zero_shot
from idiograph.evaluate.problems import NOBODY, Problem, read_problems
from idiograph.rankers.library import Library
from idiograph.recipe import PanRecipe
from idiograph.seeded import key

RECIPE = PanRecipe()


@dataclass(frozen=True)
class AskedProblem:
    """A problem, what its known texts teach about the methods, and how each unknown text stands with each known one."""

    problem: Problem
    files: tuple[str, ...]
    names: tuple[str, ...]  # of the methods
    lang: str
    authors: LibraryAuthors
    known: KnownQuestions
    standings: Floats  # (unknown, known texts, methods)

    def attributed_by(self, method: int | None = None) -> Attributed:
        """By one method, or by all of them; `known` says how many texts of a candidate count, and what each method does."""
        each = slice(None) if method is None else slice(method, method + 1)
        names = self.names[each]
        asked = self.known if method is None else self.known.alone(method)
        weights = learn_evidence(asked, names)
        by_author = author_standings(self.standings[:, :, each], self.authors.members, weights.best_texts)
        return Attributed(self.problem, self.files, weights.scores(by_author).astype(np.float32))


def ask_problem(problem: Problem, limit: int) -> AskedProblem:
    texts = tuple(text for name in problem.candidates for text in problem.known[name])
    writers = tuple(name for name in problem.candidates for _ in problem.known[name])
    library = Library(texts, writers, problem.lang)
    evidence, authors = LibraryEvidence(library, choose_methods("best")), LibraryAuthors.of(library)
    known = join_asked(ask_at_lengths(evidence, authors))
    files = [file for file in choose_texts(problem, RECIPE) if problem.truth[file] != NOBODY]
    files = tuple(sorted(sorted(files, key=lambda file: key(RECIPE.seed, problem.unknown[file]))[:limit]))
    standings = evidence.standings([problem.unknown[file] for file in files])
    return AskedProblem(problem, files, evidence.names, problem.lang, authors, known, standings)


def show_language(problems: list[AskedProblem]) -> None:
    names = problems[0].names
    for name, method in [("best", None), *((name, at) for at, name in enumerate(names))]:
        found = summarize_zero_shot(name, [each.attributed_by(method) for each in problems], RECIPE)
        won, first = found.rows[0], found.rows[1]
        interval = f"[{won.low:.3f}, {won.high:.3f}]"
        print(f"  {found.lang} {name:10} {found.texts:5} texts  {won.value:.3f} {interval}  first {first.value:.3f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpus", type=Path)
    options.add_argument("--lang", default="any")
    options.add_argument("--texts", type=int, default=1_000_000)
    given = options.parse_args()
    asked: dict[str, list[AskedProblem]] = {}
    begun = time.process_time()
    for problem in read_problems(given.corpus, given.lang):
        asked.setdefault(problem.lang, []).append(ask_problem(problem, given.texts))
    for problems in asked.values():
        show_language(problems)
    print(f"{time.process_time() - begun:.0f} CPU-s", flush=True)


if __name__ == "__main__":
    main()
