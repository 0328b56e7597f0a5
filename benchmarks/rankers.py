"""How often do the rankers that learn from a library name the right author? Each text left out in turn.

    python benchmarks/rankers.py ../shared/corpora/federalist.jsonl.zst --without Disputed
    python benchmarks/rankers.py ../shared/corpora/eltec-eng.jsonl.zst --words 5000 --words 1000

A corpus is a folder, or JSON lines with `authors` and `text`, compressed or not. The questions are cut to --words from their
middle, the library stays whole, and the author of the nearest text is named. Texts by several hands are left away; authors
with one text are in the library and are not asked about. "Read against": a score is read against what the question scores with
everybody, and against what the text of the library scores with the other texts of the library.
"""

import argparse
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

from idiograph.rankers.delta import Delta
from idiograph.rankers.impostors import Impostors
from idiograph.rankers.letters import LetterRates, LetterTfIdf
from idiograph.rankers.library import LearningRanker, Library, Scores
from idiograph.rankers.stable import Stable
from idiograph.rankers.words import WordTfIdf

RANKERS: dict[str, Callable[[], LearningRanker]] = {
    "delta, 150 words": lambda: Delta(150),
    "delta, 500 words": Delta,
    "delta, 2000 words": lambda: Delta(2000),
    "delta, burrows": lambda: Delta(distance="burrows"),
    "delta, eder": lambda: Delta(distance="eder"),
    "delta, entropy": lambda: Delta(distance="entropy"),
    "letters, 3": LetterRates,
    "letters, 4": lambda: LetterRates(4),
    "letters, 5, tf-idf": LetterTfIdf,
    "words": WordTfIdf,
    "stable": Stable,
    "impostors": Impostors,
}


def read_library(source: Path, without: list[str]) -> Library:
    """The texts by one hand each."""
    rows = folder_rows(source) if source.is_dir() else file_rows(source)
    kept = [(names[0], text) for names, text in rows if len(names) == 1 and names[0] not in without]
    return Library(tuple(text for _, text in kept), tuple(name for name, _ in kept))


def file_rows(source: Path) -> list[tuple[list[str], str]]:
    how = {"compression": "zstd"} if source.suffix == ".zst" else {}
    with pa.input_stream(str(source), **how) as stream:
        rows = [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf8")]
    return [([author["name"] for author in row["authors"]], row["text"]) for row in rows]


def folder_rows(source: Path) -> list[tuple[list[str], str]]:
    from idiograph.corpus.corpus import Corpus

    return [([author.name for author in doc.authors], doc.text) for doc in Corpus(source)]


def middle_words(text: str, words: int) -> str:
    parts = text.split(" ")
    start = max(0, len(parts) // 2 - words // 2)
    return " ".join(parts[start : start + words]) if words else text


def read_against(scores: Scores, usual: Scores) -> Scores:
    """Half of how a score stands among the question's, half of how that stands among those of the text of the library.

    Short questions score lower than whole texts: each row is brought to one scale before columns are read.
    """
    rows, known = standardise(scores, scores, 1), standardise(usual, usual, 1)
    columns = np.empty_like(scores)
    for at in range(len(scores)):  # what a text scores with the library, the text that was asked about left out
        columns[at] = standardise(rows[at][None], np.delete(known, at, axis=0), 0)
    return (rows + columns) / 2


def standardise(scores: Scores, usual: Scores, axis: int) -> Scores:
    mean, spread = np.nanmean(usual, axis, keepdims=True), np.nanstd(usual, axis, keepdims=True)
    return (scores - mean) / np.where(spread > 1e-12, spread, 1)


def right(scores: Scores, library: Library) -> str:
    often = Counter(library.authors)
    asked = [at for at, name in enumerate(library.authors) if often[name] > 1]
    hits = sum(library.authors[int(np.nanargmax(scores[at]))] == library.authors[at] for at in asked)
    return f"{hits}/{len(asked)}"


def measure(ranker: LearningRanker, library: Library, words: int) -> tuple[Scores, Scores, float]:
    """What each text scores with the others, the same read against, and how long the plain scores took."""
    started = perf_counter()
    learned, places = ranker.learn(library), range(len(library))
    scores = learned.score([middle_words(text, words) for text in library.texts], places)
    seconds = perf_counter() - started
    return scores, read_against(scores, learned.score(library.texts, places) if words else scores), seconds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpus", type=Path)
    options.add_argument("--words", type=int, action="append", help="cut questions to so many words; 0: whole")
    options.add_argument("--without", nargs="*", default=[], help="authors that do not count")
    options.add_argument("--only", nargs="*", default=list(RANKERS), help="names of rankers")
    given = options.parse_args()
    library = read_library(given.corpus, given.without)
    most = max(Counter(library.authors).values())
    print(f"{len(library)} texts, {len(set(library.authors))} authors; the majority guess is right in {most}")
    print("| ranker | words | right | read against | seconds |\n|---|---|---|---|---|")
    for words in given.words or [0]:
        for name in given.only:
            scores, against, seconds = measure(RANKERS[name](), library, words)
            shown = f"{right(scores, library)} | {right(against, library)} | {seconds:.1f}"
            print(f"| {name} | {words or 'all'} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
