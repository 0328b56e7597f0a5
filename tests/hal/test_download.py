"""From records to PDFs: which are fetched, how gently, and what a misbehaving server can do."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from idiograph.errors import ArtifactError, ServiceError
from idiograph.hal.download import download
from idiograph.hal.licence import OPEN, licence_kind
from idiograph.hal.ratelimit import SharedRate
from idiograph.hal.records import KIND, Person, Record, pdf_name, to_line
from idiograph.recipe import DownloadRecipe
from idiograph.store import Manifest, seal
from tests.standin.archive import HOME, Archive, make_archive
from tests.standin.hal import HalFault, HalStandIn

FILES = make_archive(20)
PDF = FILES.files["/hal-00000001/file/paper.pdf"]
GENTLE = DownloadRecipe(interval=0, backoff=0, timeout=0.5, attempts=3, allow_private=True)


@pytest.fixture
def hal() -> Iterator[HalStandIn]:
    with HalStandIn(Archive(FILES.docs, dict(FILES.files))) as server:
        yield server


def keep(folder: Path, records: list[Record]) -> Path:
    """A finished harvest of these records."""
    folder.mkdir(exist_ok=True)
    (folder / "001-000001.jsonl").write_text("".join(map(to_line, records)), encoding="utf-8")
    seal(folder, Manifest(KIND))
    return folder


def record(hal: HalStandIn, place: int = 1, **changes: Any) -> Record:
    halid = f"hal-{place:08d}"
    plain = Record(halid, "en", "On things", ("info",), "", 2020, f"{hal.url}/{halid}/file/paper.pdf", (Person("Ada"),))
    return replace(plain, **{"licence": "https://creativecommons.org/licenses/by/4.0/", **changes})


def ledger(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["halid"]: entry for entry in map(json.loads, lines)}


def content(folder: Path) -> dict[str, bytes]:
    """Everything but the manifest and hidden work."""
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "manifest.json"
    }


def fetch(hal: HalStandIn, tmp_path: Path, recipe: DownloadRecipe = GENTLE, **changes: Any) -> dict[str, Any]:
    """What the ledger says about a single record."""
    single = record(hal, **changes)
    download(keep(tmp_path / "records", [single]), tmp_path / "pdf", recipe)
    return ledger(tmp_path / "pdf")[single.halid]


def test_a_file_comes_whole_with_its_checksum(hal: HalStandIn, tmp_path: Path) -> None:
    entry = fetch(hal, tmp_path)
    data = (tmp_path / "pdf" / "hal-00000001.pdf").read_bytes()
    assert data == hal.archive.files["/hal-00000001/file/paper.pdf"]
    assert (entry["bytes"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert entry["reason"] == ""


def test_every_record_is_in_the_ledger_and_the_counts_add_up(hal: HalStandIn, tmp_path: Path) -> None:
    records = [record(hal, place) for place in range(1, 21)]
    manifest = download(keep(tmp_path / "records", records), tmp_path / "pdf", GENTLE)
    assert ledger(tmp_path / "pdf").keys() == {one.halid for one in records}
    assert manifest.counts["files"] + sum(manifest.dropped.values()) == manifest.counts["records"] == 20
    assert manifest.dropped == {"not found": 2}
    assert manifest.fingerprint


def test_the_address_that_redirects_to_the_file_will_do(hal: HalStandIn, tmp_path: Path) -> None:
    entry = fetch(hal, tmp_path, url=f"{hal.url}/hal-00000001/document")
    assert entry["file"] == "hal-00000001.pdf"
    assert [seen.path for seen in hal.seen] == ["/hal-00000001/document", "/hal-00000001/file/paper.pdf"]


def test_redirects_in_a_circle_end(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("status:302", "/", times=99, headers={"Location": "/hal-00000001/file/paper.pdf"})]
    assert fetch(hal, tmp_path)["reason"] == "too many redirects"
    assert len(hal.seen) == 10


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.org/x.pdf", "gopher://x"])
def test_a_redirect_out_of_the_web_is_not_followed(hal: HalStandIn, tmp_path: Path, target: str) -> None:
    hal.faults = [HalFault("status:302", "/", times=99, headers={"Location": target})]
    assert fetch(hal, tmp_path)["reason"] == "leads nowhere"
    assert len(hal.seen) == 1


# --- what is not even asked for ---


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"embargo": "2999-01-01"}, "under embargo"),
        ({"licence": "https://creativecommons.org/licenses/by-nc/4.0/"}, "licence not chosen"),
        ({"licence": ""}, "licence not chosen"),
        ({"url": ""}, "no file"),
        ({"url": "file:///etc/passwd"}, "not a web address"),
        ({"url": "ftp://ftp.example.org/a.pdf"}, "not a web address"),
    ],
)
def test_what_may_not_be_fetched_is_not_asked_for(
    hal: HalStandIn, tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    assert fetch(hal, tmp_path, **changes)["reason"] == reason
    assert hal.seen == []
    assert list((tmp_path / "pdf").glob("*.pdf")) == []


def test_an_embargo_that_is_over_does_not_hold(hal: HalStandIn, tmp_path: Path) -> None:
    assert fetch(hal, tmp_path, embargo="2020-01-01")["file"]


def test_any_licence_can_be_chosen(hal: HalStandIn, tmp_path: Path) -> None:
    assert fetch(hal, tmp_path, GENTLE.model_copy(update={"licence": "any"}), licence="")["file"]


def test_the_default_lets_only_open_licences_through(hal: HalStandIn, tmp_path: Path) -> None:
    licences = [one.get("licence_s", "") for one in hal.archive.docs if one["submitType_s"] == "file"]
    records = [
        record(hal, place + 1, licence=licence, url=f"{hal.url}/hal-00000001/document")
        for place, licence in enumerate(licences)
    ]
    manifest = download(keep(tmp_path / "records", records), tmp_path / "pdf", GENTLE)
    assert manifest.counts["files"] == sum(licence_kind(licence) in OPEN for licence in licences)


def test_a_file_whose_licence_is_withdrawn_is_removed(hal: HalStandIn, tmp_path: Path) -> None:
    fetch(hal, tmp_path)
    assert fetch(hal, tmp_path, licence="http://hal.archives-ouvertes.fr/licences/copyright/")["reason"]
    assert list((tmp_path / "pdf").glob("*.pdf")) == []


# --- a server that misbehaves ---


@pytest.mark.parametrize(
    "fault",
    [
        HalFault("status:429", "/", times=2),
        HalFault("status:503", "/", headers={"Retry-After": "0"}),
        HalFault("reset", "/", times=2),
        HalFault("hang:0.8", "/"),
        HalFault("cut", "/", times=2),
        HalFault("open", "/"),
    ],
    ids=lambda fault: fault.kind,
)
def test_a_failure_that_passes_costs_nothing(hal: HalStandIn, tmp_path: Path, fault: HalFault) -> None:
    hal.faults = [fault]
    assert fetch(hal, tmp_path)["file"] == "hal-00000001.pdf"
    assert fault.times == 0
    assert (tmp_path / "pdf" / "hal-00000001.pdf").read_bytes() == PDF


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("status:404", "not found"),
        ("status:410", "not found"),
        ("status:403", "refused"),
        ("status:500", "server error"),
        ("status:429", "too many requests"),
        ("reset", "no answer"),
        ("hang:0.8", "no answer"),
        ("cut", "cut off"),
        ("open", "cut off"),
        ("html", "not a PDF"),
    ],
)
def test_a_failure_that_stays_is_a_line_in_the_ledger(hal: HalStandIn, tmp_path: Path, kind: str, reason: str) -> None:
    hal.faults = [HalFault(kind, "/", times=99)]
    assert fetch(hal, tmp_path)["reason"] == reason
    assert not any(path.suffix in (".pdf", ".partial") for path in (tmp_path / "pdf").rglob("*"))
    assert (tmp_path / "pdf" / "manifest.json").is_file()


@pytest.mark.parametrize("kind", ["status:404", "status:403", "html"])
def test_what_will_not_pass_is_asked_for_once(hal: HalStandIn, tmp_path: Path, kind: str) -> None:
    hal.faults = [HalFault(kind, "/", times=99)]
    fetch(hal, tmp_path)
    assert len(hal.seen) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not a PDF"),
        (b"<html>%PDF-1.4</html>" + b" " * 600, "not a PDF"),
        (b" " * 2000 + PDF, "not a PDF"),
        (b"PK\x03\x04" * 400, "not a PDF"),
        (b"%PDF-1.4", "too small"),
        (b"junk\r\n" + PDF, ""),
    ],
)
def test_only_a_pdf_is_kept(hal: HalStandIn, tmp_path: Path, body: bytes, reason: str) -> None:
    hal.archive.files["/hal-00000001/file/paper.pdf"] = body
    assert fetch(hal, tmp_path)["reason"] == reason


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://[::1/x.pdf", "not a web address"),
        ("http://", "not a web address"),
        ("http:///x.pdf", "not a web address"),
        ("http://\x00/x.pdf", "not a web address"),
        ("http://é..x/", "not a web address"),
        ("http://" + "a" * 70 + ".example/x.pdf", "leads nowhere"),
    ],
)
def test_an_address_that_is_none_is_a_line_in_the_ledger(
    hal: HalStandIn, tmp_path: Path, url: str, reason: str
) -> None:
    assert fetch(hal, tmp_path, url=url)["reason"] == reason


def test_a_file_that_never_ends_is_given_up(hal: HalStandIn, tmp_path: Path) -> None:
    """Its bytes come often enough for every timeout."""
    hal.faults = [HalFault("drip:0.01", "/")]
    entry = fetch(hal, tmp_path, GENTLE.model_copy(update={"timeout": 5, "deadline": 0.2, "attempts": 1}))
    assert (entry["reason"], entry["detail"]) == ("no answer", "a file that does not end")


@pytest.mark.parametrize("kind", ["announced", "open"])
def test_a_file_over_the_limit_is_not_kept(hal: HalStandIn, tmp_path: Path, kind: str) -> None:
    """Whether the server says how long it is or not; in the second case half of it is over the limit already."""
    hal.faults = [HalFault("open", "/", times=99)] if kind == "open" else []
    recipe = GENTLE.model_copy(update={"max_bytes": len(PDF) // 2 - 1})
    entry = fetch(hal, tmp_path, recipe)
    told = f"{len(PDF)} bytes" if kind == "announced" else f"more than {recipe.max_bytes} bytes"
    assert (entry["reason"], entry["detail"]) == ("too large", told)
    assert list((tmp_path / "pdf").glob("*.pdf")) == []
    hal.faults = []
    assert fetch(hal, tmp_path)["reason"] == ""


def test_a_server_that_keeps_failing_is_left_alone(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("status:500", "/", times=999)]
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 9)])
    recipe = GENTLE.model_copy(update={"give_up": 4, "attempts": 1})
    with pytest.raises(
        ServiceError, match=r"failed for 4 files in a row, at last with: status 500; run the same command"
    ):
        download(records, tmp_path / "pdf", recipe)
    assert len(hal.seen) == 4
    hal.faults = []
    assert download(records, tmp_path / "pdf", recipe).counts["files"] == 8


def test_other_sites_go_on_when_one_is_given_up(hal: HalStandIn, tmp_path: Path) -> None:
    with HalStandIn(Archive(), host="127.0.0.2") as gone:
        pass
    records = [record(gone, place) for place in range(1, 9)] + [record(hal, place) for place in range(11, 19)]
    with pytest.raises(ServiceError, match=r"^127.0.0.2:\d+ failed for 4 files in a row"):
        download(
            keep(tmp_path / "records", records),
            tmp_path / "pdf",
            GENTLE.model_copy(update={"give_up": 4, "attempts": 1, "workers": 1}),
        )
    assert len(list((tmp_path / "pdf").glob("*.pdf"))) == 8


# --- politeness ---


def test_the_default_is_one_request_a_second_and_one_connection_a_site() -> None:
    assert (DownloadRecipe().interval, DownloadRecipe().per_host) == (1.0, 1)


def test_requests_to_one_site_keep_their_distance(hal: HalStandIn, tmp_path: Path) -> None:
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 7)])
    download(records, tmp_path / "pdf", GENTLE.model_copy(update={"interval": 0.05, "per_host": 3}))
    times = sorted(seen.time for seen in hal.seen)
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.03
    assert "+https://github.com/idiograph/idiograph" in hal.seen[0].headers["User-Agent"]


def test_a_wait_that_the_server_asks_for_is_kept(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("status:429", "/", headers={"Retry-After": "1"})]
    fetch(hal, tmp_path)
    assert hal.seen[1].time - hal.seen[0].time >= 1


def test_a_site_that_others_redirect_to_is_spared_too(hal: HalStandIn, tmp_path: Path) -> None:
    with HalStandIn(hal.archive, host="127.0.0.2") as other, HalStandIn(hal.archive, host="127.0.0.3") as third:
        for server in (other, third):
            server.faults = [
                HalFault("status:302", "/", times=9, headers={"Location": f"{hal.url}/hal-00000001/file/paper.pdf"})
            ]
        hal.faults = [HalFault("hang:0.1", "/", times=9)]
        records = keep(tmp_path / "records", [record(other, 1), record(third, 2), record(other, 3), record(third, 4)])
        download(records, tmp_path / "pdf", GENTLE)
    assert (len(hal.seen), hal.busiest) == (4, 1)


@pytest.mark.parametrize("per_host", [1, 2])
def test_a_site_has_no_more_connections_than_it_is_given(hal: HalStandIn, tmp_path: Path, per_host: int) -> None:
    """The server holds every request until as many as are allowed have come in together."""
    together = threading.Barrier(per_host)
    hal.before = lambda _: together.wait(5)
    records = keep(tmp_path / "records", [record(hal, place) for place in (1, 2, 3, 4)])
    download(records, tmp_path / "pdf", GENTLE.model_copy(update={"per_host": per_host, "timeout": 5, "workers": 4}))
    assert hal.busiest == per_host


def test_two_sites_are_served_at_the_same_time(hal: HalStandIn, tmp_path: Path) -> None:
    with HalStandIn(hal.archive, host="127.0.0.2") as other:
        together = threading.Barrier(2)
        hal.before = other.before = lambda _: together.wait(5)
        records = keep(tmp_path / "records", [record(hal, 1), record(other, 2)])
        manifest = download(records, tmp_path / "pdf", GENTLE.model_copy(update={"timeout": 5}))
    assert manifest.counts["files"] == 2


# --- going on ---


def test_a_second_run_asks_for_nothing(hal: HalStandIn, tmp_path: Path) -> None:
    fetch(hal, tmp_path)
    fetch(hal, tmp_path)
    assert len(hal.seen) == 1


def test_a_second_run_tries_what_failed_for_a_passing_reason(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("status:500", "/hal-00000001", times=3), HalFault("status:404", "/hal-00000002")]
    records = keep(tmp_path / "records", [record(hal, 1), record(hal, 2)])
    assert download(records, tmp_path / "pdf", GENTLE).dropped == {"server error": 1, "not found": 1}
    assert download(records, tmp_path / "pdf", GENTLE).dropped == {"not found": 1}


def test_a_file_that_was_deleted_or_cut_is_fetched_again(hal: HalStandIn, tmp_path: Path) -> None:
    records = keep(tmp_path / "records", [record(hal, 1), record(hal, 2)])
    download(records, tmp_path / "pdf", GENTLE)
    whole = content(tmp_path / "pdf")
    (tmp_path / "pdf" / "hal-00000001.pdf").unlink()
    (tmp_path / "pdf" / "hal-00000002.pdf").write_bytes(b"%PDF-")
    download(records, tmp_path / "pdf", GENTLE)
    assert content(tmp_path / "pdf") == whole


def test_a_new_version_takes_the_old_ones_place(hal: HalStandIn, tmp_path: Path) -> None:
    fetch(hal, tmp_path)
    hal.archive.files["/hal-00000001/file/paper.pdf"] = PDF.replace(b"things", b"thongs")
    entry = fetch(hal, tmp_path, version=2)
    assert entry["version"] == 2
    assert (tmp_path / "pdf" / "hal-00000001.pdf").read_bytes() == hal.archive.files["/hal-00000001/file/paper.pdf"]


def test_a_new_version_that_cannot_be_had_leaves_no_old_one(hal: HalStandIn, tmp_path: Path) -> None:
    fetch(hal, tmp_path)
    hal.faults = [HalFault("status:404", "/")]
    assert fetch(hal, tmp_path, version=2)["reason"] == "not found"
    assert list((tmp_path / "pdf").glob("*.pdf")) == []


def test_what_a_killed_run_left_half_written_is_removed(hal: HalStandIn, tmp_path: Path) -> None:
    half = tmp_path / "pdf" / ".work" / "1-of-1" / "hal-00000009.pdf.partial"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"%PDF-1.4")
    fetch(hal, tmp_path)
    assert not half.exists()


def test_the_ledger_is_in_the_order_of_the_ids(hal: HalStandIn, tmp_path: Path) -> None:
    records = keep(tmp_path / "records", [record(hal, place) for place in (3, 1, 2)])
    download(records, tmp_path / "pdf", GENTLE)
    assert list(ledger(tmp_path / "pdf")) == ["hal-00000001", "hal-00000002", "hal-00000003"]


def test_a_licence_that_is_allowed_later_is_fetched_later(hal: HalStandIn, tmp_path: Path) -> None:
    assert fetch(hal, tmp_path, licence="")["reason"] == "licence not chosen"
    assert fetch(hal, tmp_path, GENTLE.model_copy(update={"licence": "any"}), licence="")["reason"] == ""


def test_unfinished_records_are_refused(hal: HalStandIn, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    with pytest.raises(ArtifactError, match="is not a finished folder of records"):
        download(tmp_path / "records", tmp_path / "pdf", GENTLE)


# --- shards ---


def test_shards_together_make_what_one_run_makes(hal: HalStandIn, tmp_path: Path) -> None:
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 21)])
    download(records, tmp_path / "whole", GENTLE)
    manifests = [download(records, tmp_path / "parts", GENTLE, part) for part in ("2/3", "1/3", "3/3")]
    assert [bool(manifest.fingerprint) for manifest in manifests] == [False, False, True]
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert len(hal.seen) == 40


def test_shards_of_one_cut_may_run_at_the_same_time(hal: HalStandIn, tmp_path: Path) -> None:
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 21)])
    download(records, tmp_path / "whole", GENTLE)
    jobs = [
        threading.Thread(target=download, args=(records, tmp_path / "parts", GENTLE, f"{place}/3"))
        for place in (1, 2, 3)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert content(tmp_path / "parts") == content(tmp_path / "whole")
    assert (tmp_path / "parts" / "manifest.json").is_file()


def test_another_cut_takes_over_what_is_done(hal: HalStandIn, tmp_path: Path) -> None:
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 21)])
    download(records, tmp_path / "pdf", GENTLE, "1/2")
    done = len(hal.seen)
    assert 0 < done < 20
    assert download(records, tmp_path / "pdf", GENTLE, "1/1").counts["records"] == 20
    assert len(hal.seen) == 20


# --- runners, and politeness between processes ---


@pytest.mark.parametrize("runner", ["processes", pytest.param("ray", marks=pytest.mark.slow)])
def test_every_runner_makes_what_inline_makes(hal: HalStandIn, tmp_path: Path, runner: str) -> None:
    pytest.importorskip("ray" if runner == "ray" else "multiprocessing", reason="Ray is not installed")
    odd = [record(hal, 21, url=""), record(hal, 22, url=f"{hal.url}/nowhere.pdf")]
    records = keep(tmp_path / "records", [*(record(hal, place) for place in range(1, 21)), *odd])
    here = download(records, tmp_path / "here", GENTLE)
    there = download(records, tmp_path / "there", GENTLE.model_copy(update={"runner": runner, "workers": 2}))
    assert content(tmp_path / "here") == content(tmp_path / "there")
    assert (here.counts, here.dropped, here.fingerprint) == (there.counts, there.dropped, there.fingerprint)


def test_processes_together_ask_a_site_at_one_pace(hal: HalStandIn, tmp_path: Path) -> None:
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 9)])
    many = {"runner": "processes", "workers": 3, "per_host": 3, "interval": 0.15}
    download(records, tmp_path / "pdf", GENTLE.model_copy(update=many))
    times = sorted(seen.time for seen in hal.seen)
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.12
    assert len({seen.peer for seen in hal.seen}) == 3  # each process has a connection of its own


def test_processes_together_have_no_more_connections_than_a_site_allows(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("hang:0.1", "/", times=99)]
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 7)])
    download(records, tmp_path / "pdf", GENTLE.model_copy(update={"runner": "processes", "workers": 3}))
    assert (len(hal.seen), hal.busiest) == (6, 1)


def test_shards_at_the_same_time_ask_a_site_at_one_pace(hal: HalStandIn, tmp_path: Path) -> None:
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 9)])
    slow = GENTLE.model_copy(update={"interval": 0.15})
    parts = [threading.Thread(target=download, args=(records, tmp_path / "pdf", slow, f"{i}/2")) for i in (1, 2)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()
    times = sorted(seen.time for seen in hal.seen)
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.12
    assert len(times) == 8


class Watch(threading.Event):
    """Notes how long somebody wanted to wait, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.slept.append(timeout or 0.0)
        return False


def test_who_comes_after_another_waits_as_long_as_that_one_was_told_to(tmp_path: Path) -> None:
    watch = Watch()
    one, other = SharedRate(1.0, tmp_path, Watch()), SharedRate(1.0, tmp_path, watch)
    one.wait("hal.science")
    other.wait("hal.science")
    one.pause(60, "hal.science")
    other.wait("hal.science")
    other.wait("elsewhere.org")
    assert [round(seconds) for seconds in watch.slept if seconds > 0.01] == [1, 60, 1]


def test_a_site_that_keeps_failing_is_left_alone_by_all_processes(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("status:500", "/", times=999)]
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 21)])
    many = {"runner": "processes", "workers": 1, "give_up": 3, "attempts": 1}
    with pytest.raises(ServiceError, match=r"failed for 3 files in a row, at last with: status 500"):
        download(records, tmp_path / "pdf", GENTLE.model_copy(update=many))
    assert len(hal.seen) < 20
    hal.faults = []
    assert download(records, tmp_path / "pdf", GENTLE).counts["files"] == 18


def test_a_jumping_clock_changes_nothing(hal: HalStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It jumps by years between any two looks at it; the pace is kept by another one."""
    records = keep(tmp_path / "records", [record(hal, place) for place in range(1, 7)])
    download(records, tmp_path / "calm", GENTLE)
    truth, jumps = time.time(), iter(range(1, 1_000_000))
    monkeypatch.setattr(time, "time", lambda: truth + (-1) ** next(jumps) * 3e8)
    hal.seen.clear()
    download(records, tmp_path / "jumped", GENTLE.model_copy(update={"interval": 0.05}))
    assert content(tmp_path / "jumped") == content(tmp_path / "calm")
    assert min(later.time - earlier.time for earlier, later in pairwise(hal.seen)) > 0.03


# --- names ---


@given(st.text(st.characters(), max_size=300))
def test_no_id_leads_out_of_the_folder(halid: str) -> None:
    name = pdf_name(halid)
    assert Path(name).name == name
    assert len(name.encode()) < 255
    assert not name.startswith(".")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-~.")


@given(st.sets(st.text("aA./\\~é\x00-1", min_size=1, max_size=6), min_size=2, max_size=40))
def test_two_ids_never_share_a_name_even_where_case_does_not_count(ids: set[str]) -> None:
    assert len({pdf_name(halid).lower() for halid in ids}) == len(ids)


@pytest.mark.parametrize("halid", ["../../escaped", "/etc/cron.d/x", "a\x00b", "..", "CON", "x" * 500, "é" * 200])
def test_a_hostile_id_stays_in_the_folder(hal: HalStandIn, tmp_path: Path, halid: str) -> None:
    entry = fetch(hal, tmp_path, halid=halid)
    assert entry["reason"] == ""
    assert (tmp_path / "pdf" / entry["file"]).read_bytes() == PDF
    assert {path.name for path in tmp_path.iterdir()} == {"records", "pdf"}


def test_the_stand_ins_files_are_where_its_records_say(hal: HalStandIn) -> None:
    listed = {url.removeprefix(HOME) for doc in hal.archive.docs for url in doc.get("files_s", ())}
    assert listed == hal.archive.files.keys()
