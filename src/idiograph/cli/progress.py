"""How far a long command is: items, rate and time left, as a bar on a terminal and as a line now and then in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console

Clock = Callable[[], float]
Update = Callable[..., None]

SECONDS_BETWEEN_LINES = 30.0


@dataclass
class Pace:
    """How fast one part of the work goes on. A part ends where fewer items are done, or others are to be done, than before."""

    clock: Clock = time.monotonic
    done: int = 0
    total: int | None = None
    began: float | None = None
    first: int = 0  # items that were done when this part began: those of an earlier run cost nothing

    def note(self, done: int, total: int | None) -> None:
        """So many of so many items are done."""
        if self.began is None or done < self.done or total != self.total:
            self.began, self.first = self.clock(), done
        self.done, self.total = done, total

    @property
    def rate(self) -> float:
        """Items a second in this part; 0 while nobody can say."""
        passed = self.clock() - self.began if self.began is not None else 0.0
        return (self.done - self.first) / passed if passed > 0 else 0.0

    def __str__(self) -> str:
        parts = [f"{self.done:,}" if self.total is None else f"{self.done:,} of {self.total:,}"]
        if rate := self.rate:
            parts.append(f"{rate_in_words(rate)}")
            if self.total is not None and self.total > self.done:
                parts.append(f"{time_in_words((self.total - self.done) / rate)} left")
        return ", ".join(parts)


def rate_in_words(rate: float) -> str:
    """Items a second, or a minute or an hour where that is less than one.

    >>> rate_in_words(1234.5), rate_in_words(2.34), rate_in_words(0.2), rate_in_words(0.002)
    ('1,234/s', '2.3/s', '12/min', '7.2/h')
    """
    for times, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if rate * times >= 1 or unit == "h":
            return f"{rate * times:,.0f}/{unit}" if rate * times >= 10 else f"{rate * times:.1f}/{unit}"
    return ""


def time_in_words(seconds: float) -> str:
    """About how long, in one or two units.

    >>> time_in_words(4.2), time_in_words(150), time_in_words(5000), time_in_words(200_000)
    ('4 s', '2 min 30 s', '1 h 23 min', '2 d 7 h')
    """
    whole = round(seconds)
    for size, unit, part, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{whole} s"


@dataclass
class ProgressLines:
    """A line every half minute, for a log that nobody watches; nothing for what is done before that."""

    write: Callable[[str], None]
    clock: Clock = time.monotonic
    every: float = SECONDS_BETWEEN_LINES
    last: float = field(init=False)

    def __post_init__(self) -> None:
        self.last = self.clock()

    def tell(self, what: str, pace: Pace) -> None:
        if self.clock() - self.last >= self.every:
            self.last = self.clock()
            self.write(f"{what}: {pace}")


@contextmanager
def progress_bar(what: str, total: int | None, console: Console, clock: Clock = time.monotonic) -> Iterator[Update]:
    """Something to call with how much is done and, if they change, of how many and with what text."""
    pace = Pace(clock)
    with (bar_on_terminal if console.is_terminal else lines_in_log)(what, total, console, clock) as show:

        def update(done: int, of: int | None = None, text: str | None = None) -> None:
            pace.note(done, of or total)
            show(text or what, pace)

        yield update


@contextmanager
def bar_on_terminal(
    what: str, total: int | None, console: Console, clock: Clock
) -> Iterator[Callable[[str, Pace], None]]:
    """A bar that goes when the work is done."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[pace]}", markup=False),
    )
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, get_time=clock) as progress:
        task = progress.add_task(what, total=total, pace="")

        def show(text: str, pace: Pace) -> None:
            progress.update(task, completed=pace.done, total=pace.total, description=text, pace=str(pace))

        yield show


@contextmanager
def lines_in_log(what: str, total: int | None, console: Console, clock: Clock) -> Iterator[Callable[[str, Pace], None]]:
    """Lines that stay."""
    del what, total
    lines = ProgressLines(lambda line: console.print(line, highlight=False, markup=False, soft_wrap=True), clock)
    yield lines.tell
