"""Draw one answer of `idiograph attribute --json` as a small picture for the front page: who, how sure, what carries it.

idiograph attribute indexes/federalist paper-51.txt --json > answer.json
python scripts/answer_picture.py answer.json "Federalist 51" docs/answer.svg
"""

import html
import json
import sys
from pathlib import Path
from typing import Any

WIDTH, LINE, LEFT = 960, 26, 280  # LEFT: where the zero of the bars is
UNIT = 60  # pixels for a power of ten
INK, SOFT, FOR, AGAINST = "#1d2433", "#5b6577", "#0f766e", "#b45309"
CANDIDATES = 3


def main() -> int:
    answer, title, target = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), sys.argv[2], Path(sys.argv[3])
    target.write_text(draw_answer(next(iter(answer.values())), title), encoding="utf-8")
    return 0


def draw_answer(asked: dict[str, Any], title: str) -> str:
    """The candidates with their ratios, what tells the first from the second, and how often such an answer is right."""
    first, second = asked["candidates"][:2]
    one, other = (" and ".join(each["names"]) for each in (first, second))
    rows = [write(20, f"Who wrote {title}? (powers of ten)", INK, bold=True)]
    rows += [draw_bar(", ".join(c["names"]), c["llr"], in_words(c)) for c in asked["candidates"][:CANDIDATES]]
    rows += [write(20, f"What speaks for {one} and not for {other}, before bounds", INK, bold=True)]
    rows += [draw_bar(name, value) for name, value in differences(first, second)]
    rows += [write(20, says(asked), SOFT)]
    return frame(rows, f"Who wrote {title}? {one}, log10 ratio {first['llr']:+.2f}")


def in_words(candidate: dict[str, Any]) -> str:
    return candidate["words"] + (" · topic may explain it" if candidate["topic_warning"] else "")


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, float]]:
    """What each method adds to the one and not to the other, the most first; what is no method is the same for both."""
    lower = dict(second["shares"])
    found = [(name, value - lower[name]) for name, value in first["shares"] if name not in ("prior", "bound")]
    return sorted(found, key=lambda each: -each[1])


def frame(rows: list[str], label: str) -> str:
    height = LINE * len(rows) + 20
    body = "\n".join(f'<g transform="translate(0,{LINE * at + 30})">{row}</g>' for at, row in enumerate(rows))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif"'
    about = f'font-size="15" role="img" aria-label="{html.escape(label)}"'
    return f'{head} {about}>\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'


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
    bar = (
        f'<rect x="{start:.0f}" y="-12" width="{long:.0f}" height="14" rx="3" fill="{FOR if value > 0 else AGAINST}"/>'
    )
    beside = write(round(max(start + long, LEFT)) + 8, f"{value:+.2f}  {words}".rstrip(), SOFT)
    return write(40, name, INK) + bar + beside


if __name__ == "__main__":
    sys.exit(main())
