"""The little of Solr's query language that a harvest uses: field:value, lists, ranges, prefixes, words. No ranking."""

import re
from collections.abc import Mapping
from typing import Any


class BadQuery(Exception):
    """What Solr would say about a query that it cannot read."""


def matches_query(query: str, doc: Mapping[str, Any]) -> bool:
    """Whether a document satisfies one `q` or `fq`.

    >>> matches_query('language_s:("en" OR "fr")', {"language_s": ["fr"]})
    True
    >>> matches_query("year_i:[2000 TO 2010}", {"year_i": 2010})
    False
    """
    check_query(query)
    if query in ("*", "*:*"):
        return True
    field, colon, wanted = query.partition(":")
    if colon and re.fullmatch(r"\w+", field):
        return any(accepts(wanted, str(value)) for value in values(doc.get(field)))
    words = " ".join(values(doc.get("title_s"))).lower().split()
    return all(word.lower() in words for word in query.split())


def check_query(query: str) -> None:
    """Raise for what does not parse."""
    bare = re.sub(r"\\.", "", query)
    pairs = bare.count("(") == bare.count(")") and len(re.findall(r"[\[{]", bare)) == len(re.findall(r"[\]}]", bare))
    if not query.strip() or not pairs or bare.count('"') % 2 or re.search(r":\s*$", bare):
        raise BadQuery(f"org.apache.solr.search.SyntaxError: Cannot parse '{query}'")


def values(value: Any) -> list[str]:
    if isinstance(value, bool):
        return [str(value).lower()]
    return [] if value is None else [str(item) for item in (value if isinstance(value, list) else [value])]


def accepts(wanted: str, value: str) -> bool:
    """Whether one value of a field is in a list, a range or a prefix, or is the term itself."""
    span = re.fullmatch(r"([\[{])(\S+) TO (\S+?)([\]}])", wanted)
    if span:
        return within(value, span[2], span[3], span[1] == "[", span[4] == "]")
    terms = wanted[1:-1].split(" OR ") if wanted.startswith("(") else [wanted]
    return any(same_term(term.strip(), value) for term in terms)


def within(value: str, low: str, high: str, from_low: bool, to_high: bool) -> bool:
    above = low == "*" or (value >= low if from_low else value > low)
    return above and (high == "*" or (value <= high if to_high else value < high))


def same_term(term: str, value: str) -> bool:
    prefix = term.endswith("*") and not term.endswith(r"\*")
    plain = re.sub(r"\\(.)", r"\1", term.removesuffix("*") if prefix else term.strip('"'))
    return value.startswith(plain) if prefix else value == plain
