"""Patch vectors in few bytes: 32, 16, 8 or 4 bits a number. With 8 and 4 bits each vector has a scale of its own, so that
its largest number uses the whole range. Knows nothing of texts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idiograph.errors import SpecError
from idiograph.spec import unknown_choice
from idiograph.style.patches import Patches, ragged_rows
from idiograph.style.score import score_tiles, scorer
from idiograph.style.tokens import Floats, Ints

SCALE_DTYPE = np.dtype("<f2")
VECTORS_PER_TILE = 65_536  # vectors that are made wide at once: 100 MB at 384 numbers
VECTORS_PER_CACHED_TILE = (
    3_000  # where they are used at once: a core's cache holds these; larger tiles took 1.5 times as long
)
# Patches asked about up to which the stored ones are the left factor: 1.6 times as fast for 16, 1.1 for 46.
SHORT_QUESTION_PATCHES = 128
ONE_WAY = ("maxsim", "meansim")


@dataclass(frozen=True, slots=True)
class VectorWidth:
    """A way to store numbers: the type on disk, and the largest whole number (0: they are not scaled)."""

    dtype: np.dtype[Any]
    top: int = 0
    in_byte: int = 1

    def row(self, dim: int) -> int:
        """Bytes of a vector without its scale."""
        return -(-dim // self.in_byte) * self.dtype.itemsize

    def bytes(self, dim: int) -> int:
        """Bytes of a vector."""
        return self.row(dim) + (SCALE_DTYPE.itemsize if self.top else 0)


WIDTHS: dict[str, VectorWidth] = {
    "float32": VectorWidth(np.dtype("<f4")),
    "float16": VectorWidth(np.dtype("<f2")),
    "int8": VectorWidth(np.dtype("i1"), 127),
    "int4": VectorWidth(np.dtype("u1"), 7, 2),
}


def vector_width(name: str) -> VectorWidth:
    if name not in WIDTHS:
        raise SpecError(unknown_choice("dtype", name, WIDTHS))
    return WIDTHS[name]


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedPatches:
    """The patches of many texts, as they are stored."""

    codes: NDArray[Any]  # (P, numbers or bytes of a vector)
    scales: NDArray[Any]  # (P,), or empty where numbers are not scaled
    lengths: Ints  # (n,) patches of each text
    dim: int
    dtype: str

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> Ints:
        return np.cumsum(self.lengths) - self.lengths

    def take(self, which: Sequence[int] | Ints) -> "QuantizedPatches":
        """Some of the texts, in the order asked for."""
        which = np.asarray(which, np.int64)
        rows = ragged_rows(self.starts[which], self.lengths[which])
        return QuantizedPatches(
            self.codes[rows], packed_part(self.scales, rows), self.lengths[which], self.dim, self.dtype
        )

    def slices(self, limit: int = VECTORS_PER_TILE) -> Iterator[tuple[slice, "QuantizedPatches"]]:
        """Neighbouring texts, at most `limit` patches at a time, and which they are."""
        starts = self.starts
        for which in score_tiles(self.lengths, limit):
            rows = slice(starts[which.start], starts[which.stop - 1] + self.lengths[which.stop - 1])
            lengths = self.lengths[which]
            yield (
                which,
                QuantizedPatches(self.codes[rows], packed_part(self.scales, rows), lengths, self.dim, self.dtype),
            )

    def wide(self) -> Patches:
        """As 32-bit vectors; where in the text a patch stood is not stored."""
        return Patches(unpack_vectors(self), self.lengths, np.zeros((len(self.codes), 2), np.int64))


def packed_part(scales: NDArray[Any], rows: slice | Ints) -> NDArray[Any]:
    return scales[rows] if len(scales) else scales


def pack_vectors(patches: Patches, dtype: str) -> QuantizedPatches:
    """Vectors as they will be stored."""
    kind, vectors = vector_width(dtype), patches.vectors
    dim = vectors.shape[1]
    if not kind.top:
        return QuantizedPatches(vectors.astype(kind.dtype), np.zeros(0, SCALE_DTYPE), patches.lengths, dim, dtype)
    largest = np.abs(vectors).max(axis=1)
    scales = np.maximum(largest / kind.top, 2.0**-24).astype(SCALE_DTYPE)
    whole = np.rint(vectors / scales[:, None].astype(np.float32)).clip(-kind.top, kind.top).astype(np.int8)
    return QuantizedPatches(as_nibbles(whole) if kind.in_byte == 2 else whole, scales, patches.lengths, dim, dtype)


def unpack_vectors(packed: QuantizedPatches) -> Floats:
    """The vectors, in 32 bits; without scales the whole numbers that they are stored as."""
    kind = vector_width(packed.dtype)
    if not kind.top:
        return packed.codes.astype(np.float32)
    whole = as_halves(packed.codes, packed.dim) if kind.in_byte == 2 else packed.codes
    vectors = whole.astype(np.float32)
    if len(packed.scales):
        vectors *= packed.scales[:, None].astype(np.float32)
    return vectors


def as_nibbles(whole: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Numbers from −7 to 7, two in a byte; the second half of a vector lies in the high bits."""
    half = -(-whole.shape[1] // 2)
    shifted = (whole + 8).astype(np.uint8)
    high = np.full((len(whole), half), 8, np.uint8)
    high[:, : whole.shape[1] - half] = shifted[:, half:]
    return np.bitwise_or(shifted[:, :half], np.left_shift(high, np.uint8(4)))


def as_halves(packed: NDArray[np.uint8], dim: int) -> NDArray[np.int8]:
    low, high = (packed & 15).view(np.int8) - 8, (packed >> 4).view(np.int8) - 8
    return np.concatenate([low, high[:, : dim - low.shape[1]]], axis=1)


def to_bytes(packed: QuantizedPatches) -> list[bytes]:
    """One value a text: the scales of its patches, then their numbers."""
    starts, ends = packed.starts, np.cumsum(packed.lengths)
    return [
        packed_part(packed.scales, slice(a, b)).tobytes() + packed.codes[a:b].tobytes()
        for a, b in zip(starts, ends, strict=True)
    ]


def from_bytes(values: Sequence[memoryview | bytes], dim: int, dtype: str) -> QuantizedPatches:
    """What `to_bytes` wrote."""
    kind = vector_width(dtype)
    lengths = np.array([len(v) // kind.bytes(dim) for v in values], np.int64)
    total = int(lengths.sum())
    codes = np.empty((total, kind.row(dim) // kind.dtype.itemsize), kind.dtype)
    scales = np.empty(total if kind.top else 0, SCALE_DTYPE)
    at = 0
    for value, length in zip(values, lengths.tolist(), strict=True):
        head = SCALE_DTYPE.itemsize * length if kind.top else 0
        codes[at : at + length] = np.frombuffer(value, kind.dtype, offset=head).reshape(length, -1)
        if kind.top:
            scales[at : at + length] = np.frombuffer(value, SCALE_DTYPE, length)
        at += length
    return QuantizedPatches(codes, scales, lengths, dim, dtype)


def unpack_single_patches(stored: memoryview | bytes, dim: int, dtype: str) -> QuantizedPatches:
    """What `to_bytes` wrote of texts of one patch each, end to end."""
    kind = vector_width(dtype)
    rows = np.frombuffer(stored, np.uint8).reshape(-1, kind.bytes(dim))
    head = kind.bytes(dim) - kind.row(dim)
    scales = np.ascontiguousarray(rows[:, :head]).view(SCALE_DTYPE).reshape(-1)
    codes = np.ascontiguousarray(rows[:, head:]).view(kind.dtype)
    return QuantizedPatches(codes, scales, np.ones(len(rows), np.int64), dim, dtype)


def join_packed(parts: Iterable[QuantizedPatches], total: int, dim: int, dtype: str) -> QuantizedPatches:
    """Several as one, of `total` patches together; at no time are all of them held twice."""
    kind, lengths, at = vector_width(dtype), [np.zeros(0, np.int64)], 0
    codes = np.empty((total, kind.row(dim) // kind.dtype.itemsize), kind.dtype)
    scales = np.empty(total if kind.top else 0, SCALE_DTYPE)
    for some in parts:
        here = slice(at, at + len(some.codes))
        codes[here] = some.codes
        if kind.top:
            scales[here] = some.scales
        lengths.append(some.lengths)
        at = here.stop
    return QuantizedPatches(codes, scales, np.concatenate(lengths), dim, dtype)


def score_all(asked: Patches, packed: QuantizedPatches, score: str) -> Floats:
    """Every text asked against every stored one, by the scorer of that name; only a few of these are wide at a time."""
    scores = np.empty((len(asked), len(packed)), np.float32)
    if score in ONE_WAY:
        for which, some in packed.slices(VECTORS_PER_CACHED_TILE):
            scores[:, which] = one_way_scores(asked, some)
        return scores / asked.lengths[:, None].astype(np.float32) if score == "meansim" else scores
    for which, some in packed.slices():
        scores[:, which] = scorer(score)(asked, some.wide())
    return scores


def one_way_scores(asked: Patches, packed: QuantizedPatches) -> Floats:
    """MaxSim without making the stored vectors wide: their scales go to the similarities, which are fewer."""
    whole = replace(packed, scales=np.zeros(0, SCALE_DTYPE)) if len(packed.scales) else packed
    scales = packed.scales.astype(np.float32)
    if len(asked.vectors) <= SHORT_QUESTION_PATCHES:
        similar = unpack_vectors(whole) @ asked.vectors.T  # (patches stored, patches asked)
        if len(scales):
            similar *= scales[:, None]
        return np.add.reduceat(np.maximum.reduceat(similar, packed.starts, axis=0), asked.starts, axis=1).T
    similar = asked.vectors @ unpack_vectors(whole).T  # (patches asked, patches stored)
    if len(scales):
        similar *= scales
    return np.add.reduceat(np.maximum.reduceat(similar, packed.starts, axis=1), asked.starts, axis=0)
