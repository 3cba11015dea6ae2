"""Eviction at a limit of memory, and filling and emptying over and over."""
import re

import data
import shapes
from resp import info
from servers import Server


def eviction(table, kind, settings, options):
    """Keys come until far more were written than fit; how near memory stays to the limit, and how many more went than
    had to."""
    found = {}
    for which, mine in (("native", False), ("ours", True)):
        server = Server(kind, **settings).start()
        try:
            with server.client(timeout=120) as client:
                def load(first, last, mine=mine, client=client):
                    values = list(data.documents(2000, seed=5))
                    client.load(([shapes.name("SET", mine), b"s:%012d" % at, values[at * 31 % 2000]] for at in range(first, last)), at_once=50)
                # The limit is the memory at which half of the keys are stored: that many fit.
                load(0, options.keys // 2)
                limit = shapes.used(client)
                client("FLUSHALL", "SYNC")
                client("CONFIG", "SET", "maxmemory", limit, "maxmemory-policy", "allkeys-lru")
                load(0, options.keys)
                shapes.settle(client)
                *_, (kept, stats) = client.pipe([["MULTI"], ["DBSIZE"], ["INFO", "stats"], ["EXEC"]])
                evicted = int(re.search(rb"evicted_keys:(\d+)", stats).group(1))
                fits = options.keys // 2
                found[which] = (abs(shapes.used(client) - limit) / limit, evicted / (options.keys - fits), kept, limit)
        finally:
            server.remove()
    details = "; ".join(f"{which}: limit {limit:,}, {kept:,} kept of {options.keys // 2:,} that fit" for which, (_, _, kept, limit) in found.items())
    table.add(f"allkeys-lru, {options.keys:,} keys, distance from the limit", found["native"][0], found["ours"][0], found["ours"][0], 0.02, notes=details)
    table.add("allkeys-lru, evicted vs necessary evictions", found["native"][1], found["ours"][1], found["ours"][1], 1.1)


def cycles(table, kind, settings, options):
    """What stays after filling and FLUSHALL, SYNC and ASYNC by turns."""
    found = {}
    for which, mine in (("native", False), ("ours", True)):
        server = Server(kind, **settings).start()
        try:
            with server.client(timeout=120) as client:
                texts = list(data.documents(500, seed=6))

                def turn(at, mine=mine, client=client):
                    client.load([shapes.name("HSET", mine), b"m:%d" % number,
                                 *(part for field in range(20) for part in (b"f:%d" % field, texts[(number * 20 + field + at) % 500]))]
                                for number in range(50))
                    client("FLUSHALL", "ASYNC" if at % 2 else "SYNC")
                for at in range(4):
                    turn(at)
                before, resident, most = shapes.settle(client), server.resident(), 0
                for at in range(options.cycles):
                    turn(at)
                    if at % 100 == 99 or at == options.cycles - 1:
                        most = max(most, shapes.settle(client) - before)
                found[which] = (most, server.resident() - resident, info(client, "memory")["used_memory_human"])
        finally:
            server.remove()
    table.add(f"{options.cycles:,} fill and FLUSHALL cycles, bytes that stayed", found["native"][0], found["ours"][0], found["ours"][0], 1 << 20,
              notes="; ".join(f"{which}: resident memory grew by {grown:,}" for which, (_, grown, _) in found.items()))
