"""Who does the work of a stage: a runner with its settings, and whom to tell. It has no influence on the result."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from idiograph.errors import ServiceError
from idiograph.runner import Failure, run

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int | None, str], None]


@dataclass(frozen=True)
class Team:
    """`inline`, `processes` or `ray`, with how many workers and on which cluster."""

    runner: str = "inline"
    workers: int | None = None
    address: str | None = None
    progress: Progress | None = None

    def tell(self, done: int, total: int | None, what: str) -> None:
        if self.progress:
            self.progress(done, total, what)

    def run(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        what: str,
        weight: Callable[[Item], int] = lambda _: 1,
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, in order; tells how much is done. A worker that died ends the stage, not for good."""
        total, done = sum(map(weight, items)), 0
        results = run(function, items, self.runner, self.workers, self.address)
        for item, result in zip(items, results, strict=True):
            if isinstance(result, Failure):
                raise ServiceError(
                    f"{what}: {result.reason} ({result.detail}); run it again, perhaps with fewer workers"
                )
            done += weight(item)
            yield item, result
            self.tell(done, total, what)
