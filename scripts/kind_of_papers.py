"""Learn to tell scholarly papers and abstracts from other kinds of text, and write what `verify` is guarded by.

    python scripts/kind_of_papers.py ../shared/corpora [--check]

Papers are eLife, language science chapters, abstracts of ACL (under CC-BY) and of arXiv; other kinds are English novels, the
built-in essays and made-up prose. A fifth of the papers is kept out; the threshold lets all but 5 in 100 of another fifth
pass. Printed are the shares refused of the papers kept out, of each corpus of papers when it was not learned from (with
--check), and of corpora that nothing was learned or chosen from. Texts are cut to 60 to 2,000 words.
"""

import argparse
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression

from idiograph.answer.kinds import PAPERS, KindClassifier, kind_features, kind_windows
from idiograph.corpus.readers import read_documents
from idiograph.synth.anthology import anthology
from idiograph.text.language import identify

LENGTHS = (60, 120, 240, 400, 2000)
PAPER_CORPORA = {"elife": 1500, "langsci": 1500, "acl-abstracts": 2500, "arxiv-abstracts": 4000}
OPEN = ("CC-BY-3", "CC-BY-4", "CC0", "CC-BY 4")
FREQUENT = 1500  # words listed
STRENGTH = 3.0  # of the weights; larger is freer
REFUSED_BY_THRESHOLD = 0.05


def read(folder: Path, name: str) -> list[dict]:
    with pa.input_stream(str(folder / f"{name}.jsonl.zst"), compression="zstd") as stream:
        return [json.loads(line) for line in io.TextIOWrapper(stream, encoding="utf8")]


def cut(text: str, words: int, draw: np.random.Generator) -> str:
    parts = text.split()
    start = int(draw.integers(max(len(parts) - words, 0) + 1))
    return " ".join(parts[start : start + words])


def pieces(texts: list[str], per_text: int, seed: int, lengths: tuple[int, ...] = LENGTHS) -> list[str]:
    draw = np.random.default_rng(seed)
    found = [cut(text, int(draw.choice(lengths)), draw) for text in texts for _ in range(per_text)]
    return [piece for piece in found if len(piece.split()) >= 50]


def paper_texts(folder: Path, name: str, most: int) -> list[str]:
    rows = [r for r in read(folder, name) if r["license"].startswith(OPEN) and len(r["text"].split()) >= 60]
    order = np.random.default_rng(3).permutation(len(rows))
    chosen = (rows[at]["text"] for at in order)
    english = (text for text in chosen if identify(text)[0] == "en")
    return [text for text, _ in zip(english, range(most), strict=False)]


def other_pieces(folder: Path) -> list[str]:
    """Novels often, as there are few of them, essays several times, and made-up prose."""
    novels = [row["text"] for row in read(folder, "eltec-eng")]
    essays = [document.text for document in anthology()]
    made_up = [document.text for document in read_documents("synth:documents=200")]
    return pieces(novels, 60, 1) + pieces(essays, 15, 2, LENGTHS[:3]) + pieces(made_up, 3, 4)


def frequent_words(papers: list[str], others: list[str]) -> tuple[str, ...]:
    """The most frequent of both sides, each side weighing the same."""
    rates: Counter[str] = Counter()
    for side in (papers, others):
        counts = Counter(word for text in side for window in kind_windows(text) for word in window)
        total = sum(counts.values())
        rates.update({word: count / total for word, count in counts.items()})
    return tuple(sorted(word for word, _ in rates.most_common(FREQUENT)))


def learn(papers: dict[str, list[str]], others: list[str]) -> KindClassifier:
    """The corpora of papers weigh the same, and both sides do."""
    everything = [text for texts in papers.values() for text in texts]
    words = frequent_words(everything, others)
    rows, kinds, weights = [], [], []
    for texts, kind, weight in [(t, 1, 1 / len(papers) / len(t)) for t in papers.values()] + [
        (others, 0, 1 / len(others))
    ]:
        for text in texts:
            for window in kind_windows(text)[:2]:
                rows.append(kind_features(window, words))
                kinds.append(kind)
                weights.append(weight)
    table = np.array(rows, np.float32)
    spread = table.std(0) + 1e-3
    scale = np.array(weights) * len(rows) / sum(weights)
    fitted = LogisticRegression(C=STRENGTH / len(rows) * 10, max_iter=300).fit(
        table / spread, kinds, sample_weight=scale
    )
    learned = tuple(round(float(w), 4) for w in fitted.coef_[0] / spread)
    return KindClassifier(
        "scholarly papers or abstracts", "en", words, learned, round(float(fitted.intercept_[0]), 4), 0.0
    )


def with_threshold(learned: KindClassifier, papers: dict[str, list[str]]) -> KindClassifier:
    """So that at most so many of each corpus's texts, on which nothing was learned, are refused."""
    least = min(np.quantile([learned.score(text) for text in texts], REFUSED_BY_THRESHOLD) for texts in papers.values())
    return KindClassifier(**{**learned.to_json(), "least": round(float(least), 4)})


def refused(learned: KindClassifier, cases: list[tuple[str, ...]]) -> str:
    """Of how many cases a text at least is refused."""
    count = sum(bool(learned.strange(texts)) for texts in cases)
    return f"{count / max(len(cases), 1):6.1%} of {len(cases)}"


def single(texts: list[str]) -> list[tuple[str, ...]]:
    return [(text,) for text in texts]


def in_twos(texts: list[str]) -> list[tuple[str, ...]]:
    return list(zip(texts[::2], texts[1::2], strict=False))


def unlike_cases(folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """Pairs of texts on which nothing was learned or chosen."""
    federalist = [row["text"] for row in read(folder, "federalist")]
    found = {"federalist": in_twos(federalist), "federalist, 120 words": in_twos(pieces(federalist, 8, 8, (120,)))}
    for row in read(folder, "pan14-train"):
        found.setdefault(f"pan14 {row['set']}", []).append((row["unknown"], *row["known"]))
    fan: dict[str, list[str]] = {}
    for row in read(folder, "pan19"):
        if len(texts := fan.setdefault(f"pan19 {row['lang']}", [])) < 600:
            texts.append(row["text"])
    found |= {name: in_twos(texts) for name, texts in fan.items()}
    for name in ("eltec-spa", "eltec-hun"):
        found[name] = in_twos(pieces([row["text"] for row in read(folder, name)], 4, 9))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--check", action="store_true", help="also learn without each corpus of papers")
    given = parser.parse_args()
    whole = {name: paper_texts(given.corpora, name, most) for name, most in PAPER_CORPORA.items()}
    fifth = {name: len(texts) // 5 for name, texts in whole.items()}
    test = {name: pieces(texts[: fifth[name]], 1, 5) for name, texts in whole.items()}
    valid = {name: pieces(texts[fifth[name] : 2 * fifth[name]], 1, 6) for name, texts in whole.items()}
    train = {name: pieces(texts[2 * fifth[name] :], 2, 7) for name, texts in whole.items()}
    others = other_pieces(given.corpora)
    learned = with_threshold(learn(train, others), valid)
    print(f"{len(others)} pieces of other kinds; threshold {learned.least:+.2f}")
    report = {name: refused(learned, single(texts)) for name, texts in test.items()}
    dev = [row["text"] for row in read(given.corpora, "peerread-dev")]
    report["peerread-dev"] = refused(learned, single(pieces(dev, 1, 8)))
    report |= {f"{name}, pairs": refused(learned, cases) for name, cases in unlike_cases(given.corpora).items()}
    for name, share in report.items():
        print(f"{name:28} refused {share}")
    about = {"corpora": list(PAPER_CORPORA), "others": ["eltec-eng", "anthology", "synth"], "refused": report}
    PAPERS.write_text(json.dumps({"about": about, "classifier": learned.to_json()}, indent=0) + "\n", encoding="utf-8")
    for name in PAPER_CORPORA if given.check else ():
        without = {other: texts for other, texts in train.items() if other != name}
        kept = {other: texts for other, texts in valid.items() if other != name}
        print(
            f"{name} when not learned from: refused {refused(with_threshold(learn(without, others), kept), single(test[name]))}"
        )


if __name__ == "__main__":
    main()
