"""What every ranker must do, whatever it is made of."""

import numpy as np
import pytest

from idiograph.loading import BASELINES


@pytest.fixture(params=[*BASELINES, "native", "whole", "ngram:1", "ngram:3", "word", "auto", "cluster:2"])
def ranker(request, style, backbones):
    if request.param == "native":
        from idiograph.neural.native import Native

        return Native(str(backbones["modernbert"]))
    return BASELINES[request.param]() if request.param in BASELINES else style.at(request.param)


def test_every_text_is_scored_against_every_other(ranker, texts):
    scores = ranker.compare(texts[:2], texts)
    assert scores.shape == (2, len(texts))
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()


def test_a_text_is_nearest_to_itself(ranker, texts):
    assert ranker.compare(texts, texts).argmax(axis=1).tolist() == list(range(len(texts)))


def test_the_order_of_the_questions_does_not_matter(ranker, texts):
    assert np.allclose(ranker.compare(texts[::-1], texts), ranker.compare(texts, texts)[::-1], atol=1e-5)


def test_a_ranker_has_a_name(ranker):
    assert ranker.name


def test_words_that_are_not_in_the_collection_score_nothing():
    assert BASELINES["bm25"]().compare(["zzz qqq"], ["some words", "other words"]).tolist() == [[0.0, 0.0]]
