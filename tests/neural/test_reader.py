"""Texts read fast, several grains at once: the same numbers as when each text goes its own way."""

import numpy as np
import pytest
import torch

from idiograph.neural.reader import PatchReader, patch_layer
from idiograph.neural.trial import Trial
from idiograph.neural.triplets import triplets_from_rows
from idiograph.recipe import TrainRecipe
from idiograph.style.model import Style

TEXTS = [
    f"The {word} of the harbour, it seems, was {word}; we went on." * n for word in ("tide", "map") for n in (2, 1)
]
GRAINS = ("whole", "ngram:1", "ngram:3", "word")


@pytest.fixture(scope="module", params=["bert", "modernbert"])
def trial(request, backbones) -> Trial:
    return Trial(backbones[request.param], TrainRecipe(patch="ngram:2"), 256, "cpu")


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("grain", GRAINS)
def test_patches_and_scores_are_those_of_the_style(trial, grain, mean):
    patches = trial.read(TEXTS, GRAINS)[grain]
    style = Style(trial.encoder, patch=grain, score="meansim" if mean else "maxsim")
    expected = style.encode(TEXTS)
    assert patches.sizes.tolist() == expected.lengths.tolist()
    vectors, mask = patches.padded()
    torch.testing.assert_close(vectors[mask], torch.from_numpy(expected.vectors), atol=1e-5, rtol=1e-4)
    left, right = np.array([2, 0]), np.array([1, 3, 2])
    scores = trial.scores(patches.take(left), patches.take(right), mean)
    wanted = style.compare([TEXTS[at] for at in left], [TEXTS[at] for at in right])
    np.testing.assert_allclose(scores, wanted, rtol=1e-4)


def test_a_reader_leaves_the_grain_as_it_was(trial):
    before = patch_layer(trial.encoder.model).patch
    trial.read(TEXTS, GRAINS)
    assert patch_layer(trial.encoder.model).patch == before


def test_one_vector_a_text_is_the_mean_of_its_patches(trial):
    patches = trial.read(TEXTS, ["ngram:1"])["ngram:1"]
    some = patches.take(np.array([3, 1, 1]))
    for each in (patches, some):
        vectors, mask = each.padded()
        for row, kept, mean in zip(vectors, mask, each.means(), strict=True):
            expected = torch.nn.functional.normalize(row[kept].mean(dim=0), dim=0)
            np.testing.assert_allclose(mean, expected.numpy(), atol=1e-6)


def test_texts_are_cut_at_the_longest(trial):
    reader = PatchReader(trial.encoder.model, longest=8)
    assert reader.read_grains(TEXTS, ["ngram:1"])["ngram:1"].sizes.max() <= 8


def test_every_trial_begins_with_the_weights_of_the_backbone(backbones):
    rows = [[(f"{word} {role} {n}", word, f"{word}{role}") for role, word in enumerate(pair)]
            for n in range(8) for pair in (("ann", "ann", "bob"), ("bob", "bob", "ann"))]  # fmt: skip
    part, recipe = triplets_from_rows(rows), TrainRecipe(patch="ngram:1", steps=3, batch=4, lr=1e-2)
    first = Trial(backbones["bert"], recipe, 32, "cpu")
    before = first.read(TEXTS, ["ngram:1"])["ngram:1"].vectors
    trained = first.train([part])
    assert not torch.allclose(before, first.read(TEXTS, ["ngram:1"])["ngram:1"].vectors)
    second = Trial(backbones["bert"], TrainRecipe(patch="whole"), 32, "cpu")
    assert torch.equal(second.read(TEXTS, ["ngram:1"])["ngram:1"].vectors, before)
    again = Trial(backbones["bert"], recipe, 32, "cpu").train([part])
    assert [h["loss"] for h in again.history] == [h["loss"] for h in trained.history]
