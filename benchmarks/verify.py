"""What people use today, on the same pairs of texts: models, character n-grams, Burrows's Delta, General Imposters.

    python benchmarks/verify.py                                   the built-in essays: a minute
    python benchmarks/verify.py elife=data/elife langsci=data/langsci --model minilm default --lengths 4,8 16

Pairs are matched for language, field and length, and every pair's ratio was learned from pairs of other writers. Names
choose the settings below; people are those whom `mine` keeps out of training. `--lengths` are sentences a text: `4,8`
mixes two lengths, `16` is some 400 words, as the news texts that such methods are often tried on. A corpus whose texts are
too short for a length is left out of it. Scores are kept in `--keep` as they come, so that a run that was stopped
goes on where it was; another model, corpus or length begins anew. `--markdown FILE` also writes the tables.
"""

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from idiograph.answer.likelihood import INCONCLUSIVE, Scored, cross_fit, effective_count, fit_scores
from idiograph.answer.pairs import TextPair, draw_pairs, pair_scores, word_counts
from idiograph.corpus.corpus import Corpus
from idiograph.evaluate.verification import Judged, Verification, measure_verification, verification_as_markdown
from idiograph.loading import load_ranker
from idiograph.rankers.delta import Delta
from idiograph.rankers.impostors import Impostors
from idiograph.rankers.letters import NGrams
from idiograph.recipe import CalibrateRecipe
from idiograph.style.model import Style
from idiograph.synth.anthology import anthology

SHOWN = ("Cllr", "Cllr_min", "Cllr_cal", "EER", "AUC", "c@1", "F0.5u", "Brier", "unanswered")
KEPT = Path(tempfile.gettempdir()) / "idiograph-bench" / "verify"
HELD = {"split": ("valid", "test")}
SETTINGS: dict[str, dict[str, Any]] = {
    "anthology": {"per_author": 10, "different": 4},
    "elife": {**HELD, "label": "last", "different": 4},
    "langsci": {**HELD, "label": "first", "containers": "any", "per_author": 5, "different": 6, "lang": "en"},
    "peerread-dev": {"per_author": 3, "different": 6},
    "peerread-train": {"different": 4},
    "arxiv": {**HELD, "different": 4},
    "acl": {**HELD, "label": "first", "different": 4, "lang": "en"},
    "pan19": {"per_author": 4, "different": 6, "lang": "en", "pairs": 130},
}
ABSTRACTS = ("arxiv", "acl")  # have ten sentences at most, so no texts of 16
Ranked = tuple[str, str, Callable[[], Any]]  # name, fingerprint, how to make it


def recipe_of(name: str, pairs: int, lengths: tuple[int, ...]) -> CalibrateRecipe:
    chosen: dict[str, Any] = {"pairs": pairs, **SETTINGS.get(name, {}), "lengths": lengths}
    return CalibrateRecipe.model_validate(chosen)


def systems(models: list[Any], pairs: list[TextPair]) -> list[Ranked]:
    writers = {text: pair.writers for pair in pairs for text in (pair.a, pair.b) if pair.same}
    crowd = lambda: Impostors(list(writers), independent=lambda a, b: not writers[a] & writers.get(b, frozenset()))  # noqa: E731
    found: list[Ranked] = [(m.name, m.fingerprint if isinstance(m, Style) else m.name, lambda m=m: m) for m in models]
    rest: list[Ranked] = [
        ("char 4-grams", "ngrams", NGrams),
        ("Burrows's Delta (cosine)", "delta", lambda: Delta(features=150)),
    ]
    return [*found, *rest, ("General Imposters", "impostors", crowd)]


def scores_of(pairs: list[TextPair], system: Ranked, keep: Path) -> np.ndarray:
    """The score of every pair; looked up where the same texts were scored by the same system before."""
    _, fingerprint, make = system
    said = hashlib.blake2b(fingerprint.encode(), digest_size=8)
    for pair in pairs:
        said.update(f"{pair.a}\0{pair.b}\0".encode())
    path = keep / f"{said.hexdigest()}.npy"
    if not path.exists():
        keep.mkdir(parents=True, exist_ok=True)
        np.save(path, pair_scores(pairs, make()))
    return np.load(path)


def judged(pairs: list[TextPair], scores: np.ndarray, method: str) -> tuple[Scored, Judged]:
    known = Scored(scores, effective_count(*word_counts(pairs)), np.array([p.same for p in pairs]))
    llr = cross_fit(known, [p.writers for p in pairs], method)
    return known, Judged(known.scores, llr, known.same, tuple(p.anchor for p in pairs), INCONCLUSIVE)


def elsewhere(known: dict[str, Scored], system: str) -> list[Verification]:
    """Each corpus judged by a calibration that was learned on another one: what happens out of its domain."""
    found = []
    for here, scores in known.items():
        for there, other in known.items():
            if here != there:
                llr = fit_scores(other, "", there).ratios(scores.scores, scores.sizes)
                rows = Judged(scores.scores, llr, scores.same, tuple(range(len(llr))), INCONCLUSIVE)
                found.append(measure_verification(rows, system, f"{here}, calibrated on {there}", resamples=0))
    return found


def rows(given: argparse.Namespace, models: list[Any]) -> Iterator[tuple[str, Scored, Verification]]:
    """(corpus, scores, measures) for each corpus, length and system."""
    sources: dict[str, Any] = {name: Corpus(Path(at)) for name, _, at in (c.partition("=") for c in given.corpora)}
    for lengths in given.lengths:
        for name, documents in (sources or {"anthology": list(anthology())}).items():
            if name in ABSTRACTS and max(lengths) > 8:
                continue
            pairs = draw_pairs(documents, recipe_of(name, given.pairs, lengths))
            count = int(np.median([len(text.split()) for p in pairs if p.same for text in (p.a, p.b)]))
            title = f"{name}, {' or '.join(map(str, lengths))} sentences (median {count} words)"
            for system in systems(models, pairs):
                begun = time.perf_counter()
                known, found = judged(pairs, scores_of(pairs, system, given.keep), given.method)
                result = measure_verification(found, system[0], title, resamples=100)
                took, cal = time.perf_counter() - begun, result["Cllr_cal"]
                said = f"{known.same.sum()} + {(~known.same).sum()} pairs, {took:.0f} s"
                print(
                    f"{title}: {system[0]}: {said}, Cllr_cal {cal.value:.3f} [{cal.low:.3f}, {cal.high:.3f}]",
                    flush=True,
                )
                yield name, known, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="NAME=CORPUS")
    parser.add_argument("--model", nargs="+", default=["default"])
    parser.add_argument("--patch")
    parser.add_argument("--method", default="logistic", choices=("logistic", "kde", "isotonic"))
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--lengths", nargs="+", default=["4,8"], help="sentences a text; several tables: 4,8 16")
    parser.add_argument("--keep", type=Path, default=KEPT)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    given.lengths = [tuple(int(n) for n in each.split(",")) for each in given.lengths]
    models = [load_ranker(name, patch=given.patch) for name in given.model]
    found: list[Verification] = []
    known: dict[str, dict[str, Scored]] = {}
    for corpus, scores, result in rows(given, models):
        found.append(result)
        known.setdefault(result.system, {}).setdefault(corpus, scores)  # of the first length
    tables = verification_as_markdown(found, SHOWN)
    for model in models if len(known[models[0].name]) > 1 else []:
        tables += "\n\n" + verification_as_markdown(elsewhere(known[model.name], model.name), SHOWN)
    print("\n" + tables)
    if given.markdown:
        given.markdown.write_text(tables + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
