"""Habits that two texts share or do not: how often function words, marks, connectives and spellings come, how long the
sentences are, against what others do.

A habit is a rate. It is told as a z-score against a background of other people's passages, and it speaks for one hand
where both texts depart from the background in the same direction: agreement = z_a · z_b, as in cosine Delta. The
agreements of all habits sum to the total shown, so a reader sees which of them carry it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice, pairwise
from typing import Any

import numpy as np

from idiograph.corpus.corpus import Corpus
from idiograph.synth.anthology import anthology
from idiograph.text.sentences import find_sentences
from idiograph.text.words import FUNCTION_WORDS, LETTER_RUN, LETTER_TOKEN

MARKS = {",": "comma", ";": "semicolon", ":": "colon", "(": "bracket", "—": "dash", "–": "dash", "!": "exclamation"}
MARKS |= {"?": "question mark", "…": "ellipsis", '"': "quotation mark", "“": "quotation mark", "«": "quotation mark"}
CONNECTIVES = (
    "however|therefore|moreover|furthermore|thus|hence|indeed|instead|although|though|whereas|nevertheless|"
    "in addition|in fact|for example|for instance|in contrast|on the other hand|in particular|as well as|such as|"
    "that is|of course|in order to|due to|because|since|while|so that|first|second|finally|in general|at least|"
    "in so far as|insofar as|rather than|according to|after all|it seems"
).split("|")
SPELLINGS = {  # a pattern of each side; the habit is the share of the first
    "-ise, not -ize": (r"\b\w{3,}(?:is(?:e[ds]?|ing|ation\w*))\b", r"\b\w{3,}(?:iz(?:e[ds]?|ing|ation\w*))\b"),
    "-our, not -or": (
        r"\b(?:col|fav|behavi|lab|hon|neighb)our\w*",
        r"\b(?:col|fav|behavi|lab|hon|neighb)or(?!t|i[zg])\w*",
    ),
    "-re, not -er": (r"\b(?:cent|met|theat|fib)re\w*", r"\b(?:cent|met|theat|fib)er(?:s|ed|ing)?\b"),
    "contractions": (r"\b\w+(?:n['’]t|['’](?:re|ll|ve|d|m))\b", r"\b(?:not|are|will|have|would|am)\b"),
    "which, not that": (r"\bwhich\b", r"\bthat\b"),
    "upon, not on": (r"\bupon\b", r"\bon\b"),
    "whilst, not while": (r"\bwhilst\b", r"\bwhile\b"),
    "towards, not toward": (r"\btowards\b", r"\btoward\b"),
    "serial comma": (r", \w+, (?:and|or)\b", r", \w+ (?:and|or)\b"),
}
PATTERNS = {name: tuple(re.compile(p) for p in both) for name, both in SPELLINGS.items()}
MIN_SHARE_WITH_HABIT = 0.15  # of the background's passages must show a habit, or its z-score means nothing
BACKGROUND = "the built-in anthology"
DOCUMENTS_FOR_NORMS = 2000


@dataclass(frozen=True, slots=True)
class Habit:
    """One habit in two texts: its rate in each, in the background, and what it adds to the agreement."""

    kind: str
    name: str
    a: float
    b: float
    usual: float
    spread: float
    z_a: float
    z_b: float
    agreement: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Norms:
    """What others do: mean and spread of each habit over their passages."""

    source: str
    mean: dict[str, float]
    spread: dict[str, float]


@dataclass(frozen=True)
class Habits:
    """The habits of two texts, those that speak most for one hand first. Their agreements sum to `total`."""

    rows: tuple[Habit, ...]
    total: float
    background: str

    def to_json(self) -> dict[str, Any]:
        return {"background": self.background, "total": self.total, "habits": [row.to_json() for row in self.rows]}


def habit_rates(text: str, lang: str = "en") -> dict[str, float]:
    """The rate of every habit in a text: per thousand words, as a share, or in words a sentence."""
    lower = text.lower()
    tokens = LETTER_TOKEN.findall(lower)
    count = max(sum(t[0].isalpha() for t in tokens), 1)
    rates: dict[str, float] = {}
    function = FUNCTION_WORDS.get(lang, FUNCTION_WORDS["en"])
    for token in tokens:
        key = f"function word|{token}" if token in function else f"mark|{MARKS[token]}" if token in MARKS else ""
        if key:
            rates[key] = rates.get(key, 0.0) + 1000 / count
    if lang == "en":
        rates |= {f"connective|{c}": n for c in CONNECTIVES if (n := 1000 * occurrences(lower, c) / count)}
        rates |= dict(spelling_habits(lower))
    return rates | rhythm(text, lang)


def occurrences(text: str, phrase: str) -> int:
    return len(re.findall(rf"\b{phrase}\b", text)) if phrase in text else 0


def spelling_habits(text: str) -> Iterator[tuple[str, float]]:
    """The share of one of two spellings, where either occurs."""
    for name, (one, other) in PATTERNS.items():
        here, there = len(one.findall(text)), len(other.findall(text))
        if here + there:
            yield f"variant|{name}", here / (here + there)


def rhythm(text: str, lang: str) -> dict[str, float]:
    """Length of sentences and words."""
    lengths = [len(text[start:end].split()) for start, end in find_sentences(text, lang)] or [0]
    letters = [len(w) for w in LETTER_RUN.findall(text)] or [0]
    return {
        "rhythm|words a sentence": float(np.mean(lengths)),
        "rhythm|spread of sentence length": float(np.std(lengths)),
        "rhythm|letters a word": float(np.mean(letters)),
    }


def norms(texts: Sequence[str], source: str, lang: str = "en") -> Norms:
    """Habits of a background; those that hardly any passage shows are left out."""
    rates = [habit_rates(text, lang) for text in texts]
    names = sorted({name for one in rates for name in one})
    mean, spread = {}, {}
    for name in names:
        shared = name.startswith(("variant|", "rhythm|"))  # a share is known only where there is something to share
        values = np.array([one.get(name, 0.0) for one in rates if name in one or not shared])
        if sum(name in one for one in rates) >= MIN_SHARE_WITH_HABIT * len(rates) and values.std() > 0:
            mean[name], spread[name] = float(values.mean()), float(values.std())
    return Norms(source, mean, spread)


def norms_of_corpus(corpus: Corpus) -> Norms:
    """What the writers of a corpus do, from the beginnings of its first documents."""
    texts = [text for d in islice(corpus, DOCUMENTS_FOR_NORMS) for text in text_pieces(d.text)[:5]]
    return norms(texts, str(corpus.folder))


@cache
def norms_of_anthology() -> Norms:
    """The background that comes with the package: passages of about 200 words by its twelve writers."""
    return norms([text for d in anthology() for text in text_pieces(d.text)], BACKGROUND)


def text_pieces(text: str, size: int = 200) -> list[str]:
    """A text in pieces of about `size` words; a text that is shorter is one piece."""
    starts = [m.start() for m in re.finditer(r"\S+", text)]
    cuts = [*starts[::size], len(text)]
    return [text[a:b] for a, b in pairwise(cuts)][: max(len(starts) // size, 1)]


def compare_habits(a: str, b: str, known: Norms | None = None, lang: str = "en") -> Habits:
    """Every habit of two texts against a background; both are averaged over pieces as long as the background's."""
    known = known or norms_of_anthology()
    one, two = (average_habits(text, lang) for text in (a, b))
    rows = []
    for name, usual in known.mean.items():
        if name.startswith("variant|") and (name not in one or name not in two):
            continue
        kind, _, label = name.partition("|")
        x, y, spread = one.get(name, 0.0), two.get(name, 0.0), known.spread[name]
        z_a, z_b = (x - usual) / spread, (y - usual) / spread
        rows.append(Habit(kind, label, x, y, usual, spread, z_a, z_b, z_a * z_b))
    rows.sort(key=lambda r: -r.agreement)
    return Habits(tuple(rows), sum(r.agreement for r in rows), known.source)


def average_habits(text: str, lang: str) -> dict[str, float]:
    rates = [habit_rates(piece, lang) for piece in text_pieces(text)]
    names = {name for one in rates for name in one}
    share = ("variant|",)
    return {n: float(np.mean([one.get(n, 0.0) for one in rates if n in one or not n.startswith(share)])) for n in names}
