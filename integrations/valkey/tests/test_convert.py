"""Tests conversions in the background: what they convert, what they leave, and what stops them."""
import random
import threading

import pytest

import servers
from conftest import CONTROL
from filling import big_map
from resp import OK, as_pairs, info, is_compressed, is_error
from servers import until

pytestmark = pytest.mark.skipif(CONTROL, reason="about the module")


def status(client):
    reply = client("LP.CONVERT", "STATUS")
    return reply and {name.decode(): value for name, value in as_pairs(reply)}


def ended(client, state=b"done"):
    """Waits for the end, and returns the status."""
    until(lambda: status(client)["state"] not in (b"running", b"waiting"), 60, "the end of the conversion")
    now = status(client)
    assert now["state"] == state, now
    return now


def native_data(client, prefix, count):
    """Native hashes and strings, some with an expiry; returns what they hold."""
    commands, held = [], {}
    for number in range(count):
        name = f"{prefix}{number}".encode()
        if number % 2:
            commands.append(["SET", name, f"text {number} " * (number % 9)])
            held[name] = f"text {number} ".encode() * (number % 9)
        else:
            fields = {b"f%d" % at: b"v%d" % (number * at) for at in range(1 + number % 40)}
            commands.append(["HSET", name, *(part for pair in fields.items() for part in pair)])
            held[name] = fields
        if number % 5 == 0:
            commands.append(["PEXPIRE", name, 10_000_000])
    client.load(commands)
    return held


def held_by(client, names, get="LP.GET", hgetall="LP.HGETALL"):
    """What keys hold, their fields as a dictionary."""
    return {name: dict(as_pairs(client(hgetall, name))) if int(name[len(name.rstrip(b"0123456789")):]) % 2 == 0 else client(get, name) for name in names}


def test_a_pattern_there_and_back(start):
    """The keys of a pattern are converted and no others, on the replica and after a restart too, with their expiry."""
    primary, replica = start(appendonly="yes", **{"aof-use-rdb-preamble": "no"}), start()
    with primary.client() as client, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(client, there), 20, "the replica")
        assert status(client) is None and client("LP.CONVERT", "STOP") == 0
        held, others = native_data(client, "user:", 2000), native_data(client, "other:", 200)
        client("RPUSH", "user:list", "x")
        assert client("LP.CONVERT", "IMPORT", "MATCH", "user:*") == OK
        now = ended(client)
        assert (now["direction"], now["match"], now["type"]) == (b"import", b"user:*", b"any"), now
        assert now["converted"] == 2000 and now["too-large"] == now["failed"] == 0 and now["scanned"] >= 2001, now
        assert all(is_compressed(client, name) for name in held) and not any(is_compressed(client, name) for name in others)
        assert held_by(client, held) == held and held_by(client, others, "GET", "HGETALL") == others
        assert client("LLEN", "user:list") == 1
        assert all((client("PTTL", name) > 9_000_000) == (number % 5 == 0) for number, name in enumerate(held))
        until(lambda: servers.is_replicated(client, there), 20, "the replica")
        assert there("DEBUG", "DIGEST") == client("DEBUG", "DIGEST")
    primary.restart()
    with primary.client() as client:
        assert all(is_compressed(client, name) for name in held) and held_by(client, held) == held
        assert status(client) is None
        # Again: nothing is left to do.
        client("LP.CONVERT", "IMPORT", "MATCH", "user:*")
        assert ended(client)["converted"] == 0
        client("LP.CONVERT", "EXPORT", "TYPE", "hash")
        assert ended(client)["converted"] == 1000
        assert {is_compressed(client, name) for name, value in held.items() if isinstance(value, dict)} == {False}
        client("LP.CONVERT", "EXPORT", "TYPE", "STRING", "MATCH", "*")
        assert ended(client)["converted"] == 1000
        assert held_by(client, held, "GET", "HGETALL") == held
        assert info(client, "leafpress")["leafpress_keys"] == "0"


def test_clients_write_meanwhile(server):
    """In transparent mode clients that know nothing of it read and write all keys while they are converted there and back."""
    with server.client() as client, server.client() as converting:
        for family in ("hash", "string"):
            client("CONFIG", "SET", f"leafpress.{family}-prefixes", "user:")
        try:
            client("CONFIG", "SET", "leafpress.upkeep-budget-us", 50)
            source, model, stop = random.Random(7), {}, threading.Event()

            def convert():
                while not stop.is_set():
                    for direction in ("IMPORT", "EXPORT"):
                        converting("LP.CONVERT", direction, "MATCH", "user:*")
                        ended(converting)

            thread = threading.Thread(target=convert)
            thread.start()
            try:
                for step in range(20_000):
                    name = b"user:%d" % source.randrange(500)
                    if int(name[5:]) % 2:
                        model[name] = b"%d" % step
                        client("SET", name, model[name])
                    else:
                        field = b"f%d" % source.randrange(30)
                        model.setdefault(name, {})[field] = b"%d" % step
                        client("HSET", name, field, step)
                    if step % 50 == 0 and isinstance(model[name], dict):
                        assert client("HDEL", name, field) == 1
                        del model[name][field]
            finally:
                stop.set()
                thread.join()
            model = {name: value for name, value in model.items() if value}
            assert held_by(client, model, "GET", "HGETALL") == model and client("DBSIZE") == len(model)
        finally:
            client("CONFIG", "SET", "leafpress.upkeep-budget-us", 500)
            for family in ("hash", "string"):
                client("CONFIG", "SET", f"leafpress.{family}-prefixes", "")


def test_what_is_not_converted(server, client):
    """What is too large or cannot be compressed stays as it was, is counted, and is named in the log."""
    client("HSET", "wide", *(part for number in range(2000) for part in (number, number)))
    client("HSET", "heavy", *(part for number in range(100) for part in (number, "v" * 1000)))
    client("SET", "long", "x" * 200_000)
    client("HSET", "long field\n", "f" * 1017, "v")
    client("HSET", "fine", "f", "v")
    client("PFADD", "counter", "a", "b")
    # It keeps the count in the value.
    assert client("PFCOUNT", "counter") == 2
    client("LP.HSET", "compressed", "f", "v")
    digest = client("DEBUG", "DIGEST")
    client("LP.CONVERT", "IMPORT", "MAXFIELDS", 1999, "MAXBYTES", 100_000)
    now = ended(client)
    assert (now["converted"], now["too-large"], now["failed"]) == (1, 3, 1), now
    assert now["last-error"].split(b": ")[0] in (b"wide", b"heavy", b"long", b"long field\n"), now
    assert [name for name in ("wide", "heavy", "long", "long field\n", "fine") if is_compressed(client, name)] == ["fine"]
    assert not is_compressed(client, "counter") and client("PFCOUNT", "counter") == 2
    logged = server.logged().decode(errors="replace")
    assert all(f"not converted: {name}" in logged for name in ("wide", "heavy", "long: ", "long field : ")), logged[-2000:]
    for _ in range(2):
        client("LP.CONVERT", "IMPORT", "MAXFIELDS", 2000, "MAXBYTES", 200_000)
        now = ended(client)
    assert (now["converted"], now["too-large"], now["failed"]) == (0, 0, 1), now
    client("LP.CONVERT", "EXPORT", "MAXFIELDS", 1999)
    assert ended(client)["too-large"] == 1 and is_compressed(client, "wide")
    client("LP.CONVERT", "EXPORT")
    ended(client)
    client("LP.IMPORT", "compressed")
    assert client("DEBUG", "DIGEST") == digest


def test_wrong_requests(start):
    primary, replica = start(), start()
    with primary.client() as client, replica.client() as there:
        for wrong in ([], ["WHAT"], ["STATUS", "x"], ["STOP", "x"], ["IMPORT", "MATCH"], ["IMPORT", "TYPE", "list"], ["IMPORT", "user:*"],
                      ["EXPORT", "MAXFIELDS", "x"], ["EXPORT", "MAXFIELDS", "-1"], ["EXPORT", "MAXBYTES"], ["IMPORT", "ALLDBS", "0"]):
            assert is_error(client.request("LP.CONVERT", *wrong)), wrong
        assert status(client) is None
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(client, there), 20, "the replica")
        assert b"replica" in there.request("LP.CONVERT", "IMPORT").value
        client("ACL", "SETUSER", "reader", "on", ">p", "~*", "+@all", "-@admin", "-@dangerous")
    with primary.client() as client:
        client("AUTH", "reader", "p")
        assert b"NOPERM" in client.request("LP.CONVERT", "STATUS").value


def test_it_waits_and_is_stopped(start):
    """It waits while memory is short and while writes are paused; it is stopped by an operator, and where the server becomes a replica."""
    server, other = start(), start()
    with server.client() as client:
        native_data(client, "user:", 3000)
        client("CONFIG", "SET", "maxmemory", 1)
        client("LP.CONVERT", "IMPORT")
        until(lambda: status(client)["state"] == b"waiting", 20, "the conversion to wait")
        assert b"memory" in status(client)["reason"] and status(client)["converted"] == 0
        assert info(client, "leafpress")["leafpress_conversions_running"] == "1"
        assert b"running" in client.request("LP.CONVERT", "EXPORT").value
        client("CLIENT", "PAUSE", 100_000, "WRITE")
        client("CONFIG", "SET", "maxmemory", 0)
        until(lambda: b"paused" in status(client)["reason"], 20, "the conversion to notice the pause")
        assert status(client)["converted"] == 0
        assert client("LP.CONVERT", "STOP") == 1 and client("LP.CONVERT", "STOP") == 0
        assert ended(client, b"stopped")["reason"] == b"LP.CONVERT STOP"
        client("LP.CONVERT", "EXPORT", "MATCH", "none")
        client("REPLICAOF", "127.0.0.1", other.port)
        assert b"replica" in ended(client, b"stopped")["reason"]


def test_all_databases(client):
    """Whatever bytes are in their keys' names; the databases may be swapped and flushed meanwhile."""
    names = ["plain", " with blanks ", "new\nline", b"nul\x00and\xff", "*", "-n"]
    for database in (0, 3, 15):
        client("SELECT", database)
        client.load([["SET", name, f"text {database}"] for name in names] + [["SET", f"key:{number}", number] for number in range(500)])
    # In those before the selected one too.
    client("LP.CONVERT", "IMPORT", "ALLDBS")
    assert ended(client)["converted"] == 3 * 506
    client("LP.CONVERT", "EXPORT", "ALLDBS")
    assert ended(client)["converted"] == 3 * 506
    client("SELECT", 0)
    client("LP.CONVERT", "IMPORT", "ALLDBS")
    client("SWAPDB", 0, 3)
    now = ended(client)
    assert now["converted"] == 3 * 506, now
    for database, was in ((0, 3), (3, 0), (15, 15)):
        client("SELECT", database)
        assert [client("LP.GET", name) for name in names] == [f"text {was}".encode()] * len(names)
        assert all(is_compressed(client, f"key:{number}") for number in range(500))
    client("SELECT", 3)
    client("LP.CONVERT", "EXPORT")
    client("SWAPDB", 3, 9)
    client("SELECT", 9)
    assert ended(client)["database"] == 9 and not any(is_compressed(client, name) for name in names)
    client("LP.CONVERT", "IMPORT")
    client("FLUSHALL")
    ended(client)
    client("SELECT", 0)


def test_idle_times_stay(start):
    """Eviction sees keys as used when they were: both kinds of its policies."""
    server = start(**{"maxmemory-policy": "allkeys-lru"})
    with server.client() as client:
        strings = {"long": "v" * 100, "short": "v", "number": "12345"}
        for name, value in strings.items():
            client("SET", name, value)
        client("HSET", "h", "f", "v")
        encodings = [client("OBJECT", "ENCODING", name) for name in strings]
        client("DEBUG", "SLEEP", 2.2)
        # It looks at the others, and leaves them unchanged.
        client("LP.CONVERT", "IMPORT", "TYPE", "hash")
        assert ended(client)["converted"] == 1
        assert [client("OBJECT", "ENCODING", name) for name in strings] == encodings
        for direction, converted in (("IMPORT", 3), ("EXPORT", 4)):
            client("LP.CONVERT", direction)
            assert ended(client)["converted"] == converted and is_compressed(client, "h") == (direction == "IMPORT")
            assert all(client("OBJECT", "IDLETIME", name) >= 2 for name in (*strings, "h")), direction
        client("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
        client("SET", "s", "v" * 100)
        for _ in range(2000):
            client("GET", "s")
        frequency = client("OBJECT", "FREQ", "s")
        assert frequency > 8
        for direction in ("IMPORT", "EXPORT"):
            client("LP.CONVERT", direction)
            ended(client)
            assert abs(client("OBJECT", "FREQ", "s") - frequency) <= 1


def test_moved_keys_outlive_their_database(client, kind):
    """The values that are flushed are removed though the tree stays; small ones do not keep it."""
    if (8,) <= kind.version < (9, 1, 2):
        pytest.skip("this server does not notify of moves without a fault of its own")

    def records():
        return sum(dict(as_pairs(tree))[b"records"] for tree in client("LP.INFO"))

    for large, flush in ((3000, "SYNC"), (3000, "ASYNC"), (1000, "SYNC")):
        for turn in range(3):
            # Again and again: the tree of the flushed database is used for its new values.
            client("SELECT", 0)
            big_map(client, f"kept:{turn}", large)
            big_map(client, "flushed", 5000)
            client.load([["LP.SET", f"s:{number}", number] for number in range(1000)])
            client("LP.SET", f"t:{turn}", "kept too")
            assert client("MOVE", f"kept:{turn}", 1) == 1 and client("MOVE", f"t:{turn}", 1) == 1
            client("FLUSHDB", flush)
            client("LP.SET", "new", "v")
            until(lambda: records() == (large + 1) * (turn + 1) + 1, 20, "the flushed records to be removed")
            assert len(client("LP.INFO")) <= 2
        client("SELECT", 1)
        for _ in range(2):
            assert all(client("LP.HLEN", f"kept:{turn}") == large and client("LP.GET", f"t:{turn}") == b"kept too" for turn in range(3))
            assert client("LP.HGET", "kept:2", f"field:{large - 1:08}")
            client("DEBUG", "RELOAD")
        # The other way round: what came from elsewhere is flushed.
        client("FLUSHDB", flush)
        until(lambda: records() == 1, 20, "the moved records to be removed")
        client("SELECT", 0)
        big_map(client, "m", 2000)
        client("DEL", "m")
        assert records() == 1, "removed at once again"
        client("FLUSHALL")
