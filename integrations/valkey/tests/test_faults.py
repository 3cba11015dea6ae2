"""What is left of commands, saves and rewrites that fail midway. A build of the module with the feature `testing` has steps
fail on request, by `LP._FAIL`."""
import os

import pytest

import servers
from conftest import CONTROL
from resp import OK, as_pairs, info, is_error
from servers import until


def reason_to_skip():
    if CONTROL:
        return "about the module"
    return None if servers.module_with_faults() else "there is no module with the feature `testing`"


pytestmark = pytest.mark.skipif(reason_to_skip() is not None, reason=str(reason_to_skip()))
PREFIXES = {"leafpress.hash-prefixes": '"h:"', "leafpress.string-prefixes": '"s:"'}


def counted(client):
    return {name: int(info(client, "leafpress")[f"leafpress_{name}"]) for name in ("keys", "records", "user_bytes")}


def expected_counts(maps, strings):
    """The counts of maps and strings with this content."""
    records = sum(map(len, maps.values())) + len(strings)
    fields = sum(len(field) + len(value) for held in maps.values() for field, value in held.items())
    return {"keys": len(maps) + len(strings), "records": records, "user_bytes": fields + sum(map(len, strings.values()))}


def check_pair(here, there, maps, strings=None):
    """The primary holds this, counts it, and its replica holds and counts the same."""
    until(lambda: servers.is_replicated(here, there), 20, "the replica")
    strings = strings or {}
    for client in (here, there):
        for name, held in maps.items():
            assert dict(as_pairs(client("LP.HGETALL", name))) == held and client("LP.HLEN", name) == len(held), name
        for name, held in strings.items():
            assert client("LP.GET", name) == held, name
        assert client("DBSIZE") == len(maps) + len(strings)
        assert counted(client) == expected_counts(maps, strings)
    assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST")


@pytest.fixture
def pair(start):
    primary = start(has_faults=True, appendonly="yes", **{"aof-use-rdb-preamble": "no"}, **PREFIXES)
    replica = start(has_faults=True, **PREFIXES)
    with primary.client() as here, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        yield here, there, primary


def fails(client, command, step, count):
    """Has a step of a command fail; the command must answer that it has failed."""
    client("LP._FAIL", step, count)
    reply = client.request(*command)
    client("LP._FAIL", step, 0)
    assert is_error(reply) and b"out of memory" in reply.value, (command, reply)


def after_a_restart(primary, maps, strings=None):
    """The append-only file has what the primary held."""
    with primary.restart().client() as client:
        assert {name: dict(as_pairs(client("LP.HGETALL", name))) for name in maps} == maps
        assert {name: client("LP.GET", name) for name in strings or {}} == (strings or {})
        assert counted(client) == expected_counts(maps, strings or {})
        primary.clients.clear()


def test_replicas_receive_what_was_done_of_a_write_of_fields(pair, kind):
    here, there, primary = pair
    fields = [b"a", b"b", b"c", b"d"]
    pairs = [part for field in fields for part in (field, b"value " + field)]
    values = {field: b"value " + field for field in fields}
    maps = {}
    for name, command in (("h:set", "HSET"), ("h:many", "HMSET"), ("m:set", "LP.HSET")):
        # Of a new key, then of one that is there.
        fails(here, [command, name, *pairs], "WRITE", 1)
        check_pair(here, there, maps)
        fails(here, [command, name, *pairs], "WRITE", 3)
        maps[name] = {field: values[field] for field in fields[:2]}
        check_pair(here, there, maps)
        fails(here, [command, name, "c", "other", "a", "other", "d", "other"], "WRITE", 3)
        maps[name] |= {b"a": b"other", b"c": b"other"}
        check_pair(here, there, maps)
        assert here(command, name, *pairs) in (1, OK)
        maps[name] = dict(values)
        check_pair(here, there, maps)
    removals = [("h:set", ["HDEL", "h:set"]), ("m:set", ["LP.HDEL", "m:set"])]
    if kind.name == "valkey-9.1":
        removals.append(("h:many", ["HGETDEL", "h:many", "FIELDS", 5]))
    for name, command in removals:
        # One of the fields is not there, and does not count as a step.
        fails(here, [*command, "a", "none", "b", "c", "d"], "WRITE", 1)
        check_pair(here, there, maps)
        fails(here, [*command, "a", "none", "b", "c", "d"], "WRITE", 3)
        del maps[name][b"a"], maps[name][b"b"]
        check_pair(here, there, maps)
    # In a transaction and in a script, other commands are replicated as before.
    here("LP._FAIL", "WRITE", 3)
    here("MULTI")
    for command in (["HSET", "h:tx", "a", "1"], ["HSET", "h:tx", "b", "2", "c", "3"], ["HSET", "h:tx", "d", "4"]):
        here(*command)
    replies = here("EXEC")
    assert replies[0] == replies[2] == 1 and is_error(replies[1])
    here("LP._FAIL", "WRITE", 2)
    assert is_error(here.request("EVAL", "redis.pcall('HSET', KEYS[1], 'a', '1', 'b', '2'); return redis.call('HSET', KEYS[1], 'c')", 1, "h:lua"))
    maps |= {"h:tx": {b"a": b"1", b"b": b"2", b"d": b"4"}, "h:lua": {b"a": b"1"}}
    check_pair(here, there, maps)
    after_a_restart(primary, maps)


def test_replicas_receive_what_was_done_of_a_removal_of_a_range(pair):
    here, there, primary = pair
    held = {b"field:%06d" % at: b"value %d" % at for at in range(20_000)}
    for first in range(0, len(held), 1000):
        part = list(held.items())[first:first + 1000]
        here("LP.HSET", "m", *(each for pair_of in part for each in pair_of))
    here("LP.HSET", "other", "f", "v")
    maps = {"m": held, "other": {b"f": b"v"}}
    for low, high, within in (("(field:000100", "[field:019000", lambda field: b"field:000100" < field <= b"field:019000"),
                              ("[field:000050", "(field:019500", lambda field: b"field:000050" <= field < b"field:019500")):
        fails(here, ["LP.REMRANGE", "m", low, high], "WRITE", 1)
        left = {field: value for field, value in as_pairs(here("LP.HGETALL", "m"))}
        gone = sorted(set(maps["m"]) - set(left))
        # The first ones of the range.
        there_before = sorted(filter(within, maps["m"]))
        assert 0 < len(gone) < len(there_before) and gone == there_before[:len(gone)], (low, len(gone))
        maps["m"] = left
        check_pair(here, there, maps)
    # All of a range, by a step that fails behind it.
    few = sorted(maps["m"])[:3]
    fails(here, ["LP.REMRANGE", "m", "-", b"[" + few[-1]], "WRITE", 1)
    for field in few:
        del maps["m"][field]
    check_pair(here, there, maps)
    fails(here, ["LP.REMRANGE", "other", "-", "+"], "WRITE", 1)
    del maps["other"]
    check_pair(here, there, maps)
    after_a_restart(primary, maps)


def test_replicas_receive_what_was_done_of_a_write_into_a_long_string(pair):
    here, there, primary = pair
    held = bytes(at % 251 for at in range(100_000))
    here("SET", "s:1", held)
    for name, command, offset, value, count in (
        ("s:1", "SETRANGE", 1000, b"x" * 50_000, 3), ("s:1", "SETRANGE", 20_000, b"y" * 200_000, 1), ("s:1", "LP.SETRANGE", 90_000, b"z" * 100_000, 3)):
        fails(here, [command, name, offset, value], "WRITE", count)
        chunk = 16 * 1024
        done = max(0, (offset // chunk + count - 1) * chunk - offset)
        part = value[:min(done, len(held) - offset)] if count > 1 else b""
        held = held[:offset] + part + held[offset + len(part):]
        check_pair(here, there, {}, {"s:1": held})
    fails(here, ["APPEND", "s:1", b"w" * 50_000], "WRITE", 2)
    check_pair(here, there, {}, {"s:1": held})
    after_a_restart(primary, {}, {"s:1": held})


def files(server):
    """The snapshot and the append-only files, by their content."""
    found = {}
    for directory, _, names in os.walk(server.directory):
        for name in names:
            path = os.path.join(directory, name)
            if name == "dump.rdb" or "appendonlydir" in directory:
                with open(path, "rb") as file:
                    found[path] = file.read()
    return found


def fill(client):
    client.load([["SET", f"plain:{at}", "v"] for at in range(20)])
    client("LP.HSET", "the map", *(part for at in range(500) for part in (f"f{at}", "value " * 50)))
    client("LP.SET", "the string", "text")


UNREADABLE = [("the map", 300), ("the string", 1)]


@pytest.mark.parametrize("name, count", UNREADABLE)
def test_a_save_of_a_value_that_cannot_be_read_fails(start, name, count):
    """In the server's process and in a child: the file of before stays, the log names the key, and later saves succeed."""
    server = start(has_faults=True)
    client = server.client()
    fill(client)
    client("DEL", *({"the map", "the string"} - {name}))
    assert client("SAVE") == OK
    before, mark = files(server), client("DEBUG", "DIGEST")
    client("SET", "plain:new", "v")
    for command in (["SAVE"], ["DEBUG", "RELOAD"], ["BGSAVE"]):
        logged = len(server.logged())
        client("LP._FAIL", "READ", count)
        reply = client.request(*command)
        if command == ["BGSAVE"]:
            until(lambda: info(client, "persistence")["rdb_bgsave_in_progress"] == "0", 30, "the end of BGSAVE")
            client("LP._FAIL", "READ", 0)
            assert info(client, "persistence")["rdb_last_bgsave_status"] == "err"
        else:
            assert is_error(reply), (command, reply)
        assert files(server) == before
        assert f"the key '{name}' in database 0".encode() in server.logged()[logged:], command
        assert client("GET", "plain:new") == b"v" and client("DBSIZE") == 22
    assert client("SAVE") == OK and files(server) != before
    client("DEL", "plain:new")
    assert client("DEBUG", "DIGEST") == mark
    # What was dumped does not load.
    client("LP._FAIL", "READ", count)
    payload = client("DUMP", name)
    reply = client.request("RESTORE", "copy", 0, payload)
    assert is_error(reply) and client("EXISTS", "copy") == 0 and client("DEBUG", "DIGEST") == mark
    assert client("RESTORE", "copy", 0, client("DUMP", name)) == OK
    server.kill()
    client = server.start().client()
    assert client("DBSIZE") == 22 and client("GET", "plain:new") == b"v"


@pytest.mark.parametrize("preamble", ["yes", "no"])
@pytest.mark.parametrize("name, count", UNREADABLE)
def test_a_rewrite_of_a_value_that_cannot_be_read_fails(start, preamble, name, count):
    """The append-only file of before stays, with what is written afterwards."""
    server = start(has_faults=True, appendonly="yes", **{"aof-use-rdb-preamble": preamble})
    client = server.client()
    fill(client)
    client("DEL", *({"the map", "the string"} - {name}))
    client("LP._FAIL", "READ", count)
    client("BGREWRITEAOF")
    until(lambda: info(client, "persistence")["aof_rewrite_in_progress"] == "0" and
          info(client, "persistence")["aof_rewrite_scheduled"] == "0", 30, "the end of the rewrite")
    client("LP._FAIL", "READ", 0)
    assert info(client, "persistence")["aof_last_bgrewrite_status"] == "err"
    assert f"the key '{name}' in database 0".encode() in server.logged()
    client("SET", "plain:new", "v")
    mark = client("DEBUG", "DIGEST")
    client = server.restart().client()
    assert client("DEBUG", "DIGEST") == mark and client("EXISTS", name) == 1
    client("BGREWRITEAOF")
    until(lambda: info(client, "persistence")["aof_rewrite_in_progress"] == "0" and
          info(client, "persistence")["aof_rewrite_scheduled"] == "0", 30, "the end of the rewrite")
    assert info(client, "persistence")["aof_last_bgrewrite_status"] == "ok"
    client = server.restart().client()
    assert client("DEBUG", "DIGEST") == mark


@pytest.mark.parametrize("name, count", UNREADABLE)
def test_a_synchronisation_with_a_value_that_cannot_be_read_fails(start, name, count):
    """The replica keeps what it has, and has all once the value can be read."""
    primary, replica = start(has_faults=True), start(has_faults=True)
    with primary.client() as here, replica.client() as there:
        fill(here)
        here("DEL", *({"the map", "the string"} - {name}))
        here("LP._FAIL", "READ", count)
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: f"the key '{name}' in database 0".encode() in primary.logged(), 30, "the failure")
        assert not servers.is_replicated(here, there) and there("EXISTS", name) == 0
        here("LP._FAIL", "READ", 0)
        until(lambda: servers.is_replicated(here, there), 60, "the replica")
        assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST") and there("EXISTS", name) == 1
