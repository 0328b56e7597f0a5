"""The patch layer as a sentence-transformers module.

This file is copied into every saved model folder as `idiograph_patches.py`, so that the folder opens in plain
sentence-transformers (with `trust_remote_code=True`); it therefore imports nothing of idiograph. The numpy policies in
`idiograph.style.patches` are the definition; law tests tie the two.
"""

import math
from typing import Any

import torch
from sentence_transformers.base.modules.module import Module
from sentence_transformers.multi_vector_encoder.modules import BaseTokenPooling
from torch import Tensor, nn

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


def largest(vectors: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
    """The same with the largest value of each dimension in place of the mean."""
    count = max(int(number.max()) + 1, 1)
    inside = (number >= 0).unsqueeze(-1)
    slot = number.clamp(min=0).unsqueeze(-1).expand_as(vectors)
    lowest = vectors.new_full((vectors.shape[0], count, vectors.shape[2]), -math.inf, dtype=torch.float32)
    found = lowest.scatter_reduce(1, slot, vectors.float().masked_fill(~inside, -math.inf), "amax")
    mask = found[:, :, 0] > -math.inf
    return found.masked_fill(~mask.unsqueeze(-1), 0).to(vectors.dtype), mask


def token_table(tokenizer: Any, size: int) -> dict[str, Tensor]:
    """For each token id: is it no text (special or blank), is it punctuation alone, does it begin a word?"""
    table = {kind: torch.zeros(size, dtype=torch.bool) for kind in ("special", "mark", "start")}
    pieces = tokenizer.get_vocab()
    spaces = sum(piece.startswith((BYTE_SPACE, PIECE_SPACE)) for piece in pieces)
    inner = sum(piece.startswith(PIECE_INNER) for piece in pieces) > spaces  # vocabularies with spaces have a few "##"
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


def published_starts(ids: Tensor, table: dict[str, Tensor]) -> Tensor:
    """The same by the published rule: only where the tokenizer marks it, and around special tokens. Punctuation thus joins
    the word before it."""
    start = table["start"][ids]
    special = table["special"][ids] & ~start  # a space by itself is none
    begins = start | special
    begins[..., 1:] |= special[..., :-1]
    begins[..., 0] = True
    return begins


class PatchPooling(BaseTokenPooling):
    """Groups kept tokens into patches and puts each patch's mean, or maximum, in their place.

    `published` reads as the published code does: special tokens count like others, so that windows begin at the first of
    them, punctuation is left out of queries alone, and only where each token is a patch, and belongs to the word before it.
    """

    config_keys = ["patch", "keep", "prompt", "tasks", "width", "cut", "compress", "published"]

    def __init__(
        self,
        patch: str = "auto",
        keep: str = "all",
        prompt: str = "",
        tasks: list[str] | None = None,
        width: int = 0,
        cut: str = "budget",
        compress: str = "mean",
        published: bool = False,
    ) -> None:
        super().__init__(tasks=tasks or ["query", "document"])
        self.patch, self.keep, self.prompt = patch, keep, prompt
        self.compress, self.published = compress, published
        self.prompt_size = 0
        self.table: dict[str, Tensor] = {}
        self.learn(width, cut)

    def learn(self, width: int, cut: str = "budget") -> None:
        """Give the layer a head that finds boundaries in token vectors of this width; 0 for none."""
        self.width, self.cut = width, cut
        self.boundary = Boundary(width, cut) if width else None

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
        before = self.prompt_size if features.get("prompt_length") else 0
        kept = self.kept(ids, features["attention_mask"].bool(), before, task)
        if self.boundary is not None and self.training and self.patch.startswith("learned"):
            return features | self.boundary.soften(vectors, kept, int(self.patch.partition(":")[2]), task)
        number = self.number(ids, kept, vectors)
        features["token_embeddings"], features["attention_mask"] = self.pooled(vectors, number)
        return features

    def pooled(self, vectors: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        """Patches of token vectors, and the mask of those that are there."""
        return largest(vectors, number) if self.compress == "max" else pool(vectors, number)

    def kept(self, ids: Tensor, mask: Tensor, prompt_size: int = 0, task: str | None = None) -> Tensor:
        """Which tokens count: no special ones, none of the prompt and, if `keep` says so, no punctuation."""
        self.table = {kind: flags.to(ids.device) for kind, flags in self.table.items()}
        kept = mask & (self.published | ~self.table["special"][ids])
        kept[:, int(self.published) : prompt_size] = False
        if self.apart and task == "query" if self.published else self.keep == "words":
            kept = kept & ~self.table["mark"][ids]
        empty = ~kept.any(dim=1, keepdim=True)
        return kept | (empty & mask)  # a text of nothing but punctuation still has to have a patch

    @property
    def apart(self) -> bool:
        """Is a query read otherwise than a document?"""
        return self.published and self.patch == "ngram:1"

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
            starts = published_starts if self.published else word_starts
            word = starts(ids, self.table).cumsum(dim=1)
            before = word.masked_fill(~kept, 0).cummax(dim=1).values.roll(1, dims=1)
            before[:, 0] = 0
            number = (kept & (word > before)).cumsum(dim=1) - 1
        elif name == "cluster":
            number = torch.stack([clusters(v, k, int(size)) for v, k in zip(vectors, kept, strict=True)])
        elif name == "learned" and self.boundary is not None:
            number = self.boundary.number(vectors, kept, int(size))
        else:
            raise ValueError(f"unknown patch policy {self.patch!r}")
        return number.masked_fill(~kept, -1)

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:  # noqa: ARG002
        self.save_config(output_path)
        if self.boundary is not None:
            self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, *args: Any, **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        layer = super().load(model_name_or_path, *args, **kwargs)
        return load_weights(layer, model_name_or_path, kwargs) if layer.boundary is not None else layer

    def pool_one(self, embedding: Tensor, **_: Any) -> Tensor:
        """Pool vectors without their tokens; `word` cannot."""
        if self.patch == "word":
            raise ValueError("patch 'word' needs the tokens: use it as a module of the model")
        kept = torch.ones(1, len(embedding), dtype=torch.bool, device=embedding.device)
        return self.pooled(embedding[None], self.number(kept.long(), kept, embedding[None]))[0][0]


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


def load_weights(layer: Any, source: str, options: dict[str, Any]) -> Any:
    """Fill a layer from the folder that its settings came from."""
    known = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
    return type(layer).load_torch_weights(source, model=layer, **{key: options[key] for key in known if key in options})


class Boundary(nn.Module):
    """Finds where patches begin. `budget` cuts a text of S tokens into ⌈S / size⌉ patches, at its best places; `reg1` and
    `reg2` cut wherever the probability is above a half, and need a penalty to keep them from cutting always or never."""

    def __init__(self, width: int, cut: str = "budget") -> None:
        super().__init__()
        self.cut = cut
        self.head = nn.Sequential(nn.Linear(width, max(width // 4, 1)), nn.GELU(), nn.Linear(max(width // 4, 1), 1))
        self.temperature = 1.0  # how soft boundaries are in training; falls to nearly 0

    def logits(self, vectors: Tensor, kept: Tensor) -> Tensor:
        """How much each token looks like the first of a patch: (B, T). The first kept token always is one.

        Under a budget only the order within a text matters, so the logits are put on a common scale there.
        """
        found = self.head(vectors).squeeze(-1).float()
        if self.cut != "budget":
            return found
        count = kept.sum(dim=1, keepdim=True).clamp(min=1)
        mean = (found * kept).sum(dim=1, keepdim=True) / count
        spread = ((found - mean).square() * kept).sum(dim=1, keepdim=True) / count
        return (found - mean) * (spread + 1e-6).rsqrt()

    def threshold(self, logits: Tensor, kept: Tensor, size: int) -> Tensor:
        """Half-way between the logit of the last token within the budget and the first outside it: (B, 1)."""
        inner = kept & ~first(kept)
        ranked = logits.masked_fill(~inner, -math.inf).sort(dim=1, descending=True).values
        ranked = nn.functional.pad(ranked, (1, 1), value=-math.inf)
        ranked[:, 0] = math.inf
        cuts = (kept.sum(dim=1, keepdim=True) + size - 1) // size - 1  # besides the first token
        last = ranked.gather(1, cuts).clamp(max=1e4)
        return (last + ranked.gather(1, cuts + 1).clamp(min=-1e4)) / 2

    def number(self, vectors: Tensor, kept: Tensor, size: int, noise: Tensor | float = 0.0) -> Tensor:
        """The patch of each token, counted from 0; what it says where nothing is kept means nothing."""
        logits = self.logits(vectors, kept)
        if self.cut == "budget":  # by rank: a tie must not change the number of patches
            ranked = logits.masked_fill(~kept, -math.inf).masked_fill(first(kept), math.inf)
            rank = ranked.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
            cuts = kept & (rank < (kept.sum(dim=1, keepdim=True) + size - 1) // size)
        else:
            cuts = kept & (logits + noise > 0) | first(kept)
        return (cuts.cumsum(dim=1) - 1).masked_fill(~kept, -1)

    def soften(self, vectors: Tensor, kept: Tensor, size: int, task: str | None) -> dict[str, Tensor]:
        """Patches as training sees them.

        Under a budget, boundaries are soft: token t shares a patch with token s as far as there is no boundary between
        them, and each token stands for its own patch with the weight 1 / size of the patch. All of it has a gradient, and
        as the temperature falls the scores become those of the hard patches. Otherwise boundaries are hard, and only the
        penalty teaches the head.
        """
        logits = self.logits(vectors, kept)
        if self.cut != "budget":
            drawn = task == "query"  # as published: keys never are
            noise = torch.rand_like(logits).logit(1e-6) if drawn else 0.0
            means, mask = pool(vectors, self.number(vectors, kept, size, noise))
            chance = {"cut_probability": logits.sigmoid() * kept, "cut_tokens": kept.sum(dim=1)}
            return {"token_embeddings": means, "attention_mask": mask, **chance}
        shift = logits - self.threshold(logits, kept, size)
        wall = nn.functional.softplus(shift / self.temperature) * (kept & ~first(kept))  # −log(1 − probability)
        place = wall.cumsum(dim=1)
        same = torch.exp(-(place[:, :, None] - place[:, None, :]).abs()) * kept[:, None, :]  # (B, T, T)
        total = same.sum(dim=2, keepdim=True).clamp(min=1e-6)
        means = (same / total) @ vectors.float()
        weights = kept / total.squeeze(2)
        return {"token_embeddings": means.to(vectors.dtype), "attention_mask": kept, "patch_weights": weights}


def first(kept: Tensor) -> Tensor:
    """Which token is the first of its text that is kept."""
    return kept & (kept.cumsum(dim=1) == 1)


class Weighted(Module):
    """A layer that is saved with its weights, beside its settings."""

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:  # noqa: ARG002
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, *args: Any, **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return load_weights(super().load(model_name_or_path, *args, **kwargs), model_name_or_path, kwargs)


class Centering(Weighted):
    """Takes the mean token vector off every token, so that what all texts share does not count as likeness.

    The mean is a running one over the training texts. It moves in `settle`, between steps, so that a batch that is encoded
    in parts, or twice, sees one mean.
    """

    config_keys = ["width", "momentum"]
    mean: Tensor
    begun: Tensor
    pending: Tensor

    def __init__(self, width: int, momentum: float = 0.05) -> None:
        super().__init__()
        self.width, self.momentum = width, momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("begun", torch.zeros((), dtype=torch.bool))
        self.register_buffer("pending", torch.zeros(width + 1), persistent=False)  # the sum of vectors, and how many

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        vectors = features["token_embeddings"]
        if self.training and torch.is_grad_enabled():
            seen = vectors.detach()[features["attention_mask"].bool()].float()
            self.pending += torch.cat([seen.sum(dim=0), seen.new_tensor([len(seen)])])
        features["token_embeddings"] = vectors - self.mean.to(vectors.dtype)
        return features

    @torch.no_grad()
    def settle(self, share: Any = lambda value: value) -> None:
        """Move the mean towards that of the texts since the last time; `share` averages a tensor over all devices."""
        pending = share(self.pending)
        if pending[-1] > 0:
            self.mean.lerp_(pending[:-1] / pending[-1], self.momentum if self.begun else 1.0)
            self.begun.fill_(True)
        self.pending.zero_()


class Weighing(Weighted):
    """Lets some tokens count for more in their patch than others: the attention of one learned query.

    Patches are scaled to unit length behind this layer, so that a weighted mean need not be divided by its weights: each
    token is multiplied by e to the power of query · key, and the mean of a patch then points where the softmax over its
    tokens would. With the query at 0, where learning begins, it is the plain mean.
    """

    config_keys = ["width", "size"]
    LIMIT = 8.0  # of the exponent, so that 16 bits can hold the products

    def __init__(self, width: int, size: int = 128) -> None:
        super().__init__()
        self.width, self.size = width, size
        self.key = nn.Linear(width, size, bias=False)
        self.query = nn.Parameter(torch.zeros(size))

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        vectors = features["token_embeddings"]
        weight = (self.key(vectors).float() @ self.query.float() * self.size**-0.5).clamp(-self.LIMIT, self.LIMIT).exp()
        features["token_embeddings"] = vectors * weight.unsqueeze(-1).to(vectors.dtype)
        return features


class Wording(Weighted):
    """Puts beside what a token means in its text the token itself: the last layer and a lower one, end to end, both of unit
    length, the lower one times the weight of the token.

    The last layer of a trained model says nearly the same of every patch of a text: what the text is about. The lower
    one still tells patches apart. Weights begin as `rarity` gives them and are learned; a zero leaves a token to its text.
    """

    config_keys = ["width", "vocabulary", "layer"]

    def __init__(self, width: int, vocabulary: int, layer: int = 1) -> None:
        super().__init__()
        self.width, self.vocabulary, self.layer = width, vocabulary, layer
        self.weight = nn.Parameter(torch.ones(vocabulary))

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        top, low = features["token_embeddings"], features["all_layer_embeddings"][self.layer]
        weight = self.weight[features["input_ids"]].unsqueeze(-1)
        features["token_embeddings"] = torch.cat([unit(top), weight * unit(low)], dim=-1).to(top.dtype)
        return features

    def get_embedding_dimension(self) -> int:
        return 2 * self.width


def unit(vectors: Tensor) -> Tensor:
    return nn.functional.normalize(vectors.float(), dim=-1)


LAYERS = (PatchPooling, Centering, Weighing, Wording)  # what may stand in the list of modules of a saved folder
