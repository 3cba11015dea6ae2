"""Tests what only the module has: its settings, its INFO section, exporting, and the transparent mode."""
import os
import random
import shutil
import subprocess
import time

import pytest

import servers
from conftest import CONTROL
from filling import big_map, random_writes, write
from resp import OK, Reply, as_pairs, info, is_compressed, is_error, pack
from servers import until

pytestmark = pytest.mark.skipif(CONTROL, reason="about the module")
CODECS = ["none", "lz4", "zstd:3", "deflate:1", "onpair", "trial"]


def reported(client):
    """Returns the module's section of INFO, numbers as numbers."""
    fields = {name.removeprefix("leafpress_"): value for name, value in info(client, "leafpress").items() if name.startswith("leafpress_")}
    return {name: float(value) if value.replace(".", "", 1).isdigit() else value for name, value in fields.items()}


def test_info_is_true(client):
    """Records and bytes are counted as they come and go, those that are removed in steps included."""
    client("LP.SET", "key", "value")
    client("LP.HSET", "m", "f1", "v1", "f2", "v22")
    now = reported(client)
    assert now["records"] == 3 and now["keys"] == 2, now
    user = now["user_bytes"]
    client("LP.HSET", "m", "f2", "v2", "f3", "v" * 100)
    assert reported(client)["records"] == 4 and reported(client)["user_bytes"] == user + 101
    big_map(client, "big", 5000)
    assert reported(client)["records"] == 5004 and reported(client)["held_bytes"] > 100_000
    client("UNLINK", "big")
    until(lambda: reported(client)["records"] == 4 and reported(client)["user_bytes"] == user + 101, 2, "the count without what is gone")
    until(lambda: reported(client)["removals_waiting"] == 0, 10, "the end of the removal")
    client("LP.APPEND", "key", "1234567")
    assert reported(client)["user_bytes"] == user + 108
    client("FLUSHALL")
    assert reported(client)["records"] == reported(client)["keys"] == reported(client)["user_bytes"] == 0


def test_info_after_random_writes(client):
    write(client, random_writes(3, 5000))
    records = 0
    for name in client("KEYS", "*"):
        length = client.request("LP.HLEN", name)
        records += 1 if is_error(length) else length
    assert reported(client)["records"] == records and reported(client)["keys"] == client("DBSIZE")


def test_info_by_kind(start):
    """Maps and strings are counted apart, with the bytes that each kind has and takes."""
    client = start().client()
    none = reported(client)
    assert all(none[name] == 0 for name in ("maps", "map_user_bytes", "map_held_bytes", "strings", "string_user_bytes", "string_held_bytes")), none
    client("LP.HSET", "m", "f", "value", "g", "")
    client("LP.HSET", "m", "f", "longer value")
    client("LP.HDEL", "m", "g")
    client("LP.SET", "s", "text")
    client("LP.APPEND", "s", "!" * 100_000)
    client("LP.SETRANGE", "s", 200_000, "end")
    client("LP.SET", "empty", "")
    client("COPY", "m", "other")
    now = reported(client)
    assert (now["maps"], now["map_user_bytes"], now["strings"], now["string_user_bytes"]) == (2, 26, 2, 200_003), now
    assert (now["keys"], now["records"], now["user_bytes"]) == (4, 4, 200_029)
    assert 0 < now["map_held_bytes"] < now["string_held_bytes"] <= now["held_bytes"]
    client("DEL", "m", "other")
    now = reported(client)
    assert (now["maps"], now["map_user_bytes"], now["map_held_bytes"]) == (0, 0, 0) and now["string_user_bytes"] == 200_003, now
    client("DEL", "s", "empty")
    now = reported(client)
    assert (now["strings"], now["string_user_bytes"], now["user_bytes"]) == (0, 0, 0), now


def test_info_of_values_that_wait_to_be_removed(start):
    client = start().client()

    def waiting():
        """A large map is left to another thread, which hands it back while the server waits; then it is removed between
        commands."""
        until(lambda: reported(client)["removals_waiting"] == 0 and reported(client)["user_bytes"] == 0, 60, "the end of the removal before")
        big_map(client, "big", 70_000, size=40)
        user = client("LP.INFO", "big")[5]
        *_, replies = client.pipe([["MULTI"], ["UNLINK", "big"], ["DEBUG", "SLEEP", "0.2"], ["INFO", "leafpress"], ["EXEC"]])
        fields = dict(line.split(":", 1) for line in replies[2].decode().splitlines() if ":" in line)
        values, left = (int(fields["leafpress_removals_waiting" + what]) for what in ("", "_user_bytes"))
        # Where the other thread had no turn in that time, another map is tried.
        if values:
            assert (values, left, fields["leafpress_user_bytes"]) == (1, user, "0"), fields
        return values

    until(waiting, 120, "a value that waits")
    until(lambda: reported(client)["removals_waiting"] == reported(client)["removals_waiting_user_bytes"] == 0, 60, "the end of the removal")


def test_info_of_trainings(start):
    """The last training: when it ended, how long it took, what was held before."""
    client = start(**{"leafpress.codec": "zstd:1"}).client()
    now = reported(client)
    assert all(now[name] == 0 for name in ("trainings", "last_training_time", "last_training_ms", "last_training_replaced",
                                           "last_training_held_per_user_byte_before")), now
    # Twenty thousand records are a reason for one; another is requested.
    big_map(client, "big", 20_000)
    until(lambda: reported(client)["trainings"] > 0 and reported(client)["trainings_running"] == 0, 120, "the end of a training")
    now = reported(client)
    assert time.time() - 600 < now["last_training_time"] <= time.time() + 1, now
    assert now["last_training_held_per_user_byte_before"] > 0 and now["last_training_replaced"] in (0, 1), now
    assert client("LP.DICT", "TRAIN") >= 1
    until(lambda: reported(client)["trainings"] > now["trainings"], 120, "the end of another training")


def test_info_of_commands(start):
    """Commands are counted that the transparent mode rewrites or refuses, and answers that a key has another type."""
    client = start(**TRANSPARENT).client()

    def counts():
        now = reported(client)
        return tuple(now["commands_" + name] for name in ("rewritten", "refused", "refused_by_name", "wrong_type"))

    assert counts() == (0, 0, "", 0)
    client("HSET", "h:1", "f", "v")
    client("GET", "s:1")
    client("GET", "other")
    client("LP.GET", "other")
    assert counts() == (2, 0, "", 0)
    client("RPUSH", "list", 1)
    for command in (["SORT", "list", "BY", "h:*->f"], ["sort", "list", "GET", "h:*->f"], ["SORT_RO", "list", "GET", "s:*"]):
        assert is_error(client.request(*command))
    assert counts() == (5, 3, "sort=2,sort_ro=1", 0)
    for command in (["LP.HGET", "list", "f"], ["LP.GET", "h:1"], ["LP.INCR", "list"]):
        assert client.request(*command).value.startswith(b"WRONGTYPE")
    assert is_error(client.request("LP.INCRBY", "h:1", "x"))
    assert counts() == (5, 3, "sort=2,sort_ro=1", 3)


def test_the_longest_upkeep_since_info(client):
    """A report of INFO begins the measure anew."""
    big_map(client, "big", 3000)
    until(lambda: reported(client)["upkeep_longest_since_info_us"] > 0, 30, "a step of the upkeep")
    *_, (first, second) = client.pipe([["MULTI"], ["INFO", "leafpress"], ["INFO", "leafpress"], ["EXEC"]])
    first, second = (dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line) for text in (first, second))
    assert int(first["leafpress_upkeep_longest_since_info_us"]) <= int(first["leafpress_upkeep_longest_us"])
    assert second["leafpress_upkeep_longest_since_info_us"] == "0"
    assert first["leafpress_upkeep_longest_us"] == second["leafpress_upkeep_longest_us"]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec(start, codec):
    """Set at the start and while it runs; what was written under another is read on, saved and loaded."""
    server = start(**{"leafpress.codec": codec})
    client = server.client()
    assert client("CONFIG", "GET", "leafpress.codec") == [b"leafpress.codec", codec.encode()]
    big_map(client, "before", 3000)
    for other in CODECS:
        assert client("CONFIG", "SET", "leafpress.codec", other) == OK
        big_map(client, "map:" + other, 1000)
    client("DEBUG", "RELOAD")
    for name, count in [("before", 3000)] + [("map:" + other, 1000) for other in CODECS]:
        assert client("LP.HLEN", name) == count
        assert client("LP.HGET", name, "field:00000999")


def test_settings(client):
    """Each is read back as it was set; what is none is refused and changes nothing."""
    kept = dict(zip(*[iter(client("CONFIG", "GET", "leafpress.*"))] * 2))
    assert {b"leafpress.codec", b"leafpress.dictionary-bytes", b"leafpress.upkeep-budget-us"} <= set(kept), kept
    for name, value in (("dictionary-bytes", b"65536"), ("upkeep-budget-us", b"300"), ("codec", b"zstd:1"), ("hash-prefixes", b"a: b:"), ("string-prefixes", b"s:")):
        assert client("CONFIG", "SET", "leafpress." + name, value) == OK
        assert client("CONFIG", "GET", "leafpress." + name)[1] == value
    for name, odd in (("codec", "bogus"), ("codec", "zstd:99"), ("codec", ""), ("dictionary-bytes", "-1"), ("dictionary-bytes", "x"),
                      ("upkeep-budget-us", "x"), ("upkeep-budget-us", "-5"), ("upkeep-budget-us", "999999999999")):
        before = client("CONFIG", "GET", "leafpress." + name)
        assert is_error(client.request("CONFIG", "SET", "leafpress." + name, odd)), (name, odd)
        assert client("CONFIG", "GET", "leafpress." + name) == before
    for name, value in kept.items():
        client("CONFIG", "SET", name, value)


def test_a_wrong_setting_at_the_start(kind):
    """The server says what is wrong and does not start; it does not crash."""
    from conftest import demand
    demand(kind)
    for settings, arguments in (({"leafpress.codec": "bogus"}, []), ({}, ["bogus-argument"])):
        server = servers.Server(kind, module_arguments=arguments, **settings)
        try:
            with pytest.raises(RuntimeError):
                server.start(seconds=10)
            logged = server.logged()
            assert not servers.FAULT_PATTERN.search(logged), logged.decode(errors="replace")
        finally:
            server.remove()


def test_the_module_is_loaded_once(client):
    names = [dict(as_pairs(each))[b"name"] for each in client("MODULE", "LIST")]
    assert any(b"leafpress" in name.lower() for name in names)
    # A module that has a type of its own cannot be unloaded.
    client("LP.SET", "s", "v")
    assert is_error(client.request("MODULE", "UNLOAD", next(name for name in names if b"leafpress" in name.lower())))
    assert client("LP.GET", "s") == b"v"


def test_export(client):
    """Back to native types: the same content, the same time to live."""
    big_map(client, "big", 3000)
    client("LP.SET", "s", b"\x00text")
    client("PEXPIRE", "big", 10_000_000)
    wanted = sorted(as_pairs(client("LP.HGETALL", "big")))
    assert client("LP.EXPORT", "big", "copy") == OK
    assert client("TYPE", "copy") == Reply("status", b"hash") and sorted(as_pairs(client("HGETALL", "copy"))) == wanted
    assert client("PTTL", "copy") > 9_000_000
    assert client("LP.EXPORT", "big") == OK
    assert client("TYPE", "big") == Reply("status", b"hash") and sorted(as_pairs(client("HGETALL", "big"))) == wanted
    assert client("PTTL", "big") > 9_000_000
    assert is_error(client.request("LP.EXPORT", "s", "copy"))
    assert client("LP.EXPORT", "s", "copy", "REPLACE") == OK and client("GET", "copy") == b"\x00text"
    assert is_error(client.request("LP.EXPORT", "none")) and is_error(client.request("LP.EXPORT", "copy"))


def test_import(start, kind):
    """Compressed values of native ones: the same content and time to live, on replicas and after a restart too."""
    primary, replica = start(appendonly="yes", **{"aof-use-rdb-preamble": "no"}), start()
    with primary.client() as client, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(client, there), 20, "the replica")
        hashes = {"small": [("a", 1), ("", ""), ("c", "x" * 100)], "listpack": [(n, n) for n in range(120)],
                  "table": [(f"field {n}", f"value {n}" * (n % 9)) for n in range(5000)], "long": [("f", b"\x00long" * 100_000)]}
        strings = {"number": "12345", "short": b"\x00\xff", "empty": "", "text": "text " * 8, "chunks": "chunk" * 30_000}
        for name, fields in hashes.items():
            client.load([["HSET", name, *(part for pair in fields[at:at + 500] for part in pair)] for at in range(0, len(fields), 500)])
        for name, value in strings.items():
            client("SET", name, value)
        client("PEXPIRE", "table", 10_000_000)
        client("PEXPIRE", "text", 10_000_000)
        wanted = {name: sorted(as_pairs(client("HGETALL", name))) for name in hashes} | {name: client("GET", name) for name in strings}
        for name in wanted:
            assert client("LP.IMPORT", name) == OK and not is_error(client.request("LP.INFO", name)), name
            # Again: it is compressed already.
            assert client("LP.IMPORT", name) == OK

        def check(client):
            assert {name: as_pairs(client("LP.HGETALL", name)) for name in hashes} | {name: client("LP.GET", name) for name in strings} == wanted
            assert client("PTTL", "table") > 9_000_000 and client("PTTL", "text") > 9_000_000 and client("PTTL", "small") == -1

        check(client)
        until(lambda: servers.is_replicated(client, there), 20, "the replica")
        check(there)
        # What cannot be imported stays unchanged.
        client("RPUSH", "list", 1)
        client("HSET", "too long", "f" * 1017, "v", "g", "w")
        refused = ["list", "too long", "none"]
        if kind.name == "valkey-9.1":
            client("HSET", "expiring", *(part for n in range(2000) for part in (n, n)))
            client("HEXPIRE", "expiring", 1000, "FIELDS", 1, 1234)
            refused.append("expiring")
        mark = client("DEBUG", "DIGEST")
        for name in refused:
            assert is_error(client.request("LP.IMPORT", name)), name
        assert client("DEBUG", "DIGEST") == mark and client("HGET", "too long", "g") == b"w"
        until(lambda: servers.is_replicated(client, there), 20, "the replica")
        assert there("DEBUG", "DIGEST") == mark
    primary.restart()
    with primary.client() as client:
        check(client)
        assert client("LP.EXPORT", "table") == OK and sorted(as_pairs(client("HGETALL", "table"))) == wanted["table"]


def readme_script(heading):
    """The first script of the README after these words."""
    with open(os.path.join(servers.INTEGRATION, "README.md"), encoding="utf-8") as file:
        return file.read().split(heading, 1)[1].split("```\n")[1]


def run_program(program):
    ended = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and ended.stderr == "", ended


def session(number):
    """A value as a web application keeps it."""
    rng = random.Random(number)
    return (f'{{"user":{{"id":{rng.randrange(10**6)},"email":"u{rng.randrange(10**6)}@example.com","locale":"{rng.choice(["en-US", "de-DE"])}"}},'
            f'"agent":"Mozilla/5.0 (X11; Linux x86_64) Chrome/{rng.randrange(90, 130)}.0","csrf":"{rng.randrange(1 << 64):016x}","roles":["editor","viewer"]}}')


def held_per_user_byte(client):
    trees = [dict(as_pairs(tree)) for tree in client("LP.INFO")]
    return (trees[-1][b"bytes-held"] - trees[-1][b"dictionary-bytes"]) / trees[-1][b"user-bytes"]


@pytest.mark.parametrize("codec", ["trial", "onpair"])
def test_a_dictionary_of_another_server(start, codec):
    """The first values are compressed with it; what cannot be one, or is for another codec, changes nothing."""
    # With other codecs it depends on measured times whether there is a dictionary.
    old, new, without = (start(**{"leafpress.codec": each}) for each in ("onpair", codec, codec))
    with old.client() as client:
        assert client("LP.DICT", "EXPORT") is None
        client.load([["LP.SET", f"s:{number}", session(number)] for number in range(20_000)])
        client("LP.COMPACT", "SYNC")
        until(lambda: dict(as_pairs(client("LP.DICT", "SHOW")[0]))[b"dictionary"], what="a dictionary")
        dictionary = dict(as_pairs(client("LP.DICT", "SHOW")[0]))[b"dictionary"]
        payload = client("LP.DICT", "EXPORT")
    # Too few for a training of their own.
    values = [["LP.SET", f"s:{number}", session(number)] for number in range(50_000, 51_100)]
    with new.client() as client, without.client() as other:
        assert client("LP.DICT", "IMPORT", payload) == OK
        client.load(values)
        other.load(values)
        assert dict(as_pairs(client("LP.DICT", "SHOW")[-1]))[b"dictionary"] == dictionary
        assert dict(as_pairs(other("LP.DICT", "SHOW")[-1]))[b"dictionary"] == 0
        assert held_per_user_byte(client) < 0.5 * held_per_user_byte(other)
        assert all(client("LP.GET", name) == value.encode() for _, name, value in values)
        # Damaged, cut off, not a payload, of another codec: refused, and the one in force stays.
        rng = random.Random(1)
        damaged = [payload[:-1], payload[:len(payload) // 2], b"", b"x", payload + b"\n", rng.randbytes(len(payload))]
        for _ in range(50):
            at = rng.randrange(len(payload))
            damaged.append(payload[:at] + bytes([payload[at] ^ (1 << rng.randrange(8))]) + payload[at + 1:])
        for each in damaged:
            assert is_error(client.request("LP.DICT", "IMPORT", each))
        client("CONFIG", "SET", "leafpress.codec", "deflate:1")
        assert b"leafpress.codec is deflate:1" in client.request("LP.DICT", "IMPORT", payload).value
        client("LP.SET", "of another codec", "v")
        client("CONFIG", "SET", "leafpress.codec", codec)
        client("LP.SET", "again", session(1))
        assert dict(as_pairs(client("LP.DICT", "SHOW")[-1]))[b"dictionary"] == dictionary
        assert client("LP.DICT", "FORGET") == OK
        client("LP.SET", "without", session(2))
        assert dict(as_pairs(client("LP.DICT", "SHOW")[-1]))[b"dictionary"] == 0
        for wrong in (["EXPORT", "x"], ["IMPORT"], ["IMPORT", payload, "x"], ["WHAT"], []):
            assert is_error(client.request("LP.DICT", *wrong))
        # A snapshot has the dictionary that its values need.
        digest = client("DEBUG", "DIGEST")
        client("DEBUG", "RELOAD")
        assert client("DEBUG", "DIGEST") == digest


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="there is no client program")
def test_the_readme_brings_a_dictionary_to_a_new_server(start):
    old, new = start(**{"leafpress.codec": "onpair"}), start(**{"leafpress.codec": "onpair"})
    with old.client() as client:
        client.load([["LP.SET", f"s:{number}", session(number)] for number in range(20_000)])
        client("LP.COMPACT", "SYNC")
        assert client("LP.DICT", "EXPORT")
    script = readme_script("A new server has no dictionary").replace("-h old", f"-p {old.port}").replace("-h new", f"-p {new.port}")
    run_program(f'set -o pipefail\nvalkey-cli() {{ redis-cli -e "$@"; }}\n{script}')
    with new.client() as client:
        client("LP.SET", "s", session(1))
        assert dict(as_pairs(client("LP.DICT", "SHOW")[-1]))[b"dictionary"] != 0


def test_info_of_a_key_and_compaction(client):
    big_map(client, "big", 5000)
    assert dict(as_pairs(client("LP.INFO", "big")))[b"fields"] == 5000
    trees = [dict(as_pairs(tree)) for tree in client("LP.INFO")]
    assert sum(tree[b"records"] for tree in trees) == 5000
    assert is_error(client.request("LP.INFO", "none")) or client("LP.INFO", "none") in (None, Reply("null-array", None))
    client("HSET", "native", "f", "v")
    assert is_error(client.request("LP.INFO", "native"))
    before = {field: value for field, value in as_pairs(client("LP.HGETALL", "big"))}
    for how in ([], ["SYNC"]):
        assert client("LP.COMPACT", *how) == OK
        until(lambda: not any(dict(as_pairs(tree))[b"compacting"] for tree in client("LP.INFO")), 30, "the end of the compaction")
        assert dict(as_pairs(client("LP.HGETALL", "big"))) == before
    assert is_error(client.request("LP.COMPACT", "ASYNC")) and is_error(client.request("LP.COMPACT", "SYNC", "x"))


def test_trees_that_settings_have_begun_are_limited_and_the_error_says_how_to_go_on(start):
    server = start()
    client = server.client()
    settings = [["CONFIG", "SET", "leafpress.codec", codec] for codec in ("lz4", "none")]
    client.load([command for number in range(2048) for command in (settings[number % 2], ["LP.SET", f"s:{number}", number])])
    assert info(client, "leafpress")["leafpress_generations"] == "2048"
    client("CONFIG", "SET", "leafpress.codec", "lz4")
    reply = client.request("LP.SET", "one more", "v")
    assert is_error(reply), reply
    for words in (b"leafpress.codec", b"leafpress.dictionary-bytes", b"LP.DICT IMPORT", b"FORGET", b"flush", b"restart", b"2048"):
        assert words in reply.value, reply
    assert b"  " not in reply.value and client("EXISTS", "one more") == 0
    # What it advises helps.
    client("DEL", "s:0")
    until(lambda: client.request("LP.SET", "one more", "v") == OK, 10, "the end of a tree")
    client("SAVE")
    client = server.restart().client()
    assert info(client, "leafpress")["leafpress_generations"] == "1" and client("LP.GET", "s:2047") == b"2047"


def test_training(start):
    """A dictionary comes by itself or by LP.DICT TRAIN, is shown, is used, and data is what it was."""
    server = start(**{"leafpress.codec": "zstd:3"})
    client = server.client()
    source = random.Random(1)
    names = [source.randbytes(4).hex() for _ in range(400)]
    client.load(["LP.HSET", "m", f"f:{at:06}", f'{{"identity":{at},"first name":"{source.choice(names)}","last name":"{source.choice(names)}",'
                 f'"address":{{"street":"{source.choice(names)}","number":{at % 90}}},"is active":true,"orders":[]}}'] for at in range(30_000))
    before = dict(as_pairs(client("LP.HGETALL", "m")))
    assert client("LP.DICT", "TRAIN") >= 1
    until(lambda: any(dict(as_pairs(tree))[b"dictionary-bytes"] for tree in client("LP.DICT", "SHOW")), 30, "a dictionary")
    client("LP.COMPACT", "SYNC")
    assert dict(as_pairs(client("LP.HGETALL", "m"))) == before
    client("DEBUG", "RELOAD")
    assert dict(as_pairs(client("LP.HGETALL", "m"))) == before
    assert is_error(client.request("LP.DICT", "BOGUS"))


def check_that_it_ends(server, command, most_looks):
    """Sends a command whose reply passes the client's limit soon. The module looks for that after each mebibyte, so
    that the number of its looks says how far it went."""
    with server.client() as client, server.client(timeout=60) as other:
        other("CONFIG", "RESETSTAT")
        ended = server.logged().count(b"scheduled to be closed ASAP")
        client.socket.sendall(pack(command))
        assert other("PING") == Reply("status", b"PONG")
        until(lambda: server.logged().count(b"scheduled to be closed ASAP") > ended, 60, "the client's end")
        stats = until(lambda: {name.lower(): value for name, value in info(other, "commandstats").items() if command[0].lower() in name.lower()
                               or "client|list" in name}, 60, "the command's end")
        looks = dict(part.split("=") for part in stats.get("cmdstat_client|list", "calls=0").split(","))["calls"]
        assert 1 <= int(looks) <= most_looks, stats


@pytest.mark.parametrize("fields", [3, 600])
def test_a_reply_ends_with_its_client(start, fields):
    """For any number of requested fields: if an output limit closes the client, the server stops and answers others."""
    server = start(**{"client-output-buffer-limit": "normal 4mb 0 0"})
    with server.client() as client:
        client("LP.HSET", "m", *(part for at in range(fields) for part in (f"f{at}", "v" * 50)))
    # All of it would be more than fifty mebibytes.
    for more in ([], ["WITHVALUES"]):
        check_that_it_ends(server, ["LP.HRANDFIELD", "m", -3_000_000, *more], 20)


def test_counts_that_no_reply_can_have_are_refused(client):
    client("LP.HSET", "m", "a", "x" * 100, "b", "y")
    for count in (-4611686018427387903, -9223372036854775807, -100_000_000):
        for more in ([], ["WITHVALUES"]):
            assert is_error(client.request("LP.HRANDFIELD", "m", count, *more)), (count, more)
    assert len(client("LP.HRANDFIELD", "m", -3000)) == 3000
    assert len(client("LP.HRANDFIELD", "m", 9223372036854775807)) == 2
    assert client("EVAL", "return #redis.call('LP.HRANDFIELD', KEYS[1], -100000)", 1, "m") == 100_000


def test_any_fields_of_a_long_map_are_drawn_evenly(client):
    """By drawing each, and by walking over all: every field is about as often there."""
    fields = 1000
    client("LP.HSET", "m", *(part for at in range(fields) for part in (f"f{at}", at)))
    for count, times in ((fields // 100, 300), (20 * fields, 1)):
        drawn = [reply for _ in range(times) for reply in as_pairs(client("LP.HRANDFIELD", "m", -count, "WITHVALUES"))]
        assert len(drawn) == count * times and all(field == b"f" + value for field, value in drawn)
        seen = [sum(1 for _, value in drawn if int(value) // 100 == part) for part in range(10)]
        assert all(0.5 * len(drawn) / 10 < times_seen < 2 * len(drawn) / 10 for times_seen in seen), seen


def test_many_values_end_with_their_client(start):
    """LP.HMGET and LP.MGET name one long value again and again."""
    server = start(**{"client-output-buffer-limit": "normal 4mb 0 0"})
    with server.client() as client:
        client("LP.HSET", "m", "f", "v" * 50_000)
        client("LP.SET", "s", "v" * 50_000)
    # All of it would be 900 mebibytes.
    check_that_it_ends(server, ["LP.HMGET", "m", *["f"] * 20_000], 20)
    check_that_it_ends(server, ["LP.MGET", *["s"] * 20_000], 20)


def test_a_whole_map_ends_with_its_client(start):
    server = start(**{"client-output-buffer-limit": "normal 4mb 0 0"})
    with server.client() as client:
        for at in range(600):
            client("LP.HSET", "m", f"f{at}", "v" * 100_000)
    # All of it would be 57 mebibytes.
    for command in ("LP.HGETALL", "LP.HVALS"):
        check_that_it_ends(server, [command, "m"], 20)
    for command in (["LP.HRANDFIELD", "m", 600, "WITHVALUES"], ["LP.HRANDFIELD", "m", 590, "WITHVALUES"],
                    ["LP.RANGE", "m", "-", "+", "WITHVALUES"]):
        check_that_it_ends(server, command, 20)


TRANSPARENT = {"leafpress.hash-prefixes": '"h: profile:"', "leafpress.string-prefixes": '"s:"'}


def test_transparent_mode_is_off_by_default(client):
    client("HSET", "h:1", "f", "v")
    client("SET", "s:1", "v")
    assert client("TYPE", "h:1") == Reply("status", b"hash") and client("TYPE", "s:1") == Reply("status", b"string")


def test_transparent_mode(start):
    """Plain commands on keys of the prefixes reach our type; on others they are what they were."""
    server = start(**TRANSPARENT)
    client = server.client()
    assert client("HSET", "h:1", "f", "v", "g", "w") == 2 and client("HGET", "h:1", "f") == b"v"
    assert client("SET", "s:1", "text") == OK and client("GET", "s:1") == b"text" and client("APPEND", "s:1", "!") == 5
    assert client("HSET", "other", "f", "v") == 1 and client("SET", "plain", "x") == OK
    assert {name: is_compressed(client, name) for name in ("h:1", "s:1", "other", "plain")} == {"h:1": True, "s:1": True, "other": False, "plain": False}
    for command in (["HMGET", "h:1", "f", "x"], ["HLEN", "h:1"], ["HEXISTS", "h:1", "g"], ["HDEL", "h:1", "g"], ["HINCRBY", "h:1", "n", "2"],
                    ["HGETALL", "h:1"], ["hget", "h:1", "f"], ["STRLEN", "s:1"], ["GETRANGE", "s:1", "0", "1"]):
        assert not is_error(client.request(*command)), command
    # Keys of both sides in one command: an error or a right answer, but no wrong one.
    client("SET", "plain", "native")
    mixed = client.request("MGET", "s:1", "plain")
    assert is_error(mixed) or mixed == [b"text!", b"native"], mixed
    client.pipe([["MULTI"], ["HSET", "h:2", "a", "1"], ["HGET", "h:2", "a"], ["EXEC"]])
    assert is_compressed(client, "h:2")
    assert client("EVAL", "redis.call('HSET', KEYS[1], 'a', 'b'); return redis.call('HGET', KEYS[1], 'a')", 1, "h:3") == b"b"
    client("CONFIG", "SET", "leafpress.hash-prefixes", "")
    client("HSET", "h:9", "f", "v")
    assert client("TYPE", "h:9") == Reply("status", b"hash")


def test_transparent_mode_is_replicated(start):
    """Whatever a replica's own prefixes are, it holds what its primary holds."""
    primary, replica = start(appendonly="yes", **TRANSPARENT), start()
    with primary.client() as here, replica.client() as there:
        there("REPLICAOF", "127.0.0.1", primary.port)
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        here.load([["HSET", f"h:{at % 20}", f"f{at}", at] for at in range(500)] + [["SET", f"s:{at % 20}", f"v{at}"] for at in range(100)])
        until(lambda: servers.is_replicated(here, there), 20, "the replica")
        assert here("DEBUG", "DIGEST") == there("DEBUG", "DIGEST")
        assert there("TYPE", "h:1") == Reply("status", b"leafpress")
        mark = here("DEBUG", "DIGEST")
    primary.restart()
    with primary.client() as here:
        assert here("DEBUG", "DIGEST") == mark
    primary.clients.clear()


def test_a_large_map_goes_without_holding_up_others(start):
    """UNLINK, expiry and FLUSHALL ASYNC of a map of 200,000 fields: no command takes over 50 ms."""
    server = start()
    client = server.client()
    for way in (["UNLINK", "big"], ["LP.SET", "big", "x"], ["PEXPIRE", "big", "1"], ["FLUSHALL", "ASYNC"]):
        big_map(client, "big", 200_000, size=60)
        client("CONFIG", "RESETSTAT")
        client("SLOWLOG", "RESET")
        client("CONFIG", "SET", "slowlog-log-slower-than", 50_000)
        client(*way)
        for _ in range(100):
            client("PING")
            client.request("LP.HGET", "other", "f")
        slow = client("SLOWLOG", "GET")
        assert not slow, (way, slow)
        client("CONFIG", "SET", "slowlog-log-slower-than", 10_000_000)
        client("FLUSHALL")
