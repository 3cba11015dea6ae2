"""Runs the same commands by ours and by the native ones in one server, and compares what both reply."""
import re
import time

from conftest import ours
from resp import QUEUED, Reply, is_error

# Native commands whose twin the module has; the others in a sequence (DEL, EXPIRE ...) are the same for both.
TWINS = {name: ours(name) for name in (
    "HSET", "HMSET", "HSETNX", "HGET", "HMGET", "HGETALL", "HDEL", "HGETDEL", "HEXISTS", "HLEN", "HSTRLEN", "HKEYS", "HVALS", "HSCAN",
    "HINCRBY", "HINCRBYFLOAT", "HRANDFIELD", "SET", "SETEX", "PSETEX", "SETNX", "GETSET", "GET", "GETEX", "GETDEL", "DELIFEQ", "MGET",
    "MSET", "MSETNX", "MSETEX", "STRLEN", "GETRANGE", "SUBSTR", "SETRANGE", "APPEND", "INCR", "INCRBY", "DECR", "DECRBY", "INCRBYFLOAT",
    "LCS")}
# Those that only some of the servers have.
FIELD_EXPIRY = {"HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT", "HPERSIST", "HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME", "HGETEX", "HSETEX"}
NEWER = {"HGETDEL", "DELIFEQ", "MSETEX", *FIELD_EXPIRY}
# Replies in an order that the native type does not promise, and replies in pairs.
UNORDERED, PAIRS = {"HKEYS", "HVALS"}, {"HGETALL"}


def key(name, mine):
    return ("o:" if mine else "n:") + name


class Key(str):
    """An argument that is a key: it gets a prefix for each of the twins."""


def spell(command, mine, transparent=False):
    """A command for one of the twins; in transparent mode both have the native name."""
    name = TWINS.get(command[0], command[0]) if mine and not transparent else command[0]
    return [name, *(key(part, mine) if isinstance(part, Key) else part for part in command[1:])]


def shape(command, reply, transparent=False):
    """What must be equal of a reply. In transparent mode errors name the native command."""
    name = command[0]
    if is_error(reply):
        text = reply.value.decode(errors="replace").replace("'o:", "'n:")
        text = text if transparent else text.lower().replace("lp.", "")
        # A script's error names the script and the line.
        return Reply("error", re.sub(r"( script: [0-9a-f]{40}.*| @user_script.*)$", "", text))
    if name in UNORDERED and isinstance(reply, list):
        return sorted(reply)
    if name in PAIRS:
        if isinstance(reply, list) and len(reply) % 2 == 0:
            return ("flat pairs", sorted(zip(reply[::2], reply[1::2])))
        if isinstance(reply, Reply) and reply.kind == "map":
            return ("map", sorted(reply.value))
    if name == "HSCAN" and isinstance(reply, list) and len(reply) == 2 and isinstance(reply[1], list):
        found = reply[1] if "NOVALUES" in command else zip(reply[1][::2], reply[1][1::2])
        return ("scan", reply[0], sorted(found))
    if name == "EXPIRETIME":
        return in_hundreds_of_seconds(reply)
    if name in ("HEXPIRETIME", "HPEXPIRETIME") and isinstance(reply, list):
        return [in_hundreds_of_seconds(each, 1000 if name[1] == "P" else 1) for each in reply]
    if name in ("HTTL", "HPTTL") and isinstance(reply, list):
        return [rounded(each, 1000 if name[1] == "P" else 1) for each in reply]
    if name == "HRANDFIELD" and isinstance(reply, list):
        return random_shape(command, reply)
    if name == "HRANDFIELD" and isinstance(reply, bytes):
        return "a field"
    return reply


def in_hundreds_of_seconds(at, units=1):
    """A time from now on, in fractions of a second (`units` of them): the requests to the twins were sent at different times, between
    which a second may have begun."""
    if isinstance(at, int) and 0 < at < units << 32:
        return ("expires in hundreds of seconds", round((at / units - time.time()) / 100))
    return at


def rounded(left, units):
    """A time that is left, in fractions of a second (`units` of them), for the same reason."""
    if isinstance(left, int) and left > 0:
        return ("left in hundreds of seconds", round(left / units / 100) if left < units << 32 else "for ever")
    return left


def random_shape(command, reply):
    """A random choice: how many, whether in pairs, and all of them where none can be missing or twice."""
    nested = bool(reply) and isinstance(reply[0], list)
    with_values = len(command) > 3
    fields = [pair[0] for pair in reply] if nested else reply[::2] if with_values else reply
    try:
        is_distinct = int(command[2]) > 0
    except ValueError:
        return ("random", reply)
    assert not is_distinct or len(set(fields)) == len(fields), f"{command}: {reply} names a field twice"
    return ("random", nested, len(reply), is_distinct)


def through_lua(command):
    return ["EVAL", "return redis.pcall(unpack(ARGV))", 0, *command]


def run(client, commands, way):
    """The replies of commands sent one by one, in one transaction, or each from a script."""
    if way == "lua":
        return client.pipe([through_lua(command) for command in commands])
    if way == "multi":
        replies = client.pipe([["MULTI"], *commands, ["EXEC"]])
        queued, done = replies[1:-1], replies[-1]
        if is_error(done):
            return [*queued, done]
        waiting = iter(done)
        return [next(waiting) if reply == QUEUED else reply for reply in queued]
    return client.pipe(commands)


def compare(client, commands, way="plain", transparent=False):
    """Runs commands by both twins from an empty keyspace and fails where they differ."""
    native = run(client, [spell(command, False) for command in commands], way)
    mine = run(client, [spell(command, True, transparent) for command in commands], way)
    assert len(native) == len(mine), f"{way}: {native[-1]} and {mine[-1]}"
    for at, (command, expected, got) in enumerate(zip(commands, native, mine)):
        assert shape(command, got, transparent) == shape(command, expected, transparent), (
            f"{way}, RESP{client.protocol}: {spell(command, True, transparent)} after {commands[:at]}\nexpected {expected!r}\n     got {got!r}")
        check_random(command, at, commands, got, client)


def check_random(command, at, commands, reply, client):
    """A random choice of ours must be among what the map holds; the map may have changed since, so only if it was the
    last."""
    if command[0] != "HRANDFIELD" or at != len(commands) - 1 or not reply or not isinstance(reply, (bytes, list)):
        return
    held = client.request(ours("HKEYS"), key(command[1], True))
    if is_error(held):
        return
    parts = reply if isinstance(reply, list) else [reply]
    fields = [part[0] for part in parts] if isinstance(parts[0], list) else parts[::2] if len(command) > 3 else parts
    assert set(fields) <= set(held), f"{command}: {reply} of {held}"
