"""A cluster of three primaries with a replica each: slots move and primaries fall under writes, and what WAIT
acknowledged stays.

Each is done with the native hash too, so that a loss can be distinguished from one of the server's own."""
import threading
import time

import pytest

from cluster import Cluster, ClusterClient, slot_of
from conftest import CONTROL, demand, ours
from filling import random_writes
from resp import OK, Reply, as_pairs, is_compressed, is_error
from servers import is_replicated, until

KEYS = [f"map:{number}" for number in range(60)]
TYPES = ["ours", "native"]


@pytest.fixture(scope="module")
def cluster(kind):
    demand(kind)
    cluster = Cluster(kind)
    yield cluster
    faults = [fault for fault in (server.faults() for server in cluster.servers) if fault]
    cluster.remove()
    assert not faults, faults[0]


class Writers:
    """Threads that write fields, each once, and remember which of them a replica acknowledged."""

    def __init__(self, cluster, name, count=3):
        self.cluster, self.name = cluster, name
        self.ending, self.failures = threading.Event(), []
        self.acknowledged, self.unacknowledged = [], 0
        self.threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]

    def _write(self, number):
        client, at, mine = ClusterClient(self.cluster), 0, []
        try:
            while not self.ending.is_set():
                key, field = KEYS[(at * 7 + number) % len(KEYS)], f"{number}:{at}"
                _, replicas = client(self.name("HSET"), key, field, f"value {at} " * 10, wait=500)
                if replicas:
                    mine.append((key, field, f"value {at} " * 10))
                else:
                    self.unacknowledged += 1
                at += 1
        except Exception as failure:  # noqa: BLE001  (reported by the test)
            self.failures.append(repr(failure))
        finally:
            self.acknowledged += mine
            client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        time.sleep(0.5)
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        """None of what was acknowledged is lost."""
        assert not self.failures, self.failures
        assert len(self.acknowledged) > 50, f"{len(self.acknowledged)} acknowledged, {self.unacknowledged} not"
        self.cluster.wait_for_agreement()
        client = ClusterClient(self.cluster)
        held = {key: dict(as_pairs(client(self.name("HGETALL"), key))) for key in KEYS}
        lost = [(key, field) for key, field, value in self.acknowledged if held[key].get(field.encode()) != value.encode()]
        client.close()
        print(f"{len(self.acknowledged)} acknowledged writes, {self.unacknowledged} others, {len(lost)} lost")
        assert not lost, f"{len(lost)} of {len(self.acknowledged)} acknowledged writes are lost: {lost[:5]}"


@pytest.fixture(params=TYPES)
def writers(request, cluster):
    client = ClusterClient(cluster)
    for key in KEYS:
        client("DEL", key)
    client.close()
    return Writers(cluster, (lambda name: name) if request.param == "native" else ours)


def filled_slots(server):
    with server.client() as client:
        return sorted({slot_of(key) for key in KEYS if client("CLUSTER", "COUNTKEYSINSLOT", slot_of(key)) > 0})


def move_slot(cluster, slot, target):
    """The old way: each key by MIGRATE, while both nodes know that the slot is on its way."""
    source = cluster.owner(slot)
    with source.client() as here, target.client() as there:
        from_id, to_id = here("CLUSTER", "MYID"), there("CLUSTER", "MYID")
        there("CLUSTER", "SETSLOT", slot, "IMPORTING", from_id)
        here("CLUSTER", "SETSLOT", slot, "MIGRATING", to_id)
        moved = 0
        while names := here("CLUSTER", "GETKEYSINSLOT", slot, 10):
            reply = here("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *names)
            assert reply in (Reply("status", b"OK"), Reply("status", b"NOKEY")), reply
            moved += len(names)
        there("CLUSTER", "SETSLOT", slot, "NODE", to_id)
        here("CLUSTER", "SETSLOT", slot, "NODE", to_id)
        for server in cluster.running():
            with server.client() as other:
                other.request("CLUSTER", "SETSLOT", slot, "NODE", to_id)
    return moved


def test_all_keys_are_on_their_nodes(cluster):
    """Random commands through the cluster, and what replicas hold in the end."""
    client = ClusterClient(cluster)
    for command in random_writes(1, 1500):
        # Those of several keys, which need not be in one slot.
        if command[0] in ("RENAME", "COPY") or command[0].endswith(("MSET", "MSETNX", "MSETEX")):
            continue
        try:
            client(*command)
        except Exception as failure:  # noqa: BLE001
            assert "WRONGTYPE" in str(failure) or "not a" in str(failure), failure
    client.close()
    for primary, replica in zip(cluster.primaries, cluster.replicas):
        with primary.client() as here, replica.client() as there:
            until(lambda: is_replicated(here, there), 10, "the replica")
            assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST")
            assert here("DBSIZE") > 0


def test_slots_move_the_old_way_under_writes(cluster, writers):
    with writers:
        source = cluster.owner(slot_of(KEYS[0]))
        target = next(server for server in cluster.running() if server is not source and _role(server) == b"master")
        slots = filled_slots(source)[:8]
        moved = sum(move_slot(cluster, slot, target) for slot in slots)
        assert moved > 0
    writers.check()


def _role(server):
    with server.client() as client:
        return client("ROLE")[0]


@pytest.mark.only("valkey-9.1")
def test_slots_move_the_new_way_under_writes(cluster, writers):
    with writers:
        source = cluster.owner(slot_of(KEYS[1]))
        target = next(server for server in cluster.running() if server is not source and _role(server) == b"master")
        with source.client() as here, target.client() as there:
            slots = [part for slot in filled_slots(source)[:8] for part in (slot, slot)]
            assert slots
            here("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", *slots, "NODE", there("CLUSTER", "MYID"))
            until(lambda: _migration(here) in (b"success", b"failed", b"cancelled"), 30, "the end of the migration")
            assert _migration(here) == b"success", here("CLUSTER", "GETSLOTMIGRATIONS")
        assert cluster.owner(slots[0]) is target
    writers.check()


def _migration(client):
    last = client("CLUSTER", "GETSLOTMIGRATIONS")[0]
    return dict(as_pairs(last))[b"state"]


@pytest.mark.only("valkey-9.1")
@pytest.mark.skipif(CONTROL, reason="about the module")
def test_a_slot_brings_its_values_as_they_were(cluster):
    """A value that was native under a prefix stays native on its new node, and on that node's replica: nothing turns
    what is imported."""
    servers = cluster.running()
    tag = next(f"{{tag{number}}}" for number in range(1000) if cluster.owner(slot_of(f"{{tag{number}}}")) is cluster.owner(0))
    source = cluster.owner(slot_of(tag))
    target = next(server for server in servers if server is not source and _role(server) == b"master")
    try:
        # Before there are prefixes.
        with source.client() as here:
            for number in range(20):
                here("HSET", f"move:{tag}:native:{number}", "f", number)
                here("SETEX", f"text:{tag}:native:{number}", 1000, number)
            # Each is imported field by field, as a hash of this length is.
            here("HSET", f"move:{tag}:native:long", *(part for at in range(3000) for part in (f"f{at}", "v" * 20)))
        for server in servers:
            with server.client() as client:
                client("CONFIG", "SET", "leafpress.hash-prefixes", "move:", "leafpress.string-prefixes", "text:")
        with source.client() as here, target.client() as there:
            for number in range(20):
                here("HSET", f"move:{tag}:ours:{number}", "f", number)
                here("SET", f"text:{tag}:ours:{number}", number)
            names = here("KEYS", f"*{tag}*")

            def values_of(client):
                return {name: (is_compressed(client, name), client("TYPE", name).value, client("DEBUG", "DIGEST-VALUE", name)) for name in names}

            held = values_of(here)
            assert {kind[:2] for kind in held.values()} == {(compressed, word) for compressed in (True, False) for word in (b"hash", b"string")}
            slot = slot_of(tag)
            here("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", there("CLUSTER", "MYID"))
            until(lambda: _migration(here) in (b"success", b"failed", b"cancelled"), 30, "the end of the migration")
            assert _migration(here) == b"success", here("CLUSTER", "GETSLOTMIGRATIONS")
            assert values_of(there) == held
            with cluster.replica_of(target).client() as replica:
                until(lambda: is_replicated(there, replica), 20, "the replica")
                assert there("DEBUG", "DIGEST") == replica("DEBUG", "DIGEST")
            there("DEL", *names)
    finally:
        for server in servers:
            with server.client() as client:
                client("CONFIG", "SET", "leafpress.hash-prefixes", "", "leafpress.string-prefixes", "")
    cluster.wait_for_agreement()


def test_a_replica_takes_over_under_writes(cluster, writers):
    """As an operator has it done: CLUSTER FAILOVER."""
    with writers:
        primary = cluster.owner(slot_of(KEYS[2]))
        replica = cluster.replica_of(primary)
        with replica.client() as client:
            client("CLUSTER", "FAILOVER")
            until(lambda: client("ROLE")[0] == b"master", 20, "the replica's promotion")
    writers.check()


def test_a_primary_dies_under_writes(cluster, writers):
    """SIGKILL; its replica takes over, and it comes back as a replica with the same data."""
    with writers:
        primary = cluster.owner(slot_of(KEYS[3]))
        replica = cluster.replica_of(primary)
        with replica.client() as there:
            until(lambda: there("ROLE")[0] == b"slave" and there("ROLE")[3] == b"connected", 20, "the replica's link")
        primary.kill()
        with replica.client() as client:
            until(lambda: client("ROLE")[0] == b"master", 40, "the replica's promotion")
        primary.start()
        with primary.client() as client:
            until(lambda: client("ROLE")[0] == b"slave" and client("ROLE")[3] == b"connected", 40, "the return of the fallen")
    writers.check()
    with replica.client() as here, primary.client() as there:
        until(lambda: is_replicated(here, there), 20, "the replica")
        assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST")


@pytest.mark.skipif(CONTROL, reason="about the module")
def test_memory_is_counted_on_primaries(cluster):
    """A replica in a cluster runs no command with a key for a module, and says so at once."""
    server = cluster.owner(slot_of("{count}"))
    with server.client() as client, cluster.replica_of(server).client() as there:
        client("LP.HSET", "{count}:m", "f", "v")
        client("SET", "{count}:s", "v")
        assert client("LP.USAGE", "START") == OK
        until(lambda: dict(as_pairs(client("LP.USAGE", "STATUS")))[b"state"] == b"done", 30, "the end of the count")
        now = dict(as_pairs(client("LP.USAGE", "STATUS")))
        assert now[b"matched"] == client("DBSIZE") >= 2 and now[b"failed"] == 0, now
        client("DEL", "{count}:m", "{count}:s")
        reply = there.request("LP.USAGE", "START")
        assert is_error(reply) and b"primary" in reply.value, reply


def test_crossing_slots_is_refused(cluster):
    """Commands of several keys name them to the server, which refuses those of two slots."""
    with cluster.primaries[0].client() as client:
        for command in ([ours("MSET"), "a", "1", "b", "2"], [ours("MGET"), "a", "b"]):
            reply = client.request(*command)
            assert is_error(reply) and reply.value.startswith(b"CROSSSLOT"), reply
