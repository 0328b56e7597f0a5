"""A record or a redirect leads us nowhere but into the open network, and says nothing of who asks there."""

import json
from pathlib import Path

import pytest

from idiograph.errors import ServiceError
from idiograph.hal.addresses import PrivateAddress, refuse_private
from idiograph.hal.download import download
from idiograph.hal.harvest import harvest
from idiograph.hal.ratelimit import Retries
from idiograph.hal.records import KIND, Person, Record, to_line
from idiograph.recipe import DownloadRecipe, HarvestRecipe
from idiograph.store import Manifest, seal
from tests.standin.archive import Archive, make_archive
from tests.standin.hal import HalFault, HalStandIn

PRIVATE = [
    "http://127.0.0.1/x",
    "http://127.1/x",
    "http://2130706433/x",
    "http://0.0.0.0/x",
    "http://10.1.2.3/x",
    "http://172.16.0.1/x",
    "http://192.168.1.1/x",
    "http://169.254.169.254/latest/meta-data",
    "http://100.64.0.1/x",
    "http://[::1]/x",
    "http://[fe80::1]/x",
    "http://[fd00::1]/x",
    "http://[::ffff:127.0.0.1]/x",
    "http://[64:ff9b::7f00:1]/x",
    "http://localhost:8070/x",
    "http://user:secret@127.0.0.1/x",
]


@pytest.mark.parametrize("url", PRIVATE)
def test_an_address_in_a_private_network_is_refused(url):
    with pytest.raises(PrivateAddress):
        refuse_private(url)


@pytest.mark.parametrize(
    "url", ["http://193.48.96.10/x", "https://[2606:4700:4700::1111]/x", "http://no.such.name.invalid/"]
)
def test_any_other_address_is_left_to_whoever_asks_there(url):
    refuse_private(url)


def keep(folder: Path, url: str) -> Path:
    folder.mkdir()
    licence = "https://creativecommons.org/licenses/by/4.0/"
    record = Record("hal-00000001", "en", "On things", ("info",), "", 2020, url, (Person("Ada"),), licence=licence)
    (folder / "001-000001.jsonl").write_text(to_line(record), encoding="utf-8")
    seal(folder, Manifest(KIND))
    return folder


def entry(folder: Path) -> dict[str, str]:
    return json.loads((folder / "ledger.jsonl").read_text(encoding="utf-8"))


@pytest.fixture
def hal():
    with HalStandIn(make_archive(3)) as server:
        yield server


def test_a_record_that_leads_to_this_machine_is_not_followed(hal, tmp_path):
    records = keep(tmp_path / "records", f"{hal.url}/hal-00000001/file/paper.pdf")
    download(records, tmp_path / "pdf", DownloadRecipe(interval=0, backoff=0))
    assert (entry(tmp_path / "pdf")["reason"], entry(tmp_path / "pdf")["detail"]) == ("private address", "127.0.0.1")
    assert hal.seen == []


def test_a_private_address_may_be_allowed(hal, tmp_path):
    records = keep(tmp_path / "records", f"{hal.url}/hal-00000001/file/paper.pdf")
    download(records, tmp_path / "pdf", DownloadRecipe(interval=0, backoff=0, allow_private=True))
    assert entry(tmp_path / "pdf")["reason"] == ""


def test_a_password_in_an_address_is_neither_kept_nor_sent(hal, tmp_path):
    url = f"{hal.url}/hal-00000001/file/paper.pdf".replace("//", "//ada:secret@")
    proxy = DownloadRecipe(interval=0, backoff=0, allow_private=True, contact="http://ada:secret@example.org")
    download(keep(tmp_path / "records", url), tmp_path / "pdf", proxy)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "pdf").rglob("*") if path.is_file())
    assert b"secret" not in kept
    assert entry(tmp_path / "pdf")["reason"] == ""


def test_recipes_are_stored_without_passwords():
    recipe = HarvestRecipe(server="https://ada:secret@api.example.org", proxy="http://bo:word@proxy:3128")
    assert recipe.as_stored()["server"] == "https://api.example.org"
    assert recipe.as_stored()["proxy"] == "http://proxy:3128"


def test_a_retry_says_what_failed_and_how_long_it_waits():
    lines, answers = [], iter([ServiceError("HTTP 503"), ServiceError("HTTP 503"), "fine"])

    def question():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    retries = Retries(5, 2.0, lines.append, sleep=lambda seconds: None)
    assert retries.ask("the archive", question, lambda error: 4.0) == "fine"
    assert lines == [
        "the archive did not answer: HTTP 503; waiting 4 s, try 2 of 5",
        "the archive did not answer: HTTP 503; waiting 4 s, try 3 of 5",
    ]


def test_what_is_not_worth_another_try_fails_at_once():
    with pytest.raises(ServiceError, match="no"):
        Retries(5, 2.0, sleep=lambda seconds: pytest.fail("it waited")).ask("x", failing, lambda error: False)


def failing():
    raise ServiceError("no")


def test_a_harvest_tells_why_it_waits(tmp_path):
    lines: list[str] = []
    archive = make_archive(3)
    with HalStandIn(Archive(archive.docs, dict(archive.files)), [HalFault("status:503")]) as server:
        harvest(tmp_path / "r", HarvestRecipe(server=server.url, interval=0, backoff=0), tell=lines.append)
    assert lines == ["the archive did not answer: HTTP 503; waiting 0 s, try 2 of 8"]
