"""How many times the work of one thread two do in the same time: batches and single reads, on a machine with nothing
else to do."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import leafpress
from records import characters

PAIRS = 7
BATCH = 1000


def timed(work: Callable[[], None], threads: int) -> float:
    """Returns the seconds until each of the threads has done the work."""
    running = [threading.Thread(target=work) for _ in range(threads)]
    began = time.perf_counter()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return time.perf_counter() - began


def main() -> None:
    records = list(characters())
    keys = [key for key, _ in records]
    random.Random(1).shuffle(keys)
    batches = [keys[at : at + BATCH] for at in range(0, len(keys), BATCH)]
    for codec in ("none", "lz4", "zstd:3"):
        tree = leafpress.Tree(records, codec=codec)
        tree.settle()

        def in_batches() -> None:
            for _ in range(6):
                for batch in batches:
                    tree.get_many(batch)

        def one_by_one() -> None:
            for _ in range(4):
                for key in keys:
                    tree.get(key)

        for name, work, rounds in (("batches", in_batches, 6), ("one by one", one_by_one, 4)):
            pairs = [(timed(work, 1), timed(work, 2)) for _ in range(PAIRS)]
            ratios = sorted(2 * one / two for one, two in pairs)
            rate = rounds * len(keys) / min(one for one, _ in pairs) / 1e6
            print(f"{codec}, {name}: {ratios[PAIRS // 2]:.2f} (best {ratios[-1]:.2f}), one thread {rate:.1f} M reads/s")


if __name__ == "__main__":
    main()
