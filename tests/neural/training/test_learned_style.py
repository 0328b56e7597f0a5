"""What was learned is read everywhere a model is read."""

import numpy as np
import pytest
from trainees import one_thread, trainee  # noqa: F401

from idiograph.errors import ModelError
from idiograph.loading import load
from idiograph.style.model import Style


def test_a_style_reads_learned_patches_as_the_saved_model_does(backbones, tmp_path, texts):
    encoder = trainee(backbones["bert"], patch="learned:3")
    encoder.save(tmp_path / "model", "learned:3")
    style = load(tmp_path / "model")
    assert style.patch == "learned:3"
    theirs = style.encoder.model.encode_document(texts)
    ours = style.encode(texts)
    assert all(np.allclose(ours.take([at]).vectors, rows, atol=1e-5) for at, rows in enumerate(theirs))


def test_a_budget_is_a_dial(backbones, texts):
    encoder = trainee(backbones["bert"], patch="learned:3")
    few, many = (Style(encoder, patch=f"learned:{size}").encode(texts).lengths for size in (6, 2))
    assert (few < many).all()


def test_a_model_that_has_learned_no_boundaries_says_so(encoder, texts):
    with pytest.raises(ModelError, match=r"has learned no boundaries; train it with --patch learned:3"):
        Style(encoder, patch="learned:3").encode(texts)


@pytest.mark.parametrize(
    "extra", [{"center": True}, {"layers": "mean"}, {"head": "linear", "dim": 16}, {"head": "mlp"}]
)
def test_heads_layers_and_centering_travel_with_the_folder(backbones, tmp_path, texts, extra):
    encoder = trainee(backbones["bert"], patch="ngram:2", **extra)
    encoder.save(tmp_path / "model", "ngram:2")
    again = load(tmp_path / "model")
    assert np.allclose(again.compare(texts, texts), Style(encoder, patch="ngram:2").compare(texts, texts), atol=1e-5)
