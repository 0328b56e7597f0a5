"""Who among many? A model, character n-grams and Burrows's Delta on the same questions, and whether the writer is there at all.

    python benchmarks/writers.py elife=data/elife acl=data/acl --model default

First texts of same-author pairs are the questions, their second texts the library, drawn as in `verify.py`; a question's own
document is left out. A candidate of a model is scored as `idiograph attribute` does it; a candidate of the others is as near as
their nearest text. Open set: each question is asked with its writer in the library and without, and judged by a calibration
that was learned from the questions of other writers.
"""

import argparse
from pathlib import Path

import numpy as np
from verify import recipe_of

from idiograph.answer.authors import IndexAuthors
from idiograph.answer.likelihood import Scored, cross_fit, effective_count
from idiograph.answer.pairs import TextPair, draw_pairs, text_passages
from idiograph.answer.ranking import everybody_ranking
from idiograph.corpus.corpus import Corpus
from idiograph.loading import load
from idiograph.measures.likelihood import auc, cllr, cllr_min
from idiograph.rankers.delta import Delta
from idiograph.rankers.letters import NGrams
from idiograph.style.model import Ranker, Style
from idiograph.style.score import meansim
from idiograph.synth.anthology import anthology

Key = tuple[str, ...]


def key_of(pair: TextPair) -> Key:
    return tuple(sorted(pair.anchor))


def library(pairs: list[TextPair]) -> tuple[IndexAuthors, list[str], dict[str, list[str]]]:
    """The candidates, the passages of the library, and the texts of each document."""
    texts: dict[str, list[str]] = {}
    owned: dict[Key, list[str]] = {}
    for pair in pairs:
        texts.setdefault(pair.docs[1], []).append(pair.b)
        mine = owned.setdefault(key_of(pair), [])
        mine += [pair.docs[1]] if pair.docs[1] not in mine else []
    number = {doc: at for at, doc in enumerate(texts)}
    passages = [(number[doc], part) for doc, each in texts.items() for text in each for part in text_passages(text)]
    members = np.array([number[doc] for docs in owned.values() for doc in docs])
    owner = np.array([at for at, _ in passages])
    sizes = np.array([len(docs) for docs in owned.values()])
    return (
        IndexAuthors(tuple(owned), tuple(owned), tuple(texts), owner, members, sizes),
        [part for _, part in passages],
        texts,
    )


def rank_writers(pairs: list[TextPair], style: Style) -> tuple[list[int], Scored, list[frozenset[str]]]:
    """The rank of each question's writer, and how the first candidate stands with the writer there and without."""
    everybody, parts, _ = library(pairs)
    passages, ranks, rows, writers = style.encode(parts), [], [], []
    for pair in pairs:
        scores = meansim(style.encode(text_passages(pair.a)), passages)
        ranking = everybody_ranking(everybody, scores, [pair.docs[0]])
        own = np.array([everybody.keys[who] == key_of(pair) for who in ranking.who])
        if not own.any():
            continue  # the writer's only other text is the question itself
        size = float(effective_count(len(pair.a.split()), 1e9))
        ranks.append(int(np.flatnonzero(own)[0]))
        rows += [(float(ranking.z[0]), size, True), (float(ranking.z[~own][0]), size, False)]
        writers += [frozenset(key_of(pair))] * 2
    z, sizes, present = (np.array(column) for column in zip(*rows, strict=True))
    return ranks, Scored(z, sizes, present.astype(bool)), writers


def by_nearest_text(pairs: list[TextPair], ranker: Ranker) -> list[int]:
    """The rank of each question's writer when a candidate is as near as their nearest text."""
    near = ranker.compare([p.a for p in pairs], [p.b for p in pairs])
    near = np.where([[q.docs[1] == p.docs[0] for q in pairs] for p in pairs], -np.inf, near)
    keys = list(dict.fromkeys(map(key_of, pairs)))
    mine = np.array([keys.index(key_of(p)) for p in pairs])
    each = np.stack([near[:, mine == at].max(axis=1) for at in range(len(keys))], axis=1)
    return [int((row > row[at]).sum()) for row, at in zip(each, mine, strict=True) if np.isfinite(row[at])]


def share(ranks: list[int]) -> str:
    return f"{np.mean(np.array(ranks) < 1):.3f} / {np.mean(np.array(ranks) < 5):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="NAME=CORPUS")
    parser.add_argument("--model", default="default")
    parser.add_argument("--patch")
    parser.add_argument("--pairs", type=int, default=200)
    args = parser.parse_args()
    style = load(args.model, patch=args.patch)
    sources = {name: Corpus(Path(at)) for name, _, at in (c.partition("=") for c in args.corpora)}
    print(f"{style.name}: writer first / among the first five\n")
    print("| corpus | questions | candidates | model | char 4-grams | Delta | open set: AUC, Cllr, Cllr_cal |")
    print("|---|---|---|---|---|---|---|")
    for name, documents in (sources or {"anthology": list(anthology())}).items():
        pairs = [p for p in draw_pairs(documents, recipe_of(name, args.pairs, (4, 8))) if p.same]
        ranks, scored, writers = rank_writers(pairs, style)
        llr = cross_fit(scored, writers)
        present, absent = llr[scored.same], llr[~scored.same]
        cost = cllr(present, absent)
        others = " | ".join(share(by_nearest_text(pairs, ranker)) for ranker in (NGrams(), Delta(features=150)))
        open_set = f"{auc(present, absent):.3f}, {cost:.3f}, {cost - cllr_min(present, absent):.3f}"
        people = len({key_of(p) for p in pairs})
        print(f"| {name} | {len(ranks)} | {people} | {share(ranks)} | {others} | {open_set} |", flush=True)


if __name__ == "__main__":
    main()
