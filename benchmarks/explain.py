"""Is the explanation true? Remove the patches that it names first, and the score must fall more than for random ones.

    python benchmarks/explain.py                        the built-in essays
    python benchmarks/explain.py CORPUS --model models/x

For pairs of passages by one writer, a share of the first passage's patches is taken out of the text: those with the
largest parts, random ones, or those with the smallest; then the two texts are scored anew.
"""

import argparse
from pathlib import Path

import numpy as np

from idiograph.answer.explain import explain, without_patches
from idiograph.answer.pairs import draw_pairs
from idiograph.corpus.corpus import Corpus
from idiograph.evaluate.report import interval
from idiograph.loading import load
from idiograph.recipe import CalibrateRecipe
from idiograph.synth.anthology import anthology


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--patch")
    parser.add_argument("--label", default="identified")
    parser.add_argument("--pairs", type=int, default=60)
    given = parser.parse_args()
    style = load(given.model, patch=given.patch)
    recipe = CalibrateRecipe.model_validate(
        {"pairs": given.pairs, "per_author": 5, "different": 1, "lengths": (4,), "label": given.label}
    )
    pairs = [p for p in draw_pairs(Corpus(given.corpus) if given.corpus else list(anthology()), recipe) if p.same]
    random = np.random.default_rng(7)
    print(f"{style.name}: {len(pairs)} pairs by one writer; how far the score falls when patches are removed\n")
    print("| removed | largest parts | random | smallest parts | largest − random [95 %] |\n|---|---|---|---|---|")
    for share in (0.1, 0.2, 0.4):
        rows = []
        for pair in pairs:
            found = explain(pair.a, pair.b, style)
            order = sorted(found.matches, key=lambda m: -m.part)
            count = max(round(share * len(order)), 1)
            mixed = [order[at] for at in random.permutation(len(order))]
            left = [
                without_patches(pair.a, [(m.start, m.end) for m in each[:count]])
                for each in (order, mixed, order[::-1])
            ]
            rows.append(found.score - style.compare(left, [pair.b])[:, 0])
        fell = np.array(rows)
        low, high = interval(fell[:, 0] - fell[:, 1], [p.anchor for p in pairs])
        cells = " | ".join(f"{value:.4f}" for value in fell.mean(axis=0))
        print(f"| {share:.0%} | {cells} | {np.mean(fell[:, 0] - fell[:, 1]):.4f} [{low:.4f}, {high:.4f}] |", flush=True)


if __name__ == "__main__":
    main()
