"""Eviction at a limit of memory, and filling and emptying over and over."""
import re

import data
import shapes
from resp import info, is_error
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
                # A training that ends after the load makes room, which more keys fill.
                load(options.keys, options.keys * 3 // 2)
                shapes.settle(client)
                *_, (kept, stats) = client.pipe([["MULTI"], ["DBSIZE"], ["INFO", "stats"], ["EXEC"]])
                evicted = int(re.search(rb"evicted_keys:(\d+)", stats).group(1))
                fits = options.keys // 2
                found[which] = (abs(shapes.used(client) - limit) / limit, evicted / (options.keys * 3 // 2 - fits), kept, limit)
        finally:
            server.remove()
    details = "; ".join(f"{which}: limit {limit:,}, {kept:,} kept of {options.keys // 2:,} that fit" for which, (_, _, kept, limit) in found.items())
    table.add(f"allkeys-lru, {options.keys:,} keys, distance from the limit", found["native"][0], found["ours"][0], found["ours"][0], 0.02, notes=details)
    table.add("allkeys-lru, evicted vs necessary evictions", found["native"][1], found["ours"][1], found["ours"][1], 1.1)


# Fields of the maps that are evicted, and how many native ones the limit is for.
MAPS = ((65, 3000), (1000, 200))


def map_commands(fields, count, mine):
    """Maps of short fields, each written by one command."""
    texts = [value for pairs in data.fields_of_64(200, seed=7) for _, value in pairs]
    for number in range(count):
        yield [shapes.name("HSET", mine), b"m:%012d" % number,
               *(part for field in range(fields) for part in (b"f:%06d" % field, texts[(number * 31 + field) % len(texts)]))]


def eviction_of_maps(table, kind, settings, options):
    """Maps come until four times as many were written as fit natively: how many are kept at the same limit, by policy
    and way of freeing. A server that evicts lazily may refuse a large native map, until its thread has freed others."""
    for fields, fits in MAPS:
        server = Server(kind, **settings).start()
        try:
            with server.client(timeout=120) as client:
                client.load(map_commands(fields, fits, False), at_once=10)
                limit = shapes.settle(client)
        finally:
            server.remove()
        for policy in ("allkeys-lru", "allkeys-lfu", "allkeys-random"):
            for lazily in ("no", "yes"):
                kept, room, refused = {}, {}, {}
                for which, mine in (("native", False), ("ours", True)):
                    server = Server(kind, **{**settings, "maxmemory": limit, "maxmemory-policy": policy, "lazyfree-lazy-eviction": lazily}).start()
                    try:
                        with server.client(timeout=120) as client:
                            refused[which] = sum(is_error(reply) for reply in client.pipe(map_commands(fields, 4 * fits, mine), at_once=10))
                            shapes.settle(client)
                            kept[which], room[which] = client("DBSIZE"), shapes.used(client) / limit
                    finally:
                        server.remove()
                table.add(f"maps of {fields:,} fields, {policy}, lazyfree {lazily}: keys kept", kept["native"], kept["ours"], kept["ours"] / kept["native"], 0.98,
                          least=True, notes=f"of {4 * fits:,} with room for {fits:,} native ones; used of the limit {room['native']:.3f} and {room['ours']:.3f}; "
                          f"refused {refused['native']} and {refused['ours']}")


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
