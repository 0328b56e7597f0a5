"""PDFs to TEI: by GROBID servers, or by the extractor that comes along. Here is what either of them is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Extraction:
    """TEI with status 200, or a status and the reason why there is none.

    The statuses are those of HTTP, also where no server is involved, because they name the file of a failure. A
    `passing` failure is the moment's, not the document's: the next run tries again.
    """

    status: int
    tei: bytes = b""
    reason: str = ""
    detail: str = ""
    passing: bool = False


class Extractor(Protocol):
    """Called by up to `slots` threads at a time."""

    @property
    def name(self) -> str: ...

    @property
    def slots(self) -> int: ...

    def __call__(self, pdf: Path) -> Extraction: ...

    def close(self) -> None:
        """Let go of everything; calls under way end soon, with an outcome or an error that nobody reads."""
        ...
