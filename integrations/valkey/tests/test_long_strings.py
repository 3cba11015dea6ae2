"""Strings that are stored in chunks of 16 KiB are what native strings are, whatever is written to them and wherever they go."""
import random

import pytest

from conftest import ours
from filling import digest
from resp import OK, info
from servers import is_replicated, until
from twins import Key, compare

CHUNK = 16 << 10
SIZES = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 65_534, 65_535, 65_536, 100_000, 1_000_003)


def text(source, size):
    """Half text and half bytes that do not compress."""
    return (b"a line of text, %d\n" % source.randrange(1000) * (size // 20 + 1))[:size // 2] + source.randbytes(size - size // 2)


@pytest.mark.parametrize("way", ["plain", "multi", "lua"])
def test_random_commands_on_long_strings(server, way):
    """Lengths around those of chunks meet each other: the replies are those of native strings."""
    source = random.Random(5)
    with server.client() as client:
        for _ in range(20):
            commands = []
            for _ in range(25):
                key = Key(source.choice("ab"))
                commands.append(source.choice([
                    ["SET", key, text(source, source.choice(SIZES))],
                    ["SET", key, text(source, source.choice(SIZES)), source.choice(["KEEPTTL", "GET", "XX", "NX"])],
                    ["SET", key, text(source, source.choice(SIZES)), "EX", "1000"],
                    *[["APPEND", key, text(source, source.choice((0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 50_000)))]] * 4,
                    *[["SETRANGE", key, source.randrange(150_000), text(source, source.choice((0, 1, 100, CHUNK, 40_000)))]] * 2,
                    *[["GETRANGE", key, source.randrange(-10, 200_000), source.choice((-1, source.randrange(-10, 200_000)))]] * 3,
                    ["STRLEN", key], ["GET", key], ["MGET", Key("a"), Key("b")], ["EXPIRETIME", key], ["COPY", key, Key("c"), "REPLACE"],
                    ["RENAME", Key("a"), Key("b")], ["DEL", key], ["UNLINK", key]]))
            client("FLUSHDB")
            compare(client, commands, way)
    server.clients.remove(client)


def test_they_come_back_and_are_replicated(start):
    server, replica = start(), start()
    client, there = server.client(), replica.client()
    there("REPLICAOF", "127.0.0.1", server.port)
    until(lambda: is_replicated(client, there), 60, "the replica")
    source, held = random.Random(6), {}
    for size in SIZES:
        name = b"s:%d" % size
        held[name] = text(source, size)
        assert client(ours("SET"), name, held[name]) == OK
        for more in (b"", b"x", text(source, 10_000), text(source, 40_000)):
            held[name] += more
            assert client(ours("APPEND"), name, more) == len(held[name])

    def check(client, mark):
        for name, value in held.items():
            assert client(ours("GET"), name) == value and client(ours("STRLEN"), name) == len(value)
            assert client(ours("GETRANGE"), name, len(value) - 20, -2) == value[-20:-1]
        assert digest(client) == mark

    mark = digest(client)
    check(client, mark)
    until(lambda: is_replicated(client, there), 60, "the replica")
    check(there, mark)
    client("DEBUG", "RELOAD")
    check(client, mark)
    for name, value in held.items():
        client("RESTORE", b"again:" + name, 0, client("DUMP", name))
        assert client(ours("GET"), b"again:" + name) == value
        client("DEL", b"again:" + name)
    client("CONFIG", "SET", "appendonly", "yes")
    until(lambda: info(client, "persistence")["aof_rewrite_in_progress"] == "0", 60, "the rewriting")
    client(ours("APPEND"), b"s:100000", b"after the rewriting")
    held[b"s:100000"] += b"after the rewriting"
    mark = digest(client)
    client = server.restart(appendonly="yes").client()
    check(client, mark)


def test_an_append_keeps_the_time_to_live_and_a_set_ends_it(client):
    client(ours("SET"), "s", b"v" * 100_000, "EX", "1000")
    client(ours("APPEND"), "s", b"w" * 30_000)
    assert 0 < client("TTL", "s") <= 1000
    client(ours("SET"), "s", b"u" * 100_000, "KEEPTTL")
    assert 0 < client("TTL", "s") <= 1000
    client(ours("SET"), "s", b"u" * 100_001)
    assert client("TTL", "s") == -1 and client(ours("STRLEN"), "s") == 100_001


def test_all_of_a_long_string_is_freed(client):
    """Whether it is deleted, freed by another thread or replaced: neither records nor memory of it stay."""
    source = random.Random(7)
    client(ours("SET"), "kept", "x")
    client("LP.COMPACT", "SYNC")
    before = int(info(client, "memory")["used_memory"])
    for end in (["DEL", "s"], ["UNLINK", "s"], [ours("SET"), "s", "short"], ["EXPIRE", "s", "-1"]):
        for _ in range(3):
            client(ours("SET"), "s", source.randbytes(20 << 20))
            client(ours("APPEND"), "s", source.randbytes(1 << 20))
            assert int(info(client, "memory")["used_memory"]) > before + (20 << 20)
            client(*end)
        until(lambda: int(info(client, "memory")["used_memory"]) < before + (2 << 20), 30, "the memory")
    assert client(ours("GET"), "kept") == b"x"


def test_a_string_of_the_longest_length(client):
    most = 64 << 20
    client(ours("SET"), "s", b"x" * (most - 1))
    assert client(ours("APPEND"), "s", "y") == most
    assert client.request(ours("APPEND"), "s", "z").value.startswith(b"ERR") and client(ours("STRLEN"), "s") == most
    assert client(ours("GETRANGE"), "s", most - 3, -1) == b"xxy"
