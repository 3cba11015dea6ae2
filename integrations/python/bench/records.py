"""The records that are measured: samples of the repository, and documents made of one."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Iterator

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../data")
Record = tuple[bytes, bytes]


def sample(name: str) -> bytes:
    with gzip.open(os.path.join(DATA, name), "rb") as file:
        return file.read()


def characters() -> Iterator[Record]:
    """34,924 JSON documents of 155 bytes, under the code that each begins with."""
    for line in sample("characters.jsonl.gz").splitlines():
        yield json.loads(line)["code"].encode(), line


def packages() -> Iterator[Record]:
    """3,280 records of Debian's package index of 790 bytes, under the package's name."""
    for text in sample("packages.txt.gz").split(b"\n\n"):
        if text:
            yield text.split(b"\n", 1)[0].removeprefix(b"Package: "), text


def documents(count: int) -> Iterator[Record]:
    """JSON documents made of the characters': each of a document's fields is drawn from that field of all of them, by
    itself, so that no two are copies and fields correlate less than they do in the sample; and it has a number, a date
    and a price of its own."""
    fields: dict[str, list[object]] = {}
    for _, line in characters():
        for name, value in json.loads(line).items():
            fields.setdefault(name, []).append(value)
    draw = random.Random(1)
    total = len(fields["code"])
    for number in range(count):
        document: dict[str, object] = {"id": number, "changed": f"2026-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}T{draw.randint(0, 23):02d}:"
                                       f"{draw.randint(0, 59):02d}:{draw.randint(0, 59):02d}Z", "price": draw.randint(1, 99_999) / 100}
        for name, values in fields.items():
            # A field that few of the sample have, few have here.
            at = draw.randrange(total)
            if at < len(values):
                document[name] = values[at]
        yield b"doc:%08d" % number, json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def named(name: str) -> Iterator[Record]:
    """`characters`, `packages` or `documents:COUNT`."""
    if name == "characters":
        return characters()
    if name == "packages":
        return packages()
    kind, _, count = name.partition(":")
    if kind != "documents":
        raise SystemExit(f"error: no records are called {name}")
    return documents(int(count))
