"""Fetch one file from the web into a folder, gently. Does not know which ones are wanted, nor why."""

import hashlib
import threading
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import BinaryIO

import httpx2

from idiograph.hal.addresses import PrivateAddress, refuse_private
from idiograph.hal.harvest import AskHalAgain, worth_another
from idiograph.hal.ratelimit import Retries, SharedRate, SiteRate, Tell, retry_after, site, user_agent
from idiograph.hal.records import pdf_name
from idiograph.recipe import DownloadRecipe, without_passwords
from idiograph.runner import DIED
from idiograph.store import new_file

HOPS = 10
HEAD, TAIL = 1024, 4096  # where readers look for %PDF- and %%EOF
PASSING = frozenset({"server error", "too many requests", "no answer", "cut off", DIED})  # may go better later


@dataclass(frozen=True, slots=True)
class WantedFile:
    """What of a record decides about its file."""

    halid: str
    version: int
    url: str
    licence: str
    embargo: str


@dataclass(frozen=True, slots=True)
class FetchEntry:
    """What became of one record: a file with its checksum, or a reason."""

    halid: str
    version: int
    url: str
    file: str = ""
    bytes: int = 0
    sha256: str = ""
    reason: str = ""
    detail: str = ""

    @property
    def key(self) -> str:
        return self.halid


class Failed(Exception):
    """No file, and asking again would not help."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


class Stopped(Exception):
    """Another thread of this run has failed, or the user has interrupted it."""


class Fetcher:
    """Fetches one file at a time for each thread that asks, gently."""

    tell: Tell | None = None  # hears why a site is asked again

    def __init__(self, out: Path, work: Path, recipe: DownloadRecipe, pace: SiteRate, stop: threading.Event) -> None:
        self.out, self.work, self.recipe, self.pace, self.stop = out, work, recipe, pace, stop
        self.client = connect_to_sites(recipe)

    def fetch(self, wanted: WantedFile) -> FetchEntry:
        """A file, or the reason why there is none."""
        plain = FetchEntry(wanted.halid, wanted.version, wanted.url)
        retries = Retries(self.recipe.attempts, self.recipe.backoff, self.tell, self.stop.wait)
        try:
            size, checksum = retries.ask(site(wanted.url), partial(self.attempt, wanted), worth_another)
        except Failed as error:
            return replace(plain, reason=error.reason, detail=error.detail)
        except AskHalAgain as error:
            return replace(plain, reason=str(error), detail=error.detail)
        except httpx2.RemoteProtocolError as error:
            return replace(plain, reason="cut off", detail=str(error))
        except PrivateAddress as error:
            return replace(plain, reason="private address", detail=str(error))
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            return replace(plain, reason="leads nowhere", detail=str(error))
        except httpx2.HTTPError as error:
            return replace(plain, reason="no answer", detail=str(error) or type(error).__name__)
        return replace(plain, file=pdf_name(wanted.halid), bytes=size, sha256=checksum)

    def attempt(self, wanted: WantedFile) -> tuple[int, str]:
        """Follow the redirects, each at its own site's pace, and save what is at their end."""
        url = wanted.url
        for _ in range(HOPS):
            where = site(url)
            if not self.recipe.allow_private:
                refuse_private(url, resolve=not self.recipe.proxy)
            with self.pace.connection(where, self.recipe.per_host):
                self.pace.wait(where)
                if self.stop.is_set():
                    raise Stopped
                with self.client.stream("GET", url) as response:
                    if response.next_request is None:
                        self.check(response, where)
                        return self.save(response, pdf_name(wanted.halid))
                    url = str(response.next_request.url)
        raise Failed("too many redirects", without_passwords(url))

    def check(self, response: httpx2.Response, where: str) -> None:
        """Whether the status and the length promise a file that we want."""
        code, length = response.status_code, response.headers.get("content-length", "")
        if code == 429 or code == 503:
            self.pace.pause(retry_after(response.headers.get("retry-after")), where)
        if code == 429:
            raise AskHalAgain("too many requests", detail=f"status {code}")
        if code in (408, 425) or code >= 500:
            raise AskHalAgain("server error", detail=f"status {code}")
        if code != 200:
            raise Failed("not found" if code in (404, 410) else "refused", f"status {code}")
        if length.isdigit() and int(length) > self.recipe.max_bytes:
            raise Failed("too large", f"{length} bytes")

    def save(self, response: httpx2.Response, name: str) -> tuple[int, str]:
        """Write the file under a hidden name, and rename it when it is whole."""
        with new_file(self.out / name, self.work / f"{name}.partial") as file:
            return self.copy(response, file)

    def copy(self, response: httpx2.Response, file: BinaryIO) -> tuple[int, str]:
        """The size and checksum of what came, if that is a whole PDF of a size that we want."""
        whole, size, head, tail = hashlib.sha256(), 0, b"", b""
        deadline, kind = monotonic() + self.recipe.deadline, response.headers.get("content-type", "")
        for chunk in response.iter_bytes():
            if len(head) < HEAD <= len(head := (head + chunk)[:HEAD]):
                check_head(head, kind)
            size, tail = size + len(chunk), (tail + chunk)[-TAIL:]
            if size > self.recipe.max_bytes:
                raise Failed("too large", f"more than {self.recipe.max_bytes} bytes")
            if monotonic() > deadline:
                raise AskHalAgain("no answer", detail="a file that does not end")
            if self.stop.is_set():
                raise Stopped
            whole.update(chunk)
            file.write(chunk)
        check_head(head, kind)
        if "content-length" not in response.headers and b"%%EOF" not in tail:
            raise AskHalAgain("cut off", detail="no %%EOF, and no length to compare with")
        if size < self.recipe.min_bytes:
            raise Failed("too small", f"{size} bytes")
        return size, whole.hexdigest()


def check_head(head: bytes, kind: str) -> None:
    """Whether a file begins like a PDF; some have a few bytes of junk before."""
    if b"%PDF-" not in head or head.lstrip()[:1] == b"<":
        raise Failed("not a PDF", kind)


def connect_to_sites(recipe: DownloadRecipe) -> httpx2.Client:
    return httpx2.Client(
        headers={"User-Agent": user_agent(recipe.contact), "Accept": "application/pdf", "Accept-Encoding": "identity"},
        timeout=recipe.timeout,
        limits=httpx2.Limits(max_connections=recipe.workers * recipe.per_host),
        proxy=recipe.proxy or None,
        trust_env=False,
    )


@cache
def resident_fetcher(out: Path, work: Path, sites: Path, settings: str) -> Fetcher:
    """The fetcher of this process, for a runner that brings processes of its own; it keeps its connections."""
    recipe, stop = DownloadRecipe.model_validate_json(settings), threading.Event()
    return Fetcher(out, work, recipe, SharedRate(recipe.interval, sites, stop), stop)


def fetch_one(wanted: WantedFile, out: Path, work: Path, sites: Path, settings: str) -> FetchEntry:
    """What a runner calls; `settings` is a recipe as JSON."""
    return resident_fetcher(out, work, sites, settings).fetch(wanted)
