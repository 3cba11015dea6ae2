"""Compares saves with the native types: the pages copied during a save under writes, the duration, and the size of the
files."""
import os
import re
import signal
import time

import data
import shapes
from resp import info
from servers import Server, until

# Percent of the maps that are written while the child saves.
SHARES = (1, 5, 20)


def commands(count, mine, seed):
    for number, pairs in enumerate(data.fields_of_64(count, seed=seed)):
        yield [shapes.name("HSET", mine), b"m:%012d" % number, *(part for pair in pairs for part in pair)]


def child_of(process):
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        return [int(each) for each in file.read().split()]


def copy_on_write(server, what, mine, count, writes, seed):
    """Bytes of pages that a save's child had to itself. The child stands still while `writes` maps of `count` are
    written, the same for both twins, so that it is the writes that are compared and not how long a save takes."""
    field = {"BGSAVE": "rdb", "BGREWRITEAOF": "aof"}[what]
    step = max(1, count // writes)
    with server.client(timeout=120) as client:
        client(what)
        child = until(lambda: child_of(server.process.pid), 20, "the child")[0]
        os.kill(child, signal.SIGSTOP)
        try:
            client.load((command for at, command in enumerate(commands(count, mine, seed)) if at % step == 0), at_once=50)
        finally:
            os.kill(child, signal.SIGCONT)
        until(lambda: info(client, "persistence")["rdb_bgsave_in_progress"] == info(client, "persistence")["aof_rewrite_in_progress"] == "0",
              120, "the end of " + what)
        reported = info(client, "persistence")
        status = reported["rdb_last_bgsave_status" if field == "rdb" else "aof_last_bgrewrite_status"]
        if status != "ok":
            raise RuntimeError(f"{what}: {status}")
        return int(reported[f"{field}_last_cow_size"])


def saving(table, kind, settings, options):
    sizes, saves, loads, copies = {}, {}, {}, {}
    for which, mine in (("native", False), ("ours", True)):
        server = Server(kind, **{"aof-use-rdb-preamble": "no", "appendfsync": "no", "auto-aof-rewrite-percentage": "0", **settings}).start(seconds=120)
        try:
            with server.client(timeout=300) as client:
                client.load(commands(options.maps, mine, 2), at_once=100)
                shapes.settle(client)
                times = []
                for _ in range(3):
                    began = time.monotonic()
                    client("SAVE")
                    times.append(time.monotonic() - began)
                saves[which], sizes[which] = sorted(times)[1], os.path.getsize(server.directory + "/dump.rdb")
            times = []
            for _ in range(3):
                server.kill()
                server.start(seconds=300)
                times.append(float(re.findall(rb"DB loaded from disk: ([0-9.]+) seconds", server.logged())[-1]))
            loads[which] = sorted(times)[1]
            copies[which] = {(what, share): [] for what in ("BGSAVE", "BGREWRITEAOF") for share in SHARES}
            for turn in range(options.saves):
                for (what, share), found in copies[which].items():
                    found.append(copy_on_write(server, what, mine, options.maps, options.maps * share // 100, 100 + turn))
        finally:
            server.remove()
    table.add(f"RDB of {options.maps:,} maps, bytes", sizes["native"], sizes["ours"], sizes["ours"] / sizes["native"], 0.7,
              notes="rdbcompression as the server has it by default")
    table.add("RDB save, s", saves["native"], saves["ours"], saves["ours"] / saves["native"], 2.0, notes="SAVE, median of 3")
    table.add("RDB load, s", loads["native"], loads["ours"], loads["ours"] / loads["native"], 2.0, notes="at the start, median of 3")
    for what, share in copies["native"]:
        native, ours = (sorted(copies[which][what, share])[options.saves // 2] for which in ("native", "ours"))
        table.add(f"{what}, {share}% of the maps written meanwhile, bytes copied on write", native, ours, ours / native, 1.3,
                  notes=f"median of {options.saves}, the child standing still during the writes; none hung")
