"""Which triplets go into which batch, and what a batch looks like to a model.

The order is a function of the seed and the step alone: any step can be asked for, so that a run resumes where it stopped,
and the number of devices only decides how a batch is cut. Texts of like length go together; nothing is padded further.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from idiograph.errors import InputError, SpecError
from idiograph.neural.reader import encode_texts, model_features
from idiograph.neural.triplets import Triplets
from idiograph.spec import unknown_choice
from idiograph.style.tokens import Ints

Item = TypeVar("Item")
MIXING = ("batches", "fields", "rows")
WINDOW = 50  # batches among which texts of like length are sought: enough to save padding, few enough to keep chance
READERS = 4  # threads in which batches are made ahead where a teacher counts words and letters in them
CHARS = 6.0  # characters a token at most, on average: longer texts are cut by the model's window anyway


class Lesson(Protocol):
    """What a teacher has to look at; `judge` says how near every candidate is to each of this device's anchors."""

    def to(self, device: torch.device) -> "Lesson": ...

    def judge(self) -> Tensor: ...


class LessonMaker(Protocol):
    """Makes lessons of anchors and candidates: all positives of the whole batch, then all negatives."""

    def lesson(self, anchors: Sequence[str], others: Sequence[str], rows: slice) -> Lesson: ...


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBatch:
    """Some rows, ready for a model: all anchors, then all positives, then the negatives."""

    input_ids: Tensor  # (columns × rows, width)
    attention_mask: Tensor
    labels: Tensor  # (rows, columns) author-set of each text
    tokens: int  # without padding
    prompted: bool = False
    lesson: Lesson | None = None  # the same batch, the whole of it, for a teacher

    @property
    def teacher_scores(self) -> Tensor | None:
        """What the teacher makes of it: (rows, candidates of the whole batch)."""
        return None if self.lesson is None else self.lesson.judge()

    @property
    def columns(self) -> list[dict[str, Any]]:
        """One feature dictionary per role, as sentence-transformers' losses take them."""
        rows = len(self.labels)
        pairs = zip(self.input_ids.split(rows), self.attention_mask.split(rows), strict=True)
        return [model_features(ids, mask, self.prompted) for ids, mask in pairs]

    def to(self, device: torch.device) -> "TrainingBatch":
        moved = [t.to(device, non_blocking=True) for t in (self.input_ids, self.attention_mask, self.labels)]
        lesson = None if self.lesson is None else self.lesson.to(device)
        return TrainingBatch(moved[0], moved[1], moved[2], self.tokens, self.prompted, lesson)


@dataclass(frozen=True, eq=False)
class Order:
    """The rows of every batch. `size` is that of the whole batch, over all devices.

    Each epoch has as many rows as there are triplets; `weights` says in what proportion the collections share it. A
    collection is gone through without repetition, and then again in another order. `mixing="batches"` keeps a batch to
    one collection, so that other formats cannot serve as easy negatives; `mixing="fields"` keeps it to one field of one
    collection as far as the rows of that field go.
    """

    sources: Sequence[Triplets]
    size: int
    weights: Sequence[float] = ()
    mixing: Literal["rows", "batches", "fields"] = "rows"
    seed: int = 7
    longest: int = 512
    _epochs: dict[int, list[Ints]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mixing not in MIXING:
            raise SpecError(unknown_choice("mixing", self.mixing, MIXING))
        if len(self.weights) not in (0, len(self.sources)):
            raise InputError(
                f"{len(self.weights)} weights for {len(self.sources)} collections of triplets; give one each"
            )
        if len({source.rows.shape[1] for source in self.sources}) > 1:
            raise InputError("the collections have different numbers of negatives a row; train on them one by one")
        if len(self) == 0:
            raise InputError(f"{self.total} triplets do not fill one batch of {self.size}; choose a smaller batch")

    @property
    def total(self) -> int:
        return sum(map(len, self.sources))

    @property
    def quotas(self) -> list[int]:
        """Rows that each collection gives to an epoch."""
        if not self.weights:
            return [len(source) for source in self.sources]
        whole = sum(self.weights)
        return [round(self.total * weight / whole) for weight in self.weights]

    def __len__(self) -> int:
        """Batches in an epoch; a remainder is left out, another one in each epoch."""
        quotas = self.quotas
        return sum(quotas) // self.size if self.mixing == "rows" else sum(q // self.size for q in quotas)

    def __getitem__(self, step: int) -> Ints:
        """The rows of the batch at `step`, counted from 0 over all epochs: (size, 2) of collection and row."""
        epoch, at = divmod(step, len(self))
        if epoch not in self._epochs:
            self._epochs.clear()
            self._epochs[epoch] = self._epoch(epoch)
        return self._epochs[epoch][at]

    @cached_property
    def _starts(self) -> Ints:
        return np.cumsum([0, *map(len, self.sources)])

    @cached_property
    def _lengths(self) -> Ints:
        """The longest text of every row, in characters, as far as a model reads."""
        rows = [np.array(list(map(len, source.texts)))[source.rows].max(axis=1) for source in self.sources]
        return np.minimum(np.concatenate(rows), int(self.longest * CHARS))

    def _epoch(self, epoch: int) -> list[Ints]:
        drawn = [self._draw(at, quota, epoch) for at, quota in enumerate(self.quotas)]
        parts = [np.concatenate(drawn)] if self.mixing == "rows" else drawn
        chance = np.random.default_rng((self.seed, epoch))
        cut = self._by_field if self.mixing == "fields" else self._bucket
        batches = [batch for part in parts for batch in cut(chance.permutation(part))]
        return [batches[at] for at in chance.permutation(len(batches))]

    def _draw(self, source: int, quota: int, epoch: int) -> Ints:
        """The next `quota` rows of a collection, in an endless series of its shuffles."""
        size = len(self.sources[source])
        wanted = np.arange(epoch * quota, (epoch + 1) * quota)
        rows = np.empty(quota, np.int64)
        for turn in np.unique(wanted // size):
            inside = wanted // size == turn
            shuffled = np.random.default_rng((self.seed, source, int(turn), 1)).permutation(size)
            rows[inside] = shuffled[wanted[inside] % size]
        return np.stack([np.full(quota, source), rows], axis=1)

    @cached_property
    def _fields(self) -> Ints:
        """The field of every row's anchor; one for all where it is not known."""
        known = [np.zeros(len(s.texts), np.int64) if s.fields is None else s.fields for s in self.sources]
        return np.concatenate([of[source.rows[:, 0]] for of, source in zip(known, self.sources, strict=True)])

    def _by_field(self, rows: Ints) -> Iterator[Ints]:
        """Batches within each field; what is left over of the fields makes batches of neighbours."""
        fields = self._fields[self._starts[rows[:, 0]] + rows[:, 1]]
        rest: list[Ints] = []
        for one in np.unique(fields):
            part = rows[fields == one]
            whole = len(part) // self.size * self.size
            yield from self._bucket(part[:whole])
            rest.append(part[whole:])
        yield from self._bucket(np.concatenate(rest), window=1)

    def _bucket(self, rows: Ints, window: int = WINDOW) -> Iterator[Ints]:
        """Batches of rows of like length, from windows of the shuffled rows."""
        lengths = self._lengths[self._starts[rows[:, 0]] + rows[:, 1]]
        for begin in range(0, len(rows), window * self.size):
            near = rows[begin : begin + window * self.size]
            near = near[: len(near) // self.size * self.size]
            order = np.argsort(lengths[begin : begin + len(near)], kind="stable")
            yield from (near[part] for part in order.reshape(-1, self.size))


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches for one device of several."""

    order: Order
    tokenizer: Any
    prompt: str = ""
    longest: int = 512
    rank: int = 0
    world: int = 1
    teacher: LessonMaker | None = None

    def __post_init__(self) -> None:
        if self.order.size % self.world:
            raise InputError(f"a batch of {self.order.size} cannot be cut for {self.world} devices; choose a multiple")

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, step: int) -> TrainingBatch:
        """This device's part of the batch at `step`; the parts in order of rank are the whole batch in its order."""
        return self._make(self.order[step])

    def _make(self, whole: Ints) -> TrainingBatch:
        chosen, sources = whole[self._own_rows], self.order.sources
        columns = [[(sources[s], at) for s, r in chosen for at in (sources[s].rows[r, c],)] for c in range(self.width)]
        labels = [[source.labels[at] for source, at in column] for column in columns]
        texts = [source.texts[at] for column in columns for source, at in column]
        ids, mask = encode_texts(self.tokenizer, texts, self.prompt, self.longest)
        label = torch.from_numpy(np.array(labels, np.int64).T.copy())
        return TrainingBatch(ids, mask, label, int(mask.sum()), bool(self.prompt), self._make_lesson(whole))

    def _make_lesson(self, whole: Ints) -> Lesson | None:
        if self.teacher is None:
            return None
        rows = [(self.order.sources[s], self.order.sources[s].rows[r]) for s, r in whole]
        columns = [[source.texts[row[c]] for source, row in rows] for c in range(self.width)]
        return self.teacher.lesson(columns[0], [text for column in columns[1:] for text in column], self._own_rows)

    @property
    def _own_rows(self) -> slice:
        """This device's rows of a whole batch."""
        share = self.order.size // self.world
        return slice(self.rank * share, (self.rank + 1) * share)

    @property
    def width(self) -> int:
        """Texts in a row."""
        return self.order.sources[0].rows.shape[1]

    def run(self, first: int, last: int) -> Iterator[TrainingBatch]:
        """The batches of the steps from `first` up to `last`, made ahead in other threads."""
        jobs = (partial(self._make, self.order[step]) for step in range(first, last))
        return prefetch(jobs, 1 if self.teacher is None else READERS)


def prefetch(jobs: Iterable[Callable[[], Item]], threads: int = 1) -> Iterator[Item]:
    """What the jobs return, in their order; other threads work on the next ones while this one works on what it got."""
    waiting: deque[Future[Item]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(job))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()
