"""PAN19 problems as the shared task hands them out, for tests that read them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from idiograph.evaluate.problems import ABOUT, COLLECTION, TRUTH, Problem


def write_problems(problems: Iterable[Problem], folder: Path) -> None:
    """The folders of some problems, and the listing of them."""
    listing = [{"problem-name": each.name, "language": each.lang, "encoding": "UTF-8"} for each in problems]
    for problem in problems:
        write_problem(problem, folder / problem.name)
    write_json(folder / COLLECTION, listing)


def write_problem(problem: Problem, folder: Path) -> None:
    for name, texts in problem.known.items():
        write_texts(folder / name, {f"known{number:05d}.txt": text for number, text in enumerate(texts, 1)})
    write_texts(folder / "unknown", problem.unknown)
    candidates = [{"author-name": name} for name in problem.candidates]
    write_json(folder / ABOUT, {"unknown-folder": "unknown", "candidate-authors": candidates})
    truth = [{"unknown-text": file, "true-author": writer} for file, writer in problem.truth.items()]
    (folder / TRUTH).unlink(missing_ok=True)
    if truth:
        write_json(folder / TRUTH, {"ground_truth": truth})


def write_texts(folder: Path, texts: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (folder / file).write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
