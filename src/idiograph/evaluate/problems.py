"""PAN19 attribution problems: known texts of some candidates, and unknown texts by them or by somebody else.

Reads the shared task's folders (`collection-info.json`, `problem00001/candidate00001/known00001.txt`, …) and its truth, or
the same as JSON lines, one text a line with `problem`, `doc_type`, `authors` and `lang`; reads and writes its answers.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from idiograph.errors import InputError

NOBODY = "<UNK>"  # the author of a text that none of the candidates wrote
COLLECTION, ABOUT, TRUTH = "collection-info.json", "problem-info.json", "ground-truth.json"


@dataclass(frozen=True)
class Problem:
    """One closed list of candidates, and the texts to be given to them. `truth` is empty where nobody tells."""

    name: str
    lang: str
    known: Mapping[str, tuple[str, ...]]  # candidate → texts
    unknown: Mapping[str, str]  # file name → text
    truth: Mapping[str, str] = field(default_factory=dict)  # file name → candidate or <UNK>

    @property
    def candidates(self) -> list[str]:
        return sorted(self.known)

    @property
    def answerable(self) -> list[str]:
        """The file names of the unknown texts that one of the candidates wrote."""
        return [file for file in sorted(self.unknown) if self.truth.get(file, NOBODY) != NOBODY]


def read_problems(source: Path, lang: str | None = None) -> list[Problem]:
    """The problems of a folder or a JSON lines file, in one language or all."""
    if not source.exists():
        raise InputError(f"there is no file or folder '{source}'")
    problems = from_folder(source) if source.is_dir() else from_lines(source)
    chosen = [each for each in problems if lang in (None, "any", each.lang)]
    if not chosen:
        raise InputError(
            f"'{source}' has no problem in '{lang}'; there are {', '.join(sorted({p.lang for p in problems}))}"
        )
    return chosen


def problems_by_language(source: Path) -> dict[str, list[Problem]]:
    """The problems that have an unknown text by one of their candidates, of every language."""
    problems = [problem for problem in read_problems(source) if problem.answerable]
    if not problems:
        raise InputError(f"no unknown text in '{source}' is by one of the candidates")
    return {lang: [each for each in problems if each.lang == lang] for lang in sorted({p.lang for p in problems})}


def load_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'; a PAN19 folder has {COLLECTION}, {ABOUT} and {TRUTH}") from None
    except (ValueError, OSError) as error:
        raise InputError(f"'{path}': not JSON: {error}") from error


def from_folder(folder: Path) -> list[Problem]:
    """Every problem that `collection-info.json` names."""
    try:
        return [
            from_problem(folder / each["problem-name"], each["language"], each.get("encoding") or "UTF-8")
            for each in load_json(folder / COLLECTION)
        ]
    except (KeyError, TypeError) as error:
        raise InputError(f"'{folder}': {COLLECTION} or {ABOUT} lacks {error}") from error


def from_problem(folder: Path, lang: str, encoding: str = "UTF-8") -> Problem:
    about = load_json(folder / ABOUT)
    names = [each["author-name"] for each in about["candidate-authors"]]
    known = {name: tuple(texts_in(folder / name, encoding).values()) for name in names}
    lacking = [name for name, texts in known.items() if not texts]
    if lacking:
        raise InputError(f"'{folder / lacking[0]}' has no text of the candidate")
    unknown = texts_in(folder / about["unknown-folder"], encoding)
    truth = read_problem_truth(folder / TRUTH) if (folder / TRUTH).exists() else {}
    return Problem(folder.name, lang, known, unknown, truth)


def texts_in(folder: Path, encoding: str) -> dict[str, str]:
    """The `.txt` files of a folder by name."""
    from idiograph.corpus.formats import decode

    texts = {}
    for path in sorted(folder.glob("*.txt")):
        try:
            texts[path.name] = decode(path.read_bytes().decode(encoding).encode())
        except (InputError, UnicodeDecodeError, LookupError) as error:
            raise InputError(f"'{path}': {error}") from error
    return texts


def read_problem_truth(path: Path) -> dict[str, str]:
    """Who wrote which unknown text."""
    try:
        return {each["unknown-text"]: each["true-author"] for each in load_json(path)["ground_truth"]}
    except (KeyError, TypeError) as error:
        raise InputError(f"'{path}': no {error} where the truth should be") from error


def from_lines(path: Path) -> list[Problem]:
    """Problems from JSON lines; an unknown text by nobody of the candidates counts as `<UNK>`."""
    from idiograph.corpus.readers import unpack_file

    rows: dict[str, list[dict[str, Any]]] = {}
    with unpack_file(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                row = json.loads(line)
                rows.setdefault(row["problem"], []).append(row)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"'{path}:{number}': not a text of a PAN19 problem: {error}") from error
    return [from_rows(name, rows[name]) for name in sorted(rows)]


def from_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> Problem:
    known: dict[str, list[str]] = {}
    unknown, truth = {}, {}
    for row in sorted(rows, key=lambda row: row["id"]):
        writer = row["authors"][0]["name"].rpartition("/")[2] if row["authors"] else NOBODY
        if row["doc_type"] == "known":
            known.setdefault(writer, []).append(row["text"])
        else:
            file = row["id"].rpartition(":")[2] + ".txt"
            unknown[file], truth[file] = row["text"], writer
    by_known = {file: writer if writer in known else NOBODY for file, writer in truth.items()}
    return Problem(name, rows[0]["lang"], {name: tuple(texts) for name, texts in known.items()}, unknown, by_known)


def read_problem_answers(folder: Path, problem: str) -> dict[str, str]:
    """What a system said: file name → candidate; of two answers for one text the first counts."""
    path = folder / f"answers-{problem}.json"
    answers: dict[str, str] = {}
    try:
        for each in load_json(path):
            answers.setdefault(each["unknown-text"], each["predicted-author"])
    except (KeyError, TypeError) as error:
        raise InputError(f"'{path}': no {error} where an answer should be") from error
    return answers


def write_problem_answers(answers: Mapping[str, str], folder: Path, problem: str) -> Path:
    """Write `answers-PROBLEM.json`; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"answers-{problem}.json"
    rows = [{"unknown-text": file, "predicted-author": name} for file, name in answers.items()]
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return path


def macro_f1(truth: Mapping[str, str], answers: Mapping[str, str]) -> float:
    """F1 averaged over the authors in the truth. `<UNK>` is no class of its own, but answering a candidate where nobody of
    them wrote costs that candidate's precision; an author who is not in the truth counts as `<UNK>`, and so does silence.
    """
    named = sorted(set(truth.values()) - {NOBODY})
    if not named:
        raise InputError("no unknown text is by a candidate")
    answered = {file: answers.get(file, NOBODY) for file in truth}
    return sum(f1_of(name, truth, answered) for name in named) / len(named)


def f1_of(name: str, truth: Mapping[str, str], answered: Mapping[str, str]) -> float:
    hits = sum(truth[file] == name == answered[file] for file in truth)
    right, claimed = (
        sum(writer == name for writer in truth.values()),
        sum(writer == name for writer in answered.values()),
    )
    return 2 * hits / (right + claimed)
