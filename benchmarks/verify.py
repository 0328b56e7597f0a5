"""What people use today, on the same pairs of texts: a model, character n-grams, Burrows's Delta, General Imposters.

    python benchmarks/verify.py                                   the built-in essays: a minute
    python benchmarks/verify.py elife=data/elife langsci=data/langsci --model models/x

Pairs are matched for language, field and length, and every pair's ratio was learned from pairs of other writers. Names
choose the settings below; people are those whom `mine` keeps out of training. `--short` cuts every text to four
sentences, `--pairs` limits the pairs, `--markdown FILE` also writes the tables.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.answer.calibrate import INCONCLUSIVE, Scored, cross_fitted, effective, fit
from idiograph.answer.pairing import Pair, draw
from idiograph.answer.reading import pair_scores, word_counts
from idiograph.baselines.delta import Delta
from idiograph.baselines.impostors import Impostors
from idiograph.baselines.ngrams import NGrams
from idiograph.corpus.anthology import anthology
from idiograph.corpus.documents import Corpus
from idiograph.evaluate.verification import Judged, Verification, markdown, measure
from idiograph.loading import load_ranker
from idiograph.recipe import CalibrateRecipe

SHOWN = ("Cllr", "Cllr_min", "Cllr_cal", "EER", "AUC", "c@1", "F0.5u", "Brier", "unanswered")
HELD = {"split": ("valid", "test")}
SETTINGS: dict[str, dict[str, Any]] = {
    "anthology": {"per_author": 10, "different": 4},
    "elife": {**HELD, "label": "last", "different": 4},
    "langsci": {**HELD, "label": "first", "containers": "any", "per_author": 5, "different": 6, "lang": "en"},
    "peerread-dev": {"per_author": 3, "different": 6},
    "peerread-train": {"different": 4},
    "arxiv": {**HELD, "different": 4},
    "acl": {**HELD, "label": "first", "different": 4, "lang": "en"},
    "pan19": {"per_author": 4, "different": 6, "lang": "en", "lengths": (8,), "pairs": 130},
}


def recipe_of(name: str, pairs: int, short: bool) -> CalibrateRecipe:
    chosen: dict[str, Any] = {"lengths": (4, 8), "pairs": pairs, **SETTINGS.get(name, {})}
    return CalibrateRecipe.model_validate(chosen | ({"lengths": (4,)} if short else {}))


def systems(model: str, patch: str | None, pairs: list[Pair]) -> list[tuple[str, Any]]:
    writers = {text: pair.writers for pair in pairs for text in (pair.a, pair.b) if pair.same}
    crowd = Impostors(list(writers), apart=lambda one, two: not writers[one] & writers.get(two, frozenset()))
    style = load_ranker(model, patch=patch)
    return [
        (style.name, style),
        ("char 4-grams", NGrams()),
        ("Burrows's Delta (cosine)", Delta()),
        ("impostors", crowd),
    ]


def judged(pairs: list[Pair], ranker: Any, method: str) -> tuple[Scored, Judged]:
    scores = Scored(pair_scores(pairs, ranker), effective(*word_counts(pairs)), np.array([p.same for p in pairs]))
    llr = cross_fitted(scores, [p.writers for p in pairs], method)
    return scores, Judged(scores.scores, llr, scores.same, tuple(p.anchor for p in pairs), INCONCLUSIVE)


def elsewhere(known: dict[str, Scored], system: str) -> list[Verification]:
    """Each corpus judged by a calibration that was learned on another one: what happens out of its domain."""
    found = []
    for here, scores in known.items():
        for there, other in known.items():
            if here != there:
                llr = fit(other, "", there).ratios(scores.scores, scores.sizes)
                rows = Judged(scores.scores, llr, scores.same, tuple(range(len(llr))), INCONCLUSIVE)
                found.append(measure(rows, system, f"{here}, calibrated on {there}", resamples=0))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="NAME=CORPUS")
    parser.add_argument("--model", default="default")
    parser.add_argument("--patch")
    parser.add_argument("--method", default="logistic", choices=("logistic", "kde", "isotonic"))
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    sources: dict[str, Any] = {name: Corpus(Path(at)) for name, _, at in (c.partition("=") for c in given.corpora)}
    found: list[Verification] = []
    known: dict[str, Scored] = {}
    for name, documents in (sources or {"anthology": list(anthology())}).items():
        pairs = draw(documents, recipe_of(name, given.pairs, given.short))
        for at, (system, ranker) in enumerate(systems(given.model, given.patch, pairs)):
            begun = time.perf_counter()
            scores, rows = judged(pairs, ranker, given.method)
            if at == 0:
                known[name] = scores
            found.append(measure(rows, system, name, resamples=100))
            cal = found[-1]["Cllr_cal"]
            print(
                f"{name}: {system}: {scores.same.sum()} + {(~scores.same).sum()} pairs, {time.perf_counter() - begun:.0f} s, "
                f"Cllr_cal {cal.value:.3f} [{cal.low:.3f}, {cal.high:.3f}]",
                flush=True,
            )
    tables = markdown(found, SHOWN)
    if len(known) > 1:
        tables += "\n\n" + markdown(elsewhere(known, found[0].system), SHOWN)
    print("\n" + tables)
    if given.markdown:
        given.markdown.write_text(tables + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
