"""Tests the counts of what keys take: by how much the estimates miss native twins, what is counted, and access control."""
import random
import string

import pytest

import servers
from conftest import CONTROL
from filling import WORDS
from resp import OK, as_pairs, info, is_error
from servers import until

pytestmark = pytest.mark.skipif(CONTROL, reason="about the module")

COMPRESSED, NATIVE = ("compressed-maps", "compressed-strings"), ("native-hashes", "native-strings")


def status(client):
    reply = client("LP.USAGE", "STATUS")
    if reply is None:
        return None
    now = {name.decode(): value for name, value in as_pairs(reply)}
    for kind in COMPRESSED + NATIVE:
        now[kind] = {name.decode(): value for name, value in as_pairs(now[kind])}
    return now


def usage(client, *options, state=b"done"):
    """Counts, waits for the end, and returns the status."""
    assert client("LP.USAGE", "START", *options) == OK
    return ended(client, state)


def ended(client, state=b"done"):
    until(lambda: status(client)["state"] not in (b"running", b"waiting"), 60, "the end of the count")
    now = status(client)
    assert now["state"] == state and now["failed"] == 0, now
    return now


def keys(now):
    return [now[kind]["keys"] for kind in COMPRESSED + NATIVE]


def words(source, length):
    return b" ".join(source.choice(WORDS) for _ in range(1 + length // 5))[:length].ljust(length, b".")


def hash_of(fields, low, high, prefix="field:"):
    """A maker of hashes of a number of fields, whose values have lengths in between."""
    return lambda source: {f"{prefix}{at}": words(source, source.randint(low, high)) for at in range(fields)}


def numbers(fields):
    return lambda source: {f"count:{at}": source.choice([7, 300, -5, 70_000, 10 ** 12]) for at in range(fields)}


def text_of(length):
    return lambda source: words(source, length)


TWINS = {
    "small": hash_of(10, 5, 60),
    "one": hash_of(1, 3, 3),
    "numbers": numbers(30),
    "long": hash_of(10, 50, 400),
    "longer": hash_of(20, 1000, 3000),
    "300": hash_of(300, 5, 60),
    "300long": hash_of(300, 20, 150),
    "fieldslong": hash_of(40, 10, 30, "f" * 70),
    "many": hash_of(3000, 5, 40),
    "text20": text_of(20),
    "text60": text_of(60),
    "text100": text_of(100),
    "text300": text_of(300),
    "text5k": text_of(5000),
    "text40k": text_of(40_000),
    "empty": text_of(0),
    "integer": lambda source: source.choice([b"5", b"12345678", b"-9000000000"]),
}


COUNTS = {"many": 3, "longer": 3, "text40k": 3, **dict.fromkeys(("small", "one", "text20", "text60", "text100", "text300", "empty", "integer"), 300)}


@pytest.mark.parametrize("limit, named", [(128, "k:"), (512, "session:of-a-customer:with-a-rather-long-name:")])
def test_estimates_and_native_twins(start, limit, named):
    """The estimate of compressed values and the server's figure for equal native ones differ by 15 percent at most."""
    server = start(**{"hash-max-listpack-entries": limit})
    with server.client() as client:
        for kind, make in TWINS.items():
            source = random.Random(kind)
            # Allocators give longer blocks than needed where those were freed before: many keys outweigh that.
            count = COUNTS.get(kind, 12)
            for at in range(count):
                name, value = f"{named}{kind}:{at}", make(source)
                if isinstance(value, dict):
                    client("HSET", name, *(part for pair in value.items() for part in pair))
                else:
                    client("SET", name, value)
                if at % 3 == 0:
                    client("PEXPIRE", name, 10_000_000)
            is_hash = isinstance(value, dict)
            native, compressed = (("native-hashes", "compressed-maps") if is_hash else ("native-strings", "compressed-strings"))
            # Redis has two tables while one grows; that it looks at a hash moves it on.
            for at in range(count):
                client("HGETALL" if is_hash else "GET", f"{named}{kind}:{at}")
            pattern = f"{named}{kind}:*"
            before = usage(client, "MATCH", pattern)[native]
            exact = sum(client("MEMORY", "USAGE", f"{named}{kind}:{at}", "SAMPLES", 0) for at in range(count))
            assert before["keys"] == count and before["bytes-held"] == before["native-bytes"]
            assert abs(before["bytes-held"] / exact - 1) < 0.15, (kind, before, exact)
            for at in range(count):
                client("LP.IMPORT", f"{named}{kind}:{at}")
            now = usage(client, "MATCH", pattern)
            assert keys(now) == [count * (one == compressed) for one in COMPRESSED + NATIVE], kind
            after = now[compressed]
            assert abs(after["native-bytes"] / exact - 1) < 0.15, (kind, after, exact)
            assert abs(after["user-bytes"] - before["user-bytes"]) <= 0.2 * before["user-bytes"], kind
            held = sum(client("MEMORY", "USAGE", f"{named}{kind}:{at}") for at in range(count))
            # Between both, the ratio that it is counted by may have been measured anew.
            assert 0.2 * held < after["bytes-held"] < 5 * held, kind


def test_what_is_counted(client):
    """MATCH, TYPE and ALLDBS; user bytes are those of fields and values."""
    assert client("LP.USAGE", "STOP") == 0
    for at in range(300):
        client("HSET", f"user:h{at}", "name", f"{at:04}")
        client("LP.HSET", f"user:m{at}", "name", f"{at:05}")
        client("SET", f"user:s{at}", f"{at:06}")
        client("LP.SET", f"user:t{at}", f"{at:07}")
        client("LP.SET", f"other:{at}", f"{at:08}")
    client("RPUSH", "user:list", "x")
    client("SADD", "user:set", "x")
    now = usage(client, "MATCH", "user:*")
    assert keys(now) == [300] * 4 and now["matched"] == 1200 and now["scanned"] >= 1202, now
    assert [now[kind]["user-bytes"] for kind in COMPRESSED + NATIVE] == [300 * 9, 300 * 7, 300 * 8, 300 * 6]
    assert (now["match"], now["type"], now["database"]) == (b"user:*", b"any", 0)
    assert all(now[kind]["bytes-held"] == now[kind]["native-bytes"] > 0 for kind in NATIVE)
    now = usage(client, "TYPE", "HASH", "MATCH", "user:*")
    assert keys(now) == [300, 0, 300, 0] and now["type"] == b"hash", now
    assert keys(usage(client, "type", "string")) == [0, 600, 0, 300]
    client("SELECT", 3)
    client("LP.HSET", "user:1", "f", "v")
    client("SET", "user:2", "v")
    assert keys(usage(client)) == [1, 0, 0, 1] and status(client)["database"] == 3
    assert keys(usage(client, "ALLDBS", "MATCH", "user:*")) == [301, 300, 300, 301]
    client("SELECT", 7)
    assert keys(usage(client)) == [0] * 4
    client("SELECT", 0)


def test_it_changes_nothing(start):
    """Neither data nor idle times, nor what the append-only file and replicas get."""
    server = start(**{"maxmemory-policy": "allkeys-lru"})
    with server.client() as client:
        client("HSET", "h", "f", "v")
        client("SET", "s", "v" * 100)
        client("SET", "short", "v")
        client("LP.HSET", "m", *(part for at in range(200) for part in (at, at)))
        client("LP.SET", "t", "v" * 100)
        client("LP.SET", "number", "123")
        names = ["h", "s", "short", "m", "t", "number"]
        digest = client("DEBUG", "DIGEST")
        client("DEBUG", "SLEEP", 2.2)
        dirty = _persistence(client)
        assert keys(usage(client)) == [1, 2, 1, 2]
        assert client("DEBUG", "DIGEST") == digest and _persistence(client) == dirty
        assert all(client("OBJECT", "IDLETIME", name) >= 2 for name in names), [client("OBJECT", "IDLETIME", name) for name in names]


def _persistence(client):
    return info(client, "persistence")["rdb_changes_since_last_save"]


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_form_of_the_status(server, client, protocol):
    """A map in RESP3 and an array of pairs in RESP2, and so are the sums in it."""
    client("LP.HSET", "m", "f", "v")
    usage(client)
    with server.client(protocol) as there:
        reply = there("LP.USAGE", "STATUS")
        inner = dict(as_pairs(reply))[b"compressed-maps"]
        assert all(isinstance(one, list) == (protocol == 2) for one in (reply, inner))
        assert [name for name, _ in as_pairs(inner)] == [b"keys", b"user-bytes", b"bytes-held", b"native-bytes"]


def test_on_a_replica(start):
    primary, replica = start(), start()
    with primary.client() as client, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(client, there), 20, "the replica")
        assert status(there) is None
        for at in range(500):
            client("LP.HSET", f"user:m{at}", "f", "value")
            client("SET", f"user:s{at}", "value")
        until(lambda: servers.is_replicated(client, there), 20, "the replica")
        assert keys(usage(there, "MATCH", "user:*")) == keys(usage(client, "MATCH", "user:*")) == [500, 0, 0, 500]
        # Allocators may give a block that is a little longer.
        native = [status(each)["compressed-maps"]["native-bytes"] for each in (client, there)]
        assert max(native) < 1.05 * min(native)
        assert there("DEBUG", "DIGEST") == client("DEBUG", "DIGEST")


def test_it_is_stopped(start):
    """One runs at a time, next to a conversion; the sums up to the stop stay."""
    server = start(**{"leafpress.upkeep-budget-us": "50"})
    with server.client() as client:
        client.load([["SET", f"key:{at}", "v" * 50] for at in range(20_000)])
        # In one transaction, so that no step comes between.
        client("MULTI")
        for command in (["START"], ["START"], ["STATUS"], ["STOP"], ["STOP"], ["STATUS"], ["START", "MATCH", "key:1*"]):
            client("LP.USAGE", *command)
        begun, again, running, stopped, stopped_again, after, anew = client("EXEC")
        assert begun == anew == OK and b"running" in dict(as_pairs(running)).values()
        assert is_error(again) and b"LP.USAGE STOP" in again.value
        assert (stopped, stopped_again) == (1, 0)
        assert dict(as_pairs(after))[b"state"] == b"stopped" and dict(as_pairs(after))[b"reason"] == b"LP.USAGE STOP"
        client("LP.CONVERT", "IMPORT", "MATCH", "none")
        now = ended(client)
        assert keys(now)[3] == 11_111 and now["native-strings"]["user-bytes"] == 50 * 11_111
        client("LP.USAGE", "START")
        until(lambda: status(client)["matched"] > 0, 20, "the first keys")
        client("MULTI")
        client("LP.USAGE", "STOP")
        client("LP.USAGE", "STATUS")
        was_running, now = client("EXEC")
        now = dict(as_pairs(now))
        assert now[b"matched"] > 0 and now[b"state"] == (b"stopped" if was_running else b"done")


def test_keys_go_and_expire_meanwhile(start):
    """Keys that are gone when it is their turn are neither counted nor reported as failures."""
    server = start(**{"leafpress.upkeep-budget-us": "50"})
    with server.client() as client:
        for turn in range(3):
            client.load([[("LP.SET", "SET")[at % 2], f"s:{at}", "text"] for at in range(3000)])
            client.load([[("LP.HSET", "HSET")[at % 2], f"h:{at}", "f", "v"] for at in range(3000)])
            client.load([["LP.SET", f"stays:{at}", "text"] for at in range(100)])
            client("LP.USAGE", "START")
            for at in range(3000):
                client(*(["DEL", f"s:{at}"] if at % 3 else ["PEXPIRE", f"s:{at}", 1 + at % 7]))
                if at % 3 == 0:
                    client("PEXPIRE", f"h:{at}", 1)
                if at % 5 == 0:
                    client("DEL", f"h:{at}")
            now = ended(client)
            assert now["compressed-strings"]["keys"] >= 100, now
            assert now["matched"] <= 6100
            # What is a native hash when it is found may be a string when it is looked at.
            client("LP.USAGE", "START", "MATCH", "h:*")
            for at in range(3000):
                client("SET", f"h:{at}", "now a string")
            ended(client)
            client("LP.USAGE", "START", "ALLDBS")
            client(("FLUSHALL", "FLUSHDB", "FLUSHALL")[turn])
            ended(client)
        client("LP.SET", "k", "v")
        client("LP.USAGE", "START", "ALLDBS")
        client("SWAPDB", 0, 5)
        assert keys(ended(client)) == [0, 1, 0, 0]


def test_fields_by_sample(client):
    """Of maps of many fields 64 are looked at: the sums stay near the truth where lengths differ."""
    source = random.Random(5)
    pairs = [(f"field:{at}", source.choice(string.ascii_letters) * source.choice([3, 30, 300])) for at in range(4000)]
    user_bytes = sum(len(field) + len(value) for field, value in pairs)
    client("HSET", "big", *(part for pair in pairs for part in pair))
    now = usage(client)["native-hashes"]
    # The server hashes by a seed of its own, and so chooses the fields. The mean of 64 such lengths has a standard
    # deviation of a seventh of the true mean.
    assert abs(now["user-bytes"] / user_bytes - 1) < 0.6, (now, user_bytes)
    client("LP.IMPORT", "big")
    assert usage(client)["compressed-maps"]["user-bytes"] == user_bytes


def test_wrong_requests(client):
    for wrong in ([], ["WHAT"], ["STATUS", "x"], ["STOP", "x"], ["START", "MATCH"], ["START", "TYPE"], ["START", "TYPE", "list"],
                  ["START", "user:*"], ["START", "ALLDBS", "0"], ["START", "MAXFIELDS", "1"]):
        reply = client.request("LP.USAGE", *wrong)
        assert is_error(reply) and reply.value.startswith(b"ERR "), (wrong, reply)
    assert b"hash or string" in client.request("LP.USAGE", "START", "TYPE", "list").value
    assert b"START" in client.request("LP.USAGE", "WHAT").value


def test_who_may_ask(server, client):
    """Users that may run commands over all keys (as KEYS is) may ask. A limit to keys does not limit the sums."""
    client("LP.SET", "secret", "text")
    users = {"keyed": (["~mine:*", "+@all"], True), "reader": (["~*", "+@all", "-@dangerous"], False), "none": (["~*", "+@all", "-@keyspace"], False),
             "writer": (["~*", "+@all", "-@read"], False), "named": (["~*", "-@all", "+lp.usage"], True)}
    try:
        for name, (rules, _) in users.items():
            client("ACL", "SETUSER", name, "reset", "on", ">p", *rules)
        for name, (_, may) in users.items():
            with server.client() as there:
                there("AUTH", name, "p")
                reply = there.request("LP.USAGE", "START")
                assert (reply == OK) if may else b"NOPERM" in reply.value, (name, reply)
                if may:
                    assert keys(ended(there))[1] == 1, name
                else:
                    assert b"NOPERM" in there.request("LP.USAGE", "STATUS").value, name
    finally:
        client("ACL", "DELUSER", *users)


def test_what_the_server_says_of_the_command(client, kind):
    (entry,) = client("COMMAND", "INFO", "lp.usage")
    flags = {flag.value for flag in entry[2]}
    assert b"readonly" in flags and not flags & {b"write", b"admin", b"denyoom"} and entry[3] == 0
    if kind.is_valkey:
        assert {flag.value for flag in entry[6]} >= {b"@keyspace", b"@read", b"@slow", b"@dangerous"}
