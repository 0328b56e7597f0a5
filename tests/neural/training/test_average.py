"""Averaging the weights of models."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from idiograph.errors import ArtifactError, InputError
from idiograph.neural.training.average import average_models


def model(folder, value, size=2):
    folder.mkdir()
    weights = {"w": torch.full((size,), float(value)), "steps": torch.tensor([3])}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(f"{value}")
    (folder / "history.jsonl").write_text("of one run")
    return folder


def test_the_weights_are_the_mean_and_the_rest_is_the_first_models(tmp_path):
    average_models([model(tmp_path / "a", 1), model(tmp_path / "b", 4)], tmp_path / "out")
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found["w"].tolist() == [2.5, 2.5]
    assert found["steps"].tolist() == [3]
    assert (tmp_path / "out" / "config.json").read_text() == "1"
    assert not (tmp_path / "out" / "history.jsonl").exists()


def test_half_writes_16_bits(tmp_path):
    average_models([model(tmp_path / "a", 1)], tmp_path / "out", half=True)
    assert load_file(tmp_path / "out" / "model.safetensors")["w"].dtype == torch.float16


def test_models_of_other_shapes_are_refused_and_nothing_is_left(tmp_path):
    with pytest.raises(ArtifactError, match="other shapes than those in"):
        average_models([model(tmp_path / "a", 1), model(tmp_path / "b", 4, 3)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(InputError, match="there is no model in"):
        average_models([tmp_path], tmp_path / "out")


def worded(folder, value):
    layer = model(folder, value) / "1_Wording"
    layer.mkdir()
    save_file({"weight": torch.tensor([1.0, 3.0]) * value}, layer / "model.safetensors", {"format": "pt"})
    return folder


def test_the_wording_can_count_for_more_and_nothing_else_changes(tmp_path):
    average_models([worded(tmp_path / "a", 1), worded(tmp_path / "b", 3)], tmp_path / "out", wording=1.5)
    assert load_file(tmp_path / "out" / "1_Wording" / "model.safetensors")["weight"].tolist() == [3.0, 9.0]
    assert load_file(tmp_path / "out" / "model.safetensors")["w"].tolist() == [2.0, 2.0]


def test_the_command_line_takes_it(tmp_path, idiograph):
    status, said, _ = idiograph("average", worded(tmp_path / "a", 1), "-o", tmp_path / "out", "--wording", 2)
    assert (status, "one model, written anew" in said) == (0, True)
    assert load_file(tmp_path / "out" / "1_Wording" / "model.safetensors")["weight"].tolist() == [2.0, 6.0]


@pytest.mark.parametrize(("times", "why"), [(0, "cannot count 0 times"), (2, "no layer of wordings")])
def test_a_wording_that_cannot_count_so_is_refused(tmp_path, times, why):
    with pytest.raises(InputError, match=why):
        average_models([model(tmp_path / "a", 1)], tmp_path / "out", wording=times)
    assert not (tmp_path / "out").exists()


def test_a_calibration_of_the_first_model_does_not_go_with_the_mean(tmp_path):
    first = model(tmp_path / "a", 1)
    (first / "calibration.json").write_text("{}")
    average_models([first, model(tmp_path / "b", 4)], tmp_path / "out")
    assert not (tmp_path / "out" / "calibration.json").exists()
