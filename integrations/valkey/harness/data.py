"""Real records: the repository's own samples, or a corpus that a flag names."""
import functools
import gzip
import json
import os
import random
import struct
import subprocess
import zipfile
import zlib

from servers import ROOT

SAMPLES = os.path.join(ROOT, "data")


def sample(name):
    with gzip.open(os.path.join(SAMPLES, name)) as file:
        return file.read()


def read(path):
    """A file's bytes, unpacked: .gz, .zst (by the program `zstd`), .zip (all its files), or plain."""
    if path.endswith(".gz"):
        with gzip.open(path) as file:
            return file.read()
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
    if path.endswith(".zip"):
        with zipfile.ZipFile(path) as file:
            return b"".join(file.read(name) for name in file.namelist())
    with open(path, "rb") as file:
        return file.read()


def stanzas(corpus=None):
    """Records of Debian's package index: pairs of a package's name and its stanza. Each name once."""
    text = read(corpus) if corpus else sample("packages.txt.gz")
    found = {}
    for stanza in text.strip().split(b"\n\n"):
        found[stanza.split(b"\n", 1)[0].removeprefix(b"Package: ")] = stanza
    return sorted(found.items())


def documents(count, least=300, most=1000, seed=1):
    """JSON documents of those lengths: runs of neighbouring characters of the Unicode database, each with a number of
    its own, in no order.

    The database gives some 35,000 lines; if more documents are requested than it has runs, runs repeat under other
    numbers."""
    lines = sample("characters.jsonl.gz").split(b"\n")[:-1]
    source = random.Random(seed)
    for number in range(count):
        wanted, at, length, parts = source.randrange(least, most), source.randrange(len(lines) - 12), 0, []
        while length + len(lines[at]) < wanted - 30:
            parts.append(lines[at])
            length += len(lines[at]) + 1
            at = (at + 1) % len(lines)
        if not parts:
            parts = [lines[at]]
        yield b'{"id":%d,"characters":[%s]}' % (number * 7919 % count, b",".join(parts))


def fields_of_64(count, fields=10, seed=2):
    """Maps of ten fields, each of about 64 bytes of JSON: the members of a stanza or of a character's document, cut
    there."""
    lines = sample("characters.jsonl.gz").split(b"\n")[:-1]
    source = random.Random(seed)
    names = [b"name", b"title", b"owner", b"status", b"created", b"updated", b"labels", b"address", b"settings", b"history"]
    for _ in range(count):
        values = []
        for _ in range(fields):
            members = list(json.loads(source.choice(lines)).items())
            text, at = "", source.randrange(len(members))
            while len(text) < 64:
                text += json.dumps(members[at % len(members)][1]) + ',"' + members[at % len(members)][0] + '":'
                at += 1
            values.append(b"{" + text[:62].encode() + b"}")
        yield list(zip(names, values))


def compressed(count, size=1000, seed=3):
    """Bytes that are compressed already: slices of the samples deflated, and further ones deflated at another start."""
    packed = _packed(min(count * size, 64 << 20), seed)
    for number in range(count):
        at = number * size % (len(packed) - size)
        yield packed[at:at + size]


@functools.lru_cache(maxsize=1)
def _packed(least, seed):
    text = sample("packages.txt.gz") + sample("characters.jsonl.gz")
    source, parts, length = random.Random(seed), [], 0
    while length <= least:
        start = source.randrange(len(text) - 200_000)
        parts.append(zlib.compress(text[start:start + 200_000], 6)[10:-10])
        length += len(parts[-1])
    return b"".join(parts)


def write_values(path, values):
    """A file of values as `load` reads it."""
    with open(path, "wb") as file:
        for value in values:
            file.write(struct.pack("<I", len(value)) + value)
