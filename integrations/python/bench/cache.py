#!/usr/bin/env python3
"""Compares caches with other caches for Python: memory, writes, reads that hit, loads and memoized calls that hit.
Prints a table in Markdown.

    cache.py                            the repository's JSON documents, all caches
    cache.py --records packages --caches 'Cache' 'diskcache.Cache'

Each cache is measured in a process of its own and has room for all records: what is compared is what a hit costs, and
what a record holds. Memory is what the process grows by as the cache is filled from a file. Keys are str, values bytes.
Order is random.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import cachetools
import diskcache
import leafpress
from bench import per_second, two_threads
from process import resident_bytes
from records import named

PER_CALL = 200
BATCH = 1000
MEMORY = "256MiB"
MISSING = object()


class Ours:
    """leafpress.Cache."""

    def __init__(self, directory: str, **options: Any) -> None:
        if options.pop("disk", False):
            options |= {"disk": f"{directory}/cache", "disk_bytes": "256MiB"}
        self.cache = leafpress.Cache(options.pop("memory", MEMORY), encoding=("utf-8", None), **options)
        self.get, self.set, self.get_many = self.cache.get, self.cache.set, self.cache.get_many
        self.get_or_set = self.cache.get_or_set
        self.memoize = self.cache.memoize(name="load")


class Dict:
    """cachetools.LRUCache, plain or with a lock around it, as threads need."""

    get_many = None

    def __init__(self, directory: str, locked: bool) -> None:
        self.cache: Any = cachetools.LRUCache(10**7)
        self.get, self.set = self.cache.get, self.cache.__setitem__
        self.memoize = cachetools.cached(self.cache, lock=threading.Lock() if locked else None)
        if locked:
            lock, get, set = threading.Lock(), self.get, self.set

            def locked_get(key: str) -> Any:
                with lock:
                    return get(key)

            def locked_set(key: str, value: bytes) -> None:
                with lock:
                    set(key, value)

            self.get, self.set = locked_get, locked_set

    def get_or_set(self, key: str, load: Callable[[], bytes]) -> Any:
        value = self.get(key)
        if value is None:
            value = load()
            self.set(key, value)
        return value


class LruCache:
    """functools.lru_cache, which has nothing but calls."""

    get = get_many = get_or_set = set = None
    memoize = staticmethod(functools.lru_cache(maxsize=None))


class OnDisk:
    """diskcache.Cache."""

    get_many = None

    def __init__(self, directory: str) -> None:
        self.cache = diskcache.Cache(directory, eviction_policy="least-recently-used")
        self.get, self.set = self.cache.get, self.cache.set
        self.memoize = self.cache.memoize(name="load")

    def get_or_set(self, key: str, load: Callable[[], bytes]) -> Any:
        value = self.get(key, MISSING)
        if value is MISSING:
            value = load()
            self.set(key, value)
        return value


CACHES: dict[str, Callable[[str], Any]] = {
    "Cache": lambda directory: Ours(directory),
    "Cache lz4": lambda directory: Ours(directory, codec="lz4"),
    "Cache none": lambda directory: Ours(directory, codec="none"),
    "Cache pickle": lambda directory: Ours(directory, serializer="pickle"),
    "Cache, half on disk": lambda directory: Ours(directory, memory="4MiB", disk=True),
    "cachetools.LRUCache": lambda directory: Dict(directory, False),
    "cachetools.LRUCache, locked": lambda directory: Dict(directory, True),
    "functools.lru_cache": lambda directory: LruCache(),
    "diskcache.Cache": OnDisk,
}


def text(key: bytes) -> str:
    return key.decode()


def measure(name: str, records: str) -> dict[str, float]:
    """What one cache does, in this process."""
    with tempfile.TemporaryDirectory() as directory:
        cache = CACHES[name](directory)
        figures: dict[str, float] = {}
        count = 0
        if cache.set:
            before = resident_bytes()
            for key, value in named(records):
                cache.set(text(key), value)
                count += 1
            if isinstance(cache, Ours):
                cache.cache.settle()
            figures["bytes"] = (resident_bytes() - before) / count
        values = {text(key): value for key, value in named(records)}
        keys = list(values)
        random.Random(1).shuffle(keys)
        measure_reads(cache, keys, values, figures)
        return figures


def measure_reads(cache: Any, keys: list[str], values: dict[str, bytes], figures: dict[str, float]) -> None:
    draw = random.Random(2)

    def calls(call: Callable[[str], object], per_call: int = PER_CALL) -> Callable[[], int]:
        def work() -> int:
            at = draw.randrange(len(keys))
            for key in keys[at : at + per_call]:
                call(key)
            return min(per_call, len(keys) - at)

        return work

    if cache.set:
        figures["writes"] = per_second(calls(lambda key: cache.set(key, values[key])))
        for key in keys:
            cache.set(key, values[key])
        assert sum(cache.get(key) == values[key] for key in keys) >= 0.99 * len(keys)
        figures["reads"] = per_second(calls(cache.get))
        figures["two_threads"] = two_threads(calls(cache.get))
        figures["get_or_set"] = per_second(calls(lambda key: cache.get_or_set(key, lambda: values[key])))
    if cache.get_many:
        many = lambda: len(cache.get_many(keys[(at := draw.randrange(len(keys) - BATCH)) : at + BATCH]))  # noqa: E731
        figures["get_many"] = per_second(many)
    function = cache.memoize(lambda key: values[key])
    for key in keys:
        function(key)
    figures["memoized"] = per_second(calls(function))


COLUMNS = [("bytes", "bytes per record"), ("writes", "writes"), ("reads", "reads"), ("two_threads", "two threads"), ("get_or_set", "get_or_set"), ("get_many", "get_many"), ("memoized", "memoized calls")]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--records", default="characters", help="characters, packages or documents:COUNT")
    arguments.add_argument("--caches", nargs="+", default=list(CACHES), help="those to measure")
    arguments.add_argument("--child", help=argparse.SUPPRESS)
    parsed = arguments.parse_args()
    if parsed.child:
        print(json.dumps(measure(parsed.child, parsed.records)))
        return
    print("| " + " | ".join(["cache"] + [heading for _, heading in COLUMNS]) + " |")
    print("|" + "---|" * (len(COLUMNS) + 1))
    for name in parsed.caches:
        if name not in CACHES:
            sys.exit(f"error: no cache is called {name!r}: {', '.join(CACHES)}")
        child = subprocess.run([sys.executable, __file__, "--records", parsed.records, "--child", name], capture_output=True, text=True)
        if child.returncode:
            sys.exit(child.stderr)
        figures = json.loads(child.stdout)
        cells = [f"{figures[key]:,.0f}" if key in figures else "" for key, _ in COLUMNS]
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
