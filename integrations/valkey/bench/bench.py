#!/usr/bin/env python3
"""Compares the Valkey module with the native types of the same server, on this machine and in this run, and prints a
table with the limit of each figure. Takes a few minutes by default, an hour with --full."""
import argparse
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "harness"), HERE]
import access  # noqa: E402
import calls  # noqa: E402
import limits  # noqa: E402
import saving  # noqa: E402
import servers  # noqa: E402
import shapes  # noqa: E402
import speed  # noqa: E402
from table import Table  # noqa: E402


def memory(table, kind, settings, options):
    """Bytes of used_memory: of one map for each codec, and of many small values."""
    native = measure(kind, {}, shapes.one_map(options.corpus), False)
    table.add("one map of package index stanzas: used_memory per user byte, native", native[0] / native[1], None, notes=f"{native[1]:,} user bytes")
    for codec, bar in (("trial", 0.40), ("lz4", 0.58), ("zstd:3", 0.42)):
        ours = measure(kind, {"leafpress.codec": codec}, shapes.one_map(options.corpus), True)
        table.add(f"  the same, {codec}", native[0] / native[1], ours[0] / ours[1], ours[0] / ours[1], bar, notes=resident(ours))
    for shape, bar in ((shapes.small_maps(options.maps), 0.45), (shapes.strings(options.strings), 0.28),
                       (shapes.short_strings(options.strings), 0.7), (shapes.already_compressed(options.strings // 10), 1.10), (shapes.strings_compressed(options.strings // 10), 1.10)):
        native, ours = measure(kind, settings, shape, False), measure(kind, settings, shape, True)
        table.add(shape.what + ": used_memory", native[0], ours[0], ours[0] / native[0], bar,
                  notes=f"per user byte {native[0] / native[1]:.3f} and {ours[0] / ours[1]:.3f}; {resident(ours)}")


def measure(kind, settings, shape, mine):
    """In a server of its own, so that no data set finds what another left."""
    server = servers.Server(kind, **settings).start(seconds=120)
    try:
        return shapes.taken(server, shape, mine)
    finally:
        server.remove()


def resident(figures):
    return f"resident memory grew by {figures[2] / figures[0]:.2f} of used_memory's growth"


PARTS = {"memory": memory, "calls": calls.calls, "access": access.access, "throughput": speed.throughput, "stalls": speed.stalls, "saving": saving.saving,
         "eviction": limits.eviction, "maps-eviction": limits.eviction_of_maps, "cycles": limits.cycles}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="valkey-9.1", help="valkey-9.1 (the default), valkey-8.1 or redis-7.0")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), help="these parts")
    parser.add_argument("--full", action="store_true", help="the sizes that the bars are about; else a tenth of them")
    parser.add_argument("--codec", default="trial", help="of all rows but those that name one (trial)")
    parser.add_argument("--corpus", help="a file of package index stanzas instead of the bundled sample: plain, .gz or .zst")
    parser.add_argument("--out", default="leafpress-results/valkey.tsv")
    for flag, what in (("maps", "maps of 10 fields"), ("strings", "strings of JSON"), ("keys", "keys that are evicted among"),
                       ("fields", "fields of the map that is read"), ("cycles", "fill and FLUSHALL cycles"), ("saves", "saves of each kind under each amount of writes"),
                       ("turns", "turns of each twin"), ("seconds", "seconds of a turn"), ("stall-seconds", "seconds in which stalls are looked for")):
        parser.add_argument("--" + flag, type=int, help=what)
    options = parser.parse_args()
    # So that servers and their children end, one that stands still included.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sizes = {"maps": (10_000, 100_000), "strings": (100_000, 1_000_000), "keys": (20_000, 100_000), "fields": (50_000, 100_000), "cycles": (100, 1000),
             "saves": (1, 34), "turns": (3, 5), "seconds": (3, 5), "stall_seconds": (20, 60)}
    for flag, (less, full) in sizes.items():
        if getattr(options, flag) is None:
            setattr(options, flag, full if options.full else less)
    kind = next((kind for kind in servers.kinds() if kind.name == options.server), None)
    if kind is None or not kind.is_there:
        sys.exit(f"error: {kind.sought if kind else 'no such server: ' + options.server}")
    settings = {"leafpress.codec": options.codec}
    table = Table(options.out)
    print(f"{kind} {'.'.join(map(str, kind.version))}, {options.codec}, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in options.only or PARTS:
        print(f"==> {name}", flush=True)
        PARTS[name](table, kind, settings, options)
    table.show()


if __name__ == "__main__":
    main()
