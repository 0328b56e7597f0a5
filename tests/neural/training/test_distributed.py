"""Two processes that share a batch do what one does with the whole of it, whoever started them."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor
from trainees import LOSS_SETTINGS, batches_of, one_thread, recipe, trainee, triplets, write_jsonl  # noqa: F401

from idiograph.errors import ModelError
from idiograph.neural.training.distributed import (
    average_gradients,
    choose_device,
    process_rank,
    train_on_ray,
    world,
)
from idiograph.neural.training.loss import Contrastive, Objective
from idiograph.neural.training.teacher import Teacher
from idiograph.neural.training.train import train_model_on
from idiograph.neural.triplets import Triplets
from idiograph.rankers.letters import NGrams
from idiograph.recipe import TrainRecipe

TAUGHT = "infonce, with a teacher"


def shared_author() -> Triplets:
    """Six triplets, two of them by one author, so that there are false negatives on both devices."""
    part = triplets(6)
    part.labels[part.rows[4, :2]] = part.labels[part.rows[1, 0]]
    return part


def gradients(backbone: Path, name: str) -> list[Tensor]:
    """The gradient of one step, of this device's part of a batch and averaged over the devices."""
    torch.set_num_threads(1)
    encoder = trainee(backbone, patch="ngram:2")
    batches = batches_of(encoder, shared_author(), 6, process_rank(), world())
    batch = (replace(batches, teacher=Teacher(NGrams())) if name == TAUGHT else batches)[0]
    objective = Objective(LOSS_SETTINGS.get(name, TrainRecipe(tau=0.1)))
    objective.teacher_scores = batch.teacher_scores
    Contrastive(encoder.model, objective)(batch.columns, batch.labels).backward()
    parameters = [*encoder.model.parameters(), objective.log_tau]
    average_gradients(parameters)
    return [p.grad.clone() for p in parameters if p.grad is not None]


def job(folder: Path, **changes) -> tuple[list[Path], Path, TrainRecipe, list[Path]]:
    """What to train: two collections, a validation, and settings under which every device has work."""
    sources = [folder / "0.jsonl", folder / "1.jsonl"]
    for seed, path in enumerate(sources):
        write_jsonl(triplets(8, seed, f"part {seed}"), path)
    how = recipe(
        **{
            "steps": 4,
            "validate_every": 2,
            "weights": (2.0, 1.0),
            "center": True,
            "mixing": "rows",
            "apart": False,
            **changes,
        }
    )
    return sources, folder / "model", how, [sources[0]]


def run(sources: list[Path], output: Path, backbone: Path, how: TrainRecipe, valid: list[Path]) -> float:
    torch.set_num_threads(1)
    return train_model_on(sources, output, backbone, how, valid=valid, device="cpu").negatives


def everything(folder: Path, backbone: Path) -> None:
    """What each of two processes does: the gradient of every loss, then a whole training."""
    found = {name: gradients(backbone, name) for name in (*LOSS_SETTINGS, TAUGHT)}
    if process_rank() == 0:
        torch.save(found, folder / "gradients.pt")
    sources, output, how, valid = job(folder, batch=2)
    run(sources, output, backbone, how, valid)


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from test_distributed import everything
from idiograph.neural.training.distributed import join_processes
join_processes("cpu")
everything(Path({folder!r}), Path({backbone!r}))
"""


@pytest.fixture(scope="module")
def two(backbones, tmp_path_factory) -> Path:
    """A folder in which two processes on this machine, started by torchrun, have done everything."""
    folder, tests = tmp_path_factory.mktemp("two"), Path(__file__).parents[2]
    paths = [str(path) for path in (Path(__file__).parent, tests)]
    script = SCRIPT.format(paths=paths, folder=str(folder), backbone=str(backbones["modernbert"]))
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(folder / "script.py")]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    return folder


@pytest.mark.parametrize("name", [*LOSS_SETTINGS, TAUGHT])
def test_two_processes_give_the_gradient_of_one_with_the_same_batch(backbones, two, name):
    alone, shared = gradients(backbones["modernbert"], name), torch.load(two / "gradients.pt")[name]
    assert any(float(grad.abs().max()) > 1e-4 for grad in alone)
    for one, other in zip(alone, shared, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def weights(folder: Path) -> dict[str, Tensor]:
    from sentence_transformers import MultiVectorEncoder

    return MultiVectorEncoder(str(folder), trust_remote_code=True).state_dict()


def test_two_processes_train_the_model_that_one_trains_with_twice_the_batch(backbones, two, tmp_path):
    sources, output, how, valid = job(tmp_path, batch=4)
    negatives = run(sources, output, backbones["modernbert"], how, valid)
    assert negatives == pytest.approx(
        json.loads((two / "model" / "manifest.json").read_text())["counts"]["negatives per anchor"], abs=1e-3
    )
    assert 5 < negatives <= 7  # a row that comes twice in a batch is no negative of itself
    assert losses(output) == pytest.approx(losses(two / "model"), rel=1e-5)
    for part in ("last", "."):
        one, other = weights(output / part), weights(two / "model" / part)
        # The attention of so small a random model is flat: its gradient is rounding noise, which Adam blows up.
        names = [name for name in one if "Wqkv" not in name]
        assert all(torch.allclose(one[name], other[name], atol=1e-4) for name in names)


def losses(folder: Path) -> list[float]:
    lines = map(json.loads, (folder / "history.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def test_an_unknown_device_is_named():
    with pytest.raises(ModelError, match="there is no device 'gpu'; choose from auto, cpu, cuda"):
        choose_device("gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_missed():
    with pytest.raises(ModelError, match="there is no GPU here; use device 'cpu'"):
        choose_device("cuda")


@pytest.mark.slow
def test_ray_trains_the_model_that_torchrun_trains(backbones, two, tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'idiograph[ray]'")
    sources, output, how, valid = job(tmp_path, batch=2)
    ray.init(num_cpus=3, log_to_driver=False, include_dashboard=False)
    try:
        work = partial(train_model_on, valid=valid, device="cpu")
        train_on_ray(
            work, (sources, output, backbones["modernbert"], how), workers=2, gpus=False, notes=tmp_path / "notes"
        )
    finally:
        ray.shutdown()
    one, other = weights(output), weights(two / "model")
    assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)
