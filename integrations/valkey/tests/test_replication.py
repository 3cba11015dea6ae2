"""Replicas hold what their primary holds, by the server's own digest and by reading everything."""
import glob
import os
import signal
import threading
import time

import pytest

from conftest import CONTROL, ours
from filling import big_map, contents, digest, random_writes, write
from resp import info
from servers import Client, is_replicated, until


def follow(replica, primary):
    with replica.client() as client:
        client("REPLICAOF", "127.0.0.1", primary.port)


def wait_in_step(primary, replica, seconds=60):
    with primary.client() as here, replica.client() as there:
        until(lambda: is_replicated(here, there), seconds, "the replica")


def check_equal(primary, *replicas):
    with primary.client() as here:
        held, mark = contents(here), digest(here)
        for replica in replicas:
            with replica.client() as there:
                assert contents(there) == held
                assert digest(there) == mark


def random_commands(start, count):
    primary, replica, chained = start(), start(), start()
    follow(replica, primary)
    follow(chained, replica)
    wait_in_step(primary, replica)
    wait_in_step(replica, chained)
    with primary.client() as client:
        assert write(client, random_writes(count, count)) > count // 2
        big_map(client, "big", 2000)
    wait_in_step(primary, replica)
    wait_in_step(replica, chained)
    check_equal(primary, replica, chained)
    with replica.client() as client:
        client("DEBUG", "RELOAD")
    check_equal(primary, replica)


def test_a_replica_and_its_replica(start):
    random_commands(start, 10_000)


@pytest.mark.long
def test_a_million_random_commands(start):
    random_commands(start, 1_000_000)


def test_digests_differ_for_different_data(start):
    """A digest that is equal for unequal data would prove nothing."""
    server = start()
    with server.client() as client:
        seen = set()
        for change in ([ours("HSET"), "m", "f", "v"], [ours("HSET"), "m", "f", "w"], [ours("HSET"), "m", "g", "v"], [ours("HDEL"), "m", "f"],
                       [ours("SET"), "s", "v"], [ours("SET"), "s", "w"], [ours("HSET"), "m", "v", "g"], ["RENAME", "s", "t"], ["EXPIRE", "t", 1000]):
            client(*change)
            seen.add(digest(client))
        assert len(seen) == 9
        # Equal for equal data, however it came about.
        client("FLUSHALL")
        client.load([[ours("HSET"), "m", "a", "1", "b", "2"], [ours("HSET"), "n", "b", "2"], [ours("HSET"), "n", "a", "1"]])
        assert client("DEBUG", "DIGEST-VALUE", "m") == client("DEBUG", "DIGEST-VALUE", "n")


@pytest.mark.parametrize("load", ["disabled", "on-empty-db", "swapdb"])
@pytest.mark.parametrize("disk", ["diskless", "disk"])
def test_full_synchronisation(start, load, disk):
    """Of a replica that holds other data already, under writes, again and again."""
    primary = start(**{"repl-diskless-sync": "yes" if disk == "diskless" else "no"})
    replica = start(**{"repl-diskless-load": load})
    with replica.client() as client:
        write(client, random_writes(99, 2000))
    with primary.client() as client:
        write(client, random_writes(1, 3000))
        big_map(client, "big", 3000)
        for turn in range(2):
            follow(replica, primary)
            write(client, random_writes(10 + turn, 2000))
            wait_in_step(primary, replica)
            check_equal(primary, replica)
            with replica.client() as there:
                there("REPLICAOF", "NO", "ONE")
                write(there, random_writes(50 + turn, 500))


def test_reads_go_on_while_a_replica_loads(start):
    """With swapdb a replica of the same history answers from its old data while it loads new."""
    primary, replica = start(**{"repl-diskless-sync": "yes", "repl-backlog-size": "16kb"}), start(**{"repl-diskless-load": "swapdb"})
    with primary.client() as client:
        write(client, random_writes(1, 3000))
        follow(replica, primary)
        wait_in_step(primary, replica)
        with Client(replica.port) as there:
                        # While the replica stands still more is written than the backlog holds: the next
                        # synchronisation is a full one.
            client("CONFIG", "SET", "rdb-key-save-delay", "3000")
            there("CONFIG", "SET", "key-load-delay", "1000", "loading-process-events-interval-bytes", "1024")
            os.kill(replica.process.pid, signal.SIGSTOP)
            client("CLIENT", "KILL", "TYPE", "replica")
            write(client, random_writes(2, 2000))
            os.kill(replica.process.pid, signal.SIGCONT)
            answered, until_then = 0, time.monotonic() + 20
            while time.monotonic() < until_then:
                reported = info(there, "replication", "persistence")
                if reported.get("async_loading") == "1":
                    reply = there.request(ours("HLEN"), "key:1")
                    answered += isinstance(reply, int) or reply.value.startswith(b"WRONGTYPE")
                elif answered or is_replicated(client, there):
                    break
                time.sleep(0.005)
            client("CONFIG", "SET", "rdb-key-save-delay", "0")
            there("CONFIG", "SET", "key-load-delay", "0")
        wait_in_step(primary, replica)
        assert answered, "the replica did not load while it answered, as it does with native types"
    check_equal(primary, replica)


def test_a_synchronisation_that_is_cut_off(start):
    """The primary dies in the middle of sending its data set: the replica keeps its old data (swapdb) or none, and
    works."""
    primary, replica = start(**{"repl-diskless-sync": "yes"}), start(**{"repl-diskless-load": "swapdb"})
    with primary.client() as client:
        write(client, random_writes(1, 3000))
        follow(replica, primary)
        wait_in_step(primary, replica)
        with Client(replica.port) as there:
            before = int(info(there, "memory")["used_memory_dataset"])
            for _ in range(3):
                client("CONFIG", "SET", "rdb-key-save-delay", "1000")
                there("REPLICAOF", "NO", "ONE")
                there("REPLICAOF", "127.0.0.1", primary.port)
                time.sleep(0.4)
                client("CLIENT", "KILL", "TYPE", "replica")
                there("REPLICAOF", "NO", "ONE")
            client("CONFIG", "SET", "rdb-key-save-delay", "0")
            write(there, random_writes(5, 500))
            there("FLUSHALL")
            until(lambda: int(info(there, "memory")["used_memory_dataset"]) < before // 2 + (1 << 20), 10, "the return of memory")
        follow(replica, primary)
        wait_in_step(primary, replica)
    check_equal(primary, replica)


def test_replicas_under_writes_of_several(start):
    """Four connections write at once, with transactions, scripts and expiry among it."""
    primary, replica = start(), start()
    follow(replica, primary)
    failures = []

    def work(seed):
        try:
            with Client(primary.port) as client:
                write(client, random_writes(seed, 2000))
                for at in range(200):
                    client.pipe([["MULTI"], [ours("HSET"), f"tx:{seed}", f"f{at}", at], [ours("HINCRBY"), f"tx:{seed}", "sum", at], ["EXEC"]])
                    client("EVAL", f"redis.call('{ours('SET')}', KEYS[1], ARGV[1], 'PX', 30 + ARGV[2] % 5)", 1, f"brief:{seed}:{at}", "v" * 100, at)
        except Exception as failure:  # noqa: BLE001  (reported by the test)
            failures.append(repr(failure))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    time.sleep(0.2)
    wait_in_step(primary, replica)
    with primary.client() as client:
        until(lambda: not [name for name in client("KEYS", "brief:*")], 10, "expiry")
    wait_in_step(primary, replica)
    check_equal(primary, replica)


@pytest.mark.skipif(CONTROL, reason="about what ours sends")
def test_a_float_is_sent_as_its_outcome(start):
    """So that no replica has to add as this server adds."""
    primary = start(appendonly="yes", **{"appendfsync": "always", "aof-use-rdb-preamble": "no"})
    with primary.client() as client:
        client("LP.HINCRBYFLOAT", "m", "f", "0.1")
        client("LP.HINCRBYFLOAT", "m", "f", "0.2")
    text = b"".join(open(path, "rb").read() for path in glob.glob(primary.directory + "/appendonlydir/*.incr.aof")).lower()
    assert b"lp.hincrbyfloat" not in text and b"lp.hset" in text
