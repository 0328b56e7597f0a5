"""How to be a good guest on a server: who we are, how often we ask, how long we wait. Speaks to no server itself."""

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from urllib.parse import urlsplit

HOME = "https://github.com/idiograph/idiograph"
LONGEST = 300.0  # seconds; a server that asks for more is asked again after this

Sleep = Callable[[float], object]


def agent(contact: str) -> str:
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
    """The seconds that a `Retry-After` header asks for, at most `LONGEST`; 0 if it says nothing that we understand.

    >>> retry_after("120"), retry_after(None), retry_after("soon")
    (120.0, 0.0, 0.0)
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST)
    try:
        when = parsedate_to_datetime(text)
        return min(max((when - now()).total_seconds(), 0.0), LONGEST)
    except (TypeError, ValueError):
        return 0.0


class Pace:
    """At least `interval` seconds between two requests to one site, from whatever thread.

    Measured on a clock that never jumps: setting the computer's time changes nothing.
    """

    def __init__(self, interval: float, sleep: Sleep = time.sleep, clock: Callable[[], float] = time.monotonic) -> None:
        self.interval, self.sleep, self.clock = interval, sleep, clock
        self.free: dict[str, float] = {}
        self.lock = threading.Lock()

    def wait(self, where: str = "") -> None:
        """Return when the next request may be made."""
        with self.lock:
            now = self.clock()
            turn = max(now, self.free.get(where, now))
            self.free[where] = turn + self.interval
        if turn > now:
            self.sleep(turn - now)

    def hold(self, seconds: float, where: str = "") -> None:
        """Ask nothing of this site for so long."""
        with self.lock:
            self.free[where] = max(self.free.get(where, 0.0), self.clock() + seconds)
