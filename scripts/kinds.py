"""Learn what `verify` goes by without a reference: which kind a text is of, and what likeness is worth in each kind.

    python scripts/kinds.py ../shared/corpora [--keep FOLDER] [--only kinds|check|calibrations]

Writes `answer/kinds.json` and, beside the model, `calibrations/papers.json`, `abstracts.json` and `fiction.json`. Learned from:
eLife and Language Science Press (papers), abstracts of arXiv and of ACL under CC BY, English novels of ELTeC; other kinds
are also the built-in essays, made-up prose, and what people say in the novels.

People are divided as the model's training divided them. The kinds are told by documents of those it was trained on; least
scores and calibrations come from those it was validated by, and every figure that is printed from those it was tested on.
Only ten authors of ELTeC have several novels, so there the figures come from leaving writers out, a fifth at a time. Scores
are kept in `--keep`.
"""

import argparse
import hashlib
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from idiograph.answer.kinds import (
    KINDS_FILE,
    VOCABULARY_FILE,
    Kind,
    KnownKinds,
    LinearRule,
    kind_features,
    kind_windows,
    known_kinds,
    plain_words,
)
from idiograph.answer.likelihood import (
    Calibration,
    RatioCheck,
    Scored,
    effective_count,
    fit_logistic,
    fit_scores,
    learn_topic,
    reach_of_writers,
)
from idiograph.answer.pairs import TextPair, draw_pairs, pair_scores, word_counts
from idiograph.answer.verify import CALIBRATIONS_BY_KIND, PairCalibration
from idiograph.corpus.build import prepare_papers
from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.readers import read_documents
from idiograph.loading import load
from idiograph.measures.likelihood import auc, cllr, cllr_min
from idiograph.mining.catalog import read_catalog
from idiograph.rankers.background import BackgroundRates, UsualRates
from idiograph.recipe import CalibrateRecipe, CorpusRecipe, MineRecipe
from idiograph.store import MAKE, MANIFEST, parse_manifest, seal, timestamp, write_json
from idiograph.synth.anthology import anthology
from idiograph.text.words import content_words, word_overlap
from idiograph.types import Document

SPLITS = ("train", "valid", "test")
OPEN = ("CC-BY-3", "CC-BY-4", "CC0", "CC-BY 4")
WITHOUT_TEXTS = CorpusRecipe(
    filters=False, language="depositor", duplicates="keep", citations="keep", formulae="drop"
)  # to divide people by their names alone
SPOKEN = re.compile(r'["“]([^"”]{20,400})["”]')


@dataclass(frozen=True)
class Source:
    """A corpus of papers or abstracts: who counts as the writer, and how many documents are taken of each split."""

    label: str
    most: tuple[int, int, int]
    kind: str
    per_author: int  # pairs


SOURCES = {
    "elife": Source("last", (1200, 700, 700), "papers", 3),
    "langsci": Source("first", (1000, 400, 400), "papers", 6),
    "acl-abstracts": Source("first", (2500, 900, 900), "abstracts", 2),
    "arxiv-abstracts": Source("identified", (3500, 1500, 1500), "abstracts", 1),
}
LENGTHS = {"papers": (150, 300, 600, 1200, 2000), "abstracts": (60, 120, 240), "fiction": (150, 300, 600, 1200, 2000)}
PIECES = (60, 120, 240, 400, 800)  # words that a text is cut to, to learn what kind it is of
FREQUENT, ENDINGS = 500, 150
STRENGTH = 0.005  # of the weights; larger is freer
REFUSED_WHEN_UNSEEN = 0.2  # of a corpus that a rule was not learned from, by the least score
REFUSED_OF_WRITERS = 0.08  # of texts by writers whom the rule of fiction was not learned from
TOPICAL = 3  # pairs by two hands on one topic, for each pair by one
SAID = {"papers": "scholarly papers", "abstracts": "abstracts of papers", "fiction": "English fiction"}
FICTION_PAIRS, FICTION_FOLDS = 40, 5
SHORTEST_FICTION = 500  # words; of shorter texts the ratios were worth next to nothing
NEW_WORDS_LET_PASS = 0.85  # of texts whose author the vocabulary does not know


def english_documents(folder: Path, name: str) -> list[Document]:
    found = (d for d in read_documents(str(folder / f"{name}.jsonl.zst")) if isinstance(d, Document))
    return [d for d in found if d.licence.startswith(OPEN) and d.lang in ("en", "")]


def divide_documents(folder: Path, name: str) -> dict[str, list[Document]]:
    """Documents of each split of the model's people, cleaned as a corpus is; up to four of a writer."""
    chosen = SOURCES[name]
    everything = {d.id: d for d in read_documents(str(folder / f"{name}.jsonl.zst")) if isinstance(d, Document)}
    with tempfile.TemporaryDirectory() as work:
        bare = (replace(d, text="Its text is of no matter here.") for d in everything.values())
        build_corpus(bare, Path(work) / "c", WITHOUT_TEXTS)
        mining = MineRecipe.model_validate({"label": chosen.label, "lang": "any"})
        catalog = read_catalog(Corpus(Path(work) / "c"), mining)
    rows = list(zip(catalog.shown["id"].to_pylist(), catalog.split.tolist(), catalog.label.tolist(), strict=True))
    usable = {d.id for d in everything.values() if d.licence.startswith(OPEN) and d.lang in ("en", "")}
    draw = random.Random(1)
    found = {}
    for at, split in enumerate(SPLITS):
        sets: dict[int, list[Document]] = defaultdict(list)
        for identity, place, label in rows:
            if place == at and label >= 0 and identity in usable:
                sets[label].append(everything[identity])
        found[split] = clean_documents(take_documents([sets[one] for one in sorted(sets)], at, chosen.most[at], draw))
    return found


def take_documents(sets: list[list[Document]], split: int, most: int, draw: random.Random) -> list[Document]:
    draw.shuffle(sets)
    if split == 0:
        return [each[draw.randrange(len(each))] for each in sets][:most]
    taken: list[Document] = []
    for each in [s for s in sets if len(s) > 1] + [s for s in sets if len(s) == 1]:
        taken += draw.sample(each, min(4, len(each)))
        if len(taken) >= most:
            break
    return taken


def clean_documents(documents: list[Document]) -> list[Document]:
    blocks = (documents[at : at + 200] for at in range(0, len(documents), 200))
    found = (each for block in blocks for each in prepare_papers((list(block), CorpusRecipe())))
    return [each for each in found if isinstance(each, Document) and each.lang == "en"]


def cut(text: str, words: int, draw: random.Random) -> str:
    parts = text.split()
    start = draw.randrange(max(len(parts) - words, 0) + 1)
    return " ".join(parts[start : start + words])


def pieces(texts: Sequence[str], per_text: int, seed: int, lengths: Sequence[int] = PIECES) -> list[str]:
    draw = random.Random(seed)
    found = [cut(text, draw.choice(lengths), draw) for text in texts for _ in range(per_text)]
    return [piece for piece in found if len(piece.split()) >= 50]


@dataclass(frozen=True)
class Sample:
    """Everything that is learned from."""

    papers: dict[str, dict[str, list[Document]]]  # by corpus and split
    novels: list[Document]
    authors: dict[str, list[Document]]  # of novels

    @classmethod
    def read(cls, folder: Path) -> "Sample":
        novels = [d for d in read_documents(str(folder / "eltec-eng.jsonl.zst")) if isinstance(d, Document)]
        authors: dict[str, list[Document]] = defaultdict(list)
        for novel in novels:
            authors[min(novel.author_set)].append(novel)
        return cls({name: divide_documents(folder, name) for name in SOURCES}, novels, authors)

    def pieces_of_papers(self, name: str, split: str) -> list[str]:
        """Abstracts are taken whole; chapters often, as there are few of them."""
        texts = [d.text for d in self.papers[name][split]]
        if SOURCES[name].kind == "abstracts":
            return [text for text in texts if len(text.split()) >= 50][: 1800 if name == "acl-abstracts" else 2500]
        per_text = 2 if split == "train" else 3 if name == "langsci" else 1
        return pieces(texts, per_text, len(name) + SPLITS.index(split))

    def other_pieces(self) -> dict[str, list[str]]:
        spoken = [" ".join(SPOKEN.findall(novel.text)) for novel in self.novels]
        made_up = [d.text for d in read_documents("synth:documents=200") if isinstance(d, Document)]
        return {
            "novels": pieces([novel.text for novel in self.novels], 25, 3),
            "speech of novels": pieces([text for text in spoken if len(text.split()) > 300], 8, 4),
            "essays": pieces([d.text for d in anthology()], 12, 5, PIECES[:3]),
            "made-up prose": pieces(made_up, 4, 6),
        }


def words_in_most(corpora: dict[str, list[str]], sides: tuple[Sequence[str], Sequence[str]]) -> tuple[str, ...]:
    """Words that are in many texts of at least three of the four corpora of a side: not those of a field."""
    share: dict[str, dict[str, float]] = defaultdict(dict)
    for name, texts in corpora.items():
        some = texts[:800]
        held: Counter[str] = Counter()
        for text in some:
            held.update({token.lower() for window in kind_windows(text) for token in window if token[0].isalpha()})
        for word, count in held.items():
            share[word][name] = count / len(some)
    rank = {w: max(sorted(by.get(name, 0.0) for name in side)[1] for side in sides) for w, by in share.items()}
    return tuple(sorted(sorted(rank, key=lambda word: (-rank[word], word))[:FREQUENT]))


def usual_endings(corpora: dict[str, list[str]], words: Sequence[str]) -> tuple[str, ...]:
    listed, counts = set(words), Counter[str]()
    for texts in corpora.values():
        tokens = (t.lower() for text in texts[:300] for window in kind_windows(text) for t in window if t[0].isalpha())
        counts.update(word[-3:] for word in tokens if word not in listed)
    return tuple(sorted(sorted(counts, key=lambda end: (-counts[end], end))[:ENDINGS]))


def rows_of_texts(known: KnownKinds, texts: Sequence[str]) -> np.ndarray:
    places = known.word_places, known.ending_places
    return np.array([kind_features(window, *places) for text in texts for window in kind_windows(text)])


def learn_rule(rows: dict[str, np.ndarray], of: Sequence[str], against: Sequence[str]) -> LinearRule:
    """Every corpus of a side weighs the same, and both sides do."""
    names = [*of, *against]
    table = np.concatenate([rows[name] for name in names])
    side = np.concatenate([np.full(len(rows[name]), name in of) for name in names])
    weight = np.concatenate([np.full(len(rows[n]), 1 / len(rows[n]) / len(of if n in of else against)) for n in names])
    middle, spread = table.mean(0), table.std(0) + 1e-3
    fitted = LogisticRegression(C=STRENGTH, max_iter=300).fit(
        (table - middle) / spread, side, sample_weight=weight * len(table) / weight.sum()
    )
    weights = fitted.coef_[0] / spread
    bias = float(fitted.intercept_[0] - middle @ weights)
    return LinearRule(tuple(round(float(w), 4) for w in weights), round(bias, 4))


def learn_kinds(sample: Sample, others: dict[str, list[str]]) -> KnownKinds:
    """Rules from train; the least scores from whole corpora, or writers, that a rule was not learned from."""
    train = {name: sample.pieces_of_papers(name, "train") for name in SOURCES}
    corpora = train | others
    words = words_in_most(corpora, (tuple(train), tuple(others)))
    known = KnownKinds(words, usual_endings(corpora, words), ())
    rows = {name: rows_of_texts(known, texts) for name, texts in corpora.items()}
    scholarly = learn_rule(rows, tuple(train), tuple(others))
    least = []
    for name in SOURCES:
        without = learn_rule(rows, [other for other in SOURCES if other != name], tuple(others))
        scores = scores_of_texts(known, without, sample.pieces_of_papers(name, "valid"))
        least.append(float(np.quantile(scores, REFUSED_WHEN_UNSEEN)))
        print(f"{name} when not learned from: {REFUSED_WHEN_UNSEEN:.0%} of its texts score under {least[-1]:.2f}")
    by_kind = {kind: [n for n, s in SOURCES.items() if s.kind == kind] for kind in ("papers", "abstracts")}
    rather = learn_rule(rows, by_kind["papers"], by_kind["abstracts"])
    reverse = LinearRule(tuple(-w for w in rather.weights), -rather.bias)
    shared = (scholarly, round(min(least), 3))
    kinds = (
        Kind("papers", SAID["papers"], "en", *shared, rather),
        Kind("abstracts", SAID["abstracts"], "en", *shared, reverse),
        learn_fiction(sample, known, rows),
    )
    return replace(known, kinds=kinds)


def check_kinds(sample: Sample, known: KnownKinds, others: dict[str, list[str]]) -> None:
    """Print what is refused of texts by the model's test people: of corpora and fields learned from, and left out whole."""
    scholarly = known.kinds[0]
    train = {name: sample.pieces_of_papers(name, "train") for name in SOURCES}
    rows = {name: rows_of_texts(known, texts) for name, texts in (train | others).items()}
    for name in SOURCES:
        texts = sample.pieces_of_papers(name, "test")
        without = learn_rule(rows, [other for other in SOURCES if other != name], tuple(others))
        own, unseen = (scores_of_texts(known, rule, texts) for rule in (scholarly.rule, without))
        print(f"{name}: refused {share_under(own, scholarly)}, when not learned from {share_under(unseen, scholarly)}")
        for field in fields_of(sample.papers[name]["test"]):
            rest = [d for d in sample.papers[name]["train"] if field not in d.domains[:1]]
            only = [d for d in sample.papers[name]["test"] if field in d.domains[:1]]
            fewer = pieces([d.text for d in rest], 1, 7)
            rule = learn_rule({**rows, name: rows_of_texts(known, fewer)}, tuple(SOURCES), tuple(others))
            scores = scores_of_texts(known, rule, pieces([d.text for d in only], 1, 8))
            print(f"  {field}: refused {share_under(scores, scholarly)} when not learned from")


def fields_of(documents: list[Document]) -> list[str]:
    """The five most frequent first fields."""
    return [field for field, _ in Counter(d.domains[0] for d in documents if d.domains).most_common(5)]


def share_under(scores: np.ndarray, kind: Kind) -> str:
    return f"{(scores < kind.least).mean():.1%} of {len(scores)}"


def learn_fiction(sample: Sample, known: KnownKinds, rows: dict[str, np.ndarray]) -> Kind:
    """The least score lets all but so many texts pass whose writers a rule was not learned from."""
    against = [*SOURCES, "essays", "made-up prose"]
    held = []
    for fold in range(FICTION_FOLDS):
        out = [
            n for at, a in enumerate(sorted(sample.authors)) if at % FICTION_FOLDS == fold for n in sample.authors[a]
        ]
        rest = pieces([n.text for n in sample.novels if n not in out], 10, 3)
        rule = learn_rule({**rows, "novels": rows_of_texts(known, rest)}, ["novels"], against)
        held += scores_of_texts(known, rule, pieces([n.text for n in out], 4, 9)).tolist()
    least = round(float(np.quantile(held, REFUSED_OF_WRITERS)), 3)
    rule = learn_rule(rows, ["novels", "speech of novels"], against)
    new_words = usual_new_words(sample)
    return Kind("fiction", SAID["fiction"], "en", rule, least, None, new_words, SHORTEST_FICTION)


def usual_new_words(sample: Sample) -> tuple[float, float]:
    """The share of words outside the vocabulary of other authors that all but so many texts stay under, by length."""
    draw = random.Random(2)
    own = {a: {w for n in novels for w in plain_words(n.text)} for a, novels in sample.authors.items()}
    held = Counter(word for words in own.values() for word in words)
    shares = []
    sizes = (SHORTEST_FICTION, 4 * SHORTEST_FICTION)
    for size in sizes:
        rows = []
        for author, novels in sample.authors.items():
            for novel in novels * 3:
                words = plain_words(cut(novel.text, size, draw))
                rows.append(sum(held[word] == (word in own[author]) for word in words) / len(words))
        shares.append(float(np.quantile(rows, NEW_WORDS_LET_PASS)))
    words = [0.83 * size for size in sizes]  # of them have no capital
    slope = (shares[0] - shares[1]) / (words[0] ** -0.5 - words[1] ** -0.5)
    return round(shares[1] - slope * words[1] ** -0.5, 5), round(slope, 5)


def write_vocabulary(sample: Sample) -> None:
    words = sorted({word for novel in sample.novels for word in plain_words(novel.text)})
    VOCABULARY_FILE.write_text("\n".join(words) + "\n", encoding="utf-8")


def scores_of_texts(known: KnownKinds, rule: LinearRule, texts: Sequence[str]) -> np.ndarray:
    return np.array([rule.score(rows_of_texts(known, [text])) for text in texts])


@dataclass(frozen=True)
class Drawn:
    """Pairs, the last of which were chosen for their topic, with what their texts share."""

    pairs: list[TextPair]
    usual: np.ndarray
    overlaps: np.ndarray
    scored: Scored

    def take(self, which: np.ndarray) -> "Drawn":
        chosen = [pair for pair, taken in zip(self.pairs, which, strict=True) if taken]
        return Drawn(chosen, self.usual[which], self.overlaps[which], self.scored.take(which))

    @classmethod
    def of(cls, pairs: list[TextPair], topical: list[TextPair], scores: np.ndarray) -> "Drawn":
        both = pairs + topical
        same = np.array([pair.same for pair in both])
        overlaps = np.array([word_overlap(content_words(pair.a), content_words(pair.b)) for pair in both])
        usual = np.arange(len(both)) < len(pairs)
        return cls(both, usual, overlaps, Scored(scores, effective_count(*word_counts(both)), same))


def draw_scholarly(sample: Sample, kind: str, split: str) -> tuple[list[TextPair], list[TextPair]]:
    pairs: list[TextPair] = []
    topical: list[TextPair] = []
    for name, source in SOURCES.items():
        if source.kind == kind:
            chosen = {"label": source.label, "per_author": source.per_author, "different": 4, "pairs": 450}
            recipe = CalibrateRecipe.model_validate({**chosen, "lengths": LENGTHS[kind], "lang": "en"})
            drawn = draw_pairs(sample.papers[name][split], recipe)
            pairs += drawn
            topical += pairs_on_one_topic(drawn, sample.papers[name][split])
    return pairs, topical


def pairs_on_one_topic(pairs: list[TextPair], documents: list[Document]) -> list[TextPair]:
    """With each first text the second texts of other pairs that share the most words with it, by nobody of its people."""
    people = {d.id: {a.key for a in d.authors} | {a.name.lower() for a in d.authors} for d in documents}
    same = [pair for pair in pairs if pair.same]
    words = {text: content_words(text) for pair in same for text in (pair.a, pair.b)}
    sizes = {text: np.log(len(text.split())) for text in words}
    drawn = {(pair.a, pair.b) for pair in pairs}
    found = []
    for one in same:
        near = [
            (word_overlap(words[one.a], words[other.b]), at)
            for at, other in enumerate(same)
            if (one.a, other.b) not in drawn
            and abs(sizes[other.b] - sizes[one.b]) <= 0.5
            and not (people[one.docs[0]] | people[one.docs[1]]) & people[other.docs[1]]
        ]
        for _, at in sorted(near, reverse=True)[:TOPICAL]:
            other, docs = same[at], (one.docs[0], same[at].docs[1])
            found.append(TextPair(one.a, other.b, False, one.anchor | other.writers, docs, one.anchor))
    return found


def segments(sample: Sample, draw: random.Random) -> dict[str, list[str]]:
    """Texts from all over each novel, more of those whose authors have several."""
    found = {}
    for novels in sample.authors.values():
        for novel in novels:
            count = 10 if len(novels) > 1 else 4
            lengths = draw.sample(LENGTHS["fiction"] * 2, count)
            found[novel.id] = [segment(novel.text, n, (at + draw.random()) / count) for at, n in enumerate(lengths)]
    return found


def segment(text: str, words: int, place: float) -> str:
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    start = int(place * 0.999 * max(len(spans) - words, 1))
    return text[spans[start][0] : spans[min(start + words, len(spans)) - 1][1]]


def draw_fiction(sample: Sample) -> list[TextPair]:
    """Pairs of one author from different novels; with each first text texts of as many words by five other authors."""
    draw = random.Random(5)
    texts = segments(sample, draw)
    several = [author for author, novels in sample.authors.items() if len(novels) > 1]
    alone = [author for author, novels in sample.authors.items() if len(novels) == 1]
    pairs = []
    for author in several:
        novels = sample.authors[author]
        every = [(x, y, s, t) for x in novels for y in novels if x is not y for s in texts[x.id] for t in texts[y.id]]
        for x, y, one, two in draw.sample(every, FICTION_PAIRS):
            pairs.append(TextPair(one, two, True, frozenset({author}), (x.id, y.id), frozenset({author})))
            for other in draw.sample(alone, 3) + draw.sample([a for a in several if a != author], 2):
                z = draw.choice(sample.authors[other])
                near = min(texts[z.id], key=lambda t: abs(len(t.split()) - len(two.split())) + 20 * draw.random())
                pairs.append(TextPair(one, near, False, frozenset({author, other}), (x.id, z.id), frozenset({author})))
    for _ in range(800):
        one, two = draw.sample(alone, 2)
        x, z = sample.authors[one][0], sample.authors[two][0]
        both = (draw.choice(texts[x.id]), draw.choice(texts[z.id]))
        pairs.append(TextPair(*both, False, frozenset({one, two}), (x.id, z.id), frozenset({one})))
    return pairs


def kept_scores(pairs: list[TextPair], ranker, keep: Path) -> np.ndarray:
    """The score of every pair; looked up where the same texts were scored before."""
    said = hashlib.blake2b(getattr(ranker, "fingerprint", ranker.name).encode(), digest_size=8)
    for pair in pairs:
        said.update(f"{pair.a}\0{pair.b}\0".encode())
    path = keep / f"{said.hexdigest()}.npy"
    if not path.exists():
        keep.mkdir(parents=True, exist_ok=True)
        np.save(path, pair_scores(pairs, ranker))
    return np.load(path)


def measure(name: str, ratios: np.ndarray, same: np.ndarray) -> RatioCheck:
    one, two = ratios[same], ratios[~same]
    cost = cllr(one, two)
    values = (round(float(value), 3) for value in (cost, cost - cllr_min(one, two), auc(one, two)))
    return RatioCheck(name, len(one), len(two), *values)


def checks_of(ratios: np.ndarray, drawn: Drawn) -> tuple[RatioCheck, ...]:
    """All the usual pairs, the shorter and the longer ones, and those on one topic."""
    same, words = drawn.scored.same, 2 * 10**drawn.scored.sizes
    edges = np.quantile(words[drawn.usual], [1 / 3, 2 / 3])
    short, long = drawn.usual & (words < edges[0]), drawn.usual & (words > edges[1])
    parts = {"all": drawn.usual, f"under {edges[0]:.0f} words": short, f"over {edges[1]:.0f} words": long}
    if not drawn.usual.all():
        parts["on one topic"] = same | ~drawn.usual
    return tuple(measure(name, ratios[part], same[part]) for name, part in parts.items())


def people_of(drawn: Drawn) -> tuple[int, int]:
    """How many writers have pairs by one hand, and how many there are."""
    of_one = {person for pair in drawn.pairs if pair.same for person in [min(pair.writers)]}
    return len(of_one), len(
        {frozenset(pair.anchor) for pair in drawn.pairs} | {p.writers - p.anchor for p in drawn.pairs}
    )


def calibrate(drawn: Drawn, fingerprint: str, source: str) -> tuple[Calibration, PairCalibration]:
    plain = fit_scores(drawn.scored.take(drawn.usual), fingerprint, source)
    known = reach_of_writers(plain, *people_of(drawn.take(drawn.usual)))
    ratios = known.ratios(drawn.scored.scores, drawn.scored.sizes)
    topic = learn_topic(ratios, drawn.overlaps, drawn.scored, drawn.usual)
    different = drawn.usual & ~drawn.scored.same
    return known, PairCalibration(known, round(float(np.quantile(drawn.overlaps[different], 0.95)), 4), {}, topic)


def ratios_by(known: PairCalibration, drawn: Drawn) -> np.ndarray:
    plain = known.calibration.ratios(drawn.scored.scores, drawn.scored.sizes)
    return known.topic.lower(plain, drawn.overlaps, drawn.scored.sizes) if known.topic else plain


def calibrate_scholarly(sample: Sample, kind: str, keep: Path) -> PairCalibration:
    """Learned from the model's validation people, checked on its test people."""
    style = load()
    drawn = {}
    for split in ("valid", "test"):
        pairs, topical = draw_scholarly(sample, kind, split)
        drawn[split] = Drawn.of(pairs, topical, kept_scores(pairs + topical, style, keep))
    source = ", ".join(name for name, chosen in SOURCES.items() if chosen.kind == kind)
    plain, known = calibrate(drawn["valid"], style.fingerprint, source)
    test = drawn["test"]
    before = checks_of(plain.ratios(test.scored.scores, test.scored.sizes), test)
    return described(known, kind, checks_of(ratios_by(known, test), test), before)


def described(known: PairCalibration, kind: str, checks, before) -> PairCalibration:
    about = {"preset": "sound", "created": timestamp(), "languages": ["en"], "kind": kind}
    about |= {"lengths": list(LENGTHS[kind]), "before the topic counts": [asdict(check) for check in before]}
    for said, rows in (("", checks), (", before the topic counts", before)):
        for row in rows:
            print(
                f"{kind}, {row.pairs}{said}: {row.same} + {row.different} pairs, Cllr {row.cllr}, {row.cllr_cal}, AUC {row.auc}"
            )
    return replace(known, about=about, checks=checks)


def calibrate_fiction(sample: Sample) -> PairCalibration:
    """By words and letters, against the rates of authors with one novel; each pair checked without its writers."""
    draw = random.Random(3)
    alone = [novels[0].text for novels in sample.authors.values() if len(novels) == 1]
    some = [cut(text, 1000, draw) for text in alone for _ in range(6)]
    tables = (UsualRates.learn("words", some, 1000, 1.0), UsualRates.learn("letters", some, 2000, 1.0))
    pairs = draw_fiction(sample)
    columns = np.stack([pair_scores(pairs, BackgroundRates("", (table,))) for table in tables], axis=1)
    drawn = Drawn.of(pairs, [], columns[:, 0])
    weights = weights_of(columns, drawn.scored.same)
    ratios = cross_fit_fiction(drawn, columns)
    name = "fiction"
    _, known = calibrate(scored_again(drawn, columns @ weights), f"background/{name}", "eltec-eng")
    background = BackgroundRates(
        name, tuple(replace(t, weight=round(float(w), 3)) for t, w in zip(tables, weights, strict=True))
    )
    checks = checks_of(ratios, drawn)
    return replace(described(known, name, checks, checks), background=background)


def weights_of(columns: np.ndarray, same: np.ndarray) -> np.ndarray:
    return np.maximum(fit_logistic(columns, same)[1:], 0.0)


def scored_again(drawn: Drawn, scores: np.ndarray) -> Drawn:
    return replace(drawn, scored=replace(drawn.scored, scores=scores))


def cross_fit_fiction(drawn: Drawn, columns: np.ndarray) -> np.ndarray:
    """The ratio of each pair by what was learned from the pairs of writers of other folds."""
    writers = sorted({person for pair in drawn.pairs for person in pair.writers})
    fold = {person: at % FICTION_FOLDS for at, person in enumerate(writers)}
    folds = [frozenset(fold[person] for person in pair.writers) for pair in drawn.pairs]
    ratios = np.zeros(len(folds))
    for asked in set(folds):
        train, held = np.array([not f & asked for f in folds]), np.array([f == asked for f in folds])
        weights = weights_of(columns[train], drawn.scored.same[train])
        _, known = calibrate(scored_again(drawn, columns @ weights).take(train), "", "")
        ratios[held] = ratios_by(known, scored_again(drawn, columns @ weights).take(held))
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "idiograph-bench" / "kinds")
    parser.add_argument("--only", choices=("kinds", "check", "calibrations"))
    given = parser.parse_args()
    sample = Sample.read(given.corpora)
    if given.only in (None, "kinds"):
        write_vocabulary(sample)
        known = learn_kinds(sample, sample.other_pieces())
        about = {
            "corpora": [*SOURCES, "eltec-eng"],
            "others": ["anthology", "synth"],
            "refused when unseen": REFUSED_WHEN_UNSEEN,
        }
        write_json(KINDS_FILE, {"about": about, "known": known.to_json()})
    if given.only in (None, "check"):
        check_kinds(sample, known_kinds(), sample.other_pieces())
    if given.only in (None, "calibrations"):
        folder = load().folder
        (folder / CALIBRATIONS_BY_KIND).mkdir(exist_ok=True)
        made = parse_manifest(folder / MANIFEST, "model", MAKE["model"])
        for kind in ("papers", "abstracts"):
            calibrate_scholarly(sample, kind, given.keep).save(folder / CALIBRATIONS_BY_KIND / f"{kind}.json")
        calibrate_fiction(sample).save(folder / CALIBRATIONS_BY_KIND / "fiction.json")
        seal(folder, made)


if __name__ == "__main__":
    main()
