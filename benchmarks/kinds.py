"""What `verify` says without a reference: who gets a ratio, and what those ratios are worth.

    python benchmarks/kinds.py ../shared/corpora [--pairs 120] [--only federalist pan19] [--markdown FILE]

Corpora unlike every calibration that ships (the Federalist papers, PAN14 and PAN19, novels in Spanish and Hungarian, prose
made up by `synth`), papers that nothing was learned from (PeerRead), and pairs of papers and abstracts by people whom the
model was tested on are in the figures that `scripts/kinds.py` prints. Texts are cut to 1,000 words. Printed are pairs, how
many get no ratio, and the Cllr of the answers, where no ratio is a ratio of 1. With `--texts` only refusals are counted, and
nothing is encoded.
"""

import argparse
import io
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from idiograph.answer.kinds import known_kinds
from idiograph.answer.verify import verify
from idiograph.corpus.readers import read_documents
from idiograph.measures.likelihood import cllr
from idiograph.types import Document

WORDS = 1000
Pair = tuple[str, str, bool]


def rows(folder: Path, name: str) -> list[dict]:
    with pa.input_stream(str(folder / f"{name}.jsonl.zst"), compression="zstd") as stream:
        return [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf8")]


def draw_pairs_of(texts: dict[str, list[str]], count: int, words: int = WORDS) -> list[Pair]:
    """As many pairs by one author as by two, each text cut from somewhere."""
    draw = random.Random(4)
    several = [author for author, own in texts.items() if len(own) > 1]
    found = []
    for at in range(count):
        same = bool(at % 2) and bool(several)
        if same:
            author = draw.choice(several)
            one, two = draw.sample(texts[author], 2)
        else:
            one, two = (draw.choice(texts[each]) for each in draw.sample(sorted(texts), 2))
        found.append((cut(one, words, draw), cut(two, words, draw), same))
    return [pair for pair in found if min(len(pair[0].split()), len(pair[1].split())) >= 60]


def cut(text: str, words: int, draw: random.Random) -> str:
    parts = text.split()
    start = draw.randrange(max(len(parts) - words, 0) + 1)
    return " ".join(parts[start : start + words])


def by_author(found: list[dict]) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = defaultdict(list)
    for row in found:
        texts[" & ".join(author["name"] for author in row["authors"])].append(row["text"])
    return texts


def collections(folder: Path, count: int) -> Iterator[tuple[str, list[Pair]]]:
    yield "federalist", draw_pairs_of(by_author(rows(folder, "federalist")), count)
    yield "federalist, 150 words", draw_pairs_of(by_author(rows(folder, "federalist")), count, 150)
    problems: dict[str, list[Pair]] = defaultdict(list)
    for row in rows(folder, "pan14-train"):
        problems[row["set"]].append((row["unknown"], "\n\n".join(row["known"]), bool(row["same"])))
    for name, pairs in sorted(problems.items()):
        draw = random.Random(5)
        some = draw.sample(pairs, min(count, len(pairs)))
        yield f"pan14 {name}", [(cut(a, WORDS, draw), cut(b, WORDS, draw), same) for a, b, same in some]
    fan = rows(folder, "pan19")
    for lang in sorted({row["lang"] for row in fan}):
        known = [row for row in fan if row["lang"] == lang and row["authors"] and row["doc_type"] == "known"]
        yield f"pan19 {lang}", draw_pairs_of(by_author(known), count)
    for name in ("eltec-spa", "eltec-hun"):
        yield name, draw_pairs_of(by_author(rows(folder, name)), count)
    made = [d for d in read_documents("synth:documents=200") if isinstance(d, Document)]
    texts: dict[str, list[str]] = defaultdict(list)
    for document in made:
        texts[min(document.author_set)].append(document.text)
    yield "synth", draw_pairs_of(texts, count)
    dev = by_author(rows(folder, "peerread-dev"))
    yield "peerread-dev (papers)", draw_pairs_of(dev, count)
    yield "peerread-dev (papers), 200 words", draw_pairs_of(dev, count, 200)


def judge(pairs: list[Pair], only_texts: bool) -> list[str]:
    """Pairs, texts refused, pairs without a ratio, Cllr with no ratio as 1, the kinds chosen."""
    kinds = known_kinds()
    texts = {text for a, b, _ in pairs for text in (a, b)}
    refused = np.mean([bool(kinds.strange([text])) for text in texts])
    chosen = [kinds.choose([a, b]) for a, b, _ in pairs]
    cells = [str(len(pairs)), f"{refused:.1%}"]
    if only_texts:
        return [*cells, f"{np.mean([kind is None for kind in chosen]):.1%}", "", names_of(chosen)]
    verdicts = [verify(a, b) if kind else None for (a, b, _), kind in zip(pairs, chosen, strict=True)]
    silent = np.array([verdict is None or bool(verdict.refusals) for verdict in verdicts])
    ratios = np.array([verdict.llr if verdict else 0.0 for verdict in verdicts])
    same = np.array([same for _, _, same in pairs])
    cost = f"{cllr(ratios[same], ratios[~same]):.3f}" if same.any() and not silent.all() else ""
    return [*cells, f"{silent.mean():.1%}", cost, names_of(chosen)]


def names_of(chosen: list) -> str:
    names = [kind.name for kind in chosen if kind]
    return ", ".join(f"{name} {names.count(name)}" for name in sorted(set(names)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--pairs", type=int, default=120)
    parser.add_argument("--only", nargs="+", default=[""], help="collections whose names begin like one of these")
    parser.add_argument("--texts", action="store_true", help="only count what is refused")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    table = [
        "| collection | pairs | texts refused | pairs without a ratio | Cllr | by the calibration of |",
        "|---|---|---|---|---|---|",
    ]
    for name, pairs in collections(given.corpora, given.pairs):
        if name.startswith(tuple(given.only)):
            table.append(f"| {' | '.join([name, *judge(pairs, given.texts)])} |")
            print(table[-1], flush=True)
    if given.markdown:
        given.markdown.write_text("\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
