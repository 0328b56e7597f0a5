"""Passages as questions to whole texts: who of twelve writers wrote four sentences of an essay that the library does not have?

    python benchmarks/passages.py

The questions are the anchors of the demo's benchmark (`idiograph demo`: 60 built-in essays, spans of four sentences); the library
are the essays without the anchor's own. Weights and ratios come from passages by other writers. Prints how often the writer is
named first (Hit@1), by every method and by all together.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from idiograph.answer.crossvalidate import LibraryAuthors, check_asked, groups_of
from idiograph.answer.evidence import BEST_TEXTS, KnownQuestions, LibraryEvidence, author_standings
from idiograph.answer.methods import choose_methods, library_of
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.readers import read_documents
from idiograph.mining.benchmark import Benchmark, open_benchmark
from idiograph.mining.mine import mine_triplets
from idiograph.rankers.model import ModelRanker
from idiograph.recipe import make_recipe
from idiograph.text.passages import count_words
from idiograph.types import Document


def mine_demo(folder: Path) -> tuple[list[Document], Benchmark]:
    """As `idiograph demo` does."""
    settings = make_recipe("sound", {"mine": {"fractions": (0.0, 0.0, 1.0)}})
    build_corpus(read_documents("anthology"), folder / "corpus", inputs={"source": "anthology"}, overwrite=True)
    corpus = Corpus(folder / "corpus")
    mine_triplets(corpus, settings.mine, folder / "triplets", overwrite=True)
    return list(corpus), open_benchmark(folder / "triplets")


def ask_passages(
    evidence: LibraryEvidence, authors: LibraryAuthors, places: np.ndarray, texts: list[str]
) -> KnownQuestions:
    writers = authors.known_writers(len(evidence.library))[places]
    each = evidence.standings(texts, places.tolist())
    standings = {best: author_standings(each, authors.members, best) for best in BEST_TEXTS}
    sizes = np.log10([max(count_words(text), 1) for text in texts])
    return KnownQuestions(standings, writers, sizes, groups_of(writers, places))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", action="store_true", help="the shipped model among the methods")
    given = options.parse_args()
    begun, model = time.process_time(), None
    if given.model:
        from idiograph.loading import load

        model = ModelRanker(load().encode)
    with tempfile.TemporaryDirectory() as folder:
        documents, benchmark = mine_demo(Path(folder))
    place = {document.id: at for at, document in enumerate(documents)}
    evidence = LibraryEvidence(library_of(documents), choose_methods("best", model))
    authors = LibraryAuthors.of(evidence.library)
    places = np.array([place[span.doc_id] for span in benchmark.anchors])
    asked = ask_passages(evidence, authors, places, [span.text for span in benchmark.anchors])
    found = check_asked(evidence, authors, asked, 0)
    print(f"{len(places)} passages, {np.median(10**asked.sizes):.0f} words in the middle; {len(documents)} essays")
    for name, check in found.methods.items():
        weight = f"{found.weights.get(name, 1):.2f}"
        low, high = check.interval
        print(
            f"  {name:10} {check.right:4} of {check.of}  {check.right / check.of:.3f} [{low:.3f}, {high:.3f}]  weight {weight}"
        )
    print(f"  majority   {found.majority:4} of {found.best.of}; {time.process_time() - begun:.0f} CPU-s", flush=True)


if __name__ == "__main__":
    main()
