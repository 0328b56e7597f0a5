"""The patch layer as a sentence-transformers module.

This file is copied into every saved model folder as `idiograph_patches.py`, so that the folder opens in plain
sentence-transformers (with `trust_remote_code=True`); it therefore imports nothing of idiograph. The numpy policies in
`idiograph.style.patches` are the definition; law tests tie the two.
"""

import math
from typing import Any

import torch
from sentence_transformers.multi_vector_encoder.modules import BaseTokenPooling
from torch import Tensor

BYTE_SPACE, PIECE_SPACE, PIECE_INNER = "Ġ", "▁", "##"
PART = "\ufffd"  # what a piece that ends inside a character reads as


def pool(vectors: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of each patch: (B, T, d) token vectors and (B, T) patch numbers → (B, P, d) means and the (B, P) mask."""
    count = max(int(number.max()) + 1, 1)
    inside = number >= 0
    slot = number.clamp(min=0)
    sums = vectors.new_zeros(vectors.shape[0], count, vectors.shape[2], dtype=torch.float32)
    weighted = vectors.float() * inside.unsqueeze(-1)
    sums = sums.scatter_add(1, slot.unsqueeze(-1).expand_as(weighted), weighted)
    sizes = torch.zeros_like(sums[:, :, 0]).scatter_add(1, slot, inside.float())
    means = sums / sizes.clamp(min=1).unsqueeze(-1)
    return means.to(vectors.dtype), sizes > 0


def token_table(tokenizer: Any, size: int) -> dict[str, Tensor]:
    """For each token id: is it no text (special or blank), is it punctuation alone, does it begin a word?"""
    table = {kind: torch.zeros(size, dtype=torch.bool) for kind in ("special", "mark", "start")}
    pieces = tokenizer.get_vocab()
    inner = any(piece.startswith(PIECE_INNER) for piece in pieces)
    for piece, at in pieces.items():
        text = readable(tokenizer, piece)
        table["special"][at] = not text
        table["mark"][at] = bool(text) and not any(c.isalnum() or c == PART for c in text)
        spaced = piece.startswith((BYTE_SPACE, PIECE_SPACE))
        table["start"][at] = not piece.startswith(PIECE_INNER) if inner else spaced
    table["special"][torch.tensor(sorted(set(tokenizer.all_special_ids)), dtype=torch.long)] = True
    return table


def readable(tokenizer: Any, piece: str) -> str:
    """The characters behind a piece; byte-level pieces spell others than ASCII with stand-ins that look like letters."""
    bare = piece.lstrip(BYTE_SPACE + PIECE_SPACE)
    return bare if bare.isascii() else tokenizer.convert_tokens_to_string([piece]).strip()


def word_starts(ids: Tensor, table: dict[str, Tensor]) -> Tensor:
    """Where a word begins: at a token that the tokenizer marks so, at punctuation, and after it."""
    mark, special = table["mark"][ids], table["special"][ids]
    begins = table["start"][ids] | mark | special
    begins[..., 1:] |= (mark | special)[..., :-1]
    begins[..., 0] = True
    return begins


class PatchPooling(BaseTokenPooling):
    """Groups kept tokens into patches and puts each patch's mean in their place."""

    config_keys = ["patch", "keep", "prompt", "tasks"]

    def __init__(
        self, patch: str = "auto", keep: str = "all", prompt: str = "", tasks: list[str] | None = None
    ) -> None:
        super().__init__(tasks=tasks or ["query", "document"])
        self.patch, self.keep, self.prompt = patch, keep, prompt
        self.prompt_size = 0
        self.table: dict[str, Tensor] = {}

    def on_model_ready(self, model: Any) -> None:
        size = max(len(model.tokenizer), 1 + max(model.tokenizer.get_vocab().values()))
        self.table = token_table(model.tokenizer, size)
        # Not the library's own count: it includes the space after the prompt, which the next word takes as its own.
        ids = model.tokenizer(self.prompt.rstrip())["input_ids"] if self.prompt else []
        self.prompt_size = len(ids) - bool(ids and self.table["special"][ids[-1]])

    def forward(self, features: dict[str, Any], task: str | None = None) -> dict[str, Any]:
        if not self.applies_to(task):
            return features
        vectors, ids = features["token_embeddings"], features["input_ids"]
        kept = self.kept(
            ids, features["attention_mask"].bool(), self.prompt_size if features.get("prompt_length") else 0
        )
        number = self.number(ids, kept, vectors)
        features["token_embeddings"], features["attention_mask"] = pool(vectors, number)
        return features

    def kept(self, ids: Tensor, mask: Tensor, prompt_size: int = 0) -> Tensor:
        """Which tokens count: no special ones, none of the prompt and, if `keep` says so, no punctuation."""
        self.table = {kind: flags.to(ids.device) for kind, flags in self.table.items()}
        kept = mask & ~self.table["special"][ids]
        kept[:, :prompt_size] = False
        if self.keep == "words":
            kept = kept & ~self.table["mark"][ids]
        empty = ~kept.any(dim=1, keepdim=True)
        return kept | (empty & mask)  # a text of nothing but punctuation still has to have a patch

    def number(self, ids: Tensor, kept: Tensor, vectors: Tensor) -> Tensor:
        """The patch number of each token, −1 for none: (B, T)."""
        name, _, size = self.patch.partition(":")
        rank = kept.cumsum(dim=1) - 1
        if name == "whole":
            number = torch.zeros_like(rank)
        elif name == "ngram":
            number = rank // int(size)
        elif name == "auto":
            sizes = [max(1, round(0.18 * math.sqrt(count))) for count in kept.sum(dim=1).tolist()]
            number = rank // torch.tensor(sizes, device=ids.device).unsqueeze(1)
        elif name == "word":
            word = word_starts(ids, self.table).cumsum(dim=1)
            before = word.masked_fill(~kept, 0).cummax(dim=1).values.roll(1, dims=1)
            before[:, 0] = 0
            number = (kept & (word > before)).cumsum(dim=1) - 1
        elif name == "cluster":
            number = torch.stack([clusters(v, k, int(size)) for v, k in zip(vectors, kept, strict=True)])
        else:
            raise ValueError(f"unknown patch policy {self.patch!r}")
        return number.masked_fill(~kept, -1)

    def pool_one(self, embedding: Tensor, **_: Any) -> Tensor:
        """Pool vectors without their tokens; `word` cannot."""
        if self.patch == "word":
            raise ValueError("patch 'word' needs the tokens: use it as a module of the model")
        kept = torch.ones(1, len(embedding), dtype=torch.bool, device=embedding.device)
        return pool(embedding[None], self.number(kept.long(), kept, embedding[None]))[0][0]


def clusters(vectors: Tensor, kept: Tensor, size: int) -> Tensor:
    """Ward clusters of one text's kept tokens, numbered in order of first appearance."""
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    number = torch.full(kept.shape, -1, device=kept.device)
    rows = torch.nn.functional.normalize(vectors[kept].detach().float(), dim=-1).cpu().numpy()
    count = max(len(rows) // size, 1)
    if count >= len(rows):
        number[kept] = torch.arange(len(rows), device=kept.device)
        return number
    distance = np.clip(1 - rows @ rows.T, 0, 2)
    labels = fcluster(linkage(squareform(distance, checks=False), method="ward"), t=count, criterion="maxclust")
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    number[kept] = torch.from_numpy(np.argsort(np.argsort(first))[inverse]).to(kept.device)
    return number
