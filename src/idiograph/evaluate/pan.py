"""PAN20–23 authorship verification: pairs, truth and answers as JSON lines, and the official scores.

pairs.jsonl    {"id": …, "pair": [text, text], "fandoms" or "discourse_types": …}
truth.jsonl    {"id": …, "same": true or false, "authors": [author, author]}
answers.jsonl  {"id": …, "value": from 0 to 1}; exactly 0.5, or no line at all, means no answer
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.errors import InputError
from idiograph.evaluate.verification import UNANSWERED, brier, c_at_1, f05u, f1
from idiograph.measures.likelihood import auc

DIGITS = 3  # the shared task prints three


@dataclass(frozen=True, slots=True)
class PanPair:
    """Two texts. `more` holds what else the line said, such as the fandoms of the two."""

    id: str
    texts: tuple[str, str]
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Truth:
    """Whether one author wrote both texts of a pair, and who, where that is told."""

    id: str
    same: bool
    authors: tuple[str, ...] = ()


def json_objects(path: Path) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """The objects of a JSON lines file, each with its place."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'") from None
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise InputError(f"'{path}': not a UTF-8 text file: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{path}:{number}", parse_object(line, f"{path}:{number}")


def parse_object(line: str, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"'{where}': not JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise InputError(f"'{where}': a line needs an \"id\"")
    return row


def read_pairs(path: Path) -> list[PanPair]:
    pairs = []
    for where, row in json_objects(path):
        texts = row.get("pair")
        if not isinstance(texts, list) or len(texts) != 2 or not all(isinstance(t, str) for t in texts):
            raise InputError(f"'{where}': \"pair\" must hold two texts")
        pairs.append(
            PanPair(row["id"], (texts[0], texts[1]), {k: v for k, v in row.items() if k not in ("id", "pair")})
        )
    return pairs


def read_pan_truth(path: Path) -> list[Truth]:
    truth = []
    for where, row in json_objects(path):
        if not isinstance(row.get("same"), bool):
            raise InputError(f"'{where}': \"same\" must be true or false")
        truth.append(Truth(row["id"], row["same"], tuple(map(str, row.get("authors") or ()))))
    if not truth:
        raise InputError(f"'{path}' has no line")
    return truth


def read_pan_answers(path: Path) -> dict[str, float]:
    """Answers by id. A value outside 0 to 1 is refused, as the shared task does."""
    answers: dict[str, float] = {}
    for where, row in json_objects(path):
        value = row.get("value")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InputError(f"'{where}': \"value\" must be a number from 0 to 1, but is {value!r}")
        if row["id"] in answers:
            raise InputError(f"'{where}': a second answer for '{row['id']}'")
        answers[row["id"]] = float(value)
    return answers


def scores(truth: Sequence[Truth], answers: Mapping[str, float]) -> dict[str, float]:
    """auc, c@1, f05u, f1, brier and their mean, `overall`, to three digits: what the official evaluator prints.

    AUC and Brier count a pair without an answer as 0.5; F1 leaves it out. Answers to pairs that are not in the truth count
    for nothing.
    """
    same = np.array([t.same for t in truth])
    if same.all() or not same.any():
        raise InputError("the truth must hold pairs by one author and pairs by two")
    answered = np.array([answers.get(t.id, UNANSWERED) for t in truth])
    values = {
        "auc": auc(answered[same], answered[~same]),
        "c@1": c_at_1(answered, same),
        "f05u": f05u(answered, same),
        "f1": f1(answered, same),
        "brier": brier(answered, same),
    }
    values["overall"] = float(np.mean(list(values.values())))
    return {name: round(float(value), DIGITS) for name, value in values.items()}
