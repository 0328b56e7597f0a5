"""What may be learned otherwise: how patches are made of tokens, how they match, beside which weights, and as published."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder
from torch.nn.functional import normalize
from trainees import batches_of, one_thread, passages, recipe, trainee, triplets, write_jsonl  # noqa: F401

from idiograph.errors import SpecError
from idiograph.neural.build import check_model_settings
from idiograph.neural.layers import PatchPooling, Weighing, largest, pool
from idiograph.neural.maxsim.soft import Alignment, align
from idiograph.neural.training.adapters import merge_adapters, merged_weights
from idiograph.neural.training.loop import fit_model
from idiograph.neural.training.loss import CachedContrastive, Contrastive, LossPatches, Objective
from idiograph.neural.training.optimize import snapshot
from idiograph.neural.training.train import train_model_on
from idiograph.recipe import TrainRecipe, make_recipe
from idiograph.style.model import Style

OPTIONS = {
    "attention": {"compress": "attention"},
    "max": {"compress": "max"},
    "adapters": {"adapters": 16},
    "published": {"reading": "published"},
    "published, token by token": {"reading": "published", "patch": "ngram:1"},
}
MATCHES = {
    "softmax": {"match": "softmax", "match_tau": 0.05},
    "gumbel": {"match": "gumbel", "match_tau": 0.05},
    "decay": {"decay": "exp"},
    "linear decay, softmax": {"decay": "linear", "match": "softmax"},
}


def settings(**changes) -> TrainRecipe:
    plain = {"batch": 8, "steps": 60, "lr": 8e-3, "tau": 0.05, "warmup": 0.05, "log_every": 2}
    return TrainRecipe(**{**plain, **changes})


def learns(encoder, **changes) -> list[float]:
    result = fit_model(encoder.model, batches_of(encoder, triplets(8), 8), settings(**changes))
    return [entry["loss"] for entry in result.history]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_overfits_eight_triplets(backbones, name):
    encoder = trainee(backbones["modernbert"], **{"patch": "ngram:2", **OPTIONS[name]})
    losses = learns(encoder, **({"head_lr": 1e-2, "tau": 0.2, "steps": 80} if name == "adapters" else {}))
    assert losses[0] > 1.5
    assert losses[-1] < 0.3


@pytest.mark.parametrize("name", MATCHES)
def test_every_kind_of_match_overfits_eight_triplets(backbones, name):
    losses = learns(trainee(backbones["modernbert"], patch="ngram:2"), **MATCHES[name])
    assert losses[0] > 1.2
    assert losses[-1] < 0.5


@pytest.mark.parametrize("name", OPTIONS)
def test_a_folder_opens_in_plain_sentence_transformers_with_the_scores_of_training(backbones, tmp_path, texts, name):
    write_jsonl(triplets(8), tmp_path / "some.jsonl")
    how = recipe(steps=3, head_lr=1e-2, **OPTIONS[name])
    train_model_on([tmp_path / "some.jsonl"], tmp_path / "model", backbones["bert"], how, device="cpu")
    plain = MultiVectorEncoder(str(tmp_path / "model"), trust_remote_code=True)
    again = trainee(
        tmp_path / "model", **{"patch": how.patch, **{k: v for k, v in OPTIONS[name].items() if k != "adapters"}}
    )
    again.model.eval()
    for role in ("encode_query", "encode_document"):
        for one, other in zip(getattr(plain, role)(texts), getattr(again.model, role)(texts), strict=True):
            assert np.allclose(one, other, atol=1e-5)
    assert not [key for key in plain.state_dict() if "parametrizations" in key]


def test_a_patch_by_maximum_has_the_largest_value_of_each_dimension():
    vectors = torch.tensor([[[1.0, -5.0], [0.0, -2.0], [7.0, 7.0], [-3.0, -4.0]]])
    found, mask = largest(vectors, torch.tensor([[0, 0, -1, 1]]))
    assert found.tolist() == [[[1.0, -2.0], [-3.0, -4.0]]]
    assert mask.tolist() == [[True, True]]


def test_patches_that_are_not_there_are_masked_and_zero():
    found, mask = largest(-torch.ones(2, 2, 3), torch.tensor([[0, 1], [0, -1]]))
    assert mask.tolist() == [[True, True], [True, False]]
    assert found[1, 1].tolist() == [0, 0, 0]


def test_attention_is_the_softmax_over_the_tokens_of_a_patch():
    torch.manual_seed(0)
    layer = Weighing(6, 4)
    torch.nn.init.normal_(layer.query)
    vectors, number = torch.randn(1, 5, 6), torch.tensor([[0, 0, 0, 1, 1]])
    weighed = layer({"token_embeddings": vectors})["token_embeddings"]
    found = normalize(pool(weighed, number)[0], dim=-1)
    logits = layer.key(vectors) @ layer.query * 4**-0.5
    for patch in range(2):
        inside = number[0] == patch
        expected = logits[0, inside].softmax(dim=0) @ vectors[0, inside]
        assert torch.allclose(found[0, patch], normalize(expected, dim=-1), atol=1e-5)


def test_attention_begins_as_the_mean(backbones, texts):
    plain, other = (trainee(backbones["bert"], patch="ngram:3", compress=c) for c in ("mean", "attention"))
    for one, two in zip(plain.model.encode(texts), other.model.encode(texts), strict=True):
        assert np.allclose(one, two, atol=1e-5)


def test_attention_is_read_the_same_by_a_style(backbones, tmp_path, texts):
    encoder = trainee(backbones["bert"], patch="ngram:2", compress="attention")
    with torch.no_grad():
        next(m for m in encoder.model if isinstance(m, Weighing)).query.normal_()
    encoder.save(tmp_path / "model", "ngram:2")
    from idiograph.loading import load

    patches = load(tmp_path / "model").encode(texts)
    plain = MultiVectorEncoder(str(tmp_path / "model"), trust_remote_code=True).encode_document(texts)
    assert np.allclose(patches.vectors, np.concatenate(plain), atol=1e-5)


def test_learned_boundaries_need_means():
    with pytest.raises(SpecError, match="learned boundaries are taught through means; set compress to 'mean'"):
        check_model_settings(TrainRecipe(patch="learned:3", compress="max"))


def sides(seed: int = 0) -> tuple[LossPatches, LossPatches]:
    chance = torch.Generator().manual_seed(seed)

    def texts(rows: int) -> LossPatches:
        vectors = normalize(torch.randn(rows, 5, 8, generator=chance), dim=-1)
        return LossPatches(vectors, torch.arange(5)[None] < torch.randint(2, 6, (rows, 1), generator=chance))

    return texts(3), texts(4)


def by_hand(a: LossPatches, b: LossPatches, match) -> torch.Tensor:
    rows = [[match(x[m] @ y[n].T).sum() for y, n in zip(b.vectors, b.mask)] for x, m in zip(a.vectors, a.mask)]  # noqa: B905
    return torch.tensor(rows)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_soft_match_is_the_mean_that_softmax_weighs(rows):
    a, b = sides()
    found = Objective(TrainRecipe(match="softmax", match_tau=0.2, score="maxsim", score_rows=rows)).score(a, b)
    expected = by_hand(a, b, lambda similar: ((similar / 0.2).softmax(dim=1) * similar).sum(dim=1))
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_sharp_match_is_the_best_one():
    a, b = sides()
    plain, sharp = (Objective(TrainRecipe(match=m, match_tau=1e-4)).score(a, b) for m in ("max", "softmax"))
    assert torch.allclose(plain, sharp, atol=1e-3)


@pytest.mark.parametrize("decay", ["exp", "linear"])
def test_what_is_far_away_counts_less(decay):
    a, b = sides()

    def match(similar):
        i, j = torch.arange(similar.shape[0])[:, None], torch.arange(similar.shape[1])[None]
        apart = 0.28 * (i - j).abs()
        return (similar * (torch.exp(-apart) if decay == "exp" else 1 / (1 + apart))).amax(dim=1)

    objective = Objective(TrainRecipe(decay=decay, score="maxsim"))
    assert torch.allclose(objective.score(a, b), by_hand(a, b, match), atol=1e-5)
    objective.score(a, b).sum().backward()
    assert objective.rate.grad is not None
    assert float(objective.rate.grad) != 0


def test_gumbel_noise_tries_other_matches_and_tends_to_the_softmax():
    torch.manual_seed(0)
    a, b = sides()
    weights = a.mask.float()
    drawn = torch.stack([align(a.vectors, weights, b.vectors, b.mask, Alignment("gumbel", 0.05)) for _ in range(200)])
    assert float(drawn.std(dim=0).min()) > 1e-3


def test_a_weighted_patch_counts_by_its_weight_in_a_soft_match():
    a, b = sides()
    doubled = LossPatches(a.vectors, a.mask, 2.0 * a.mask)
    soft = Objective(TrainRecipe(match="softmax"))
    assert torch.allclose(soft.score(doubled, b), soft.score(a, b), atol=1e-6)


@pytest.mark.parametrize(("name", "value"), [("match", "maximum"), ("decay", "quadratic")])
def test_an_unknown_match_is_named(name, value):
    with pytest.raises(SpecError, match=rf"\[train\] {name}: input should be .*, but got '{value}'"):
        make_recipe("sound", {"train": {name: value}})


def test_adapters_change_nothing_before_the_first_step(backbones, texts):
    plain, adapted = (trainee(backbones["modernbert"], patch="ngram:2", adapters=rank) for rank in (0, 4))
    for one, other in zip(plain.model.encode(texts), adapted.model.encode(texts), strict=True):
        assert np.allclose(one, other, atol=1e-6)


def test_adapters_alone_learn(backbones):
    encoder = trainee(backbones["bert"], patch="ngram:2", adapters=4)
    before = snapshot(encoder.model)
    learns(encoder, steps=2)
    after = encoder.model.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert all(name.endswith((".0.a", ".0.b")) for name in moved)
    assert {name.rpartition(".parametrizations")[0].rpartition(".")[2] for name in moved} == {
        "query",
        "key",
        "value",
        "dense",
    }


def test_merged_weights_give_the_scores_of_the_adapters(backbones, texts):
    encoder = trainee(backbones["bert"], patch="ngram:2", adapters=4)
    learns(encoder, steps=3, head_lr=1e-2)
    encoder.model.eval()
    expected, state = encoder.model.encode(texts), merged_weights(snapshot(encoder.model))
    merge_adapters(encoder.model)
    assert set(state) == set(encoder.model.state_dict())
    for name, value in encoder.model.state_dict().items():
        assert torch.allclose(value, state[name], atol=1e-6), name
    for one, other in zip(expected, encoder.model.encode(texts), strict=True):
        assert np.allclose(one, other, atol=1e-5)


def test_adapters_resume_as_if_nothing_had_happened(backbones, tmp_path):
    def stop(done: int, total: int | None, text: str) -> None:
        if done == 3:
            raise KeyboardInterrupt

    def run(folder, progress=None):
        encoder = trainee(backbones["bert"], patch="ngram:2", adapters=2)
        how = settings(steps=5, save_every=1)
        fit_model(encoder.model, batches_of(encoder, triplets(16), 8), how, folder=folder, progress=progress)
        return encoder.model.state_dict()

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped", stop)
    one, other = run(tmp_path / "stopped"), run(tmp_path / "straight")
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_adapters_and_averaging_with_the_base_do_not_go_together(backbones, tmp_path):
    write_jsonl(triplets(8), tmp_path / "some.jsonl")
    how = recipe(adapters=2, average_with_base=0.5)
    with pytest.raises(SpecError, match="there is nothing to average; set average_with_base to 0"):
        train_model_on([tmp_path / "some.jsonl"], tmp_path / "model", backbones["bert"], how, device="cpu")


def read(encoder, text: str, task: str) -> torch.Tensor:
    """Token vectors as they stand behind the patch layer."""
    features = encoder.model.preprocess([text])
    with torch.no_grad():
        output = encoder.model({**features}, task=task)
    return output["token_embeddings"][0][output["attention_mask"][0].bool()]


TEXT = "It rained, and nobody spoke; we left."


def published(backbones, patch: str):
    encoder = trainee(backbones["bert"], patch=patch, reading="published")
    encoder.model.eval()
    return encoder


@pytest.mark.parametrize("patch", ["ngram:2", "ngram:3", "whole"])
def test_published_windows_are_over_raw_positions_with_the_start_token_in_the_first(backbones, patch):
    encoder = published(backbones, patch)
    ids = encoder.model.tokenizer(TEXT)["input_ids"]
    size = len(ids) if patch == "whole" else int(patch[-1])
    raw = encoder.token_vectors(encoder.tokenize([TEXT]))[0]
    expected = [normalize(raw[at : at + size].mean(dim=0), dim=-1) for at in range(0, len(ids), size)]
    for task in ("query", "document"):
        assert torch.allclose(read(encoder, TEXT, task), torch.stack(expected), atol=1e-5)


def test_published_token_level_leaves_punctuation_out_of_queries_alone(backbones):
    encoder = published(backbones, "ngram:1")
    pieces = encoder.model.tokenizer.convert_ids_to_tokens(encoder.model.tokenizer(TEXT)["input_ids"])
    marks = sum(piece in (",", ";", ".") for piece in pieces)
    assert marks == 3
    assert len(read(encoder, TEXT, "document")) == len(pieces)
    assert len(read(encoder, TEXT, "query")) == len(pieces) - marks


def test_published_words_take_the_punctuation_that_follows_them(backbones):
    encoder = trainee(backbones["modernbert"], patch="word", reading="published")  # marks spaces, as the published base
    pieces = encoder.model.tokenizer.convert_ids_to_tokens(encoder.model.tokenizer(TEXT)["input_ids"])
    raw = encoder.token_vectors(encoder.tokenize([TEXT]))[0]
    marked = {at for at, piece in enumerate(pieces) if piece.startswith("Ġ")}
    starts = sorted({0, 1, len(pieces) - 1} | marked)
    words = ["".join(pieces[a:b]).lstrip("Ġ") for a, b in pairwise([*starts, len(pieces)])]
    assert words[1:-1] == TEXT.split()
    expected = [normalize(raw[a:b].mean(dim=0), dim=-1) for a, b in pairwise([*starts, len(pieces)])]
    assert torch.allclose(read(encoder, TEXT, "document"), torch.stack(expected), atol=1e-5)


@pytest.mark.parametrize("patch", ["ngram:1", "ngram:3", "word"])
def test_an_evaluation_as_published_reads_as_the_published_layer_does(backbones, patch):
    from idiograph.evaluate.retrieval import READINGS

    encoder = published(backbones, patch)
    style = Style(encoder, patch=patch)
    for query, task in ((True, "query"), (False, "document")):
        found = READINGS["published"](style, [TEXT], query).vectors
        assert np.allclose(found, read(encoder, TEXT, task).numpy(), atol=1e-5)


def test_the_sound_reading_is_as_it_was(backbones, texts):
    from idiograph.evaluate.retrieval import READINGS

    style = Style(trainee(backbones["bert"], patch="ngram:2"), patch="ngram:2")
    found = READINGS["sound"](style, texts, True)
    assert np.array_equal(found.vectors, style.encode(texts).vectors)


def test_published_anchors_are_read_as_queries_in_training(backbones):
    encoder = published(backbones, "ngram:1")
    batch = batches_of(encoder, triplets(4), 4)[0]
    objective = Objective(TrainRecipe(tau=0.05))
    whole, parts = Contrastive(encoder.model, objective), CachedContrastive(encoder.model, objective, 2)
    with torch.no_grad():
        one = whole(batch.columns, batch.labels)
        roles = [encoder.model(dict(c), task="document" if at else "query") for at, c in enumerate(batch.columns)]
        by_role = objective(
            [LossPatches(o["token_embeddings"], o["attention_mask"].bool()) for o in roles], batch.labels
        )
        assert torch.allclose(one, by_role, atol=1e-5)
    assert torch.allclose(parts(batch.columns, batch.labels).detach(), one, atol=1e-5)


def test_the_paper_preset_reads_as_published():
    from idiograph.recipe import make_recipe as make

    assert (make("paper").train.reading, make("paper").evaluate.reading) == ("published", "published")
    assert (make().train.reading, make().evaluate.reading) == ("sound", "sound")


def test_a_layer_of_before_has_the_settings_of_before():
    layer = PatchPooling("ngram:2", "words", "", None, 0, "budget")
    assert (layer.compress, layer.published) == ("mean", False)


def test_the_command_line_takes_them(backbones, tmp_path, idiograph):
    import json

    write_jsonl(triplets(8), tmp_path / "some.jsonl")
    asked = {"compress": "attention", "adapters": 2, "match": "softmax", "decay": "exp"}
    options = [part for key, value in asked.items() for part in ("--set", f"{key}={value}")]
    small = ["--steps", 1, "--batch", 4, "--device", "cpu", "--backbone", backbones["bert"], "--patch", "ngram:2"]
    status, _, said = idiograph("train", tmp_path / "some.jsonl", "-o", tmp_path / "model", *small, *options)
    assert status == 0, said
    made = json.loads((tmp_path / "model" / "manifest.json").read_text())["recipe"]
    assert {key: made[key] for key in asked} == asked


def test_a_style_reads_a_model_of_maxima_by_maxima(backbones):
    from idiograph.neural.build import build_model
    from idiograph.style.model import Style
    from idiograph.style.patches import parse_policy

    encoder = build_model(next(iter(backbones.values())), TrainRecipe(patch="ngram:3", compress="max"))
    style = Style(encoder, patch="ngram:3")
    tokens = style.tokenize(["The tide came in; nobody, it seems, had looked at the map."])
    number = torch.from_numpy(parse_policy("ngram:3")(tokens[0], None))  # pyright: ignore[reportArgumentType]
    vectors = encoder.token_vectors(tokens)[0]
    largest = torch.stack([vectors[number == at].amax(dim=0) for at in range(int(number.max()) + 1)])
    expected = torch.nn.functional.normalize(largest, dim=-1)
    torch.testing.assert_close(
        torch.from_numpy(encoder.embed(tokens, "ngram:3").vectors), expected, atol=1e-5, rtol=1e-4
    )
