"""An invented archive: deposits with authors, domains, licences, embargoes and PDFs, all from a seed."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tests.standin.prose import page_text, pdf

HOME = "https://hal.science"  # a server puts its own address in its place
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
FIRST = ("Ada", "Bruno", "Chloé", "Dario", "Elif", "Fabien", "Greta", "Hugo", "Inès", "Jonas", "Klára", "Léo")
LAST = ("Abadie", "Besson", "Castel", "Delmas", "Errard", "Fournier", "Guyot", "Hamel", "Imbert", "Jourdan", "Lacroix")
DOMAINS = ("info.info-cl", "shs.langue", "sdv.bbm", "math.math-pr", "phys.meca.acou", "spi.acou", "stat.ap")
LICENCES = (
    "http://creativecommons.org/licenses/by/",
    "https://creativecommons.org/licenses/by/4.0/",
    "https://creativecommons.org/licenses/by-sa/4.0/",
    "https://creativecommons.org/publicdomain/zero/1.0/",
    "http://hal.archives-ouvertes.fr/licences/etalab/",
    "https://creativecommons.org/licenses/by-nc-nd/4.0/",
    "http://hal.archives-ouvertes.fr/licences/copyright/",
    "",
)


@dataclass(frozen=True)
class Someone:
    """An invented author. Person 0 is one whom nobody has identified."""

    first: str
    last: str
    form: int
    person: int
    orcid: str
    structure: int

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    @property
    def number(self) -> str:
        return f"{self.form}-{self.person}"


@dataclass
class Archive:
    """Documents as the search gives them, in the order of their docid, and the files behind them by path."""

    docs: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def put(self, doc: dict[str, Any], file: bytes = b"") -> None:
        """Add a deposit, or a new version of one, which takes the old one's place."""
        self.docs = [old for old in self.docs if old["halId_s"] != doc["halId_s"]] + [doc]
        self.docs.sort(key=lambda one: int(one["docid"]))
        for url in doc.get("files_s", ()):
            self.files[url.removeprefix(HOME)] = file


def make_archive(deposits: int = 100, seed: int = 7) -> Archive:
    """An archive of so many deposits; the same for the same seed."""
    draw = random.Random(seed)
    teams = [tuple(someone(draw, 3 * t + i) for i in range(1 + t % 3)) for t in range(max(1, deposits // 4))]
    made = Archive()
    for place in range(deposits):
        team = place % len(teams)
        doc = make_deposit(draw, place, teams[team], DOMAINS[team % len(DOMAINS)])
        made.docs.append(doc)
        if doc["submitType_s"] == "file":
            body = pdf(doc["title_s"][0], page_text(random.Random(f"{seed}/{place}"), team))
            made.files |= {url.removeprefix(HOME): body for url in doc["files_s"]}
    return made


def someone(draw: random.Random, number: int) -> Someone:
    person = 0 if draw.random() < 0.15 else 1000 + number
    digits = f"{number:07d}"
    orcid = f"0000-0002-{digits[:4]}-{digits[4:]}1" if person and draw.random() < 0.5 else ""
    return Someone(draw.choice(FIRST), draw.choice(LAST), 50_000 + number, person, orcid, 300_000 + number // 3)


def make_deposit(draw: random.Random, place: int, team: tuple[Someone, ...], domain: str) -> dict[str, Any]:
    """The fields that HAL gives for one deposit; one in ten is a notice without a file."""
    halid, when = f"hal-{place + 1:08d}", (BEGAN + timedelta(hours=place)).strftime("%Y-%m-%dT%H:%M:%SZ")
    has_file, licence = place % 10 != 9, draw.choice(LICENCES)
    levels = domain.split(".")
    doc: dict[str, Any] = {
        "docid": str(1_000_000 + 7 * place),
        "halId_s": halid,
        "version_i": 1,
        "uri_s": f"{HOME}/{halid}v1",
        "label_s": f"{team[0].last} et al. {halid}",
        "submitType_s": "file" if has_file else "notice",
        "openAccess_bool": has_file,
        "language_s": ["fr" if place % 5 == 4 else "en"],
        "docType_s": draw.choice(["ART", "COMM", "THESE", "UNDEFINED"]),
        "domainAllCode_s": [".".join(levels[: i + 1]) for i in range(len(levels))],
        "level0_domain_s": levels[:1],
        "primaryDomain_s": domain,
        "producedDate_s": draw.choice(["2018", "2019-10", "2021-06-13"]),
        "title_s": [f"On the {draw.choice(['shape', 'cost', 'age', 'sound'])} of things, part {place + 1}"],
        **dict.fromkeys(["submittedDate_tdate", "releasedDate_tdate", "modifiedDate_tdate"], when),
        "dateLastIndexed_tdate": when,
        **author_arrays(team),
    }
    if licence:
        doc["licence_s"] = licence
    if has_file:
        doc |= {"fileMain_s": f"{HOME}/{halid}/document", "files_s": [f"{HOME}/{halid}/file/paper.pdf"]}
    return doc | {"label_xml": label_xml(doc, team, "2099-01-01" if place % 20 == 7 else when[:10])}


def author_arrays(team: tuple[Someone, ...]) -> dict[str, list[Any]]:
    """HAL's arrays: some with an entry for every author, some only for those who have one."""
    roles = ["aut", "crp", "aut"]
    return {
        "authFullName_s": [one.name for one in team],
        "authQuality_s": roles[: len(team)],
        "authIdFormPerson_s": [one.number for one in team],
        "authIdForm_i": [one.form for one in team],
        "authIdPerson_i": [one.person for one in team if one.person],
        "authORCIDIdExt_s": [one.orcid for one in team if one.orcid],
        "authEmailDomain_s": ["example.org"],
        "authIdHasPrimaryStructure_fs": [
            f"{one.number}_FacetSep_{one.name}_JoinSep_{one.structure}_FacetSep_Laboratory {one.structure}"
            for one in team
        ],
    }


def label_xml(doc: dict[str, Any], team: tuple[Someone, ...], embargo: str) -> str:
    """The TEI of one deposit. Its own header carries the licence of the metadata, which is not the deposit's."""
    signed = "".join(map(tei_author_xml, team, doc["authQuality_s"]))
    title = escape(doc["title_s"][0])
    date = f'<date notBefore="{embargo}"/>'
    refs = [("", "", doc["fileMain_s"]), (' subtype="author"', ' n="1"', doc["files_s"][0])] if "files_s" in doc else []
    files = "".join(f'<ref type="file"{s}{n} target={quoteattr(url)}>{date}</ref>' for s, n, url in refs)
    licence = doc.get("licence_s")
    terms = f"<availability><licence target={quoteattr(licence)}>terms</licence></availability>" if licence else ""
    return (
        '<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><titleStmt>'
        f"<title>HAL TEI export of {doc['halId_s']}</title></titleStmt><publicationStmt><availability>"
        '<licence target="https://creativecommons.org/publicdomain/zero/1.0/">metadata</licence></availability>'
        "</publicationStmt></fileDesc></teiHeader><text><body><listBibl><biblFull><titleStmt>"
        f'<title xml:lang="en">{title}</title>{signed}<editor role="depositor"><persName><surname>Depositor</surname>'
        '</persName><email type="domain">example.org</email></editor></titleStmt><editionStmt>'
        f'<edition n="v{doc["version_i"]}" type="current"><date type="whenProduced">{doc["producedDate_s"]}</date>'
        f'{files}</edition></editionStmt><publicationStmt><idno type="halId">{doc["halId_s"]}</idno>{terms}</publicationStmt>'
        f"<sourceDesc><biblStruct><analytic>{signed}</analytic></biblStruct></sourceDesc>"
        "</biblFull></listBibl></body></text></TEI>"
    )


def tei_author_xml(one: Someone, role: str) -> str:
    orcid = f'<idno type="ORCID">https://orcid.org/{one.orcid}</idno>' if one.orcid else ""
    return (
        f'<author role="{role}"><persName><forename type="first">{one.first}</forename><surname>{one.last}</surname>'
        '</persName><email type="md5">7de56c632362954fa84172cad80afe4e</email><email type="domain">example.org</email>'
        f'<idno type="halauthorid" notation="string">{one.number}</idno>{orcid}'
        f'<affiliation ref="#struct-{one.structure}"/></author>'
    )
