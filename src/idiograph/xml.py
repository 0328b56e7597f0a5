"""XML that we did not write: parsed without entities, network or giants, and flattened to text. Knows no vocabulary.

Everything that is wrong with a file is an `InputError` that says what; nothing else may come out of here.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from types import MappingProxyType
from typing import Any, Protocol

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (it comes without types)

from idiograph.errors import InputError

MAX_BYTES = 64_000_000  # a thesis of 900 pages is about 10 MB of TEI
MAX_DEPTH = 120  # real articles stay under 25; libxml2 itself stops at 256
ENCODINGS = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252"})


class Element(Protocol):
    """The part of lxml's element that we use."""

    tag: Any
    text: str | None
    tail: str | None

    def get(self, key: str, default: str = "", /) -> str: ...
    def iter(self, *tags: str) -> Iterator["Element"]: ...
    def __iter__(self) -> Iterator["Element"]: ...


Swap = Callable[[Element], str | None]  # what stands for an element in the text; None: go on inside it

NOTHING: Mapping[str, str] = MappingProxyType({})

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})["']""")
_SPACES = re.compile(r"\s+")


def parse_xml(data: bytes) -> Element:
    """The root element of an XML file."""
    if not data.strip():
        raise InputError("the XML file is empty")
    check_size(len(data))
    _check_encoding(data)
    if b"<!ENTITY" in data:
        raise InputError(
            "the XML declares entities, which are refused: they can expand without end or read other files"
        )
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise InputError(f"not well-formed XML: {error.msg}") from error


def check_size(size: int) -> None:
    """Refuse a giant, best before it is read."""
    if size > MAX_BYTES:
        raise InputError(f"the XML file has {size:,} bytes; at most {MAX_BYTES:,} are read")


def _check_encoding(data: bytes) -> None:
    """Refuse the encodings in which the checks on bytes would see nothing, and bytes that are not what they say."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4]:
        raise InputError("the XML is in UTF-16 or UTF-32; save it as UTF-8")
    declared = _DECLARED.match(data.removeprefix(b"\xef\xbb\xbf"))
    encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    if encoding not in ENCODINGS:
        raise InputError(f"the XML declares the encoding '{encoding}'; choose from {', '.join(sorted(ENCODINGS))}")
    if encoding.startswith("utf"):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"the XML is not valid UTF-8: byte {error.start} is {data[error.start]:#04x}") from error


def tag_name(element: Element) -> str:
    """The tag without its namespace; empty for what is not an element."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def child_element(element: Element | None, *path: str) -> Element | None:
    """The first element down a path of local names, in any namespace."""
    for step in path:
        if element is None:
            return None
        element = next((inner for inner in element if tag_name(inner) == step), None)
    return element


def children(element: Element | None, *names: str) -> Iterator[Element]:
    """The direct children with one of these local names."""
    if element is not None:
        yield from (inner for inner in element if tag_name(inner) in names)


def inner_parts(element: Element | None, *names: str) -> Iterator[Element]:
    """All descendants with one of these local names, in document order."""
    if element is not None:
        yield from (inner for inner in element.iter(*(f"{{*}}{each}" for each in names)) if inner is not element)


def element_text(element: Element | None, swap: Swap = lambda _: None, around: Mapping[str, str] = NOTHING) -> str:
    """The words inside an element on one line, with some elements swapped for something else.

    `around` says what to put before and after the content of the elements that it names.
    """
    return "" if element is None else one_line("".join(_pieces(element, swap, around)))


def one_line(raw: str) -> str:
    return _SPACES.sub(" ", raw).strip()


def _pieces(element: Element, swap: Swap, around: Mapping[str, str], depth: int = 0) -> Iterator[str]:
    if depth > MAX_DEPTH:
        raise InputError(f"the XML is nested deeper than {MAX_DEPTH} elements")
    edge = around.get(tag_name(element), "") if around and depth else ""
    yield edge + (element.text or "")
    for inner in element:
        if not isinstance(inner.tag, str):
            yield _entity(inner)
        elif (instead := swap(inner)) is not None:
            yield instead
        else:
            yield from _pieces(inner, swap, around, depth + 1)
        yield inner.tail or ""
    yield edge


def _entity(node: Element) -> str:
    """The character that an unresolved name such as `&nbsp;` stands for in HTML; nothing if it stands for none there."""
    character = unescape(node.text or "")
    return "" if character.startswith("&") and len(character) > 1 else character
