"""PDFs made by hand, sound and hostile. Every letter is half as wide as its size, so that lines can be planned."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

FONTS = ("Sample-Roman", "Sample-Bold", "Sample-Italic", "Sample-Mono")
ROMAN, BOLD, ITALIC, MONO = FONTS
WIDTH, HEIGHT = 600, 800
SENTENCES = (
    "The tide comes in twice a day and nobody in the harbour has ever asked it to wait.",
    "Every ledger that the clerks kept was copied by hand before the winter, which made them careful with their words.",
    "A bridge that has stood for a hundred years is not safer than one that was built last spring.",
    "They measured the slope again, found it steeper than the map had promised, and went home without a complaint.",
    "What the bees know about distance they tell by dancing, and the dance is short when the field is near.",
    "Nothing in the old letters suggests that the writer had seen the sea, although he described it well.",
)


def prose(count: int, start: int = 0) -> str:
    return " ".join(SENTENCES[(start + i) % len(SENTENCES)] for i in range(count))


def wrap(text: str, width: float, size: float) -> list[str]:
    """Words in lines of a width."""
    lines: list[str] = []
    for word in text.split():
        if lines and 0.5 * size * len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


@dataclass
class Sheet:
    """One page. Heights are measured from its top."""

    marks: list[str] = field(default_factory=list)

    def put(
        self, x: float, y: float, text: str, size: float = 10, font: str = ROMAN, spread: float = 0, turn: int = 0
    ) -> None:
        """Text at a place; `spread` widens the spaces, `turn` is in quarters."""
        a, b = [(1, 0), (0, 1), (-1, 0), (0, -1)][turn]
        safe = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        place = f"{a} {b} {-b} {a} {x:.2f} {HEIGHT - y:.2f} Tm"
        self.marks.append(f"BT /F{FONTS.index(font)} {size} Tf {spread:.3f} Tw {place} ({safe}) Tj ET")

    def paragraph(
        self,
        x: float,
        y: float,
        text: str,
        width: float,
        size: float = 10,
        indent: float = 0,
        pitch: float = 12,
        font: str = ROMAN,
    ) -> float:
        """A justified paragraph; returns the height of the line after it."""
        lines = wrap("_" * int(indent / (0.5 * size)) + text, width, size) if indent else wrap(text, width, size)
        for place, line in enumerate(lines):
            shift = indent if place == 0 else 0
            line = line.lstrip("_")
            room = width - shift - 0.5 * size * len(line)
            last = place == len(lines) - 1
            self.put(x + shift, y, line, size, font, 0 if last or " " not in line else room / line.count(" "))
            y += pitch
        return y


def pdf(sheets: Sequence[Sheet]) -> bytes:
    """A PDF file of these pages."""
    kids = " ".join(f"{4 + len(FONTS) + 2 * i} 0 R" for i in range(len(sheets)))
    fonts = " ".join(f"/F{i} {3 + i} 0 R" for i in range(len(FONTS)))
    objects: list[str | bytes] = ["<< /Type /Catalog /Pages 2 0 R >>"]
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(sheets)} >>")
    widths = " ".join(["500"] * 224)
    for name in FONTS:
        shape = f"/FirstChar 32 /LastChar 255 /Widths [{widths}] /Encoding /WinAnsiEncoding"
        objects.append(f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} {shape} >>")
    objects.append("null")
    for i, sheet in enumerate(sheets):
        box = f"/MediaBox [0 0 {WIDTH} {HEIGHT}] /Resources << /Font << {fonts} >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} /Contents {5 + len(FONTS) + 2 * i} 0 R >>")
        objects.append(stream("\n".join(sheet.marks).encode("cp1252", "replace")))
    return assemble(objects)


def stream(data: bytes, filters: int = 1) -> bytes:
    for _ in range(filters):
        data = zlib.compress(data, 9)
    named = f"/Filter [{' /FlateDecode' * filters}]" if filters else ""
    return f"<< /Length {len(data)} {named} >>\nstream\n".encode() + data + b"\nendstream"


def assemble(objects: Sequence[str | bytes], trailer: str = "") -> bytes:
    """Numbered objects with a table of where they are."""
    out, places = bytearray(b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + (body if isinstance(body, bytes) else body.encode()) + b"\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def article(seed: int = 0, pages: int = 2) -> bytes:
    """A small paper in one column."""
    sheets = []
    for number in range(pages):
        sheet = Sheet()
        if number == 0:
            sheet.put(100, 80, f"On the harbour, part {seed}", 18, BOLD)
        sheet.put(100, 130, f"{number + 1} Section of part {seed}", 12, BOLD)
        y = sheet.paragraph(100, 150, prose(5, seed + number), 400)
        sheet.paragraph(100, y + 8, prose(6, seed + 2 * number + 1), 400)
        sheets.append(sheet)
    return pdf(sheets)


def encrypted() -> bytes:
    """A file that opens with a password only."""
    key = "<" + "41" * 32 + ">"
    lock = f"/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O {key} /U {key} >> /ID [<00> <00>]"
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] >>"
    return assemble(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page], lock)


def looping() -> bytes:
    """A page tree that contains itself."""
    return assemble(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 9 >>",
            "<< /Type /Pages /Kids [2 0 R] >>",
        ]
    )


def endless(count: int) -> bytes:
    """A file that claims very many pages and has one."""
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] >>"
    kids = " ".join(["3 0 R"] * count)
    return assemble(["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {count} >>", page])


def one_page(content: bytes) -> bytes:
    font = f"<< /Type /Font /Subtype /Type1 /BaseFont /{ROMAN} /Encoding /WinAnsiEncoding >>"
    fonts = "/Resources << /Font << /F0 4 0 R >> >>"
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] {fonts} /Contents 5 0 R >>"
    return assemble(
        ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page, font, content]
    )


def bomb(size: int) -> bytes:
    """A few kilobytes that unpack to very many."""
    return one_page(stream(b" " * size, filters=2))


def torrent(count: int) -> bytes:
    """A page with so many letters that reading them takes long."""
    place = "BT /F0 0.2 Tf 1 0 0 1 {} {} Tm ({}) Tj ET".format
    lines = [place(20 + 30 * (i % 18), 20 + 0.4 * (i // 18), "abcdefghij" * 10) for i in range(count // 100)]
    return one_page(stream("\n".join(lines).encode()))
