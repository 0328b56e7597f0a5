"""How to be a good guest on a server: who we are, how often we ask, how long we wait. Speaks to no server itself."""

import fcntl
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from idiograph.seeded import hash_text

HOME = "https://github.com/idiograph/idiograph"
LONGEST_RETRY_AFTER = 300.0  # seconds; a server that asks for more is asked again after this
SECONDS_BETWEEN_LOOKS = 0.01  # seconds between two looks at a lock that another process holds

Sleep = Callable[[float], object]
Tell = Callable[[str], None]  # a line for whoever waits
T = TypeVar("T")


def user_agent(contact: str) -> str:
    """The User-Agent that says who is asking, and whom to write to."""
    return f"idiograph/{version('idiograph')} (+{HOME}{f'; {contact}' if contact else ''})"


def site(url: str) -> str:
    """The server behind an address. Subdomains count as one: `shs.hal.science` and `hal.science` are the same machines.

    >>> site("https://shs.hal.science/halshs-00868006"), site("http://127.0.0.1:8000/x")
    ('hal.science', '127.0.0.1:8000')
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # half of an IPv6 address, say; whoever asks there will be told
        return ""
    host = (parts.hostname or "").lower()
    if re.fullmatch(r"[0-9.]+|.*:.*", host) or "." not in host:
        return parts.netloc.rpartition("@")[2].lower()
    return ".".join(host.split(".")[-2:])


def retry_after(value: str | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float:
    """The seconds that a `Retry-After` header asks for, at most `LONGEST_RETRY_AFTER`; 0 if it says nothing clear.

    >>> retry_after("120"), retry_after(None), retry_after("soon")
    (120.0, 0.0, 0.0)
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_RETRY_AFTER)
    try:
        when = parsedate_to_datetime(text)
        return min(max((when - now()).total_seconds(), 0.0), LONGEST_RETRY_AFTER)
    except (TypeError, ValueError):
        return 0.0


def server_reason(error: Exception) -> str:
    """What a failed request failed with, in a few words."""
    return str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a server is asked again, after how long, and whom to tell: after `backoff` seconds, then after twice as many
    each time, up to thirty times that."""

    attempts: int
    backoff: float
    tell: Tell | None = None
    sleep: Sleep = time.sleep

    def ask(self, who: str, question: Callable[[], T], worth_another: Callable[[Exception], bool | float]) -> T:
        """The answer of a server, or what it failed with at last. `worth_another` may know how many seconds it asks for."""
        for attempt in range(1, self.attempts + 1):
            try:
                return question()
            except Exception as error:
                again = worth_another(error)
                if not again or attempt == self.attempts:
                    raise
                wait = self.seconds(attempt) if again is True else float(again)
                if self.tell:
                    reason = f"{server_reason(error)}; waiting {wait:.0f} s, try {attempt + 1} of {self.attempts}"
                    self.tell(f"{who} did not answer: {reason}")
                self.sleep(wait)
        raise AssertionError("no attempt was allowed")

    def seconds(self, attempt: int) -> float:
        """How long to wait after this attempt; not to the second, so that a crowd does not come back together."""
        return min(self.backoff * 2 ** (attempt - 1), 30 * self.backoff) + self.backoff * random.random()


class SiteRate:
    """At least `interval` seconds between two requests to one site, from whatever thread.

    Measured on a clock that never jumps: setting the computer's time changes nothing.
    """

    def __init__(self, interval: float, sleep: Sleep = time.sleep, clock: Callable[[], float] = time.monotonic) -> None:
        self.interval, self.sleep, self.clock = interval, sleep, clock
        self.free: dict[str, float] = {}
        self.slots: dict[str, threading.Semaphore] = {}
        self.lock = threading.Lock()

    def wait(self, where: str = "") -> None:
        """Return when the next request may be made."""
        with self.lock:
            now = self.clock()
            turn = max(now, self.free.get(where, now))
            self.free[where] = turn + self.interval
        if turn > now:
            self.sleep(turn - now)

    def pause(self, seconds: float, where: str = "") -> None:
        """Ask nothing of this site for so long."""
        with self.lock:
            self.free[where] = max(self.free.get(where, 0.0), self.clock() + seconds)

    @contextmanager
    def connection(self, where: str, most: int) -> Iterator[None]:
        """One of the connections that a site allows."""
        with self.lock:
            slot = self.slots.setdefault(where, threading.Semaphore(most))
        with slot:
            yield


class SharedRate(SiteRate):
    """A pace that several processes keep together, on one machine or on many, by files in a folder that all of them see.

    A site has a file with a lock, in which the last one to ask has left a name and the seconds to wait after it. Who
    comes after somebody else waits all of them, with the lock in hand; who comes after itself knows by its own clock
    how many are over. So requests keep their distance, and no clocks of two machines are ever compared.
    """

    def __init__(self, interval: float, folder: Path, stop: threading.Event) -> None:
        super().__init__(interval, stop.wait)
        self.folder, self.stop, self.name = folder, stop, uuid4().hex
        folder.mkdir(parents=True, exist_ok=True)

    def wait(self, where: str = "") -> None:
        with self.lock_file(where, ["pace"]) as file:
            last, _, seconds = file.read().partition(" ") if file else ("", "", "")
            if last and last != self.name:
                self.sleep(float(seconds))
            super().wait(where)
            self.leave_note(file, self.interval)

    def pause(self, seconds: float, where: str = "") -> None:
        super().pause(seconds, where)
        with self.lock_file(where, ["pace"]) as file:
            self.leave_note(file, seconds)

    def leave_note(self, file: IO[str] | None, seconds: float) -> None:
        """Tell whoever comes next."""
        if file:
            file.seek(0)
            file.truncate()
            file.write(f"{self.name} {seconds:g}")

    @contextmanager
    def connection(self, where: str, most: int) -> Iterator[None]:
        with self.lock_file(where, [str(number) for number in range(most)]):
            yield

    @contextmanager
    def lock_file(self, where: str, names: list[str]) -> Iterator[IO[str] | None]:
        """Lock the first of some files of a site that is free; None if the run is stopped before."""
        site = f"{hash_text(where):016x}"
        paths = [self.folder / f"{site}.{name}" for name in names]
        while not self.stop.is_set():
            for path in paths:
                with path.open("a+", encoding="utf-8") as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        continue
                    file.seek(0)
                    yield file
                    return
            self.stop.wait(SECONDS_BETWEEN_LOOKS)
        yield None
