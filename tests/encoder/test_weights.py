"""A model folder is opened only if it is whole and built as the graph is."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from idiograph.encoder.encoder import OnnxEncoder
from idiograph.encoder.weights import all_finite, check_tensor
from idiograph.errors import ModelError
from idiograph.loading import default_folder

BIAS = "encoder.layer.3.output.dense.bias"


@pytest.fixture
def folder(tmp_path) -> Path:
    """The shipped model's folder, whose files are links that a test may replace."""
    source, copy = default_folder(), tmp_path / "model"
    for path in source.rglob("*"):
        if path.is_file():
            place = copy / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path)
    return copy


def replace_bytes(path: Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def change_tensors(path: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    tensors = load_file(path)
    change(tensors)
    path.unlink()
    save_file(tensors, path)


def change_json(path: Path, **values: object) -> None:
    replace_bytes(path, json.dumps(json.loads(path.read_text()) | values).encode())


def expect_one_line(folder: Path, said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        OnnxEncoder.open(folder)
    assert "\n" not in str(caught.value)


def test_a_tensor_that_is_missing_is_named(folder):
    change_tensors(folder / "model.safetensors", lambda tensors: tensors.__delitem__(BIAS))
    expect_one_line(folder, f"{BIAS} is missing")


def test_a_tensor_of_another_shape_is_named(folder):
    change_tensors(folder / "model.safetensors", lambda tensors: tensors.update({BIAS: np.zeros(383, np.float16)}))
    expect_one_line(folder, rf"{BIAS} is \(383,\) and not \(384,\)")


def test_a_tensor_of_another_type_is_named(folder):
    change_tensors(folder / "model.safetensors", lambda tensors: tensors.update({BIAS: np.zeros(384, np.int64)}))
    expect_one_line(folder, f"{BIAS} is of type int64")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_weight_that_is_no_number_is_found(folder, value):
    def spoil(tensors: dict[str, np.ndarray]) -> None:
        tensors["weight"][7] = value

    change_tensors(folder / "1_Wording" / "model.safetensors", spoil)
    expect_one_line(folder, "weight holds values that are no numbers")


@pytest.mark.parametrize("size", [0, 4, 200, 1_000_000])
def test_weights_that_break_off_cannot_be_read(folder, size):
    path = folder / "model.safetensors"
    replace_bytes(path, path.read_bytes()[:size])
    expect_one_line(folder, "weights in .* cannot be read")


@pytest.mark.parametrize("name", ["model.safetensors", "1_Wording/model.safetensors", "tokenizer.json", "config.json"])
def test_a_file_that_is_missing_is_named(folder, name):
    (folder / name).unlink()
    expect_one_line(folder, name.rpartition("/")[2])


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": "1.0"}', b"\xff\xfe"])
def test_a_tokenizer_that_is_damaged_cannot_be_read(folder, content):
    replace_bytes(folder / "tokenizer.json", content)
    expect_one_line(folder, "tokenizer.json' cannot be read")


def test_a_tokenizer_of_another_model_is_refused(folder):
    found = json.loads((folder / "tokenizer.json").read_text())
    found["model"]["vocab"] |= {f"extra{n}": 50265 + n for n in range(3)}
    replace_bytes(folder / "tokenizer.json", json.dumps(found).encode())
    expect_one_line(folder, "not that of the shipped model")


@pytest.mark.parametrize("name", ["config.json", "1_Wording/config.json", "3_PatchPooling/config.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]"])
def test_settings_that_are_damaged_are_named(folder, name, content):
    replace_bytes(folder / name, content)
    expect_one_line(folder, "config.json is")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("config.json", {"num_hidden_layers": 12}),
        ("config.json", {"hidden_act": "gelu_new"}),
        ("config.json", {"model_type": "bert"}),
        ("1_Wording/config.json", {"layer": 2}),
        ("3_PatchPooling/config.json", {"compress": "max"}),
        ("3_PatchPooling/config.json", {"prompt": "query: "}),
    ],
)
def test_a_model_that_is_built_otherwise_is_refused(folder, name, settings):
    change_json(folder / name, **settings)
    expect_one_line(folder, "not built like the shipped one")


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_numbers_are_finite_where_numpy_says_so(kind, random):
    values = random.normal(size=1000).astype(kind)
    assert all_finite(values)
    assert all_finite(np.array([np.finfo(kind).max, np.finfo(kind).min, 0, -0.0, np.finfo(kind).tiny], kind))
    for bad in (np.nan, -np.nan, np.inf, -np.inf):
        values[500] = bad
        assert not all_finite(values)


def test_weights_may_be_in_32_bits():
    check_tensor("the weights", "one", np.ones(3, np.float32), (3,))
