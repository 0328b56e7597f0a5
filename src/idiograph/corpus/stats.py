"""What a corpus holds: documents and tokens by language and field, entropy, author-sets, lengths of spans.

A document in two fields is counted once in every total, under its first one; how often a field is named at all stands
beside it as `labelled`. Entropies are corrected for sample size, because the plain ones grow with the sample.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from idiograph.corpus.diagnostics import FaultCensus, HitShares, fault_shares
from idiograph.corpus.filters import TextView
from idiograph.text.sentences import find_sentences
from idiograph.types import AuthorSet, Document, fields_of

NONE = "none"  # the field of a document without one, and the language of one without
ENTROPY_CHARACTERS = 5_000_000  # of a field that are looked at; more changes the third digit at most
SPAN_DOCUMENTS = 1000  # of a language that are split into spans
SPAN_SIZES = (2, 4, 6, 8, 10)  # sentences

Count = Callable[[str], int]
SpanTally = tuple[int, int, int]  # tokens, words, subwords


@dataclass(frozen=True, slots=True)
class KindCount:
    """How much there is of one kind. `labelled` also counts documents that name it second or later."""

    documents: int = 0
    tokens: int = 0
    labelled: int = 0


@dataclass(frozen=True, slots=True)
class Entropy:
    """In bits: `plain` from the frequencies as they are, `corrected` for what the sample has not shown."""

    plain: float
    corrected: float
    sample: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long things are."""

    count: int
    mean: float
    least: int
    quartiles: tuple[float, float, float]
    most: int


@dataclass(frozen=True, slots=True)
class SpanLengths:
    """How long spans are in words and marks; the share of marks among these, and subwords for each word."""

    count: int
    mean: float
    least: int
    quartiles: tuple[float, float, float]
    most: int
    punctuation: float
    fertility: float | None  # None without a tokenizer
    subwords: float | None  # of a span, on average


@dataclass(frozen=True, slots=True)
class AuthorSets:
    """How authors come together. `recurring` sets wrote more than one document: only they can give a positive."""

    sizes: dict[int, int]
    sets: int
    recurring: int
    documents_of_recurring: int
    mean_size: float
    most: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Everything that one pass over a corpus shows."""

    documents: int
    tokens: int
    languages: dict[str, KindCount]
    domains: dict[str, KindCount]
    cells: dict[tuple[str, str], KindCount]  # by language and first field
    trigram_entropy: dict[str, Entropy]
    word_entropy: dict[str, Entropy]
    author_sets: AuthorSets
    characters: Lengths
    words: Lengths
    spans: dict[int, SpanLengths]  # by number of sentences
    faults_by_language: dict[str, HitShares]
    faults_by_domain: dict[str, HitShares]


@dataclass(slots=True)
class _Tallies:
    documents: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    labelled: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, tokens: int, labels: list[str]) -> None:
        self.documents[name] += 1
        self.tokens[name] += tokens
        self.labelled.update(labels)

    def table(self) -> dict[str, KindCount]:
        """By number of documents, most first."""
        names = sorted({*self.documents, *self.labelled}, key=lambda name: (-self.documents[name], name))
        return {name: KindCount(self.documents[name], self.tokens[name], self.labelled[name]) for name in names}


def corpus_statistics(
    documents: Iterable[Document], count: Count | None = None, subwords: Count | None = None
) -> Statistics:
    """One pass over the documents. `count` is the tokens of a text, our words and punctuation marks if not given;
    `subwords` those of a model's tokenizer, for the spans alone."""
    census = _Census(subwords)
    for document in documents:
        reading = TextView(document.text)
        census.add(document, reading, len(reading.tokens) if count is None else count(document.text))
    return census.result()


@dataclass(slots=True)
class _Census:
    """What is counted while documents go by."""

    subwords: Count | None = None
    languages: _Tallies = field(default_factory=_Tallies)
    domains: _Tallies = field(default_factory=_Tallies)
    cells: _Tallies = field(default_factory=_Tallies)
    sampled: Counter[str] = field(default_factory=Counter)
    trigrams: dict[str, Counter[int]] = field(default_factory=dict)
    vocabulary: dict[str, Counter[str]] = field(default_factory=dict)
    author_sets: Counter[AuthorSet] = field(default_factory=Counter)
    characters: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    split: Counter[str] = field(default_factory=Counter)
    spans: dict[int, list[SpanTally]] = field(default_factory=lambda: {size: [] for size in SPAN_SIZES})
    faults: FaultCensus = field(default_factory=FaultCensus)

    def add(self, document: Document, reading: TextView, tokens: int) -> None:
        named = fields_of(document.domains) or [NONE]
        lang = document.lang or NONE
        self.languages.add(lang, tokens, [lang])
        self.domains.add(named[0], tokens, named)
        self.cells.add(f"{lang}\0{named[0]}", tokens, [f"{lang}\0{each}" for each in named])
        self.author_sets[document.author_set] += 1
        self.characters.append(len(document.text))
        self.words.append(reading.word_count)
        self.faults.add(document, reading.sentences, NONE)
        if self.sampled[named[0]] < ENTROPY_CHARACTERS:
            self.sampled[named[0]] += len(document.text)
            self.trigrams.setdefault(named[0], Counter()).update(_trigrams(document.text))
            self.vocabulary.setdefault(named[0], Counter()).update(reading.frequencies)
        if self.split[lang] < SPAN_DOCUMENTS:
            self.split[lang] += 1
            self.measure(document)

    def measure(self, document: Document) -> None:
        """How long spans of this document are."""
        pieces = [document.text[start:end] for start, end in find_sentences(document.text, document.lang or "en")]
        tallies = [tally_sentence(piece, self.subwords) for piece in pieces]
        for size, spans in self.spans.items():
            spans += [sum_tallies(tallies[at : at + size]) for at in range(0, len(tallies) - size + 1, size)]

    def result(self) -> Statistics:
        return Statistics(
            documents=self.languages.documents.total(),
            tokens=self.languages.tokens.total(),
            languages=self.languages.table(),
            domains=self.domains.table(),
            cells={_pair(name): tally for name, tally in self.cells.table().items()},
            trigram_entropy={name: sample_entropy(counts.values()) for name, counts in sorted(self.trigrams.items())},
            word_entropy={name: sample_entropy(counts.values()) for name, counts in sorted(self.vocabulary.items())},
            author_sets=author_set_sizes(self.author_sets),
            characters=length_summary(self.characters),
            words=length_summary(self.words),
            spans={size: span_summary(spans, self.subwords is not None) for size, spans in self.spans.items()},
            faults_by_language=fault_shares(self.faults.languages),
            faults_by_domain=fault_shares(self.faults.fields),
        )


def tally_sentence(text: str, subwords: Count | None) -> SpanTally:
    """The tokens of a sentence, how many of them are words, and its subwords."""
    reading = TextView(text)
    return len(reading.tokens), reading.word_count, subwords(text) if subwords else 0


def sum_tallies(tallies: Sequence[SpanTally]) -> SpanTally:
    tokens, words, subwords = map(sum, zip(*tallies, strict=True))
    return tokens, words, subwords


def span_summary(spans: Sequence[SpanTally], tokenized: bool) -> SpanLengths:
    """How long spans are, and what they are made of."""
    lengths = length_summary([tokens for tokens, _, _ in spans])
    tokens, words, subwords = sum_tallies(spans) if spans else (0, 0, 0)
    return SpanLengths(
        *(lengths.count, lengths.mean, lengths.least, lengths.quartiles, lengths.most),
        punctuation=(tokens - words) / tokens if tokens else 0.0,
        fertility=subwords / words if words and tokenized else None,
        subwords=subwords / len(spans) if spans and tokenized else None,
    )


def _pair(name: str) -> tuple[str, str]:
    lang, _, domain = name.partition("\0")
    return lang, domain


def _trigrams(text: str) -> dict[int, int]:
    """How often each three characters in a row occur, lower case, as numbers."""
    encoded = " ".join(text.lower().split()).encode("utf-32-le", "replace")
    points = np.frombuffer(encoded, dtype=np.uint32).astype(np.int64)
    if len(points) < 3:
        return {}
    keys, counts = np.unique((points[:-2] << 42) | (points[1:-1] << 21) | points[2:], return_counts=True)
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def sample_entropy(counts: Iterable[int]) -> Entropy:
    """The entropy of a distribution from a sample of it.

    The correction is Chao and Shen's: probabilities are shrunk by the estimated share of the distribution that the
    sample covers, and each term is divided by the chance that it was seen at all.
    """
    counted = np.array([count for count in counts if count > 0], dtype=np.float64)
    total = counted.sum()
    if not total:
        return Entropy(0.0, 0.0, 0)
    share = counted / total
    plain = float(-(share * np.log2(share)).sum())
    once = float((counted == 1).sum())
    shrunk = (1 - min(once, total - 1) / total) * share
    chance = -np.expm1(total * np.log1p(-np.minimum(shrunk, 1 - 1e-12)))
    return Entropy(max(0.0, plain), max(0.0, float(-(shrunk * np.log2(shrunk) / chance).sum())), int(total))


def author_set_sizes(documents_of: Mapping[AuthorSet, int]) -> AuthorSets:
    """From how many documents each set wrote; a document without authors counts as size 0 and belongs to no set."""
    by_set = dict(documents_of)
    nobody = by_set.pop(frozenset(), 0)
    sizes: Counter[int] = Counter()
    for each, documents in by_set.items():
        sizes[len(each)] += documents
    again = [documents for documents in by_set.values() if documents > 1]
    documents = sizes.total()
    return AuthorSets(
        sizes=dict(sorted({**sizes, **({0: nobody} if nobody else {})}.items())),
        sets=len(by_set),
        recurring=len(again),
        documents_of_recurring=sum(again),
        mean_size=sum(size * n for size, n in sizes.items()) / documents if documents else 0.0,
        most=max(sizes, default=0),
    )


def length_summary(lengths: Sequence[int]) -> Lengths:
    if not lengths:
        return Lengths(0, 0.0, 0, (0.0, 0.0, 0.0), 0)
    low, middle, high = (float(each) for each in np.quantile(lengths, (0.25, 0.5, 0.75)))
    return Lengths(len(lengths), math.fsum(lengths) / len(lengths), min(lengths), (low, middle, high), max(lengths))
