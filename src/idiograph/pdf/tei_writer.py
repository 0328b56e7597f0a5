"""A paper as sections of plain text, and its TEI in the shape that GROBID writes, so that one reader serves both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})
TEI = "http://www.tei-c.org/ns/1.0"


@dataclass(frozen=True, slots=True)
class PaperSection:
    """A section: `kind` is body, acknowledgement or annex; an item is a paragraph ("p") or a display ("formula")."""

    kind: str
    head: str
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ComposedPaper:
    """What a PDF says, in reading order."""

    title: str
    abstract: tuple[str, ...]
    parts: tuple[PaperSection, ...]

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The paragraphs of the body."""
        return tuple(text for part in self.parts if part.kind == "body" for tag, text in part.items if tag == "p")


def to_tei(paper: ComposedPaper, version: str, properties: Mapping[str, str] = NO_PROPERTIES) -> bytes:
    """A TEI document; the same paper and version give the same bytes. What the PDF says of itself is noted, not believed."""
    root = Element("TEI", {"xmlns": TEI})
    header = add_element(root, "teiHeader")
    file = add_element(header, "fileDesc")
    add_element(add_element(file, "titleStmt"), "title", paper.title, level="a", type="main")
    if properties:
        notes = add_element(file, "notesStmt")
        for name, text in sorted(properties.items()):
            add_element(notes, "note", text, type=f"pdf-{name}")
    add_element(
        add_element(add_element(header, "encodingDesc"), "appInfo"), "application", ident="idiograph", version=version
    )
    abstract = add_element(add_element(header, "profileDesc"), "abstract")
    if paper.abstract:
        write_items(add_element(abstract, "div"), [("p", text) for text in paper.abstract])
    text = add_element(root, "text")
    body = add_element(text, "body")
    for part in paper.parts:
        if part.kind == "body":
            write_part(body, part)
    back = add_element(text, "back")
    for part in paper.parts:
        if part.kind != "body":
            write_part(add_element(back, "div", type=part.kind), part)
    ElementTree.indent(root, "")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def write_part(parent: Element, part: PaperSection) -> None:
    div = add_element(parent, "div")
    if part.head:
        add_element(div, "head", part.head)
    write_items(div, part.items)


def write_items(div: Element, items: Sequence[tuple[str, str]]) -> None:
    for tag, text in items:
        add_element(div, tag, text)


def add_element(parent: Element, tag: str, text: str = "", **attributes: str) -> Element:
    child = ElementTree.SubElement(parent, tag, attributes)
    child.text = text or None
    return child
