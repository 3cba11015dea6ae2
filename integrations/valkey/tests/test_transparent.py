"""Compares the transparent mode with the native type: what users may do, what a replica does, and where commands are
left unchanged."""
import itertools
import random

import pytest
from hypothesis import given

import servers
from conftest import CONTROL
from resp import OK, Reply, as_pairs, info, is_compressed, is_error, pack
from sequences import TRANSPARENT_SEQUENCES, known
from servers import until
from twins import FIELD_EXPIRY, NEWER, compare, run, shape

pytestmark = pytest.mark.skipif(CONTROL, reason="about the module")
PREFIXES = {"leafpress.hash-prefixes": '"h:"', "leafpress.string-prefixes": '"s:"'}

# Users by their rules. Passwords are added.
USERS = {
    "all": "+@all ~*",
    "no writes": "+@all -@write -@dangerous ~*",
    "not by name": "+@all -set -hset -get -hgetall -mget ~*",
    "by name": "-@all +get +set +hset +hgetall +mset +eval +multi +exec ~*",
    "reads": "-@all +@read ~*",
    "no hashes": "+@all -@hash ~*",
    "no strings": "+@all -@string ~*",
    "fast ones": "-@all +@fast ~*",
    "readable keys": "+@all %R~*",
    "writable keys": "+@all %W~*",
    "some keys": "+@all ~?:own:*",
    "nothing": "-@all +ping ~*",
    "selectors": "-@all (+set +hset ~?:own:*) (+get +hget +hgetall +mget %R~*)",
}
# Commands, K for the key and L for another one.
COMMANDS = [
    "HSET K f v", "HSETNX K g v", "HGET K f", "HMGET K f g", "HGETALL K", "HDEL K none", "HEXISTS K f", "HLEN K", "HSTRLEN K f", "HKEYS K",
    "HVALS K", "HSCAN K 0", "HINCRBY K n 1", "HINCRBYFLOAT K n 1", "HRANDFIELD K 1",
    "SET K v", "SET K v GET", "SET K v KEEPTTL", "SET K get", "GET K", "STRLEN K", "GETRANGE K 0 1", "SUBSTR K 0 1", "APPEND K x", "MGET K L",
    "MSET K v L w", "HMSET K f v", "SETEX K 1000 v", "PSETEX K 1000000 v", "SETNX K v", "GETSET K v", "GETEX K", "GETEX K PERSIST",
    "SETRANGE K 1 x", "LCS K L LEN", "MSETNX K v L w", "GETDEL K", "INCR K", "DECR K", "INCRBY K 2", "DECRBY K 2", "INCRBYFLOAT K 0.5",
    "SET K v IFEQ v", "DELIFEQ K none", "MSETEX 2 K v L w EX 1000", "HGETDEL K FIELDS 1 none"]
# Those without a twin.
BIT_COMMANDS = ["SETBIT K 3 1", "GETBIT M 3", "BITFIELD K SET u8 0 1", "BITCOUNT M", "BITOP OR K L K", "PFADD M a", "PFMERGE M M", "PFCOUNT M",
                "BITFIELD_RO M GET u8 0"]
# From a key with a prefix to one without.
MOVING_COMMANDS = ["COPY K N DB 3 REPLACE", "COPY K N REPLACE", "RENAMENX K N", "RENAME K N"]
TYPE_COMMANDS = ["TYPE K", "SCAN 0 TYPE string", "SORT K", "SORT K STORE L"]
# Those of the expiry of fields, which make maps native: P is a key for them alone.
FIELD_COMMANDS = [
    "HTTL P FIELDS 1 f", "HPTTL P FIELDS 1 f", "HEXPIRETIME P FIELDS 1 f", "HPEXPIRETIME P FIELDS 1 f", "HPERSIST P FIELDS 1 f", "HGETEX P FIELDS 1 f",
    "HGETEX P EX 1000 FIELDS 1 f", "HSETEX P FIELDS 1 f v", "HSETEX P EX 1000 FIELDS 1 f v", "HEXPIRE P 1000 FIELDS 1 f", "HPEXPIRE P 1000000 FIELDS 1 f",
    "HEXPIREAT P 99999999999 FIELDS 1 f", "HPEXPIREAT P 99999999999999 FIELDS 1 f"]


def known_to(kind, commands):
    """Those of these lines that a server knows."""
    return [command for command in commands if known([command.split()], kind)]


def spelled(command, kind):
    """A command for keys of ours or native ones; both look alike to patterns of access control."""
    name, *rest = command.split()
    letter = ("h" if name.startswith("H") else "s") if kind == "ours" else "n" if name.startswith("H") else "m"
    return [name] + [{"K": f"{letter}:own:1", "L": f"{letter}:other:1", "M": f"{letter}:own:log", "P": f"{letter}:own:2", "N": f"x:own:{kind}"}.get(part, part) for part in rest]


def in_script(command):
    keys = [part for part in command if ":" in part]
    rest = ", ".join(f"KEYS[{keys.index(part) + 1}]" if part in keys else f"'{part}'" for part in command[1:])
    return ["EVAL", f"return redis.call('{command[0]}', {rest})", len(keys), *keys]


def verdict(reply):
    """Allowed or not; how a refusal is worded is not compared."""
    if isinstance(reply, Reply) and reply.is_error:
        text = reply.value.decode(errors="replace")
        if any(words in text for words in ("NOPERM", "ACL failure", "permission", "user executing the script can't", "EXECABORT")):
            return "refused"
        return text
    return "allowed"


def in_transaction(client, command):
    client.request("MULTI")
    queued = client.request(*command)
    done = client.request("EXEC")
    if is_error(queued):
        client.request("DISCARD")
        return queued
    return done[0] if isinstance(done, list) and done else done


def prepare(admin):
    admin("FLUSHALL")
    for letter, other in (("h", "s"), ("n", "m")):
        for name in ("own", "other"):
            admin("HSET", f"{letter}:{name}:1", "f", "v", "n", 1)
            admin("SET", f"{other}:{name}:1", "text")
        admin("HSET", f"{letter}:own:2", "f", "v")


@pytest.mark.parametrize("default", ["open", "off", "password"])
def test_a_rewritten_command_is_allowed_where_the_native_one_is(start, kind, default):
    """Each user's commands on keys with prefixes and without: alone, in a transaction, in a script."""
    server = start(**PREFIXES)
    with server.client() as admin:
        server.clients.remove(admin)
        admin("ACL", "SETUSER", "admin", "on", ">pw", "+@all", "~*", "&*")
        for number, rules in enumerate(USERS.values()):
            admin("ACL", "SETUSER", f"user{number}", "on", ">pw", *split_rules(rules))
        admin("ACL", "SETUSER", "default", *{"open": ["on"], "off": ["off"], "password": ["resetpass", ">pw"]}[default])
    with server.client() as admin:
        server.clients.remove(admin)
        admin("AUTH", "admin", "pw")
        prepare(admin)
        assert is_compressed(admin, "h:own:1") and not is_compressed(admin, "n:own:1")
        differ = []
        for number, name in enumerate(USERS):
            prepare(admin)
            # Redis 7.0 does not report which client sends a command, and knows our commands by their names only.
            by_name = kind.name == "redis-7.0" and default == "password"
            with server.client() as client:
                server.clients.remove(client)
                client("AUTH", f"user{number}", "pw")
                for command, way in itertools.product(known_to(kind, COMMANDS + BIT_COMMANDS + FIELD_COMMANDS + TYPE_COMMANDS + MOVING_COMMANDS), (client.request, "script", "transaction")):
                    answers = []
                    for kind_of_key in ("native", "ours"):
                        words = spelled(command, kind_of_key)
                        if way == "script":
                            reply = client.request(*in_script(words))
                        elif way == "transaction":
                            reply = in_transaction(client, words)
                        else:
                            reply = way(*words)
                        answers.append(verdict(reply))
                    if answers[0] != answers[1] and not (by_name and answers[1] == "refused"):
                        differ.append((name, command, way if isinstance(way, str) else "alone", answers))
        assert not differ, f"{len(differ)}: {differ[:8]}"


def split_rules(rules):
    """Rules as arguments; a selector is one argument."""
    words, depth = [], 0
    for word in rules.split():
        if depth:
            words[-1] += " " + word
        else:
            words.append(word)
        depth += word.count("(") - word.count(")")
    return words


def test_without_authentication_nothing_is_allowed(start):
    """What stands for a native command is for clients that have authenticated, and for the filter only."""
    server = start(**PREFIXES)
    with server.client() as admin:
        admin("CONFIG", "SET", "requirepass", "pw")
        admin("HSET", "h:1", "f", "v")
        admin("SET", "s:1", "v")
        with server.client() as stranger:
            for command in (["HGET", "h:1", "f"], ["GET", "s:1"], ["SET", "s:1", "w"], ["LP.GET", "s:1"], ["MULTI"]):
                reply = stranger.request(*command)
                assert is_error(reply) and reply.value.startswith(b"NOAUTH"), (command, reply)
            for command in (["LP._GET", "s:1"], ["lp._set", "s:1", "w"], ["LP._HGET", "h:1", "f"]):
                assert is_error(stranger.request(*command)), command
                assert is_error(admin.request(*command)), command
        assert admin("GET", "s:1") == b"v"
        # The password goes and comes while the server runs.
        admin("CONFIG", "SET", "requirepass", "")
        with server.client() as anybody:
            assert anybody("GET", "s:1") == b"v"
        admin("CONFIG", "SET", "requirepass", "other")
        with server.client() as stranger:
            reply = stranger.request("GET", "s:1")
            assert is_error(reply) and reply.value.startswith(b"NOAUTH"), reply


def test_rights_that_are_taken_count_in_a_transaction_that_was_begun(start):
    server = start(**PREFIXES)
    with server.client() as admin, server.client() as client:
        admin("ACL", "SETUSER", "u", "on", ">pw", "+@all", "~*")
        client("AUTH", "u", "pw")
        client("MULTI")
        client("SET", "s:1", "v")
        admin("ACL", "SETUSER", "u", "-set")
        done = client.request("EXEC")
        assert verdict(done[0] if isinstance(done, list) else done) == "refused", done
        assert admin("EXISTS", "s:1") == 0


def test_refusals_are_in_the_log(start):
    server = start(**PREFIXES)
    with server.client() as admin, server.client() as client:
        admin("ACL", "SETUSER", "u", "on", ">pw", "+@all", "-hset", "~*")
        client("AUTH", "u", "pw")
        assert verdict(client.request("HSET", "h:1", "f", "v")) == "refused"
        entries = [dict(as_pairs(entry)) for entry in admin("ACL", "LOG")]
        assert [entry[b"object"].lower() for entry in entries] == [b"hset"], entries


def native_key_flags(client, name):
    """What each key of a command is used for."""
    entry = client("COMMAND", "INFO", name)[0]
    specs = [dict(as_pairs(spec)) for spec in entry[8]]
    return [sorted(flag.value if isinstance(flag, Reply) else flag for flag in spec[b"flags"]) for spec in specs]


def test_keys_are_used_as_by_the_native_commands(client, kind):
    # The keys of MSETEX depend on its arguments.
    for name in sorted({command.split()[0] for command in known_to(kind, COMMANDS)} - {"MSETEX"}):
        wanted = [set(flags) & {b"access", b"update", b"insert", b"delete", b"variable_flags"} for flags in map(set, native_key_flags(client, name))]
        for ours in ("LP." + name, "LP._" + name):
            got = [set(flags) & {b"access", b"update", b"insert", b"delete", b"variable_flags"} for flags in map(set, native_key_flags(client, ours))]
            assert got == wanted, (ours, got, wanted)


def test_keys_are_found_as_those_of_the_native_commands(client, kind):
    """A cluster's slots and access control depend on them."""
    for command in known_to(kind, COMMANDS + BIT_COMMANDS):
        name, *rest = command.split()
        names = ["LP._" + name, "LP._AUTH_" + name if command in BIT_COMMANDS else "LP." + name]
        for ours in names:
            assert client("COMMAND", "GETKEYS", ours, *rest) == client("COMMAND", "GETKEYS", name, *rest), (ours, rest)


# What the server sends to replicas as other commands, and what stays native under a prefix.
SENT_AS_OTHERS = [
    ["SETEX", "s:setex", 1000, "v"], ["PSETEX", "s:psetex", 1000000, "v"], ["GETSET", "s:getset", "v"], ["INCRBYFLOAT", "s:incrbyfloat", "1.5"],
    ["SETNX", "s:setnx", "v"], ["INCR", "s:incr"], ["SETBIT", "s:setbit", 7, 1], ["SET", "s:converted", "v", "EX", 1000],
    ["SETBIT", "s:converted", 7, 1], ["APPEND", "s:converted", "x"], ["MSET", "s:mset", 1, "plain", 2], ["GETEX", "s:setex", "EX", 2000], ["HMSET", "h:hmset", "a", 1], ["RENAME", "n", "h:renamed"],
    ["EVAL", "redis.call('SETEX', KEYS[1], 100, 'v') return redis.call('INCRBYFLOAT', KEYS[2], 2)", 2, "s:lua1", "s:lua2"],
    ["HSET", "h:ours", "f", "v", "g", "w"], ["HDEL", "h:ours", "g"], ["SET", "s:ours", "v", "PX", 100000], ["SET", "s:ours", "w", "KEEPTTL"],
    ["EVAL", "redis.call('SET', KEYS[1], 'v'); redis.call('HSET', KEYS[2], 'f', 'v'); return redis.call('HINCRBYFLOAT', KEYS[2], 'n', '0.1')", 2, "s:lua3", "h:lua3"]]
OF_VALKEY_9 = [
    ["HSET", "m", "a", 1, "b", 2], ["RENAME", "m", "h:hgetdel"], ["HSETEX", "h:hgetdel", "EX", 300, "FIELDS", 1, "c", 1],
    ["HGETDEL", "h:hgetdel", "FIELDS", 1, "a"], ["HGETDEL", "h:ours", "FIELDS", 1, "none"], ["MSETEX", 2, "s:msetex", 1, "plain2", 2, "EX", 300],
    ["HSET", "m", "a", 1, "b", 2], ["RENAME", "m", "h:hexp0"], ["HEXPIRE", "h:hexp0", 0, "FIELDS", 1, "a"],
    ["HSET", "m", "a", 1], ["RENAME", "m", "h:brief"], ["HPEXPIRE", "h:brief", 1, "FIELDS", 1, "a"]]


def all_of(client):
    """Whether keys are compressed, their types and their digests."""
    return {name: (is_compressed(client, name), client("TYPE", name).value, client("DEBUG", "DIGEST-VALUE", name)) for name in client("KEYS", "*")}


@pytest.mark.parametrize("read_only", ["yes", "no"])
def test_a_replica_does_what_its_primary_did(start, kind, read_only):
    """With the same prefixes: what the primary had left native is native there, through the append-only file too."""
    primary, replica = start(appendonly="yes", **{"aof-use-rdb-preamble": "no"}, **PREFIXES), start(**{"replica-read-only": read_only}, **PREFIXES)
    with primary.client() as here, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        here("HSET", "n", "f", "v")
        for command in SENT_AS_OTHERS + (OF_VALKEY_9 if kind.name == "valkey-9.1" else []):
            here(*command)
        here.pipe([["MULTI"], ["SET", "s:tx", "v"], ["HSET", "h:tx", "f", "v"], ["SETEX", "s:tx2", 1000, "v"], ["EXEC"]])
        until(lambda: here("EXISTS", "h:brief") == 0, 10, "the end of a field")
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        held = all_of(here)
        types = {name: held[name][:2] for name in (b"s:setex", b"s:setbit", b"s:converted", b"s:mset", b"plain", b"s:lua3", b"h:tx", b"h:renamed")}
        ours, native = (True, b"string"), (False, b"string")
        assert types == {b"s:setex": ours, b"s:setbit": native, b"s:converted": native, b"s:mset": ours, b"plain": native,
                         b"s:lua3": ours, b"h:tx": (True, b"hash"), b"h:renamed": (False, b"hash")}
        assert 0 < here("TTL", "s:converted") <= 1000 and here("GET", "s:converted") == b"wx"
        assert all_of(there) == held
        assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST")
        assert b"== CRITICAL ==" not in replica.logged()
        # A reader of the replica finds them as the primary's does.
        assert there("HGET", "h:ours", "f") == b"v" and there("GET", "s:ours") == b"w"
        if kind.name != "redis-7.0" and read_only == "no":
            assert there("SET", "s:here", "v") == OK and is_compressed(there, "s:here")
    primary.restart()
    with primary.client() as here:
        assert all_of(here) == held


WAYS = [(2, "plain"), (3, "plain"), (2, "multi"), (3, "multi"), (2, "lua"), (3, "lua")]


@pytest.mark.parametrize("protocol, way", WAYS, ids=[f"resp{protocol}-{way}" for protocol, way in WAYS])
@pytest.mark.parametrize("prefixes", ['"o:"', '"o:a o:b"'], ids=["all", "mixed"])
def test_random_commands_as_on_native_keys(start, kind, protocol, way, prefixes):
    """The same commands on keys with prefixes, or with and without one, reply what they reply on native keys, errors word by
    word; and a replica holds the same after them."""
    primary = start(**{"leafpress.hash-prefixes": prefixes, "leafpress.string-prefixes": prefixes})
    replica = start()
    with primary.client(protocol) as here, replica.client() as there:
        primary.clients.clear()
        replica.clients.clear()
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")

        @given(commands=TRANSPARENT_SEQUENCES)
        def check(commands):
            here.pipe([["FLUSHDB"], ["SELECT", 5], ["FLUSHDB"], ["SELECT", 0]])
            compare(here, known(commands, kind), way, transparent=True)
            assert here("WAIT", 1, 10_000) == 1
            assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST"), commands

        check()


def refused(client):
    return int(info(client, "leafpress")["leafpress_commands_refused"])


def test_commands_that_cannot_be_as_native_ones_are_refused_before_anything_changes(start, kind):
    server = start(**PREFIXES)
    client = server.client()
    client("HSET", "h:1", "a", 1)
    client("RPUSH", "ids", 2, 1)
    commands = [["SORT", "ids", "BY", "h:*->a"], ["SORT", "ids", "LIMIT", 0, 1, "GET", "#", "GET", "s:*", "STORE", "to"], ["SORT_RO", "ids", "get", "*->a"]]
    if kind.name == "valkey-9.1":
        # Too many fields to make them native on the way.
        for first in range(0, 65_537, 8_192):
            client("HSET", "h:large", *(part for n in range(first, min(first + 8_192, 65_537)) for part in (n, "v")))
        commands += [["HSETEX", "h:large", "EX", 10, "FIELDS", 1, "a", 1], ["HGETEX", "h:large", "EX", 10, "FIELDS", 1, "a"],
                     ["HEXPIRE", "h:large", 10, "FIELDS", 1, "a"], ["HPEXPIREAT", "h:large", 10, "FIELDS", 1, "a"]]
    mark = client("DEBUG", "DIGEST")
    for number, command in enumerate(commands):
        reply = client.request(*command)
        assert is_error(reply) and b"'" + command[0].lower().encode() + b"'" in reply.value and b"lp._" not in reply.value.lower(), (command, reply)
        assert refused(client) == number + 1
    assert client("DEBUG", "DIGEST") == mark
    # What reads no key with a prefix is answered.
    assert client("SORT", "ids") == client("SORT", "ids", "GET", "#") == [b"1", b"2"]
    assert client("SORT", "ids", "BY", "nosort", "GET", "x:*->a", "LIMIT", 0, 1) == [None]


def test_a_map_becomes_native_when_a_field_gets_an_expiry(start, kind):
    if kind.name != "valkey-9.1":
        pytest.skip("the server has no expiry of fields")
    primary, replica = start(**PREFIXES), start(**PREFIXES)
    with primary.client() as here, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        here("HSET", "h:1", "a", 1, "b", 2)
        here("EXPIRE", "h:1", 1000)
        # No field has an expiry, which these need not change.
        for command, reply in [(["HTTL", "h:1", "FIELDS", 2, "a", "z"], [-1, -2]), (["HPEXPIRETIME", "h:1", "fields", 1, "b"], [-1]),
                               (["HPERSIST", "h:1", "FIELDS", 2, "z", "a"], [-2, -1]), (["HGETEX", "h:1", "FIELDS", 2, "a", "z"], [b"1", None]),
                               (["HGETEX", "h:1", "PERSIST", "FIELDS", 1, "b"], [b"2"])]:
            assert here(*command) == reply
        for command in (["HEXPIRE", "h:1", 10, "FIELDS", 2, "a"], ["HTTL", "h:1", "FIELDS", 0, "a"], ["HTTL", "h:1", "FIELD", 1, "a"],
                        ["HSETEX", "h:1", "EX", 10, "FIELDS", 1, "a"], ["HGETEX", "h:1", "EX", 10, "FIELDS", "x", "a"]):
            assert is_error(here.request(*command))
        assert is_compressed(here, "h:1")
        for name, command, reply in [("h:2", ["HEXPIRE", 1000, "FIELDS", 2, "a", "z"], [1, -2]), ("h:3", ["HGETEX", "EX", 1000, "FIELDS", 1, "a"], [b"1"]),
                                     ("h:4", ["HSETEX", "EX", 1000, "FIELDS", 1, "a", 3], 1), ("h:5", ["HPEXPIREAT", 99999999999999, "FIELDS", 1, "a"], [1])]:
            here("COPY", "h:1", name)
            assert is_compressed(here, name)
            assert here(command[0], name, *command[1:]) == reply
            assert not is_compressed(here, name) and here("HTTL", name, "FIELDS", 2, "a", "b")[1] == -1
            assert here("HTTL", name, "FIELDS", 1, "a")[0] > 900 and 900 < here("TTL", name) <= 1000
            assert here("HGET", name, "b") == b"2" and here("HSET", name, "c", 1) == 1 and here("HLEN", name) == 3
        assert here("HSETEX", "h:new", "EX", 1000, "FIELDS", 1, "a", 1) == 1 and not is_compressed(here, "h:new")
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST") and not is_compressed(there, "h:2") and is_compressed(there, "h:1")
        # The last field's end is the key's.
        assert here("HPEXPIRE", "h:new", 1, "FIELDS", 1, "a") == [1]
        until(lambda: here("EXISTS", "h:new") == 0, 10, "the end of a field")
        assert here("HSET", "h:new", "a", 1) == 1 and is_compressed(here, "h:new")


def test_a_value_whose_new_name_has_no_prefix_is_native(start):
    """RENAME, RENAMENX and COPY: native commands read it there, its time to live stays, and replicas are equal."""
    primary, replica = start(**PREFIXES), start(**PREFIXES)
    with primary.client() as here, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        for way in (["RENAME"], ["RENAMENX"], ["COPY"], ["COPY", "REPLACE"]):
            here("FLUSHDB")
            here("HSET", "h:1", "a", 1, "b", 2)
            here("SET", "s:1", "text", "EX", 1000)
            if "REPLACE" in way or way == ["RENAME"]:
                here("RPUSH", "map", 1)
                here("RPUSH", "text", 1)
            for name, other in (("h:1", "map"), ("s:1", "text")):
                assert here(way[0], name, other, *way[1:]) in (1, OK)
                assert not is_compressed(here, other) and here("EXISTS", name) == (way[0] == "COPY")
                assert way[0] != "COPY" or is_compressed(here, name)
            assert here("HGETALL", "map") == [b"a", b"1", b"b", b"2"] and here("GET", "text") == b"text"
            assert here("TTL", "map") == -1 and 900 < here("TTL", "text") <= 1000
            until(lambda: servers.is_replicated(here, there), 20, "the replica")
            assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST") and not is_compressed(there, "map")
        # A prefix of the other family does not help; one of its own does.
        here("FLUSHDB")
        here("HSET", "h:1", "a", 1)
        assert here("RENAME", "h:1", "h:2") == OK and is_compressed(here, "h:2")
        assert here("RENAME", "h:2", "s:2") == OK and not is_compressed(here, "s:2") and here("HGET", "s:2", "a") == b"1"
        # Only a large map stays, and the error is a sentence.
        for first in range(0, 65_537, 8_192):
            here("HSET", "h:large", *(part for n in range(first, min(first + 8_192, 65_537)) for part in (n, "v")))
        reply = here.request("RENAME", "h:large", "other")
        assert is_error(reply) and reply.value.startswith(b"ERR 'rename' would have") and b"  " not in reply.value and here("EXISTS", "h:large", "other") == 1
        # Nothing changes where the native command does nothing.
        here("HSET", "h:1", "a", 1)
        assert here("RENAMENX", "h:1", "s:2") == 0 == here("COPY", "h:1", "s:2") and here("RENAME", "h:1", "h:1") == OK
        assert is_error(here.request("RENAME", "h:none", "other")) and here("COPY", "h:none", "other") == 0 and is_compressed(here, "h:1")
        assert is_error(here.request("COPY", "h:1", "other", "NONSENSE")) and here("EXISTS", "other") == 0


def test_a_copy_in_another_database_without_a_prefix_is_native(start):
    """Alone, in a transaction and in a script, as a copy of a native value: replies, values, times to live,
    WATCH, replicas, the append-only file, and the client stays in its database."""
    primary, replica = start(appendonly="yes", **{"aof-use-rdb-preamble": "no"}, **PREFIXES), start(**PREFIXES)
    fields = [part for n in range(3000) for part in (f"field:{n}", f"value {n}")]
    options = [["DB", 3], ["DB", 3], ["DB", 3, "REPLACE"], ["replace", "db", "3"], ["DB", 5, "REPLACE", "DB", 3], ["DB", 0], ["DB", 0, "REPLACE"],
               ["DB", 2], ["DB", "x"], ["DB", 99], ["DB", -1], ["DB"], ["DB", 3, "NONSENSE"], ["REPLACE", "DB", 3, "DB"], ["DB", "03", "REPLACE"]]
    sources = {"h:1": "n:1", "s:1": "m:1", "h:long": "n:long", "s:long": "m:long", "s:none": "m:none"}
    with primary.client() as here, replica.client() as there, primary.client() as listener:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")

        def of_database(number):
            """The keys of a database without the letter of the twin: what they are, whether compressed, and until when."""
            held = {}
            here("SELECT", number)
            for name in here("KEYS", "x:*"):
                word = here("TYPE", name).value
                value = {b"hash": lambda: sorted(as_pairs(here("HGETALL", name))), b"string": lambda: here("GET", name)}[word]()
                held[name] = (word, is_compressed(here, name), value, here("PEXPIRETIME", name))
            here("SELECT", 0)
            return held

        for way in ("plain", "multi", "lua"):
            outcomes = []
            for mine in (True, False):
                here("FLUSHALL")
                for ours, native in sources.items():
                    name = ours if mine else native
                    if "none" not in name:
                        if name[0] in "hn":
                            here("HSET", name, *(fields if "long" in name else ["a", 1, "b", 2]))
                        else:
                            here("SET", name, b"text" * (30_000 if "long" in name else 1))
                        here("PEXPIREAT", name, 99999999999999)
                        assert is_compressed(here, name) == mine
                here("PERSIST", "h:1" if mine else "n:1")
                commands = [["COPY", ours if mine else native, f"x:{ours}", *option] for ours, native in sources.items() for option in options]
                here("SELECT", 2)
                here("RPUSH", "x:h:1", 1)
                here("SELECT", 0)
                replies = run(here, commands, way)
                assert here("DBSIZE") == 4 + len(here("KEYS", "x:*"))
                outcomes.append(([shape(["COPY"], reply, True) for reply in replies], [of_database(number) for number in (0, 3, 5)]))
                until(lambda: servers.is_replicated(here, there), 20, "the replica")
                assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST")
                there("SELECT", 3)
                assert not any(is_compressed(there, name) for name in there("KEYS", "*")) and there("DBSIZE") == 4
                there("SELECT", 0)
            assert outcomes[0] == outcomes[1], way
            assert set(outcomes[0][1][1]) == {b"x:h:1", b"x:s:1", b"x:h:long", b"x:s:long"}
        # A watched key of the other database, and nothing where there is nothing to copy.
        here("FLUSHALL")
        here("HSET", "h:1", "a", 1)
        listener("SELECT", 3)
        for command, is_run in (["COPY", "h:none", "x", "DB", 3], True), (["COPY", "h:1", "x", "DB", 3], False), (["COPY", "h:1", "x", "DB", 3], True):
            listener("WATCH", "x")
            here(*command)
            assert isinstance(listener.pipe([["MULTI"], ["PING"], ["EXEC"]])[-1], list) == is_run, command
        # A name with a prefix of the family stays compressed, one of the other family does not.
        assert here("COPY", "h:1", "h:2", "DB", 3) == here("COPY", "h:1", "s:2", "DB", 3) == 1
        assert is_compressed(listener, "h:2") and not is_compressed(listener, "s:2") and listener("HGET", "s:2", "a") == b"1"
        assert is_compressed(here, "h:1") and here("DBSIZE") == 1
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST")
        mark = here("DEBUG", "DIGEST")
    primary.restart()
    with primary.client() as here:
        assert here("DEBUG", "DIGEST") == mark
        here("SELECT", 3)
        assert not is_compressed(here, "x") and not is_compressed(here, "s:2") and is_compressed(here, "h:2")


@pytest.mark.only("valkey-9.1")
def test_a_copy_needs_the_right_to_its_database(start):
    """Alone, in a transaction and in a script, as a copy of a native value."""
    server = start(**PREFIXES)
    with server.client() as admin, server.client() as client:
        admin("HSET", "h:1", "a", 1)
        admin("HSET", "n:1", "a", 1)
        for databases, expected in (("db=0", ["refused"] * 3), ("alldbs", ["allowed"] * 3)):
            admin("ACL", "SETUSER", "u", "reset", "on", ">pw", "+@all", "~*", "resetdbs", databases)
            client("AUTH", "u", "pw")
            for name in ("n:1", "h:1"):
                command = ["COPY", name, f"x:{name}", "DB", "3", "REPLACE"]
                ways = [client.request(*command), client.request(*in_script(command)), in_transaction(client, command)]
                assert [verdict(reply) for reply in ways] == expected, (databases, name, ways)
        admin("SELECT", 3)
        assert admin("HGET", "x:h:1", "a") == b"1" and not is_compressed(admin, "x:h:1")


@pytest.mark.only("valkey-9.1")
def test_users_limited_to_databases_use_compressed_keys_in_these(start):
    """Alone, in a transaction and in a script: what a native key of the same content answers, in each database."""
    server = start(**PREFIXES)
    with server.client() as admin:
        for database in (0, 3):
            admin("SELECT", database)
            for name in ("n:1", "h:1"):
                admin("HSET", name, "a", 1)
            for name in ("m:1", "s:1"):
                admin("SET", name, "text")
        for databases in (["db=0"], ["db=3"], ["db=0,3"], ["db=7"], ["alldbs"], []):
            admin("ACL", "SETUSER", "u", "reset", "on", ">pw", "+@all", "~*", "resetdbs", *databases)
            for database in (0, 3):
                with server.client() as client:
                    # Selected as the default user, since the new one may have no right to select it.
                    client("SELECT", database)
                    client("AUTH", "u", "pw")
                    for native, compressed, command in (
                        ("n:1", "h:1", ["HGET", "", "a"]),
                        ("n:1", "h:1", ["HSET", "", "b", "2"]),
                        ("m:1", "s:1", ["GET", ""]),
                        ("m:1", "s:1", ["STRLEN", ""]),
                    ):
                        answers = []
                        for name in (native, compressed):
                            sent = [name if argument == "" else argument for argument in command]
                            ways = [client.request(*sent), client.request(*in_script(sent)), in_transaction(client, sent)]
                            answers.append([verdict(reply) for reply in ways])
                        assert answers[0] == answers[1], (databases, database, command, answers)
                        allowed = databases == ["alldbs"] or any(str(database) in rule for rule in databases)
                        assert answers[1] == ["allowed" if allowed else "refused"] * 3, (databases, database, command)
        for database in (0, 3):
            admin("SELECT", database)
            assert is_compressed(admin, "h:1") and is_compressed(admin, "s:1") and admin("HGET", "h:1", "b") == b"2"


def test_values_that_were_native_before_their_prefix_stay_native(start):
    """They are read and written as such, until something else takes their place."""
    server = start(**PREFIXES)
    client = server.client()
    client("HSET", "n", "f", "v")
    client("SET", "m", "text", "EX", 1000)
    client("RENAME", "n", "h:1")
    client("RENAME", "m", "s:1")
    assert client("HGET", "h:1", "f") == b"v" and client("HSET", "h:1", "g", "w") == 1 and client("HLEN", "h:1") == 2
    assert client("APPEND", "s:1", "!") == 5 and client("GET", "s:1") == b"text!" and client("MGET", "s:1", "s:2") == [b"text!", None]
    assert not is_compressed(client, "h:1") and not is_compressed(client, "s:1")
    client("SET", "m", "taken")
    client("RENAME", "m", "s:2")
    assert client("GETDEL", "s:2") == b"taken" and client("EXISTS", "s:2") == 0
    assert client("SET", "s:1", "new") == OK and is_compressed(client, "s:1") and client("TTL", "s:1") == -1
    with server.client(3) as other:
        assert other("HGETALL", "h:1").kind == "map"
        server.clients.remove(other)
    client("DEL", "h:1")
    client("HSET", "h:1", "f", "v")
    assert is_compressed(client, "h:1")


@pytest.mark.parametrize("settings", [{}, {"cluster-enabled": "yes"}], ids=["alone", "cluster"])
def test_a_refused_import_of_slots_changes_nothing_for_its_client(start, settings):
    """Whatever the reason of the refusal: the client's commands are rewritten as before."""
    server = start(**settings, **PREFIXES)
    with server.client() as admin, server.client() as client:
        if settings:
            admin("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            until(lambda: b"cluster_state:ok" in admin("CLUSTER", "INFO"), what="the cluster")
        admin("ACL", "SETUSER", "u", "on", ">pw", "+@all", "-cluster", "~*")
        admin("SET", "s:1", "v")
        admin("HSET", "h:1", "f", "v")
        name, node = "a" * 40, "b" * 40
        requests = [["CLUSTER", "SYNCSLOTS"], ["CLUSTER", "SYNCSLOTS", "ACK"], ["CLUSTER", "SYNCSLOTS", "ESTABLISH"], ["cluster", "syncslots", "establish", "NAME", name],
                    ["CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", node, "NAME", name, "SLOTSRANGE", 0, 1], ["CLUSTER", "SYNCSLOTS", "NONSENSE"]]
        for user in ("default", "u"):
            if user != "default":
                client("AUTH", user, "pw")
            for at, request in enumerate(requests):
                # Some are refused without a reply: what follows is answered in any case.
                client.socket.sendall(pack(request) + pack(["ECHO", "next"]))
                while (reply := client.read()) != b"next":
                    assert is_error(reply), (request, reply)
                assert client("GET", "s:1") == b"v" and client("HGET", "h:1", "f") == b"v", request
                assert client("SET", f"s:{user}:{at}", "v") == OK and is_compressed(admin, f"s:{user}:{at}"), request


def test_the_limits_of_compressed_values_are_not_those_of_native_ones(start, kind):
    """Native keys under a prefix, and keys without one in commands of several, take what the server allows; compressed
    ones are refused as wholes, before anything changes."""
    server = start(**PREFIXES)
    client = server.client()
    long_field, long_text = b"f" * 1017, bytes((64 << 20) + 1)
    client("HSET", "n", "f", 1)
    client("SET", "m", "text")
    client("RENAME", "n", "h:native")
    client("RENAME", "m", "s:native")
    assert client("HSET", "h:native", long_field, 1) == 1 and client("HMSET", "h:native", "a", 1, long_field, 2) == OK
    assert client("HSETNX", "h:native", long_field, 3) == 0 and client("HSETNX", "h:native", long_field + b"x", 3) == 1
    assert client("HINCRBY", "h:native", long_field, 5) == 7 and client("HINCRBYFLOAT", "h:native", long_field, 1) == b"8"
    assert client("HMGET", "h:native", "f", "a", long_field, long_field + b"x") == [b"1", b"1", b"8", b"3"]
    assert client("HSTRLEN", "h:native", long_field) == 1 and client("HDEL", "h:native", long_field) == 1 and client("HLEN", "h:native") == 3
    assert client("HSET", "h:native", "long", long_text) == 1 and client("HSTRLEN", "h:native", "long") == len(long_text)
    assert client("SETRANGE", "s:native", 64 << 20, "x") == (64 << 20) + 1 and client("APPEND", "s:native", "yz") == (64 << 20) + 3
    assert client("SETBIT", "s:native", 8 * (65 << 20), 1) == 0 and client("STRLEN", "s:native") == (65 << 20) + 1
    assert client("GETRANGE", "s:native", 64 << 20, (64 << 20) + 2) == b"xyz"
    assert not is_compressed(client, "h:native") and not is_compressed(client, "s:native")
    mixed = [["MSET", "s:1", "v", "plain", long_text]]
    if kind.name == "valkey-9.1":
        mixed.append(["MSETEX", 2, "s:1", "v", "plain", long_text, "EX", 1000])
    for command in [*mixed, ["MSETNX", "s:new", "v", "new", long_text]]:
        assert client(*command) in (OK, 1)
    for name, compressed in (("s:1", True), ("plain", False), ("s:new", True), ("new", False)):
        assert client("STRLEN", name) == (1 if compressed else len(long_text)) and is_compressed(client, name) == compressed
    client("HSET", "h:1", "f", "v")
    client("DEL", "h:native", "s:native", "plain", "new")
    mark = client("DEBUG", "DIGEST")
    refused_commands = [["HSET", "h:1", "g", 1, long_field, 1], ["HMSET", "h:none", "g", 1, long_field, 1], ["HSETNX", "h:1", long_field, 1], ["HINCRBY", "h:none", long_field, 1],
                        ["HSET", "h:1", "g", 1, "f", long_text], ["MSET", "plain", 1, "s:2", "v", "s:1", long_text], ["SETRANGE", "s:1", 64 << 20, "x"],
                        ["APPEND", "s:1", long_text[:-1]]]
    for command in refused_commands:
        assert is_error(client.request(*command)), command[:3]
    assert client("DEBUG", "DIGEST") == mark


def test_a_native_string_that_is_replaced_becomes_compressed(start, kind):
    """By each command that replaces it as a whole, here and on a replica; one that does nothing leaves it native."""
    primary, replica = start(**PREFIXES), start(**PREFIXES)
    with primary.client() as here, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        has_equal, long_text = kind.is_valkey, b"long " * 20_000
        replaces = [(["SET", "s:1", "new"], OK), (["SET", "s:1", "new", "GET"], b"old"), (["SET", "s:1", "new", "XX", "GET"], b"old"), (["SET", "s:1", "new", "KEEPTTL", "GET"], b"old"),
                    (["GETSET", "s:1", "new"], b"old"), (["GETSET", "s:1", long_text], b"old"), (["SETEX", "s:1", 1000, "new"], OK), (["PSETEX", "s:1", 1000000, "new"], OK),
                    (["MSET", "s:1", "new", "plain", 1], OK)]
        leaves = [(["SET", "s:1", "new", "NX"], None), (["SET", "s:1", "new", "NX", "GET"], b"old"), (["SETNX", "s:1", "new"], 0)]
        if has_equal:
            replaces += [(["SET", "s:1", "new", "IFEQ", "old"], OK), (["SET", "s:1", "new", "IFEQ", "old", "GET"], b"old")]
            leaves += [(["SET", "s:1", "new", "IFEQ", "other"], None), (["SET", "s:1", "new", "IFEQ", "other", "GET"], b"old")]
        for command, reply in replaces + leaves:
            for way in ("alone", "script"):
                if command[0] == "MSET" and way == "script":
                    continue
                here("DEL", "s:1")
                here("SET", "m", "old", "EX", 1000)
                here("RENAME", "m", "s:1")
                assert not is_compressed(here, "s:1")
                got = here(*command) if way == "alone" else here("EVAL", "return redis.call(unpack(ARGV))", 1, "s:1", *command)
                assert got == reply, (command[:2], way)
                is_replaced = (command, reply) in replaces
                wanted = b"old" if not is_replaced else command[3] if command[0].endswith("EX") else command[2]
                assert here("GET", "s:1") == (wanted if isinstance(wanted, bytes) else wanted.encode()), command
                assert is_compressed(here, "s:1") == is_replaced, (command, way)
                assert (here("TTL", "s:1") > 900) == (not is_replaced or "KEEPTTL" in command or command[0].endswith("EX")), command
                until(lambda: servers.is_replicated(here, there), 20, "the replica")
                assert is_compressed(there, "s:1") == is_replaced and here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST"), command
        # Another type is not replaced by a command that returns the old string.
        here("DEL", "s:1")
        here("RPUSH", "s:1", 1)
        for command in (["GETSET", "s:1", "new"], ["SET", "s:1", "new", "GET"]):
            reply = here.request(*command)
            assert is_error(reply) and reply.value.startswith(b"WRONGTYPE"), reply


def test_bits_of_compressed_strings_are_read(start):
    """Of short and long strings: at their ends and past them, in ranges of bytes and of bits, with the native errors."""
    server = start(**PREFIXES)
    client = server.client()
    source = random.Random(9)
    for length in (0, 1, 2, 700, 16 * 1024, 100_000):
        for value in (bytes((at * 37 + length) % 251 for at in range(length)), b"\x00" * length, b"\xff" * length, b"\xff" * (length // 2) + b"\x00" * (length - length // 2)):
            client.load([["SET", "s:1", value], ["SET", "m", value]])
            last = 8 * length
            edges = [0, 1, 7, 8, -1, -8, last // 2 + 3, last // 2, length // 2, last - 1, last, last + 8, -last, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, -(1 << 63), "x", ""]
            commands = [["GETBIT", offset] for offset in edges] + [["BITCOUNT"], ["BITCOUNT", 1], *(["BITPOS", bit] for bit in (0, 1, 2, "x"))]
            for _ in range(60):
                first, second = source.choice(edges), source.choice(edges)
                # Versions differ in what they check first.
                wrong = [["BITE"], ["BIT", "more"]] if all(isinstance(edge, int) and edge >= 0 for edge in (first, second)) else []
                unit = source.choice([[], ["BIT"], ["byte"], *wrong])
                commands += [["BITCOUNT", first, second, *unit], ["BITPOS", source.choice([0, 1]), first, second, *unit], ["BITPOS", source.choice([0, 1]), first]]
                commands.append(["BITFIELD_RO", *(part for edge in (first, second) for part in ("GET", source.choice(["u1", "i7", "u63", "i64"]), edge)),
                                 "OVERFLOW", source.choice(["WRAP", "sat", "FAIL", "none"]), "GET", "u13", f"#{last // 13}"])
            for name, *rest in commands:
                assert client.request(name, "s:1", *rest) == client.request(name, "m", *rest), (length, value[:9], name, rest)
            assert is_compressed(client, "s:1")
    client("DEL", "s:1")
    client("LP.HSET", "s:1", "f", "v")
    for name, *rest in (["GETBIT", 0], ["BITCOUNT"], ["BITPOS", 1], ["BITFIELD_RO", "GET", "u8", 0]):
        reply = client.request(name, "s:1", *rest)
        assert is_error(reply) and reply.value.startswith(b"WRONGTYPE"), reply


def test_compressed_hyperloglogs_are_counted(start):
    """As native ones: sparse and dense ones, with and without a cached count, with others, and spoiled ones; on a replica
    and in scripts that only read, nothing becomes native."""
    primary, replica = start(**PREFIXES), start(**PREFIXES)
    source = random.Random(11)
    with primary.client() as here, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        values = [b"", b"text", b"HYLL", b"HYLL" + bytes(12), b"HYLL\x02" + bytes(11), b"HYLL\x01" + bytes(10) + b"\x80"]
        for size in (0, 1, 2, 50, 1000, 3000, 20_000, 200_000):
            here("DEL", "made")
            for first in range(0, size, 5000):
                here("PFADD", "made", *range(first, min(first + 5000, size)))
            here("PFADD", "made")
            changed = here("GET", "made")
            here("PFCOUNT", "made")
            cached = here("GET", "made")
            values += [changed, cached, cached[:8] + bytes([7, 0, 0, 0, 0, 0, 0, 0]) + cached[16:], changed[:-1], changed + b"\x00", b"list" + changed[4:]]
        # Any registers. (Where all are at their greatest value, the native estimate is not a number.)
        for least in (0, 0x80):
            values.append(b"HYLL" + bytes(11) + b"\x80" + bytes(source.randrange(256) | least for _ in range(12_288)))
        for at, value in enumerate(values):
            here.load([["SET", f"s:{at}", value], ["SET", f"m:{at}", value]])
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        chosen = [[at] for at in range(len(values))] + [[source.randrange(len(values)) for _ in range(source.randrange(2, 5))] for _ in range(150)] + [[10, 999], [999, 10, 17]]
        counted = 0
        for choice in chosen:
            native = [f"m:{at}" for at in choice]
            # One native key among compressed ones, too.
            for names in ([f"s:{at}" for at in choice], native[:1] + [f"s:{at}" for at in choice[1:]] + ["s:999"]):
                expected = here.request("PFCOUNT", *(name.replace("s:", "m:") for name in names))
                assert here.request("PFCOUNT", *names) == there.request("PFCOUNT", *names) == expected, names
                counted += isinstance(expected, int) and expected > 0
        assert counted > 50
        assert here("EVAL_RO", "return redis.call('PFCOUNT', KEYS[1])", 1, "s:18") == here("PFCOUNT", "m:18") > 0
        here.load([["RPUSH", "s:list", 1], ["LP.HSET", "s:map", "f", "v"]])
        for names in (["s:list", "s:18"], ["s:18", "s:map"], ["s:18", "s:list"], ["m:18", "s:map", "s:18"]):
            reply = here.request("PFCOUNT", *names)
            assert is_error(reply) and reply.value.startswith(b"WRONGTYPE"), names
        assert all(is_compressed(client, f"s:{at}") for client in (here, there) for at in range(len(values)))


def scanned(client, *options):
    """All keys that a SCAN with these options returns."""
    cursor, found = b"0", []
    while True:
        cursor, page = client("SCAN", cursor, *options)
        found += page
        if cursor == b"0":
            return sorted(found)


def test_types_are_those_of_native_values(start):
    """TYPE and SCAN answer for compressed and native values alike, alone, in a transaction and in a script."""
    server = start(**PREFIXES)
    client = server.client()
    client.load([["HSET", f"{letter}:{at}", "f", "v"] for at in range(150) for letter in "hn"])
    client.load([["SET", f"{letter}:{at}", "v"] for at in range(150) for letter in "sm"])
    client.load([["RPUSH", "l", "v"], ["LP.HSET", "s:map", "f", "v"], ["SET", "s:gone", "v", "PX", 1], ["HSET", "h:gone", "f", "v"], ["PEXPIRE", "h:gone", 1]])
    until(lambda: client("EXISTS", "s:gone", "h:gone") == 0, what="the expiry")
    names = ["h:1", "n:1", "s:1", "m:1", "l", "s:map", "s:gone", "h:gone", "none"]
    types = [Reply("status", word) for word in (b"hash", b"hash", b"string", b"string", b"list", b"hash", b"none", b"none", b"none")]
    assert [client("TYPE", name) for name in names] == types
    assert client.pipe([["MULTI"], *(["type", name] for name in names), ["EXEC"]])[-1] == types
    assert [client("EVAL", "return redis.call('TYPE', KEYS[1]).ok", 1, name) for name in names] == [word.value for word in types]
    all_types = {name: client("TYPE", name).value for name in client("KEYS", "*")}
    for options in ([], ["COUNT", 1000], ["MATCH", "?:1*"], ["COUNT", 7, "MATCH", "*:12*"]):
        for wanted in (b"hash", b"string", b"list"):
            expected = sorted(name for name in scanned(client, *options) if all_types[name] == wanted)
            for spelling in (wanted, wanted.upper()):
                assert scanned(client, *options, "TYPE", spelling) == expected, (options, wanted)
                assert scanned(client, "type", spelling, *options) == expected, (options, wanted)
    assert scanned(client, "TYPE", "string", "TYPE", "list") == [b"l"]
    assert len(scanned(client, "TYPE", "leafpress")) == 301
    for command in (["SCAN", "x", "TYPE", "hash"], ["SCAN", "0", "TYPE", "hash", "COUNT"], ["SCAN", "0", "TYPE", "hash", "COUNT", "0"],
                    ["SCAN", "0", "TYPE", "hash", "NONSENSE", "1"]):
        expected = client.request(*[{"hash": "list"}.get(part, part) for part in command])
        assert is_error(expected) and client.request(*command) == expected, command
    # What native commands do not read has the module's type.
    client("LP.HSET", "elsewhere", "a", 1)
    assert client("TYPE", "elsewhere") == Reply("status", b"leafpress") and b"elsewhere" not in scanned(client, "TYPE", "hash")
    # No access counts.
    client("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    client("SET", "s:lfu", "v")
    before = client("OBJECT", "FREQ", "s:lfu")
    for _ in range(300):
        client("TYPE", "s:lfu")
    assert client("OBJECT", "FREQ", "s:lfu") == before


def test_names_for_the_filter_are_not_for_clients(start, kind):
    server = start(**PREFIXES)
    client = server.client()
    for name in ("LP._SETEX", "lp._setbit", "LP._AUTH_SETBIT", "lp._auth_sort"):
        reply = client.request(name, "s:1", 1, 1)
        assert is_error(reply) and b"is not for clients" in reply.value, (name, reply)
    assert client("EXISTS", "s:1") == 0
    for name in NEWER - FIELD_EXPIRY:
        assert isinstance(client("COMMAND", "INFO", "LP." + name)[0], list) == isinstance(client("COMMAND", "INFO", name)[0], list), name


def test_with_a_password_for_everybody_all_is_the_same(start):
    """The filter cannot distinguish the default user with a password from a client without authentication."""
    server = start(**PREFIXES)
    client = server.client()
    client("CONFIG", "SET", "requirepass", "pw")
    with server.client() as stranger:
        server.clients.remove(stranger)
        for command in (["SETBIT", "s:1", 7, 1], ["INCR", "s:1"], ["GETBIT", "s:1", 7], ["MSET", "s:1", 1, "x", 2]):
            reply = stranger.request(*command)
            assert is_error(reply) and reply.value.startswith(b"NOAUTH"), (command, reply)
    client("AUTH", "pw")
    assert client("SET", "s:1", "@") == OK and client("SETBIT", "s:1", 7, 1) == 0 and client("GET", "s:1") == b"A"
    assert client("INCR", "s:2") == 1 and is_compressed(client, "s:2")
    reply = client.request("HMSET", "h:1", "f", "v", "g")
    assert is_error(reply) and reply.value == b"ERR wrong number of arguments for 'hmset' command", reply
    reply = client.request("SETEX", "s:1", 0, "v")
    assert is_error(reply) and reply.value == b"ERR invalid expire time in 'setex' command", reply


def test_rules_by_category_hold_for_our_own_names(server):
    """On Redis 7.0 too, which has no categories for commands of modules."""
    writes = [["LP.HSET", "m", "f", "v"], ["LP.SET", "s", "v"], ["LP.REMRANGE", "m", "[x", "[y"], ["LP.HDEL", "m", "none"], ["LP.EXPORT", "m", "copy"]]
    reads = [["LP.HGET", "m", "f"], ["LP.GET", "s"], ["LP.RANGE", "m", "-", "+"], ["LP.COUNT", "m", "-", "+"], ["LP.INFO", "m"]]
    dangerous = [["LP.COMPACT"], ["LP.DICT", "TRAIN"]]
    with server.client() as admin:
        admin("LP.HSET", "m", "f", "v")
        admin("LP.SET", "s", "v")
        for rules, allowed in (("+@all", writes + reads + dangerous), ("+@all -@write -@dangerous", reads), ("+@all -@read", [*writes, *dangerous]),
                               ("+@all -@dangerous", writes + reads), ("-@all +lp.remrange +lp.hget", [writes[2], reads[0]]), ("-@all +ping", [])):
            admin("ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", *rules.split())
            with server.client() as client:
                client("AUTH", "u", "pw")
                got = [command for command in writes + reads + dangerous if verdict(client.request(*command)) == "allowed"]
                assert sorted(got) == sorted(allowed), rules
                server.clients.remove(client)
            admin("DEL", "copy")
        admin("ACL", "DELUSER", "u")
        server.clients.remove(admin)
