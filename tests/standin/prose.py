"""Invented prose with a writer's habits in it, and the plainest PDF that shows it."""

import random
import textwrap
from collections.abc import Sequence

OPENINGS = (
    ("However,", "Moreover,", "Thus"),
    ("Of course", "Still,", "So"),
    ("In this respect,", "It follows that", "By contrast,"),
    ("Yet", "And", "But"),
)
SUBJECTS = (
    "the method",
    "our corpus",
    "this estimate",
    "the second experiment",
    "a simple model",
    "the reader",
    "each sample",
)
VERBS = ("shows", "suggests", "does not explain", "depends on", "agrees with", "leaves open", "has changed")
OBJECTS = ("the results of earlier work", "what we had expected", "the length of the text", "a small part of the data")
NOUNS = (
    "anchor apple arch barn basket beacon bell blade boat bridge brook cabin candle canal cargo chain chalk chart cliff cloud "
    "coal coast copper cradle crane creek crop dial ditch dock door dune dyke engine fence ferry field flint floor forge fuel "
    "garden gate glass grain gravel hamlet harbour harvest hedge hill hinge hull kiln ladder lamp lantern leaf ledger lever "
    "lock loom map marsh mast meadow mill mine mirror moor mortar net oak oar orchard oven pasture path pier pipe plank plough "
    "pond port pulley pump quarry rail reed reef ridge river roof rope rudder sail salt sand shaft shed slate sluice soil spade "
    "spring steam stone storm stove straw tide timber tower track tunnel valley vault wagon wall well wharf wheel wool yard"
).split()
TAILS = (
    ("", ", as far as we know", ", to say the least"),
    ("; that much is certain", " (and not only here)", ""),
    (", which was to be expected", ", all things considered", ""),
    (" - or so it seems", "", ": nothing more"),
)
WIDTH, LINES, LEADING = 90, 48, 14


def page_text(draw: random.Random, writer: int, paragraphs: int = 8, sentences: int = 6) -> list[str]:
    """Paragraphs by one writer, whose number decides on their habits."""
    return [" ".join(make_sentence(draw, writer) for _ in range(sentences)) for _ in range(paragraphs)]


def make_sentence(draw: random.Random, writer: int) -> str:
    opening = draw.choice(OPENINGS[writer % len(OPENINGS)])
    tail = draw.choice(TAILS[writer // len(OPENINGS) % len(TAILS)])
    topic = f"for the {draw.choice(NOUNS)} and its {draw.choice(NOUNS)}"  # or all papers would be versions of one work
    return f"{opening} {draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(OBJECTS)} {topic}{tail}."


def pdf(title: str, paragraphs: Sequence[str]) -> bytes:
    """A valid PDF of plain text in one font."""
    lines = [title, ""]
    for paragraph in paragraphs:
        lines += [*textwrap.wrap(paragraph, WIDTH), ""]
    pages = [lines[start : start + LINES] for start in range(0, len(lines), LINES)]
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for place, page in enumerate(pages):
        contents = f"/Contents {5 + 2 * place} 0 R /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] {contents} >>".encode())
        objects.append(pdf_stream(page))
    return assemble(objects)


def pdf_stream(lines: Sequence[str]) -> bytes:
    shown = "".join(f"({quote_pdf(line)}) Tj T*\n" for line in lines)
    body = f"BT /F1 11 Tf {LEADING} TL 60 780 Td\n{shown}ET".encode("cp1252", "replace")
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(body), body)


def quote_pdf(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def assemble(objects: Sequence[bytes]) -> bytes:
    """The file around its objects: header, table of offsets, trailer."""
    out, offsets = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)
