"""DUMP and RESTORE: what was dumped comes back anywhere, and what was spoiled is an error that costs nothing."""
import os
import random
import time

import pytest

from conftest import CONTROL, ours
from crc64 import checked
from filling import contents, random_writes, write
from resp import info, is_error
from servers import FAULT_PATTERN, Client

pytestmark = pytest.mark.skipif(CONTROL, reason="about our payloads")


def samples(client):
    """Keys of each shape, and their payloads."""
    client("FLUSHALL")
    client("LP.SET", "empty", "")
    client("LP.SET", "string", b"\x00text" * 50)
    client("LP.SET", "long", b"long " * 20_000)
    client("LP.HSET", "small", "f", "v", "", "empty field", b"\xff", b"")
    client.load(["LP.HSET", "map", f"field:{at}", b"value of %d " % at * 5] for at in range(500))
    return {name: client("DUMP", name) for name in ("empty", "string", "long", "small", "map")}


def test_round_trip(server):
    client = server.client()
    write(client, random_writes(5, 3000))
    before = contents(client)
    dumped = {name: client("DUMP", name) for name in before}
    client("FLUSHALL")
    for name, payload in dumped.items():
        client("RESTORE", name, max(0, before[name][1]), payload, *(["ABSTTL"] if before[name][1] > 0 else []))
    assert contents(client) == before
    # The same content dumps the same, whatever it was compressed with.
    assert {name: client("DUMP", name) for name in before} == dumped


def test_between_versions(kind, server):
    """What one version dumped the others restore, as far as they read a newer version's payload at all."""
    from conftest import KINDS, shared_server
    client = server.client()
    dumped = samples(client)
    before = contents(client)
    tried = 0
    for other in KINDS:
        if other.name == kind.name or not other.is_there:
            continue
        there = Client(shared_server(other).port)
        there("FLUSHALL")
        replies = [there.request("RESTORE", name, 0, payload) for name, payload in dumped.items()]
        if all(is_error(reply) and b"version or checksum" in reply.value for reply in replies):
            assert other.version < kind.version, f"{other} refuses what {kind} wrote: {replies[0]}"
            # Its server refuses a newer one's; it is the version in the payload that it looks at, so ours goes as of
            # its own.
            there("SET", "native", "1")
            own = there("DUMP", "native")[-10:-8]
            there("DEL", "native")
            replies = [there.request("RESTORE", name, 0, checked(payload[:-10] + own)) for name, payload in dumped.items()]
        assert not any(map(is_error, replies)), replies
        assert contents(there) == before
        there.close()
        tried += 1
    if not tried:
        pytest.skip("there is no other version")


def spoiled(payload, source):
    """A payload with something wrong before its checksum, which is right."""
    body = bytearray(payload[:-8])
    way = source.randrange(6)
    last = len(body) - 2  # The version's two bytes stay, or the server looks no further.
    first = 10            # As do the type and the module's name.
    if last <= first:
        return None
    at = source.randrange(first, last)
    if way == 0:
        body[at] ^= 1 << source.randrange(8)
    elif way == 1:
        body[at] = source.choice([0, 1, 0x7F, 0x80, 0x81, 0xFF, 0x40, 0xC0])
    elif way == 2:
        del body[at:last]
    elif way == 3:
        del body[at:min(last, at + source.randrange(1, 20))]
    elif way == 4:
        body[at:at] = source.randbytes(source.randrange(1, 20))
    else:
        # A length of nine bytes where one was: up to 2^64 of whatever it counts.
        body[at:at + 1] = b"\x81" + source.choice([b"\xff" * 8, b"\x7f" + b"\xff" * 7, (1 << 40).to_bytes(8, "big"), (1 << 31).to_bytes(8, "big")])
    return checked(bytes(body))


def test_spoiled_payloads(server):
    """Neither a crash nor a hang nor memory for what the payload only claims; what is taken all the same can be read
    and deleted."""
    client = server.client()
    source = random.Random()
    seed = source.randrange(1 << 30)
    source.seed(seed)
    payloads = list(samples(client).values())
    client("FLUSHALL")
    before = int(info(client, "memory")["used_memory"])
    refused = taken = 0
    until = time.monotonic() + 6
    while time.monotonic() < until:
        payload = spoiled(source.choice(payloads), source)
        if payload is None:
            continue
        began = time.monotonic()
        reply = client.request("RESTORE", "spoiled", 0, payload)
        assert time.monotonic() - began < 5, f"seed {seed}: RESTORE took {time.monotonic() - began:.1f} s"
        if is_error(reply):
            refused += 1
            assert client("EXISTS", "spoiled") == 0
        else:
            taken += 1
            replies = [client.request(*command) for command in (["LP.HGETALL", "spoiled"], ["LP.GET", "spoiled"])]
            assert any(not is_error(reply) for reply in replies), f"seed {seed}: {replies}"
            client("DEL", "spoiled")
    assert refused > 100, f"seed {seed}: {refused} refused, {taken} taken"
    client("FLUSHALL")
    after = int(info(client, "memory")["used_memory"])
    assert after < before + (1 << 20), f"seed {seed}: used_memory grew from {before} to {after}"
    # The server itself sets aside what a string's length claims, but does not fill it.
    assert server.resident(most=True) < (1 << 29), f"seed {seed}"


def test_every_truncation(server):
    """Each payload cut at each place (of the long ones, at many)."""
    client = server.client()
    payloads = samples(client)
    client("FLUSHALL")
    for name, payload in payloads.items():
        body, version = payload[:-10], payload[-10:-8]
        # Cut by two bytes or less, the server reads its version's bytes in their place, which may be what was there.
        for end in range(0, len(body) - 2, max(1, len(body) // 400)):
            reply = client.request("RESTORE", "cut", 0, checked(body[:end] + version))
            assert is_error(reply), f"{name} cut to {end} of {len(body)} was taken"
            assert b"Bad data format" in reply.value or b"ERR" in reply.value
    assert client("DBSIZE") == 0


def test_spoiled_files(start):
    """An RDB file with a byte of a map's changed: the server loads it or says why not, and ends as it does for its own
    types."""
    server = start(rdbchecksum="no", rdbcompression="no")
    client = server.client()
    client.load(["LP.HSET", "map", f"field:{at}", b"value of %d " % at * 5] for at in range(2000))
    client("SAVE")
    server.kill()
    path = os.path.join(server.directory, "dump.rdb")
    with open(path, "rb") as file:
        whole = file.read()
    source = random.Random()
    seed = source.randrange(1 << 30)
    source.seed(seed)
    loaded = refused = 0
    for turn in range(25):
        body = bytearray(whole)
        # Past the names of what comes first, short of the end.
        at = source.randrange(len(body) // 4, len(body) - 100)
        if turn % 3:
            body[at] = source.choice([0, 0xFF, 0x81, body[at] ^ 1 << source.randrange(8)])
        else:
            del body[at:at + source.randrange(1, 200)]
        with open(path, "wb") as file:
            file.write(body)
        try:
            server.start(seconds=20)
            loaded += 1
            server.kill()
        except RuntimeError:
            refused += 1
            assert server.process.returncode in (0, 1), f"seed {seed}: ended with {server.process.returncode}"
        logged = server.logged()
        assert not FAULT_PATTERN.search(logged), f"seed {seed}: {logged[-2000:].decode(errors='replace')}"
        server.process = None
    assert refused, f"seed {seed}: {loaded} loaded"
    with open(path, "wb") as file:
        file.write(whole)
    assert server.start().client()("LP.HLEN", "map") == 2000


def test_a_payload_of_another_encoding_version(server):
    """The module's encoding version is the low 10 bits of its id: another than it knows is an error."""
    client = server.client()
    payload = samples(client)["small"]
    client("FLUSHALL")
    body = bytearray(payload[:-8])
    assert body[0] in (6, 7) and body[1] == 0x81, "the id is the nine bytes after the type"
    body[9] ^= 1
    assert is_error(client.request("RESTORE", "x", 0, checked(bytes(body))))
    assert client("DBSIZE") == 0
