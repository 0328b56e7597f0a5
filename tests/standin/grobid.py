"""A stand-in for GROBID's service on this machine, over real HTTP. Can be told to fail as the real one does.

    with Grobid(pool=4) as server:
        ...  # server.url is the address to give to `extract`

The TEI is the embedded extractor's unless another `convert` is given. Addresses, statuses, bodies and headers are those of
versions 0.8 and 0.9; an engine pool that is full answers 503.
"""

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from idiograph.errors import InputError
from idiograph.pdf.article import read_paper
from idiograph.pdf.glyphs import read_pages
from idiograph.pdf.tei_writer import to_tei

READING = threading.Lock()  # pdfium crashes when two threads read at once
FULLTEXT = "/api/processFulltextDocument"
XML, TEXT, JSON, HTML = (
    "application/xml; charset=UTF-8",
    "text/plain",
    "application/json",
    "text/html; charset=iso-8859-1",
)
PAGE = (
    b"<html>\n<head>\n<title>Error 503 Service Unavailable</title>\n</head>\n"
    b"<body><h2>HTTP ERROR 503 Service Unavailable</h2></body>\n</html>\n"
)
MESSAGES = {
    "BAD_INPUT_DATA": "PDF to XML conversion failed with error code: 1",
    "NO_BLOCKS": "PDF parsing resulted in empty content",
    "TIMEOUT": "PDF to XML conversion timed out",
    "GENERAL": "An exception occurred while running Grobid.",
}


@dataclass
class GrobidFault:
    """A way to misbehave, for `times` requests for documents whose name matches `name`.

    `kind` is `status:CODE` (204, 400, 409, 500, 503), `500:NAME` for a named failure, `page` for 503 with a page of HTML,
    `html` for such a page with 200, `junk`, `empty`, `reset`, `cut`, `hang:SECONDS`, or `die`, after which nobody listens.
    """

    kind: str
    name: str = "*"
    times: int = 1

    def strikes(self, name: str) -> bool:
        if not self.times or not fnmatch(name, self.name):
            return False
        self.times -= 1
        return True


@dataclass(frozen=True)
class GrobidRequest:
    """A request for a document."""

    name: str
    fields: Mapping[str, str]
    size: int
    agent: str


@dataclass(frozen=True)
class GrobidAnswer:
    status: int
    body: bytes = b""
    kind: str = TEXT


def convert_pdf(pdf: bytes) -> GrobidAnswer:
    """What the service answers for a PDF."""
    try:
        with READING:
            paper = read_paper(read_pages(pdf, max_pages=2000))
    except InputError:
        return failure("BAD_INPUT_DATA")
    return GrobidAnswer(200, to_tei(paper, "stand-in"), XML) if paper else failure("NO_BLOCKS")


def failure(name: str) -> GrobidAnswer:
    return GrobidAnswer(500, f"[{name}] {MESSAGES.get(name, 'failed')}".encode())


class GrobidStandIn:
    """The server. `seen` lists the documents; `busiest` is how many were in work at a time."""

    def __init__(
        self,
        convert: Callable[[bytes], GrobidAnswer] = convert_pdf,
        faults: Sequence[GrobidFault] = (),
        pool: int = 4,
        release: str = "0.9.1",
        port: int = 0,
        host: str = "127.0.0.1",
    ) -> None:
        self.convert, self.faults, self.pool, self.release = convert, list(faults), pool, release
        self.ready, self.busy, self.busiest = True, 0, 0
        self.seen: list[GrobidRequest] = []
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer((host, port), type("Bound", (GrobidHandler,), {"grobid": self}))
        self.http.daemon_threads = True
        self.url = f"http://{host}:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> "GrobidStandIn":
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()

    def die(self) -> None:
        """Go as a server goes whose native parser has crashed: the port is closed at once."""
        self.http.socket.close()
        threading.Thread(target=self.http.shutdown, daemon=True).start()

    def enter(self) -> bool:
        """Take an engine from the pool; False when none is left."""
        with self.lock:
            free = self.busy < self.pool
            self.busy += free
            self.busiest = max(self.busiest, self.busy)
            return free

    def leave(self) -> None:
        with self.lock:
            self.busy -= 1

    def fault(self, name: str) -> str:
        with self.lock:
            return next((fault.kind for fault in self.faults if fault.strikes(name)), "")

    def health(self) -> GrobidAnswer:
        """0.8 says nothing, 0.9 tells about its engines and models."""
        if self.release.startswith("0.8"):
            return GrobidAnswer(200, b"", JSON)
        pool = {"initialized": True, "active": self.busy, "idle": 0, "maxActive": self.pool}
        told = {"initialized": self.ready, "ready": self.ready, "pool": pool, "grobidHomeConfigured": True}
        return GrobidAnswer(200 if self.ready else 503, json.dumps(told).encode(), JSON)


class GrobidHandler(BaseHTTPRequestHandler):
    """One connection."""

    grobid: GrobidStandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        server = self.grobid
        version = json.dumps({"version": server.release, "revision": "stand-in"}).encode()
        answers = {
            "/api/isalive": GrobidAnswer(200 if server.ready else 503, b"true" if server.ready else b"false"),
            "/api/version": GrobidAnswer(200, version, JSON),
            "/api/health": server.health(),
        }
        self.reply(answers.get(self.path.partition("?")[0], GrobidAnswer(404, b"not found")))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = read_chunks(self.rfile.readline, self.rfile.read)
        if self.path.partition("?")[0] != FULLTEXT:
            return self.reply(GrobidAnswer(404, b"not found"))
        name, pdf, fields = read_form(self.headers.get("Content-Type", ""), body)
        if not name:
            return self.reply(GrobidAnswer(400, b"the form has no file 'input'"))
        return self.process(name, pdf, fields)

    do_PUT = do_POST  # noqa: N815

    def process(self, name: str, pdf: bytes, fields: Mapping[str, str]) -> None:
        server = self.grobid
        if not server.enter():
            return self.reply(GrobidAnswer(503))
        try:
            with server.lock:
                server.seen.append(GrobidRequest(name, fields, len(pdf), self.headers.get("User-Agent", "")))
            fault = server.fault(name)
            answer = self.misbehave(fault) if fault else server.convert(pdf)
        finally:
            server.leave()
        return self.reply(answer) if answer else None

    def misbehave(self, kind: str) -> GrobidAnswer | None:
        """The answer of a fault, or None when the connection has been spoilt."""
        name, _, argument = kind.partition(":")
        if name == "hang":
            time.sleep(float(argument))
            return GrobidAnswer(204)
        if name == "500":
            return failure(argument)
        if name == "status":
            told = {"type": "BAD_INPUT_DATA", "description": "[TIMEOUT] too slow", "code": int(argument)}
            return GrobidAnswer(int(argument), json.dumps(told).encode() if argument == "409" else b"", JSON)
        answers = {"page": GrobidAnswer(503, PAGE, HTML), "html": GrobidAnswer(200, PAGE, HTML)}
        answers |= {"junk": GrobidAnswer(200, b"<TEI><unfinished", XML), "empty": GrobidAnswer(200, b"", XML)}
        return answers.get(name) or self.break_off(name)

    def break_off(self, kind: str) -> None:
        if kind == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: 9000\r\n\r\n<TEI>")
            self.wfile.flush()
        if kind == "die":
            self.grobid.die()
        if kind in ("reset", "die"):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def reply(self, answer: GrobidAnswer) -> None:
        self.send_response(answer.status)
        if answer.status != 204:
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body if answer.status != 204 else b"")


def read_chunks(readline: Callable[[], bytes], read: Callable[[int], bytes]) -> bytes:
    """A body that was sent in pieces."""
    body = b""
    while size := int(readline().split(b";")[0] or b"0", 16):
        body += read(size)
        readline()
    readline()
    return body


def read_form(kind: str, body: bytes) -> tuple[str, bytes, dict[str, str]]:
    """The file `input` of a multipart form with its name (empty if there is none), and the other fields."""
    boundary = re.search(r'boundary="?([^";]+)', kind)
    name, pdf, fields = "", b"", {}
    for part in body.split(b"--" + boundary[1].encode())[1:-1] if boundary else ():
        head, _, value = part.partition(b"\r\n\r\n")
        said = dict(re.findall(r'(\w+)="([^"]*)"', head.decode("utf-8", "replace")))
        if said.get("name") == "input" and "filename" in said:
            name, pdf = said["filename"] or "unnamed", value.removesuffix(b"\r\n")
        elif "name" in said:
            fields[said["name"]] = value.removesuffix(b"\r\n").decode("utf-8", "replace")
    return name, pdf, fields
