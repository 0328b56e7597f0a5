"""What the whole line writes, kept as checksums: a change of the code that is meant to change no output changes none here.

Everything is typed as a person types it. Times, versions and fingerprints are left out, numbers are rounded to
`DIGITS`, Parquet tables and those of an index are compared by their rows, weights by the size and spread of each tensor.

    IDIOGRAPH_GOLDEN=write .venv/bin/python -m pytest tests/test_golden.py -m slow     # new checksums
    IDIOGRAPH_GOLDEN_KEEP=/tmp/after .venv/bin/python -m pytest …                      # keep what they are of, for `diff -r`
"""

import hashlib
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import load_file

log = logging.getLogger("golden")  # the seconds of each step: --log-cli-level=info

EXPECTED = Path(__file__).with_name("golden.json")
DIGITS = 4  # of a number; other processors and thread counts differ from the sixth on
ZERO = 1e-6  # what is nearer to 0 is rounding
PASSAGES = "spans"  # a folder of an index, whose files have the names of changes

STEADY_ENVIRONMENT = {  # one thread, and the instructions that every machine of the last ten years has
    "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false",
    "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2", "OPENBLAS_CORETYPE": "Haswell",
    "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1",
}  # fmt: skip

VOLATILE_KEYS = {  # of JSON, at any depth; so is every key with `seconds` in it
    "created", "made", "date", "tokens/s", "fingerprint", "sha256", "contentSize", "version", "index version",
    "__version__", "transformers_version",
}  # fmt: skip
VOLATILE_TEXT = (
    (re.compile(r"\d{8}T\d{6,}-[0-9a-f]{8}"), "<change of an index>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.:+Z]*"), "<time>"),
    (re.compile(r"\b[0-9a-f]{16}\b|\b[0-9a-f]{64}\b"), "<fingerprint>"),
    (re.compile(r"\bidiograph \d+\.\d+\.\d+ · \d{4}-\d\d-\d\d"), "idiograph <version> · <date>"),
    (re.compile(r"\bidiograph \d+\.\d+\.\d+"), "idiograph <version>"),
)
PLAIN_KINDS = {  # how a column's kind is written down, by Arrow's name of it
    **{f"{sign}int{size}": f"{'UInt' if sign else 'Int'}{size}" for sign in ("", "u") for size in (8, 16, 32, 64)},
    "halffloat": "Float16", "float": "Float32", "double": "Float64", "bool": "Boolean",
    "string": "String", "large_string": "String", "binary": "Binary", "large_binary": "Binary",
    "fixed_size_binary": "Binary",
}  # fmt: skip
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Step:
    """One command, typed in the folder of its line. `without`: what of its files is another library's, or measured."""

    name: str
    command: str
    status: int = 0
    without: tuple[str, ...] = ()


NOT_OURS = ("README.md", "*.py")  # of a model: a card by sentence-transformers, and code
TIMES = ("tables/cost-*",)

ANTHOLOGY = (
    Step("corpus", "corpus anthology -o corpus"),
    Step("mine", "mine corpus -o triplets --seed 3 --recipe halves.toml"),
    Step("audit", "audit triplets"),
    Step("topic", "topic triplets -o topic --split all"),
    Step("evaluate", "evaluate bm25 delta default triplets --patch whole --patch ngram:3 -o report"),
    Step("index", "index corpus -o index"),
    Step("attribute", "attribute index a.txt --html attribute.html --csv attribute.csv"),
    Step("verify", "verify a.txt b.txt"),
    Step("explain", "explain a.txt b.txt --html explain.html"),
    Step(
        "train", "train triplets -o model --backbone tiny --patch ngram:2 --lr 1e-3 --batch 8 --steps 6 --device cpu",
        without=NOT_OURS,
    ),
    Step(
        "study",
        "study anthology -o study --quick --steps 1 --rows 40 --anchors 16 --pool 40 --backbone tiny --device cpu",
        without=TIMES,
    ),
)  # fmt: skip
SYNTH = (
    Step("corpus", "corpus synth:documents=100,authors=24,topics=4 -o corpus --signals"),
    Step("mine", "mine corpus -o triplets --rule base --rule unrestricted --rule ict --sentences 2 --sentences 4"),
    Step("audit", "audit triplets"),
    Step("mine-paper", "mine corpus -o paper --preset paper"),
    Step("audit-paper", "audit paper", status=1),
    Step("topic", "topic triplets paper -o topic --split test"),
    Step(
        "evaluate",
        "evaluate bm25 delta default triplets --config base-4 --patch word --patch ngram:1 --pool 40 -o report --trec",
    ),
    Step("compare", "compare report"),
    Step("index", "index corpus -o index --patch whole --dtype int4 --passages-per-document 2"),
    Step("attribute", "attribute index mixed.txt --by author --rolling --window 120 --patch whole"),
    Step("verify", "verify a.txt b.txt --corpus corpus --patch whole"),
    Step("explain", "explain a.txt b.txt --patch word --score symmetric"),
    Step(
        "train",
        "train triplets/base-4 -o model --backbone tiny --patch whole --set head=linear --set dim=16 --loss hybrid"
        " --lr 1e-3 --batch 8 --steps 6 --device cpu",
        without=NOT_OURS,
    ),
)
LINES = {"anthology": ANTHOLOGY, "synth": SYNTH}


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_the_line_writes_what_it_wrote(line, tmp_path, backbones):
    work, kept = tmp_path / line, tmp_path / "normalised" / line
    work.mkdir()
    shutil.copytree(backbones["modernbert"], work / "tiny")  # its tokenizer is the one that is learned alike each time
    for step in LINES[line]:
        run_step(step, work, kept / step.name)
        if step.name == "corpus":
            write_questions(work)
            (work / "halves.toml").write_text(
                "[mine]\nfractions = [0.5, 0.2, 0.3]\n"
            )  # twelve writers, some in each split
    if keep := os.environ.get("IDIOGRAPH_GOLDEN_KEEP"):
        shutil.copytree(kept, Path(keep) / line, dirs_exist_ok=True)
    found = {f"{line} {step.name}": checksums_of(kept / step.name) for step in LINES[line]}
    if os.environ.get("IDIOGRAPH_GOLDEN") == "write":
        write_expected(found)
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    differences = [
        each for step, files in found.items() for each in list_differences(step, files, expected.get(step, {}))
    ]
    assert not differences, "\n".join([f"not as it was (what there is now: {kept}):", *differences])


def run_step(step: Step, work: Path, kept: Path) -> None:
    """Run a step, and keep what it printed and wrote without what differs from run to run."""
    before = times_of_change(work)
    began = time.monotonic()
    typed = [sys.executable, "-m", "idiograph", *step.command.split(), "--json"]
    done = subprocess.run(typed, cwd=work, env={**os.environ, **STEADY_ENVIRONMENT}, capture_output=True, text=True)
    assert done.returncode == step.status, f"idiograph {step.command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    log.info("%5.1f s  %s %s", time.monotonic() - began, work.name, step.name)
    write_text(kept / "printed.json", mask_volatile(show_json(done.stdout)))
    for path, changed in times_of_change(work).items():
        if before.get(path) != changed and not any(path.match(pattern) for pattern in step.without):
            write_text(kept / f"{path.relative_to(work)}.txt", normalise(path))


def times_of_change(folder: Path) -> dict[Path, int]:
    """Each file that is not hidden, or the passages of an index as a whole, and when it was last changed."""
    found: dict[Path, int] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            unit = next((parent for parent in path.parents if parent.name == PASSAGES), path)
            found[unit] = max(found.get(unit, 0), path.stat().st_mtime_ns)
    return found


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_questions(work: Path) -> None:
    """Two texts by one writer, and one of which the second half is by another."""
    shards = sorted((work / "corpus" / "en").glob("train-*.parquet"))
    documents = pa.concat_tables(map(pq.read_table, shards)).sort_by("id").to_pylist()
    first = documents[0]
    same = next(d for d in documents[1:] if d["authors"] == first["authors"])
    other = next(d for d in documents if d["authors"] != first["authors"])
    texts = {"a": first["text"], "b": same["text"], "mixed": f"{first['text']}\n\n{other['text']}"}
    for name, text in texts.items():
        (work / f"{name}.txt").write_text(text, encoding="utf-8")


def checksums_of(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in files}


def list_differences(step: str, found: Mapping[str, str], expected: Mapping[str, str]) -> Iterator[str]:
    for file in sorted(found.keys() | expected.keys()):
        if file not in found:
            yield f"{step}: {file} is not written any more"
        elif file not in expected:
            yield f"{step}: {file} is new"
        elif found[file] != expected[file]:
            yield f"{step}: {file} differs"


def write_expected(found: Mapping[str, Mapping[str, str]]) -> None:
    """Replace the checksums of these steps; the lines are to be run one after the other."""
    known = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.is_file() else {}
    line = next(iter(found)).split()[0]
    others = {step: files for step, files in known.items() if step.split()[0] != line}
    EXPECTED.write_text(json.dumps({**others, **found}, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def normalise(path: Path) -> str:
    return mask_volatile((read_passages if path.is_dir() else READERS.get(path.suffix, read_text))(path))


def mask_volatile(text: str) -> str:
    text = NUMBER.sub(lambda number: round_number(float(number[0])), text)
    for pattern, instead in VOLATILE_TEXT:
        text = pattern.sub(instead, text)
    return text


def round_number(value: float) -> str:
    return "0" if abs(value) < ZERO else f"{value:.{DIGITS}g}"


def read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def show_json(text: str) -> str:
    """JSON without what is volatile; a command may say where it wrote before it prints."""
    begins = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=0)
    return json.dumps(drop_volatile(json.loads(text[begins:])), ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_json_lines(path: Path) -> str:
    return "".join(show_json(line) for line in path.read_text(encoding="utf-8").splitlines())


def drop_volatile(value: Any) -> Any:
    if isinstance(value, Mapping):
        lasting = {key: each for key, each in value.items() if key not in VOLATILE_KEYS and "seconds" not in key}
        return {key: drop_volatile(each) for key, each in lasting.items()}
    if isinstance(value, list):
        return [drop_volatile(each) for each in value if not is_table_of_times(each)]
    return value


def is_table_of_times(value: Any) -> bool:
    """Whether it is a table of times that were taken on this machine."""
    return isinstance(value, Mapping) and str(value.get("name", "")).startswith("cost-")


def read_page(path: Path) -> str:
    """A page without its style sheet, its figures, and the times that were taken: the last column of some tables."""
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", read_text(path), flags=re.DOTALL)
    return re.sub(r"<table>.*?</table>", lambda table: drop_times(table[0]), text, flags=re.DOTALL)


def drop_times(table: str) -> str:
    last = r"<td class=.n.>(?:(?!<td).)*</td></tr>"
    return re.sub(last, "</tr>", table) if re.search("(?:measured|seconds)</th></tr>", table) else table


def read_figure(path: Path) -> str:
    """What is written on a figure (Matplotlib repeats it in comments), and how many shapes there are."""
    text = read_text(path)
    return "\n".join([*re.findall(r"<!-- (.*?) -->", text), f"{text.count('<path')} paths", ""])


def read_parquet(path: Path) -> str:
    return show_table(pq.ParquetFile(path).read())


def read_passages(folder: Path) -> str:
    tables = [pa.ipc.open_file(path).read_all() for path in sorted(folder.iterdir())]
    return show_table(pa.concat_tables(tables).sort_by("id"))


def show_table(table: pa.Table) -> str:
    columns = [f"{field.name}: {kind_of_column(field.type)}" for field in table.schema]
    rows = [json.dumps(row, ensure_ascii=False, default=summarise, sort_keys=True) for row in table.to_pylist()]
    return "\n".join([*columns, *rows, ""])


def kind_of_column(kind: pa.DataType) -> str:
    """What a column holds, whichever of Arrow's widths it is in."""
    if pa.types.is_fixed_size_list(kind):
        return f"Array({kind_of_column(kind.value_type)}, shape=({kind.list_size},))"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"List({kind_of_column(kind.value_type)})"
    if pa.types.is_dictionary(kind):
        return kind_of_column(kind.value_type)
    if pa.types.is_struct(kind):
        return "Struct({" + ", ".join(f"'{field.name}': {kind_of_column(field.type)}" for field in kind) + "})"
    return PLAIN_KINDS[str(kind).partition("[")[0]]


def summarise(value: Any) -> Any:
    """Vectors as bytes: their size and spread, as a number of them may be rounded up here and down there."""
    if not isinstance(value, bytes):
        return str(value)
    return {"bytes": len(value), "spread": f"{np.frombuffer(value, np.int8).std():.3g}"}


def read_arrays(path: Path | io.BytesIO) -> str:
    with np.load(path) as arrays:
        return "".join(
            f"{name} {arrays[name].dtype} {arrays[name].shape}: {show_numbers(arrays[name])}\n" for name in arrays
        )


def show_numbers(array: np.ndarray) -> str:
    if array.dtype.kind == "f":
        return " ".join(round_number(float(each)) for each in array.ravel())
    return " ".join(map(str, array.ravel().tolist()))


def read_archive(path: Path) -> str:
    """The members of the zip file of a run of a study: JSON and arrays."""
    found = []
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            raw = archive.read(name)
            text = read_arrays(io.BytesIO(raw)) if name.endswith(".npz") else show_json(raw.decode())
            found.append(f"{name}\n{text}")
    return "".join(found)


def read_weights(path: Path) -> str:
    found = []
    for name, tensor in sorted(load_file(path).items()):
        spread = float(tensor.std())
        found.append(
            f"{name} {tensor.dtype} {tensor.shape}: {round_number(float(np.abs(tensor).mean()))} {round_number(spread)}\n"
        )
    return "".join(found)


READERS: dict[str, Callable[[Path], str]] = {
    ".json": lambda path: show_json(read_text(path)),
    ".jsonl": read_json_lines,
    ".html": read_page,
    ".svg": read_figure,
    ".parquet": read_parquet,
    ".arrow": lambda path: show_table(pa.ipc.open_file(path).read_all()),
    ".npz": read_arrays,
    ".zip": read_archive,
    ".safetensors": read_weights,
}
