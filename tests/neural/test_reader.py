"""A model of a study, read fast: the same numbers as when each text goes its own way."""

import numpy as np
import pytest
import torch

from idiograph.neural.reader import Memory, OpenedTrial, Remembered, length_groups
from idiograph.neural.training.batches import Batches, Order, encode_triplets
from idiograph.neural.training.validate import PatchReader
from idiograph.neural.triplets import triplets_from_rows

TEXTS = [
    f"The {word} of the harbour, it seems, was {word}; we went on." * n for word in ("tide", "map") for n in (1, 3, 2)
]
GRAINS = ("whole", "ngram:1", "ngram:3", "word")


@pytest.fixture(scope="module", params=["bert", "modernbert"])
def trial(request, backbones) -> OpenedTrial:
    return OpenedTrial(backbones[request.param], {"patch": "ngram:2"}, 64, "cpu")


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("grain", GRAINS)
def test_patches_and_scores_are_those_of_the_plain_way(trial, grain, mean):
    patches = trial.read(TEXTS, GRAINS)[grain]
    trial.encoder.layer.patch = grain
    plain = PatchReader(trial.encoder.model, trial.encoder.prompt, 64, mean)
    rows = plain.embed(TEXTS)
    assert patches.sizes.tolist() == [len(row) for row in rows]
    vectors, mask = patches.padded(np.arange(len(TEXTS)))
    for at, row in enumerate(rows):
        torch.testing.assert_close(vectors[at][mask[at]], row)
    left, right = np.array([2, 0]), np.array([1, 5, 3])
    expected = plain.scores([rows[at] for at in left], [rows[at] for at in right])
    np.testing.assert_allclose(trial.scores(patches, left, right, mean), expected, rtol=1e-5)


def test_one_vector_a_text_is_the_mean_of_its_patches(trial):
    patches = trial.read(TEXTS, ["ngram:1"])["ngram:1"]
    vectors, mask = patches.padded(np.arange(len(TEXTS)))
    for row, kept, mean in zip(vectors, mask, patches.means(), strict=True):
        expected = torch.nn.functional.normalize(row[kept].mean(dim=0), dim=0)
        np.testing.assert_allclose(mean, expected.numpy(), atol=1e-6)


def test_remembered_tokens_are_those_of_the_tokenizer(trial):
    tokenizer = trial.encoder.model.tokenizer
    memory = Memory(tokenizer, "", 24)
    memory(TEXTS[:2])
    for ours, theirs in zip(memory.padded(TEXTS), encode_triplets(tokenizer, TEXTS, "", 24), strict=True):
        assert torch.equal(ours, theirs)


def test_groups_take_every_text_once_and_no_more_than_fits():
    lengths = np.array([30, 5, 90, 7, 30, 12])
    made = list(length_groups(np.argsort(lengths, kind="stable"), lengths, 120))
    assert sorted(np.concatenate(made).tolist()) == list(range(6))
    assert all(len(part) == 1 or len(part) * (lengths[part].max() + 8) <= 120 for part in made)


def test_the_next_trial_on_a_backbone_begins_with_its_own_weights(backbones):
    rows = [[(f"{word} {role} {n}", word, f"{word}{role}") for role, word in enumerate(pair)]
            for n in range(8) for pair in (("ann", "ann", "bob"), ("bob", "bob", "ann"))]  # fmt: skip
    part = triplets_from_rows(rows)
    first = OpenedTrial(backbones["bert"], {"patch": "ngram:1"}, 32, "cpu")
    before = first.read(TEXTS, ["ngram:1"])["ngram:1"].vectors
    trained = first.train([part], {"steps": 3, "batch": 4, "lr": 1e-2})
    after = first.read(TEXTS, ["ngram:1"])["ngram:1"].vectors
    assert not torch.allclose(before, after)
    second = OpenedTrial(backbones["bert"], {"patch": "whole"}, 32, "cpu")
    assert torch.equal(second.read(TEXTS, ["ngram:1"])["ngram:1"].vectors, before)
    third = OpenedTrial(backbones["bert"], {"patch": "ngram:1"}, 32, "cpu")
    again = third.train([part], {"steps": 3, "batch": 4, "lr": 1e-2})
    assert [h["loss"] for h in again.history] == [h["loss"] for h in trained.history]


def test_batches_of_remembered_texts_are_the_usual_ones(trial):
    rows = [[(f"{text} {n}", str(role), f"{role}") for role, text in enumerate(TEXTS[:3])] for n in range(6)]
    order = Order([triplets_from_rows(rows)], 2, longest=32)
    tokenizer = trial.encoder.model.tokenizer
    plain, ours = (
        Batches(order, tokenizer, "", 32),
        Remembered(order, tokenizer, "", 32, memory=Memory(tokenizer, "", 32)),
    )
    for step in range(3):
        assert torch.equal(plain[step].input_ids, ours[step].input_ids)
        assert torch.equal(plain[step].attention_mask, ours[step].attention_mask)
