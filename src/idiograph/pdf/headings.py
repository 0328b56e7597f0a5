"""Which lines are headings, and what a heading's words say about the text under it."""

import re
from collections.abc import Sequence

from idiograph.pdf.clutter import BOLD
from idiograph.pdf.layout import Design, Line

NUMBERED = re.compile(r"(?:(?:chap(?:ter|itre)|section|part(?:ie)?)\s+)?(?:\d+(?:\.\d+)*|[IVX]+)[.):]?\s+(?=\w)", re.I)
FIRST = re.compile(r"(?:1|I)[.):]?\s+(?=\w)")
ABSTRACT = re.compile(
    r"(?:abstract|a b s t r a c t|résumé|resumen|resumo|riassunto|sommario|zusammenfassung)\b[\s.:—–-]*", re.I
)
SUMMARY = re.compile(r"summary\W*", re.I)
KEYWORDS = re.compile(
    r"(?:key ?-?words?|mots[ -]?cl[ée]s?|index terms|palabras clave|schlüsselwörter|jel |ccs concepts|pacs)", re.I
)
OPENING = re.compile(
    r"(?:introduction|introducción|introduzione|introdução|einleitung|background|contexte|motivation)\b", re.I
)
REFERENCES = re.compile(
    r"(?:references?(?: cited| and notes)?|références?(?: bibliographiques)?|bibliograph(?:y|ie)|literature(?: cited)?"
    r"|works cited|literatur(?:verzeichnis)?|bibliograf[ií]a|referencias(?: bibliográficas)?|referências|riferimenti.*)\W*",
    re.I,
)
THANKS = re.compile(r"(?:acknowledge?ments?|remerciements?|danksagung|agradecimientos|ringraziamenti)\b", re.I)
BACK = re.compile(
    r"(?:appendi(?:x|ces)|annexe?s?|supplement(?:ary|al)|supporting information|additional (?:files?|information)"
    r"|(?:competing|conflicts? of|declaration of)(?: \w+)* interests?|conflits? d['’]intérêts?|disclosures?|declarations?"
    r"|authors?['’]?s?['’]? (?:contributions?|details|information|note)|about the authors?|contributions? des auteurs"
    r"|funding|financement|data (?:and code )?availability|availability of|code availability|ethic(?:s|al)"
    r"|consent (?:for|to)|publisher['’]s note|open access|abbreviations|orcid|(?:end ?)?notes$)\b",
    re.I,
)
END = ".?!:…"


def ends_sentence(text: str) -> bool:
    return text.rstrip("\"'”’»)] ")[-1:] in END if text.strip() else False


def plain_head(text: str) -> str:
    """A heading without its number."""
    return NUMBERED.sub("", text.strip(), count=1)


def mark_headings(lines: Sequence[Line], design: Design) -> list[bool]:
    """For each line, whether it is a heading by its looks or its words."""
    runs = style_runs(lines)
    marks: list[bool] = []
    for index, line in enumerate(lines):
        above = lines[index - 1] if index else None
        below = lines[index + 1] if index + 1 < len(lines) else None
        named = kind_of(line.text) == "references" and not line.text[:1].islower()
        looks = runs[index] <= 3 and is_heading(line, above, below, design, after=bool(marks and marks[-1]))
        marks.append(named or looks)
    return marks


def style_runs(lines: Sequence[Line]) -> list[int]:
    """How many lines in a row, this one among them, share font and size."""
    runs: list[int] = []
    start = 0
    for index in range(1, len(lines) + 1):
        if index == len(lines) or line_style(lines[index]) != line_style(lines[start]):
            runs += [index - start] * (index - start)
            start = index
    return runs


def line_style(line: Line) -> tuple[str, float]:
    return line.font, round(line.size, 1)


def is_heading(line: Line, above: Line | None, below: Line | None, design: Design, after: bool) -> bool:
    """Whether a line looks like a heading: short, and larger, bolder or otherwise unlike the text around it."""
    letters = [c for c in line.text if c.isalpha()]
    if len(letters) < 3 or len(line.text.split()) > 16 or line.text[-1] in ",;-" or line.size < 0.9 * design.size:
        return False
    if line.text[-1] in "." and len(line.text.split()) > 8:
        return False
    if design.is_larger(line.size):
        return True
    inked = [w for w in line.words if any(c.isalpha() for c in w.text)]
    short = is_narrow(line, design)
    apart = after or has_space_above(line, above, design)
    bold = all(BOLD.search(w.font) for w in inked) and not any(map(BOLD.search, design.fonts))
    if bold or is_capitals(letters):
        return apart and (short or not ends_sentence(line.text))
    other = all(w.font not in design.fonts for w in inked)
    opens = line.text[0].isupper() or bool(NUMBERED.match(line.text)) or after
    if not (other and apart and opens) or ends_sentence(line.text) or below is None:
        return False
    return short if below.font in design.fonts else line_style(below) == line_style(line) and is_narrow(below, design)


def is_narrow(line: Line, design: Design) -> bool:
    return line.width < 0.9 * design.column(line).width


def is_capitals(letters: Sequence[str]) -> bool:
    return len(letters) > 3 and sum(c.isupper() for c in letters) > 0.9 * len(letters)


def has_space_above(line: Line, above: Line | None, design: Design) -> bool:
    """Whether more than the usual space is above a line, or another column or page."""
    if above is None or above.page != line.page or line.base < above.base:
        return True
    return line.base - above.base > 1.12 * design.pitch


def kind_of(text: str) -> str:
    """What a heading announces: abstract, summary, keywords, acknowledgement, annex, references, or body.

    >>> kind_of("5. Références bibliographiques"), kind_of("Authors' contributions"), kind_of("2.1 Overview")
    ('references', 'annex', 'body')
    """
    plain = plain_head(text)
    whole = {"references": REFERENCES, "abstract": ABSTRACT, "summary": SUMMARY}
    start = {"keywords": KEYWORDS, "acknowledgement": THANKS, "annex": BACK}
    for kind, pattern in whole.items():
        if pattern.fullmatch(plain):
            return kind
    return next((kind for kind, pattern in start.items() if pattern.match(plain)), "body")


def opens_body(text: str) -> bool:
    return bool(FIRST.match(text) or OPENING.match(plain_head(text)))
