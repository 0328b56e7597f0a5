"""A client of one or more GROBID servers: never more requests than their pools hold, bounded patience, TEI or a reason.

By its documents and sources, 0.8 and 0.9: a full pool answers 503 (sometimes with a page of HTML), nothing extracted is
204, a failure is 500 with `[STATUS] message`, and a native parser that crashes takes the server down with it.
"""

import json
import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from idiograph.errors import InputError, ServiceError
from idiograph.pdf import Extraction
from idiograph.recipe import ExtractRecipe, without_passwords
from idiograph.xml import MAX_BYTES, parse_xml, tag_name

POOL = 10  # engines of a server that does not say: the default of its configuration
START = "start one: docker run --rm --init -p 8070:8070 grobid/grobid:0.9.1-crf"
LONGEST_WAIT = 60.0
BUSY = frozenset({429, 502, 503, 504})
STATUS = re.compile(r"\[([A-Z_]+)\]\s*(.*)", re.S)
LOST = Extraction(502, reason="connection lost", passing=True)


@dataclass(slots=True)
class Server:
    """One GROBID: where it is, what it is, and how many documents it may have of us at a time."""

    url: str
    version: str
    slots: int
    free: int
    down: bool = False
    probing: threading.Lock = field(default_factory=threading.Lock)


class AskGrobidAgain(Exception):
    """An answer that says nothing about the document; `outcome` is what stands if no other comes."""

    def __init__(self, outcome: Extraction) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class Grobid:
    """An `Extractor` that asks servers. Checks all of them when it is made, and raises if one is not ready."""

    def __init__(self, recipe: ExtractRecipe) -> None:
        self.recipe, self.stopped, self.slot_free = recipe, threading.Event(), threading.Condition()
        timeout = httpx2.Timeout(recipe.timeout, connect=10.0, pool=None)
        self.client = httpx2.Client(timeout=timeout, limits=httpx2.Limits(max_connections=None), trust_env=False)
        try:
            self.servers = [self.meet(url.rstrip("/")) for url in recipe.grobid]
        except BaseException:
            self.client.close()
            raise
        self.slots = sum(server.slots for server in self.servers)
        self.name = "grobid " + " ".join(sorted({server.version for server in self.servers}))

    def close(self) -> None:
        self.stopped.set()
        with self.slot_free:
            self.slot_free.notify_all()
        self.client.close()

    def meet(self, url: str) -> Server:
        """A server that is ready, or an error that says what to do."""
        if not url.startswith(("http://", "https://")):
            raise InputError(
                f"'{without_passwords(url)}' is not the address of a GROBID server; write it like http://localhost:8070"
            )
        problem = self.await_ready(url)
        if problem:
            raise ServiceError(f"the GROBID server {without_passwords(url)} is not ready ({problem}); {START}")
        pool = self.pool(url)
        slots = min(self.recipe.workers or pool, pool)
        return Server(url, self.version(url), slots, slots)

    def await_ready(self, url: str) -> str:
        """Nothing once a server says that it is alive; else what it said last. Only one that is starting is waited for."""
        deadline, pause = time.monotonic() + self.recipe.ready, 0.05
        while True:
            try:
                answer = self.client.get(f"{url}/api/isalive", timeout=10.0)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                return str(error) or type(error).__name__
            if answer.status_code == 200 and answer.text.strip() == "true":
                return ""
            starting = answer.status_code == 503
            if not starting or time.monotonic() > deadline or self.stopped.wait(pause):
                return f"it answers {answer.status_code}" if answer.status_code != 200 else "it does not answer 'true'"
            pause = min(2 * pause, 2.0)

    def ask(self, url: str) -> Any:
        """What a server says about itself, None if that is not JSON."""
        try:
            return json.loads(self.client.get(url, timeout=10.0).text)
        except (httpx2.HTTPError, ValueError):
            return None

    def pool(self, url: str) -> int:
        health = self.ask(f"{url}/api/health")
        pool = health.get("pool") if isinstance(health, dict) else None
        size = pool.get("maxActive") if isinstance(pool, dict) else None
        return size if isinstance(size, int) and size > 0 else POOL

    def version(self, url: str) -> str:
        answer = self.ask(f"{url}/api/version")
        number = answer.get("version") if isinstance(answer, dict) else None
        return number if isinstance(number, str) and re.fullmatch(r"[\w.+-]{1,40}", number) else "of unknown version"

    def __call__(self, pdf: Path) -> Extraction:
        """Ask until there is an answer about the document, or patience is at its end."""
        outcome, wait = LOST, self.recipe.wait
        for attempt in range(self.recipe.attempts):
            if attempt and self.stopped.wait(wait):
                raise ServiceError("the extraction was stopped")
            wait = min(2 * wait, LONGEST_WAIT) if attempt else wait
            try:
                return self.attempt(pdf)
            except AskGrobidAgain as again:
                outcome = again.outcome
            except OSError as error:
                return Extraction(400, reason="cannot be opened", detail=str(error.strerror))
        return outcome

    def attempt(self, pdf: Path) -> Extraction:
        server = self.take()
        try:
            return self.send(server, pdf)
        except (httpx2.ReadTimeout, httpx2.WriteTimeout, TimeoutError):
            return Extraction(408, reason="took too long", detail=f"more than {self.recipe.timeout:g} s", passing=True)
        except httpx2.HTTPError as error:
            self.probe(server, error)
            raise AskGrobidAgain(Extraction(502, reason=LOST.reason, detail=str(error)[:300], passing=True)) from error
        finally:
            self.give_back(server)

    def take(self) -> Server:
        """A place at the server that has most of them free; waits for one, and raises if no server is left."""
        with self.slot_free:
            while True:
                up = [server for server in self.servers if not server.down]
                if not up or self.stopped.is_set():
                    raise ServiceError(
                        "no GROBID server answers any more; start it again and run the same command: it goes on"
                        " where it stopped"
                    )
                best = max(up, key=lambda server: server.free / server.slots)
                if best.free:
                    best.free -= 1
                    return best
                self.slot_free.wait()

    def give_back(self, server: Server) -> None:
        with self.slot_free:
            server.free += 1
            self.slot_free.notify_all()

    def probe(self, server: Server, error: Exception) -> None:
        """After a lost connection, see whether a server is there or comes back; one that does not is left alone."""
        with server.probing:
            if server.down:
                return
            deadline = time.monotonic() + self.recipe.ready
            while problem := self.await_ready(server.url):
                if time.monotonic() > deadline or self.stopped.wait(min(1.0, self.recipe.wait)):
                    server.down = True
                    with self.slot_free:
                        self.slot_free.notify_all()
                    raise AskGrobidAgain(Extraction(502, reason=LOST.reason, detail=problem, passing=True)) from error

    def send(self, server: Server, pdf: Path) -> Extraction:
        options = {
            "consolidateHeader": str(self.recipe.consolidate_header),
            "consolidateCitations": str(self.recipe.consolidate_citations),
            "segmentSentences": "0",
            **({"flavor": self.recipe.flavor} if self.recipe.flavor else {}),
        }
        url = f"{server.url}/api/processFulltextDocument"
        size = pdf.stat().st_size
        if size > self.recipe.max_bytes:
            return Extraction(413, reason="too large", detail=f"{size} bytes, more than {self.recipe.max_bytes}")
        deadline = time.monotonic() + 2 * self.recipe.timeout  # of which half may pass before the first byte
        with pdf.open("rb") as file:
            form = {"input": (sendable_name(pdf), file, "application/pdf")}
            request = {"data": options, "files": form, "headers": {"Accept": "application/xml"}}
            with self.client.stream("POST", url, **request) as response:
                return judge_answer(response.status_code, read_tei_body(response, deadline))


def sendable_name(pdf: Path) -> str:
    """The name of a file as it goes into a form; a name on disk need not be text.

    >>> sendable_name(Path("pdf/hal-01.pdf")), sendable_name(Path(b"caf\\xe9.pdf".decode("utf-8", "surrogateescape")))
    ('hal-01.pdf', 'document.pdf')
    """
    return pdf.name if pdf.name.isprintable() else "document.pdf"


def read_tei_body(response: httpx2.Response, deadline: float) -> bytes:
    """The answer, as far as it is of a size that TEI has and does not come drop by drop."""
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > MAX_BYTES:
            break
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(body)


def judge_answer(status: int, body: bytes) -> Extraction:
    """What an answer says about the document; Again if it says nothing about it."""
    text = body[:1000].decode("utf-8", "replace").strip()
    if status == 200:
        problem = not_tei(body)
        if problem:
            raise AskGrobidAgain(Extraction(502, reason="answer is not TEI", detail=problem, passing=True))
        return Extraction(200, tei=body)
    if status == 204:
        return Extraction(204, reason="nothing extracted")
    if status in BUSY:
        raise AskGrobidAgain(
            Extraction(status, reason="server busy", detail=f"status {status} each time", passing=True)
        )
    failure = STATUS.match(text) or STATUS.search(describe_error(text))
    if failure:
        return Extraction(status, reason=failure[1], detail=failure[2][:300])
    return Extraction(status, reason=f"status {status}", detail=text[:300], passing=status >= 500)


def describe_error(text: str) -> str:
    """The description in the JSON form of an error."""
    try:
        error = json.loads(text)
    except ValueError:
        return ""
    return str(error.get("description", "")) if isinstance(error, dict) else ""


def not_tei(body: bytes) -> str:
    """What is wrong with an answer that should be TEI, nothing if it is TEI."""
    try:
        root = parse_xml(body)
    except InputError as error:
        return str(error)[:300]
    return "" if tag_name(root) == "TEI" else f"the root element is <{tag_name(root)}>"
