"""One document of HAL's search API, as JSON with the TEI of `label_xml` in it → Record. Speaks to no server.

HAL gives authors as parallel arrays. Only `authFullName_s`, `authQuality_s` and `authIdFormPerson_s` have one entry per
author; arrays of ORCIDs or HAL names list only those who have one and are never read. ORCIDs come from the TEI, where
they stand inside their author. E-mails, hashed or not, are not read, and are cut from names and titles.
"""

import html
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

from idiograph.hal.records import NOBODY, Person, Record
from idiograph.types import field_of, hal_code

FIELDS = (
    "docid", "halId_s", "version_i", "uri_s", "fileMain_s", "files_s", "licence_s", "language_s", "docType_s",
    "domainAllCode_s", "primaryDomain_s", "producedDate_s", "producedDateY_i", "title_s", "modifiedDate_tdate",
    "submittedDate_tdate", "authFullName_s", "authQuality_s", "authIdFormPerson_s", "authIdHasPrimaryStructure_fs",
)  # fmt: skip
TEI = "label_xml"
ROLES = ("aut", "crp")  # authors and corresponding authors; not editors, translators, directors of a thesis
MAX_AUTHORS = 20_000  # the largest collaborations sign with about 5,000

ID = re.compile(r"[a-z][a-z0-9_-]{1,62}[0-9]")
# Lengths are bounded so that a megabyte of one letter costs no more than a megabyte of prose.
DOMAIN = re.compile(r"[a-z0-9.-]{1,64}")
EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,255}")
ORCID = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
JUNK = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+")


class Unfit(Exception):
    """A document that makes no record, and why."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a deposit as the TEI lists it."""

    url: str
    kind: str
    main: bool
    embargo: str


@dataclass(frozen=True, slots=True)
class Signature:
    """An author with the role and the `form-person` number under which they signed."""

    name: str
    role: str
    number: str
    affiliations: tuple[str, ...] = ()
    orcid: str = ""


@dataclass(frozen=True, slots=True)
class TeiHeader:
    """What only the TEI knows."""

    authors: tuple[Signature, ...] = ()
    files: tuple[File, ...] = ()
    licence: str = ""


def to_record(doc: Mapping[str, Any], roles: Sequence[str] = ROLES) -> Record:
    """The record of one document; `Unfit` says why there is none. A TEI that cannot be read is passed over."""
    return record_with_header(doc, readable_header(doc)[0], roles)


def readable_header(doc: Mapping[str, Any]) -> tuple[TeiHeader, str]:
    """What the TEI says, and why it says nothing if it cannot be read: the arrays beside it are whole all the same."""
    try:
        return (read_header(doc[TEI]) if doc.get(TEI) else TeiHeader()), ""
    except Unfit as error:
        return TeiHeader(), str(error)


def record_with_header(doc: Mapping[str, Any], header: TeiHeader, roles: Sequence[str] = ROLES) -> Record:
    """The record of one document with what its TEI says."""
    halid = first_text(doc.get("halId_s"))
    if not ID.fullmatch(halid):
        raise Unfit("no HAL id" if not halid else "not a HAL id")
    authors, complete = people(doc, header, roles)
    main = main_file(doc, header)
    return Record(
        halid=halid,
        lang=first_text(doc.get("language_s")).lower(),
        title=clean_name(first_text(doc.get("title_s"))),
        domain=domains(doc),
        timestamp=first_text(doc.get("modifiedDate_tdate")) or first_text(doc.get("submittedDate_tdate")),
        year=year_of(doc),
        url=main.url,
        authors=authors,
        licence=first_text(doc.get("licence_s")) or header.licence,
        doctype=first_text(doc.get("docType_s")),
        version=number_or(doc.get("version_i"), 1),
        identified=all(author.halauthorid != NOBODY for author in authors),
        complete=complete,
        embargo=main.embargo,
        kind=main.kind,
        uri=first_text(doc.get("uri_s")),
    )


def people(doc: Mapping[str, Any], header: TeiHeader, roles: Sequence[str]) -> tuple[tuple[Person, ...], bool]:
    """The authors in their order, and whether they are all there."""
    signed, aligned = signatures_of(doc, header)
    if len(signed) > MAX_AUTHORS:
        raise Unfit(f"more than {MAX_AUTHORS} authors")
    writers = [one for one in signed if one.role in roles]
    named = tuple(
        Person(one.name, person_number(one.number), one.affiliations, one.orcid) for one in writers if one.name
    )
    if not named:
        raise Unfit("no author")
    return named, aligned and len(named) == len(writers)


def signatures_of(doc: Mapping[str, Any], header: TeiHeader) -> tuple[Sequence[Signature], bool]:
    """Who signed, from the arrays if they are aligned, or else from the TEI, or else names without numbers."""
    names, roles, numbers = (column(doc.get(f"auth{part}_s")) for part in ("FullName", "Quality", "IdFormPerson"))
    if names and roles and numbers and len(names) == len(roles) == len(numbers):
        people, places = unique(header.authors), affiliations(doc)
        rows = zip(names, roles, numbers, strict=True)
        return [signature(row, people.get(row[2]), places.get(row[2], ())) for row in rows], True
    if header.authors:
        return header.authors, True
    return [Signature(clean_name(name), ROLES[0], "") for name in names or ()], False


def signature(row: tuple[str, str, str], tei: Signature | None, places: tuple[str, ...]) -> Signature:
    name, role, number = row
    return Signature(clean_name(name), role, number, tei.affiliations if tei else places, tei.orcid if tei else "")


def unique(authors: Sequence[Signature]) -> dict[str, Signature]:
    """Authors by number, without numbers that two of them share."""
    by_number: dict[str, Signature | None] = {}
    for author in authors:
        by_number[author.number] = None if author.number in by_number else author
    return {number: author for number, author in by_number.items() if author and number}


def person_number(number: str) -> str:
    """The person in `form-person`; older TEI has the person alone."""
    person = number.rpartition("-")[2]
    return person if person.isascii() and person.isdigit() and person.strip("0") else NOBODY


def affiliations(doc: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Structure numbers by `form-person`, from `form-person_FacetSep_name_JoinSep_number_FacetSep_structure`."""
    structures: defaultdict[str, list[str]] = defaultdict(list)
    for text in column(doc.get("authIdHasPrimaryStructure_fs")) or ():
        author, _, structure = text.partition("_JoinSep_")
        key, place = author.partition("_FacetSep_")[0], structure.partition("_FacetSep_")[0]
        if place.isascii() and place.isdigit():
            structures[key].append(place)
    return {key: tuple(places) for key, places in structures.items()}


def main_file(doc: Mapping[str, Any], header: TeiHeader) -> File:
    """The file to fetch: the TEI's first PDF, or else the address that leads to the main file."""
    embargo = max((file.embargo for file in header.files), default="")
    pdfs = [file for file in header.files if file.url.lower().endswith(".pdf")]
    if pdfs:
        chosen = min(pdfs, key=lambda file: not file.main)
        return replace(chosen, embargo=chosen.embargo or embargo)
    listed = [url for url in column(doc.get("files_s")) or () if url.lower().endswith(".pdf")]
    return File(first_text(doc.get("fileMain_s")) or first_text(listed), "", True, embargo)


def domains(doc: Mapping[str, Any]) -> tuple[str, ...]:
    """The most special domain codes, those under the primary domain first. HAL lists every ancestor as well."""
    given = column(doc.get("domainAllCode_s")) or column(doc.get("domain_s")) or ()
    codes = [code for code in dict.fromkeys(map(hal_code, given)) if DOMAIN.fullmatch(code)]
    above = {code[:dot] for code in codes for dot in range(len(code)) if code[dot] == "."}
    primary = field_of(first_text(doc.get("primaryDomain_s")))
    leaves = [code for code in codes if code not in above]
    return tuple(sorted(leaves, key=lambda code: code.partition(".")[0] != primary))


def year_of(doc: Mapping[str, Any]) -> int | None:
    digits = re.match(r"[12]\d{3}(?!\d)", first_text(doc.get("producedDate_s")))
    return int(digits[0]) if digits else number_or(doc.get("producedDateY_i"), 0) or None


def number_or(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10_000 else default


def column(value: Any) -> list[str] | None:
    """An array of texts with nothing left out, or None if it is not that: a gap would shift all that follow."""
    if isinstance(value, str):
        return [value]
    whole = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return value if whole else None


def first_text(value: Any) -> str:
    """The text, or the first text of a list: HAL types some fields both ways."""
    texts = column(value) or [""]
    return JUNK.sub("\N{REPLACEMENT CHARACTER}", texts[0]).strip()


def clean_name(text: str) -> str:
    """Plain text of a name or title: no entities, control characters, half surrogates or e-mail addresses."""
    plain = JUNK.sub(" ", html.unescape(text))
    return " ".join((EMAIL.sub("", plain) if "@" in plain else plain).split())


def read_header(source: Any) -> TeiHeader:
    """What the TEI of one record says about authors, files and licence."""
    if not isinstance(source, str):
        raise Unfit("label_xml is not text")
    if "<!DOCTYPE" in source or "<!ENTITY" in source:  # TEI from HAL has neither; entities are how XML bombs are built
        raise Unfit("label_xml declares entities")
    try:
        root = ElementTree.fromstring(JUNK.sub(" ", source))
    except ElementTree.ParseError as error:
        raise Unfit("label_xml is not XML") from error
    return header_of(root)


def header_of(root: ElementTree.Element) -> TeiHeader:
    full = "{*}text/{*}body/{*}listBibl/{*}biblFull/"
    authors = tuple(read_tei_author(node) for node in root.iterfind(full + "{*}titleStmt/{*}author"))
    editions = [node for node in root.iterfind(full + "{*}editionStmt/{*}edition") if node.get("type") == "current"]
    files = [tei_file(ref) for edition in editions for ref in edition.iterfind("{*}ref[@type='file']")]
    licence = root.find(full + "{*}publicationStmt/{*}availability/{*}licence")
    return TeiHeader(
        authors, tuple(file for file in files if file.url), "" if licence is None else licence.get("target", "")
    )


def read_tei_author(node: ElementTree.Element) -> Signature:
    name = node.find("{*}persName")
    parts = [] if name is None else [part.text or "" for part in name]
    ids = {(idno.get("type") or "").lower(): (idno.text or "").strip() for idno in node.iterfind("{*}idno")}
    orcid = ORCID.search(ids.get("orcid", ""))
    places = (place.get("ref", "").rpartition("-")[2] for place in node.iterfind("{*}affiliation"))
    return Signature(
        clean_name(" ".join(parts)),
        node.get("role", ""),
        ids.get("halauthorid", ""),
        tuple(place for place in places if place.isascii() and place.isdigit()),
        orcid[0] if orcid else "",
    )


def tei_file(ref: ElementTree.Element) -> File:
    date = ref.find("{*}date")
    day = DAY.match("" if date is None else date.get("notBefore", ""))
    return File(ref.get("target", "").strip(), ref.get("subtype", ""), ref.get("n") == "1", day[0] if day else "")
