"""What was written is there after each way of saving and loading, and after each kind of end."""
import threading

import pytest

from conftest import ours
from filling import big_map, contents, digest, random_writes, write
from resp import info
from servers import Client, until


def wait_for_save(client, seconds=60):
    until(lambda: info(client, "persistence")["rdb_bgsave_in_progress"] == "0", seconds, "the end of BGSAVE")
    assert info(client, "persistence")["rdb_last_bgsave_status"] == "ok"


def wait_for_rewrite(client, seconds=60):
    until(lambda: info(client, "persistence")["aof_rewrite_in_progress"] == "0" and
          info(client, "persistence")["aof_rewrite_scheduled"] == "0", seconds, "the end of BGREWRITEAOF")
    assert info(client, "persistence")["aof_last_bgrewrite_status"] == "ok"


def filled(server, seed=1, writes=4000, big=3000):
    client = server.client()
    write(client, random_writes(seed, writes))
    big_map(client, "big", big)
    return client


@pytest.mark.parametrize("checksum", ["yes", "no"])
def test_save_and_restart(start, checksum):
    server = start(rdbchecksum=checksum, rdbcompression=checksum)
    client = filled(server)
    before, mark = contents(client), digest(client)
    client("SAVE")
    client = server.restart().client()
    assert contents(client) == before
    assert digest(client) == mark
    # And it goes on as before.
    write(client, random_writes(2, 1000))


def test_bgsave_is_of_one_moment(start):
    """What is written while the child saves is not in the file."""
    server = start()
    client = filled(server, big=20_000)
    before = contents(client)
    client("CONFIG", "SET", "rdb-key-save-delay", "2000")
    client("BGSAVE")
    write(client, random_writes(7, 3000))
    assert contents(client) != before
    client("CONFIG", "SET", "rdb-key-save-delay", "0")
    wait_for_save(client)
    # No save at the end: what is on disk is the child's.
    server.kill()
    client = server.start().client()
    assert contents(client) == before


def test_debug_reload(start):
    server = start()
    client = filled(server)
    before, mark = contents(client), digest(client)
    for _ in range(3):
        client("DEBUG", "RELOAD")
        assert contents(client) == before
        assert digest(client) == mark
    write(client, random_writes(3, 1000))


@pytest.mark.parametrize("preamble", ["yes", "no"])
def test_aof(start, preamble):
    """The log alone, then the rewritten log with what came during and after it."""
    server = start(appendonly="yes", **{"aof-use-rdb-preamble": preamble, "appendfsync": "no"})
    client = filled(server, writes=3000, big=1000)
    before, mark = contents(client), digest(client)
    client = server.restart().client()
    assert contents(client) == before
    assert digest(client) == mark

    client("CONFIG", "SET", "rdb-key-save-delay", "500")
    client("BGREWRITEAOF")
    write(client, random_writes(8, 2000))
    client("CONFIG", "SET", "rdb-key-save-delay", "0")
    wait_for_rewrite(client)
    write(client, random_writes(9, 500))
    before, mark = contents(client), digest(client)
    client = server.restart().client()
    assert contents(client) == before
    assert digest(client) == mark


def test_debug_loadaof(start):
    server = start(appendonly="yes", **{"aof-use-rdb-preamble": "no"})
    client = filled(server, writes=1000, big=100)
    before = contents(client)
    client("DEBUG", "LOADAOF")
    assert contents(client) == before


def test_a_log_of_scripts_and_transactions(start):
    """What a script or a transaction wrote is in the log, whole; a floating sum is logged as its outcome."""
    server = start(appendonly="yes")
    client = server.client()
    client.pipe([["MULTI"], [ours("HSET"), "m", "a", "1"], [ours("HINCRBYFLOAT"), "m", "a", "0.1"], [ours("SET"), "s", "v", "PX", "5000000"],
                 ["EXEC"]])
    client("EVAL", f"redis.call('{ours('HSET')}', KEYS[1], 'x', 'y'); return redis.call('{ours('HINCRBY')}', KEYS[1], 'n', 5)", 1, "m")
    client(ours("SET"), "rel", "v", "EX", "1000")
    before = contents(client)
    client = server.restart().client()
    assert contents(client) == before
    assert client(ours("HGET"), "m", "a") == b"1.1"


def test_several_databases_are_saved(start):
    server = start()
    client = server.client()
    wanted = {}
    for number in (0, 3, 15):
        client("SELECT", number)
        write(client, random_writes(number, 500))
        wanted[number] = contents(client)
    client("SAVE")
    client = server.restart().client()
    for number, held in wanted.items():
        client("SELECT", number)
        assert contents(client) == held


def test_expired_keys_are_not_loaded(start):
    server = start()
    client = server.client()
    client(ours("SET"), "soon", "v", "PX", "300")
    client(ours("HSET"), "also", "f", "v")
    client("PEXPIRE", "also", "300")
    client(ours("SET"), "stays", "v")
    client("SAVE")
    server.kill()
    import time
    time.sleep(0.4)
    client = server.start().client()
    assert client("KEYS", "*") == [b"stays"]


def torture(server, cycle, cycles, seconds_each):
    """Forks again and again while one connection writes, deletes and lets large maps go, and another has dictionaries
    trained."""
    ending, failures, counts = threading.Event(), [], {"writes": 0, "trainings": 0}

    def keep(work):
        try:
            with Client(server.port, timeout=seconds_each) as client:
                while not ending.is_set():
                    work(client)
        except Exception as failure:  # noqa: BLE001  (reported by the test)
            failures.append(repr(failure))

    def writes(client):
        seed = counts["writes"]
        counts["writes"] += write(client, random_writes(seed, 500))
        big_map(client, "large", 2000, seed)
        client("UNLINK", "large")

    def trains(client):
        reply = client.request("LP.DICT", "TRAIN") if ours("X") != "X" else client.request("PING")
        counts["trainings"] += "error" not in repr(reply)
        ending.wait(0.01)

    threads = [threading.Thread(target=keep, args=(work,)) for work in (writes, trains)]
    for thread in threads:
        thread.start()
    try:
        with Client(server.port, timeout=seconds_each) as client:
            for _ in range(cycles):
                cycle(client, seconds_each)
                if failures:
                    break
    finally:
        ending.set()
        for thread in threads:
            thread.join()
    assert not failures, failures
    assert counts["writes"] > 0 and counts["trainings"] > 0, counts


def a_bgsave(client, seconds):
    client("BGSAVE")
    wait_for_save(client, seconds)


def a_rewrite(client, seconds):
    client("BGREWRITEAOF")
    wait_for_rewrite(client, seconds)


@pytest.mark.parametrize("cycle", [a_bgsave, a_rewrite], ids=["bgsave", "bgrewriteaof"])
def test_forks_under_writes_and_training(start, cycle):
    server = start(**({"appendonly": "yes", "aof-use-rdb-preamble": "no", "appendfsync": "no"} if cycle is a_rewrite else {}))
    torture(server, cycle, 8, 30)


@pytest.mark.long
@pytest.mark.parametrize("cycle", [a_bgsave, a_rewrite], ids=["bgsave", "bgrewriteaof"])
def test_200_forks_under_writes_and_training(start, cycle):
    server = start(**({"appendonly": "yes", "aof-use-rdb-preamble": "no", "appendfsync": "no"} if cycle is a_rewrite else {}))
    torture(server, cycle, 200, 60)
