"""The tutorials show what the program prints: their outputs are there, and come out again where the texts are at hand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("tutorial*.md"))
OUTPUT = re.compile(r"^<!-- output.*?-->\n```text\n(.*?)^```", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_output_is_there(page):
    outputs = OUTPUT.findall(page.read_text(encoding="utf-8"))
    assert len(outputs) > 2
    assert all(output.strip() for output in outputs)


def test_the_front_page_says_what_the_tutorial_prints():
    tutorial, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/tutorial.md", "README.md"))
    right, asked = re.search(r"On texts of this library this is right in (\d+) of (\d+)", tutorial).groups()
    row = next(line for line in readme.splitlines() if line.startswith("| Federalist"))
    assert f"**{right} of {asked}**" in row


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_outputs_come_out_again(page):
    corpora = ROOT.parent / "shared" / "corpora"
    if not corpora.is_dir():
        pytest.skip("the corpora are not beside the repository")
    command = [sys.executable, ROOT / "scripts" / "tutorial.py", corpora, page, "--check"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
