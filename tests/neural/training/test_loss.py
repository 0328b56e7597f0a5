"""The losses are what they say, on one device and on two, at once or in parts."""

import math
from typing import get_args

import pytest
import torch
from sentence_transformers.multi_vector_encoder.losses import MultiVectorMultipleNegativesRankingLoss
from torch import Tensor
from torch.nn.functional import normalize
from trainees import LOSS_SETTINGS, batches_of, one_thread, trainee, triplets  # noqa: F401

from idiograph.errors import InputError, SpecError
from idiograph.neural.training.loss import (
    LOSSES,
    CachedContrastive,
    Contrastive,
    LossPatches,
    Objective,
    Scores,
    arrange,
    infonce,
)
from idiograph.recipe import TrainRecipe, make_recipe


def made_up(rows: int, patches: int = 5, roles: int = 3, seed: int = 0) -> list[LossPatches]:
    """Random patches; the texts have different numbers of them."""
    chance = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(roles):
        vectors = normalize(torch.randn(rows, patches, 8, generator=chance, dtype=torch.float64), dim=-1)
        lengths = torch.randint(1, patches + 1, (rows, 1), generator=chance)
        found.append(LossPatches(vectors.requires_grad_(), torch.arange(patches)[None] < lengths))
    return found


def by_hand(a: LossPatches, i: int, b: LossPatches, j: int) -> Tensor:
    return (a.vectors[i][a.mask[i]] @ b.vectors[j][b.mask[j]].T).amax(dim=1).mean()


def test_the_gradient_of_infonce_is_the_softmax_weight_over_tau():
    matrix = torch.sin(torch.arange(18.0, dtype=torch.float64)).reshape(3, 6).requires_grad_()
    scores = arrange(matrix, 2)
    infonce(scores, torch.tensor(0.5)).backward()
    weight = (matrix / 0.5).softmax(dim=1)
    weight[torch.arange(3), torch.arange(3)] -= 1  # the positive: its weight less one
    assert torch.allclose(matrix.grad, weight / 0.5 / 3)


def test_infonce_finds_the_positive_among_all_positives_and_negatives_of_the_batch():
    roles = made_up(4)
    loss = Objective(TrainRecipe(tau=0.1))(roles)
    expected = 0.0
    for i in range(4):
        candidates = [by_hand(roles[0], i, roles[role], j) / 0.1 for role in (1, 2) for j in range(4)]
        expected += (torch.stack(candidates).logsumexp(0) - candidates[i]) / 4
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_symmetric_infonce_also_finds_the_anchor_of_each_positive():
    roles = made_up(4)
    loss = Objective(TrainRecipe(tau=0.1, symmetric=True))(roles)
    forth = Objective(TrainRecipe(tau=0.1))(roles)
    back = 0.0
    for i in range(4):
        candidates = [by_hand(roles[1], i, roles[0], j) / 0.1 for j in range(4)]
        back += (torch.stack(candidates).logsumexp(0) - candidates[i]) / 4
    assert loss.item() == pytest.approx((forth + back).item() / 2, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("triplet", lambda p, n: sum(max(b - a + 0.3, 0) for a, b in zip(p, n, strict=True)) / 4),
        ("margin", lambda p, n: (sum((1 - a) ** 2 for a in p) + sum(max(0.3 - (1 - b), 0) ** 2 for b in n)) / 8),
        (
            "hard-margin",
            lambda p, n: (
                (
                    sum((1 - a) ** 2 for a in p if 1 - a > min(1 - b for b in n))
                    + sum(max(0.3 - (1 - b), 0) ** 2 for b in n if 1 - b < max(1 - a for a in p))
                )
                / 8
            ),
        ),
    ],
)
def test_a_margin_loss_is_its_formula(name, expected):
    positive, negative = [0.9, 0.2, 0.7, 0.5], [0.1, 0.8, 0.75, 0.3]
    matrix = torch.diag_embed(torch.tensor([positive, negative])).flatten(0, 1).T.contiguous()  # (4, 8)
    settings = TrainRecipe(loss=name, margin=0.3)
    loss = LOSSES[name](arrange(matrix, 2), torch.tensor(1.0), settings)
    assert loss.item() == pytest.approx(expected(positive, negative), abs=1e-6)


def test_hybrid_is_a_mixture_of_triplet_and_infonce():
    roles = made_up(4)
    one, other, both = (Objective(TrainRecipe(loss=n, tau=0.1, mix=0.25)) for n in ("triplet", "infonce", "hybrid"))
    assert both(roles).item() == pytest.approx((0.25 * one(roles) + 0.75 * other(roles)).item(), rel=1e-6)


def test_a_false_negative_gets_no_gradient():
    matrix = torch.tensor([[0.3, 0.2, 0.1, 0.9], [0.2, 0.3, 0.4, 0.1]], requires_grad=True)
    authors = torch.tensor([7, 8])
    scores = arrange(
        matrix, 2, authors, torch.tensor([7, 8, 9, 7])
    )  # the second row's negative is by the first's author
    infonce(scores, torch.tensor(0.1)).backward()
    assert matrix.grad[0, 3] == 0
    assert matrix.grad[0, 0] != 0
    assert matrix.grad[1, 3] != 0


def test_without_the_mask_a_false_negative_counts():
    roles, labels = made_up(3), torch.tensor([[1, 1, 2], [1, 1, 3], [4, 4, 5]])
    masked, plain = Objective(TrainRecipe()), Objective(TrainRecipe(mask_false_negatives=False))
    assert masked(roles, labels) < plain(roles, labels)


def test_negatives_per_anchor_are_counted_without_the_false_ones():
    objective, roles = Objective(TrainRecipe()), made_up(3)
    objective(roles, torch.tensor([[1, 1, 2], [1, 1, 3], [4, 4, 5]]))
    assert float(objective.negatives) == pytest.approx((4 + 4 + 5) / 3)
    objective(roles, None)
    assert float(objective.negatives) == 5


def test_a_learned_temperature_has_a_gradient_and_a_given_one_has_none():
    roles = made_up(4)
    learned, given = Objective(TrainRecipe(tau="learn")), Objective(TrainRecipe(tau=0.3))
    learned(roles).backward()
    assert learned.log_tau.grad is not None
    assert learned.log_tau.grad != 0
    assert not given.log_tau.requires_grad
    assert given.tau.item() == pytest.approx(0.3)


def test_with_sums_a_learned_temperature_begins_as_many_times_higher_as_there_are_patches():
    roles = made_up(4)
    objective = Objective(TrainRecipe(tau="learn", score="maxsim"))
    objective(roles)
    assert objective.tau.item() == pytest.approx(0.05 * roles[0].mask.sum().item() / 4, rel=1e-5)


@pytest.mark.parametrize("name", LOSS_SETTINGS)
def test_scoring_a_few_anchors_at_a_time_changes_nothing(name):
    whole, parts = made_up(5), made_up(5)
    settings = LOSS_SETTINGS[name]
    few = settings.model_copy(update={"score_rows": 2})
    losses = Objective(settings)(whole), Objective(few)(parts)
    for loss in losses:
        loss.backward()
    assert torch.allclose(*losses)
    assert torch.allclose(whole[0].vectors.grad, parts[0].vectors.grad)


def test_a_margin_loss_refuses_pairs():
    with pytest.raises(InputError, match="loss 'triplet' needs triplets, but the rows are pairs; use 'infonce'"):
        Objective(TrainRecipe(loss="triplet"))(made_up(2, roles=2))


def test_infonce_takes_pairs():
    objective = Objective(TrainRecipe())
    assert math.isfinite(objective(made_up(3, roles=2)).item())
    assert float(objective.negatives) == 2


def test_an_unknown_loss_is_refused_with_the_known_ones():
    with pytest.raises(SpecError, match=r"\[train\] loss: input should be 'infonce', .* but got 'inphonce'"):
        make_recipe("sound", {"train": {"loss": "inphonce"}})


def test_every_loss_of_the_recipe_is_there():
    assert set(get_args(TrainRecipe.model_fields["loss"].annotation)) == set(LOSSES)


def test_a_temperature_of_zero_is_refused():
    with pytest.raises(SpecError, match=r"\[train\] tau: input should be greater than 0, but got 0"):
        make_recipe("sound", {"train": {"tau": 0}})


def test_infonce_is_that_of_sentence_transformers(backbones):
    encoder = trainee(backbones["modernbert"], patch="ngram:2")
    batch = batches_of(encoder, triplets(6), 6)[0]
    settings = TrainRecipe(tau=0.5, score="maxsim", mask_false_negatives=False)
    ours = Contrastive(encoder.model, Objective(settings))(batch.columns, batch.labels)
    theirs = MultiVectorMultipleNegativesRankingLoss(encoder.model, scale=2.0)(batch.columns)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


@pytest.mark.parametrize("name", LOSS_SETTINGS)
def test_in_chunks_the_gradient_is_the_same(backbones, name):
    found = []
    for chunk in (0, 2):
        encoder = trainee(backbones["modernbert"], patch="ngram:2")
        batch = batches_of(encoder, triplets(5), 5)[0]
        objective = Objective(LOSS_SETTINGS[name])
        loss = (
            CachedContrastive(encoder.model, objective, chunk, 0.5)
            if chunk
            else Contrastive(encoder.model, objective, 0.5)
        )
        loss(batch.columns, batch.labels).backward()
        grads = [p.grad for p in encoder.model.parameters() if p.grad is not None]
        found.append([*grads, objective.log_tau.grad if objective.log_tau.requires_grad else torch.zeros(())])
    for whole, parts in zip(*found, strict=True):
        assert torch.allclose(whole, parts, atol=1e-6)


def test_the_loss_trains_in_the_librarys_own_trainer(backbones, tmp_path):
    datasets = pytest.importorskip("datasets", reason="sentence-transformers' trainer needs datasets")
    from sentence_transformers import MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments

    part, encoder = triplets(8), trainee(backbones["modernbert"], patch="ngram:2")
    columns = {
        role: [part.texts[at] for at in part.rows[:, c]] for c, role in enumerate(("anchor", "positive", "negative"))
    }
    rows = datasets.Dataset.from_dict({**columns, "label": part.labels[part.rows].tolist()})
    arguments = MultiVectorEncoderTrainingArguments(
        str(tmp_path), max_steps=20, per_device_train_batch_size=8, learning_rate=3e-3, report_to=[], use_cpu=True,
        logging_steps=5, save_strategy="no", dataloader_pin_memory=False, disable_tqdm=True,
    )  # fmt: skip
    loss = Contrastive(encoder.model, Objective(TrainRecipe(tau=0.05)))
    trainer = MultiVectorEncoderTrainer(encoder.model, arguments, train_dataset=rows, loss=loss)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < 0.7 * losses[0]


def test_weights_of_patches_are_those_of_repeated_patches():
    anchors, others = made_up(2, roles=2)
    mask = torch.ones(2, 5, dtype=torch.bool)
    once = LossPatches(anchors.vectors, mask, torch.tensor([[1.0, 2, 1, 1, 1]] * 2))
    twice = LossPatches(anchors.vectors[:, [0, 1, 1, 2, 3, 4]], torch.ones(2, 6, dtype=torch.bool))
    for score in ("meansim", "maxsim"):
        objective = Objective(TrainRecipe(score=score, tau=1.0))
        assert torch.allclose(objective.score(once, others), objective.score(twice, others))


def test_a_row_may_have_several_negatives():
    scores = Scores(torch.tensor([[0.9, 0.1, 0.8]]), torch.tensor([0]), torch.tensor([[1, 2]]))
    loss = LOSSES["triplet"](scores, torch.tensor(1.0), TrainRecipe(loss="triplet", margin=0.2))
    assert loss.item() == pytest.approx((0 + 0.1) / 2)
