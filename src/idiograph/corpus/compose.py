"""A paper as sections of plain text, and its TEI in the shape that GROBID writes, so that one reader serves both."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

TEI = "http://www.tei-c.org/ns/1.0"


@dataclass(frozen=True, slots=True)
class Part:
    """A section: `kind` is body, acknowledgement or annex; an item is a paragraph ("p") or a display ("formula")."""

    kind: str
    head: str
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Paper:
    """What a PDF says, in reading order."""

    title: str
    abstract: tuple[str, ...]
    parts: tuple[Part, ...]

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The paragraphs of the body."""
        return tuple(text for part in self.parts if part.kind == "body" for tag, text in part.items if tag == "p")


def to_tei(paper: Paper, version: str) -> bytes:
    """A TEI document; the same paper and version give the same bytes."""
    root = Element("TEI", {"xmlns": TEI})
    header = add(root, "teiHeader")
    add(add(add(header, "fileDesc"), "titleStmt"), "title", paper.title, level="a", type="main")
    add(add(add(header, "encodingDesc"), "appInfo"), "application", ident="idiograph", version=version)
    abstract = add(add(header, "profileDesc"), "abstract")
    if paper.abstract:
        write_items(add(abstract, "div"), [("p", text) for text in paper.abstract])
    text = add(root, "text")
    body = add(text, "body")
    for part in paper.parts:
        if part.kind == "body":
            write_part(body, part)
    back = add(text, "back")
    for part in paper.parts:
        if part.kind != "body":
            write_part(add(back, "div", type=part.kind), part)
    ElementTree.indent(root, "")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def write_part(parent: Element, part: Part) -> None:
    div = add(parent, "div")
    if part.head:
        add(div, "head", part.head)
    write_items(div, part.items)


def write_items(div: Element, items: Sequence[tuple[str, str]]) -> None:
    for tag, text in items:
        add(div, tag, text)


def add(parent: Element, tag: str, text: str = "", **attributes: str) -> Element:
    child = ElementTree.SubElement(parent, tag, attributes)
    child.text = text or None
    return child
