"""Draw one answer of `idiograph attribute --json` as a small picture for the front page: who, how sure, what carries it.

    idiograph attribute indexes/federalist paper-51.txt --json > answer.json
    python scripts/answer_picture.py answer.json "Federalist 51" docs/answer.svg
"""

import html
import json
import sys
from pathlib import Path
from typing import Any

WIDTH, LINE, LEFT = 820, 26, 330  # LEFT: where the zero of the bars is
UNIT = 90  # pixels for a power of ten
INK, SOFT, FOR, AGAINST = "#1d2433", "#5b6577", "#0f766e", "#b45309"
CANDIDATES = 3


def main() -> int:
    answer, title, target = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), sys.argv[2], Path(sys.argv[3])
    [asked] = [value for name, value in answer.items() if name != "command"]
    target.write_text(draw_answer(asked, title), encoding="utf-8")
    return 0


def draw_answer(asked: dict[str, Any], title: str) -> str:
    """The candidates with their ratios, what each method adds to the first, and how often such an answer is right."""
    first = asked["candidates"][0]
    rows = [write(20, "Who wrote " + title + "?", INK, bold=True)]
    rows += [draw_bar(", ".join(c["names"]), c["llr"], c["words"]) for c in asked["candidates"][:CANDIDATES]]
    rows += [write(20, f"What carries the answer “{', '.join(first['names'])}”", INK, bold=True)]
    rows += [draw_bar(name, value) for name, value in first["shares"] if value]
    rows += [write(20, says(asked), SOFT)]
    height = LINE * len(rows) + 20
    body = "\n".join(f'<g transform="translate(0,{LINE * at + 30})">{row}</g>' for at, row in enumerate(rows))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif"'
    label = html.escape(f"Who wrote {title}? {first['names'][0]}, log10 ratio {first['llr']:+.2f}")
    return f'{head} font-size="15" role="img" aria-label="{label}">\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'


def says(asked: dict[str, Any]) -> str:
    check = asked["check"]
    best = check["methods"]["best"]
    return (
        f"On the {check['texts']} texts of this library, each left out in turn, such answers are right in "
        f"{best['right']} of {best['of']}."
    )


def write(x: int, words: str, colour: str, bold: bool = False) -> str:
    weight = ' font-weight="700"' if bold else ""
    return f'<text x="{x}" fill="{colour}"{weight}>{html.escape(words)}</text>'


def draw_bar(name: str, value: float, words: str = "") -> str:
    """One line: a name, a bar that begins at ratio 1, and the power of ten."""
    start, long = LEFT + min(0.0, value) * UNIT, abs(value) * UNIT
    bar = f'<rect x="{start:.0f}" y="-12" width="{long:.0f}" height="14" rx="3" fill="{FOR if value > 0 else AGAINST}"/>'
    beside = write(round(max(start + long, LEFT)) + 8, f"{value:+.2f}  {words}".rstrip(), SOFT)
    return write(40, name, INK) + bar + beside


if __name__ == "__main__":
    sys.exit(main())
