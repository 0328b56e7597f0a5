"""How telling each token is, before anything is learned: the rarer, the more."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from idiograph.neural.layers import Wording
from idiograph.neural.reader import encode_texts
from idiograph.neural.triplets import Triplets
from idiograph.style.tokens import Floats, Ints

TEXTS = 20_000  # enough to know what is common; the rest counts as rare
GROUP = 500
AVERAGE = 1.5  # what an average token begins with; of 1 and 1.5, the better on validation before any training


def token_rarity(texts: Iterable[Ints], size: int) -> Floats:
    """The weight of each token id: the logarithm of how many texts there are for one that has it, divided by the mean of
    that over all tokens of the texts, so that a weight of 1 is an average one."""
    having, uses, count = np.zeros(size), np.zeros(size), 0
    for ids in texts:
        having[np.unique(ids)] += 1
        np.add.at(uses, ids, 1)
        count += 1
    rare = np.log((count + 1) / (having + 1))
    mean = float((rare * uses).sum() / max(uses.sum(), 1))
    return (rare / mean if mean else np.ones(size)).astype(np.float32)


def weigh_wording(model: Any, parts: Sequence[Triplets], prompt: str = "", longest: int = 512) -> None:
    """Let the tokens of a new `Wording` layer begin with the weights of their rarity in the texts of training."""
    for layer in (module for module in model if isinstance(module, Wording)):
        if bool((layer.weight == 1).all()):  # a layer that has learned keeps what it has
            found = token_rarity(sample_token_ids(model, parts, prompt, longest), layer.vocabulary)
            with torch.no_grad():
                layer.weight.copy_(torch.from_numpy(AVERAGE * found).to(layer.weight))


def sample_token_ids(model: Any, parts: Sequence[Triplets], prompt: str, longest: int) -> Iterable[Ints]:
    """Token ids of texts from every part, about as many from each."""
    share = max(TEXTS // max(len(parts), 1), 1)
    for part in parts:
        texts = part.texts[:: max(len(part.texts) // share, 1)][:share]
        for begin in range(0, len(texts), GROUP):
            ids, mask = encode_texts(model.tokenizer, list(texts[begin : begin + GROUP]), prompt, longest)
            yield from (row[keep].numpy() for row, keep in zip(ids, mask.bool(), strict=True))
