"""What an extractor is: something that takes a PDF and gives TEI or says why not. GROBID servers and our own are two."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field

from idiograph.recipe import Stage


class ExtractRecipe(Stage):
    """How PDFs become TEI. Without `grobid`, the embedded extractor is used.

    `workers` is the number of processes, or of requests in flight per server; 0 takes all cores, or what the server's
    pool holds. `timeout` is in seconds per document, `memory` in MiB per process, `wait` in seconds before the second
    of `attempts` requests (doubled each time, a minute at most), `ready` how long a server may take to come up. `retry`
    does all failures again, not only those of the moment; `prune` removes the results of PDFs that are gone. With
    `runner` ray, the embedded extractor works on the nodes of the cluster at `address`, which must see the same folders.
    """

    grobid: tuple[str, ...] = ()
    workers: int = Field(default=0, ge=0)
    timeout: float = Field(default=180.0, gt=0)
    memory: int = Field(default=2048, ge=256)
    max_bytes: int = Field(default=200_000_000, ge=1)
    max_pages: int = Field(default=2000, ge=1)
    attempts: int = Field(default=6, ge=1)
    wait: float = Field(default=5.0, ge=0)
    ready: float = Field(default=60.0, ge=0)
    consolidate_header: int = Field(default=0, ge=0, le=3)
    consolidate_citations: int = Field(default=0, ge=0, le=2)
    flavor: str = ""
    runner: Literal["inline", "processes", "ray"] = "processes"
    address: str = ""
    retry: bool = False
    prune: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
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

    def __call__(self, pdf: Path) -> Outcome: ...

    def close(self) -> None:
        """Let go of everything; calls under way end soon, with an outcome or an error that nobody reads."""
        ...
