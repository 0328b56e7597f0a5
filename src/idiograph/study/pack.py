"""A study's texts in one folder that opens with numpy alone, so that models can be trained where little is installed.

pack.json           what there is, and the runs to do
train/*.npz         triplets to learn from, by rule
valid/*.npz         anchors and pools to choose a temperature by
bench/*.npz         anchors and pools to measure on
pan-LANG.npz        attribution problems of another register, if there are any
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import ArtifactError
from idiograph.neural.triplets import Triplets
from idiograph.study.bench import Bench, Bools, Ints, open_bench
from idiograph.study.plan import StudyRun, plan_from_json

LISTING = "pack.json"


@dataclass(frozen=True, slots=True, eq=False)
class Problems:
    """Attribution problems: whose hand, of some candidates, is an unknown text from?"""

    texts: Sequence[str]
    unknown: Ints  # (U,) places in `texts`, in the order of their names
    truth: Ints  # (U,) which candidate wrote it
    problem: Ints  # (U,)
    candidates: Ints  # (C,) the problem that each candidate belongs to
    known: Ints  # (K,) places of known texts
    writer: Ints  # (K,) the candidate who wrote each
    joined: Ints  # (C,) places of each candidate's texts end to end
    fresh: Bools  # (U,) is the text no other one's twin?
    names: NDArray[np.str_]  # (problems,)

    def save(self, path: Path) -> None:
        raw, ends = pack_strings(self.texts)
        arrays: Any = {name: getattr(self, name) for name in NUMBERS}
        np.savez_compressed(path, raw=raw, ends=ends, **arrays)


NUMBERS = ("unknown", "truth", "problem", "candidates", "known", "writer", "joined", "fresh", "names")


def pack_strings(texts: Sequence[str]) -> tuple[np.ndarray, Ints]:
    encoded = [text.encode() for text in texts]
    return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([len(t) for t in encoded], dtype=np.int64)


def open_problems(path: Path) -> Problems:
    with np.load(path, allow_pickle=False) as file:
        raw, ends = file["raw"].tobytes(), file["ends"]
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        texts = [raw[a:b].decode() for a, b in zip(starts, ends, strict=True)]
        return Problems(texts, *(file[name] for name in NUMBERS))


@dataclass(frozen=True)
class Pack:
    """A pack as it lies in a folder; files are read when they are first needed."""

    folder: Path
    about: dict[str, Any] = field(default_factory=dict)
    _trained_on: dict[str, Triplets] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, folder: Path) -> "Pack":
        path = folder / LISTING
        if not path.is_file():
            raise ArtifactError(f"'{folder}' is no study pack (no {LISTING}); make one: idiograph study CORPUS -o OUT")
        return cls(folder, json.loads(path.read_text(encoding="utf-8")))

    @property
    def preset(self) -> str:
        return self.about["preset"]

    @property
    def main(self) -> int:
        """The number of sentences of the spans that most tables are about."""
        return self.about["main"]

    @property
    def runs(self) -> list[StudyRun]:
        return [plan_from_json(value) for value in self.about["runs"]]

    def train(self, rule: str) -> list[Triplets]:
        return [self._triplets(name) for name in self.about["train"][rule]]

    def _triplets(self, name: str) -> Triplets:
        if name not in self._trained_on:
            self._trained_on[name] = open_saved(self.folder / name)
        return self._trained_on[name]

    @cached_property
    def valid(self) -> list[Bench]:
        return [open_bench(self.folder / name) for name in self.about["valid"]]

    @cached_property
    def benches(self) -> list[Bench]:
        return [open_bench(self.folder / name) for name in self.about["benches"]]

    @cached_property
    def problems(self) -> dict[str, Problems]:
        """By language."""
        return {lang: open_problems(self.folder / name) for lang, name in (self.about.get("pan") or {}).items()}

    def main_benches(self) -> list[Bench]:
        """The benches of the main length of span, topics decoupled."""
        return [bench for bench in self.benches if (bench.rule, bench.sentences) == ("base", self.main)]


def save_triplets(part: Triplets, path: Path) -> None:
    """Write one .npz file, which `open_saved` reads."""
    encoded = [text.encode() for text in part.texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    raw = np.frombuffer(b"".join(encoded), np.uint8)
    named = {"raw": raw, "ends": ends, "name": np.array(part.name)}
    np.savez_compressed(path, rows=part.rows, labels=part.labels, documents=part.documents, **named)  # pyright: ignore


def open_saved(path: Path) -> Triplets:
    """What `save_triplets` wrote."""
    with np.load(path, allow_pickle=False) as file:
        raw, ends = file["raw"].tobytes(), file["ends"]
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        texts = [raw[a:b].decode() for a, b in zip(starts, ends, strict=True)]
        return Triplets(str(file["name"]), texts, file["rows"], file["labels"], file["documents"])
