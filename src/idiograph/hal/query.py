"""What to ask HAL's search API for: a recipe → the parameters of a request. Speaks to no server."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from idiograph.errors import InputError, SpecError
from idiograph.hal.licence import KINDS, chosen_licences
from idiograph.hal.metadata import FIELDS, TEI
from idiograph.recipe import HarvestRecipe
from idiograph.spec import unknown_choice
from idiograph.types import HAL_FIELDS, hal_code

DATES = {
    "indexed": "dateLastIndexed_tdate",
    "modified": "modifiedDate_tdate",
    "released": "releasedDate_tdate",
    "submitted": "submittedDate_tdate",
}
TEI_ROWS = 200  # a record with its TEI is about 40 KB, and HAL asks for answers of a few megabytes

Pair = tuple[str, str]


def address(recipe: HarvestRecipe) -> str:
    """Where to ask: the whole archive, a portal (lower case) or a collection (upper case)."""
    if recipe.portal and not re.fullmatch(r"[A-Za-z0-9_-]+", recipe.portal):
        raise InputError(f"'{recipe.portal}' cannot be a portal or collection of HAL; one looks like 'tel' or 'INRIA'")
    return f"{recipe.server.rstrip('/')}/search/" + (f"{recipe.portal}/" if recipe.portal else "")


def query_parameters(recipe: HarvestRecipe, since: str) -> list[Pair]:
    """Everything but the cursor. `since` is a moment, or empty for the beginning."""
    return [
        ("q", recipe.query),
        *(("fq", text) for text in filters(recipe, since)),
        ("fl", ",".join((*FIELDS, TEI) if recipe.tei else FIELDS)),
        ("sort", "docid asc"),  # the unique key: a cursor needs it, and a new version of a deposit sorts after the old
        ("rows", str(rows_a_page(recipe))),
        ("wt", "json"),
    ]


def rows_a_page(recipe: HarvestRecipe) -> int:
    """Records a page."""
    most = min(recipe.rows, TEI_ROWS) if recipe.tei else recipe.rows
    return min(most, recipe.limit or most)


def filters(recipe: HarvestRecipe, since: str) -> Iterable[str]:
    yield "openAccess_bool:true"
    if recipe.files:
        yield "submitType_s:file"
    if recipe.lang:
        yield choice("language_s", recipe.lang, r"[a-z]{2,3}", "language such as 'en'")
    if recipe.domain:
        yield choice("domainAllCode_s", map(check_domain, recipe.domain), r"[a-z0-9.-]+", "domain")
    if recipe.doctype:
        yield choice("docType_s", (kind.upper() for kind in recipe.doctype), r"[A-Z_]+", "document type such as 'ART'")
    if kinds := chosen_licences(recipe.licence):
        yield f"licence_s:({' OR '.join(licence_prefixes(kinds))})"
    if since or recipe.until:
        yield f"{DATES[recipe.date]}:[{since or '*'} TO {end_of_window(recipe.until)}"


def choice(field: str, values: Iterable[str], shape: str, what: str) -> str:
    values = list(values)
    for value in values:
        if not re.fullmatch(shape, value):
            raise SpecError(f"'{value}' is not a {what}")
    quoted = " OR ".join(f'"{value}"' for value in values)
    return f"{field}:({quoted})"


def check_domain(domain: str) -> str:
    code = hal_code(domain)
    if code.partition(".")[0] not in HAL_FIELDS:
        raise SpecError(unknown_choice("domain", domain, HAL_FIELDS))
    return code


def licence_prefixes(kinds: Iterable[str]) -> Iterable[str]:
    """Solr terms that match the addresses of these licences in both schemes and all versions."""
    heads = [head for kind in sorted(kinds) for head in KINDS[kind]]
    return [escape_term(f"{scheme}://{head}") + "*" for head in heads for scheme in ("http", "https")]


def escape_term(text: str) -> str:
    return re.sub(r'([+\-&|!(){}\[\]^"~*?:\\/])', r"\\\1", text)


def end_of_window(until: str) -> str:
    """The closing half of a window: a day counts to its end, a moment does not belong to the window."""
    if not until:
        return "*]"
    day = timedelta(days=1) if len(until) == len("2024-05-31") else timedelta(0)
    return f"{stamp(moment(until, '--until') + day)}}}"


def moment(text: str, option: str) -> datetime:
    """A day or a moment, in UTC unless it says otherwise."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        example = "2024-05-31 or 2024-05-31T12:00:00Z"
        raise InputError(f"{option} '{text}' is not a date; write it like {example}") from None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def stamp(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def check_window(since: str, until: str) -> None:
    if since and until and end_of_window(until)[:-1] <= since:
        raise InputError(f"--since {since} is not before --until {until}")


def earlier(until: str, started: str) -> str:
    """Up to when a harvest that began at `started` has seen everything."""
    return min(stamp(moment(until, "--until")), started) if until else started
