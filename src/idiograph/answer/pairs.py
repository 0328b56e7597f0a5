"""Pairs of texts by one hand and by two, alike in everything else: language, field, and how long the two texts are.

A calibration is only as good as the pairs that it was learned from. For every same-author pair there are different-author
pairs with the same first text; the second is that of another pair, from the same field and cut to the same length.
Lengths go up a ladder, so that a calibration sees short texts and long ones. The score of a pair is that of all its patches.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from idiograph.corpus.corpus import Corpus, document_row
from idiograph.errors import ArtifactError, InputError, SpecError, TooShort
from idiograph.identity import Identities
from idiograph.mining.catalog import LABELS, read_catalog
from idiograph.mining.split import SPLITS
from idiograph.mining.triplets import locate_triplets, read_triplets
from idiograph.recipe import CalibrateRecipe, MineRecipe
from idiograph.runner import Progress
from idiograph.seeded import key
from idiograph.spec import unknown_choice
from idiograph.store import Manifest, read_manifest
from idiograph.style.model import Ranker, Style
from idiograph.style.patches import Patches
from idiograph.style.score import SIMILARITIES_PER_TILE
from idiograph.text.passages import PASSAGE_WORDS, count_words, cut_passages, passage_texts
from idiograph.types import Document, field_of, fold

MIN_WORDS_TO_COMPARE = 50
TRIES_PER_LIKENESS = 60  # texts looked at for a different-author pair before one asks for less likeness
MAX_DOCUMENTS_PER_AUTHOR_SET = 40  # documents of one author-set that pairs are made of
TEXTS_PER_BLOCK = 64  # texts encoded at once
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two texts, whether one hand wrote both, and everybody who must be left out together with them."""

    a: str
    b: str
    same: bool
    writers: frozenset[str]
    docs: tuple[str, str]
    anchor: frozenset[str]  # who wrote the first text


@dataclass(frozen=True, slots=True)
class Facts:
    """What a draw needs to know of a document."""

    at: int
    id: str
    label: frozenset[str]
    people: frozenset[str]
    field: str
    lang: str
    container: str


def facts_of(documents: Corpus | Sequence[Document], recipe: CalibrateRecipe) -> list[Facts]:
    """Everything but the texts, for the documents of the split asked for."""
    wanted = in_split(documents, recipe)
    rows = documents.table.to_pylist() if isinstance(documents, Corpus) else [document_row(d) for d in documents]
    identities = Identities.of(each["authors"] for each in rows)
    facts = []
    for at, each in enumerate(rows):
        if (wanted is None or at in wanted) and each["authors"] and recipe.lang in ("any", each["lang"] or recipe.lang):
            people = {fold(a["name"]) for a in each["authors"]} | {a["id"] for a in each["authors"] if a["id"]}
            field = field_of(each["domains"][0]) if each["domains"] else ""
            label = LABELS[recipe.label](identities.keys(each["authors"]))
            facts.append(Facts(at, each["id"], label, frozenset(people), field, each["lang"], each["container"]))
    return facts


def in_split(documents: Corpus | Sequence[Document], recipe: CalibrateRecipe) -> set[int] | None:
    """The rows of the documents whose people are in the splits asked for, as `mine` divides them; None for all."""
    if recipe.split == ("all",) or not isinstance(documents, Corpus):
        return None
    mining = MineRecipe.model_validate({"label": recipe.label, "lang": "any", "split": recipe.split_by})
    split = read_catalog(documents, mining).split
    return set(np.flatnonzero(np.isin(split, [SPLITS.index(name) for name in recipe.split])).tolist())


@dataclass(frozen=True, slots=True)
class Couple:
    """Two documents of one hand, cut; `rung` is the length that the second was cut to."""

    a: Facts
    b: Facts
    one: str
    two: str
    rung: int


class PairDrawing:
    """Pairs drawn from documents."""

    def __init__(self, documents: Corpus | Sequence[Document], recipe: CalibrateRecipe) -> None:
        self.documents, self.recipe = documents, recipe
        self.texts: dict[int, str] = {}
        self.facts = facts_of(documents, recipe)

    def random(self, *names: object) -> np.random.Generator:
        return np.random.default_rng(key(self.recipe.seed, "pairs", *names))

    def same(self) -> list[tuple[Facts, Facts]]:
        """Two documents of an author-set, from different books; a few pairs of each set, sets in a random order."""
        sets: dict[tuple[frozenset[str], str], list[Facts]] = defaultdict(list)
        for f in self.facts:
            if f.label:
                sets[f.label, f.lang].append(f)
        many = [s for s in sets.items() if len(s[1]) > 1]
        many.sort(key=lambda s: key(self.recipe.seed, "set", *sorted(s[0][0]), s[0][1]))
        pairs = []
        for (label, _), members in many:
            different_books = self.recipe.containers == "apart"
            pairs += couples(members, self.recipe.per_author, different_books, self.random("couples", *sorted(label)))
            if len(pairs) >= self.recipe.pairs:
                break
        return pairs[: self.recipe.pairs]

    def read(self, rows: Iterable[int]) -> None:
        """The texts of these documents, in the order of the disk: a shard is unpacked once."""
        for at in sorted(set(rows)):
            self.texts[at] = self.documents.text(at) if isinstance(self.documents, Corpus) else self.documents[at].text

    def cut(self, f: Facts, size: int, *names: object) -> str | None:
        """Passages in a row from somewhere in a document, about `size` words or as many as it has; None if that is too little."""
        text = self.texts[f.at]
        words = min(size, PASSAGE_WORDS)
        passages, count = cut_passages(text, f.lang, words), round(size / words)
        start = int(self.random("cut", f.id, *names).integers(max(len(passages) - count, 0) + 1))
        run = passages[start : start + count]
        chosen = text[run[0][0] : run[-1][1]] if run else ""
        return chosen if count_words(chosen) >= MIN_WORDS_TO_COMPARE else None

    def couples(self) -> list[Couple]:
        """The same-author pairs, cut to lengths from the ladder; those that are too short are gone."""
        plan = self.same()
        self.read(f.at for pair in plan for f in pair)
        cut_pairs = []
        for a, b in plan:
            random = self.random("lengths", a.id, b.id)
            left, right = (self.recipe.lengths[at] for at in random.integers(len(self.recipe.lengths), size=2))
            one, two = self.cut(a, left, b.id), self.cut(b, right, a.id)
            if one and two:
                cut_pairs.append(Couple(a, b, one, two, right))
        return cut_pairs

    def pairs(self) -> Iterator[TextPair]:
        """Each couple as a same-author pair, and its first text with second texts of other couples: every text has a
        part in pairs of either kind, so that no property of a text can tell the kinds apart."""
        all_couples = self.couples()
        pools: dict[tuple[object, ...], list[Couple]] = defaultdict(list)
        for c in all_couples:
            for key_ in likeness_keys(c):
                pools[key_].append(c)
        for c in all_couples:
            yield TextPair(c.one, c.two, True, c.a.label | c.b.label, (c.a.id, c.b.id), c.a.label)
            for other in self.others(c, pools):
                writers = c.a.label | other.b.label
                yield TextPair(c.one, other.two, False, writers, (c.a.id, other.b.id), c.a.label)

    def others(self, c: Couple, pools: Mapping[tuple[object, ...], Sequence[Couple]]) -> list[Couple]:
        """Couples whose second text is like this one's, by nobody who wrote here: as alike as can be had."""
        random = self.random("others", c.a.id, c.b.id)
        others: dict[str, Couple] = {}
        for key_ in likeness_keys(c):
            pool = pools[key_]
            for at in random.permutation(len(pool))[:TRIES_PER_LIKENESS]:
                if len(others) < self.recipe.different and not pool[at].b.people & (c.a.people | c.b.people):
                    others.setdefault(pool[at].b.id, pool[at])
        return list(others.values())


def likeness_keys(c: Couple) -> Iterator[tuple[object, ...]]:
    """What a different-author text should share with the couple's second, the best first."""
    yield c.b.lang, c.b.field, c.rung
    yield c.b.lang, c.b.field
    yield c.b.lang, c.rung


def couples(
    members: Sequence[Facts], count: int, different_books: bool, random: np.random.Generator
) -> Iterator[tuple[Facts, Facts]]:
    """Up to `count` pairs of documents: first those in which no document comes twice. `different_books`: no two from one."""
    members = sorted(members, key=lambda f: f.id)
    rest = [members[at] for at in random.permutation(len(members))[:MAX_DOCUMENTS_PER_AUTHOR_SET]]
    pairs = [
        (a, b) for a, b in combinations(rest, 2) if not (different_books and a.container and a.container == b.container)
    ]
    used: set[str] = set()
    fresh, again = [], []
    for a, b in pairs:
        (again if used & {a.id, b.id} else fresh).append((a, b))
        used |= {a.id, b.id} if fresh and fresh[-1] == (a, b) else set()
    yield from (fresh + again)[:count]


def draw_pairs(documents: Corpus | Sequence[Document], recipe: CalibrateRecipe | None = None) -> list[TextPair]:
    """Same-author pairs and, matched to each, different-author pairs."""
    return list(PairDrawing(documents, recipe or CalibrateRecipe()).pairs())


def from_triplets(folder: Path, split: str, limit: int) -> list[TextPair]:
    """Each triplet gives a pair of either kind; every document is the anchor of one pair of each at most."""
    folder, (name, *_) = locate_triplets(folder)
    pairs: list[TextPair] = []
    anchors: set[str] = set()
    for t in read_triplets(folder, name, split):
        if t.anchor.doc_id in anchors or len(pairs) >= 2 * limit:
            continue
        anchors.add(t.anchor.doc_id)
        a = t.anchor
        for other, same in ((t.positive, True), (t.negative, False)):
            pairs.append(
                TextPair(a.text, other.text, same, a.authors | other.authors, (a.doc_id, other.doc_id), a.authors)
            )
    return [p for p in pairs if min(count_words(p.a), count_words(p.b)) >= MIN_WORDS_TO_COMPARE]


def open_mixture(folders: Sequence[str], recipe: CalibrateRecipe) -> tuple[list[TextPair], str]:
    """The pairs of several folders together, and what they are called. `FOLDER@LABEL` has a label of its own."""
    mixture: list[TextPair] = []
    names = []
    for given in folders:
        folder, label = split_label(given, recipe.label)
        pairs, fingerprint = open_pairs(folder, recipe.model_copy(update={"label": label}))
        mixture += pairs
        names.append(f"{folder.absolute().name} ({fingerprint})")
    return mixture, ", ".join(names)


def split_label(given: str, label: str) -> tuple[Path, str]:
    """A folder, and who counts as the writer in it.

    >>> split_label("data/elife@last", "set")
    (PosixPath('data/elife'), 'last')
    """
    folder, at, own = given.rpartition("@")
    if not at or not folder or Path(given).exists():
        return Path(given), label
    if own not in LABELS:
        raise SpecError(unknown_choice("label", own, LABELS))
    return Path(folder), own


def open_pairs(folder: Path, recipe: CalibrateRecipe) -> tuple[list[TextPair], str]:
    """The pairs of a corpus or triplet folder, and the folder's fingerprint."""
    manifest = read_triplet_manifest(folder)
    if manifest:
        split = "valid" if recipe.split == ("all",) else recipe.split[0]
        return from_triplets(folder, split, recipe.pairs), manifest.fingerprint
    corpus = Corpus(folder)
    drawn = draw_pairs(corpus, recipe)
    if not any(p.same for p in drawn):
        raise InputError(
            f"no two texts of one author-set were found in '{folder}'; try --label first, last or single, or --split all"
        )
    return drawn, corpus.manifest.fingerprint


def read_triplet_manifest(path: Path) -> Manifest | None:
    """The manifest of the triplets that a path leads to; what is none is taken for a corpus, whose errors say more."""
    try:
        return read_manifest(locate_triplets(path)[0], "triplets", "")
    except ArtifactError:
        return None


def text_passages(text: str, words: int = PASSAGE_WORDS) -> list[str]:
    """A text in passages of about `words` words; refuses a text that is too short to say anything about."""
    count = count_words(text)
    if count < MIN_WORDS_TO_COMPARE:
        raise TooShort(
            f"a text of {count} words is too short to say who wrote it; {MIN_WORDS_TO_COMPARE} are the least"
        )
    return passage_texts(text, words=words)


def read_passages(texts: Sequence[str], style: Style, progress: Progress | None = None) -> list[Patches]:
    """The passages of each text, encoded."""
    found: list[Patches] = []
    for begin in range(0, len(texts), TEXTS_PER_BLOCK):
        parts = [text_passages(text) for text in texts[begin : begin + TEXTS_PER_BLOCK]]
        encoded = style.encode([p for part in parts for p in part])
        ends = np.cumsum([len(part) for part in parts])
        found += [encoded.take(np.arange(end - len(p), end)) for end, p in zip(ends, parts, strict=True)]
        if progress:
            progress(len(found), len(texts), "reading texts")
    return found


def text_score(a: Patches, b: Patches) -> float:
    """Two texts, all the patches of each taken together: the mean over patches of their best match, from both sides.

    A mean over pairs of passages is as good with a trained model, and worse with a general-purpose one.
    """
    rows = max(SIMILARITIES_PER_TILE // max(len(b.vectors), 1), 1)  # a text may be a whole folder
    forward, backward = 0.0, np.full(len(b.vectors), -np.inf, np.float32)
    for begin in range(0, len(a.vectors), rows):
        similar = a.vectors[begin : begin + rows] @ b.vectors.T
        forward += float(similar.max(axis=1).sum(dtype=np.float64))
        np.maximum(backward, similar.max(axis=0), out=backward)
    return (forward / len(a.vectors) + float(backward.mean(dtype=np.float64))) / 2


def score_matrix(texts: Sequence[str], style: Style) -> Floats:
    """The score of every text with every other."""
    read_ = read_passages(texts, style)
    scores = np.zeros((len(texts), len(texts)))
    for i, a in enumerate(read_):
        for j in range(i, len(read_)):
            scores[i, j] = scores[j, i] = text_score(a, read_[j])
    return scores


def pair_scores(pairs: Sequence[TextPair], ranker: Ranker, progress: Progress | None = None) -> Floats:
    """The score of each pair: of a style by its passages, of any other ranker by the whole texts from both sides."""
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)))
    place = {text: at for at, text in enumerate(texts)}
    if isinstance(ranker, Style):
        parts = read_passages(texts, ranker, progress)
        return np.array([text_score(parts[place[p.a]], parts[place[p.b]]) for p in pairs])
    if hasattr(ranker, "score_pairs"):  # a method that looks at a pair and not at a matrix
        return np.asarray(getattr(ranker, "score_pairs")([(p.a, p.b) for p in pairs]), np.float64)  # noqa: B009
    between = ranker.compare(texts, texts)
    return np.array(
        [(between[place[p.a], place[p.b]] + between[place[p.b], place[p.a]]) / 2 for p in pairs], np.float64
    )


def word_counts(pairs: Sequence[TextPair]) -> tuple[Floats, Floats]:
    return np.array([count_words(p.a) for p in pairs]), np.array([count_words(p.b) for p in pairs])
