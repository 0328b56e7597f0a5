"""How a writer builds sentences: Kneser-Ney n-grams over text whose rarer words are masked, after LambdaG.

A question is read by a model of what a writer wrote, and by reference models of as many sentences by others; the score is
how much better the writer's model foresees it (Nini, Halvani, Graner, Titze, Gherardi and Ishihara: Grammar as a behavioral
biometric, 2026). On the same sentences and the same references the scores are those of the authors' package `lambdag`
0.2; all models of a question are counted at once here, where the package counts one after another.

Nothing has to be known about a language: the words that most texts of the library share are kept, the others are masked.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph import seeded
from idiograph.rankers.library import NOT_IN_LIBRARY, Library, Scores
from idiograph.text.words import TOKEN

DISCOUNT = 0.75  # the paper's
LONGEST_SENTENCE = 120  # tokens; where nothing ends a sentence it is cut, so that a draw of sentences is one of words
DENSE = 8  # a table of all possible grams is faster than sorting until it is so many times as large as what it counts
CELLS_PER_BLOCK = 1 << 21  # tokens of models that are counted at once: some 100 MB
READINGS_PER_BLOCK = 1 << 22  # tokens of questions times models that are held at once
START, END = "<s>", "</s>"
ENDS = frozenset(".!?…。！？")
# Letters of a masked word that stay. Of 31 Hungarian extracts of 1,000 words 27 are given to the right author with two and
# 16 with none: where grammar is in the endings, a mask without them hides it.
ENDING = 2
CLOSERS = frozenset("\"'”’»)]}」』")
# One character a word where writing has no spaces; a blank line is a token of its own and ends a sentence.
PIECE = re.compile(rf"\n\s*\n|[\u3040-\u30ff\u3400-\u9fff]|{TOKEN.pattern}")

Longs = NDArray[np.int64]
Keys = NDArray[np.uint64]
Sentences = list[tuple[str, ...]]

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplying by it loses nothing


def cut_sentences(text: str) -> Sentences:
    """The tokens of each sentence. Simple on purpose: it is the same for all whom it compares, and linear.

    >>> cut_sentences("No. He left; I stayed!")
    [('No', '.'), ('He', 'left', ';', 'I', 'stayed', '!')]
    """
    pieces = PIECE.findall(text)
    sentences: Sentences = []
    start = 0
    for at, piece in enumerate(pieces):
        blank = piece.isspace()
        if blank or at - start >= LONGEST_SENTENCE or _begins(pieces, at, start):
            sentences.append(tuple(pieces[start:at]))
            start = at + blank
    sentences.append(tuple(pieces[start:]))
    return [sentence for sentence in sentences if sentence]


def _begins(pieces: list[str], at: int, start: int) -> bool:
    """Does a sentence begin with this token: after a full stop and what closes it, unless it goes on in lower case?"""
    if at == start or pieces[at] in ENDS or pieces[at] in CLOSERS or pieces[at][0].islower():
        return False
    last = at - 1
    while last > start and pieces[last] in CLOSERS:
        last -= 1
    return pieces[last] in ENDS


def spread_evenly(sentences: Sentences, count: int) -> Sentences:
    """So many sentences from all over a text, or all that it has."""
    if len(sentences) <= count:
        return sentences
    return [sentences[at] for at in np.arange(count) * len(sentences) // count]


# The language model. A gram of k tokens is a number below 2^64: two of ten million distinct ones share it with a chance
# of three in a million. Cells are tokens in a row, each sentence with one START before it and one END after it; a gram
# that reaches beyond START goes on with START.


def gram_keys(cells: Keys, starts: Longs, order: int) -> list[Keys]:
    """For each length from 0 to `order` the number of the gram that ends in each cell."""
    keys = [np.zeros_like(cells)]
    for _ in range(order):
        before = np.roll(keys[-1], 1)
        before[starts] = keys[-1][starts]  # before START is START
        keys.append(cells + _BASE * before)
    return keys


@dataclass(frozen=True, slots=True)
class Grams:
    """Sentences with their grams counted through: equal grams of a length have equal numbers from 0 on.

    `bounds` are the cells where the sentences start, and the end; `known` are the sorted keys of each length, whose places
    are the first numbers, and `added` are keys that came later.
    """

    bounds: Longs
    numbers: list[NDArray[np.int32]]
    known: list[Keys]
    added: list[Keys]

    @classmethod
    def count(cls, cells: Keys, bounds: Longs, order: int) -> "Grams":
        known, numbers = [], []
        for keys in gram_keys(cells, bounds[:-1], order):
            found, places = np.unique(keys, return_inverse=True)
            known.append(found)
            numbers.append(places.astype(np.int32))
        return cls(bounds, numbers, known, [found[:0] for found in known])

    @property
    def order(self) -> int:
        return len(self.numbers) - 1

    def size(self, length: int) -> int:
        return len(self.known[length]) + len(self.added[length])

    def find(self, keys: Sequence[Keys]) -> list[Longs]:
        """The numbers of grams of each length, -1 for those that no sentence has."""
        return [self._find(length, wanted) for length, wanted in enumerate(keys)]

    def _find(self, length: int, wanted: Keys) -> Longs:
        numbers = _places(self.known[length], wanted)
        later = _places(self.added[length], wanted)
        return np.where(later >= 0, later + len(self.known[length]), numbers)

    def change(self, sentences: Longs, cells: Keys) -> "Grams":
        """The same with other tokens in some sentences; all cells are given, and looked at there alone."""
        place, starts = spread_ranges(self.bounds[sentences], self.bounds[sentences + 1])
        numbers, added = [values.copy() for values in self.numbers], []
        for length, keys in enumerate(gram_keys(cells[place], starts, self.order)):
            found = _places(self.known[length], keys)
            new = np.unique(keys[found < 0])
            numbers[length][place] = np.where(found >= 0, found, _places(new, keys) + len(self.known[length]))
            added.append(new)
        return Grams(self.bounds, numbers, self.known, added)


def _places(table: Keys, wanted: Keys) -> Longs:
    if not len(table):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
    return np.where(table[at] == wanted, at, -1)


def spread_ranges(begin: Longs, end: Longs) -> tuple[Longs, Longs]:
    """All whole numbers of some ranges one after another, and where in that row each range starts."""
    sizes = end - begin
    starts = np.concatenate(([0], np.cumsum(sizes)))
    return np.arange(starts[-1]) + np.repeat(begin - starts[:-1], sizes), starts[:-1]


@dataclass(frozen=True, slots=True)
class AskedGrams:
    """A question's grams by their numbers in the library: of each token the gram of each length, and the context before."""

    grams: list[Longs]
    contexts: list[Longs]

    @classmethod
    def find(cls, grams: Grams, cells: Keys, bounds: Longs) -> "AskedGrams":
        numbers = grams.find(gram_keys(cells, bounds[:-1], grams.order))
        tokens = np.delete(np.arange(len(cells)), bounds[:-1])
        return cls([found[tokens] for found in numbers], [found[tokens - 1] for found in numbers])

    def __len__(self) -> int:
        return len(self.grams[0])


@dataclass(frozen=True, slots=True)
class Reading:
    """What models make of a question: log10 of the probability of each token, and the longest gram they have seen."""

    logs: NDArray[np.float64]  # (models, tokens)
    longest: NDArray[np.int8]  # (models, tokens)


def read_question(grams: Grams, models: Sequence[Longs], asked: AskedGrams) -> Reading:
    """Every model reads every token of the question; a model is the numbers of its sentences."""
    sizes = [int((grams.bounds[model + 1] - grams.bounds[model]).sum()) for model in models]
    block = np.cumsum([0, *sizes])[:-1] // CELLS_PER_BLOCK
    parts = [
        _read_block(grams, [model for model, at in zip(models, block, strict=True) if at == number], asked)
        for number in np.unique(block)
    ]
    empty = np.zeros((0, len(asked)))
    logs = np.concatenate([empty, *(part.logs for part in parts)])
    return Reading(logs, np.concatenate([empty.astype(np.int8), *(part.longest for part in parts)]))


def _read_block(grams: Grams, models: Sequence[Longs], asked: AskedGrams) -> Reading:
    """The same for some models at once.

    The counts of a shorter gram are those of Kneser and Ney: how many different tokens it was seen after. Only grams with a
    context that the question has are looked at; they get fewer with every length.
    """
    count = len(models)
    pairs = _Pairs.spread(grams.bounds, models)
    kinds = pairs.one_each(grams.numbers[1])
    chance = np.repeat(1.0 / (np.bincount(kinds.model, minlength=count) + 1)[:, None], len(asked), axis=1)
    longest = np.zeros((count, len(asked)), np.int8)
    for length in range(1, grams.order + 1):
        contexts, context_of = _number_through(asked.contexts[length - 1], grams.size(length - 1))
        wanted, gram_of = _number_through(asked.grams[length], grams.size(length))
        pairs, before = pairs.within(contexts, grams.numbers[length - 1])
        kinds, kinds_before = kinds.within(contexts, grams.numbers[length - 1])
        longer, longer_before = pairs, before
        if length < grams.order:
            longer = pairs.one_each(grams.numbers[length + 1])
            longer_before = contexts[grams.numbers[length - 1][longer.cell - 1]]
        size = context_of.max(initial=0) + 1
        of_context = longer.tally(longer_before, count, size)[:, context_of]
        kinds_after = kinds.tally(kinds_before, count, size)[:, context_of]
        grammed = wanted[grams.numbers[length][longer.cell]]
        times = longer.tally(grammed, count, gram_of.max(initial=0) + 1)[:, gram_of]
        times *= gram_of >= 0
        known = (of_context > 0) & (context_of >= 0)
        share = np.maximum(times - DISCOUNT, 0) + DISCOUNT * kinds_after * chance
        np.divide(share, of_context, out=chance, where=known)
        longest[known & (times > 0)] = length
        kinds = longer
        if not len(pairs.cell):
            break
    return Reading(np.log10(chance), longest)


def _number_through(found: Longs, size: int) -> tuple[NDArray[np.int32], Longs]:
    """For each gram of the library its place among those that the question has, or -1; and the place of each token's."""
    table = np.full(max(1, size), -1, np.int32)
    present = np.unique(found[found >= 0])
    table[present] = np.arange(len(present))
    return table, np.where(found >= 0, table[found], -1)


def _one_of_each(keys: Longs, size: int) -> NDArray[np.int32]:
    """A place of each different key, by a table with a row for every possible one."""
    places = np.full(size, -1, np.int32)
    places[keys] = np.arange(len(keys), dtype=np.int32)
    return places[places >= 0]


def _first_of_each(keys: Longs) -> Longs:
    """The same by sorting, which needs no table; three times as fast as np.unique, which keeps the order of equals."""
    order = np.argsort(keys)
    ordered = keys[order]
    return order[np.concatenate((np.ones(min(1, len(order)), bool), ordered[1:] != ordered[:-1]))]


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Which model has which cell of the library."""

    model: Longs
    cell: Longs

    @classmethod
    def spread(cls, bounds: Longs, models: Sequence[Longs]) -> "_Pairs":
        """All tokens of the sentences of all models."""
        sentences = np.concatenate([np.zeros(0, np.int64), *models])
        owner = np.repeat(np.arange(len(models)), [len(model) for model in models])
        begin, end = bounds[sentences] + 1, bounds[sentences + 1]
        cells, _ = spread_ranges(begin, end)
        return cls(np.repeat(owner, end - begin), cells)

    def within(self, contexts: NDArray[np.int32], numbers: NDArray[np.int32]) -> tuple["_Pairs", NDArray[np.int32]]:
        """Those whose cell comes after a context of the question, and which."""
        before = contexts[numbers[self.cell - 1]]
        kept = np.flatnonzero(before >= 0)
        return _Pairs(self.model[kept], self.cell[kept]), before[kept]

    def one_each(self, numbers: NDArray[np.int32]) -> "_Pairs":
        """One of the pairs for each gram of each model."""
        grams = numbers[self.cell].astype(np.int64)
        width = int(grams.max(initial=0)) + 1
        keys = self.model * width + grams
        table = width * (int(self.model.max(initial=0)) + 1)
        first = _one_of_each(keys, table) if table <= DENSE * len(keys) else _first_of_each(keys)
        return _Pairs(self.model[first], self.cell[first])

    def tally(self, values: Any, models: int, size: int) -> NDArray[np.float64]:
        """(models, size): how many pairs there are of each value; -1 is none."""
        kept = values >= 0
        keys = self.model[kept] * size + values[kept]
        return np.bincount(keys, minlength=models * size).reshape(models, size).astype(np.float64)


def score_sentences(known: Sentences, question: Sentences, references: Sequence[Sentences], order: int = 10) -> float:
    """LambdaG of one question as published: log10 of how much better the known author foresees it, mean over references."""
    every = [*known, *(sentence for reference in references for sentence in reference)]
    ends = np.cumsum([len(known), *map(len, references)])
    models = [np.arange(end - len(part), end) for end, part in zip(ends, [known, *references], strict=True)]
    grams = Grams.count(*lay_out(every), order)
    logs = read_question(grams, models, AskedGrams.find(grams, *lay_out(question))).logs.sum(axis=1)
    return float(logs[0] - logs[1:].mean())


def lay_out(sentences: Iterable[Sequence[str]]) -> tuple[Keys, Longs]:
    """Sentences as keys one after another, START before and END after each, and the bounds of each."""
    padded = [(START, *sentence, END) for sentence in sentences]
    keys = {token: seeded.hash_text(token) for sentence in padded for token in sentence}
    cells = np.array([keys[token] for sentence in padded for token in sentence], np.uint64)
    return cells, np.cumsum([0, *map(len, padded)])


# From texts to cells: which words are kept, and what stands for the others.


def mask_word(word: str) -> str:
    """What stands for a word that is not kept: its form as far as a reader of another language would see it.

    >>> mask_word("1788"), mask_word("Publius"), mask_word("governing")
    ('<0>', '<A>', '<ng>')
    """
    if any(map(str.isdigit, word)):
        return "<0>"
    return "<A>" if word[0].isupper() else f"<{word[-ENDING:]}>"


@dataclass(frozen=True, slots=True)
class MaskedTexts:
    """The sentences of a library's texts as numbers of surface forms, with what each form is when kept and when masked."""

    forms: dict[str, int]
    words: dict[str, int]  # lower case
    word_keys: Keys
    word_of: Longs  # of each form; -1 for what is never masked
    kept_keys: Keys
    masked_keys: Keys
    cells: Longs
    bounds: Longs
    text_of: Longs  # of each sentence
    counts: Any  # (texts, words), sparse

    @classmethod
    def read(cls, texts: Sequence[Sentences]) -> "MaskedTexts":
        from scipy.sparse import csr_array

        forms: dict[str, int] = {START: 0, END: 1}
        cells, bounds, text_of = [], [0], []
        for at, sentences in enumerate(texts):
            for sentence in sentences:
                cells += [0, *(forms.setdefault(token, len(forms)) for token in sentence), 1]
                bounds.append(len(cells))
                text_of.append(at)
        words: dict[str, int] = {}
        numbers = [words.setdefault(form.lower(), len(words)) if is_word(form) else -1 for form in forms]
        word_of, cell = np.array(numbers), np.array(cells, np.int64)
        owners = np.array(text_of, np.int64)
        found, text = word_of[cell], np.repeat(owners, np.diff(bounds))
        there = found >= 0
        shape = (max(1, len(texts)), max(1, len(words)))
        counts = csr_array((np.ones(there.sum(), np.int64), (text[there], found[there])), shape=shape)
        kept = keys_of(form.lower() for form in forms)
        masked = keys_of(mask_word(form) if is_word(form) else form.lower() for form in forms)
        return cls(forms, words, keys_of(words), word_of, kept, masked, cell, np.array(bounds), owners, counts)

    def choose_kept(self, count: int, left_out: int) -> NDArray[np.bool_]:
        """The words that most texts have, of those the most frequent: `count` of them, without the text that is left out."""
        counts = self.counts
        texts = np.bincount(counts.indices, minlength=counts.shape[1])
        times = np.asarray(counts.sum(axis=0)).ravel()
        if left_out != NOT_IN_LIBRARY:
            gone = counts[[left_out]]
            times[gone.indices] -= gone.data
            texts[gone.indices] -= 1
        return highest(texts * (times.sum() + 1) + times, count, self.word_keys)

    def keys(self, kept: NDArray[np.bool_]) -> Keys:
        """The key of each form."""
        return np.where((self.word_of < 0) | kept[self.word_of], self.kept_keys, self.masked_keys)


def is_word(token: str) -> bool:
    return token[0].isalnum()


def keys_of(tokens: Iterable[str]) -> Keys:
    return np.fromiter(map(seeded.hash_text, tokens), dtype=np.uint64)


def highest(values: Longs, count: int, ties: Keys) -> NDArray[np.bool_]:
    """Which are the `count` highest, above nothing; the lower key wins a tie."""
    chosen = np.zeros(len(values), bool)
    least = max(1, np.partition(values, -count)[-count]) if len(values) > count else 1
    among = np.flatnonzero(values >= least)
    chosen[among[np.lexsort((ties[among], -values[among]))][:count]] = True
    return chosen


@dataclass(frozen=True, slots=True)
class Profile:
    """Places in the library that one model stands for, all by one author."""

    author: str
    places: Longs


@dataclass(frozen=True, slots=True)
class Comparison:
    """The model of a profile and those that it is read against, by their places among all models of a question."""

    profile: Profile
    model: int
    references: range


@dataclass(frozen=True, slots=True)
class GrammarRanker:
    """Learns how the authors of a library build sentences (LambdaG).

    One model an author is as often right on Hungarian novels as one a text (27 of 31) and better on Dutch essays of PAN14
    (AUC .89 and .87), so `per_text` is off. The other numbers are first guesses.
    """

    order: int = 10
    kept_words: int = 300
    references: int = 10
    sentences_per_text: int = 500
    sentences_per_model: int = 1000
    # Candidates of a group share their references, which leave out the whole group; up to five authors each have their own.
    author_groups: int = 5
    per_text: bool = False
    seed: int = 7

    @property
    def name(self) -> str:
        return "grammar"

    def learn(self, library: Library) -> "LearnedGrammar":
        masked = MaskedTexts.read([self.cut(text) for text in library.texts])
        kept = masked.choose_kept(self.kept_words, NOT_IN_LIBRARY)
        grams = Grams.count(masked.keys(kept)[masked.cells], masked.bounds, self.order)
        return LearnedGrammar(self, library, masked, kept, grams, self._draws(library, masked))

    def cut(self, text: str) -> Sentences:
        return spread_evenly(cut_sentences(text), self.sentences_per_text)

    def _draws(self, library: Library, masked: MaskedTexts) -> list[Longs]:
        """The sentences of the library in a random order for each draw: by what a text says, not by where it stands."""
        seeds = np.array([seeded.key(self.seed, text) for text in library.texts], np.uint64)[masked.text_of]
        first = np.searchsorted(masked.text_of, masked.text_of)
        within = np.arange(len(first)) - first
        return [np.argsort(seeded.uniform(seeds, draw, within), kind="stable") for draw in range(self.references + 1)]


@dataclass(frozen=True)
class LearnedGrammar:
    """A library's sentences with their grams numbered, and the orders in which references are drawn from them."""

    settings: GrammarRanker
    library: Library
    masked: MaskedTexts
    kept: NDArray[np.bool_]
    grams: Grams
    draws: list[Longs]

    @property
    def name(self) -> str:
        return self.settings.name

    def score(self, texts: Sequence[str], left_out: Sequence[int] | None = None) -> Scores:
        """How much better each author's grammar foresees a text than that of others, in powers of ten by root of tokens.

        All texts of an author have the author's score.
        """
        gone = np.array([NOT_IN_LIBRARY] * len(texts) if left_out is None else left_out, np.int64)
        scores = np.full((len(texts), len(self.library)), np.nan)
        for place in np.unique(gone):
            which = np.flatnonzero(gone == place).tolist()
            for at, question in zip(which, self._ask([texts[at] for at in which], int(place)), strict=True):
                for comparison in question.comparisons:
                    scores[at, comparison.profile.places] = question.gains(comparison).sum()
        return scores

    def shares(self, text: str, place: int, left_out: int = NOT_IN_LIBRARY) -> list[tuple[str, float]]:
        """Which constructions carry the score of a text for one text of the library, the strongest first.

        A construction is the longest run of masked tokens, up to the token that it foresees, that the author's texts have.
        """
        (question,) = self._ask([text], left_out)
        chosen = [each for each in question.comparisons if place in each.profile.places]
        sums: dict[str, float] = {}
        for comparison in chosen:
            gains = question.gains(comparison)
            for label, gain in zip(question.constructions(comparison), gains, strict=True):
                sums[label] = sums.get(label, 0.0) + float(gain)
        return sorted(sums.items(), key=lambda entry: (-abs(entry[1]), entry[0]))

    def _ask(self, texts: Sequence[str], left_out: int) -> Iterator["Question"]:
        """How the models of a library without a text read some texts; several short ones are read at once."""
        kept, grams = self.without(left_out)
        models, comparisons = self.draw_models(left_out)
        shown = [[[self.show(token, kept) for token in cut] for cut in self.settings.cut(text)] for text in texts]
        sizes = np.array([sum(len(sentence) + 1 for sentence in sentences) for sentences in shown])
        block = np.cumsum(sizes) * max(len(models), 1) // READINGS_PER_BLOCK
        for number in np.unique(block):
            some = np.flatnonzero(block == number)
            sentences = [sentence for at in some for sentence in shown[at]]
            reading = read_question(grams, models, AskedGrams.find(grams, *lay_out(sentences)))
            for at, end in zip(some, np.cumsum(sizes[some]), strict=True):
                own = slice(end - sizes[at], end)
                yield Question(shown[at], Reading(reading.logs[:, own], reading.longest[:, own]), comparisons)

    def show(self, token: str, kept: NDArray[np.bool_]) -> str:
        """A token as the models see it."""
        lower = token.lower()
        if not is_word(token):
            return lower
        at = self.masked.words.get(lower)
        return lower if at is not None and kept[at] else mask_word(token)

    def without(self, left_out: int) -> tuple[NDArray[np.bool_], Grams]:
        """The words that are kept and the grams, as they would be without a text."""
        if left_out == NOT_IN_LIBRARY:
            return self.kept, self.grams
        kept = self.masked.choose_kept(self.settings.kept_words, left_out)
        if (kept == self.kept).all():
            return kept, self.grams
        forms = (self.masked.word_of >= 0) & (kept != self.kept)[self.masked.word_of]
        touched = np.add.reduceat(forms[self.masked.cells], self.masked.bounds[:-1])
        return kept, self.grams.change(np.flatnonzero(touched), self.masked.keys(kept)[self.masked.cells])

    def draw_models(self, left_out: int) -> tuple[list[Longs], list[Comparison]]:
        """The sentences of each profile, and the same number drawn from other authors: models for one question."""
        profiles, text_of = self._profiles(left_out), self.masked.text_of
        own, *orders = (order[text_of[order] != left_out] for order in self.draws)
        groups = self._group_authors({profile.author for profile in profiles})
        pools = {group: self._pools(orders, groups, group) for group in set(groups.values())}
        models: list[Longs] = []
        comparisons, references = [], {}
        for profile in profiles:
            group, mine = groups[profile.author], own[np.isin(text_of[own], profile.places)]
            size = min(len(mine), len(pools[group][0]), self.settings.sentences_per_model)
            if (group, size) not in references:
                references[group, size] = range(len(models), len(models) + len(orders))
                models += [pool[:size] for pool in pools[group]]
            comparisons.append(Comparison(profile, len(models), references[group, size]))
            models.append(mine[:size])
        return models, comparisons

    def _profiles(self, left_out: int) -> list[Profile]:
        places: dict[str, list[int]] = {}
        for at, author in enumerate(self.library.authors):
            if at != left_out:
                places.setdefault(author, []).append(at)
        if self.settings.per_text:
            return [Profile(author, np.array([at])) for author, ats in places.items() for at in ats]
        return [Profile(author, np.array(ats)) for author, ats in places.items()]

    def _group_authors(self, authors: set[str]) -> dict[str, int]:
        """Authors in groups of about one size, by their names alone."""
        ordered = sorted(authors, key=lambda author: (seeded.key(self.settings.seed, author), author))
        return {author: at % self.settings.author_groups for at, author in enumerate(ordered)}

    def _pools(self, orders: Sequence[Longs], groups: dict[str, int], group: int) -> list[Longs]:
        """What references for a group of authors are drawn from: sentences of all others, in the order of each draw."""
        others = np.array([groups.get(author, group) != group for author in self.library.authors])
        return [order[others[self.masked.text_of[order]]] for order in orders]


@dataclass(frozen=True, slots=True)
class Question:
    """A text as the models see it, and how they read it."""

    tokens: list[list[str]]
    reading: Reading
    comparisons: list[Comparison]

    def gains(self, comparison: Comparison) -> NDArray[np.float64]:
        """What each token adds to the score."""
        logs = self.reading.logs
        expected = logs[comparison.references.start : comparison.references.stop].mean(axis=0)
        return (logs[comparison.model] - expected) / np.sqrt(max(1, logs.shape[1]))

    def constructions(self, comparison: Comparison) -> list[str]:
        """For each token the longest run up to it that the model has seen."""
        longest = iter(self.reading.longest[comparison.model])
        return [
            " ".join(padded[max(0, at + 1 - max(1, int(next(longest)))) : at + 1])
            for padded in ([START, *sentence, END] for sentence in self.tokens)
            for at in range(1, len(padded))
        ]
