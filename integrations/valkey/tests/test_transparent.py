"""Compares the transparent mode with the native type: what users may do, what a replica does, and where commands are
left unchanged."""
import itertools

import pytest

import servers
from conftest import CONTROL
from resp import OK, Reply, as_pairs, info, is_error
from servers import until

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
    "MSET K v L w"]


def spelled(command, kind):
    """A command for keys of ours or native ones; both look alike to patterns of access control."""
    name, *rest = command.split()
    letter = ("h" if name.startswith("H") else "s") if kind == "ours" else "n" if name.startswith("H") else "m"
    return [name] + [{"K": f"{letter}:own:1", "L": f"{letter}:other:1"}.get(part, part) for part in rest]


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
    client.ask("MULTI")
    queued = client.ask(*command)
    done = client.ask("EXEC")
    if is_error(queued):
        client.ask("DISCARD")
        return queued
    return done[0] if isinstance(done, list) and done else done


def prepare(admin):
    admin("FLUSHALL")
    for letter, other in (("h", "s"), ("n", "m")):
        for name in ("own", "other"):
            admin("HSET", f"{letter}:{name}:1", "f", "v", "n", 1)
            admin("SET", f"{other}:{name}:1", "text")


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
        assert admin("TYPE", "h:own:1") == Reply("status", b"leafpress") and admin("TYPE", "n:own:1") == Reply("status", b"hash")
        differ = []
        for number, name in enumerate(USERS):
            # Redis 7.0 does not report which client sends a command, and knows our commands by their names only.
            by_name = kind.name == "redis-7.0" and default == "password"
            with server.client() as client:
                server.clients.remove(client)
                client("AUTH", f"user{number}", "pw")
                for command, way in itertools.product(COMMANDS, (client.ask, "script", "transaction")):
                    answers = []
                    for kind_of_key in ("native", "ours"):
                        words = spelled(command, kind_of_key)
                        if way == "script":
                            reply = client.ask(*in_script(words))
                        elif way == "transaction":
                            reply = in_transaction(client, words)
                        else:
                            reply = way(*words)
                        answers.append(verdict(reply))
                    if answers[0] != answers[1] and not (by_name and answers == ["allowed", "refused"]):
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
                reply = stranger.ask(*command)
                assert is_error(reply) and reply.value.startswith(b"NOAUTH"), (command, reply)
            for command in (["LP._GET", "s:1"], ["lp._set", "s:1", "w"], ["LP._HGET", "h:1", "f"]):
                assert is_error(stranger.ask(*command)), command
                assert is_error(admin.ask(*command)), command
        assert admin("GET", "s:1") == b"v"
        # The password goes and comes while the server runs.
        admin("CONFIG", "SET", "requirepass", "")
        with server.client() as anybody:
            assert anybody("GET", "s:1") == b"v"
        admin("CONFIG", "SET", "requirepass", "other")
        with server.client() as stranger:
            reply = stranger.ask("GET", "s:1")
            assert is_error(reply) and reply.value.startswith(b"NOAUTH"), reply


def test_rights_that_are_taken_count_in_a_transaction_that_was_begun(start):
    server = start(**PREFIXES)
    with server.client() as admin, server.client() as client:
        admin("ACL", "SETUSER", "u", "on", ">pw", "+@all", "~*")
        client("AUTH", "u", "pw")
        client("MULTI")
        client("SET", "s:1", "v")
        admin("ACL", "SETUSER", "u", "-set")
        done = client.ask("EXEC")
        assert verdict(done[0] if isinstance(done, list) else done) == "refused", done
        assert admin("EXISTS", "s:1") == 0


def test_refusals_are_in_the_log(start):
    server = start(**PREFIXES)
    with server.client() as admin, server.client() as client:
        admin("ACL", "SETUSER", "u", "on", ">pw", "+@all", "-hset", "~*")
        client("AUTH", "u", "pw")
        assert verdict(client.ask("HSET", "h:1", "f", "v")) == "refused"
        entries = [dict(as_pairs(entry)) for entry in admin("ACL", "LOG")]
        assert [entry[b"object"].lower() for entry in entries] == [b"hset"], entries


def native_key_flags(client, name):
    """What each key of a command is used for."""
    entry = client("COMMAND", "INFO", name)[0]
    specs = [dict(as_pairs(spec)) for spec in entry[8]]
    return [sorted(flag.value if isinstance(flag, Reply) else flag for flag in spec[b"flags"]) for spec in specs]


def test_keys_are_used_as_by_the_native_commands(client):
    for name in sorted({command.split()[0] for command in COMMANDS} - {"SUBSTR"}):
        wanted = [set(flags) & {b"access", b"update", b"insert", b"delete", b"variable_flags"} for flags in map(set, native_key_flags(client, name))]
        for ours in ("LP." + name, "LP._" + name):
            got = [set(flags) & {b"access", b"update", b"insert", b"delete", b"variable_flags"} for flags in map(set, native_key_flags(client, ours))]
            assert got == wanted, (ours, got, wanted)


# Native commands without a twin; the server sends them to replicas as others, which have one.
SENT_AS_OTHERS = [
    ["SETEX", "s:setex", 1000, "v"], ["PSETEX", "s:psetex", 1000000, "v"], ["GETSET", "s:getset", "v"], ["INCRBYFLOAT", "s:incrbyfloat", "1.5"],
    ["SETNX", "s:setnx", "v"], ["INCR", "s:incr"], ["HMSET", "h:hmset", "a", 1], ["RENAME", "n", "h:renamed"],
    ["EVAL", "redis.call('SETEX', KEYS[1], 100, 'v') return redis.call('INCRBYFLOAT', KEYS[2], 2)", 2, "s:lua1", "s:lua2"],
    ["HSET", "h:ours", "f", "v", "g", "w"], ["HDEL", "h:ours", "g"], ["SET", "s:ours", "v", "PX", 100000], ["SET", "s:ours", "w", "KEEPTTL"],
    ["EVAL", "redis.call('SET', KEYS[1], 'v'); redis.call('HSET', KEYS[2], 'f', 'v'); return redis.call('HINCRBYFLOAT', KEYS[2], 'n', '0.1')", 2, "s:lua3", "h:lua3"]]
OF_VALKEY_9 = [
    ["HSETEX", "h:hgetdel", "EX", 300, "FIELDS", 2, "a", 1, "b", 2], ["HGETDEL", "h:hgetdel", "FIELDS", 1, "a"],
    ["HSETEX", "h:hexp0", "EX", 300, "FIELDS", 2, "a", 1, "b", 2], ["HEXPIRE", "h:hexp0", 0, "FIELDS", 1, "a"],
    ["HSETEX", "h:brief", "PX", 1, "FIELDS", 1, "a", 1]]


def all_of(client):
    """Types and digests of all keys."""
    return {name: (client("TYPE", name).value, client("DEBUG", "DIGEST-VALUE", name)) for name in client("KEYS", "*")}


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
        assert held[b"s:setex"][0] == b"string" and held[b"s:lua3"][0] == b"leafpress" and held[b"h:tx"][0] == b"leafpress"
        assert all_of(there) == held
        assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST")
        assert b"== CRITICAL ==" not in replica.said()
        # A reader of the replica finds them as the primary's does.
        assert there("HGET", "h:ours", "f") == b"v" and there("GET", "s:ours") == b"w"
        if kind.name != "redis-7.0" and read_only == "no":
            assert there("SET", "s:here", "v") == OK and there("TYPE", "s:here") == Reply("status", b"leafpress")
    primary.restart()
    with primary.client() as here:
        assert all_of(here) == held


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
                got = [command for command in writes + reads + dangerous if verdict(client.ask(*command)) == "allowed"]
                assert sorted(got) == sorted(allowed), rules
                server.clients.remove(client)
            admin("DEL", "copy")
        admin("ACL", "DELUSER", "u")
        server.clients.remove(admin)
