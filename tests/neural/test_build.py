"""`layers:MODEL` reads the mean of all layers of a model that was made for its last."""

import numpy as np
import pytest
import torch

from idiograph.errors import ModelError
from idiograph.loading import load, load_ranker
from idiograph.neural.build import build_model
from idiograph.recipe import TrainRecipe

TEXT = "The tide came in; nobody, it seems, had looked at the map."


@pytest.fixture
def folder(backbones) -> str:
    return str(next(iter(backbones.values())))


def test_vectors_are_the_mean_of_all_layers(folder) -> None:
    style = load(folder, patch="ngram:1", layers="mean")
    tokens = style.tokenize([TEXT])[0]
    ids = torch.from_numpy(tokens.ids)[None]
    with torch.no_grad():
        states = style.encoder.model[0].model(input_ids=ids, output_hidden_states=True).hidden_states  # pyright: ignore
    mean = torch.stack(states).mean(dim=0)[0][torch.from_numpy(tokens.keep)]
    expected = torch.nn.functional.normalize(mean, dim=-1).numpy()
    np.testing.assert_allclose(style.encode([TEXT]).vectors, expected, atol=1e-5)


def test_it_is_another_model_than_the_last_layer(folder) -> None:
    both = [load(folder, patch="ngram:1"), load(folder, patch="ngram:1", layers="mean")]
    assert both[0].fingerprint != both[1].fingerprint
    assert not np.allclose(both[0].encode([TEXT]).vectors, both[1].encode([TEXT]).vectors, rtol=0, atol=1e-5)


def test_a_ranker_is_named_so_that_a_table_tells_them_apart(folder) -> None:
    found = load_ranker(f"layers:{folder}@ngram:2")
    assert found.name.startswith("layers:")
    assert found.name.endswith("ngram:2")


def test_a_model_with_a_trained_projection_is_refused(folder, tmp_path) -> None:
    build_model(folder, TrainRecipe(patch="ngram:1", head="linear")).save(tmp_path / "m", "ngram:1")
    with pytest.raises(ModelError, match="without 'layers:'"):
        load(tmp_path / "m", layers="mean")
