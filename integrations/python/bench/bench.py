#!/usr/bin/env python3
"""Compares trees with other stores of records for Python: memory, writes, reads. Prints a table in Markdown.

    bench.py                        the JSON documents and the packages of the repository's samples
    bench.py --records documents:1000000 --stores 'dict' 'Tree lz4'

Each store is measured in a process of its own. Memory is the growth of the process while it loads all records, streamed
from a file. Then each operation is timed with records and keys in memory. The order is random except for the first load.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

from process import resident_bytes
from records import named
from stores import ONE_THREAD, STORES, Store

BATCH = 1000
# Seconds that each kind of reading takes at least, and the parts of which the median counts.
PART_SECONDS = 0.3
PARTS = 5


def per_second(work: Callable[[], int], seconds: float = PART_SECONDS) -> float:
    """Records a second of the median part. `work` does some, and says how many."""
    rates = []
    for _ in range(PARTS):
        done, began = 0, time.perf_counter()
        while (now := time.perf_counter()) - began < seconds:
            done += work()
        rates.append(done / (now - began))
    return sorted(rates)[PARTS // 2]


def two_threads(work: Callable[[], int], seconds: float = PART_SECONDS) -> float:
    """Records a second of two threads together, the median part."""
    rates = []
    for _ in range(PARTS):
        done, until = [0, 0], time.perf_counter() + seconds

        def loop(me: int, done: list[int] = done, until: float = until) -> None:
            while time.perf_counter() < until:
                done[me] += work()

        threads = [threading.Thread(target=loop, args=(me,)) for me in range(2)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rates.append(sum(done) / (time.perf_counter() - began))
    return sorted(rates)[PARTS // 2]


def make(name: str, directories: list[str]) -> Store:
    directories.append(tempfile.mkdtemp(prefix="leafpress-bench-"))
    return STORES[name](directories[-1])


def measure(name: str, records: str) -> dict[str, float | None]:
    """All figures of one store."""
    directories: list[str] = []
    found: dict[str, float | None] = {}
    try:
        store = make(name, directories)
        store.fill([(b"warm", b"up")])
        before = resident_bytes()
        store.fill(named(records))
        store.settle()
        found["resident_bytes"] = resident_bytes() - before
        found["held_bytes"] = store.held_bytes()
        if store.on_disk:
            found["file_bytes"] = sum(
                int(line.split()[0]) * 1024 for line in subprocess.run(["du", "-sk", directories[0]], capture_output=True, text=True).stdout.splitlines()
            )
        pairs = list(named(records))
        found["raw_bytes"] = sum(len(key) + len(value) for key, value in pairs)
        found["records"] = len(pairs)
        random.Random(1).shuffle(pairs)
        written = make(name, directories)
        began = time.perf_counter()
        for key, value in pairs:
            written.put(key, value)
        found["writes"] = len(pairs) / (time.perf_counter() - began)
        written.close()
        read(name, store, [key for key, _ in pairs], found)
        assert all(store.get(key) == value for key, value in pairs[::101])
        store.close()
    finally:
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)
    return found


def read(name: str, store: Store, keys: list[bytes], found: dict[str, float | None]) -> None:
    batches = [keys[at : at + BATCH] for at in range(0, len(keys) - BATCH + 1, BATCH)]
    turns = random.Random(2)

    def one_by_one() -> int:
        get = store.get
        for key in turns.choice(batches):
            get(key)
        return BATCH

    def batch() -> int:
        store.get_many(turns.choice(batches))
        return BATCH

    found["reads"] = per_second(one_by_one)
    found["batch_reads"] = per_second(batch) if store.batches else None
    if name not in ONE_THREAD:
        found["two_threads_reads"] = two_threads(one_by_one)
        found["two_threads_batch_reads"] = two_threads(batch) if store.batches else None


def table(records: str, rows: dict[str, dict[str, float | None]]) -> None:
    first = next(iter(rows.values()))
    raw, count = first["raw_bytes"], first["records"]
    assert raw and count
    print(f"\n{records}: {count:,.0f} records, {raw / count:.0f} bytes of key and value each\n")
    print("| store | memory, bytes per record | writes, k/s | reads, k/s | in batches | two threads | two, in batches |")
    print("|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        memory = f"{(row['resident_bytes'] or 0) / count:.0f}"
        if row.get("held_bytes"):
            memory += f" ({(row['held_bytes'] or 0) / count:.0f} held)"
        if row.get("file_bytes"):
            memory += f" (file {(row['file_bytes'] or 0) / count:.0f})"
        cells = [memory]
        for figure in ["writes", "reads", "batch_reads", "two_threads_reads", "two_threads_batch_reads"]:
            value = row.get(figure)
            cells.append("" if value is None else f"{value / 1e3:,.0f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--records", nargs="*", default=["characters", "packages"])
    options.add_argument("--stores", nargs="*", default=list(STORES), choices=list(STORES))
    options.add_argument("--one", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.records[0])))
        return
    for records in arguments.records:
        rows = {}
        for name in arguments.stores:
            print(f"measuring {name}", file=sys.stderr, flush=True)
            child = [sys.executable, __file__, "--one", name, "--records", records]
            rows[name] = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE).stdout)
        table(records, rows)


if __name__ == "__main__":
    main()
