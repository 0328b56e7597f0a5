"""How fast are simulated documents made, how does that grow, and is memory flat?

    python benchmarks/synth.py [documents]

Prints documents per second of one core (best of three, process time) for small and large worlds, the cost of twice as
many sentences and documents, and the peak memory after each tenth of a long stream.
"""

import resource
import sys
import time
from collections import deque
from itertools import islice

from idiograph.synth.synth import synth

WORLDS = (
    "synth:documents={n}",
    "synth:documents={n},sentences=24",
    "synth:documents={n},sentences=100",
    "synth:documents={n},authors=10000",
    "synth:documents={n},authors=1000000",
    "synth:documents={n},topics=1000",
    "synth:documents={n},authors=1000000,topics=1000",
)


def seconds(spec: str) -> float:
    """Process time to make all documents, best of three."""
    times = []
    for _ in range(3):
        before = time.process_time()
        deque(synth(spec), maxlen=0)
        times.append(time.process_time() - before)
    return min(times)


def peak() -> float:
    """Peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for world in WORLDS:
        spec = world.format(n=n)
        print(f"{n / seconds(spec):>9,.0f} documents/s   {spec}")
    once, twice = seconds(WORLDS[0].format(n=n)), seconds(WORLDS[0].format(n=2 * n))
    print(f"{twice / once:>9.2f} times the work for twice the documents")
    stream = synth(f"synth:documents={10 * n},authors={n}")
    print("peak MB after each tenth of a stream of", 10 * n, "documents:")
    print(*(f"{deque(islice(stream, n), maxlen=0) or peak():.1f}" for _ in range(10)))


if __name__ == "__main__":
    main()
