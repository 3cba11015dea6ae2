"""Throughput and latency: ours and native in one server, by turns, medians of the turns."""
import statistics
import subprocess
import time

import data
import load
import shapes
from resp import info, is_error
from servers import Server, until


def fill(client, count):
    """Both twins' maps of `count` fields of JSON documents."""
    for mine in (False, True):
        client.load([shapes.name("HSET", mine), "map:" + ("ours" if mine else "native"), b"f:%012d" % number, value]
                    for number, value in enumerate(data.documents(count)))


def twins(count, **more):
    """The load on one twin's map and on the other's."""
    def of(mine):
        key = "map:" + ("ours" if mine else "native")
        return load.Load(read=[shapes.name("HGET", mine), key, "f:{k}"], write=[shapes.name("HSET", mine), key, "f:{k}", "{v}"], keys=count, **more)
    return {"native": of(False), "ours": of(True)}


def by_turns(server, loads, seconds, turns, values):
    """Returns the figures of every turn for each twin; the order alternates."""
    figures = {which: [] for which in loads}
    for turn in range(turns):
        order = list(loads) if turn % 2 == 0 else list(reversed(loads))
        for which in order:
            figures[which].append(load.run(server, loads[which], seconds, values, seed=turn + 1))
    return figures


def median(figures, name):
    return statistics.median(each[name] for each in figures)


def limited_by(figures):
    """Which side was busy, so that a figure is not taken for the server's that is the generator's."""
    return f"server busy {median(figures, 'server_busy'):.0%}, generator {median(figures, 'busy'):.0%}"


def throughput(table, kind, settings, options):
    values = load.Values(data.documents(5000, seed=9))
    server = Server(kind, **settings).start(seconds=120)
    try:
        with server.client(timeout=120) as client:
            fill(client, options.fields)
            shapes.settle(client)
        server.clients.clear()
        for clients, pipeline, bar in ((50, 1, 0.9), (50, 16, 0.6)):
            measured = by_turns(server, twins(options.fields, clients=clients, pipeline=pipeline), options.seconds, options.turns, values)
            native, ours = (median(measured[which], "rate") for which in ("native", "ours"))
            latencies = "; ".join(f"{which}: p50 {median(measured[which], 'read_p50'):.0f} us, p99 {median(measured[which], 'read_p99'):.0f} us, "
                             f"{limited_by(measured[which])}" for which in measured)
            table.add(f"HGET, {clients} clients" + (f", pipeline of {pipeline}" if pipeline > 1 else "") + ", operations/s", native, ours,
                      ours / native, bar, least=True, notes=latencies)
        mixed(table, server, values, options)
    finally:
        server.remove()
        values.remove()


def mixed(table, server, values, options):
    """80 reads to 20 writes, with trainings among them: tails, and the longest that anybody waited."""
    measured = by_turns(server, twins(options.fields, reads=80), options.seconds, options.turns, values)
    for what in ("read", "write"):
        native, ours = (median(measured[which], what + "_p99") for which in ("native", "ours"))
        table.add(f"80:20, p99 of {what}s, us", native, ours, ours / native, 1.5,
                  notes=f"rates {median(measured['native'], 'rate'):,.0f} and {median(measured['ours'], 'rate'):,.0f}")
    slowest = {}
    for which, requests in twins(options.fields, reads=80).items():
        process = load.start(server, requests, options.stall_seconds, values, seed=77)
        with server.client(timeout=30) as client:
            client("SLOWLOG", "RESET")
            client("CONFIG", "SET", "slowlog-log-slower-than", 5000)
            trainings = 0
            while process.poll() is None:
                trainings += which == "ours" and not is_error(client.request("LP.DICT", "TRAIN"))
                try:
                    process.wait(options.stall_seconds / 12)
                except subprocess.TimeoutExpired:
                    pass
            slow_commands = client("SLOWLOG", "LEN")
            longest_upkeep = info(client, "leafpress").get("leafpress_upkeep_longest_us", "?")
        figures = load.finish(process)
        slowest[which] = (max(figures["read_max"], figures["write_max"]) / 1000, int(figures["slow"]), slow_commands, trainings)
    table.add(f"80:20, longest wait in {options.stall_seconds} s, ms", slowest["native"][0], slowest["ours"][0], slowest["ours"][0], 10,
              notes=f"longest upkeep at a time {longest_upkeep} us; " + "; ".join(
                  f"{which}: {over} of all waited over 10 ms, {slow} commands of over 5 ms by the server's own clock, {trainings} trainings"
                  for which, (_, over, slow, trainings) in slowest.items()))


# Fields of the map that is moved.
MOVED_FIELDS = 100_000


def save(client):
    client("BGSAVE")
    until(lambda: info(client, "persistence")["rdb_bgsave_in_progress"] == "0", 120, "the end of BGSAVE")


def move(client, mine):
    """Moves a large map to another database and back."""
    name = "moved:" + ("ours" if mine else "native")
    for database, other in ((0, 1), (1, 0)):
        client("SELECT", database)
        client("MOVE", name, other)
    client("SELECT", 0)


def convert(client):
    """Makes small maps native, and compressed again."""
    for direction in ("EXPORT", "IMPORT"):
        client("LP.CONVERT", direction, "MATCH", "small:*")
        until(lambda: info(client, "leafpress")["leafpress_conversions_running"] == "0", 120, "the end of LP.CONVERT")


def stalls(table, kind, settings, options):
    """The longest that a client waited for a read or a write of a large map while something else runs again and
    again."""
    values = load.Values(data.documents(5000, seed=9))
    server = Server(kind, **settings).start(seconds=120)
    try:
        with server.client(timeout=120) as client:
            fill(client, options.fields)
            for mine in (False, True):
                client.load([shapes.name("HSET", mine), "moved:" + ("ours" if mine else "native"), b"f:%012d" % number, b"value %d" % number]
                            for number in range(MOVED_FIELDS))
            client.load(([shapes.name("HSET", True), b"small:%d" % number, *(part for pair in pairs for part in pair)]
                         for number, pairs in enumerate(data.fields_of_64(options.maps // 5))), at_once=100)
            shapes.settle(client)
        requests = twins(options.fields, reads=80)
        for what, run, of in (("BGSAVE", lambda client, _: save(client), ("native", "ours")),
                              (f"MOVE of a map of {MOVED_FIELDS:,} fields", move, ("native", "ours")),
                              (f"LP.CONVERT EXPORT and IMPORT of {options.maps // 5:,} maps", lambda client, _: convert(client), ("ours",))):
            waits, turns = {}, {}
            for which in of:
                process, turns[which] = load.start(server, requests[which], options.stall_seconds, values, seed=78), 0
                with server.client(timeout=120) as client:
                    while process.poll() is None:
                        run(client, which == "ours")
                        turns[which] += 1
                        time.sleep(0.1)
                figures = load.finish(process)
                waits[which] = max(figures["read_max"], figures["write_max"]) / 1000
            table.add(f"{what}, longest wait in {options.stall_seconds} s, ms", waits.get("native"), waits["ours"], waits["ours"], 10,
                      notes="; ".join(f"{which}: {count} times" for which, count in turns.items()))
    finally:
        server.remove()
        values.remove()
