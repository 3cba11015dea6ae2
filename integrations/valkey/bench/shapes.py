"""Data sets in a server, native or ours, and what they take there."""
import time

import data
from resp import info
from servers import ours, until


def name(command, mine):
    return ours(command) if mine else command


def used(client):
    return int(info(client, "memory")["used_memory"])


def trains(client):
    return info(client, "leafpress").get("leafpress_trainings_running", "0") != "0"


def settle(client, seconds=120):
    """Until lazy freeing and trainings have ended and memory stays where it is: the upkeep that is due after a load is
    done. On a busy machine a training takes its time, since its priority is the lowest."""
    until(lambda: info(client, "memory")["lazyfree_pending_objects"] == "0", seconds, "the end of lazy freeing")
    before, end = None, time.monotonic() + seconds
    while time.monotonic() < end:
        now = None if trains(client) else used(client)
        if now is not None and before is not None and abs(now - before) < 64 << 10:
            return now
        before = now
        time.sleep(0.5)
    return used(client)


class Shape:
    """A data set: `load` writes it and returns its user bytes."""

    def __init__(self, what, load):
        self.what, self.load = what, load


def one_map(corpus):
    def load(client, mine):
        size, pairs = 0, data.stanzas(corpus)
        for field, value in pairs:
            size += len(field) + len(value)
        client.load([name("HSET", mine), "index", field, value] for field, value in pairs)
        return size
    return Shape("one map of package index stanzas", load)


def small_maps(count):
    def load(client, mine):
        size = 0

        def commands():
            nonlocal size
            for number, pairs in enumerate(data.fields_of_64(count)):
                key = b"m:%012d" % number
                size += len(key) + sum(len(field) + len(value) for field, value in pairs)
                yield [name("HSET", mine), key, *(part for pair in pairs for part in pair)]
        client.load(commands(), at_once=100)
        return size
    return Shape(f"{count:,} maps of 10 fields x 64 B of JSON", load)


def strings(count):
    def load(client, mine):
        size = 0

        def commands():
            nonlocal size
            for number, value in enumerate(data.documents(count)):
                key = b"s:%012d" % number
                size += len(key) + len(value)
                yield [name("SET", mine), key, value]
        client.load(commands(), at_once=200)
        return size
    return Shape(f"{count:,} strings of 0.3 to 1 KB of JSON", load)


def short_strings(count):
    def load(client, mine):
        size = 0

        def commands():
            nonlocal size
            values = (value for pairs in data.fields_of_64(-(-count // 10)) for _, value in pairs)
            for number, value in zip(range(count), values):
                key = b"t:%012d" % number
                size += len(key) + len(value)
                yield [name("SET", mine), key, value]
        client.load(commands(), at_once=200)
        return size
    return Shape(f"{count:,} strings of 64 B of JSON", load)


def already_compressed(count):
    def load(client, mine):
        client.load([name("HSET", mine), "packed", b"f:%012d" % number, value] for number, value in enumerate(data.compressed(count)))
        return count * 1014
    return Shape(f"one map of {count:,} values of 1,000 B, compressed already", load)


def strings_compressed(count):
    def load(client, mine):
        client.load([name("SET", mine), b"p:%012d" % number, value] for number, value in enumerate(data.compressed(count)))
        return count * 1014
    return Shape(f"{count:,} strings of 1,000 B, compressed already", load)


def taken(server, shape, mine):
    """Bytes of used_memory that the data set takes, its user bytes, and the growth of resident memory. Empties the
    server before."""
    client = server.client(timeout=120)
    client("FLUSHALL", "SYNC")
    before, resident = settle(client), server.resident()
    size = shape.load(client, mine)
    after = settle(client)
    client.close()
    server.clients.remove(client)
    return after - before, size, server.resident() - resident
