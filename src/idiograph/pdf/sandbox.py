"""The embedded extractor behind walls: each PDF is parsed in a process of limited time and memory that may die.

A worker is sent a path and answers with a status and bytes (never with pickles: what parsed a hostile file is not
trusted). One that hangs is killed, one that dies is replaced; both cost their document alone.
"""

import struct
from concurrent.futures import CancelledError
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

from idiograph import runner
from idiograph.errors import InputError, ServiceError
from idiograph.pdf import Extraction
from idiograph.pdf.article import read_paper
from idiograph.pdf.glyphs import read_pages, read_properties
from idiograph.pdf.tei_writer import to_tei
from idiograph.recipe import ExtractRecipe
from idiograph.runner import Failure, NeverStarted, ProcessLimits, process_pool

STATUS = struct.Struct(">H")  # of an answer; what follows is TEI, or `reason: detail`


class EmbeddedExtractor:
    """An `Extractor` that needs nothing but this machine."""

    def __init__(self, recipe: ExtractRecipe) -> None:
        self.name = embedded_name()
        self.slots = 1 if recipe.runner == "inline" else recipe.workers or runner.cores()
        parse = partial(answer_request, max_pages=recipe.max_pages, max_bytes=recipe.max_bytes)
        self.pool = process_pool(parse, self.slots, ProcessLimits(recipe.timeout, recipe.memory))

    def __call__(self, pdf: Path) -> Extraction:
        try:
            answer = self.pool.call(pdf)
        except NeverStarted as error:
            hint = f"see why: python -m {__name__}"
            raise ServiceError(f"a worker of the extractor did not start ({error}); {hint}") from error
        except CancelledError:
            raise ServiceError("the extraction was stopped") from None
        return failed_extraction(answer) if isinstance(answer, Failure) else read_answer(answer)

    def close(self) -> None:
        self.pool.close()


def embedded_name() -> str:
    """What the ledger calls the embedded extractor."""
    return f"idiograph {version('idiograph')}"


@cache
def resident_extractor(settings: str) -> EmbeddedExtractor:
    """The extractor of this process, for a runner that brings processes of its own; `settings` is a recipe as JSON."""
    return EmbeddedExtractor(ExtractRecipe.model_validate_json(settings).model_copy(update={"runner": "inline"}))


def extract_alone(pdf: Path, settings: str) -> Extraction:
    """What a runner calls on the nodes of a cluster."""
    return resident_extractor(settings)(pdf)


def failed_extraction(failure: Failure) -> Extraction:
    """What stands for a document whose worker was killed or died."""
    if failure.reason == runner.TOO_SLOW:
        return Extraction(408, reason=failure.reason, detail=failure.detail)
    return Extraction(500, reason="worker died", detail=failure.detail)


def read_answer(answer: bytes) -> Extraction:
    """What a worker says; one that talks nonsense is as good as dead."""
    if len(answer) < STATUS.size:
        return Extraction(500, reason="worker died", detail="an answer without a status")
    status, body = STATUS.unpack_from(answer)[0], answer[STATUS.size :]
    if status == 200:
        return Extraction(200, tei=body)
    reason, _, detail = body.decode("utf-8", "replace").partition(": ")
    return Extraction(status, reason=reason, detail=detail[:300])


def answer_request(path: Path, max_pages: int, max_bytes: int) -> bytes:
    """In a worker: status 200 and TEI, or another status and `reason: detail`."""
    try:
        status, body = 200, parse_pdf(path, max_pages, max_bytes)
    except InputError as error:
        status, body = 400, str(error).encode("utf-8", "replace")
    except LookupError as error:
        status, body = 204, str(error.args[0]).encode()
    except MemoryError:
        status, body = 507, b"out of memory"
    except OSError as error:
        status, body = 400, f"cannot be opened: {error.strerror}".encode()
    except Exception as error:
        status, body = 500, f"extractor failed: {type(error).__name__}: {error}".encode("utf-8", "replace")
    return STATUS.pack(status) + body


def parse_pdf(path: Path, max_pages: int, max_bytes: int) -> bytes:
    size = path.stat().st_size
    if size > max_bytes:
        raise InputError(f"too large: {size} bytes, more than {max_bytes}")
    data = path.read_bytes()
    paper = read_paper(read_pages(data, max_pages))
    if paper is None or not (paper.parts or paper.abstract):
        raise LookupError("no text")
    return to_tei(paper, version("idiograph"), read_properties(data))
