"""Random writes from a seed, what a server holds in the end, and whether two servers hold the same."""
import random

from conftest import ours
from resp import as_pairs, is_error

WORDS = [b"alpha", b"beta", b"gamma", b"\"name\":", b"\"colour\":", b"{\"id\":", b"true,", b"null}", b"http://example.org/", b"  ", b"0000", b"\x00\xff"]


def value(source):
    """Text that compresses somewhat, of many lengths; now and then bytes that do not, or nothing."""
    draw = source.random()
    if draw < 0.03:
        return b""
    if draw < 0.1:
        return source.randbytes(source.randrange(1, 600))
    length = 2000 if draw > 0.99 else 40
    return b" ".join(source.choice(WORDS) for _ in range(source.randrange(1, length)))


def random_writes(seed, count, keys=200, fields=60):
    """Commands that change keys of ours, each the same for the same seed. None depends on chance in the server."""
    source = random.Random(seed)
    for _ in range(count):
        name = f"key:{source.randrange(keys)}"
        field = f"field:{source.randrange(fields)}"
        other = f"key:{source.randrange(keys)}"
        draw = source.random()
        if draw < 0.45:
            yield [ours("HSET"), name, field, value(source), f"field:{source.randrange(fields)}", value(source)]
        elif draw < 0.55:
            yield [ours("HDEL"), name, field]
        elif draw < 0.60:
            yield [ours("HINCRBY"), name, f"count:{source.randrange(5)}", source.randrange(-1000, 1000)]
        elif draw < 0.63:
            yield [ours("HINCRBYFLOAT"), name, f"sum:{source.randrange(5)}", source.choice(["0.1", "3.25", "-1e3"])]
        elif draw < 0.66:
            yield [ours("HSETNX"), name, field, value(source)]
        elif draw < 0.80:
            yield [ours("SET"), "string:" + name, value(source), *(["EX", 100_000] if draw < 0.69 else ["KEEPTTL"] if draw < 0.72 else [])]
        elif draw < 0.85:
            yield [ours("APPEND"), "string:" + name, value(source)]
        elif draw < 0.865:
            count = "count:" + name
            yield source.choice([[ours("INCRBY"), count, source.randrange(-1000, 1000)], [ours("DECR"), count], [ours("GETSET"), count, source.randrange(100)],
                                 [ours("INCRBYFLOAT"), count, source.choice(["0.1", "3.25", "-1e3"])], [ours("GETDEL"), count]])
        elif draw < 0.875:
            yield source.choice([[ours("SETEX"), "string:" + name, 100_000, value(source)], [ours("SETNX"), "string:" + name, value(source)],
                                 [ours("SETRANGE"), "string:" + name, source.randrange(100), value(source)], [ours("GETEX"), "string:" + name, "PERSIST"],
                                 [ours("MSETNX"), "string:" + name, value(source), "string:" + other, value(source)]])
        elif draw < 0.88:
            yield [ours("HMSET"), name, field, value(source)]
        elif draw < 0.895:
            yield [ours("MSET"), "string:" + name, value(source), "string:" + other, value(source)]
        elif draw < 0.91:
            yield [source.choice(["DEL", "UNLINK"]), name]
        elif draw < 0.93:
            yield ["RENAME", name, other]
        elif draw < 0.96:
            yield ["COPY", name, other, "REPLACE"]
        elif draw < 0.98:
            yield ["EXPIRE", name, 100_000]
        elif draw < 0.99 or ours("X") == "X":
            yield ["PERSIST", name]
        else:
            yield ["LP.REMRANGE", name, "[field:1", "(field:2"]


# What such writes may be refused for; anything else is a fault.
REFUSED = (b"WRONGTYPE", b"ERR source and destination", b"ERR no such key", b"ERR hash value is not", b"ERR value is NaN", b"ERR value is not")


def write(client, commands):
    """Sends them; the number of those that were not refused."""
    done, part = 0, []

    def send():
        count = 0
        for command, reply in zip(part, client.pipe(part)):
            if not is_error(reply):
                count += 1
            elif not reply.value.startswith(REFUSED):
                raise AssertionError(f"{reply} to {command}")
        part.clear()
        return count

    for command in commands:
        part.append(command)
        if len(part) == 500:
            done += send()
    return done + send()


def contents(client):
    """All that the server holds: for each key its map or string, and whether it expires."""
    found, cursor = {}, b"0"
    while True:
        cursor, names = client("SCAN", cursor, "COUNT", 500)
        replies = client.pipe([part for name in names for part in ([ours("HGETALL"), name], [ours("GET"), name], ["PEXPIRETIME", name])])
        for at, name in enumerate(names):
            as_map, as_string, expires = replies[3 * at:3 * at + 3]
            assert is_error(as_map) != is_error(as_string), f"{name}: {as_map} and {as_string}"
            found[name] = (as_string if is_error(as_map) else dict(as_pairs(as_map)), expires)
        if cursor == b"0":
            return found


def digest(client):
    return client("DEBUG", "DIGEST").value


def big_map(client, name, fields, seed=1, size=200):
    """A map of many fields."""
    source = random.Random(seed)
    client.load([ours("HSET"), name, f"field:{at:08}", b" ".join(source.choice(WORDS) for _ in range(size // 8))] for at in range(fields))
