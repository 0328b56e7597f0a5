"""What the documentation tells people to type works, and says what the program says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from idiograph.synth.anthology import anthology
from tests.standin.archive import make_archive
from tests.standin.hal import HalStandIn

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
STAND_IN = "http://127.0.0.1:8765"  # as the pages have it
LINKED = ("my-texts", "letter.txt", "diary.txt", "federalist", "disputed", "novelas", "unknown.txt", "quick.toml")
WRITERS = ("Clara", "Greta", "Ivo", "Mara", "Wren")  # a desk with few texts, so that the commands are quick
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(language):
    return [
        pytest.param(page, body, id=f"{page.name}-{number}")
        for page in PAGES
        for number, (found, body) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
        if found == language
    ]


@pytest.fixture
def newcomer(monkeypatch, tmp_path):
    """An empty folder, and an idiograph of which nothing was imported: a block must import and write what it uses."""
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as modules:
        for name in [name for name in sys.modules if name.partition(".")[0] == "idiograph"]:
            modules.delitem(sys.modules, name)
        yield
        for name in [name for name in sys.modules if name.partition(".")[0] == "idiograph"]:
            del sys.modules[name]


@pytest.mark.parametrize(("page", "body"), blocks("python"))
@pytest.mark.usefixtures("newcomer")
def test_python_blocks_run(page, body):
    exec(compile(body, page.name, "exec"), {"__name__": "__main__"})


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """The files that the pages speak of, with few and short texts so that the commands are quick."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "my-texts").mkdir()
    for essay in anthology():
        name = essay.authors[0].name
        if name.split()[0] not in WRITERS:
            continue
        (folder / "my-texts" / f"{name}_{essay.domains[0]}.txt").write_text(essay.text, encoding="utf-8")
    for target, source in {"letter.txt": "Mara Nield_bees", "diary.txt": "Mara Nield_maps"}.items():
        (folder / "my-texts" / f"{source}.txt").rename(folder / target)
    (folder / "disputed").mkdir()
    for target, source in {"disputed/51.txt": "letter.txt", "disputed/55.txt": "diary.txt"}.items():
        (folder / target).write_bytes((folder / source).read_bytes())
    (folder / "federalist").symlink_to("my-texts")
    (folder / "novelas").mkdir()
    for number, text in enumerate(sorted((folder / "my-texts").iterdir())):
        name = "Valera y Alcala Galiano Juan_Pepita-Jimenez-2017.txt" if number == 0 else text.name
        (folder / "novelas" / name).write_bytes(text.read_bytes())
    (folder / "unknown.txt").symlink_to("letter.txt")
    (folder / "quick.toml").write_text("[download]\ninterval = 0\n")
    return folder


@pytest.fixture(scope="module")
def archive_address():
    with HalStandIn(make_archive(200)) as server:
        yield server.url


def commands(page):
    for language, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            yield from re.findall(r"^\$ (idiograph [^#\n]*)", body, re.M)


@pytest.mark.parametrize("page", [p for p in PAGES if any(commands(p))], ids=lambda p: p.name)
def test_commands_run_in_the_order_they_are_given(page, desk, archive_address, monkeypatch, capsys):
    from idiograph import cli

    work = desk / page.stem
    work.mkdir()
    for name in LINKED:
        (work / name).symlink_to(desk / name)
    monkeypatch.chdir(work)
    for line in commands(page):
        hurried = f"{line} --recipe quick.toml" if line.startswith("idiograph download") else line
        monkeypatch.setattr(sys, "argv", shlex.split(hurried.replace(STAND_IN, archive_address)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code, f"{line}: {capsys.readouterr().err}"


def test_the_command_line_page_is_what_help_says():
    command = [sys.executable, ROOT / "scripts" / "cli_docs.py", "--check"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_readme_is_short_and_names_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    assert "make demo" in text
    assert "make test" in text
