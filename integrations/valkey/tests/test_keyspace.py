"""What the server does with keys of any type, and what it knows of our commands."""
import glob
import os
import time

import pytest

from conftest import CONTROL, ours
from filling import big_map, contents
from resp import OK, Reply, as_pairs, info, is_error
from servers import until

only_ours = pytest.mark.skipif(CONTROL, reason="about our type")
WRITES = {"HSET", "HSETNX", "HDEL", "HINCRBY", "HINCRBYFLOAT", "SET", "MSET", "APPEND"}
READS = {"HGET", "HMGET", "HGETALL", "HEXISTS", "HLEN", "HSTRLEN", "HKEYS", "HVALS", "HSCAN", "HRANDFIELD", "GET", "MGET", "STRLEN", "GETRANGE"}
# Reads that only ours has, and writes.
OUR_READS, OUR_WRITES = {"RANGE", "COUNT", "FIRST", "LAST"}, {"REMRANGE"}


def sample(client):
    client(ours("HSET"), "m", "a", "1", "b", "2")
    client(ours("SET"), "s", "text")


@only_ours
def test_wrong_types_both_ways(client):
    """Ours on native keys, native commands on ours, and ours of one shape on the other."""
    sample(client)
    client.load([["HSET", "hash", "f", "v"], ["SET", "string", "v"], ["RPUSH", "list", "v"], ["ZADD", "zset", 1, "v"]])
    maps = [["LP.HSET", "f", "v"], ["LP.HSETNX", "f", "v"], ["LP.HGET", "f"], ["LP.HMGET", "f"], ["LP.HGETALL"], ["LP.HDEL", "f"],
            ["LP.HEXISTS", "f"], ["LP.HLEN"], ["LP.HSTRLEN", "f"], ["LP.HKEYS"], ["LP.HVALS"], ["LP.HSCAN", "0"], ["LP.HINCRBY", "f", "1"],
            ["LP.HINCRBYFLOAT", "f", "1"], ["LP.HRANDFIELD"], ["LP.RANGE", "-", "+"], ["LP.COUNT", "-", "+"], ["LP.REMRANGE", "-", "+"],
            ["LP.FIRST"], ["LP.LAST"]]
    strings = [["LP.GET"], ["LP.STRLEN"], ["LP.GETRANGE", "0", "1"], ["LP.APPEND", "x"], ["LP.SET", "x", "GET"]]
    for name, *rest in maps:
        for key in ("hash", "string", "list", "zset", "s"):
            assert _wrong(client.request(name, key, *rest)), (name, key)
    for name, *rest in strings:
        for key in ("hash", "string", "list", "zset", "m"):
            assert _wrong(client.request(name, key, *rest)), (name, key)
    for key in ("m", "s"):
        for command in (["HGET", key, "f"], ["HSET", key, "f", "v"], ["GET", key], ["APPEND", key, "x"], ["LPUSH", key, "x"], ["ZADD", key, 1, "x"]):
            assert _wrong(client.request(*command)), command
    # Null for a value that is not a string, as in MGET; native strings are read too, for the transparent mode.
    assert client("LP.MGET", "s", "m", "hash", "string", "none") == [b"text", None, None, b"v", None]
    # SET takes any key over, as the native one does; and so does the native one.
    assert client("LP.SET", "hash", "now ours") == OK and client("LP.GET", "hash") == b"now ours"
    assert client("SET", "m", "native") == OK and client("GET", "m") == b"native"


def _wrong(reply):
    return is_error(reply) and reply.value.startswith(b"WRONGTYPE")


@only_ours
def test_type_and_encoding(client):
    sample(client)
    assert client("TYPE", "m") == client("TYPE", "s") == Reply("status", b"leafpress")
    assert client("OBJECT", "ENCODING", "m") is not None
    assert client("OBJECT", "REFCOUNT", "m") == 1
    assert client("SCAN", "0", "TYPE", "leafpress")[1] != []


def test_object_freq_and_idletime(start):
    server = start(**{"maxmemory-policy": "allkeys-lfu"})
    client = server.client()
    sample(client)
    client.pipe([[ours("HGET"), "m", "a"]] * 2000)
    assert client("OBJECT", "FREQ", "m") > client("OBJECT", "FREQ", "s")
    client("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    client("FLUSHALL")
    sample(client)
    # The server counts whole seconds, and one may begin between two commands.
    time.sleep(3.2)
    client("TOUCH", "s")
    assert client("OBJECT", "IDLETIME", "m") >= 2 > client("OBJECT", "IDLETIME", "s")
    client(ours("HGET"), "m", "a")
    assert client("OBJECT", "IDLETIME", "m") <= 1


@only_ours
def test_memory_usage(client):
    """Grows with what a map holds, is near what it takes, and is the same for each request."""
    client("LP.HSET", "few", "f", "v")
    big_map(client, "many", 5000)
    user = sum(map(len, client("LP.HKEYS", "many"))) + sum(map(len, client("LP.HVALS", "many")))
    # The samples of a training count until it is done.
    until(lambda: client("MEMORY", "USAGE", "many") < user, 20, "what a compressed map takes")
    few, many = client("MEMORY", "USAGE", "few"), client("MEMORY", "USAGE", "many")
    assert 16 <= few <= 1000
    assert user // 20 < many, (many, user)
    client("LP.SET", "s", b"v" * 5000)
    assert 16 <= client("MEMORY", "USAGE", "s") <= 10_000
    assert 0 < client("MEMORY", "USAGE", "many", "SAMPLES", "0") < user


def test_databases(client):
    """SWAPDB, MOVE, FLUSHDB: each value goes with its key and stays whole."""
    sample(client)
    client("SELECT", 1)
    client(ours("HSET"), "m", "other", "x")
    client("SWAPDB", 0, 1)
    assert dict(as_pairs(client(ours("HGETALL"), "m"))) == {b"a": b"1", b"b": b"2"}
    client(ours("HSET"), "m", "c", "3")
    client("SELECT", 0)
    assert dict(as_pairs(client(ours("HGETALL"), "m"))) == {b"other": b"x"}
    assert client("MOVE", "m", 2) == 1
    client("FLUSHDB")
    client("SELECT", 1)
    assert client(ours("HLEN"), "m") == 3
    client("SELECT", 2)
    client(ours("HSET"), "m", "more", "y")
    assert client(ours("HLEN"), "m") == 2
    assert client("COPY", "m", "copied", "DB", 7) == 1
    client("FLUSHDB", "ASYNC")
    client("SELECT", 7)
    assert dict(as_pairs(client(ours("HGETALL"), "copied"))) == {b"other": b"x", b"more": b"y"}
    client("SELECT", 1)
    client("FLUSHDB", "SYNC")
    assert client("DBSIZE") == 0
    client.pipe([["SELECT", number] for number in (0, 7)] + [["FLUSHALL"], ["SELECT", 0]])


def test_commands_between_databases_leave_the_client_in_its_own(client):
    """Servers before Valkey 9.1.2 forget it where a module is notified of what happens in the other one."""
    sample(client)
    assert client("COPY", "m", "m", "DB", 3) == 1 and client(ours("HLEN"), "m") == 2
    assert client("MOVE", "s", 3) == 1 and client("EXISTS", "s", "m") == 1
    client("SET", "here", "x")
    client("SELECT", 3)
    assert client("EXISTS", "here", "m", "s") == 2
    client.pipe([["FLUSHALL"], ["SELECT", 0]])


@pytest.mark.only("valkey-9.1", "valkey-8.1")
def test_a_script_has_one_time(client):
    """A time to live counts from the script's beginning, so that all keys of a script expire together."""
    script = """
        local began = os.clock()
        redis.call(ARGV[1], KEYS[1], "v", "PX", 100000)
        while os.clock() - began < 0.02 do end
        redis.call(ARGV[1], KEYS[2], "v", "PX", 100000)
        redis.call(ARGV[2], KEYS[3], 100000, "v")
        return {redis.call("PEXPIRETIME", KEYS[1]), redis.call("PEXPIRETIME", KEYS[2]), redis.call("PEXPIRETIME", KEYS[3])}"""
    times = client("EVAL", script, 3, "a", "b", "c", ours("SET"), ours("PSETEX"))
    assert len(set(times)) == 1, times


@pytest.mark.only("valkey-9.1")
def test_a_time_that_has_passed_in_msetex(client):
    """Unlike SET, MSETEX sets such keys, which then expire like others."""
    expired = int(info(client, "stats")["expired_keys"])
    client.pipe([["MULTI"], [ours("MSETEX"), 2, "a", "1", "b", "2", "PXAT", "1"], ["DBSIZE"], ["EXISTS", "a", "b"]])
    assert client("EXEC") == [1, 2, 0]
    until(lambda: client("DBSIZE") == 0, what="the expiry")
    assert int(info(client, "stats")["expired_keys"]) == expired + 2


@pytest.mark.only("valkey-9.1", "valkey-8.1")
def test_what_a_write_finds_expired_is_unlinked_elsewhere(start):
    """A time that has passed deletes the key, which replicas and the append-only file receive as UNLINK."""
    server = start(appendonly="yes")
    client = server.client()
    client(ours("SET"), "s", "v")
    client(ours("SET"), "s", "w", "PXAT", "1")
    client(ours("SET"), "s", "v")
    client(ours("GETEX"), "s", "EXAT", "1")
    client(ours("SET"), "s", "v")
    client(ours("GETDEL"), "s")
    assert client("EXISTS", "s") == 0
    with open(glob.glob(os.path.join(server.directory, "appendonlydir", "*.incr.aof"))[0], "rb") as file:
        words = file.read().upper().split(b"\r\n")
    assert (words.count(b"UNLINK"), words.count(b"DEL")) == (2, 1)


def test_a_string_that_is_too_long_is_refused_as_the_native_one_is(client):
    sample(client)
    for command in (["SETRANGE", "s", 1 << 29, "x"], ["SETRANGE", "none", 1 << 29, "x"], ["SETRANGE", "s", (1 << 63) - 1, "x"]):
        reply = client.request(ours(command[0]), *command[1:])
        assert is_error(reply) and reply.value.startswith(b"ERR string exceeds maximum allowed size ("), reply
    assert client(ours("GET"), "s") == b"text" and client("EXISTS", "none") == 0


def test_swapping_and_flushing_at_random(client):
    """Three databases are swapped, emptied, and copied and moved between; a model says what each holds."""
    import random
    source = random.Random(4)
    held = {0: {}, 1: {}, 2: {}}
    for step in range(600):
        number, other = source.sample([0, 1, 2], 2)
        client("SELECT", number)
        name, draw = f"k{source.randrange(6)}", source.random()
        if draw < 0.6:
            client(ours("HSET"), name, "step", step, f"f{step % 9}", f"v{step}")
            held[number].setdefault(name, {}).update({b"step": b"%d" % step, b"f%d" % (step % 9): b"v%d" % step})
        elif draw < 0.7:
            client("SWAPDB", number, other)
            held[number], held[other] = held[other], held[number]
        elif draw < 0.8:
            if client("COPY", name, name, "DB", other, "REPLACE"):
                held[other][name] = dict(held[number][name])
        elif draw < 0.9:
            if client("MOVE", name, other):
                held[other][name] = held[number].pop(name)
        elif draw < 0.93:
            client("FLUSHDB", source.choice(["SYNC", "ASYNC"]))
            held[number] = {}
        else:
            client(source.choice(["DEL", "UNLINK"]), name)
            held[number].pop(name, None)
        if step % 20 == 0:
            for each, keys in held.items():
                client("SELECT", each)
                assert {name.decode(): value for name, (value, _) in contents(client).items()} == keys, (step, each)
    client("SELECT", 0)
    client("FLUSHALL")


def test_a_copy_is_of_its_own(client):
    sample(client)
    big_map(client, "big", 2000)
    for name in ("m", "s", "big"):
        assert client("COPY", name, "copy:" + name) == 1
    client(ours("HSET"), "m", "a", "changed")
    client("DEL", "big")
    assert client(ours("HGET"), "copy:m", "a") == b"1"
    assert client(ours("HLEN"), "copy:big") == 2000
    client(ours("APPEND"), "copy:s", "!")
    assert client(ours("GET"), "s") == b"text"
    client("RENAME", "copy:big", "m")
    assert client(ours("HLEN"), "m") == 2000


def test_an_emptied_map_is_gone(client):
    client(ours("HSET"), "m", "a", "1", "b", "2")
    assert client(ours("HDEL"), "m", "a", "b") == 2
    assert client("EXISTS", "m") == 0


def test_expiry(client):
    """By time, by access and by the server's own cycle; a new value has no old time."""
    client(ours("SET"), "s", "v", "PX", 60)
    client(ours("HSET"), "m", "f", "v")
    client("PEXPIRE", "m", 60)
    client(ours("SET"), "kept", "v", "PX", 100_000)
    client(ours("SET"), "kept", "w", "KEEPTTL")
    assert client("PTTL", "kept") > 90_000
    client(ours("SET"), "kept", "x")
    assert client("PTTL", "kept") == -1
    time.sleep(0.09)
    assert client(ours("GET"), "s") is None and client(ours("HGETALL"), "m") in ([], Reply("map", []))
    client.load([ours("SET"), f"brief:{at}", "v" * 100, "PX", 50] for at in range(500))
    until(lambda: client("DBSIZE") == 1, 10, "the end of the expired")


def test_watch(client, server):
    """A transaction that watches a key of ours fails when another changes it, and only then."""
    with server.client() as other:
        for change, aborts in (([ours("HSET"), "m", "a", "2"], True), ([ours("HGET"), "m", "a"], False), ([ours("HDEL"), "m", "none"], False),
                               ([ours("HDEL"), "m", "a"], True), ([ours("SET"), "m", "x"], True), (["DEL", "m"], True)):
            client("DEL", "m")
            client(ours("HSET"), "m", "a", "1", "b", "1")
            client("WATCH", "m")
            other(*change)
            client("MULTI")
            client("PING")
            done = client("EXEC")
            assert (done in (None, Reply("null-array", None))) == aborts, (change, done)
    server.clients.remove(other)


def test_keyspace_notifications(client, server):
    """Checks that the events are those of the native twins."""
    with server.client() as heard:
        heard("CONFIG", "SET", "notify-keyspace-events", "KEA")
        heard("PSUBSCRIBE", "__keyevent@0__:*")

        def events(mine):
            def name(command):
                return ours(command) if mine else command
            key, seen = ("m1", "s1") if mine else ("m2", "s2"), []
            for command in ([name("HSET"), key[0], "a", "1"], [name("HSETNX"), key[0], "n", "1"], [name("HINCRBY"), key[0], "a", 1],
                            [name("HINCRBYFLOAT"), key[0], "a", "0.5"], [name("HDEL"), key[0], "a"], [name("HDEL"), key[0], "none"],
                            [name("HDEL"), key[0], "n"], [name("SET"), key[1], "v"], [name("APPEND"), key[1], "v"],
                            [name("SET"), key[1], "v", "EX", 100], [name("MSET"), key[1], "v"], [name("SET"), key[1], "v", "XX"]):
                client(*command)
            client("PUBLISH", "__keyevent@0__:end", "end")
            while True:
                message = heard.read_push()
                event, about = message[2].rsplit(b":", 1)[1], message[3]
                if event == b"end":
                    return seen
                seen.append((event, about[:1]))

        native, mine = events(False), events(True)
        assert native and mine == native, f"expected {native}\n     got {mine}"
    server.clients.remove(heard)


@only_ours
@pytest.mark.parametrize("name", sorted(WRITES | READS))
def test_flags_and_keys_are_the_native_ones(client, name):
    """COMMAND INFO: what clients, proxies and ACLs go by."""
    mine, native = client("COMMAND", "INFO", "LP." + name)[0], client("COMMAND", "INFO", name)[0]
    assert mine is not None
    def flags(entry):
        return {flag.value if isinstance(flag, Reply) else flag for flag in entry[2]}
    compared = {b"write", b"readonly", b"denyoom", b"fast"}
    assert flags(mine) & compared == flags(native) & compared, f"expected {flags(native)}, got {flags(mine)}"
    assert tuple(mine[3:6]) == tuple(native[3:6]), f"keys: expected {native[3:6]}, got {mine[3:6]}"
    assert b"module" in flags(mine)


@only_ours
def test_getkeys(client):
    for command, keys in ((["LP.HSET", "k", "f", "v"], [b"k"]), (["LP.MGET", "a", "b", "c"], [b"a", b"b", b"c"]),
                          (["LP.MSET", "a", "1", "b", "2"], [b"a", b"b"]), (["LP.RANGE", "k", "-", "+"], [b"k"]),
                          (["LP.SET", "k", "v", "EX", "1"], [b"k"]), (["LP.REMRANGE", "k", "-", "+"], [b"k"])):
        assert client("COMMAND", "GETKEYS", *command) == keys


@only_ours
def test_acl(server, kind):
    """Users are held to the keys and commands that they may use, by category too."""
    # Redis has modules' commands in no category before 7.2.
    has_categories = kind.name != "redis-7.0"
    reads = ["+@read"] if has_categories else ["+lp." + name.lower() for name in sorted(READS | OUR_READS)]
    writes = ["+@write"] if has_categories else ["+lp." + name.lower() for name in sorted(WRITES | OUR_WRITES)]
    with server.client() as admin:
        admin("ACL", "SETUSER", "reader", "reset", "on", ">pw", *reads, "+ping", "~mine:*")
        admin("ACL", "SETUSER", "writer", "reset", "on", ">pw", *reads, *writes, "~mine:*")
        admin("ACL", "SETUSER", "half", "reset", "on", ">pw", "+@all", "%R~theirs:*", "~mine:*")
        admin("ACL", "SETUSER", "none", "reset", "on", ">pw", "+ping", "~*")
        admin("LP.HSET", "mine:m", "f", "v")
        admin("LP.HSET", "theirs:m", "f", "v")

        def as_user(user, *command):
            with server.client() as client:
                server.clients.remove(client)
                client("AUTH", user, "pw")
                return client.request(*command)

        def denied(reply):
            return is_error(reply) and reply.value.startswith(b"NOPERM")
        for name, *rest in (["LP.HGET", "f"], ["LP.HGETALL"], ["LP.RANGE", "-", "+"], ["LP.COUNT", "-", "+"], ["LP.HSCAN", "0"], ["LP.FIRST"]):
            assert not is_error(as_user("reader", name, "mine:m", *rest)), name
            assert denied(as_user("reader", name, "theirs:m", *rest)), name
            assert not is_error(as_user("half", name, "theirs:m", *rest)), name
            assert denied(as_user("none", name, "mine:m", *rest)), name
        for name, *rest in (["LP.HSET", "f", "v"], ["LP.HDEL", "g"], ["LP.HINCRBY", "n", "1"], ["LP.REMRANGE", "[x", "[y"]):
            assert denied(as_user("reader", name, "mine:m", *rest)), name
            assert not is_error(as_user("writer", name, "mine:m", *rest)), name
            assert denied(as_user("writer", name, "theirs:m", *rest)), name
            assert denied(as_user("half", name, "theirs:m", *rest)), name
        assert denied(as_user("writer", "LP.MSET", "mine:s", "1", "theirs:s", "2"))
        assert denied(as_user("reader", "LP.MGET", "mine:s", "theirs:s"))
        for user in ("reader", "writer", "half", "none"):
            admin("ACL", "DELUSER", user)
    server.clients.remove(admin)


@only_ours
def test_acl_category_of_our_own(client, kind):
    if b"leafpress" not in client("ACL", "CAT"):
        # Modules may add categories since Redis 7.4 and Valkey 8.
        assert kind.name == "redis-7.0", "no category of our own"
        pytest.skip("this server has no categories of modules")
    listed = client("ACL", "CAT", "leafpress")
    assert {b"lp.hset", b"lp.get", b"lp.range"} <= {name.lower() for name in listed}


@only_ours
def test_writes_are_refused_where_they_must_be(start):
    """On a replica, and where memory is at its limit; reads and removals go on."""
    server = start()
    client = server.client()
    sample(client)
    client("CONFIG", "SET", "maxmemory", "1")
    for command in (["LP.HSET", "m", "f", "v"], ["LP.SET", "s", "v"], ["LP.APPEND", "s", "v"], ["LP.HINCRBY", "m", "a", "1"]):
        reply = client.request(*command)
        assert is_error(reply) and reply.value.startswith(b"OOM"), reply
    assert client("LP.HGET", "m", "a") == b"1"
    assert client("LP.HDEL", "m", "a") == 1
    client("CONFIG", "SET", "maxmemory", "0")
    client("REPLICAOF", "127.0.0.1", 1)
    for command in (["LP.HSET", "m", "f", "v"], ["LP.REMRANGE", "m", "-", "+"]):
        reply = client.request(*command)
        assert is_error(reply) and reply.value.startswith(b"READONLY"), reply
    client("REPLICAOF", "NO", "ONE")
    assert info(client, "memory")["maxmemory"] == "0"
