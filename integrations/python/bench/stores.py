"""What is measured: trees, and what else keeps records under keys for Python."""

from __future__ import annotations

import os
import shelve
import zlib
from collections.abc import Callable, Iterable
from typing import Any


class Store:
    """A store of records. `batches` says whether it reads several keys in one call."""

    batches = False
    on_disk = False

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def put(self, key: bytes, value: bytes) -> None:
        raise NotImplementedError

    def get(self, key: bytes) -> bytes:
        raise NotImplementedError

    def get_many(self, keys: list[bytes]) -> list[bytes]:
        get = self.get
        return [get(key) for key in keys]

    def fill(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        for key, value in records:
            self.put(key, value)

    def settle(self) -> None:
        """What is done some time after the last write."""

    def held_bytes(self) -> int | None:
        """What it says that it holds."""
        return None

    def close(self) -> None:
        """Ends its use of the directory."""


class Dict(Store):
    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.records: Any = {}
        self.put = self.records.__setitem__  # type: ignore[method-assign]
        self.get = self.records.__getitem__  # type: ignore[method-assign]


class Sorted(Store):
    def __init__(self, directory: str) -> None:
        from sortedcontainers import SortedDict

        super().__init__(directory)
        self.records = SortedDict()
        self.put = self.records.__setitem__  # type: ignore[method-assign]
        self.get = self.records.__getitem__  # type: ignore[method-assign]

    def fill(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        self.records.update(records)


class Zlib(Store):
    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.records: dict[bytes, bytes] = {}

    def put(self, key: bytes, value: bytes) -> None:
        self.records[key] = zlib.compress(value)

    def get(self, key: bytes) -> bytes:
        return zlib.decompress(self.records[key])


class Zstandard(Store):
    def __init__(self, directory: str) -> None:
        import threading

        import zstandard

        super().__init__(directory)
        self.records: dict[bytes, bytes] = {}
        # A context is for one thread.
        local = threading.local()

        def contexts() -> Any:
            try:
                return local.contexts
            except AttributeError:
                local.contexts = zstandard.ZstdCompressor(level=3), zstandard.ZstdDecompressor()
                return local.contexts

        self.contexts: Callable[[], Any] = contexts

    def put(self, key: bytes, value: bytes) -> None:
        self.records[key] = self.contexts()[0].compress(value)

    def get(self, key: bytes) -> bytes:
        value: bytes = self.contexts()[1].decompress(self.records[key])
        return value


class DiskCache(Store):
    on_disk = True

    def __init__(self, directory: str) -> None:
        import diskcache

        super().__init__(directory)
        self.cache = diskcache.Cache(directory, eviction_policy="none", size_limit=1 << 40)

    def put(self, key: bytes, value: bytes) -> None:
        self.cache.set(key, value)

    def get(self, key: bytes) -> bytes:
        value: bytes = self.cache[key]
        return value

    def fill(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        with self.cache.transact():
            super().fill(records)


class Lmdb(Store):
    on_disk = batches = True

    def __init__(self, directory: str) -> None:
        import lmdb

        super().__init__(directory)
        # Without syncs, as a cache would be.
        self.environment = lmdb.open(directory, map_size=1 << 36, sync=False, writemap=True)

    def put(self, key: bytes, value: bytes) -> None:
        with self.environment.begin(write=True) as transaction:
            transaction.put(key, value)

    def get(self, key: bytes) -> bytes:
        with self.environment.begin() as transaction:
            value: bytes = transaction.get(key)
            return value

    def get_many(self, keys: list[bytes]) -> list[bytes]:
        with self.environment.begin() as transaction:
            get = transaction.get
            return [get(key) for key in keys]

    def fill(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        with self.environment.begin(write=True) as transaction:
            for key, value in records:
                transaction.put(key, value)


class Shelve(Store):
    on_disk = True

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.shelf = shelve.open(os.path.join(directory, "shelf"))

    # Its keys are str.
    def put(self, key: bytes, value: bytes) -> None:
        self.shelf[key.decode()] = value

    def get(self, key: bytes) -> bytes:
        value: bytes = self.shelf[key.decode()]
        return value

    def close(self) -> None:
        self.shelf.close()


class Tree(Store):
    batches = True

    def __init__(self, directory: str, codec: str) -> None:
        import leafpress

        super().__init__(directory)
        self.tree = leafpress.Tree(codec=codec)
        self.put = self.tree.__setitem__  # type: ignore[method-assign]
        self.get = self.tree.__getitem__  # type: ignore[method-assign]
        self.get_many = self.tree.get_many  # type: ignore[method-assign,assignment]
        self.fill = self.tree.update  # type: ignore[method-assign,assignment]
        self.settle = self.tree.settle  # type: ignore[method-assign]

    def held_bytes(self) -> int | None:
        return self.tree.stats().bytes_held


# Databases of one file that a thread may not share with another, or whose library is not made for it, read with one
# only.
ONE_THREAD = {"shelve"}
STORES: dict[str, Callable[[str], Store]] = {
    "dict": Dict,
    "dict, zlib": Zlib,
    "dict, zstandard": Zstandard,
    "SortedDict": Sorted,
    "diskcache": DiskCache,
    "lmdb": Lmdb,
    "shelve": Shelve,
    "Tree none": lambda directory: Tree(directory, "none"),
    "Tree lz4": lambda directory: Tree(directory, "lz4"),
    "Tree zstd:3": lambda directory: Tree(directory, "zstd:3"),
}
