"""The shipped model gives the same tokens and patches without torch as in it."""

import numpy as np
import pytest

from idiograph.corpus.readers import read_documents
from idiograph.encoder.encoder import OnnxEncoder
from idiograph.errors import ModelError
from idiograph.loading import default_folder
from idiograph.neural.encoder import TorchEncoder
from idiograph.neural.layers import published_starts, token_table, word_starts
from idiograph.style.model import Style

BOUND = 1e-4  # between any two numbers of two vectors of unit length; in practice 1e-6
GRAINS = ("ngram:3", "ngram:1", "word", "auto", "whole")
ODD = [
    "x",
    "?!",
    " a\n",
    "\t\n  Two words. \u00a0",
    "lol no 🙂👩‍👩‍👧‍👦 🇫🇷 — ok…",
    "naïve café, «où est-il ?» demanda l'élève; Straße, Ærø, žluťoučký kůň.",
    "日本語のテキストです。漢字とかな、そして句読点。",
    "Ἐν ἀρχῇ ἦν ὁ λόγος, καὶ ὁ λόγος ἦν πρὸς τὸν θεόν.",
    "هذا نص عربي قصير، وفيه فاصلة.",
    "re-measured the siltation (twice!), e.g. by 3.14% in 1999–2001.",
    "a literal <pad> and <mask> and </s> in a text",
    "word " * 3,
    "supercalifragilisticexpialidocious" * 20,
    "\ufffd\u200b\u0301 combining e\u0301",
]


@pytest.fixture(scope="module")
def onnx() -> OnnxEncoder:
    return OnnxEncoder.open(default_folder())


@pytest.fixture(scope="module")
def torch_encoder() -> TorchEncoder:
    return TorchEncoder.open(default_folder())


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Passages of the essays, a text of two and one of six windows, and odd ones."""
    essays = [document.text for document in read_documents("anthology")][:8]
    passages = [" ".join(essay.split()[at : at + 120]) for essay in essays for at in (0, 120, 240)]
    return [*passages, " ".join(essays[0].split()[:700]), " ".join(" ".join(essays).split()[:2500]), *ODD]


def widest(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


@pytest.mark.parametrize("keep", ["all", "words"])
def test_tokens_are_those_of_torch(onnx, torch_encoder, texts, keep):
    for ours, theirs in zip(onnx.tokenize(texts, keep), torch_encoder.tokenize(texts, keep), strict=True):
        for part in ("ids", "chars", "words", "keep", "cut"):
            assert np.array_equal(getattr(ours, part), getattr(theirs, part))
        assert np.array_equal(onnx.published_words(ours.ids), torch_encoder.published_words(ours.ids))


def test_patches_are_those_of_torch_at_every_grain(onnx, torch_encoder, texts):
    tokens = [each for each in onnx.tokenize(texts) if each.keep.any()]
    with onnx.remembering(), torch_encoder.remembering():
        for grain in GRAINS:
            ours, theirs = onnx.embed(tokens, grain), torch_encoder.embed(tokens, grain)
            assert np.array_equal(ours.lengths, theirs.lengths)
            assert np.array_equal(ours.chars, theirs.chars)
            assert widest(ours.vectors, theirs.vectors) <= BOUND


@pytest.mark.parametrize("reading", ["sound", "published"])
def test_scores_are_those_of_torch(onnx, torch_encoder, texts, reading):
    some = texts[:6] + ODD[3:8]
    one, two = (Style(each, patch="ngram:3", reading=reading).compare(some, some) for each in (onnx, torch_encoder))
    assert widest(one, two) <= BOUND


def test_clusters_are_those_of_torch(onnx, torch_encoder, texts):
    one, two = (Style(each, patch="cluster:4").encode(texts[:5]) for each in (onnx, torch_encoder))
    assert widest(one.vectors, two.vectors) <= BOUND


def test_both_have_one_fingerprint_so_that_an_index_made_with_one_is_searched_with_the_other(onnx, torch_encoder):
    assert onnx.fingerprint == torch_encoder.fingerprint
    assert (onnx.name, onnx.dim) == (torch_encoder.name, torch_encoder.dim)
    assert (onnx.window, onnx.reach) == (torch_encoder.window, torch_encoder.reach)


def test_the_words_of_tokens_follow_the_rules_of_the_layer_that_travels_with_models(onnx, torch_encoder, random):
    import torch

    table = token_table(torch_encoder.model.tokenizer, len(torch_encoder.model.tokenizer))
    for kind in ("special", "mark", "start"):
        assert np.array_equal(getattr(onnx.pieces, kind), table[kind].numpy())
    ids = random.integers(0, 50265, 5000)
    at = torch.from_numpy(ids)
    assert np.array_equal(onnx.pieces.starts(ids), word_starts(at, table).numpy())
    assert np.array_equal(onnx.published_words(ids), published_starts(at, table).cumsum(dim=0).numpy() - 1)


def test_a_text_has_the_same_patches_alone_and_among_others(onnx, texts):
    style = Style(onnx, patch="ngram:3")
    together = style.encode(texts[20:])
    for at, text in enumerate(texts[20:]):
        assert widest(style.encode([text]).vectors, together.take([at]).vectors) <= 1e-5


def test_a_text_longer_than_the_window_is_read_to_its_end(onnx, torch_encoder, texts):
    tokens = onnx.tokenize([max(texts, key=len)])
    assert len(tokens[0]) > 4 * onnx.window
    assert not tokens[0].cut
    assert onnx.token_vectors(tokens)[0].shape == (len(tokens[0]), 768)
    ends = onnx.embed(tokens, "ngram:3").chars[-1, 1]
    assert ends == tokens[0].chars[-2, 1]


def test_a_narrow_window_and_a_cut_text_are_those_of_torch(texts):
    encoders = [OnnxEncoder.open(default_folder()), TorchEncoder.open(default_folder())]
    for encoder in encoders:
        encoder.window, encoder.beyond = 40, "cut"
    tokens = [encoder.tokenize(texts[:3]) for encoder in encoders]
    assert [len(each) for each in tokens[0]] == [40, 40, 40]
    assert all(each.cut for each in tokens[0])
    for ours, theirs in zip(*tokens, strict=True):
        assert np.array_equal(ours.ids, theirs.ids)
    encoders[0].beyond = "read"
    assert len(encoders[0].tokenize(texts[:1])[0]) > 40


def test_a_window_that_the_weights_do_not_allow_is_refused(onnx):
    with pytest.raises(ModelError, match="reads up to 512 tokens at once, so it cannot read 600"):
        onnx.window = 600


def test_boundaries_that_it_has_not_learned_are_refused_as_in_torch(onnx, torch_encoder):
    for encoder in (onnx, torch_encoder):
        with pytest.raises(ModelError, match="has learned no boundaries; train it with --patch learned:3"):
            encoder.embed(encoder.tokenize(["Some words."]), "learned:3")


def test_texts_that_are_remembered_go_through_the_graph_once(onnx, monkeypatch):
    passes = []
    forward = OnnxEncoder._forward
    monkeypatch.setattr(OnnxEncoder, "_forward", lambda self, t: passes.append(len(t)) or forward(self, t))
    tokens = onnx.tokenize(["One text.", "Another text.", "One text."])
    with onnx.remembering():
        first, again = onnx.embed(tokens, "ngram:1"), onnx.embed(tokens, "ngram:1")
    assert sum(passes) == 2
    assert np.array_equal(first.vectors, again.vectors)


def test_progress_ends_with_all_texts(onnx, texts):
    heard = []
    onnx.embed(onnx.tokenize(texts[:9]), "whole", lambda done, of, what: heard.append((done, of, what)))
    assert heard[-1] == (9, 9, "reading texts")
