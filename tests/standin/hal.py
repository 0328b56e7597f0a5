"""A stand-in for HAL on this machine: its search API with cursors, and its files, over real HTTP. Can be told to fail.

    with Hal(archive(100)) as server:
        ...  # server.url is the address to give to `harvest`

Only the JSON answers are imitated, and of Solr's language what `solr` knows.
"""

import base64
import fnmatch
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.standin.archive import HOME, Archive
from tests.standin.solr import BadQuery, matches_query

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PORTALS = ("hal", "tel", "inria", "shs")
MAX_ROWS, DEFAULT_ROWS = 10_000, 30
DEFAULT_FIELDS = "docid,label_s,uri_s"
PAGE = b"<!DOCTYPE html><html><head><title>HAL</title></head><body>One moment, please.</body></html>"


@dataclass
class HalFault:
    """A way to misbehave, for `times` requests under `path` after `after` of them went well.

    `kind` is `status:CODE`, `reset`, `hang:SECONDS`, `html`, `junk`, `latin`, `deep`, `error`, `stuck`, `back`,
    `empty`, `cut` (less than was announced), `open` (cut, and nothing was announced) or `drip:SECONDS` (between bytes).
    """

    kind: str
    path: str = "/search/"
    after: int = 0
    times: int = 1
    headers: Mapping[str, str] = field(default_factory=dict)

    def strikes(self, path: str) -> bool:
        if not path.startswith(self.path) or not self.times:
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return True


@dataclass(frozen=True)
class HalRequest:
    """A request that came in."""

    path: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    peer: int
    time: float


class HalStandIn:
    """The server. `seen` lists the requests; `before` is called with each, before it is answered."""

    def __init__(
        self, archive: Archive, faults: Sequence[HalFault] = (), port: int = 0, host: str = "127.0.0.1"
    ) -> None:
        self.archive, self.faults, self.now = archive, list(faults), NOW
        self.before: Callable[[HalRequest], object] = lambda _: None
        self.seen: list[HalRequest] = []
        self.busy = self.busiest = 0
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer((host, port), type("Bound", (HalHandler,), {"hal": self}))
        self.http.daemon_threads = True
        self.url = f"http://{host}:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> "HalStandIn":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def searches(self) -> list[HalRequest]:
        return [seen for seen in self.seen if seen.path.startswith("/search/")]

    def fault(self, path: str) -> HalFault | None:
        with self.lock:
            return next((fault for fault in self.faults if fault.strikes(path)), None)

    def find(self, query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The answer to a search."""
        filters = [text for key in ("q", "fq") for text in query.get(key, ())]
        if "q" not in query:
            raise BadQuery("missing query string")
        found = [doc for doc in self.archive.docs if all(matches_query(text, doc) for text in filters)]
        rows = min(int("0" + "".join(filter(str.isdigit, query.get("rows", [str(DEFAULT_ROWS)])[0]))), MAX_ROWS)
        cursor = query.get("cursorMark", [""])[0]
        if cursor and not query.get("sort", [""])[0].startswith("docid "):
            raise BadQuery("Cursor functionality requires a sort containing a uniqueKey field tie breaker")
        after = docid_of(cursor)
        start = 0 if cursor else int(query.get("start", ["0"])[0])
        page = [doc for doc in found if int(doc["docid"]) > after][start : start + rows]
        wanted = query.get("fl", [DEFAULT_FIELDS])[0].split(",")
        docs = [
            {key: value for key, value in doc.items() if any(fnmatch.fnmatchcase(key, w) for w in wanted)}
            for doc in page
        ]
        answer: dict[str, Any] = {
            "response": {"numFound": len(found), "start": start, "numFoundExact": True, "docs": docs}
        }
        if cursor:
            answer["nextCursorMark"] = cursor_of(int(page[-1]["docid"])) if page else cursor
        return answer


def cursor_of(docid: int) -> str:
    """A mark with the characters that must be encoded in an address."""
    return "AoE/" + base64.b64encode(f"?~{docid}".encode()).decode() + "+="


def docid_of(cursor: str) -> int:
    if cursor in ("", "*"):
        return -1
    try:
        return int(base64.b64decode(cursor.removeprefix("AoE/").removesuffix("+="))[2:])
    except ValueError as error:
        raise BadQuery(f"Unable to parse 'cursorMark' after totem: {cursor}") from error


class HalHandler(BaseHTTPRequestHandler):
    """One connection."""

    hal: HalStandIn
    protocol_version = "HTTP/1.1"
    pause = 0.0
    disable_nagle_algorithm = True  # or each answer waits for the acknowledgement of its own header

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet; `Hal.seen` has it all."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The server's clock, which may be wrong."""
        return super().date_time_string(self.hal.now.timestamp() if timestamp is None else timestamp)

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # the other side was killed, or we did it ourselves
            self.close_connection = True

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        seen = HalRequest(
            parts.path, parse_qs(parts.query), dict(self.headers), self.client_address[1], time.monotonic()
        )
        with self.hal.lock:
            self.hal.seen.append(seen)
            self.hal.busy += 1
            self.hal.busiest = max(self.hal.busiest, self.hal.busy)
        try:
            self.hal.before(seen)
            self.answer(seen, self.hal.fault(seen.path))
        finally:
            with self.hal.lock:
                self.hal.busy -= 1

    def answer(self, seen: HalRequest, fault: HalFault | None) -> None:
        name, _, argument = (fault.kind if fault else "").partition(":")
        if name == "reset":
            self.reset()
        elif name == "status":
            self.send(int(argument), b"<html>no</html>", "text/html", fault.headers if fault else {})
        elif name in PAGES:
            self.send(200, PAGES[name], "text/html" if name == "html" else "application/json; charset=utf-8")
        else:
            time.sleep(float(argument) if name == "hang" else 0)
            self.pause = float(argument) if name == "drip" else 0.0
            self.route(seen, name)

    def route(self, seen: HalRequest, fault: str) -> None:
        parts = seen.path.strip("/").split("/")
        if parts[0] == "search":
            self.search(seen, parts[1:], fault)
        elif parts[0] == "docs":
            self.send(200, PAGE, "text/html")
        elif parts[1:] == ["document"] and f"/{parts[0]}/file/paper.pdf" in self.hal.archive.files:
            self.send(302, b"", "text/html", {"Location": f"{self.hal.url}/{parts[0]}/file/paper.pdf"})
        elif seen.path in self.hal.archive.files:
            self.deliver(self.hal.archive.files[seen.path], fault)
        else:
            self.send(404, PAGE, "text/html")

    def search(self, seen: HalRequest, portal: list[str], fault: str) -> None:
        if portal and not (portal[0] in PORTALS or portal[0].isupper()):
            return self.send(302, b"", "text/html", {"Location": "/docs/search/"})
        try:
            found = self.hal.find(seen.query)
        except BadQuery as error:  # as HAL does: the status is 200 all the same
            found = {"error": {"msg": str(error)}}
        if fault in TWISTS:
            TWISTS[fault](found, seen.query["cursorMark"][0])
        body = json.dumps(found, ensure_ascii=False).replace(HOME, self.hal.url).encode("utf-8", "surrogatepass")
        if fault == "latin":
            body = body.replace(b"things", b"th\xffngs")
        return self.send(
            200, body, "application/json; charset=utf-8", cut=fault in ("cut", "open"), bare=fault == "open"
        )

    def deliver(self, body: bytes, fault: str) -> None:
        self.send(200, body, "application/pdf", cut=fault in ("cut", "open"), bare=fault == "open")

    def send(
        self,
        code: int,
        body: bytes,
        kind: str,
        headers: Mapping[str, str] | None = None,
        cut: bool = False,
        bare: bool = False,
    ) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Connection", "close") if bare else self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for part in (
            [body[i : i + 1] for i in range(len(body))] if self.pause else [body[: len(body) // 2] if cut else body]
        ):
            self.wfile.write(part)
            time.sleep(self.pause)
        self.close_connection = self.close_connection or cut or bare

    def reset(self) -> None:
        """Break the connection off without a goodbye."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


PAGES = {
    "html": PAGE,
    "junk": b'{"error":{"msg":""org.apache.solr"", "code":500}}',
    "deep": b"[" * 200_000,
    "error": b'{"error":{"msg":"org.apache.solr.common.SolrException: no servers hosting shard"}}',
}


def stuck(found: dict[str, Any], cursor: str) -> None:
    found["nextCursorMark"] = cursor


def back(found: dict[str, Any], _cursor: str) -> None:
    found["nextCursorMark"] = "*"


def empty(found: dict[str, Any], cursor: str) -> None:
    found["response"]["docs"] = []
    found["nextCursorMark"] = cursor


TWISTS = {"stuck": stuck, "back": back, "empty": empty}
