"""Fuzz the readers of foreign input with coverage guidance: anything but a value or an InputError is a finding.

    python benchmarks/fuzz.py tei|jats|text|hal [FOLDER_WITH_SEEDS …] [-max_total_time=60] [-runs=100000]

Everything after the name goes to libFuzzer, which prints the executions and keeps what it finds as `crash-*`.
Needs `pip install atheris`.
"""

import contextlib
import json
import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["idiograph"]):
    from idiograph.corpus.clean import clean_text
    from idiograph.corpus.filters import document_fault, span_fault
    from idiograph.corpus.jats import read_jats
    from idiograph.corpus.tei import read_tei
    from idiograph.errors import InputError
    from idiograph.hal.metadata import Unfit, to_record


def tei(data: bytes) -> None:
    with contextlib.suppress(InputError):
        read_tei(data).text()


def jats(data: bytes) -> None:
    with contextlib.suppress(InputError):
        read_jats(data).text()


def text(data: bytes) -> None:
    plain = clean_text(data.decode("utf-8", "surrogateescape"))
    document_fault(plain)
    span_fault(plain)


def hal(data: bytes) -> None:
    with contextlib.suppress(ValueError, RecursionError):  # what json says of bytes that are not JSON
        document = json.loads(data)
        if isinstance(document, dict):
            with contextlib.suppress(Unfit):
                to_record(document)


TARGETS: dict[str, Callable[[bytes], None]] = {"tei": tei, "jats": jats, "text": text, "hal": hal}


def main() -> None:
    if len(sys.argv) < 2:
        print(f"name what to fuzz: {', '.join(TARGETS)}")
        return
    if sys.argv[1] not in TARGETS:
        sys.exit(f"'{sys.argv[1]}' is not among what can be fuzzed: {', '.join(TARGETS)}")
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
