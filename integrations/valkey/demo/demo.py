#!/usr/bin/env python3
"""Loads real records into a real Valkey twice, as native types and as Leafpress's, and prints what each takes and how
fast it answers."""
import argparse
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "harness"), os.path.join(os.path.dirname(HERE), "bench")]
import data  # noqa: E402
import load  # noqa: E402
import servers  # noqa: E402
import shapes  # noqa: E402

OUT = "leafpress-results/demo-valkey"


def stanzas_in_order(client, mine):
    """The index in the form that `load` requests: fields by number."""
    size, pairs = 0, data.stanzas()
    size = sum(12 + 2 + len(value) for _, value in pairs)
    client.load([shapes.name("HSET", mine), "index", b"f:%012d" % number, value] for number, (_, value) in enumerate(pairs))
    return size, len(pairs)


def small_maps(count):
    def fill(client, mine):
        return shapes.small_maps(count).load(client, mine), count
    return fill


def strings(count):
    def fill(client, mine):
        return shapes.strings(count).load(client, mine), count
    return fill


def requests_of(mine, shape, count):
    """A tenth of the commands write, so that what is read is also what was just written."""
    read, write = {
        "map": (["HGET", "index", "f:{k}"], ["HSET", "index", "f:{k}", "{v}"]),
        "maps": (["HGET", "m:{k}", "status"], ["HSET", "m:{k}", "status", "{v}"]),
        "strings": (["GET", "s:{k}"], ["SET", "s:{k}", "{v}"]),
    }[shape]
    return [shapes.name(read[0], mine), *read[1:]], [shapes.name(write[0], mine), *write[1:]], count


def measure(kind, fill, shape, mine, values, options, log):
    """The cells of a row."""
    server = servers.Server(kind, **{"leafpress.codec": options.codec}).start(seconds=120)
    try:
        with server.client(timeout=120) as client:
            before = shapes.settle(client)
            began = time.monotonic()
            size, count = fill(client, mine)
            seconds = time.monotonic() - began
            taken = shapes.settle(client) - before
        read, write, keys = requests_of(mine, shape, count)
        rates = []
        for clients, pipeline in ((50, 1), (50, 16)):
            figures = load.run(server, load.Load(read, write, keys, reads=90, clients=clients, pipeline=pipeline), options.seconds, values)
            rates.append(figures)
            log.write(f"{kind} {shape} {'ours' if mine else 'native'}: {size} user bytes, used_memory {taken}, filled in {seconds:.1f} s, "
                      f"pipeline {pipeline}: {figures}\n")
        alone, piped = rates
        return {"bytes": taken / size, "taken": taken, "rate": alone["rate"], "piped": piped["rate"], "p50": alone["read_p50"], "p99": alone["read_p99"],
                "size": size}
    finally:
        log.write(server.logged().decode(errors="replace"))
        server.remove()


def show(rows):
    heads = ["", "used_memory", "per user byte", "of native", "HGET, GET /s", "pipelined /s", "p50 us", "p99 us"]
    cells = [heads]
    for title, native, ours in rows:
        cells.append([f"{title} ({native['size'] / 1e6:.1f} MB)"] + [""] * 7)
        for which, figures in (("native", native), ("Leafpress", ours)):
            cells.append([f"  {which}", f"{figures['taken'] / 1e6:.1f} MB", f"{figures['bytes']:.2f}", f"{figures['taken'] / native['taken']:.2f}",
                          f"{figures['rate']:,.0f}", f"{figures['piped']:,.0f}", f"{figures['p50']:.0f}", f"{figures['p99']:.0f}"])
    widths = [max(len(row[at]) for row in cells if at or len(row[1])) for at in range(len(heads))]
    for row in cells:
        print("  ".join(part.ljust(widths[at]) if at == 0 else part.rjust(widths[at]) for at, part in enumerate(row)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", help="valkey-9.1, valkey-8.1 or redis-7.0; else the first that is there")
    parser.add_argument("--codec", default="lz4")
    parser.add_argument("--maps", type=int, default=20_000)
    parser.add_argument("--strings", type=int, default=30_000)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement of speed")
    options = parser.parse_args()
    there = [kind for kind in servers.kinds() if kind.is_there and options.server in (None, kind.name)]
    if not there:
        sys.exit("error: no server is there: " + "; ".join(kind.sought for kind in servers.kinds()))
    kind = there[0]
    os.makedirs(OUT, exist_ok=True)
    path = os.path.join(OUT, "log")
    print(f"\n{kind.binary} {'.'.join(map(str, kind.version))} with the module, codec {options.codec}; about a minute.")
    print("Records: Debian's package index, and JSON of the Unicode database, from data/. Of ten commands one writes.\n", flush=True)
    values = {"map": load.Values(value for _, value in data.stanzas()), "strings": load.Values(data.documents(2000, seed=8)),
              "maps": load.Values(value for pairs in data.fields_of_64(300, seed=8) for _, value in pairs)}
    rows = []
    with open(path, "w", encoding="utf-8") as log:
        for title, fill, shape in (("one map of package records", stanzas_in_order, "map"),
                                   (f"{options.maps:,} maps of 10 fields", small_maps(options.maps), "maps"),
                                   (f"{options.strings:,} strings of JSON", strings(options.strings), "strings")):
            print(f"==> {title}", flush=True)
            rows.append((title, *(measure(kind, fill, shape, mine, values[shape], options, log) for mine in (False, True))))
    for each in values.values():
        each.remove()
    print()
    show(rows)
    print(f"\n50 connections from this machine, one in ten commands a write; pipelined: 16 commands at once.\nThe log, with the servers': {path}")


if __name__ == "__main__":
    main()
