"""How often answers are right on corpora that nothing was chosen on, every single method beside the weighed evidence.

    python benchmarks/crossvalidate.py CORPUS.jsonl.zst --words 5000 --without Disputed [--model]

Each text by an author with another one is left out, cut to `--words` from its middle; the library stays whole. CORPUS is JSON
lines (zstd) with `authors` and `text`. Prints one line a method: right of asked, Cllr, Cllr_cal, weight, and the seconds.
"""

import argparse
import io
import json
import time
from pathlib import Path

import pyarrow as pa

from idiograph.answer.methods import crossvalidate
from idiograph.types import Author, Document


def read(path: Path, without: list[str]) -> list[Document]:
    """Texts by one author each."""
    with pa.input_stream(str(path), compression="zstd") as stream:
        rows = [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf8")]
    single = [row for row in rows if len(row["authors"]) == 1 and row["authors"][0]["name"] not in without]
    return [Document(row["id"], row["text"], (Author(row["authors"][0]["name"]),)) for row in single]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpus", type=Path)
    options.add_argument("--words", type=int, default=0)
    options.add_argument("--without", nargs="*", default=[])
    options.add_argument("--method", default="best")
    options.add_argument("--model", action="store_true", help="the shipped model among the methods")
    given = options.parse_args()
    documents, model = read(given.corpus, given.without), False
    begun = time.perf_counter(), time.process_time()
    if given.model:
        from idiograph.loading import load

        model = load()
    found = crossvalidate(documents, given.words, given.method, model)
    wall, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
    print(
        f"{given.corpus.name}, {given.words or 'all'} words: {found.texts} texts ({found.lang}), {wall:.0f} s, {cpu:.0f} CPU-s"
    )
    for name, check in found.methods.items():
        weight = f"{found.weights.get(name, 1):.2f}"
        print(
            f"  {name:10} {check.right:4} of {check.of}  Cllr {check.cllr:.2f}  Cllr_cal {check.cllr_cal:.2f}  weight {weight}"
        )
    print(f"  majority   {found.majority:4} of {found.best.of}", flush=True)


if __name__ == "__main__":
    main()
