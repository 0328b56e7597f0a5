"""Every grain can be learned, a pause changes nothing, and what comes out is a model folder that says how it was made."""

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from resealed import reseal
from sentence_transformers import MultiVectorEncoder
from torch import nn
from trainees import batches_of, one_thread, passages, recipe, trainee, triplets, write_jsonl  # noqa: F401

from idiograph.errors import ArtifactError, InputError, ModelError, SpecError
from idiograph.loading import load
from idiograph.neural.build import check_model_settings
from idiograph.neural.layers import Centering
from idiograph.neural.reader import PatchReader
from idiograph.neural.training.batches import Batches, Order
from idiograph.neural.training.loop import TrainingRun, fit_model, validation_steps
from idiograph.neural.training.optimize import blend_with_base, freeze, parameter_groups, schedule, snapshot
from idiograph.neural.training.reporters import check_reporters
from idiograph.neural.training.train import train_model_on
from idiograph.neural.training.validate import Probe, draw_probe, examine
from idiograph.neural.triplets import drop_held_out_rows, triplets_from_rows
from idiograph.presets import PRESETS
from idiograph.recipe import TrainRecipe, make_recipe
from idiograph.store import read_manifest

GRAINS = ["whole", "word", "auto", "ngram:1", "ngram:3", "cluster:3", "learned:3"]


def same_author(authors: int = 6, spans: int = 4):
    """Triplets in which an author-set has several documents, so that there is something to find in a pool."""
    rows = passages(authors * spans, seed=3)
    for at, row in enumerate(rows):
        for role in range(2):
            row[role] = (row[role][0], f"author {at % authors}", row[role][2])
    return triplets_from_rows(rows, "valid")


def settings(**changes) -> TrainRecipe:
    return TrainRecipe(**{"batch": 8, "steps": 6, "lr": 3e-3, "tau": 0.05, "log_every": 2, **changes})


@pytest.fixture
def source(tmp_path) -> Path:
    return write_jsonl(triplets(12), tmp_path / "some.jsonl")


@pytest.fixture
def held_out(tmp_path) -> Path:
    return write_jsonl(same_author(), tmp_path / "valid.jsonl")


@pytest.mark.parametrize("grain", GRAINS)
def test_every_grain_overfits_eight_triplets(backbones, grain):
    encoder = trainee(backbones["modernbert"], patch=grain)
    batches = batches_of(encoder, triplets(8), 8)
    result = fit_model(encoder.model, batches, settings(steps=60, lr=8e-3, tau=0.05, warmup=0.05))
    losses = [entry["loss"] for entry in result.history]
    assert losses[0] > 1.5
    assert losses[-1] < 0.3  # the positive has three quarters of the softmax, among sixteen


@pytest.mark.parametrize(
    "extra",
    [{"head": "linear", "dim": 16}, {"head": "mlp"}, {"layers": "mean"}, {"layers": "wording"}, {"center": True}],
)
def test_heads_mixed_layers_and_centering_learn_too(backbones, extra):
    encoder = trainee(backbones["bert"], patch="ngram:2", **extra)
    before = snapshot(encoder.model)
    result = fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(steps=30, clip=0.0))
    losses = [entry["loss"] for entry in result.history]
    assert losses[-1] < losses[0] / 2
    new = [name for name in before if not name.startswith("0.") and name.split(".")[-1] != "begun"]
    assert new
    assert all(not torch.equal(before[name], encoder.model.state_dict()[name]) for name in new)


def test_centering_takes_off_the_mean_of_the_tokens():
    layer = Centering(3)
    vectors = torch.tensor([[[1.0, 2, 3], [3, 2, 1], [9, 9, 9]]])
    mask = torch.tensor([[1, 1, 0]])
    layer.train()
    layer({"token_embeddings": vectors, "attention_mask": mask})
    layer.settle()
    assert layer.mean.tolist() == [2, 2, 2]
    found = layer.eval()({"token_embeddings": vectors, "attention_mask": mask})["token_embeddings"]
    assert found[0, 0].tolist() == [-1, 0, 1]


@pytest.mark.parametrize(
    "extra", [{}, {"ema": 0.5}, {"tau": "learn", "accumulate": 2}, {"chunk": 3, "average_with_base": 0.3}]
)
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(backbones, tmp_path, extra):
    """The backbone has dropout: chance, too, goes on where it was."""

    def stop(done: int, total: int | None, text: str) -> None:
        if done == 5:
            raise KeyboardInterrupt

    part, probes = triplets(16), {"valid": draw_probe(same_author())}
    how = settings(steps=8, validate_every=2, save_every=2, **extra)
    straight = trainee(backbones["bert"], patch="ngram:2", center=True)
    expected = fit_model(straight.model, batches_of(straight, part, 8), how, probes=probes)
    paused = trainee(backbones["bert"], patch="ngram:2", center=True)
    with pytest.raises(KeyboardInterrupt):
        fit_model(paused.model, batches_of(paused, part, 8), how, probes=probes, folder=tmp_path, progress=stop)
    again = trainee(backbones["bert"], patch="ngram:2", center=True)
    result = fit_model(again.model, batches_of(again, part, 8), how, probes=probes, folder=tmp_path)
    for name, value in straight.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name]), name
    for name, value in expected.last.items():
        assert torch.equal(value, result.last[name]), name
    assert (expected.best_step, expected.measures, expected.tau) == (result.best_step, result.measures, result.tau)
    assert [e.get("loss") for e in expected.history] == [e.get("loss") for e in result.history]


def test_dropout_is_what_makes_resuming_hard(backbones):
    assert any(isinstance(m, nn.Dropout) and m.p > 0 for m in trainee(backbones["bert"]).model.modules())


def test_a_run_does_not_go_on_with_other_settings(backbones, tmp_path):
    encoder = trainee(backbones["bert"], patch="ngram:2")
    batches = batches_of(encoder, triplets(8), 8)
    fit_model(encoder.model, batches, settings(steps=1), folder=tmp_path)
    with pytest.raises(ArtifactError, match=r"was begun with other settings \(lr 0\.003 → 0\.001\)"):
        fit_model(encoder.model, batches, settings(steps=1, lr=1e-3), folder=tmp_path)


def test_a_broken_checkpoint_is_named(backbones, tmp_path):
    encoder = trainee(backbones["bert"], patch="ngram:2")
    (tmp_path / "state.pt").write_bytes(b"half of a ch")
    with pytest.raises(ArtifactError, match=r"the checkpoint '.*state\.pt' cannot be read"):
        fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(), folder=tmp_path)


def test_a_batch_in_two_parts_moves_the_weights_as_the_mean_of_both(backbones):
    part, found = triplets(8), []
    for accumulate in (1, 2):
        encoder = trainee(backbones["modernbert"], patch="whole")
        run = TrainingRun(
            encoder.model, batches_of(encoder, part, 4), settings(accumulate=accumulate, steps=1, clip=0), {}
        )
        steps = [run.batches[0], run.batches[1]]
        if accumulate == 2:
            run.step(steps)
            found.append(encoder.model[0].model.layers[0].mlp.Wo.weight.detach().clone())
        else:
            for step in steps:
                (run.loss(step.columns, step.labels) / 2).backward()
            run.update()
            found.append(encoder.model[0].model.layers[0].mlp.Wo.weight.detach().clone())
    assert torch.allclose(*found, atol=1e-4)


def test_the_model_ends_with_the_best_weights_and_the_last_are_kept(backbones):
    encoder = trainee(backbones["modernbert"], patch="ngram:2")
    probes = {"valid": draw_probe(same_author())}
    result = fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(validate_every=1), probes=probes)
    readings = {entry["step"]: entry["score"] for entry in result.history if "score" in entry}
    assert list(readings) == [0, 1, 2, 3, 4, 5, 6]
    assert result.measures["score"] == max(readings.values()) == readings[result.best_step]
    assert examine(PatchReader(encoder.model, longest=512), probes)["score"] == pytest.approx(result.measures["score"])
    encoder.model.load_state_dict(result.last)
    assert examine(PatchReader(encoder.model, longest=512), probes)["score"] == pytest.approx(readings[6])


def test_averaging_moves_the_weights_back_towards_the_base(backbones):
    found = {}
    for share in (0.0, 0.25, 1.0):
        encoder = trainee(backbones["modernbert"], patch="ngram:2")
        base = snapshot(encoder.model)
        fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(average_with_base=share))
        found[share] = snapshot(encoder.model)
    name = "0.model.layers.0.mlp.Wo.weight"
    assert torch.equal(found[1.0][name], base[name])
    assert torch.allclose(found[0.25][name], 0.75 * found[0.0][name] + 0.25 * base[name], atol=1e-6)
    with pytest.raises(SpecError, match="between 0 and 1, but got 2"):
        blend_with_base(base, base, 2)


def test_a_moving_average_of_the_weights_is_what_is_kept(backbones):
    found = {}
    for ema in (0.0, 0.5):
        encoder = trainee(backbones["modernbert"], patch="ngram:2")
        base = snapshot(encoder.model)
        fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(steps=1, ema=ema))
        found[ema] = snapshot(encoder.model)
    name = "0.model.layers.0.mlp.Wo.weight"
    assert torch.allclose(found[0.5][name], (found[0.0][name] + base[name]) / 2, atol=1e-6)


def test_frozen_layers_do_not_move_and_the_others_do(backbones):
    encoder = trainee(backbones["bert"], patch="ngram:2")
    before = snapshot(encoder.model)
    fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(freeze_layers=1))
    moved = {n for n, value in encoder.model.state_dict().items() if not torch.equal(value, before[n])}
    assert not any("embeddings" in name or "layer.0." in name for name in moved)
    assert any("layer.1." in name for name in moved)


def test_more_layers_than_there_are_cannot_be_frozen(backbones):
    with pytest.raises(SpecError, match="cannot freeze 3 layers: the model has 2"):
        freeze(trainee(backbones["bert"]).model, 3)


def test_lower_layers_learn_more_slowly_and_new_ones_at_their_own_rate(backbones):
    model = trainee(backbones["bert"], patch="ngram:2", head="linear").model
    groups = parameter_groups(model, {}, 1e-4, 1e-2, 0.1, 0.5, False)
    names = {id(p): n for n, p in model.named_parameters()}
    rates = {names[id(p)]: (g["lr"], g["weight_decay"]) for g in groups for p in g["params"]}
    assert rates["0.model.encoder.layer.1.output.dense.weight"] == (5e-5, 0.1)
    assert rates["0.model.encoder.layer.0.output.dense.bias"] == (2.5e-5, 0.0)
    assert rates["0.model.embeddings.word_embeddings.weight"] == (1.25e-5, 0.1)
    assert rates["1.linear.weight"] == (1e-2, 0.1)


def test_the_rate_rises_and_then_falls_as_a_cosine():
    share = schedule("cosine", 0.1, 100)
    assert [share(0), share(4), share(9)] == [0.1, 0.5, 1.0]
    assert share(55) == pytest.approx(0.5)
    assert share(99) < 0.001


def test_validation_can_become_ever_rarer():
    assert sorted(validation_steps(60)) == [10, 15, 22, 33, 50, 60]
    assert max(b - a for a, b in pairwise(sorted(validation_steps(20_000)))) == 1000


def test_a_checkpoint_between_two_readings_forgets_nothing(backbones, tmp_path):
    def stop(done: int, total: int | None, text: str) -> None:
        if done == 4:
            raise KeyboardInterrupt

    how, part = settings(save_every=3, log_every=2), triplets(8)
    encoder = trainee(backbones["modernbert"], patch="ngram:2")
    with pytest.raises(KeyboardInterrupt):
        fit_model(encoder.model, batches_of(encoder, part, 8), how, folder=tmp_path, progress=stop)
    again = trainee(backbones["modernbert"], patch="ngram:2")
    result = fit_model(again.model, batches_of(again, part, 8), how, folder=tmp_path)
    assert result.negatives == 15
    assert result.tokens == 6 * batches_of(again, part, 8)[0].tokens


def test_the_gradient_is_clipped(backbones):
    encoder = trainee(backbones["modernbert"], patch="ngram:2")
    run = TrainingRun(encoder.model, batches_of(encoder, triplets(8), 8), settings(clip=1e-3), {})
    parameters = [p for group in run.optimizer.param_groups for p in group["params"]]
    norms = []
    run.optimizer.step = lambda *a, **k: norms.append(
        float(nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None]))
    )
    run.step([run.batches[0]])
    assert norms == [pytest.approx(1e-3, rel=1e-3)]


def test_a_loss_that_is_not_a_number_stops_the_run(backbones):
    encoder = trainee(backbones["modernbert"], patch="ngram:2")
    with torch.no_grad():
        encoder.model[0].model.layers[0].mlp.Wo.weight += float("nan")
    with pytest.raises(ModelError, match=r"the loss is nan at step 1; lower the rate \(lr\)"):
        fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(log_every=1))


def test_progress_tells_loss_speed_and_the_time_that_is_left(backbones):
    encoder, said = trainee(backbones["modernbert"], patch="ngram:2"), []
    fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(), progress=lambda *told: said.append(told))
    assert [(done, total) for done, total, _ in said] == [(at, 6) for at in range(1, 7)]
    assert re.fullmatch(r"loss \d+\.\d{3}, [\d,]+ tokens/s, 0:00:00 left", said[-1][2])


def test_tokens_and_negatives_are_counted(backbones):
    encoder = trainee(backbones["modernbert"], patch="ngram:2")
    batches = batches_of(encoder, triplets(8), 8)
    result = fit_model(encoder.model, batches, settings(steps=3))
    assert result.tokens == sum(batches[at].tokens for at in range(3))
    assert result.negatives == 15


def test_half_precision_needs_a_gpu(backbones):
    encoder = trainee(backbones["modernbert"], patch="ngram:2")
    with pytest.raises(SpecError, match="precision 'fp16' needs a GPU; use 'fp32' here"):
        fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(precision="fp16"))


def test_training_in_bf16_learns(backbones):
    encoder = trainee(backbones["modernbert"], patch="ngram:2")
    result = fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(steps=30, precision="bf16"))
    assert result.precision == "bf16"
    assert result.history[-1]["loss"] < result.history[0]["loss"] / 2


def test_a_probe_leaves_out_the_own_document_and_counts_all_of_the_author_set():
    labels, documents = [1, 1, 1, 2, 1], [10, 10, 11, 12, 13]
    part = triplets_from_rows(
        [[(f"t{a}", str(labels[a]), str(documents[a])) for a in row] for row in ((0, 1, 3), (0, 2, 3), (4, 2, 3))]
    )
    found = draw_probe(part)
    pool = [found.texts[at] for at in found.pool]
    row = next(at for at in found.anchors if found.texts[at] == "t0")
    wanted = {
        text for text, good, own in zip(pool, found.relevant[row], found.own[row], strict=True) if good and not own
    }
    assert wanted == {"t2"}
    assert {text for text, own in zip(pool, found.own[row], strict=True) if own} <= {"t1"}


def test_validation_reads_as_the_style_does(backbones):
    from idiograph.style.model import Style

    encoder, part = trainee(backbones["bert"], patch="ngram:2"), same_author()
    one: Probe = draw_probe(part)
    reader = PatchReader(encoder.model)
    patches = reader.read(one.texts)
    found = reader.scores(patches.take(one.anchors), patches.take(one.pool))
    expected = Style(encoder, patch="ngram:2").compare(
        [one.texts[at] for at in one.anchors], [one.texts[at] for at in one.pool]
    )
    assert np.allclose(found, expected, atol=1e-5)


def test_training_makes_a_model_folder_that_says_how_it_was_made(backbones, source, held_out, tmp_path):
    from idiograph.loading import load

    result = train_model_on([source], tmp_path / "model", backbones["bert"], recipe(), valid=[held_out], device="cpu")
    style = load(tmp_path / "model")
    assert style.patch == "ngram:2"
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert manifest["recipe"]["tau"] == "learn"
    assert manifest["counts"]["negatives per anchor"] == 7
    assert manifest["counts"]["validation"] == result.measures
    assert manifest["inputs"] == {str(source): manifest["inputs"][str(source)]}
    plain = MultiVectorEncoder(str(tmp_path / "model" / "last"), trust_remote_code=True)
    assert {n for n in result.last if torch.equal(plain.state_dict()[n], result.last[n])} == set(result.last)
    history = [json.loads(line) for line in (tmp_path / "model" / "history.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in history if "loss" in entry] == [1, 2, 3, 4]


def test_a_finished_model_is_not_trained_over(backbones, source, tmp_path):
    train_model_on([source], tmp_path / "model", backbones["bert"], recipe(steps=1), device="cpu")
    with pytest.raises(ArtifactError, match="is there already; choose another -o, or pass --overwrite"):
        train_model_on([source], tmp_path / "model", backbones["bert"], recipe(steps=1), device="cpu")
    train_model_on([source], tmp_path / "model", backbones["bert"], recipe(steps=2), device="cpu", overwrite=True)
    assert json.loads((tmp_path / "model" / "manifest.json").read_text())["counts"]["steps"] == 2


def stop_at(step):
    def stop(done: int, total: int | None, text: str) -> None:
        if total and done == step:
            raise KeyboardInterrupt

    return stop


def test_a_history_has_no_row_twice_after_a_run_was_stopped_and_went_on(backbones, source, held_out, tmp_path):
    how = recipe(steps=6, save_every=2, log_every=1, validate_every=1)
    given = {"valid": [held_out], "device": "cpu"}
    with pytest.raises(KeyboardInterrupt):
        train_model_on([source], tmp_path / "model", backbones["bert"], how, progress=stop_at(5), **given)
    before = (tmp_path / "model" / "history.jsonl").read_text().splitlines()
    assert json.loads(before[-1])["step"] > 4  # what came after the checkpoint was noted
    with (tmp_path / "model" / "history.jsonl").open("a") as file:
        file.write('{"step": 5, "lo')  # what a kill leaves
    train_model_on([source], tmp_path / "model", backbones["bert"], how, **given)
    rows = [json.loads(line) for line in (tmp_path / "model" / "history.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3, 4, 5, 6]
    assert [row["step"] for row in rows if "score" in row] == [0, 1, 2, 3, 4, 5, 6]


def test_a_run_that_is_killed_before_its_model_has_a_manifest_goes_on(backbones, source, tmp_path, monkeypatch):
    def die(folder, manifest):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("idiograph.neural.training.train.seal", die)
        train_model_on([source], tmp_path / "model", backbones["bert"], recipe(steps=2), device="cpu")
    train_model_on([source], tmp_path / "model", backbones["bert"], recipe(steps=2), device="cpu")
    assert read_manifest(tmp_path / "model", "model", "train").counts["steps"] == 2
    assert not (tmp_path / "model" / ".checkpoint").exists()


def test_a_finished_model_stays_until_the_one_that_replaces_it_is_whole(backbones, source, tmp_path):
    given = {"device": "cpu", "overwrite": True}
    train_model_on([source], tmp_path / "model", backbones["bert"], recipe(steps=1), device="cpu")
    how = recipe(steps=6, save_every=2)
    with pytest.raises(KeyboardInterrupt):
        train_model_on([source], tmp_path / "model", backbones["bert"], how, progress=stop_at(5), **given)
    assert read_manifest(tmp_path / "model", "model", "train").counts["steps"] == 1
    train_model_on([source], tmp_path / "model", backbones["bert"], how, **given)
    assert read_manifest(tmp_path / "model", "model", "train").counts["steps"] == 6
    assert [path.name for path in tmp_path.iterdir() if "model" in path.name] == ["model"]


def test_a_folder_of_something_else_is_left_alone(backbones, source, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(ArtifactError, match="holds something else than a training run"):
        train_model_on([source], tmp_path / "thesis", backbones["bert"], recipe(), device="cpu", overwrite=True)


def test_a_stopped_training_goes_on_in_its_folder(backbones, source, tmp_path):
    def stop(done: int, total: int | None, text: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    how = recipe(save_every=1)
    with pytest.raises(KeyboardInterrupt):
        train_model_on([source], tmp_path / "model", backbones["bert"], how, device="cpu", progress=stop)
    told: list[tuple[int, int | None, str]] = []
    train_model_on(
        [source], tmp_path / "model", backbones["bert"], how, device="cpu", progress=lambda *said: told.append(said)
    )
    done = [at for at, total, _ in told if total]
    assert done == [3, 4] or done == [2, 3, 4]
    assert next(text for _, total, text in told if not total) == "reading triplets"
    train_model_on([source], tmp_path / "straight", backbones["bert"], how, device="cpu")
    one, other = (
        MultiVectorEncoder(str(tmp_path / f), trust_remote_code=True).state_dict() for f in ("model", "straight")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not (tmp_path / "model" / "checkpoint").exists()


def test_several_collections_are_mixed_by_weight(backbones, tmp_path):
    for seed in range(2):
        write_jsonl(triplets(8, seed, f"part {seed}"), tmp_path / f"{seed}.jsonl")
    result = train_model_on(
        [tmp_path / "0.jsonl", tmp_path / "1.jsonl"], tmp_path / "model", backbones["bert"],
        recipe(weights=(3.0, 1.0), mixing="batches"), device="cpu",
    )  # fmt: skip
    assert result.steps == 4


def test_the_run_is_told_to_tensorboard(backbones, source, tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    train_model_on([source], tmp_path / "model", backbones["bert"], recipe(), device="cpu", report_to=["tensorboard"])
    assert list((tmp_path / "model" / "tensorboard").glob("events*"))


def test_a_reporter_that_is_not_there_is_named():
    with pytest.raises(SpecError, match="unknown reporter 'tensorbord'; choose from tensorboard, trackio, wandb"):
        check_reporters(["tensorbord"])


def test_the_paper_preset_is_the_published_set_up():
    from idiograph.recipe import make_recipe as make

    found = make("paper").train
    published = {"tau": 0.5, "score": "maxsim", "batch": 32, "accumulate": 2, "lr": 3e-5, "weight_decay": 0.1}
    published |= {"precision": "fp16", "warmup": 0.1, "schedule": "cosine", "clip": 0, "epochs": 1, "max_length": 512}
    assert {key: getattr(found, key) for key in published} == published


def test_an_unknown_patch_policy_is_named():
    with pytest.raises(SpecError, match=r"unknown patch policy 'lerned:3'; .* \(did you mean 'learned:3'\?\)"):
        check_model_settings(TrainRecipe(patch="lerned:3"))


def test_a_smaller_dimension_needs_a_head():
    with pytest.raises(SpecError, match="dim 64 needs a head to get there; choose head 'linear'"):
        check_model_settings(TrainRecipe(dim=64))


def test_a_batch_larger_than_the_data_is_refused_before_anything_is_written(backbones, source, tmp_path):
    from idiograph.errors import InputError

    with pytest.raises(InputError, match="12 triplets do not fill one batch of 100"):
        train_model_on([source], tmp_path / "model", backbones["bert"], recipe(batch=100), device="cpu")


def test_an_order_and_its_batches_need_no_more_than_numpy_and_a_tokenizer(backbones):
    tokenizer = trainee(backbones["bert"]).model.tokenizer
    assert len(list(Batches(Order([triplets(8)], 4), tokenizer).run(0, 5))) == 5


def test_rows_that_are_held_out_elsewhere_are_not_trained_on():
    def row(author, paper, text="said"):
        return [(f"{text} {paper} {role}", author, f"{paper}{role}") for role in ("a", "b")] + [("no", "Z", "z")]

    mine = triplets_from_rows([row("A", "1"), row("B", "2"), row("C", "3"), row("D", "4")])
    of_a_writer = triplets_from_rows([[("x", "A", "8"), ("y", "A", "9"), ("w", "Y", "y")]])
    of_a_document = triplets_from_rows([[("x", "E", "2a"), ("y", "E", "9"), ("w", "Y", "y")]])
    of_a_text = triplets_from_rows([[("said 3 b", "F", "7"), ("y", "F", "9"), ("w", "Y", "y")]])
    kept = drop_held_out_rows(mine, [of_a_writer, of_a_document, of_a_text])
    assert [mine.texts[at] for at in kept.rows[:, 0]] == ["said 4 a"]
    assert len(drop_held_out_rows(mine, [])) == 4
    with pytest.raises(InputError, match="every row of 'triplets' is held out for validation or test"):
        drop_held_out_rows(mine, [mine])


@pytest.mark.parametrize(("keep_apart", "left_out"), [(True, 3), (False, 0)])
def test_a_run_says_how_many_rows_it_left_out(backbones, source, tmp_path, keep_apart, left_out):
    write_jsonl(triplets_from_rows(passages(12)[:3], "held"), tmp_path / "held.jsonl")
    options = {"valid": [tmp_path / "held.jsonl"], "device": "cpu"}
    how = recipe(steps=1, batch=4, patch="ngram:2", apart=keep_apart)
    result = train_model_on([source], tmp_path / "model", backbones["bert"], how, **options)
    assert result.left_out == left_out
    made = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert (sum(made["dropped"].values()), made["counts"]["triplets"]) == (left_out, 12 - left_out)


def test_what_one_folder_tests_on_another_does_not_train_on(backbones, anthology_corpus, tmp_path):
    from shutil import copytree

    from idiograph.mining.mine import mine_triplets
    from idiograph.recipe import make_recipe as settings_of

    drawn = settings_of("sound", {"mine": {"sentences": [4], "fractions": (0.4, 0.3, 0.3)}}).mine
    mine_triplets(anthology_corpus, drawn, tmp_path / "mined")
    copytree(tmp_path / "mined", tmp_path / "turned")
    for path in (tmp_path / "turned" / "base-4").glob("*.parquet"):
        if path.name.startswith("test"):
            path.rename(path.with_name(path.name.replace("test", "train")))
        else:
            path.unlink()
    reseal(tmp_path / "turned", "triplets")
    how = recipe(steps=1, batch=4, patch="ngram:2")
    with pytest.raises(InputError, match="every row of 'turned' is held out for validation or test"):
        train_model_on(
            [tmp_path / "mined", tmp_path / "turned"], tmp_path / "model", backbones["bert"], how, device="cpu"
        )


def test_the_command_line_says_how_many_rows_were_left_out(backbones, source, tmp_path, idiograph):
    write_jsonl(triplets_from_rows(passages(12)[:3], "held"), tmp_path / "held.jsonl")
    small = ("--steps", 1, "--batch", 4, "--device", "cpu", "--backbone", backbones["bert"], "--patch", "ngram:2")
    status, said, _ = idiograph("train", source, "-o", tmp_path / "model", "--valid", tmp_path / "held.jsonl", *small)
    assert status == 0
    assert "3 rows left out" in " ".join(said.split())


@pytest.mark.parametrize("patch", ["ngram:1", "ngram:2", "word"])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_trained_folder_has_one_score_whatever_opens_it(backbones, tmp_path, texts, preset, patch):
    write_jsonl(triplets(8), tmp_path / "some.jsonl")
    small = {"patch": patch, "batch": 4, "accumulate": 1, "steps": 1, "precision": "fp32"}
    chosen = make_recipe(preset, {"train": small}).train
    train_model_on([tmp_path / "some.jsonl"], tmp_path / "model", backbones["bert"], chosen, device="cpu")
    plain = MultiVectorEncoder(str(tmp_path / "model"), trust_remote_code=True)
    expected = plain.similarity(plain.encode_query(texts), plain.encode_document(texts))
    style = load(tmp_path / "model")
    assert (style.patch, style.score, style.reading) == (patch, chosen.score, chosen.reading)
    assert np.allclose(style.compare(texts, texts), expected.cpu().numpy(), atol=1e-4)
    assert np.allclose(load(tmp_path / "model", score=chosen.score).compare(texts, texts), expected.cpu(), atol=1e-4)
