"""Quality signals: numbers that describe a document and decide nothing. After RedPajama's.

The tokens of a tokenizer and the perplexity of a language model are among them where these are given.

Word n-grams are n-grams of words here, and a duplicate counts wherever it stands.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from idiograph.corpus.filters import TextView
from idiograph.errors import ServiceError
from idiograph.recipe import CorpusRecipe
from idiograph.runner import Failure, Workers
from idiograph.store import Manifest, draft, seal
from idiograph.text.ngrams import CharacterModel, Perplexity
from idiograph.text.sentences import find_sentences
from idiograph.text.subwords import SubwordCounter
from idiograph.types import Document

Signal = Callable[[TextView], float]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SYMBOLS = re.compile(r"#|\.\.\.|…")
_BULLETS = tuple("•‣▪▫◦●○■□–*-")


def word_count(reading: TextView) -> float:
    return reading.word_count


def sentence_count(reading: TextView) -> float:
    return len(reading.sentences)


def subwords(reading: TextView) -> float:
    return reading.subwords


def mean_word_length(reading: TextView) -> float:
    return _ratio(sum(len(word) * n for word, n in reading.words.items()), reading.word_count)


def all_caps(reading: TextView) -> float:
    return _ratio(reading.all_caps, len(reading.tokens))


def without_letters(reading: TextView) -> float:
    return _ratio(reading.without_letters, len(reading.tokens))


def stop_words(reading: TextView) -> float:
    """Not a number where we have no list for the language."""
    return float("nan") if reading.function_words is None else _ratio(reading.function_words, len(reading.tokens))


def unique_words(reading: TextView) -> float:
    return _ratio(len(reading.frequencies), len(reading.tokens))


def word_entropy(reading: TextView) -> float:
    return reading.entropy


def symbols_per_word(reading: TextView) -> float:
    return _ratio(len(_SYMBOLS.findall(reading.plain)), reading.word_count)


def lorem_ipsum_count(reading: TextView) -> float:
    return _ratio(2 * reading.lower.count("lorem ipsum"), reading.word_count)


def lines_with_ellipsis(reading: TextView) -> float:
    return _lines(reading, lambda line: line.endswith(("...", "…")))


def lines_with_full_stop(reading: TextView) -> float:
    return _lines(reading, lambda line: line.endswith((".", "!", "?", '"', "'", "”", "’", "»")))


def lines_with_bullet(reading: TextView) -> float:
    return _lines(reading, lambda line: line.startswith(_BULLETS) and line[1:2].isspace())


def duplicates(n: int) -> Signal:
    """The share of characters that stand in a word n-gram which occurs more than once."""

    def signal(reading: TextView) -> float:
        tokens = [token.lower() for token in reading.tokens]
        if len(tokens) <= n:
            return 0.0
        number = {token: i for i, token in enumerate(reading.frequencies, start=1)}
        ids = np.array([number[token] for token in tokens], dtype=np.uint64)
        keys = np.zeros(len(ids) - n + 1, dtype=np.uint64)
        for i in range(n):
            keys = keys * _MIX + ids[i : len(ids) - n + 1 + i]
        _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
        starts = np.flatnonzero(counts[which] > 1)
        covered = np.zeros(len(ids), dtype=bool)
        for i in range(n):
            covered[starts + i] = True
        lengths = np.array([len(token) for token in tokens])
        return float(lengths[covered].sum() / lengths.sum())

    return signal


def _lines(reading: TextView, has: Callable[[str], bool]) -> float:
    """The share of lines that are not empty and of which something holds."""
    lines = [line.strip() for line in reading.text.split("\n") if line.strip()]
    return _ratio(sum(map(has, lines)), len(lines))


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else 0.0


SIGNALS: dict[str, Signal] = {
    "words": word_count,
    "sentences": sentence_count,
    "subwords": subwords,
    "mean_word_length": mean_word_length,
    "all_caps": all_caps,
    "without_letters": without_letters,
    "stop_words": stop_words,
    "unique_words": unique_words,
    "entropy": word_entropy,
    "symbols_per_word": symbols_per_word,
    "lorem_ipsum": lorem_ipsum_count,
    "lines_with_ellipsis": lines_with_ellipsis,
    "lines_with_full_stop": lines_with_full_stop,
    "lines_with_bullet": lines_with_bullet,
    **{f"duplicate_{n}_grams": duplicates(n) for n in range(5, 11)},
}


def signals(text: str, lang: str = "en") -> dict[str, float]:
    """Every signal of a document, by name."""
    reading = TextView(text, lang, [text[start:end] for start, end in find_sentences(text, lang)])
    return {name: signal(reading) for name, signal in SIGNALS.items()}


ROWS_PER_GROUP = 64

Measure = Callable[[str, str], float]  # of a text and its language


def extra_signals(recipe: CorpusRecipe) -> dict[str, Measure]:
    """The signals that need a file of the user's."""
    extra: dict[str, Measure] = {}
    if recipe.tokenizer:
        extra["tokens"] = SubwordCounter(recipe.tokenizer)
    if recipe.perplexity:
        extra["perplexity"] = Perplexity(recipe.perplexity)
    return extra


def write_signals(shards: list[Path], workers: Workers, recipe: CorpusRecipe) -> None:
    """For `train-X.parquet`, `signals-X.parquet`, with the same documents in the same order."""
    extra = extra_signals(recipe)
    schema = pa.schema([("id", pa.string()), *((name, pa.float32()) for name in (*SIGNALS, *extra))])
    work = partial(describe_group, extra=extra)
    for shard in shards:
        groups = [(shard, group) for group in range(pq.read_metadata(shard).num_row_groups)]
        with pq.ParquetWriter(shard.with_name(shard.name.replace("train", "signals", 1)), schema) as writer:
            for rows in workers.map(work, groups):
                if isinstance(rows, Failure):
                    raise ServiceError(f"quality signals: {rows.reason} ({rows.detail}); run it again")
                writer.write_table(pa.Table.from_pylist(rows, schema), row_group_size=ROWS_PER_GROUP)


def describe_group(place: tuple[Path, int], extra: Mapping[str, Measure]) -> list[dict[str, Any]]:
    """The signals of one row group of a shard, which the worker reads itself."""
    path, group = place
    rows = pq.ParquetFile(path).read_row_group(group, columns=["id", "lang", "text"]).to_pylist()
    return [describe_row(row["id"], row["text"], row["lang"], extra) for row in rows]


def describe_row(name: str, text: str, lang: str, extra: Mapping[str, Measure]) -> dict[str, Any]:
    return {"id": name, **signals(text, lang), **{kind: measure(text, lang) for kind, measure in extra.items()}}


def learn_language_models(corpus: Iterable[Document], out: Path, overwrite: bool = False) -> dict[str, int]:
    """A model of characters for each language of a corpus; returns how many characters each was learned from."""
    learned: dict[str, int] = {}
    with draft(out, overwrite) as folder:
        for lang, documents in groupby(corpus, key=lambda document: document.lang):
            model = CharacterModel.learn(document.text for document in documents)
            model.save(folder / f"{lang}.npz")
            learned[lang] = int(model.counts[0].sum())
        seal(folder, Manifest("language-models", counts=learned))
    return learned
