"""How often the grammar of authors names the right one, each text of a corpus left out, and how long that takes.

    python benchmarks/grammar.py ../shared/corpora/eltec-hun.jsonl.zst --words 1000 5000
    python benchmarks/grammar.py ../shared/corpora/federalist.jsonl.zst --without Disputed --package
    python benchmarks/grammar.py ../shared/corpora/pan14-train.jsonl.zst --pan14

Settings of the ranker are given as `--set kept_words=300 order=6`; a question is cut to so many words from its middle, 0
leaves it whole. `--package` reads one problem with the authors' own package `lambdag` and prints how long both take.
"""

import argparse
import dataclasses
import io
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import idiograph.rankers.grammar as module
from idiograph.rankers.grammar import GrammarRanker
from idiograph.rankers.library import Library


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("corpus", type=Path)
    arguments.add_argument("--words", type=int, nargs="*", default=[0], help="cut questions to so many words; 0: whole")
    arguments.add_argument("--without", nargs="*", default=[], help="authors that do not count")
    arguments.add_argument("--set", nargs="*", default=[], help="settings of the ranker, as name=number")
    arguments.add_argument("--ending", type=int, default=module.ENDING, help="letters of a masked word that stay")
    arguments.add_argument("--package", action="store_true", help="measure speed beside lambdag")
    arguments.add_argument("--pan14", action="store_true", help="problems of verification, one library a set")
    arguments.add_argument("--sets", nargs="*", default=[], help="of --pan14, these alone")
    given = arguments.parse_args()
    module.ENDING = given.ending
    settings = {name: int(value) for name, value in (each.split("=") for each in given.set)}
    ranker = dataclasses.replace(GrammarRanker(), **settings)
    rows = read_rows(given.corpus)
    if given.pan14:
        return verify_sets(ranker, [row for row in rows if not given.sets or row["set"] in given.sets])
    library = read_library(rows, given.without)
    if given.package:
        return time_package(ranker, library)
    for words in given.words:
        leave_out(ranker, library, words)
    return None


def read_rows(path: Path) -> list[dict[str, Any]]:
    with pa.input_stream(path, compression="zstd") as stream:
        return [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf8")]


def read_library(rows: list[dict[str, Any]], without: list[str]) -> Library:
    named = [(" & ".join(author["name"] for author in row["authors"]), row["text"]) for row in rows]
    kept = [(who, text) for who, text in named if " & " not in who and who not in without]
    return Library(tuple(text for _, text in kept), tuple(who for who, _ in kept), rows[0]["lang"])


def middle(text: str, words: int) -> str:
    parts = text.split(" ")
    at = max(0, len(parts) // 2 - words // 2)
    return " ".join(parts[at : at + words]) if words else text


def leave_out(ranker: GrammarRanker, library: Library, words: int) -> None:
    """Right of asked: the author of the best text of the library, of texts whose author has another."""
    often = Counter(library.authors)
    asked = [at for at, author in enumerate(library.authors) if often[author] > 1]
    began = time.perf_counter()
    learned = ranker.learn(library)
    learning = time.perf_counter() - began
    scores = learned.score([middle(library.texts[at], words) for at in asked], asked)
    right = sum(
        library.authors[at] == library.authors[int(np.nanargmax(row))] for at, row in zip(asked, scores, strict=True)
    )
    seconds = time.perf_counter() - began
    print(
        f"{words or 'whole'} words: right {right} of {len(asked)}, {seconds:.1f} s (learning {learning:.1f} s)",
        flush=True,
    )


def verify_sets(ranker: GrammarRanker, rows: list[dict[str, Any]]) -> None:
    """AUC of the score of a problem's own author, and of that less the mean over the other authors of its set."""
    every: list[tuple[float, float, bool, int]] = []
    for name in sorted({row["set"] for row in rows}):
        began = time.perf_counter()
        found = score_set(ranker, [row for row in rows if row["set"] == name])
        print(f"{name:12}", describe(found), f"{time.perf_counter() - began:.1f} s", flush=True)
        every += found
    print(f"{'all':12}", describe(every))


def score_set(ranker: GrammarRanker, rows: list[dict[str, Any]]) -> list[tuple[float, float, bool, int]]:
    texts = [(row["id"], text) for row in rows for text in row["known"]]
    library = Library(tuple(text for _, text in texts), tuple(who for who, _ in texts), rows[0]["lang"])
    scores = ranker.learn(library).score([row["unknown"] for row in rows])
    authors = np.array(library.authors)
    found = []
    for row, line in zip(rows, scores, strict=True):
        own = authors == row["id"]
        tokens = sum(len(sentence) + 1 for sentence in ranker.cut(row["unknown"]))
        found.append((line[own].max(), line[own].max() - line[~own].mean(), row["same"], tokens))
    return found


def describe(found: list[tuple[float, float, bool, int]]) -> str:
    from sklearn.metrics import roc_auc_score

    score, against, same, tokens = map(np.array, zip(*found, strict=True))
    views = {"by root": score, "whole": score * tokens**0.5, "by token": score / tokens**0.5, "against": against}
    return "  ".join(f"{name} {roc_auc_score(same, values):.3f}" for name, values in views.items())


def time_package(ranker: GrammarRanker, library: Library) -> None:
    """One question, one author and one reference by the package and here: the same sentences, seconds and the difference."""
    from lambdag.language_models import KneserNeyLanguageModel

    often = Counter(library.authors)
    author, other = (name for name, _ in sorted(often.items(), key=lambda entry: (-entry[1], entry[0]))[:2])
    learned = ranker.learn(library)
    texts = [
        [tuple(learned.show(token, learned.kept) for token in cut) for cut in ranker.cut(text)]
        for text in library.texts
    ]
    question, *own = [sentences for sentences, who in zip(texts, library.authors, strict=True) if who == author]
    known = [sentence for sentences in own for sentence in sentences]
    reference = [s for sentences, who in zip(texts, library.authors, strict=True) if who == other for s in sentences]
    size = min(len(known), len(reference), ranker.sentences_per_model)
    known, reference = known[:size], reference[:size]
    began = time.perf_counter()
    logs = []
    for sentences in (known, reference):
        model = KneserNeyLanguageModel(order=ranker.order, discount=module.DISCOUNT)
        for sentence in sentences:
            model.fit(sentence)
        logs.append(np.concatenate([np.log10(model.probabilities(sentence)) for sentence in question]))
    theirs, package = time.perf_counter() - began, (logs[0] - logs[1]).sum()
    began = time.perf_counter()
    ours = module.score_sentences(known, question, [reference], ranker.order)
    seconds = time.perf_counter() - began
    print(
        f"{len(question)} sentences read by two models of {size}: lambdag {theirs:.2f} s, here {seconds:.2f} s; "
        f"scores differ by {abs(ours - package):.1e} of {package:.3f}"
    )
    models = len(often) * (1 + ranker.references)
    asked = len(library)
    print(f"leaving out {asked} texts with {models} models each would take lambdag {theirs / 2 * models * asked:.0f} s")


if __name__ == "__main__":
    main()
