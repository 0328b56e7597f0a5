"""A model learns to agree with other rankers; devices and pauses change nothing of it."""

import json

import numpy as np
import pytest
import torch
from trainees import one_thread, recipe, trainee, triplets, write_jsonl  # noqa: F401

from idiograph.errors import SpecError
from idiograph.loading import load
from idiograph.neural.reader import PatchReader, encode_texts
from idiograph.neural.training import teacher as teach
from idiograph.neural.training.batches import Batches, Order
from idiograph.neural.training.loop import fit_model
from idiograph.neural.training.loss import (
    CachedContrastive,
    Contrastive,
    Objective,
    agreement,
    arrange,
    infonce,
)
from idiograph.neural.training.teacher import POPULAR, Teacher
from idiograph.neural.training.train import train_model_on
from idiograph.rankers.blend import Blend, standard
from idiograph.rankers.letters import NGrams
from idiograph.recipe import TrainRecipe, make_recipe

TAU = torch.tensor(0.1)


class Says:
    """A ranker that says what it was told."""

    name = "says"

    def __init__(self, scores):
        self.scores = np.array(scores, np.float32)

    def compare(self, a, b):
        return self.scores


def said_by(ranker, a, b):
    return Teacher(ranker).lesson(a, b).judge().numpy()


def test_agreement_is_least_where_both_choose_alike():
    teacher_scores = torch.randn(4, 8, generator=torch.manual_seed(1))
    matrix = (teacher_scores * 0.1 / 0.5).requires_grad_()  # the same, at the other temperature
    agreement(arrange(matrix, 2), teacher_scores, TAU, 0.5).backward()
    assert matrix.grad.abs().max() < 1e-6
    off = (matrix.detach() + torch.eye(4, 8) * 0.05).requires_grad_()
    assert agreement(arrange(off, 2), teacher_scores, TAU, 0.5) > agreement(
        arrange(matrix, 2), teacher_scores, TAU, 0.5
    )


def test_a_teacher_who_is_sure_of_the_positive_says_what_infonce_says():
    matrix = torch.randn(4, 8, generator=torch.manual_seed(2)) * 0.1
    sure = torch.zeros(4, 8).fill_diagonal_(1000.0)
    scores = arrange(matrix, 2)
    assert agreement(scores, sure, TAU, 0.5).item() == pytest.approx(infonce(scores, TAU).item(), rel=1e-5)


def test_a_false_negative_takes_no_part_in_agreement():
    matrix = torch.randn(2, 4, generator=torch.manual_seed(3)).requires_grad_()
    scores = arrange(matrix, 2, torch.tensor([7, 8]), torch.tensor([7, 8, 9, 7]))
    teacher_scores = torch.zeros(2, 4)
    loss = agreement(scores, teacher_scores, TAU, 0.5)
    loss.backward()
    assert torch.isfinite(loss)
    assert matrix.grad[0, 3] == 0
    assert matrix.grad[1, 3] != 0
    teacher_scores[0, 3] = 100.0
    assert agreement(scores, teacher_scores, TAU, 0.5).item() == pytest.approx(loss.item())


def test_a_teacher_adds_up_its_parts_and_takes_off_what_is_near_to_everything():
    one, other = np.random.default_rng(1).normal(size=(2, 5, 6))
    told = said_by(Blend(((1.0, Says(one)), (0.5, Says(other)))), ["a"] * 5, ["b"] * 6)
    total = standard(one) + 0.5 * standard(other)
    assert told == pytest.approx(standard(total - POPULAR * total.mean(axis=0)), abs=1e-5)
    liked = one.copy()
    liked[:, 2] += 3  # by all anchors
    more, less = standard(liked)[:, 2].mean(), said_by(Says(liked), ["a"] * 5, ["b"] * 6)[:, 2].mean()
    assert less < more - 0.3


@pytest.mark.parametrize(("grain", "score"), [("ngram:2", "meansim"), ("word", "maxsim")])
def test_a_model_is_read_both_ways_at_its_own_grain(backbones, grain, score):
    style = load(backbones["bert"], patch=grain, score=score)
    a, b = (
        ["a map of the harbour, after all", "bees dance"],
        ["bees sleep slowly ; hence the map", "the tide", "a book"],
    )
    there, back = style.compare(a, b), style.compare(b, a).T
    assert not np.allclose(standard(there), standard(back))
    both = (standard(there) + standard(back)) / 2
    alone, blended = said_by(style, a, b), said_by(Blend(((2.0, style), (1.0, NGrams()))), a, b)
    assert alone == pytest.approx(standard(both - POPULAR * both.mean(axis=0)), abs=1e-4)
    total = 2 * both + standard(NGrams().compare(a, b))
    assert blended == pytest.approx(standard(total - POPULAR * total.mean(axis=0)), abs=1e-4)


def test_a_large_batch_is_read_in_parts_and_judged_as_one(backbones, monkeypatch):
    style = load(backbones["bert"], patch="ngram:2")
    part = triplets(6)
    a, b = part.texts[:6], part.texts[6:]
    whole = said_by(style, a, b)
    monkeypatch.setattr(teach, "TEXTS", 4)
    assert said_by(style, a, b) == pytest.approx(whole, abs=1e-4)


def test_a_teacher_reads_no_further_than_its_pupil(backbones):
    style = load(backbones["bert"], patch="ngram:2")
    short, long = ["a map of the harbour", "bees dance here"], ["a map of the harbour " + "bees sleep " * 20] * 2
    ((seen, _),) = Teacher(style, longest=8).lesson(short, long).tokens.values()
    assert seen.shape == (4, 8)


def test_models_with_one_vocabulary_read_the_same_tokens_and_others_their_own(backbones, monkeypatch):
    read = []
    monkeypatch.setattr(teach, "encode_texts", lambda *given: read.append(given) or encode_texts(*given))
    styles = [
        load(backbones[name], patch=grain) for name, grain in (("bert", "ngram:2"), ("bert", "word"), ("xlmr", "word"))
    ]
    part = triplets(4)
    a, b = part.texts[:4], part.texts[4:]
    told = said_by(Blend(tuple((1.0, style) for style in styles)), a, b)
    assert len(read) == 2
    total = sum(standard(style.compare(a, b)) + standard(style.compare(b, a).T) for style in styles) / 2
    assert told == pytest.approx(standard(total - POPULAR * total.mean(axis=0)), abs=1e-4)


def test_each_device_is_taught_its_rows_of_the_whole_batch(backbones):
    encoder, order = trainee(backbones["bert"], patch="ngram:2"), Order([triplets(16)], 8)
    made = [encoder.model.tokenizer, encoder.prompt, 64]
    whole = Batches(order, *made, teacher=Teacher(NGrams()))[1].teacher_scores
    parts = [Batches(order, *made, rank, 2, Teacher(NGrams()))[1].teacher_scores for rank in (0, 1)]
    assert whole.shape == (8, 16)
    assert torch.equal(torch.cat(parts), whole)
    assert Batches(order, *made)[1].teacher_scores is None


def taught_run(backbones, part, folder=None, **changes):
    encoder = trainee(backbones["bert"], patch="ngram:2")
    made = encoder.model.tokenizer, encoder.prompt, 64
    batches = Batches(Order([part], 8), *made, teacher=Teacher(NGrams()))
    settings = {"batch": 8, "steps": 30, "lr": 3e-3, "tau": 0.05, "teaching": 1.0, "log_every": 10, **changes}
    fit_model(encoder.model, batches, TrainRecipe(**settings), folder=folder)
    return encoder


def test_a_model_comes_to_agree_with_its_teacher(backbones):
    part = triplets(8)
    texts = [part.texts[at] for at in part.rows[:, 0]], [part.texts[at] for at in part.rows[:, 1:].T.flatten()]
    wanted = said_by(NGrams(), *texts)

    def agreed(encoder):
        encoder.model.eval()
        reader = PatchReader(encoder.model, encoder.prompt, 64)
        found = standard(reader.scores(*map(reader.read, texts)))
        return np.corrcoef(found.ravel(), wanted.ravel())[0, 1]

    before = agreed(trainee(backbones["bert"], patch="ngram:2"))
    assert agreed(taught_run(backbones, part)) > max(before + 0.2, 0.6)


def test_without_a_share_a_teacher_changes_nothing(backbones):
    plain, part = trainee(backbones["bert"], patch="ngram:2"), triplets(8)
    batches = Batches(Order([part], 8), plain.model.tokenizer, plain.prompt, 64)
    fit_model(plain.model, batches, TrainRecipe(batch=8, steps=3, lr=3e-3, tau=0.05))
    silent = taught_run(backbones, part, steps=3, teaching=0.0)
    for name, value in plain.model.state_dict().items():
        assert torch.equal(value, silent.model.state_dict()[name]), name


def test_in_chunks_the_gradient_of_a_taught_model_is_the_same(backbones):
    found = []
    for chunk in (0, 2):
        encoder, objective = trainee(backbones["modernbert"], patch="ngram:2"), Objective(TrainRecipe(tau=0.1))
        batches = Batches(
            Order([triplets(5)], 5), encoder.model.tokenizer, encoder.prompt, 64, teacher=Teacher(NGrams())
        )
        objective.teacher_scores = batches[0].teacher_scores
        made = CachedContrastive(encoder.model, objective, chunk) if chunk else Contrastive(encoder.model, objective)
        made(batches[0].columns, batches[0].labels).backward()
        found.append([p.grad for p in encoder.model.parameters() if p.grad is not None])
    assert all(torch.allclose(whole, parts, atol=1e-6) for whole, parts in zip(*found, strict=True))


def test_the_command_opens_the_teacher_and_the_model_says_who_it_was(backbones, tmp_path, idiograph):
    write_jsonl(triplets(12), tmp_path / "some.jsonl")
    given = (
        "train",
        tmp_path / "some.jsonl",
        "--backbone",
        backbones["bert"],
        "--steps",
        2,
        "--batch",
        4,
        "--device",
        "cpu",
    )
    status, _, _ = idiograph(*given, "-o", tmp_path / "m", "--teacher", "ngrams+0.5*bm25", "--set", "teaching=0.7")
    assert status == 0
    made = json.loads((tmp_path / "m" / "manifest.json").read_text())["recipe"]
    assert (made["teacher"], made["teaching"]) == ("ngrams+0.5*bm25", 0.7)
    status, _, error = idiograph(*given, "-o", tmp_path / "n", "--teacher", "no-such-folder/teacher")
    assert status == 1
    assert "no-such-folder/teacher" in error
    assert not (tmp_path / "n").exists()


def test_a_teacher_needs_candidates_and_must_be_opened(backbones, tmp_path):
    write_jsonl(triplets(12), tmp_path / "some.jsonl")
    sources = [tmp_path / "some.jsonl"]
    with pytest.raises(SpecError, match="has no candidates for a teacher to judge"):
        train_model_on(
            sources, tmp_path / "m", backbones["bert"], recipe(loss="triplet"), teacher=NGrams(), device="cpu"
        )
    with pytest.raises(SpecError, match="the teacher 'ngrams' was not opened"):
        train_model_on(sources, tmp_path / "m", backbones["bert"], recipe(teacher="ngrams"), device="cpu")


@pytest.mark.parametrize("wrong", [{"teaching": 1.5}, {"teacher_tau": 0.0}])
def test_what_cannot_be_a_share_or_a_temperature_is_refused(wrong):
    with pytest.raises(SpecError, match=next(iter(wrong))):
        make_recipe("sound", {"train": wrong})
