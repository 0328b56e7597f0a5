"""Run a server on this machine that behaves like HAL or GROBID, to try the line offline: python -m tests.standin hal"""

import argparse

from tests.standin.archive import make_archive
from tests.standin.grobid import GrobidStandIn
from tests.standin.hal import HalStandIn


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.standin", description=__doc__)
    parser.add_argument("which", choices=["hal", "grobid"])
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--records", type=int, default=100, help="records that the HAL stand-in holds")
    given = parser.parse_args()
    server = (
        HalStandIn(make_archive(given.records), port=given.port)
        if given.which == "hal"
        else GrobidStandIn(port=given.port)
    )
    with server as running:
        print(running.url, flush=True)
        running.thread.join()


main()
