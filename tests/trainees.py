"""Small things to train: triplets of made-up sentences, and models that learn them in a second."""

import json
from pathlib import Path
from random import Random

import pytest
import torch

from idiograph.mining.triplets import Passage
from idiograph.neural.build import build_model
from idiograph.neural.encoder import TorchEncoder
from idiograph.neural.training.batches import Batches, Order
from idiograph.neural.training.loss import LOSSES
from idiograph.neural.triplets import Triplets, triplets_from_rows
from idiograph.recipe import TrainRecipe

WORDS = "tide harbour book map pocket bee dance bridge sleep memory spelling decree slowly however , ; hence after all".split()

LOSS_SETTINGS = {
    **{name: TrainRecipe(loss=name, tau=0.1, margin=0.7) for name in LOSSES},
    "infonce, symmetric": TrainRecipe(tau=0.1, symmetric=True),
    "infonce, sum": TrainRecipe(tau=2.0, score="maxsim"),
    "infonce, learned tau": TrainRecipe(tau="learn"),
    "infonce, learned tau, sum": TrainRecipe(tau="learn", score="maxsim"),
}


@pytest.fixture(autouse=True)
def one_thread():
    """Threads cost more than they bring to a model of 32 dimensions."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def passages(count: int, seed: int = 0) -> list[list[Passage]]:
    """Rows of anchor, positive and negative; every row has authors of its own."""
    chance = Random(seed)

    def text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(6, 20)))

    names = [f"{seed}-{at}" for at in range(count)]
    return [
        [(text(), name, f"{name}a"), (text(), name, f"{name}p"), (text(), f"not {name}", f"{name}n")] for name in names
    ]


def triplets(count: int, seed: int = 0, name: str = "made up") -> Triplets:
    return triplets_from_rows(passages(count, seed), name)


def trainee(backbone: Path, **settings) -> TorchEncoder:
    return build_model(backbone, TrainRecipe(**settings))


def batches_of(encoder: TorchEncoder, part: Triplets, size: int, rank: int = 0, world: int = 1) -> Batches:
    return Batches(Order([part], size), encoder.model.tokenizer, encoder.prompt, 64, rank, world)


def recipe(**changes) -> TrainRecipe:
    small = {"patch": "ngram:2", "batch": 4, "steps": 4, "lr": 3e-3, "max_length": 64, "log_every": 1}
    return TrainRecipe(**{**small, **changes})


def write_jsonl(part: Triplets, path: Path) -> Path:
    """Triplets as JSON lines, for those who want a file of them."""
    with path.open("w", encoding="utf-8") as file:
        for row in part.rows:
            texts, documents = ([of[at] for at in row] for of in (part.texts, part.documents.tolist()))
            roles = ("anchor", "positive", "negative")
            about = {"author": str(part.labels[row[0]]), "negative_author": str(part.labels[row[2]])}
            about |= {f"{role}_document": str(of) for role, of in zip(roles, documents, strict=True)}
            file.write(json.dumps(dict(zip(roles, texts, strict=True)) | about) + "\n")
    return path
