"""`--layers wording`: beside what a token means in its text, the token itself, weighed by how rare it is."""

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder
from torch.nn.functional import normalize
from trainees import batches_of, one_thread, recipe, trainee, triplets, write_jsonl  # noqa: F401

from idiograph.errors import ModelError
from idiograph.loading import load
from idiograph.neural.build import build_model
from idiograph.neural.encoder import TorchEncoder
from idiograph.neural.layers import Wording
from idiograph.neural.training.loop import fit_model
from idiograph.neural.training.rarity import AVERAGE, token_rarity, weigh_wording
from idiograph.neural.training.train import train_model_on
from idiograph.recipe import TrainRecipe

TEXT = "The tide came in; nobody, it seems, had looked at the map."


def wording_of(encoder: TorchEncoder) -> Wording:
    return next(module for module in encoder.model if isinstance(module, Wording))


def test_a_token_is_its_last_layer_and_its_first_end_to_end(backbones):
    encoder = trainee(backbones["bert"], patch="ngram:1", layers="wording")
    with torch.no_grad():
        wording_of(encoder).weight.uniform_(0, 2)
    tokens = encoder.tokenize([TEXT])[0]
    ids = torch.from_numpy(tokens.ids)[None]
    with torch.no_grad():
        states = encoder.model[0].model(input_ids=ids, output_hidden_states=True).hidden_states  # pyright: ignore
    low = wording_of(encoder).weight[ids].unsqueeze(-1) * normalize(states[1], dim=-1)
    both = torch.cat([normalize(states[-1], dim=-1), low], dim=-1)[0][torch.from_numpy(tokens.keep)]
    found = encoder.embed([tokens], "ngram:1").vectors
    assert encoder.dim == found.shape[1] == 64
    np.testing.assert_allclose(found, normalize(both, dim=-1).detach().numpy(), atol=1e-5)


def test_without_weight_only_the_last_layer_counts(backbones):
    plain, other = (trainee(backbones["bert"], patch="ngram:1", layers=layers) for layers in ("last", "wording"))
    with torch.no_grad():
        wording_of(other).weight.zero_()
    tokens = plain.tokenize([TEXT])
    last, both = plain.embed(tokens, "ngram:1").vectors, other.embed(tokens, "ngram:1").vectors
    np.testing.assert_allclose(both, np.pad(last, ((0, 0), (0, 32))), atol=1e-5)


def test_rarity_is_nothing_for_what_all_texts_have_and_one_on_average():
    texts = [np.array([0, 1, 1]), np.array([0, 2]), np.array([0, 1])]
    found = token_rarity(texts, 4)
    assert found[0] == 0
    assert 0 < found[1] < found[2] < found[3]  # the last is in no text
    assert np.mean([found[at] for text in texts for at in text]) == pytest.approx(1)


def test_weights_begin_with_the_rarity_of_tokens_in_training(backbones):
    encoder = trainee(backbones["bert"], patch="ngram:2", layers="wording")
    parts = [triplets(8)]
    weigh_wording(encoder.model, parts)
    ids = [encoder.model.tokenizer(text)["input_ids"] for text in parts[0].texts]
    expected = AVERAGE * token_rarity([np.array(row) for row in ids], wording_of(encoder).vocabulary)
    np.testing.assert_allclose(wording_of(encoder).weight.detach().numpy(), expected, rtol=1e-5)


def test_weights_are_learned(backbones):
    encoder = trainee(backbones["bert"], patch="ngram:2", layers="wording")
    parts = triplets(8)
    weigh_wording(encoder.model, [parts])
    before = wording_of(encoder).weight.detach().clone()
    how = TrainRecipe(batch=8, steps=20, lr=3e-3, tau=0.05, log_every=2)
    losses = [entry["loss"] for entry in fit_model(encoder.model, batches_of(encoder, parts, 8), how).history]
    assert losses[-1] < losses[0] / 2
    assert not torch.equal(before, wording_of(encoder).weight)


def test_a_trained_model_keeps_its_weights_and_opens_in_plain_sentence_transformers(backbones, tmp_path):
    write_jsonl(triplets(8), tmp_path / "some.jsonl")
    made = recipe(layers="wording", patch="ngram:2", steps=4)
    train_model_on([tmp_path / "some.jsonl"], tmp_path / "model", backbones["bert"], made)
    ours = load(tmp_path / "model").encode([TEXT])
    plain = MultiVectorEncoder(str(tmp_path / "model"), trust_remote_code=True).encode_document([TEXT])[0]
    np.testing.assert_allclose(ours.vectors, np.asarray(plain), atol=1e-5)
    again = build_model(tmp_path / "model", TrainRecipe(patch="ngram:2", layers="wording"))
    learned = wording_of(again).weight.detach().clone()
    assert len(learned.unique()) > 2
    weigh_wording(again.model, [triplets(8)])
    assert torch.equal(learned, wording_of(again).weight)


def test_all_layers_of_such_a_model_are_refused(backbones, tmp_path):
    build_model(backbones["bert"], TrainRecipe(patch="ngram:1", layers="wording")).save(tmp_path / "m", "ngram:1")
    with pytest.raises(ModelError, match="without 'layers:'"):
        load(tmp_path / "m", layers="mean")
