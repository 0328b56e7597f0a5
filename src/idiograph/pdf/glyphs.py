"""PDF pages as words with their place on the page, by pypdfium2. Knows fonts and boxes, nothing of columns or prose.

Coordinates are in points from the top left corner of the upright page: `base` grows downwards. A page whose text runs
sideways is turned; text that runs another way than most of its page (stamps in the margin) is left out. One thread at a
time: pdfium is not made for several, and takes the process with it.
"""

import ctypes
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from unicodedata import category, normalize

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from idiograph.errors import InputError

Handle = Any  # a pointer of pdfium's
LETTER = (0.0, 0.0, 612.0, 792.0)
HYPHEN = "\x02"  # what pdfium puts for a hyphen that ends a line
LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
MAX_PROPERTY = 500  # characters
ACCENTS = {"´": "\u0301", "`": "\u0300", "ˆ": "\u0302", "¨": "\u0308", "˜": "\u0303", "¸": "\u0327", "ˇ": "\u030c"}
ACCENTS |= {"˘": "\u0306", "˚": "\u030a", "˙": "\u0307", "¯": "\u0304", "˝": "\u030b", "˛": "\u0328"}


@dataclass(frozen=True, slots=True)
class Word:
    """Letters in one font that stand together; `glued` when no space parts them from the word before."""

    text: str
    left: float
    right: float
    base: float
    size: float
    font: str
    glued: bool


@dataclass(frozen=True, slots=True)
class Page:
    """The words of a page in the order in which the file draws them."""

    number: int
    width: float
    height: float
    words: tuple[Word, ...]


@dataclass(slots=True)
class TextRun:
    """What one text operator of the file draws: characters with left and right edge, on one baseline."""

    base: float
    size: float
    font: str
    turn: int
    chars: list[tuple[str, float, float]]


@dataclass(frozen=True, slots=True)
class Frame:
    """The visible box of a page in the file's own coordinates, which count from below."""

    left: float
    bottom: float
    right: float
    top: float

    def rotate(self, x: float, y: float, turn: int) -> tuple[float, float]:
        """A point as seen from the top left corner when text that runs in direction `turn` (quarters) is upright."""
        if turn == 0:
            return x - self.left, self.top - y
        if turn == 1:
            return y - self.bottom, x - self.left
        if turn == 2:
            return self.right - x, y - self.bottom
        return self.top - y, self.right - x

    def size(self, turn: int) -> tuple[float, float]:
        width, height = self.right - self.left, self.top - self.bottom
        return (width, height) if turn % 2 == 0 else (height, width)


def read_pages(data: bytes, max_pages: int) -> Iterator[Page]:
    """The pages of a PDF that can be read; a damaged page is passed over, a damaged file is an InputError."""
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        raise InputError(f"not a readable PDF: {failure_cause(error)}") from error
    with document:
        count = len(document)
        if count > max_pages:
            raise InputError(f"too many pages: {count}, more than {max_pages}")
        for number in range(count):
            with suppress(pdfium.PdfiumError):
                yield read_page(document[number], number)


def read_properties(data: bytes) -> dict[str, str]:
    """The title and author that a PDF gives of itself: often those of a template or a program, so a hint and no more."""
    try:
        with pdfium.PdfDocument(data) as document:
            found = document.get_metadata_dict(skip_empty=True)
    except pdfium.PdfiumError:
        return {}
    plain = {name.lower(): " ".join("".join(c if c.isprintable() else " " for c in str(found.get(name, ""))).split())
             for name in ("Title", "Author")}  # fmt: skip
    return {name: text[:MAX_PROPERTY] for name, text in plain.items() if text}


def failure_cause(error: pdfium.PdfiumError) -> str:
    """The part of pdfium's message that tells one failure from another."""
    text = str(error)
    return text[text.find("PDFium: ") + 8 :].rstrip(").").lower() if "PDFium: " in text else text.lower()


def read_page(page: pdfium.PdfPage, number: int) -> Page:
    frame = Frame(*(page.get_cropbox() or LETTER))
    text = page.get_textpage()
    runs = read_runs(text, frame)
    text.close()
    page.close()
    turns = Counter[int]()
    for run in runs:
        turns[run.turn] += len(run.chars)
    turn = turns.most_common(1)[0][0] if turns else 0
    width, height = frame.size(turn)
    words = tuple(w for w in join_words(runs, turn) if -1 <= w.base <= height + 1 and w.right > 0 and w.left < width)
    return Page(number, width, height, words)


def read_runs(text: pdfium.PdfTextPage, frame: Frame) -> list[TextRun]:
    """All characters of a page, by text object. Three calls a character: this loop is most of the cost."""
    page, box, runs, last = text.raw, raw.FS_RECTF(), [], -1
    edges = ctypes.byref(box)
    run = TextRun(0, 1, "", 0, [])
    for index in range(raw.FPDFText_CountChars(page)):
        char = clean_character(raw.FPDFText_GetUnicode(page, index))
        item = raw.FPDFText_GetTextObject(page, index)
        if not char or not item:
            run.chars.append((" ", 0, 0))
            continue
        address = ctypes.addressof(item.contents)
        if address != last:
            last, run = address, new_run(page, index, item, frame)
            runs.append(run)
        raw.FPDFText_GetLooseCharBox(page, index, edges)
        left, right = box.left - frame.left, box.right - frame.left
        if run.turn:
            one, _ = frame.rotate(box.left, box.bottom, run.turn)
            two, _ = frame.rotate(box.right, box.top, run.turn)
            left, right = min(one, two), max(one, two)
        run.chars.append((char, left, right))
    return runs


def clean_character(code: int) -> str:
    """A character that XML can hold, ligatures undone; a space for what has no meaning outside its font."""
    if code in LIGATURES:
        return LIGATURES[code]
    if code in (0x02, 0xAD):
        return HYPHEN
    if code < 0x20 or 0xD800 <= code <= 0xF8FF or 0x7F <= code < 0xA0 or code >= 0xFFF0:
        return chr(code) if 0x10000 <= code <= 0xEFFFF else " "
    return chr(code)


def new_run(page: Handle, index: int, item: Handle, frame: Frame) -> TextRun:
    matrix, x, y = raw.FS_MATRIX(), ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetMatrix(page, index, matrix)
    raw.FPDFText_GetCharOrigin(page, index, x, y)
    turn = round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4
    size = raw.FPDFText_GetFontSize(page, index) * math.hypot(matrix.c, matrix.d)
    _, base = frame.rotate(x.value, y.value, turn)
    return TextRun(base, max(size, 0.1), font_name(item), turn, [])


def font_name(item: Handle) -> str:
    font = raw.FPDFTextObj_GetFont(item)
    if not font:
        return ""
    name = ctypes.create_string_buffer(128)
    raw.FPDFFont_GetBaseFontName(font, name, 128)
    return name.value.decode("utf-8", "replace").rpartition("+")[2]


def join_words(runs: list[TextRun], turn: int) -> Iterator[Word]:
    """Words from characters: parted at spaces, at gaps wider than a fifth of the size, and where the font changes.

    A space without width is pdfium's guess, which is wrong where a raised or lowered sign follows closely.
    """
    end, base, size, spaced, accent = -math.inf, -math.inf, 0.0, math.inf, None
    for run in runs:
        if run.turn != turn:
            continue
        for text, left, right in words_and_spaces(compose(run.chars), run.size):
            if text in ACCENTS:
                accent = (text, left, right)
                continue
            if text == " ":
                spaced = max(spaced, right - left, 0.01) if accent is None else spaced
                continue
            if accent and left < (accent[1] + accent[2]) / 2 < right and category(text[0])[0] == "L":
                text = add_accent(text[0], accent[0]) + text[1:]
            size, room = max(size, run.size), 0.08 if spaced else 0.2
            near = abs(run.base - base) < 0.7 * run.size and -0.4 * size < left - end < room * run.size
            yield Word(text, left, right, run.base, run.size, run.font, near and spaced < 0.1)
            end, base, size, spaced, accent = right, run.base, run.size, 0.0, None


def words_and_spaces(chars: list[tuple[str, float, float]], size: float) -> Iterator[tuple[str, float, float]]:
    """The words of one run and the spaces between them."""
    letters: list[str] = []
    left = right = 0.0
    for char, start, end in chars:
        if letters and (char.isspace() or start - right > 0.2 * size or start < left - size):
            yield "".join(letters), left, right
            letters.clear()
        if char.isspace():
            yield " ", start, end
            continue
        if not letters:
            left = start
        letters.append(char)
        right = end
    if letters:
        yield "".join(letters), left, right


def compose(chars: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Letters with the accents that old fonts draw over them as signs of their own."""
    if not any(char in ACCENTS for char, _, _ in chars):
        return chars
    out: list[tuple[str, float, float]] = []
    accent: tuple[str, float, float] | None = None
    for char, left, right in chars:
        if accent and not char.isspace():
            over = left < (accent[1] + accent[2]) / 2 < right and category(char)[0] == "L"
            out += [(add_accent(char, accent[0]), left, right)] if over else [accent, (char, left, right)]
            accent = None
        elif (
            char in ACCENTS and out and out[-1][1] < (left + right) / 2 < out[-1][2] and category(out[-1][0])[0] == "L"
        ):
            out[-1] = (add_accent(out[-1][0], char), out[-1][1], out[-1][2])
        elif char in ACCENTS:
            accent = (char, left, right)
        elif not accent:
            out.append((char, left, right))
    return [*out, accent] if accent else out


def add_accent(letter: str, accent: str) -> str:
    plain = {"ı": "i", "ȷ": "j"}.get(letter, letter)
    return normalize("NFC", plain + ACCENTS[accent])
