"""Stores a million JSON documents in a tree, and compares its memory with that of a dict: the README's figures."""

from __future__ import annotations

import sys
import time

import leafpress
from process import resident_bytes
from records import documents


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    codec = sys.argv[2] if len(sys.argv) > 2 else "zstd:3"
    before = resident_bytes()
    as_dict = dict(documents(count))
    raw_bytes = sum(len(key) + len(value) for key, value in as_dict.items())
    dict_bytes = resident_bytes() - before
    print(f"dict: {count:,} documents, {raw_bytes / 1e6:.0f} MB of keys and values, {dict_bytes / 1e6:.0f} MB resident")
    before, began = resident_bytes(), time.perf_counter()
    tree = leafpress.Tree(as_dict, codec=codec)
    seconds = time.perf_counter() - began
    tree.settle()
    stats = tree.stats()
    grown = resident_bytes() - before
    print(f"Tree(documents, codec={codec!r}): {stats.bytes_held / 1e6:.0f} MB held, {grown / 1e6:.0f} MB resident, in {seconds:.1f} s")
    print(f"{stats.bytes_held / stats.user_bytes:.3f} of the keys and values, {grown / dict_bytes:.3f} of the dict")
    assert all(tree[key] == value for key, value in list(as_dict.items())[::1009])


if __name__ == "__main__":
    main()
