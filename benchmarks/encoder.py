"""The shipped model on onnxruntime against the same weights in torch: opening, encoding, and how far apart they are.

One run, one thread each: python benchmarks/encoder.py [--texts 64] [--tokens 248] [--rounds 3]
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from idiograph.corpus.readers import read_documents
from idiograph.encoder.encoder import OnnxEncoder
from idiograph.loading import default_folder
from idiograph.style.model import Encoder
from idiograph.style.tokens import Tokens

PATCH = "ngram:3"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=248)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    openings: dict[str, Callable[[], Encoder]] = {"onnxruntime": open_onnx, "torch": open_torch}
    encoders: dict[str, Encoder] = {}
    for name, opening in openings.items():
        encoders[name], seconds = cpu_seconds(opening)
        print(f"{name:12} open, with its imports   {seconds:6.2f} CPU-seconds")
    texts = sample_texts(encoders["onnxruntime"], args.texts, args.tokens)
    patches = {}
    for name, encoder in encoders.items():
        taken = [cpu_seconds(lambda e=encoder: e.embed(texts, PATCH)) for _ in range(args.rounds)]
        patches[name], best = taken[0][0], min(seconds for _, seconds in taken)
        words = args.texts * args.tokens / best
        print(
            f"{name:12} encode {args.texts} × {args.tokens} tokens  {best:6.2f} CPU-seconds, {words:,.0f} tokens a second"
        )
    widest = np.abs(patches["onnxruntime"].vectors - patches["torch"].vectors).max()
    print(f"largest difference of any number of any patch: {widest:.1e}")
    return 0


def open_onnx() -> OnnxEncoder:
    return OnnxEncoder.open(default_folder(), threads=1)


def open_torch() -> Encoder:
    import torch

    from idiograph.neural.encoder import TorchEncoder

    torch.set_num_threads(1)
    return TorchEncoder.open(default_folder())


def sample_texts(encoder: Encoder, count: int, size: int) -> Sequence[Tokens]:
    """Texts of exactly `size` tokens, cut from the essays that come with the package."""
    text = " ".join(document.text for document in read_documents("anthology"))
    while len(pieces := whole_texts(encoder, text, size)) < count:
        text += " " + text
    return pieces[:count]


def whole_texts(encoder: Encoder, text: str, size: int) -> list[Tokens]:
    found = encoder.tokenize([text], "all")[0]
    first, last = found.ids[:1], found.ids[-1:]
    body = np.arange(1, len(found) - 1)
    return [
        Tokens(
            np.concatenate([first, found.ids[at], last]),
            np.concatenate([[[0, 0]], found.chars[at] - found.chars[at[0], 0], [[0, 0]]]),
            np.arange(size),
            np.concatenate([[False], found.keep[at], [False]]),
        )
        for at in (body[begin : begin + size - 2] for begin in range(0, len(body) - size + 2, size - 2))
    ]


def cpu_seconds(work: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.process_time()
    return work(), time.process_time() - begun


if __name__ == "__main__":
    sys.exit(main())
