"""Plain text made plain: broken encodings, invisible characters, archive cover pages and citations dealt with.

`clean` is the whole of it. It changes nothing that a writer chose: words, punctuation and paragraphs stay.
"""

import re
from unicodedata import is_normalized, normalize

from idiograph.corpus.citations import Citations, apply_citation_policy, check_citation_policy, mark_printed

# ftfy takes half a second for a megabyte. All that it can repair has one of these signs, and most lines have none:
# two characters in a row that are not ASCII, the first bytes of mojibake, controls, ligatures, wide letters, entities.
_SUSPECT = re.compile(
    "[^\x00-\x7f]{2}|[\x00-\x08\x0b-\x1f\x7f-\x9f\xa0\u00adÂÃÎÐŒœ\u1e9b\u2028\u2029\ud800-\udfff"
    "\u0132-\u0133\u0149\u01c4-\u01cc\u01f1-\u01f3\u3000\ufb00-\ufb06\uff01-\uffef\ufeff\ufff9-\ufffd]"
    "|&#?[a-zA-Z0-9]+;|\u200b|[β√≈‚вā]."
)
_SINGLE_QUOTES, _DOUBLE_QUOTES = re.compile("[\u02bc\u2018-\u201b]"), re.compile("[\u201c-\u201f]")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\u00ad]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_NEWLINES = re.compile(r"\n{3,}")

_COVER_HEAD = 4000  # characters in which the lines of a cover page are looked for
_ENGLISH = "HAL is a multi-?disciplinary open access archive"
_FRENCH = "(?:L['’]archive ouverte pluridisciplinaire HAL|HAL,? est une archive ouverte)"
_HAL_ID = r"[a-z]{2,12}-0\d{7}(?:v\d+)?"
_HOSTS = r"(?:[\w-]+\.)?(?:hal\.science|archives-ouvertes\.fr|inria\.fr|inrae\.fr)"


def _loose_pattern(*patterns: str) -> re.Pattern[str]:
    """Any of some patterns, with a line break or a few spaces wherever a space is written."""
    return re.compile("|".join(patterns).replace(" ", r"\s{1,3}"), re.S | re.I | re.M)


# The full sentences first, then their first halves: the second may stand in another column.
_COVER_SENTENCES = _loose_pattern(
    rf"{_ENGLISH}.{{0,500}}?private re-?\s?search cen-?\s?t(?:er|re)s\.?",
    rf"{_ENGLISH}.{{0,180}}?pub-?\s?lished or not\.",
    rf"{_FRENCH}.{{0,500}}?laboratoires publics ou priv[ée]s\.?",
    rf"{_FRENCH}.{{0,180}}?publi[ée]s ou non\.",
)
_COVER_LINES = _loose_pattern(
    rf"^(?:to cite this version|pour citer cette version)\s?:.{{0,1500}}?{_HAL_ID}[^\n]*$",
    rf"^[^\n]{{0,40}}HAL Id\s?:\s?{_HAL_ID}[^\n]*$",
    rf"^https?://{_HOSTS}/\S*$",
    r"^(?:submitted on|soumis le|preprint submitted on) \d{1,2} \w{3,9}\.? \d{4}\.?$",
    r"^distributed under a creative commons\b[^\n]{0,120}$",
)


def clean_text(text: str, citations: Citations = "mask") -> str:
    """A text fit for a corpus: repaired, without cover page, at most one blank line in a row, citations as asked.

    >>> clean_text("It is known (Smith et al., 2001).")
    'It is known [CITE].'
    """
    check_citation_policy(citations)
    plain = tidy_space(without_cover(tidy_space(repair(text))))
    if citations in ("keep", "published"):
        return plain
    return tidy_space(apply_citation_policy(mark_printed(plain), citations))


def repair(text: str) -> str:
    """Undo wrong decodings, entities, ligatures and curled quotes, drop controls and marks of direction; NFC."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    if not text.isascii() or "&" in text or _CONTROLS.search(text):
        text = "\n".join(_repair_line(line) for line in text.split("\n"))
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def _repair_line(line: str) -> str:
    if _SUSPECT.search(line):
        import ftfy

        line = _BIDI.sub("", _CONTROLS.sub("", ftfy.fix_text(line)))
    return line if line.isascii() else _DOUBLE_QUOTES.sub('"', _SINGLE_QUOTES.sub("'", line))


def without_cover(text: str) -> str:
    """Take out the sentences and lines that the HAL archive prints on the page that it puts before a paper."""
    if "HAL" in text:
        text = _COVER_SENTENCES.sub("", text)
    head = text[:_COVER_HEAD]
    if any(sign in head for sign in ("HAL", "hal.science", "archives-ouvertes", "hal-0", "tel-0")):
        text = _COVER_LINES.sub("", head) + text[_COVER_HEAD:]
    return text


def tidy_space(text: str) -> str:
    """Single spaces, no spaces at the ends of lines, and never more than one blank line."""
    lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    return _NEWLINES.sub("\n\n", lines).strip()
