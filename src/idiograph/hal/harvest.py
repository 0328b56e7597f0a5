"""HAL's search API → a folder of records, page by page. Fetches no files.

A page is a shard, written whole and then noted in `ledger.jsonl` with the cursor of the next page; a killed harvest
goes on there. `--since last` adds a round to a finished folder: new shards beside the old ones, and what was harvested
last stands. A folder holds one query.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2

from idiograph.errors import ArtifactError, InputError, ServiceError
from idiograph.hal import query
from idiograph.hal.addresses import PrivateAddress, refuse_private
from idiograph.hal.licence import permits
from idiograph.hal.metadata import JUNK, Unfit, first_text, readable_header, record_with_header
from idiograph.hal.ratelimit import Retries, SiteRate, Tell, retry_after, user_agent
from idiograph.hal.records import KIND, MAKE, Record, published_moment, record_ids, to_line
from idiograph.recipe import HarvestRecipe, without_passwords
from idiograph.runner import Progress
from idiograph.store import (
    LEDGER,
    MANIFEST,
    Ledger,
    Manifest,
    explain_failed_writes,
    locked_folder,
    read_manifest,
    seal,
    write_json,
    write_ledger,
    write_whole_file,
)

LAST = "last"
START = "*"  # the cursor of the first page
PLAN = ".plan.json"
OVERLAP = timedelta(hours=1)  # a change is stamped some minutes before a search shows it
BAD_QUERY = re.compile(  # in the words of Solr
    r"syntax\s?error|cannot parse|unable to parse|can'?t parse|undefined field|unknown field|invalid (?:date|number|query)"
    r"|illegal query|too many (?:boolean )?clauses|unknown query parser|org\.apache\.lucene\.queryparser",
    re.I,
)
MAX_ANSWER = 256 << 20  # bytes; a page of 200 records with their TEI is about 8 MB
# Settings that say what is harvested; the others only say how gently. The first three may differ from round to round.
ASKED = ("since", "until", "limit", "server", "portal", "query", "date", "lang", "domain", "doctype", "licence",
         "roles", "files", "tei", "rows", "timestamp")  # fmt: skip


class AskHalAgain(Exception):
    """An answer that is no answer, from a server that may do better if it is asked again."""

    def __init__(self, reason: str, wait: float = 0.0, detail: str = "") -> None:
        super().__init__(reason)
        self.wait, self.detail = wait, detail


@dataclass(frozen=True, slots=True)
class HalPage:
    """A page of documents. `next` is the cursor of the next one, `total` how many there are, `date` the server's clock."""

    docs: list[Any]
    next: str
    total: int
    date: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A round that has begun: what it asks for, and when it began by the server's clock."""

    round: int
    since: str
    started: str
    asked: Mapping[str, Any]


def harvest(out: Path, recipe: HarvestRecipe, progress: Progress | None = None, tell: Tell | None = None) -> Manifest:
    """Fill `out` with the records that the recipe asks for; a second call goes on, or finds nothing left to do. `tell` hears
    why the archive is asked again."""
    with explain_failed_writes(out), locked_folder(out):
        plan = read_plan(out, recipe)
        if plan is None and recipe.since != LAST and any(path.name[0] != "." for path in out.iterdir()):
            return finished_harvest(out, recipe)
        since = plan.since if plan else start_of_window(out, recipe)
        query.check_window(since, recipe.until)
        with connect_to_hal(recipe) as client:
            return fill_folder(out, plan, HalSearch(client, recipe, since, tell), progress)


def connect_to_hal(recipe: HarvestRecipe) -> httpx2.Client:
    return httpx2.Client(
        headers={"User-Agent": user_agent(recipe.contact), "Accept": "application/json"},
        timeout=recipe.timeout,
        limits=httpx2.Limits(max_connections=1),
        follow_redirects=True,
        proxy=recipe.proxy or None,
        trust_env=False,
        event_hooks={"request": [partial(refuse_private_redirect, httpx2.URL(recipe.server).host)]},
    )


def refuse_private_redirect(server: str, request: httpx2.Request) -> None:
    """The archive that the user has named may lie in a private network; it sends nobody into another one."""
    if request.url.host == server:
        return
    try:
        refuse_private(str(request.url))
    except PrivateAddress as error:
        raise ServiceError(f"{server} sends us to a private address ({error}); check --server") from error


def fill_folder(out: Path, plan: Plan | None, search: "HalSearch", progress: Progress | None) -> Manifest:
    """Page through to the end, and seal the folder."""
    recipe, answer = search.recipe, None
    if plan is None:
        answer = search.page(START, 0)
        plan = begin_harvest(out, recipe, search.since, answer.date)
    journal = PageJournal(out, plan)
    search.passed.update(page["cursor"] for page in journal.pages)
    while not journal.has_ended:
        answer = answer or search.page(journal.cursor, journal.documents)
        journal.add(answer, recipe)
        if progress:
            progress(journal.documents, min(answer.total, recipe.limit or answer.total), "records")
        answer = None
    return journal.close(recipe)


def begin_harvest(out: Path, recipe: HarvestRecipe, since: str, date: str) -> Plan:
    """Note what is asked for, so that whoever goes on knows; from now on the folder is unfinished."""
    rounds = sum(1 for entry in Ledger(out / LEDGER) if entry["end"])
    plan = Plan(rounds + 1, since, server_time(date), recipe_as_stored(recipe))
    write_json(out / PLAN, asdict(plan))
    return plan


class HalSearch:
    """One query, asked a page at a time over one connection."""

    def __init__(self, client: httpx2.Client, recipe: HarvestRecipe, since: str, tell: Tell | None = None) -> None:
        self.client, self.recipe, self.since, self.tell = client, recipe, since, tell
        self.url, self.parameters = query.address(recipe), query.query_parameters(recipe, since)
        self.pace = SiteRate(recipe.interval)
        self.passed: set[str] = set()

    def page(self, cursor: str, seen: int) -> HalPage:
        """The page at a cursor. An end that comes too early is asked for a second time, and then believed."""
        answer = self.ask_patiently(cursor)
        if answer.next == cursor and seen < answer.total:
            answer = self.ask_patiently(cursor)
        self.passed.add(cursor)
        return answer

    def ask_patiently(self, cursor: str) -> HalPage:
        """Ask, and ask again after a failure that may pass."""
        retries = Retries(self.recipe.attempts, self.recipe.backoff, self.tell)
        try:
            return retries.ask("the archive", partial(self.ask, cursor, cursor != START), worth_another)
        except (AskHalAgain, httpx2.HTTPError) as error:
            reason = str(error) or type(error).__name__
            hint = "run the same command again: it goes on where it stopped"
            raise ServiceError(
                f"{without_passwords(self.url)} failed {self.recipe.attempts} times, at last with: {reason}; {hint}"
            ) from error

    def ask(self, cursor: str, known_good: bool) -> HalPage:
        self.pace.wait()
        with self.client.stream("GET", self.url, params=[*self.parameters, ("cursorMark", cursor)]) as response:
            self.check(response)
            body = read_hal_body(response, monotonic() + self.recipe.deadline)
        raw = parse_answer(body)
        if "error" in raw:
            self.raise_refusal(raw["error"], known_good)
        answer = to_answer(raw, cursor, response.headers.get("date", ""))
        if answer.next in self.passed - {cursor}:
            raise AskHalAgain("a cursor that leads back to an earlier page")
        return answer

    def check(self, response: httpx2.Response) -> None:
        """Whether the status promises an answer."""
        code = response.status_code
        if "/docs" in response.url.path and response.history:
            raise InputError(f"HAL has no portal or collection '{self.recipe.portal}'; one looks like 'tel' or 'INRIA'")
        if code in (408, 425, 429) or code >= 500:
            raise AskHalAgain(f"HTTP {code}", retry_after(response.headers.get("retry-after")))
        if code != 200:
            raise ServiceError(
                f"{without_passwords(str(response.url))} answered with status {code}; check --server and --query"
            )

    def raise_refusal(self, error: Any, known_good: bool) -> None:
        """HAL answers a bad query with status 200 and an error, and also what went wrong on its own side.

        A query that gave pages before cannot be bad, and another one is only if HAL says that it could not be read.
        """
        message = first_text(error.get("msg") if isinstance(error, dict) else error)[:300] or "no reason given"
        if known_good or not BAD_QUERY.search(message):
            raise AskHalAgain(f"the error '{message}'")
        raise InputError(f"HAL refuses the query '{self.recipe.query}': {message}; check --query and the filters")


def worth_another(error: Exception) -> bool | float:
    """Whether to ask again, and after how many seconds if the server said so."""
    if isinstance(error, AskHalAgain):
        return error.wait or True
    wrong = (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)
    return isinstance(error, httpx2.TransportError | httpx2.DecodingError) and not isinstance(error, wrong)


def read_hal_body(response: httpx2.Response, deadline: float) -> bytes:
    """The body, unless it is too long or takes too long."""
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise ServiceError(
                f"{response.url.host} sent more than {MAX_ANSWER >> 20} MB in one answer; ask for fewer rows"
            )
        if monotonic() > deadline:
            raise AskHalAgain("an answer that does not end")
    return bytes(body)


def parse_answer(body: bytes) -> dict[str, Any]:
    """The JSON object in a body. Bytes that are not UTF-8 become U+FFFD."""
    text = body.decode("utf-8", errors="replace")
    if text.lstrip("\ufeff \r\n\t")[:1] == "<":
        raise AskHalAgain("a web page instead of JSON")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AskHalAgain("invalid JSON") from error
    if not isinstance(raw, dict):
        raise AskHalAgain("JSON that is no search result")
    return raw


def to_answer(raw: Mapping[str, Any], cursor: str, date: str) -> HalPage:
    """The page in a search result. Solr's cursor stands still exactly when there is nothing left."""
    response, following = raw.get("response"), raw.get("nextCursorMark")
    docs = response.get("docs") if isinstance(response, dict) else None
    total = response.get("numFound") if isinstance(response, dict) else None
    if not isinstance(docs, list) or not isinstance(total, int) or not isinstance(following, str) or not following:
        raise AskHalAgain("JSON that is no search result")
    if bool(docs) == (following == cursor):
        raise AskHalAgain("a page whose cursor does not move on" if docs else "an empty page before the end")
    return HalPage(docs, following, total, date)


class PageJournal:
    """The pages of a round: which are in the output folder already, and how one gets into it."""

    def __init__(self, out: Path, plan: Plan) -> None:
        self.out, self.plan = out, plan
        self.ledger = Ledger(out / LEDGER)
        self.pages = [entry for entry in self.intact_pages() if entry["round"] == plan.round]
        self.records = sum(page["records"] for page in self.pages)  # of this round so far
        self.documents = self.records + sum(len(page["dropped"]) for page in self.pages)
        (out / MANIFEST).unlink(missing_ok=True)

    def intact_pages(self) -> list[dict[str, Any]]:
        """The pages that are noted; one whose shard a power cut took is forgotten with all after it."""
        intact = []
        for entry in self.ledger:
            path = self.out / entry.get("shard", "")
            if entry.get("shard") and not (path.is_file() and path.stat().st_size == entry["bytes"]):
                break
            intact.append(entry)
        if len(intact) < sum(1 for _ in self.ledger):
            write_ledger(self.ledger.path, intact)
        return intact

    @property
    def cursor(self) -> str:
        return self.pages[-1]["next"] if self.pages else START

    @property
    def has_ended(self) -> bool:
        return bool(self.pages) and self.pages[-1]["end"]

    def add(self, answer: HalPage, recipe: HarvestRecipe) -> None:
        """Write a page as a shard, then note it."""
        records, dropped, unread = convert_documents(answer.docs, recipe)
        if recipe.timestamp == "accessed":
            records = [replace(record, timestamp=published_moment(server_time(answer.date))) for record in records]
        records = records[: recipe.limit - self.records] if recipe.limit else records
        full = bool(recipe.limit) and self.records + len(records) >= recipe.limit
        entry = {"round": self.plan.round, "page": len(self.pages) + 1, "cursor": self.cursor, "next": answer.next,
                 "found": answer.total, "records": len(records), "dropped": dropped,
                 "end": full or answer.next == self.cursor, "limited": full}  # fmt: skip
        if unread:
            entry["unread_tei"] = unread
        if records:
            entry |= self.write(f"{self.plan.round:03d}-{len(self.pages) + 1:06d}.jsonl", records)
        self.ledger.add(entry)
        self.pages.append(entry)
        self.records += len(records)
        self.documents += len(records) + len(dropped)

    def write(self, name: str, records: list[Record]) -> dict[str, Any]:
        data = "".join(map(to_line, records)).encode()
        write_whole_file(self.out / name, data)
        return {"shard": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    def close(self, recipe: HarvestRecipe) -> Manifest:
        """Seal the folder with the sums over all its rounds."""
        entries = list(self.ledger)
        dropped = Counter(reason for entry in entries for _, reason in entry["dropped"])
        counts = {"records": len(set(record_ids(self.out))), "rounds": self.plan.round, "limited": entries[-1]["limited"],
                  "pages": sum(1 for entry in entries if "shard" in entry), "found": entries[-1]["found"]}  # fmt: skip
        if unread := sum(len(entry.get("unread_tei", ())) for entry in entries):
            counts["unread_tei"] = unread  # records made of the arrays alone
        inputs = {
            "server": without_passwords(query.address(recipe)),
            "until": query.earlier(recipe.until, self.plan.started),
        }
        manifest = seal(self.out, Manifest(KIND, recipe.as_stored(), inputs, counts, dict(dropped)))
        (self.out / PLAN).unlink()
        return manifest


def convert_documents(docs: list[Any], recipe: HarvestRecipe) -> tuple[list[Record], list[list[str]], list[list[str]]]:
    """The records of those documents that make one, and of the others the id and the reason; also whose TEI was not read."""
    records, dropped, unread = [], [], []
    for each in docs:
        doc = each if isinstance(each, dict) else {}
        header, fault = readable_header(doc)
        try:
            record = record_with_header(doc, header, recipe.roles)
            if not permits(recipe.licence, record.licence):
                raise Unfit("licence not chosen")
            records.append(replace(record, url=without_passwords(record.url), uri=without_passwords(record.uri)))
        except Unfit as error:
            dropped.append([name_dropped_document(doc), str(error)])
        else:
            unread += [[record.halid, fault]] if fault else []
    return records, dropped, unread


def name_dropped_document(doc: Any) -> str:
    """Something to find a dropped document by."""
    names = (first_text(doc.get(key)) for key in ("halId_s", "docid")) if isinstance(doc, dict) else ()
    return JUNK.sub("", next(filter(None, names), ""))[:100]


def server_time(date: str) -> str:
    """The server's clock, so that a wrong one here loses nothing; ours if it shows none."""
    try:
        return query.stamp(parsedate_to_datetime(date).astimezone(UTC))
    except (TypeError, ValueError):
        return query.stamp(datetime.now(UTC))


def recipe_as_stored(recipe: HarvestRecipe) -> dict[str, Any]:
    """What the recipe asks for, as it looks after a journey through JSON."""
    whole = recipe.as_stored()
    return {key: whole[key] for key in ASKED}


def read_plan(out: Path, recipe: HarvestRecipe) -> Plan | None:
    """The plan of a round that did not end, if it is the one that the recipe asks for."""
    path = out / PLAN
    if not path.is_file():
        return None
    try:
        plan = Plan(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ArtifactError(f"'{path}' is damaged ({error}); remove '{out}' and harvest again: {MAKE}") from error
    differing = next(differences(plan.asked, recipe_as_stored(recipe), ASKED), None)
    if differing:
        hint = "finish it with the same options, or choose another -o"
        raise ArtifactError(f"'{out}' holds an unfinished harvest with {differing}; {hint}")
    return plan


def finished_harvest(out: Path, recipe: HarvestRecipe) -> Manifest:
    """The manifest of a folder that has all that the recipe asks for."""
    manifest = read_manifest(out, KIND, MAKE)
    differing = next(differences(manifest.recipe, recipe_as_stored(recipe), ASKED), None)
    if differing:
        hint = "add what is new with --since last, or choose another -o"
        raise ArtifactError(f"'{out}' holds a finished harvest with {differing}; {hint}")
    return manifest


def start_of_window(out: Path, recipe: HarvestRecipe) -> str:
    """The moment from which to harvest, or nothing for the beginning of the archive."""
    if recipe.since != LAST:
        return query.stamp(query.moment(recipe.since, "--since")) if recipe.since else ""
    if not (out / MANIFEST).is_file():
        raise ArtifactError(f"'{out}' has no finished harvest to go on from; give --since a date for the first one")
    before = read_manifest(out, KIND, MAKE)
    differing = next(differences(before.recipe, recipe_as_stored(recipe), ASKED[3:]), None)
    if differing or before.counts["limited"]:
        cut = differing or f"limit = {before.counts['records']}, which left a gap"
        raise ArtifactError(f"'{out}' was harvested with {cut}; '--since last' must ask for the same, in another -o")
    return query.stamp(query.moment(before.inputs["until"], "--since") - OVERLAP)


def differences(old: Mapping[str, Any], new: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    """`lang = ['en'], not ['fr']` for each setting that differs."""
    before = {"timestamp": "modified", **old}  # folders of the time before there was a choice
    return (f"{key} = {before.get(key)!r}, not {new[key]!r}" for key in keys if before.get(key) != new[key])
