"""Texts as their passages' patches, and the score of two texts: what verification calibrates."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from idiograph.answer.pairs import MIN_WORDS_TO_COMPARE, TextPair
from idiograph.errors import TooShort
from idiograph.runner import Progress
from idiograph.style.model import Ranker, Style
from idiograph.style.patches import Patches
from idiograph.style.score import SIMILARITIES_PER_TILE
from idiograph.text.passages import PASSAGE_WORDS, count_words, passage_texts

BLOCK = 64  # texts encoded at once
Floats = NDArray[np.float64]


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
    for begin in range(0, len(texts), BLOCK):
        parts = [text_passages(text) for text in texts[begin : begin + BLOCK]]
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
