"""The client of GROBID servers against a real local one that can be told to misbehave."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from pdfs import article

from idiograph.errors import InputError, ServiceError
from idiograph.pdf import Extraction
from idiograph.pdf.extract import extract
from idiograph.pdf.grobid import Grobid as Client
from idiograph.pdf.grobid import judge_answer, not_tei
from idiograph.recipe import ExtractRecipe
from tests.standin.grobid import XML as KIND
from tests.standin.grobid import GrobidAnswer, GrobidFault, GrobidStandIn

TEI = b'<?xml version="1.0" encoding="UTF-8"?>\n<TEI xmlns="http://www.tei-c.org/ns/1.0"><text><body/></text></TEI>\n'
PATIENT = {"wait": 0.01, "ready": 0.3, "timeout": 5.0, "attempts": 4}


def canned(_: bytes) -> GrobidAnswer:
    return GrobidAnswer(200, TEI, KIND)


def recipe(*servers: GrobidStandIn, **changes: object) -> ExtractRecipe:
    return ExtractRecipe.model_validate({"grobid": tuple(s.url for s in servers), **PATIENT, **changes})


@contextmanager
def client(*servers: GrobidStandIn, **changes: object) -> Iterator[Client]:
    opened = Client(recipe(*servers, **changes))
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def pdf(tmp_path: Path) -> Path:
    path = tmp_path / "one.pdf"
    path.write_bytes(article())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pdfs = tmp_path / "pdf"
    pdfs.mkdir()
    for number in range(12):
        (pdfs / f"hal-{number:02}.pdf").write_bytes(b"%PDF-1.5 " + str(number).encode())
    return pdfs


def ask(pdf: Path, *faults: GrobidFault, **changes: object) -> tuple[Extraction, GrobidStandIn]:
    with GrobidStandIn(canned, faults) as server, client(server, **changes) as opened:
        return opened(pdf), server


def ledger(out: Path) -> dict[str, dict]:
    return {entry["name"]: entry for entry in map(json.loads, (out / "ledger.jsonl").read_text().splitlines())}


def test_tei_is_what_the_server_sent_byte_for_byte(pdf: Path) -> None:
    outcome, server = ask(pdf)
    assert (outcome.status, outcome.tei) == (200, TEI)
    assert [(seen.name, seen.size) for seen in server.seen] == [("one.pdf", pdf.stat().st_size)]


def test_options_are_always_said_because_the_documented_defaults_are_not_the_real_ones(pdf: Path) -> None:
    _, server = ask(pdf, consolidate_header=1)
    assert server.seen[0].fields == {"consolidateHeader": "1", "consolidateCitations": "0", "segmentSentences": "0"}


@pytest.mark.parametrize("kind", ["status:503", "page", "html", "junk", "empty", "reset", "cut"])
def test_an_answer_that_says_nothing_about_the_document_is_asked_for_again(pdf: Path, kind: str) -> None:
    outcome, server = ask(pdf, GrobidFault(kind, times=2))
    assert (outcome.status, outcome.tei, len(server.seen)) == (200, TEI, 3)


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("status:503", 503, "server busy"),
        ("page", 503, "server busy"),
        ("html", 502, "answer is not TEI"),
        ("empty", 502, "answer is not TEI"),
        ("reset", 502, "connection lost"),
        ("cut", 502, "connection lost"),
    ],
)
def test_patience_has_an_end(pdf: Path, kind: str, status: int, reason: str) -> None:
    outcome, server = ask(pdf, GrobidFault(kind, times=99))
    assert (outcome.status, outcome.reason, outcome.tei, outcome.passing) == (status, reason, b"", True)
    assert len(server.seen) == PATIENT["attempts"]


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("status:204", 204, "nothing extracted"),
        ("status:400", 400, "status 400"),
        ("status:409", 409, "TIMEOUT"),
        ("500:NO_BLOCKS", 500, "NO_BLOCKS"),
        ("500:BAD_INPUT_DATA", 500, "BAD_INPUT_DATA"),
    ],
)
def test_a_verdict_on_the_document_is_final(pdf: Path, kind: str, status: int, reason: str) -> None:
    outcome, server = ask(pdf, GrobidFault(kind, times=99))
    assert (outcome.status, outcome.reason, outcome.passing, len(server.seen)) == (status, reason, False, 1)


def test_the_words_of_a_failure_are_kept(pdf: Path) -> None:
    outcome, _ = ask(pdf, GrobidFault("500:NO_BLOCKS"))
    assert outcome.detail == "PDF parsing resulted in empty content"


def test_a_document_that_takes_too_long_is_a_408_that_may_be_tried_again(pdf: Path) -> None:
    outcome, server = ask(pdf, GrobidFault("hang:2"), timeout=0.2)
    assert (outcome.status, outcome.reason, outcome.passing, len(server.seen)) == (408, "took too long", True, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Error 503</body></html>",
        b"<TEI",
        b"<article/>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><TEI>&b;</TEI>',
    ],
)
def test_only_whole_tei_passes_for_tei(body: bytes) -> None:
    assert not_tei(body)
    assert not not_tei(TEI)


def test_a_500_without_a_verdict_may_pass() -> None:
    assert judge_answer(500, b"java.lang.OutOfMemoryError").passing
    assert not judge_answer(500, b"[GENERAL] An exception occurred while running Grobid.").passing


def test_a_document_that_is_too_large_is_not_sent(pdf: Path) -> None:
    outcome, server = ask(pdf, max_bytes=10)
    assert (outcome.status, outcome.reason, server.seen) == (413, "too large", [])


def test_no_more_requests_are_in_flight_than_the_pool_holds(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(meeting(3), pool=3) as server:
        manifest = extract(folder, tmp_path / "tei", recipe(server))
    assert (server.busiest, len(server.seen), manifest.counts) == (3, 12, {"pdfs": 12, "tei": 12})


def meeting(count: int) -> Callable[[bytes], GrobidAnswer]:
    """An engine that works only when others work beside it, which shows that places are used."""
    barrier = threading.Barrier(count)

    def convert(pdf: bytes) -> GrobidAnswer:
        barrier.wait(timeout=20)
        return canned(pdf)

    return convert


def test_fewer_requests_can_be_asked_for(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(canned, pool=8) as server:
        extract(folder, tmp_path / "tei", recipe(server, workers=1))
    assert server.busiest == 1


def test_a_server_that_does_not_tell_its_pool_gets_the_default_number() -> None:
    with GrobidStandIn(canned, release="0.8.2") as server, client(server) as opened:
        assert (opened.slots, opened.name) == (10, "grobid 0.8.2")


def test_several_servers_share_the_work(folder: Path, tmp_path: Path) -> None:
    work = meeting(4)
    with GrobidStandIn(work, pool=2) as one, GrobidStandIn(work, pool=2) as two:
        manifest = extract(folder, tmp_path / "tei", recipe(one, two))
    assert (len(one.seen), len(two.seen), manifest.counts) == (6, 6, {"pdfs": 12, "tei": 12})


def test_when_one_server_dies_the_others_take_over(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(canned, [GrobidFault("die")], pool=1) as one, GrobidStandIn(canned, pool=1) as two:
        manifest = extract(folder, tmp_path / "tei", recipe(one, two, ready=0.05))
    assert manifest.counts == {"pdfs": 12, "tei": 12}
    assert len(one.seen) == 1


def test_when_the_last_server_dies_the_run_stops_and_can_go_on(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    with GrobidStandIn(canned, [GrobidFault("die", name="hal-05.pdf")], pool=1) as server:
        with pytest.raises(
            ServiceError, match="no GROBID server answers any more; start it again and run the same command"
        ):
            extract(folder, out, recipe(server, ready=0.05))
    assert len(list(out.glob("*.tei.xml"))) == 5
    assert not (out / "manifest.json").exists()
    with GrobidStandIn(canned, pool=1) as again:
        manifest = extract(folder, out, recipe(again))
    assert manifest.counts == {"pdfs": 12, "tei": 12}
    assert len(again.seen) == 7


def test_a_server_that_comes_back_is_used_again(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(canned, [GrobidFault("die", name="hal-05.pdf")], pool=1) as server:
        port = int(server.url.rpartition(":")[2])
        done = []
        run = threading.Thread(target=lambda: done.append(extract(folder, tmp_path / "tei", recipe(server, ready=20))))
        run.start()
        server.thread.join()
        with GrobidStandIn(canned, pool=1, port=port) as again:
            run.join()
    assert done[0].counts == {"pdfs": 12, "tei": 12}
    assert len(again.seen) == 7


def test_failures_are_named_files_and_ledger_entries_and_the_run_goes_on(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    faults = [
        GrobidFault("status:204", "hal-01*"),
        GrobidFault("500:NO_BLOCKS", "hal-02*"),
        GrobidFault("html", "hal-03*", times=99),
    ]
    with GrobidStandIn(canned, faults) as server:
        manifest = extract(folder, out, recipe(server))
    assert manifest.counts == {"pdfs": 12, "tei": 9}
    assert manifest.dropped == {"NO_BLOCKS": 1, "answer is not TEI": 1, "nothing extracted": 1}
    assert sorted(path.name for path in out.glob("*.txt")) == ["hal-01_204.txt", "hal-02_500.txt", "hal-03_502.txt"]
    assert (out / "hal-02_500.txt").read_text() == "NO_BLOCKS: PDF parsing resulted in empty content\n"
    assert (out / "hal-00.grobid.tei.xml").read_bytes() == TEI
    assert {name for name, entry in ledger(out).items() if entry["passing"]} == {"hal-03.pdf"}


def test_no_page_of_html_is_ever_saved_as_tei(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    with GrobidStandIn(canned, [GrobidFault("html", times=99), GrobidFault("page", times=999)]) as server:
        extract(folder, out, recipe(server, attempts=2))
    assert not list(out.glob("*.tei.xml"))
    assert not any(b"Service Unavailable" in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_a_second_run_tries_again_only_what_may_pass(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tei"
    with GrobidStandIn(
        canned, [GrobidFault("status:204", "hal-01*"), GrobidFault("status:503", "hal-02*", times=4)]
    ) as server:
        first = extract(folder, out, recipe(server))
        server.seen.clear()
        second = extract(folder, out, recipe(server))
        assert [seen.name for seen in server.seen] == ["hal-02.pdf"]
        server.seen.clear()
        third = extract(folder, out, recipe(server))
        assert server.seen == []
    assert (first.counts["tei"], second.counts["tei"], third.fingerprint) == (10, 11, second.fingerprint)
    assert sorted(path.name for path in out.glob("*.txt")) == ["hal-01_204.txt"]


def test_nobody_there_is_one_clear_error(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(canned) as server:
        pass
    with pytest.raises(
        ServiceError, match=rf"the GROBID server {server.url} is not ready \(.*\); start one: docker run"
    ):
        extract(folder, tmp_path / "tei", recipe(server))


def test_a_server_that_never_gets_ready_is_one_clear_error(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(canned) as good, GrobidStandIn(canned) as bad:
        bad.ready = False
        with pytest.raises(ServiceError, match=rf"{bad.url} is not ready \(it answers 503\)"):
            extract(folder, tmp_path / "tei", recipe(good, bad, ready=0.1))
    assert good.seen == bad.seen == []


def test_another_server_that_answers_is_not_taken_for_grobid(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(canned) as server:
        wrong = ExtractRecipe.model_validate({"grobid": (f"{server.url}/elsewhere",), **PATIENT})
        with pytest.raises(ServiceError, match="is not ready \\(it answers 404\\)"):
            extract(folder, tmp_path / "tei", wrong)


def test_an_address_without_a_scheme_is_refused_with_an_example(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="'localhost:8070' is not the address of a GROBID server; write it like http://"
    ):
        extract(folder, tmp_path / "tei", ExtractRecipe(grobid=("localhost:8070",)))


def test_the_password_of_a_server_is_neither_printed_nor_stored(folder: Path, tmp_path: Path) -> None:
    with GrobidStandIn(canned) as server:
        url = server.url.replace("//", "//ada:secret@")
        wrong = ExtractRecipe.model_validate({"grobid": (f"{url}/elsewhere",), **PATIENT})
        with pytest.raises(ServiceError) as caught:
            extract(folder, tmp_path / "none", wrong)
        assert "secret" not in str(caught.value)
        extract(folder, tmp_path / "tei", ExtractRecipe.model_validate({"grobid": (url,), **PATIENT}))
    kept = b"".join(path.read_bytes() for path in (tmp_path / "tei").rglob("*") if path.is_file())
    assert b"127.0.0.1" in kept
    assert b"secret" not in kept


def test_a_server_that_is_starting_is_waited_for() -> None:
    with GrobidStandIn(canned) as server:
        server.ready = False
        timer = threading.Timer(0.2, setattr, (server, "ready", True))
        timer.start()
        with client(server, ready=20) as opened:
            assert opened.slots == 4
        timer.join()


def get(url: str) -> tuple[int, bytes, str]:
    with urlopen(url) as answer:
        return answer.status, answer.read(), answer.headers["Content-Type"]


def test_the_stand_in_tells_about_itself_as_the_real_one_does() -> None:
    with GrobidStandIn(canned, pool=7) as server:
        assert get(f"{server.url}/api/isalive") == (200, b"true", "text/plain")
        assert json.loads(get(f"{server.url}/api/version")[1]) == {"version": "0.9.1", "revision": "stand-in"}
        health = json.loads(get(f"{server.url}/api/health")[1])
        assert (health["ready"], health["pool"]["maxActive"]) == (True, 7)


def test_the_stand_in_refuses_a_form_without_a_file() -> None:
    with GrobidStandIn(canned) as server:
        request = Request(f"{server.url}/api/processFulltextDocument", b"input=none", {"Content-Type": "text/plain"})
        with pytest.raises(HTTPError, match="400"):
            urlopen(request)


def test_the_stand_in_reads_real_pdfs_with_the_embedded_extractor(pdf: Path) -> None:
    with GrobidStandIn() as server, client(server) as opened:
        assert b"The tide comes in twice a day" in opened(pdf).tei
        pdf.write_bytes(b"not a PDF")
        assert opened(pdf).reason == "BAD_INPUT_DATA"


def test_the_stand_in_reads_one_pdf_at_a_time_since_pdfium_is_not_made_for_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import threading
    import time
    from concurrent.futures import ThreadPoolExecutor

    from tests.standin import grobid

    busy, most, lock = 0, 0, threading.Lock()

    def pages(data: bytes, max_pages: int) -> tuple[()]:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.02)
        with lock:
            busy -= 1
        return ()

    monkeypatch.setattr(grobid, "read_pages", pages)
    with ThreadPoolExecutor(4) as team:
        list(team.map(grobid.convert_pdf, [b"%PDF"] * 8))
    assert most == 1
