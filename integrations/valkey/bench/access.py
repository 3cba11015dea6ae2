"""Microseconds of a call on a large value by the server's own clock: a part of a long string, and a few fields of a
large map, ours and native in one server, by turns."""
import random
import statistics

import data
import shapes
from resp import info
from servers import Server

# The most that a call may take, as a multiple of the native one.
BAR = 3.0
STRING_BYTES = 4 << 20


def access(table, kind, settings, options):
    server = Server(kind, **settings).start(seconds=120)
    try:
        with server.client(timeout=300) as client:
            for mine in (False, True):
                fill(client, options.fields, mine)
            shapes.settle(client)
            measured = {command: ([], []) for command in ("APPEND", "GETRANGE", "HRANDFIELD", "HSCAN")}
            for turn in range(options.turns * 2 + 1):
                for mine in (False, True) if turn % 2 == 0 else (True, False):
                    for command in measured:
                        measured[command][mine].append(one(client, command, mine, turn))
        what = {"APPEND": f"of 10 bytes to {STRING_BYTES >> 20} MiB", "GETRANGE": f"of 10 bytes of {STRING_BYTES >> 20} MiB",
                "HRANDFIELD": f"of one of {options.fields:,} fields", "HSCAN": f"COUNT 10 of {options.fields:,} fields"}
        for command, (native, ours) in measured.items():
            native, ours = statistics.median(native), statistics.median(ours)
            table.add(f"{command} {what[command]}, us of a call", native, ours, ours / native, BAR)
    finally:
        server.remove()


def key(mine, what):
    return f"{what}:{'ours' if mine else 'native'}"


def fill(client, fields, mine):
    text = b"".join(data.documents(STRING_BYTES // 600, seed=8))[:STRING_BYTES]
    client.load([shapes.name("APPEND", mine), key(mine, "long"), text[at:at + (1 << 20)]] for at in range(0, len(text), 1 << 20))
    client.load([shapes.name("HSET", mine), key(mine, "map"), b"f:%012d" % number, value] for number, value in enumerate(data.documents(fields)))


def one(client, command, mine, turn):
    """Returns the mean time of the calls of a turn; both twins make the same calls."""
    drawn, count, name = random.Random(turn), 2000, shapes.name(command, mine)
    client("CONFIG", "RESETSTAT")
    if command == "APPEND":
        client.load(([name, key(mine, "long"), b"%010d" % drawn.randrange(10**10)] for _ in range(count)), at_once=50)
    elif command == "GETRANGE":
        starts = [drawn.randrange(STRING_BYTES - 10) for _ in range(count)]
        client.load(([name, key(mine, "long"), start, start + 9] for start in starts), at_once=50)
    elif command == "HRANDFIELD":
        client.load(([name, key(mine, "map")] for _ in range(count)), at_once=50)
    else:
        cursor = b"0"
        for _ in range(count):
            cursor, _fields = client(name, key(mine, "map"), cursor, "COUNT", 10)
    line = info(client, "commandstats")["cmdstat_" + name if mine else "cmdstat_" + name.lower()]
    return float(dict(part.split("=") for part in line.split(","))["usec_per_call"])
