"""Whatever bytes come, a reader of markup gives an article or an InputError; whatever text comes, cleaning gives text."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idiograph.corpus.article import Article
from idiograph.corpus.clean import clean_text
from idiograph.corpus.filters import document_fault, span_fault
from idiograph.corpus.jats import read_jats
from idiograph.corpus.signals import signals
from idiograph.corpus.tei import read_tei
from idiograph.errors import InputError

STEADY = settings(derandomize=True, deadline=None, max_examples=200)
Reader = Callable[[bytes], Article]
READERS: dict[str, Reader] = {"tei": read_tei, "jats": read_jats}
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f]")

TEI_TAGS = [
    "TEI",
    "teiHeader",
    "text",
    "body",
    "div",
    "head",
    "p",
    "s",
    "ref",
    "formula",
    "figure",
    "note",
    "list",
    "item",
]
JATS_TAGS = [
    "article",
    "front",
    "article-meta",
    "body",
    "sec",
    "title",
    "p",
    "xref",
    "sup",
    "list",
    "list-item",
    "fn",
    "math",
]
ATTRIBUTES = [
    "",
    ' type="bibr"',
    ' ref-type="bibr"',
    ' type="figure"',
    ' ref-type="fn"',
    ' xml:lang="en"',
    ' sec-type="x"',
]
WORDS = st.text(alphabet=" abcEÉ.,;:()[]0123456789–&¹\u202b\u0301", max_size=30)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def trees(tags: list[str]) -> st.SearchStrategy[str]:
    """Any nesting of a vocabulary, sensible or not."""
    leaf = WORDS.map(escaped)
    return st.recursive(
        leaf,
        lambda inner: st.tuples(st.sampled_from(tags), st.sampled_from(ATTRIBUTES), st.lists(inner, max_size=4)).map(
            lambda part: f"<{part[0]}{part[1]}>{''.join(part[2])}</{part[0]}>"
        ),
        max_leaves=25,
    )


def read(reader: Reader, data: bytes) -> Article | None:
    try:
        return reader(data)
    except InputError:
        return None


def check(article: Article | None) -> None:
    if article is not None:
        parts = [*article.abstract, *(each for section in article.sections for each in section.paragraphs)]
        assert parts
        assert all(part == " ".join(part.split()) and not CONTROLS.search(part) for part in parts)


@pytest.mark.parametrize("name", READERS)
@given(data=st.binary(max_size=300))
@STEADY
def test_any_bytes_are_an_article_or_an_input_error(name: str, data: bytes) -> None:
    check(read(READERS[name], data))


@given(body=trees(TEI_TAGS))
@STEADY
def test_any_tree_of_tei_is_an_article_or_an_input_error(body: str) -> None:
    check(read(read_tei, f"<TEI><text><body><div>{body}</div></body></text></TEI>".encode()))
    check(read(read_tei, f"<TEI>{body}</TEI>".encode()))


@given(body=trees(JATS_TAGS))
@STEADY
def test_any_tree_of_jats_is_an_article_or_an_input_error(body: str) -> None:
    check(read(read_jats, f"<article><body>{body}</body></article>".encode()))
    check(read(read_jats, f"<article>{body}</article>".encode()))


TEI = (
    b'<TEI xmlns="http://www.tei-c.org/ns/1.0"><text><body><div><head>One</head>'
    b'<p>Bees <ref type="bibr">[1]</ref>.</p></div></body></text></TEI>'
)
JATS = (
    b'<article xml:lang="en"><body><sec><title>One</title>'
    b'<p>Ants <xref ref-type="bibr">1</xref>.</p></sec></body></article>'
)


@pytest.mark.parametrize(("name", "seed"), [("tei", TEI), ("jats", JATS)])
@given(cuts=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20), st.binary(max_size=5)), min_size=1, max_size=5))
@STEADY
def test_a_damaged_file_is_an_article_or_an_input_error(
    name: str, seed: bytes, cuts: list[tuple[int, int, bytes]]
) -> None:
    data = seed
    for at, length, replacement in cuts:
        data = data[:at] + replacement + data[at + length :]
    check(read(READERS[name], data))


@given(text=st.text(max_size=300) | WORDS, citations=st.sampled_from(["keep", "mask", "drop"]))
@STEADY
def test_cleaning_any_text_gives_tidy_text(text: str, citations: str) -> None:
    found = clean_text(text, citations)  # pyright: ignore[reportArgumentType]
    assert not CONTROLS.search(found)
    assert "\n\n\n" not in found
    assert found == found.strip()


@given(
    names=st.lists(
        st.sampled_from(["Smith", "et al.", "and", "(", ")", "2001", ",", ";", "[3]", "see", "de", "In"]), max_size=40
    )
)
@STEADY
def test_masking_again_changes_nothing(names: list[str]) -> None:
    once = clean_text(" ".join(names))
    assert clean_text(once) == once


@given(text=st.text(max_size=200), lang=st.sampled_from(["en", "fr", "zh", "xx", ""]))
@STEADY
def test_rules_and_signals_take_any_text(text: str, lang: str) -> None:
    for fault in (document_fault(text, lang), span_fault(text, lang)):
        assert fault is None or fault
    assert all(isinstance(value, int | float) for value in signals(text, lang).values())
