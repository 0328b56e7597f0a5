"""From HAL's search API to records: what is asked, what is kept, and what a misbehaving server can do."""

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idiograph.errors import ArtifactError, IdiographError, InputError, ServiceError, SpecError
from idiograph.hal import query
from idiograph.hal.harvest import convert_documents, harvest, refuse_private_redirect
from idiograph.hal.licence import OPEN, chosen_licences, licence_kind
from idiograph.hal.metadata import MAX_AUTHORS, Unfit, person_number, readable_header, to_record
from idiograph.hal.ratelimit import SiteRate, retry_after, site, user_agent
from idiograph.hal.records import NOBODY, read_records, to_line
from idiograph.recipe import HarvestRecipe
from tests.standin.archive import Archive, make_archive
from tests.standin.hal import HalFault, HalStandIn

DEPOSITS = 60


@pytest.fixture(scope="module")
def deposits() -> Archive:
    return make_archive(DEPOSITS)


@pytest.fixture
def hal(deposits: Archive) -> Iterator[HalStandIn]:
    """A server whose archive a test may change."""
    with HalStandIn(Archive([dict(one) for one in deposits.docs], dict(deposits.files))) as server:
        yield server


@pytest.fixture
def real(shared: Path) -> dict[str, Any]:
    path = shared / "fixtures" / "hal" / "hal_api_doc_example.json"
    return json.loads(path.read_text(encoding="utf-8"))["response"]["docs"][0]


def asking(hal: HalStandIn, **changes: Any) -> HarvestRecipe:
    return HarvestRecipe(**{"server": hal.url, "interval": 0, "backoff": 0, "rows": 10, "licence": "any", **changes})


def found(folder: Path) -> list[str]:
    return [record.halid for record in read_records(folder)]


def with_files(hal: HalStandIn) -> list[dict[str, Any]]:
    return [doc for doc in hal.archive.docs if doc["submitType_s"] == "file"]


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


def doc(**changes: Any) -> dict[str, Any]:
    """A deposit by an identified author, an unregistered one and an editor."""
    plain = {
        "docid": "12",
        "halId_s": "hal-00000012",
        "title_s": ["On things"],
        "authFullName_s": ["Ada Abadie", "Bruno Besson", "Carla Castel"],
        "authQuality_s": ["aut", "crp", "edt"],
        "authIdFormPerson_s": ["501-77", "502-0", "503-99"],
    }
    return {**plain, **changes}


def tei(*authors: str, licence: str = "", files: str = "") -> str:
    return (
        '<TEI xmlns="http://www.tei-c.org/ns/1.0"><text><body><listBibl><biblFull>'
        f"<titleStmt>{''.join(authors)}</titleStmt><editionStmt><edition type='current'>{files}</edition></editionStmt>"
        f"<publicationStmt><availability><licence target='{licence}'/></availability></publicationStmt>"
        "</biblFull></listBibl></body></text></TEI>"
    )


def tei_author(name: str, number: str, orcid: str = "", role: str = "aut") -> str:
    idno = f"<idno type='ORCID'>https://orcid.org/{orcid}</idno>" if orcid else ""
    person = f"<persName><surname>{name}</surname></persName><email type='md5'>7de56c63</email>"
    return f"<author role='{role}'>{person}<idno type='halauthorid'>{number}</idno>{idno}</author>"


# --- a document becomes a record ---


def test_a_real_answer_becomes_a_record(real: dict[str, Any]) -> None:
    record = to_record(real)
    assert (record.halid, record.version, record.lang, record.year) == ("hal-01956501", 6, "en", 2018)
    assert (record.url, record.doctype) == ("https://hal.science/hal-01956501/document", "REPORT")
    assert [(one.name, one.halauthorid, one.affiliations) for one in record.authors] == [
        ("Martin Monperrus", "537", ("366312",))
    ]
    assert record.identified
    assert record.complete


def test_real_records_have_the_fields_that_we_write(shared: Path) -> None:
    path = shared / "fixtures" / "hal" / "hal_metadata_records.json"
    for published in json.loads(path.read_text(encoding="utf-8")):
        ours = json.loads(to_line(to_record(doc())))
        assert published.keys() <= ours.keys()
        assert {"name", "halauthorid", "affiliations"} <= ours["authors"][0].keys() & published["authors"][0].keys()


def test_authors_and_corresponding_authors_are_kept_and_editors_are_not() -> None:
    assert [one.name for one in to_record(doc()).authors] == ["Ada Abadie", "Bruno Besson"]


def test_the_papers_roles_leave_corresponding_authors_out() -> None:
    assert [one.name for one in to_record(doc(), roles=("aut",)).authors] == ["Ada Abadie"]


def test_one_unregistered_author_makes_a_record_unidentified() -> None:
    record = to_record(doc())
    assert not record.identified
    assert [one.author.id for one in record.authors] == ["77", None]


def test_an_orcid_stays_with_its_author() -> None:
    """HAL's array of ORCIDs has one entry here, and it is not the first author's."""
    orcid = "0000-0003-3505-3383"
    text = tei(tei_author("Abadie", "501-77"), tei_author("Besson", "502-0", orcid))
    record = to_record(doc(authORCIDIdExt_s=[orcid], label_xml=text))
    assert [one.orcid for one in record.authors] == ["", orcid]


def test_an_orcid_that_two_could_claim_goes_to_neither() -> None:
    text = tei(tei_author("Abadie", "501-77"), tei_author("Abadie", "501-77", "0000-0003-3505-3383"))
    assert [one.orcid for one in to_record(doc(label_xml=text)).authors] == ["", ""]


def test_an_orcid_without_its_author_in_the_tei_is_not_guessed() -> None:
    assert [one.orcid for one in to_record(doc(authORCIDIdExt_s=["0000-0003-3505-3383"])).authors] == ["", ""]


def test_arrays_of_different_length_are_not_zipped() -> None:
    record = to_record(doc(authIdFormPerson_s=["502-88"]))
    assert [one.halauthorid for one in record.authors] == ["0", "0", "0"]
    assert not record.complete


def test_the_tei_stands_in_for_arrays_of_different_length() -> None:
    text = tei(tei_author("Abadie", "501-77"), tei_author("Besson", "502-88", role="crp"))
    record = to_record(doc(authIdFormPerson_s=["502-88"], label_xml=text))
    assert [(one.name, one.halauthorid) for one in record.authors] == [("Abadie", "77"), ("Besson", "88")]
    assert record.complete


def test_a_gap_in_an_array_does_not_shift_the_others() -> None:
    record = to_record(doc(authIdFormPerson_s=["501-77", None, "503-99"]))
    assert [one.halauthorid for one in record.authors] == ["0", "0", "0"]


def test_the_licence_of_the_metadata_is_not_the_deposits() -> None:
    made = make_archive(40)
    bare = next(one for one in made.docs if "licence_s" not in one)
    assert "publicdomain/zero" in bare["label_xml"]
    assert to_record(bare).licence == ""


@pytest.mark.parametrize(
    "value", ["https://creativecommons.org/licenses/by/4.0/", ["https://creativecommons.org/licenses/by/4.0/"]]
)
def test_a_licence_may_be_a_text_or_a_list(value: Any) -> None:
    assert licence_kind(to_record(doc(licence_s=value)).licence) == "cc-by"


def test_a_licence_that_only_the_tei_has_is_found() -> None:
    text = tei(tei_author("Abadie", "501-77"), licence="http://creativecommons.org/licenses/by-sa/")
    assert licence_kind(to_record(doc(label_xml=text)).licence) == "cc-by-sa"


def test_the_embargo_and_the_kind_come_from_the_main_pdf() -> None:
    files = (
        "<ref type='file' target='https://hal.science/x/document'><date notBefore='2020-01-01'/></ref>"
        "<ref type='file' subtype='annex' n='2' target='https://hal.science/x/b.pdf'><date notBefore='2021-01-01'/></ref>"
        "<ref type='file' subtype='author' n='1' target='https://hal.science/x/a.pdf'><date notBefore='2031-05-01'/></ref>"
    )
    record = to_record(doc(label_xml=tei(tei_author("Abadie", "501-77"), files=files)))
    assert (record.url, record.kind, record.embargo) == ("https://hal.science/x/a.pdf", "author", "2031-05-01")


def test_a_pdf_without_its_own_date_is_held_as_long_as_any_other_file() -> None:
    files = (
        "<ref type='file' target='https://hal.science/x/document'><date notBefore='2031-01-01'/></ref>"
        "<ref type='file' subtype='author' n='1' target='https://hal.science/x/a.pdf'/>"
    )
    assert to_record(doc(label_xml=tei(tei_author("Abadie", "501-77"), files=files))).embargo == "2031-01-01"


def test_files_of_older_versions_are_not_taken() -> None:
    old = "<ref type='file' subtype='author' n='1' target='https://hal.science/x/v1.pdf'/></edition><edition type='current'>"
    new = "<ref type='file' subtype='author' n='1' target='https://hal.science/x/v2.pdf'/>"
    text = tei(tei_author("Abadie", "501-77"), files=old + new).replace("<edition type='current'>", "<edition>", 1)
    assert to_record(doc(label_xml=text)).url == "https://hal.science/x/v2.pdf"


def test_only_the_most_special_domains_are_kept_and_the_primary_comes_first() -> None:
    codes = ["spi", "spi.acou", "phys", "phys.meca", "phys.meca.acou"]
    record = to_record(doc(domainAllCode_s=codes, primaryDomain_s="phys.meca.acou"))
    assert record.domain == ("phys.meca.acou", "spi.acou")


def test_entities_and_mail_addresses_are_cleaned_from_titles_and_names() -> None:
    names = ["Ada &amp; Abadie", "bruno.besson@example.org Besson", "C"]
    record = to_record(doc(title_s=["A &#x27E8;b&#x27E9; c, ada@example.org"], authFullName_s=names))
    assert record.title == "A ⟨b⟩ c,"
    assert [one.name for one in record.authors] == ["Ada & Abadie", "Besson"]


@pytest.mark.parametrize(
    ("given", "year"), [("2018", 2018), ("2018-10", 2018), ("2015-06-13", 2015), ("soon", None), (None, None)]
)
def test_a_year_is_read_or_left_open(given: Any, year: int | None) -> None:
    assert to_record(doc(producedDate_s=given)).year == year


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"halId_s": "../../etc/passwd1"}, "not a HAL id"),
        ({"halId_s": "hal-1/../../x1"}, "not a HAL id"),
        ({"halId_s": "hal-\x001"}, "not a HAL id"),
        ({"halId_s": None}, "no HAL id"),
        ({"authFullName_s": ["Ada"] * 100_000}, f"more than {MAX_AUTHORS} authors"),
        ({"authFullName_s": []}, "no author"),
        ({"authQuality_s": ["edt", "edt", "trl"]}, "no author"),
    ],
)
def test_a_hostile_document_is_dropped_with_a_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unfit, match=reason):
        to_record(doc(**changes))


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("<TEI>", "label_xml is not XML"),
        (7, "label_xml is not text"),
        ('<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><x>&b;</x>', "label_xml declares entities"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', "label_xml declares entities"),
    ],
)
def test_a_tei_that_cannot_be_read_costs_what_it_alone_says_and_not_the_record(broken: Any, reason: str) -> None:
    assert to_record(doc(label_xml=broken)) == to_record({k: v for k, v in doc().items() if k != "label_xml"})
    assert readable_header({"label_xml": broken})[1] == reason


def test_a_tei_of_a_million_levels_does_no_harm() -> None:
    deep = "<x>" * 1_000_000 + "</x>" * 1_000_000
    assert to_record(doc(label_xml=deep)).halid == "hal-00000012"


@pytest.mark.parametrize(
    "changes",
    [
        {"title_s": ["x" * 1_000_000 + " @"]},
        {"title_s": ["&" * 1_000_000]},
        {"domainAllCode_s": ["." * 1_000_000, "a." * 500_000]},
        {"authIdHasPrimaryStructure_fs": ["501-77_FacetSep_A_JoinSep_1_FacetSep_B"] * 200_000},
        {"label_xml": tei(tei_author("Abadie", "501-77", "0" * 1_000_000))},
        {"producedDate_s": "9" * 1_000_000},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_huge_field_costs_no_more_than_its_length(changes: dict[str, Any]) -> None:
    start = time.process_time()
    assert to_record(doc(**changes)).halid == "hal-00000012"
    assert time.process_time() - start < 10


def test_half_a_surrogate_can_be_written() -> None:
    fields = [key for key in query.FIELDS if key.endswith(("_s", "_tdate")) and key != "halId_s"]
    for field in fields:
        assert to_line(to_record(doc(**{field: ["a \ud800 b"]}))).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from([*doc(), *query.FIELDS, "label_xml"]), JSON))
def test_no_document_breaks_the_parser(junk: dict[str, Any]) -> None:
    """Either a record that can be written, or a reason."""
    with contextlib.suppress(Unfit):
        assert to_line(to_record(doc(**junk))).encode()


# --- licences ---


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("http://creativecommons.org/licenses/by/", "cc-by"),
        ("https://creativecommons.org/licenses/by/4.0/", "cc-by"),
        ("https://creativecommons.org/licenses/by/4.0", "cc-by"),
        ("HTTPS://www.CreativeCommons.org/licenses/by-sa/3.0/fr/", "cc-by-sa"),
        ("http://creativecommons.org/licenses/by-nc-nd/", "cc-by-nc-nd"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "cc0"),
        ("http://hal.archives-ouvertes.fr/licences/etalab/", "etalab"),
        ("http://hal.archives-ouvertes.fr/licences/publicDomain/", "public-domain"),
        ("http://hal.archives-ouvertes.fr/licences/copyright/", "copyright"),
        ("https://example.org/mine", "other"),
        ("", ""),
    ],
)
def test_both_spellings_of_a_licence_are_one_kind(address: str, kind: str) -> None:
    assert licence_kind(address) == kind


@pytest.mark.parametrize(
    ("choice", "kinds"),
    [
        ("by,by-sa,cc0", {"cc-by", "cc-by-sa", "cc0"}),
        ("CC BY 4.0, cc0-1.0", {"cc-by", "cc0"}),
        ("http://creativecommons.org/licenses/by/, https://creativecommons.org/licenses/by-sa/4.0/", {"cc-by", "cc-by-sa"}),
        ("open,by-nc", {*OPEN, "cc-by-nc"}),
    ],
)  # fmt: skip
def test_licences_may_be_chosen_by_short_names_full_names_and_addresses(choice: str, kinds: set[str]) -> None:
    assert chosen_licences(choice) == kinds


def test_the_short_names_of_the_help_choose_what_the_long_ones_do(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "short", asking(hal, licence="by,by-sa,cc0"))
    harvest(tmp_path / "long", asking(hal, licence="cc-by,cc-by-sa,cc0"))
    assert found(tmp_path / "short") == found(tmp_path / "long") != []


def test_a_record_is_stamped_with_its_change_or_as_published_with_the_moment_of_access(hal, tmp_path: Path) -> None:
    harvest(tmp_path / "ours", asking(hal))
    harvest(tmp_path / "published", asking(hal, timestamp="accessed"))
    ours, theirs = ({r.timestamp for r in read_records(tmp_path / name)} for name in ("ours", "published"))
    assert len(ours) > 1
    assert {len(stamp) for stamp in theirs} == {len("2024/06/01 20:41:20")}
    assert not ours & theirs


def test_open_licences_alone_are_harvested_by_default(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "out", asking(hal, licence=HarvestRecipe().licence))
    kinds = {licence_kind(record.licence) for record in read_records(tmp_path / "out")}
    assert kinds <= OPEN
    assert len(found(tmp_path / "out")) == sum(
        licence_kind(one.get("licence_s", "")) in OPEN for one in with_files(hal)
    )


def test_a_server_that_ignores_the_licence_filter_is_not_believed(hal: HalStandIn, tmp_path: Path) -> None:
    for one in hal.archive.docs:
        one["licence_s"] = [
            *([one["licence_s"]] if "licence_s" in one else []),
            "http://creativecommons.org/licenses/by/",
        ]
    hal.archive.docs[0]["licence_s"] = ["https://example.org/mine", "http://creativecommons.org/licenses/by/"]
    manifest = harvest(tmp_path / "out", asking(hal, licence="cc-by"))
    assert hal.archive.docs[0]["halId_s"] not in found(tmp_path / "out")
    assert manifest.dropped["licence not chosen"] > 0


# --- what is asked ---


def test_every_deposit_with_a_file_is_harvested_once(hal: HalStandIn, tmp_path: Path) -> None:
    manifest = harvest(tmp_path / "out", asking(hal))
    assert found(tmp_path / "out") == [one["halId_s"] for one in with_files(hal)]
    assert manifest.counts["records"] == len(with_files(hal))


def test_pages_have_500_rows_but_200_with_the_tei(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "json", asking(hal, rows=HarvestRecipe().rows, tei=False))
    harvest(tmp_path / "tei", asking(hal, rows=HarvestRecipe().rows))
    assert {seen.query["rows"][0] for seen in hal.searches()} == {"500", "200"}


@pytest.mark.parametrize(
    ("changes", "keep"),
    [
        ({"lang": ("fr",)}, lambda one: one["language_s"] == ["fr"]),
        ({"lang": ("fr", "en")}, lambda one: True),
        ({"domain": ("phys", "shs.langue")}, lambda one: one["level0_domain_s"][0] in ("phys", "shs")),
        ({"doctype": ("these", "ART")}, lambda one: one["docType_s"] in ("THESE", "ART")),
        ({"licence": "cc0,etalab"}, lambda one: licence_kind(one.get("licence_s", "")) in ("cc0", "etalab")),
        ({"query": "shape"}, lambda one: "shape" in one["title_s"][0]),
        ({"since": "2024-01-02"}, lambda one: one["dateLastIndexed_tdate"] >= "2024-01-02"),
        ({"until": "2024-01-01"}, lambda one: one["dateLastIndexed_tdate"] < "2024-01-02"),
        (
            {"since": "2024-01-01T05:00:00+02:00", "until": "2024-01-01T05:00:00Z", "date": "submitted"},
            lambda one: "2024-01-01T03" <= one["dateLastIndexed_tdate"] < "2024-01-01T05",
        ),
    ],
)
def test_filters_let_the_right_ones_through(
    hal: HalStandIn, tmp_path: Path, changes: dict[str, Any], keep: Any
) -> None:
    harvest(tmp_path / "out", asking(hal, **changes))
    assert found(tmp_path / "out") == [one["halId_s"] for one in with_files(hal) if keep(one)]


def test_what_is_not_open_access_is_not_harvested(hal: HalStandIn, tmp_path: Path) -> None:
    hal.archive.docs[0]["openAccess_bool"] = False
    harvest(tmp_path / "out", asking(hal))
    assert found(tmp_path / "out") == [one["halId_s"] for one in with_files(hal)[1:]]


def test_notices_without_a_file_can_be_harvested_too(hal: HalStandIn, tmp_path: Path) -> None:
    for one in hal.archive.docs:
        one["openAccess_bool"] = True
    harvest(tmp_path / "files", asking(hal))
    harvest(tmp_path / "all", asking(hal, files=False))
    assert len(found(tmp_path / "files")) == len(with_files(hal)) < DEPOSITS
    assert len(found(tmp_path / "all")) == DEPOSITS


@pytest.mark.parametrize(("portal", "path"), [("tel", "/search/tel/"), ("FRANCE-GRILLES", "/search/FRANCE-GRILLES/")])
def test_a_portal_or_collection_is_asked_at_its_own_address(
    hal: HalStandIn, tmp_path: Path, portal: str, path: str
) -> None:
    harvest(tmp_path / "out", asking(hal, portal=portal))
    assert {seen.path for seen in hal.seen} == {path}


def test_a_limit_is_kept_to_the_record(hal: HalStandIn, tmp_path: Path) -> None:
    manifest = harvest(tmp_path / "out", asking(hal, limit=13))
    assert found(tmp_path / "out") == [one["halId_s"] for one in with_files(hal)[:13]]
    assert manifest.counts["limited"]
    assert len(hal.searches()) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"portal": "nowhere"}, "HAL has no portal or collection 'nowhere'"),
        ({"portal": "a/b"}, "'a/b' cannot be a portal"),
        ({"query": 'title_t:"half'}, "HAL refuses the query 'title_t:\"half'.*Cannot parse"),
        ({"since": "yesterday"}, "--since 'yesterday' is not a date; write it like 2024-05-31"),
        ({"since": "2024-02-01", "until": "2024-01-01"}, "is not before --until 2024-01-01"),
        ({"lang": ("english",)}, "'english' is not a language such as 'en'"),
        ({"domain": ("ifo",)}, r"unknown domain 'ifo'.*did you mean 'info'"),
        ({"licence": "cc-bye"}, r"unknown licence 'cc-bye'.*did you mean 'cc-by'"),
        ({"since": "last"}, "has no finished harvest to go on from"),
    ],
)
def test_a_wrong_question_is_refused_in_words(
    hal: HalStandIn, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises((InputError, SpecError, ArtifactError), match=words):
        harvest(tmp_path / "out", asking(hal, **changes))
    assert len(hal.seen) <= 2


def test_e_mails_are_nowhere_in_the_output(hal: HalStandIn, tmp_path: Path) -> None:
    assert "example.org" in hal.archive.docs[0]["label_xml"]
    harvest(tmp_path / "out", asking(hal))
    for text in shards(tmp_path / "out").values():
        assert b"example.org" not in text
        assert b"7de56c63" not in text
        assert b"@" not in text


# --- politeness ---


def test_the_defaults_are_one_request_a_second() -> None:
    assert HarvestRecipe().interval == 1.0


def test_requests_keep_their_distance_on_one_connection(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "out", asking(hal, interval=0.05, contact="ada@example.org"))
    times = [seen.time for seen in hal.seen]
    assert times[-1] - times[0] > 0.045 * (len(times) - 1)  # one gap may look shorter where the server is late
    assert len(times) > 1
    assert len({seen.peer for seen in hal.seen}) == 1
    assert {seen.headers["User-Agent"] for seen in hal.seen} == {user_agent("ada@example.org")}


def test_the_agent_says_who_and_whom_to_write_to() -> None:
    assert user_agent("ada@example.org").startswith("idiograph/")
    assert user_agent("ada@example.org").endswith("(+https://github.com/idiograph/idiograph; ada@example.org)")


def test_a_pace_is_kept_per_site_and_a_site_can_be_put_on_hold() -> None:
    naps: list[float] = []
    pace = SiteRate(2.0, sleep=naps.append, clock=lambda: 100.0)
    for where in ("a", "a", "b", "a"):
        pace.wait(where)
    pace.pause(30.0, "b")
    pace.wait("b")
    assert naps == [2.0, 4.0, 30.0]


def test_retry_after_is_understood_as_seconds_and_as_a_date_and_has_an_end() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after("7", lambda: now) == 7
    assert retry_after("Thu, 01 Jan 2026 00:01:00 GMT", lambda: now) == 60
    assert retry_after("Wed, 31 Dec 2025 00:00:00 GMT", lambda: now) == 0
    assert retry_after("99999999", lambda: now) == 300


def test_subdomains_are_one_site_and_numeric_hosts_are_not() -> None:
    assert site("https://shs.hal.science/a") == site("https://HAL.science:443/b") == "hal.science"
    assert site("http://127.0.0.1:80/") != site("http://127.0.0.2:80/")


# --- rounds ---


def test_a_finished_harvest_is_not_asked_for_again(hal: HalStandIn, tmp_path: Path) -> None:
    first = harvest(tmp_path / "out", asking(hal))
    asked = len(hal.seen)
    assert harvest(tmp_path / "out", asking(hal)) == first
    assert len(hal.seen) == asked


def newer(old: dict[str, Any], docid: int, when: datetime) -> dict[str, Any]:
    """The next version of a deposit, as HAL shows it."""
    stamp = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    version = old["version_i"] + 1
    dates = {"dateLastIndexed_tdate": stamp, "modifiedDate_tdate": stamp}
    return {**old, **dates, "docid": str(docid), "version_i": version, "title_s": [f"Version {version}"]}


def test_since_last_fetches_what_is_new_and_what_has_changed(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "out", asking(hal))
    asked, before = len(hal.seen), found(tmp_path / "out")
    changed = newer(hal.archive.docs[3], 9_000_000, hal.now + timedelta(hours=2))
    added = {**newer(hal.archive.docs[4], 9_000_001, hal.now + timedelta(hours=2)), "halId_s": "hal-99999999"}
    hal.archive.put(changed)
    hal.archive.put(added)
    hal.now += timedelta(days=1)
    manifest = harvest(tmp_path / "out", asking(hal, since="last"))
    kept = {record.halid: record for record in read_records(tmp_path / "out")}
    assert len(hal.seen) - asked == 2
    assert kept.keys() == {*before, "hal-99999999"}
    assert (kept[changed["halId_s"]].version, kept[changed["halId_s"]].title) == (2, "Version 2")
    assert manifest.counts["rounds"] == 2
    assert manifest.inputs["until"] == "2026-01-02T00:00:00Z"


def test_since_last_can_follow_itself(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "out", asking(hal))
    for day in range(1, 4):
        hal.now += timedelta(days=1)
        hal.archive.put({**newer(hal.archive.docs[0], 9_000_000 + day, hal.now), "halId_s": f"hal-9900000{day}"})
        harvest(tmp_path / "out", asking(hal, since="last"))
    assert found(tmp_path / "out")[-3:] == ["hal-99000001", "hal-99000002", "hal-99000003"]
    assert len(found(tmp_path / "out")) == len(with_files(hal))


def test_a_change_that_the_search_showed_late_is_not_lost(hal: HalStandIn, tmp_path: Path) -> None:
    """Stamped half an hour before the first harvest began, but not to be found then."""
    harvest(tmp_path / "out", asking(hal))
    hal.archive.put(newer(hal.archive.docs[3], 9_000_000, hal.now - timedelta(minutes=30)))
    harvest(tmp_path / "out", asking(hal, since="last"))
    assert "Version 2" in [record.title for record in read_records(tmp_path / "out")]


def test_a_window_that_ends_in_the_future_is_gone_on_from_today(hal: HalStandIn, tmp_path: Path) -> None:
    assert harvest(tmp_path / "out", asking(hal, until="2099-01-01")).inputs["until"] == "2026-01-01T00:00:00Z"


def test_an_old_round_is_left_as_it_was(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "out", asking(hal))
    before = shards(tmp_path / "out")
    hal.archive.put(newer(hal.archive.docs[3], 9_000_000, hal.now + timedelta(hours=2)))
    harvest(tmp_path / "out", asking(hal, since="last"))
    after = shards(tmp_path / "out")
    assert {name: data for name, data in after.items() if name.startswith("001-")} == {
        name: data for name, data in before.items() if name.startswith("001-")
    }
    assert [name for name in after if name.startswith("002-")] == ["002-000001.jsonl"]


def test_a_folder_holds_one_query(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "out", asking(hal))
    with pytest.raises(
        ArtifactError, match=r"holds a finished harvest with lang = \[\], not \['fr'\]; add what is new"
    ):
        harvest(tmp_path / "out", asking(hal, lang=("fr",)))
    with pytest.raises(ArtifactError, match=r"was harvested with lang = \[\], not \['fr'\]"):
        harvest(tmp_path / "out", asking(hal, lang=("fr",), since="last"))


def test_a_limited_harvest_cannot_be_gone_on_from(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "out", asking(hal, limit=5))
    with pytest.raises(ArtifactError, match="limit = 5, which left a gap"):
        harvest(tmp_path / "out", asking(hal, since="last"))


def test_a_folder_with_other_things_in_it_is_refused(hal: HalStandIn, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"not a finished folder of records"):
        harvest(tmp_path, asking(hal))


def test_a_record_that_changes_while_we_page_is_kept_once_and_new(hal: HalStandIn, tmp_path: Path) -> None:
    old = hal.archive.docs[2]

    def change(_: object) -> None:
        if len(hal.seen) == 3:
            hal.archive.put(newer(old, 9_000_000, hal.now))

    hal.before = change
    manifest = harvest(tmp_path / "out", asking(hal))
    kept = [record for record in read_records(tmp_path / "out") if record.halid == old["halId_s"]]
    assert [record.version for record in kept] == [2]
    assert manifest.counts["records"] == len(with_files(hal))


def test_a_record_that_vanishes_while_we_page_leaves_no_gap(hal: HalStandIn, tmp_path: Path) -> None:
    def vanish(_: object) -> None:
        if len(hal.seen) == 3:
            hal.archive.docs = hal.archive.docs[5:]

    ids = [one["halId_s"] for one in with_files(hal)]
    hal.before = vanish
    harvest(tmp_path / "out", asking(hal))
    assert found(tmp_path / "out") == ids


# --- a server that misbehaves ---

PASSING = [
    HalFault("status:429", after=1, times=2),
    HalFault("status:429", headers={"Retry-After": "0"}),
    HalFault("status:500", times=3),
    HalFault("status:503", after=2),
    HalFault("reset", times=2),
    HalFault("reset", after=3),
    HalFault("hang:0.6", after=1),
    HalFault("html"),
    HalFault("html", after=2, times=2),
    HalFault("junk", after=1),
    HalFault("deep", after=1),
    HalFault("error"),
    HalFault("error", after=1),
    HalFault("stuck", after=1),
    HalFault("back", after=2),
    HalFault("empty", after=1),
    HalFault("empty", after=5),
    HalFault("cut", after=1),
    HalFault("open", after=2),
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: f"{fault.kind} after {fault.after}")
def test_a_failure_that_passes_changes_nothing(hal: HalStandIn, tmp_path: Path, fault: HalFault) -> None:
    harvest(tmp_path / "calm", asking(hal))
    hal.faults = [fault]
    harvest(tmp_path / "out", asking(hal, timeout=0.3))
    assert fault.times == 0
    assert shards(tmp_path / "out") == shards(tmp_path / "calm")


def test_an_answer_that_never_ends_is_given_up(hal: HalStandIn, tmp_path: Path) -> None:
    """Its bytes come often enough for every timeout."""
    hal.faults = [HalFault("drip:0.01")]
    with pytest.raises(ServiceError, match="an answer that does not end"):
        harvest(tmp_path / "out", asking(hal, timeout=5, deadline=0.2, attempts=1))


def test_a_wait_that_the_server_asks_for_is_kept(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("status:429", headers={"Retry-After": "1"})]
    harvest(tmp_path / "out", asking(hal))
    assert hal.seen[1].time - hal.seen[0].time >= 1


@pytest.mark.parametrize("kind", ["status:503", "html", "junk", "reset", "stuck", "cut", "error"])
def test_a_failure_that_stays_is_told_and_gone_on_from(hal: HalStandIn, tmp_path: Path, kind: str) -> None:
    harvest(tmp_path / "calm", asking(hal))
    asked = len(hal.seen)
    hal.faults = [HalFault(kind, after=2, times=4)]
    with pytest.raises(ServiceError, match=r"failed 4 times, at last with: .*run the same command again"):
        harvest(tmp_path / "out", asking(hal, attempts=4))
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert len(hal.seen) - asked == 6
    harvest(tmp_path / "out", asking(hal, attempts=4))
    assert hal.seen[asked + 6].query["cursorMark"] == hal.seen[asked + 2].query["cursorMark"]
    assert shards(tmp_path / "out") == shards(tmp_path / "calm")


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with HalStandIn(Archive()) as gone:
        pass
    with pytest.raises(ServiceError, match=r"failed 2 times, at last with: .*refused"):
        harvest(tmp_path / "out", asking(gone, attempts=2))


def test_a_refusal_is_not_asked_twice(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("status:403", times=9)]
    with pytest.raises(ServiceError, match="answered with status 403; check --server"):
        harvest(tmp_path / "out", asking(hal))
    assert len(hal.seen) == 1


def test_bytes_that_are_not_utf8_become_replacement_characters(hal: HalStandIn, tmp_path: Path) -> None:
    hal.faults = [HalFault("latin")]
    harvest(tmp_path / "out", asking(hal))
    assert "th\N{REPLACEMENT CHARACTER}ngs" in next(iter(read_records(tmp_path / "out"))).title


def test_hostile_records_are_counted_and_the_harvest_goes_on(hal: HalStandIn, tmp_path: Path) -> None:
    good = [one["halId_s"] for one in with_files(hal)[2:]]
    docs = with_files(hal)
    docs[0]["halId_s"] = "../../etc/passwd"
    docs[1]["authFullName_s"] = [f"Author {place}" for place in range(100_000)]
    docs[1]["label_xml"] = tei(*(tei_author(f"Author {place}", f"{place}-{place}") for place in range(100_000)))
    docs[2]["label_xml"] = '<!DOCTYPE x [<!ENTITY a "a">]><x>&a;</x>'
    manifest = harvest(tmp_path / "out", asking(hal))
    assert found(tmp_path / "out") == good
    assert manifest.dropped == {
        "not a HAL id": 1,
        f"more than {MAX_AUTHORS} authors": 1,
    }
    assert manifest.counts["unread_tei"] == 1
    ledger = (tmp_path / "out" / "ledger.jsonl").read_text(encoding="utf-8")
    assert '["../../etc/passwd", "not a HAL id"]' in ledger


def test_answers_that_are_too_long_are_refused(
    hal: HalStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("idiograph.hal.harvest.MAX_ANSWER", 1 << 20)
    hal.archive.docs[0]["title_s"] = ["x" * (2 << 20)]
    with pytest.raises(ServiceError, match="sent more than 1 MB in one answer"):
        harvest(tmp_path / "out", asking(hal))


def test_a_jumping_clock_changes_nothing(hal: HalStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours jumps by years between any two looks at it, the server's goes back a year between pages."""
    harvest(tmp_path / "calm", asking(hal))
    truth = time.time()
    jumps = iter(range(1, 1_000_000))
    monkeypatch.setattr(time, "time", lambda: truth + (-1) ** next(jumps) * 3e8)
    hal.before = lambda _: setattr(hal, "now", hal.now - timedelta(days=365))
    harvest(tmp_path / "out", asking(hal, interval=0.01))
    assert shards(tmp_path / "out") == shards(tmp_path / "calm")


def test_progress_ends_at_the_total(hal: HalStandIn, tmp_path: Path) -> None:
    steps: list[tuple[int, int | None, str]] = []
    harvest(tmp_path / "out", asking(hal), lambda *step: steps.append(step))
    total = len(with_files(hal))
    assert steps[-1] == (total, total, "records")


def test_records_that_were_tampered_with_are_pointed_at(hal: HalStandIn, tmp_path: Path) -> None:
    harvest(tmp_path / "out", asking(hal))
    (tmp_path / "out" / "001-000001.jsonl").write_text('{"halid": 1}\n', encoding="utf-8")
    with pytest.raises(
        IdiographError, match=r"001-000001.jsonl has 13 bytes and not [0-9,]+\); make it again: idiograph harvest"
    ):
        list(read_records(tmp_path / "out"))


def test_a_person_number_of_thousands_of_digits_is_a_number_all_the_same():
    assert person_number(f"12-{'7' * 5000}") == "7" * 5000
    assert person_number(f"12-{'0' * 5000}") == NOBODY


def test_a_damaged_plan_is_one_line(hal: HalStandIn, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".plan.json").write_text("{")
    with pytest.raises(ArtifactError, match=r"'.*\.plan\.json' is damaged .*harvest again"):
        harvest(tmp_path / "out", asking(hal))


def test_a_redirect_into_a_private_network_is_not_followed(hal: HalStandIn) -> None:
    request = httpx2.Request("GET", "http://169.254.169.254/latest")
    with pytest.raises(ServiceError, match="sends us to a private address \\(169.254.169.254"):
        refuse_private_redirect("api.archives-ouvertes.fr", request)
    refuse_private_redirect("169.254.169.254", request)  # whom the user has named


def test_an_address_in_a_record_is_kept_without_its_password(hal: HalStandIn) -> None:
    docs = [dict(doc) for doc in make_archive(2).docs]
    for doc in docs:
        doc["fileMain_s"], doc["files_s"] = "https://ada:secret@hal.science/x.pdf", []
        doc["uri_s"] = "https://ada:secret@hal.science/x"
        doc.pop("label_xml", None)
    records, *_ = convert_documents(docs, HarvestRecipe(licence="any"))
    assert records
    assert "secret" not in "".join(map(to_line, records))
