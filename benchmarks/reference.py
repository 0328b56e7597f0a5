"""What are the ratios of `verify --reference` worth? Pairs of texts of a corpus, by weights that saw neither text.

    python benchmarks/reference.py ../shared/corpora/federalist.jsonl.zst --without Disputed
    python benchmarks/reference.py ../shared/corpora/eltec-spa.jsonl.zst --words 2000 --apart 20

Printed are all pairs, and --pairs of each kind drawn at random. With --apart, half of the authors are the reference and so many
pairs of each kind by the other half are compared among them: texts by writers of whom nothing is known.
"""

import argparse
from pathlib import Path

import numpy as np
from rankers import middle_words, read_library

from idiograph.answer.crossvalidate import LibraryAuthors
from idiograph.answer.reference import cross_fit_pairs, folds_of_texts, learn_population
from idiograph.measures.likelihood import auc, cllr, cllr_min
from idiograph.rankers.library import Library


def show(name: str, same: np.ndarray, different: np.ndarray) -> None:
    whole, false = cllr(same, different), (different > 0.5).mean()
    print(
        f"{name:34} {len(same):5} + {len(different):5} pairs  Cllr {whole:.3f}  Cllr_cal {whole - cllr_min(same, different):.3f}"
        f"  AUC {auc(same, different):.3f}  two hands over +0.5: {false:.1%}  one hand under -0.5: {(same < -0.5).mean():.1%}"
    )


def show_population(library: Library, pairs: int) -> None:
    learned = learn_population(library)
    print(f"{learned.check.says}; weights {learned.check.weights}")
    print(f"log10 LR from {learned.weights.calibration.low:+.2f} to {learned.weights.calibration.high:+.2f}")
    folds = folds_of_texts(learned.library, LibraryAuthors.of(learned.library))
    for part, ratios in zip(learned.pairs, cross_fit_pairs(learned.pairs, folds), strict=True):
        known = ~np.isnan(ratios)
        same, different = ratios[known & part.same], ratios[known & ~part.same]
        show(f"{part.words or 'whole'}: all pairs", same, different)
        draw = np.random.default_rng(11)
        some = [draw.choice(each, min(pairs, len(each)), replace=False) for each in (same, different)]
        show(f"{part.words or 'whole'}: pairs drawn", *some)


def show_apart(library: Library, pairs: int) -> None:
    names = np.random.default_rng(5).permutation(sorted(set(library.authors)))
    mine = set(names[::2].tolist())
    reference = library.take([at for at, who in enumerate(library.authors) if who in mine])
    rest = library.take([at for at, who in enumerate(library.authors) if who not in mine])
    learned = learn_population(reference)
    one, two = np.triu_indices(len(rest), 1)
    who, draw, found = np.array(rest.authors), np.random.default_rng(6), []
    for kind in (True, False):
        places = np.flatnonzero((who[one] == who[two]) == kind)
        chosen = draw.permutation(places)[:pairs]
        found.append(np.array([learned.compare(rest.texts[one[at]], rest.texts[two[at]]).llr for at in chosen]))
    show("writers who are not in the reference", *found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--words", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--apart", type=int, default=0)
    given = parser.parse_args()
    library = read_library(given.corpus, given.without)
    texts = tuple(middle_words(text, given.words) for text in library.texts)
    library = Library(texts, library.authors, library.lang)
    show_population(library, given.pairs)
    if given.apart:
        show_apart(library, given.apart)


if __name__ == "__main__":
    main()
