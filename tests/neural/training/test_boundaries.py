"""Learned boundaries are taught by the loss itself, keep to their budget, and are the same wherever they are read."""

import math

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder
from torch import Tensor
from torch.nn.functional import normalize
from trainees import batches_of, one_thread, trainee, triplets  # noqa: F401

from idiograph.errors import SpecError
from idiograph.neural.encoder import TorchEncoder
from idiograph.neural.layers import Boundary, pool
from idiograph.neural.reader import patch_layer
from idiograph.neural.training.boundaries import WEIGHT, boundary_of, cool_boundaries
from idiograph.neural.training.loop import make_loss
from idiograph.neural.training.loss import Contrastive, LossPatches, Objective
from idiograph.recipe import TrainRecipe

WIDTH = 8


def made_up(rows: int = 3, tokens: int = 11, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Token vectors of texts of different lengths, and which tokens are kept."""
    chance = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, tokens + 1, (rows, 1), generator=chance)
    vectors = torch.randn(rows, tokens, WIDTH, generator=chance, dtype=torch.float64)
    return vectors, torch.arange(tokens)[None] < lengths


def head(seed: int = 0, cut: str = "budget") -> Boundary:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Boundary(WIDTH, cut).double()


def soft(boundary: Boundary, vectors: Tensor, kept: Tensor, size: int = 3) -> LossPatches:
    found = boundary.soften(vectors, kept, size, None)
    return LossPatches(normalize(found["token_embeddings"], dim=-1), found["attention_mask"], found["patch_weights"])


def hard(boundary: Boundary, vectors: Tensor, kept: Tensor, size: int = 3) -> LossPatches:
    means, mask = pool(vectors, boundary.number(vectors, kept, size))
    return LossPatches(normalize(means.double(), dim=-1), mask)


def phrases(authors: int, seed: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Two texts by each author: vectors, kept, and where phrases begin. An author has six phrases, of two to four tokens;
    only the mean of a whole phrase is the author's own, and its first token looks like a first token."""
    chance = torch.Generator().manual_seed(seed)
    own = torch.randn(authors, 6, WIDTH - 2, generator=chance)

    def text(author: int) -> tuple[Tensor, Tensor]:
        parts, begins = [], []
        for phrase in torch.randperm(6, generator=chance).tolist():
            size = int(torch.randint(2, 5, (1,), generator=chance))
            tokens = torch.randn(size, WIDTH - 2, generator=chance) * 3
            is_first = torch.arange(size) == 0
            look = torch.stack([is_first, ~is_first], dim=1) * 2.0
            parts.append(torch.cat([tokens - tokens.mean(dim=0) + own[author, phrase], look], dim=1))
            begins.append(is_first)
        return torch.cat(parts), torch.cat(begins)

    def side() -> tuple[Tensor, Tensor, Tensor]:
        texts = [text(author) for author in range(authors)]
        pad = torch.nn.utils.rnn.pad_sequence
        vectors, begins = (pad([t[at] for t in texts], batch_first=True) for at in range(2))
        return vectors.double(), pad([torch.ones(len(v)) for v, _ in texts], batch_first=True).bool(), begins.bool()

    return [side(), side()]


def hits(boundary: Boundary) -> float:
    """Which part of the boundaries are at the beginning of a phrase; first tokens do not count."""
    vectors, kept, begins = phrases(64, seed=999)[0]
    number = boundary.number(vectors, kept, 3)
    cuts = (number[:, 1:] != number[:, :-1]) & kept[:, 1:]
    return float((cuts & begins[:, 1:]).sum() / cuts.sum())


def test_infonce_alone_teaches_where_phrases_begin():
    boundary, objective = head(), Objective(TrainRecipe(tau=0.05))
    before = hits(boundary)
    optimizer = torch.optim.Adam(boundary.parameters(), 1e-2)
    for step in range(60):
        boundary.temperature = 0.05 ** (step / 60)
        loss = objective([soft(boundary, vectors, kept) for vectors, kept, _ in phrases(24, step)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert before < 0.5
    assert hits(boundary) > 0.85


def test_the_gradient_of_infonce_at_a_boundary_is_that_of_finite_differences():
    boundary, objective = head(), Objective(TrainRecipe(tau=0.1))
    sides = made_up(seed=1), made_up(seed=2), made_up(seed=3)
    weight = boundary.head[0].weight

    def loss() -> Tensor:
        return objective([soft(boundary, *side) for side in sides])

    loss().backward()
    assert weight.grad is not None
    for place in ((0, 0), (1, 5)):
        found = []
        for step in (1e-3, -1e-3):
            with torch.no_grad():
                weight[place] += step
                found.append(loss().item())
                weight[place] -= step
        assert float(weight.grad[place]) == pytest.approx((found[0] - found[1]) / 2e-3, rel=0.02)
        assert abs(float(weight.grad[place])) > 1e-3


def test_boundaries_in_a_model_receive_gradient_from_infonce(backbones):
    encoder = trainee(backbones["modernbert"], patch="learned:3")
    encoder.model.train()
    batch = batches_of(encoder, triplets(4), 4)[0]
    Contrastive(encoder.model, Objective(TrainRecipe(tau=0.05)))(batch.columns, batch.labels).backward()
    boundary = boundary_of(encoder.model)
    assert boundary is not None
    assert all(float(p.grad.abs().max()) > 0 for name, p in boundary.named_parameters() if name != "head.2.bias")


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_a_text_gets_as_many_patches_as_the_budget_says(size):
    vectors, kept = made_up(rows=20)
    number = head().number(vectors, kept, size)
    for one, mask in zip(number, kept, strict=True):
        assert int(one.max()) + 1 == math.ceil(int(mask.sum()) / size)
        assert (one[mask].diff() >= 0).all()
        assert (one[~mask] == -1).all()


def test_a_tie_does_not_change_the_number_of_patches():
    vectors = torch.ones(1, 9, WIDTH, dtype=torch.float64)
    number = head().number(vectors, torch.ones(1, 9, dtype=torch.bool), 3)
    assert int(number.max()) + 1 == 3


@pytest.mark.parametrize("score", ["meansim", "maxsim"])
def test_as_the_temperature_falls_the_scores_become_those_of_the_hard_patches(score):
    boundary, objective = head(), Objective(TrainRecipe(score=score, tau=1.0))
    boundary.temperature = 1e-4
    a, b = made_up(5, seed=1), made_up(5, seed=2)
    softly = objective.score(soft(boundary, *a), soft(boundary, *b))
    assert torch.allclose(softly, objective.score(hard(boundary, *a), hard(boundary, *b)), atol=1e-5)


def test_a_budget_of_one_token_a_patch_is_token_level():
    vectors, kept = made_up()
    number = head().number(vectors, kept, 1)
    assert torch.equal(number, (kept.cumsum(dim=1) - 1).masked_fill(~kept, -1))


def test_queries_and_documents_are_read_alike(backbones, texts):
    model = trainee(backbones["bert"], patch="learned:2").model.eval()
    pairs = zip(model.encode_query(texts), model.encode_document(texts), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


def test_saved_boundaries_are_the_same_here_and_in_plain_sentence_transformers(backbones, tmp_path, texts):
    encoder = trainee(backbones["bert"], patch="learned:2")
    encoder.model.eval()
    encoder.save(tmp_path / "model", "learned:2")
    expected = encoder.model.encode_document(texts)
    here, plain = (
        TorchEncoder.open(tmp_path / "model").model,
        MultiVectorEncoder(str(tmp_path / "model"), trust_remote_code=True),
    )
    for model in (here, plain):
        assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(expected, model.encode_document(texts), strict=True))


def test_training_goes_on_with_the_boundaries_that_a_model_has(backbones, tmp_path):
    encoder = trainee(backbones["bert"], patch="learned:2")
    with torch.no_grad():
        patch_layer(encoder.model).boundary.head[0].bias += 1
    encoder.save(tmp_path / "model", "learned:2")
    again = trainee(tmp_path / "model", patch="learned:3")
    assert torch.equal(patch_layer(again.model).boundary.head[0].bias, patch_layer(encoder.model).boundary.head[0].bias)


def test_it_gets_cold_before_the_end():
    model = torch.nn.Sequential()
    from idiograph.neural.layers import PatchPooling

    layer = PatchPooling("learned:3", width=WIDTH)
    model.append(layer)
    heat = []
    for part in (0, 0.4, 0.8, 1):
        cool_boundaries(model, part)
        heat.append(layer.boundary.temperature)
    assert heat[0] == 1.0
    assert heat[0] > heat[1] > heat[2] == heat[3] == pytest.approx(0.05)


@pytest.mark.parametrize("kind", ["reg1", "reg2"])
def test_the_published_boundaries_learn_from_their_penalty_and_from_nothing_else(backbones, kind):
    encoder = trainee(backbones["modernbert"], patch="learned:3", boundaries=kind)
    encoder.model.train()
    batch = batches_of(encoder, triplets(4), 4)[0]
    loss = Contrastive(encoder.model, Objective(TrainRecipe(tau=0.05)))
    anchors, others = (encoder.model(dict(batch.columns[at]), task=t) for at, t in ((0, "query"), (1, "document")))
    boundary = boundary_of(encoder.model)
    assert boundary is not None
    roles = [LossPatches(o["token_embeddings"], o["attention_mask"]) for o in (anchors, others)]
    assert torch.autograd.grad(loss.objective(roles), boundary.head[0].weight, allow_unused=True) == (None,)
    loss(batch.columns, batch.labels).backward()
    assert float(boundary.head[0].weight.grad.abs().max()) > 0


def test_the_published_penalties_are_their_formulas(backbones):
    from idiograph.neural.training.boundaries import boundary_penalty

    chance = {"cut_probability": torch.tensor([[0.5, 0.25, 0.0], [1.0, 1.0, 1.0]]), "cut_tokens": torch.tensor([2, 3])}
    found = {}
    for kind in ("reg1", "reg2"):
        found[kind] = boundary_penalty(
            trainee(backbones["bert"], patch="learned:3", boundaries=kind).model, chance
        ).item()
    assert found["reg1"] == pytest.approx(-WEIGHT * (math.log(0.75) + math.log(3)) / 2)
    assert found["reg2"] == pytest.approx(WEIGHT * ((0.375 - 1 / 3) ** 2 + (1 - 1 / 3) ** 2) / 2, rel=1e-5)


def test_published_boundaries_are_drawn_for_anchors_and_fixed_for_other_texts():
    boundary, (vectors, kept) = head(cut="reg2"), made_up(20)
    torch.manual_seed(0)
    queries = [boundary.soften(vectors, kept, 3, "query")["attention_mask"].sum() for _ in range(3)]
    others = [boundary.soften(vectors, kept, 3, "document")["attention_mask"].sum() for _ in range(3)]
    assert len(set(map(int, queries))) > 1
    assert len(set(map(int, others))) == 1


def test_learned_boundaries_cannot_be_trained_in_chunks(backbones):
    model = trainee(backbones["bert"], patch="learned:3").model
    with pytest.raises(SpecError, match="learned boundaries cannot be trained in chunks; set chunk to 0"):
        make_loss(model, Objective(TrainRecipe()), TrainRecipe(chunk=4))
