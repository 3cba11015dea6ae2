"""Microseconds of a call by the server's own clock (`INFO commandstats`): ours and native in one server, by turns."""
import random
import statistics

import data
import shapes
from resp import info
from servers import Server

# The most that a call may take, as a multiple of the native one, by command.
BARS = {"HGET": 1.2, "HSET": 1.5, "GET": 1.3, "SET": 1.5, "HGETALL": 1.0, "HINCRBY": 1.5}


def calls(table, kind, settings, options):
    """Fills maps of 10 fields and strings, as for the memory, and adds a row for each command: medians of the turns."""
    maps, strings = options.maps // 5, options.strings // 10
    server = Server(kind, **settings).start(seconds=120)
    try:
        with server.client(timeout=300) as client:
            for mine in (False, True):
                fill(client, maps, strings, mine)
            shapes.settle(client)
            measured = {command: ([], []) for command in BARS}
            for turn in range(options.turns * 2 + 1):
                for mine in (False, True) if turn % 2 == 0 else (True, False):
                    for command in BARS:
                        measured[command][mine].append(one(client, command, mine, maps, strings, turn))
        for command, (native, ours) in measured.items():
            native, ours = statistics.median(native), statistics.median(ours)
            table.add(f"{command}, us of a call", native, ours, ours / native, BARS[command])
    finally:
        server.remove()


def fill(client, maps, strings, mine):
    client.load(([shapes.name("HSET", mine), key(mine, "m", number), *(part for pair in pairs for part in pair), b"count", b"1"]
                 for number, pairs in enumerate(data.fields_of_64(maps))), at_once=100)
    client.load(([shapes.name("SET", mine), key(mine, "s", number), value] for number, value in enumerate(data.documents(strings))), at_once=200)


def key(mine, shape, number):
    return f"{shape}:{'ours' if mine else 'native'}:{number:012d}"


def one(client, command, mine, maps, strings, turn):
    """Returns the mean time of the calls of a turn, some thousand; both twins make the same calls."""
    drawn, count = random.Random(turn), 2_000 if command == "HGETALL" else 10_000
    fields = [field for field, _ in next(iter(data.fields_of_64(1)))]
    name = shapes.name(command, mine)

    def call(value):
        a_map, a_string = key(mine, "m", drawn.randrange(maps)), key(mine, "s", drawn.randrange(strings))
        return {"HGET": [name, a_map, drawn.choice(fields)], "HSET": [name, a_map, drawn.choice(fields), value[:64]], "GET": [name, a_string],
                "SET": [name, a_string, value], "HGETALL": [name, a_map], "HINCRBY": [name, a_map, "count", 1]}[command]

    commands = [call(value) for value in data.documents(count, seed=turn)]
    client("CONFIG", "RESETSTAT")
    client.load(commands, at_once=50)
    line = info(client, "commandstats")["cmdstat_" + name if mine else "cmdstat_" + name.lower()]
    return float(dict(part.split("=") for part in line.split(","))["usec_per_call"])
