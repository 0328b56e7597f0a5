"""The encoder opens what people have, and what it saves opens in plain sentence-transformers with the same scores."""

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from idiograph.errors import ModelError, TooShort
from idiograph.neural.encoder import TorchEncoder
from idiograph.style.model import Style
from idiograph.style.patches import parse_policy, pool_patches

GRAINS = ["whole", "word", "auto", "ngram:1", "ngram:3", "cluster:3"]
KINDS = ["modernbert", "bert", "xlmr"]


@pytest.mark.parametrize("grain", GRAINS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_encoder_pools_as_the_definition_says(encoders, texts, kind, grain):
    encoder = encoders[kind]
    tokens = encoder.tokenize(texts)
    found = encoder.embed(tokens, grain)
    raw = encoder.token_vectors(tokens).numpy()
    for at, (one, rows) in enumerate(zip(tokens, raw, strict=True)):
        expected = pool_patches(rows[: len(one)], parse_policy(grain)(one, rows[: len(one)]))
        assert np.allclose(found.take([at]).vectors, expected, atol=1e-4)


@pytest.mark.parametrize("grain", GRAINS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", ["all", "words"])
def test_a_saved_model_gives_the_same_scores_in_plain_sentence_transformers(
    backbones, tmp_path, texts, kind, grain, keep
):
    encoder = TorchEncoder.open(backbones[kind])
    encoder.save(tmp_path / "model", grain, keep)
    plain = MultiVectorEncoder(str(tmp_path / "model"), trust_remote_code=True)
    theirs = plain.similarity(plain.encode_query(texts), plain.encode_document(texts))
    ours = Style(encoder, keep=keep, patch=grain).compare(texts, texts)
    assert np.allclose(ours, theirs.cpu().numpy(), atol=1e-4)


def test_a_saved_model_opens_here_with_its_grain_and_runs_no_code_from_the_folder(backbones, tmp_path, texts):
    from idiograph.loading import load

    encoder = TorchEncoder.open(backbones["bert"])
    encoder.save(tmp_path / "model", "ngram:3", "words")
    (tmp_path / "model" / "idiograph_patches.py").write_text("raise SystemExit('code from the folder was run')")
    style = load(tmp_path / "model")
    assert (style.patch, style.keep) == ("ngram:3", "words")
    assert np.allclose(style.compare(texts, texts), Style(encoder, "words", "ngram:3").compare(texts, texts), atol=1e-6)


def test_a_sentence_transformers_folder_opens_without_a_random_projection(backbones, tmp_path, texts):
    transformer = Transformer(str(backbones["bert"]))
    dense = SentenceTransformer(modules=[transformer, Pooling(32, "mean"), Normalize()])
    dense.save_pretrained(str(tmp_path / "dense"))
    opened, again = TorchEncoder.open(tmp_path / "dense"), TorchEncoder.open(tmp_path / "dense")
    assert opened.dim == 32
    assert opened.fingerprint == again.fingerprint == TorchEncoder.open(backbones["bert"]).fingerprint


def test_a_late_interaction_folder_keeps_its_trained_projection(backbones, tmp_path, texts):
    torch.manual_seed(1)
    projection = Dense(
        32, 16, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings"
    )
    modules = [Transformer(str(backbones["bert"])), projection, Normalize(module_input_name="token_embeddings")]
    colbert = MultiVectorEncoder(modules=modules)
    colbert.save_pretrained(str(tmp_path / "colbert"))
    opened = TorchEncoder.open(tmp_path / "colbert")
    assert opened.dim == 16
    theirs = colbert.encode_document(texts, convert_to_numpy=True)
    ours = Style(opened, patch="ngram:1").encode(texts)
    assert np.allclose(ours.take([0]).vectors, theirs[0][1:-1], atol=1e-4)  # special tokens are never scored


def test_an_e5_model_gets_its_prefix_and_the_prefix_is_never_scored(backbones, tmp_path, texts):
    import shutil

    shutil.copytree(backbones["xlmr"], tmp_path / "multilingual-e5-tiny")
    encoder = TorchEncoder.open(tmp_path / "multilingual-e5-tiny")
    assert encoder.prompt == "query: "
    with_prompt = encoder.tokenize(texts[:1])[0]
    assert with_prompt.chars[with_prompt.keep][0].tolist()[0] == 0
    kept = "".join(texts[0][a:b] for a, b in with_prompt.chars[with_prompt.keep])
    assert "query" not in kept
    without = TorchEncoder.open(tmp_path / "multilingual-e5-tiny", prompt="")
    assert with_prompt.keep.sum() == without.tokenize(texts[:1])[0].keep.sum()


def test_an_e5_model_saved_with_its_prefix_scores_the_same_in_plain_sentence_transformers(backbones, tmp_path, texts):
    encoder = TorchEncoder.open(backbones["xlmr"], prompt="query: ")
    encoder.save(tmp_path / "model", "ngram:2")
    plain = MultiVectorEncoder(str(tmp_path / "model"), trust_remote_code=True)
    theirs = plain.similarity(plain.encode_query(texts), plain.encode_document(texts))
    assert np.allclose(Style(encoder, patch="ngram:2").compare(texts, texts), theirs.cpu().numpy(), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_whole_and_punctuation_stands_alone(encoders, kind):
    text = "Tides, however, are measured."
    tokens = encoders[kind].tokenize([text])[0]
    number = parse_policy("word")(tokens, np.zeros((len(tokens), 1), np.float32))
    pieces = []
    for patch in range(number.max() + 1):
        inside = tokens.chars[number == patch]
        pieces.append(text[inside[0, 0] : inside[-1, 1]].strip())
    assert pieces == ["Tides", ",", "however", ",", "are", "measured", "."]


@pytest.mark.parametrize("kind", KINDS)
def test_keeping_words_drops_punctuation_and_nothing_else(encoders, kind):
    text = "Tides, however, are measured."
    tokens = encoders[kind].tokenize([text], keep="words")[0]
    assert "".join(text[a:b] for a, b in tokens.chars[tokens.keep]).replace(" ", "") == "Tideshoweveraremeasured"


def test_order_and_batching_do_not_change_a_vector(encoder, texts, monkeypatch):
    from idiograph.neural import encoder as module

    together = encoder.embed(encoder.tokenize(texts), "ngram:2")
    monkeypatch.setattr(module, "BATCH_TOKENS", 1)
    alone = encoder.embed(encoder.tokenize(texts[::-1]), "ngram:2")
    for at in range(len(texts)):
        assert np.allclose(together.take([at]).vectors, alone.take([len(texts) - 1 - at]).vectors, atol=1e-4)


def test_a_text_longer_than_the_window_is_marked_where_it_is_cut(encoder, monkeypatch):
    monkeypatch.setattr(encoder, "beyond", "cut")
    short, long = encoder.tokenize(["A short one.", "word and word, " * 300])
    assert (short.cut, long.cut) == (False, True)


def test_a_text_without_words_is_refused(style):
    with pytest.raises(TooShort, match="nothing to compare"):
        style.compare(["   "], ["Some words."])


def test_a_folder_that_is_no_model_is_refused_on_one_line(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="cannot be opened") as caught:
        TorchEncoder.open(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_named():
    with pytest.raises(ModelError, match=r"no model folder '\./nowhere'"):
        TorchEncoder.open("./nowhere")


def test_other_weights_have_another_fingerprint(tmp_path, backbones):
    from conftest import tiny_backbone

    other = tiny_backbone(tmp_path / "other", "bert", seed=1)
    assert TorchEncoder.open(other).fingerprint != TorchEncoder.open(backbones["bert"]).fingerprint
