"""Cache: records, times, forms of keys and values, scans, the disk tier."""

import asyncio
import contextlib
import ctypes
import datetime
import errno
import gc
import itertools
import json
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import weakref

import pytest

import leafpress
from leafpress import Cache, codec

MIB = 1 << 20
RANDOM = random.Random(1)


def value(n):
    """Returns a value that hardly shrinks and differs from all others."""
    return {"number": n, "bytes": random.Random(n).randbytes(600)}


@pytest.fixture
def cache():
    with Cache("8MiB", encoding="utf-8") as cache:
        yield cache


def test_a_cache_is_used_as_a_dict_is(cache):
    cache["apple"] = "red"
    assert cache["apple"] == "red" and "apple" in cache and len(cache) == 1
    assert cache.get("pear") is None and cache.get("pear", "green") == "green"
    with pytest.raises(KeyError) as caught:
        cache["pear"]
    assert caught.value.args == ("pear",)
    with pytest.raises(KeyError):
        del cache["pear"]
    del cache["apple"]
    assert "apple" not in cache and not cache.delete("apple")


def test_pop_is_as_of_dict(cache):
    cache["apple"] = "red"
    assert cache.pop("apple") == "red"
    assert cache.pop("apple", None) is None and cache.pop("apple", "x") == "x"
    with pytest.raises(KeyError):
        cache.pop("apple")
    with pytest.raises(TypeError):
        cache.pop("apple", 1, 2)


def test_words_of_dict_and_cachetools(cache):
    assert cache.setdefault("apple", "red") == cache.setdefault("apple", "green") == "red"
    assert cache.setdefault(key="brief", default="x", ttl=60) == "x"
    assert cache.pop(key="brief", default=None) == "x" and cache.pop("brief", default="gone") == "gone"
    cache.update({"pear": "green"}, plum="blue")
    cache.update([("fig", "violet")])
    cache.update()
    assert list(cache.keys()) == sorted(["apple", "fig", "pear", "plum"]) and list(cache.values()) == ["red", "violet", "green", "blue"]
    assert dict(cache) == {"apple": "red", **dict(pear="green", plum="blue", fig="violet")}
    with pytest.raises(TypeError):
        cache.update(5)
    with Cache("8MiB", serializer="json") as other:
        assert other.setdefault("none") is None and "none" in other


class Squares(Cache):
    def __missing__(self, key):
        self[key] = key * key
        return self[key]


def test_a_subclass_computes_missing_values():
    with Squares("8MiB", serializer="json") as cache:
        assert cache[12] == 144 and 12 in cache and cache.get(13) is None
        with pytest.raises(TypeError):
            cache["text"]


def test_one_of_many_threads_sets_the_default():
    with Cache("8MiB", serializer="json") as cache:
        start, got = threading.Barrier(8), []

        def set_default(n):
            start.wait(60)
            got.append(cache.setdefault("key", n))

        threads = [threading.Thread(target=set_default, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(got) == {cache["key"]} and len(got) == 8


def test_add_inserts_once(cache):
    assert cache.add("apple", "red") and not cache.add("apple", "green")
    assert cache["apple"] == "red"


def test_many_at_once_keep_their_order(cache):
    cache.set_many({f"{n:05}": str(n) for n in range(10_000)})
    cache.set_many([("x", "1"), ("y", "2")], ttl=60)
    keys = [f"{n:05}" for n in range(9_999, -1, -1)] + ["absent", "y"]
    assert cache.get_many(keys, "none") == [str(n) for n in range(9_999, -1, -1)] + ["none", "2"]
    assert cache.get_many(iter(["x"])) == ["1"] and cache.get_many([]) == []
    assert cache.delete_many(["x", "y", "z"]) == 2


def test_records_expire(cache):
    cache.set("brief", "x", ttl=1)
    cache.set("long", "x", ttl=datetime.timedelta(hours=1))
    assert cache.touch("long", 2) and not cache.touch("absent", 2)
    deadline = time.monotonic() + 30
    while "brief" in cache and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "brief" not in cache
    while "long" in cache and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "long" not in cache


def test_the_hottest_keys_are_those_that_are_read(cache):
    cache.set_many({f"key {n:05}": str(n) for n in range(1000)})
    cache.settle()
    read = {f"key {n:05}" for n in range(0, 1000, 10)}
    assert all(cache[key] for key in read)
    hottest = cache.hottest_keys(10)
    assert len(hottest) == 10 and read.issuperset(hottest)
    assert len(cache.hottest_keys()) == 1000 and cache.hottest_keys(0) == []
    with Cache("8MiB", serializer="json") as other:
        other[("a", 1)] = 2
        assert other.hottest_keys(most=5) == [("a", 1)]
    with pytest.raises(OverflowError):
        cache.hottest_keys(-1)


def test_another_cache_begins_with_the_dictionary():
    def record(n):
        return json.dumps({"id": n, "name": f"user {n * 7}", "roles": ["viewer", "editor"], "locale": "en-US", "theme": "dark"})

    records = {f"user {n * 2654435761 % 2**32:08x}": record(n) for n in range(20_000)}
    with leafpress.Cache("64MiB", encoding="utf-8") as old:
        assert old.dictionary() is None
        old.set_many(records)
        old.settle()
        dictionary = old.dictionary()
    assert dictionary.codec and len(dictionary) > 0
    again = pickle.loads(pickle.dumps(dictionary))
    stored = codec.Dictionary(dictionary.to_bytes(), codec=dictionary.codec)
    assert again == stored == dictionary and again.codec == stored.codec == dictionary.codec
    few = dict(itertools.islice(records.items(), 500))
    for given in (dictionary, again, stored):
        with leafpress.Cache("64MiB", encoding="utf-8", dictionary=given) as new:
            assert new.dictionary() == dictionary and new.dictionary().codec == dictionary.codec
            new.set_many(few)
            assert new.get_many(few) == list(few.values())
    with leafpress.Cache("8MiB", codec="zstd:1", encoding="utf-8", dictionary=codec.train([line.encode() for line in few.values()])) as new:
        new.set_many(few)
        assert new.get_many(few) == list(few.values())
    for wrong in (1, "text"):
        with pytest.raises(TypeError, match="dictionary"):
            leafpress.Cache("8MiB", dictionary=wrong)


def test_a_record_may_have_its_own_time_to_idle():
    # A read within the first eighth does not count: the pauses are longer than that, and far shorter than the whole.
    with leafpress.Cache("8MiB", encoding="utf-8") as cache:
        cache.set("read", "1", time_to_idle=3)
        cache.set("unread", "2", time_to_idle=datetime.timedelta(seconds=1))
        assert cache.add("added", "3", time_to_idle=1)
        cache.set_many({"many": "4"}, time_to_idle=1)
        assert cache.get_or_set("loaded", lambda: "5", time_to_idle=1) == "5"
        asyncio.run(cache.aset("of a task", "6", time_to_idle=1))
        cache["always"] = "7"
        for _ in range(4):
            time.sleep(0.8)
            assert cache["read"] == "1"
        assert list(cache) == ["always", "read"]
        with pytest.raises(leafpress.InvalidOption, match="1 s to 10 years"):
            cache.set("short", "1", time_to_idle=0.1)


def test_touch_keeps_a_record_alive(cache):
    cache.set("kept", "x", ttl=1)
    while not cache.touch("kept"):
        cache.set("kept", "x", ttl=1)
    time.sleep(1.3)
    assert cache["kept"] == "x"


@pytest.mark.parametrize("ttl", [0, 0.0005, -1, float("nan"), float("inf"), 1e10, 10**400, datetime.timedelta(0)])
def test_reports_times_out_of_bounds(cache, ttl):
    with pytest.raises(leafpress.InvalidOption, match="1 ms to 10 years"):
        cache.set("key", "value", ttl)


def test_an_invalid_ttl_is_a_type_error(cache):
    for ttl in ["60", True, object(), [1]]:
        with pytest.raises(TypeError, match="ttl"):
            cache.set("key", "value", ttl)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (8 * MIB, 8 * MIB),
        ("8MiB", 8 * MIB),
        ("8 mib", 8 * MIB),
        ("8M", 8 * MIB),
        ("8MB", 8_000_000),
        ("0.5GiB", 512 * MIB),
        ("8_388_608", 8 * MIB),
    ],
)
def test_accepts_sizes_as_numbers_and_words(memory, expected):
    with Cache(memory) as cache:
        assert cache.memory == cache.maxsize == expected


@pytest.mark.parametrize("memory", ["", "much", "8XB", "-8MiB", "8.MiB.", "1e9", "9999999TiB", 0, -1, 1 << 70, MIB, "nan", "٣MiB"])
def test_reports_invalid_sizes(memory):
    with pytest.raises(leafpress.InvalidOption, match="memory"):
        Cache(memory)


@pytest.mark.parametrize(
    "options",
    [
        {"memory": 1.5},
        {"memory": True},
        {"memory": []},
        {"ttl": "1"},
        {"encoding": 5},
        {"encoding": ("utf-8",)},
        {"serializer": 5},
        {"serializer": (json.dumps,)},
        {"serializer": (1, 2)},
        {"on_removal": 5},
        {"codec": 5},
        {"disk": 5},
        {"nonsense": 5},
    ],
)
def test_reports_options_of_another_type(options):
    with pytest.raises(TypeError):
        Cache(**options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"codec": "lz5"}, "lz5"),
        ({"serializer": "yaml"}, "pickle"),
        ({"encoding": "utf-9"}, "utf-9"),
        ({"encoding": ("utf-8", "utf-8"), "serializer": "json"}, "encoding"),
        ({"disk_bytes": "1GiB"}, "disk="),
        ({"ttl": 0.0001}, "1 ms"),
        ({"time_to_idle": 0.1}, "1 s"),
        ({"refresh_ahead": 0.0001}, "1 ms"),
        ({"stale_while_revalidate": 0.0001}, "1 ms"),
        ({"share": "raw"}, "adaptive"),
        ({"miss_cost": -1}, "0 s to 10 years"),
        ({"share": "fixed:76"}, "75"),
    ],
)
def test_reports_options_out_of_bounds(options, says):
    with pytest.raises(leafpress.InvalidOption, match=says):
        Cache(**options)


def test_without_encoding_keys_and_values_are_bytes():
    with Cache() as cache:
        cache[b"a"] = bytearray(b"1")
        cache[memoryview(b"b")] = b"2"
        assert cache[b"a"] == b"1" and list(cache) == [b"a", b"b"]
        for key, value in [("a", b"1"), (b"a", "1"), (1, b"1"), (b"a", None), ([97], b"1")]:
            with pytest.raises(TypeError):
                cache[key] = value


def test_an_encoding_may_be_of_keys_alone():
    with Cache(encoding=("utf-8", None)) as cache:
        cache["ä"] = b"\xff"
        assert cache["ä"] == b"\xff" and list(cache.items()) == [("ä", b"\xff")]


@pytest.mark.parametrize("serializer", ["pickle", "json", "msgpack", (json.dumps, json.loads), (pickle.dumps, pickle.loads)])
def test_serializers_take_objects(serializer):
    if serializer == "msgpack":
        pytest.importorskip("msgpack")
    value = {"name": "Ada", "tags": ["x", None, 1.5, True], "ä": "\N{SNOWMAN}"}
    with Cache(serializer=serializer) as cache:
        cache["user"] = value
        cache["none"] = None
        assert cache["user"] == value
        assert cache.get_many(["user", "none", "absent"], "default") == [value, None, "default"]
        assert dict(cache.items()) == {"user": value, "none": None}
        assert cache.get_or_set("none", lambda: 1 / 0) is None


def test_what_a_serializer_raises_is_raised():
    with Cache(serializer="json") as cache:
        with pytest.raises(TypeError):
            cache["x"] = object()
        assert "x" not in cache
        with pytest.raises(TypeError):
            cache.get_or_set("x", object)
    def fail(_):
        raise ZeroDivisionError
    with Cache(serializer=(lambda value: 5, fail)) as cache, pytest.raises(TypeError, match="dumps"):
        cache["x"] = 1
    with Cache(serializer=(lambda value: b"5", fail)) as cache:
        cache["x"] = 1
        for read in [lambda: cache["x"], lambda: cache.get_many(["x"]), lambda: list(cache.items()), lambda: cache.pop("x")]:
            with pytest.raises(ZeroDivisionError):
                read()


def test_equal_keys_are_one_key():
    with Cache(serializer="pickle") as cache:
        cache[1] = "one"
        assert cache[True] == cache[1.0] == "one"
        cache[(1, "a")] = "pair"
        assert cache[(1.0, "a")] == "pair"
        cache[b"a"], cache["a"] = "bytes", "str"
        assert (cache[b"a"], cache["a"]) == ("bytes", "str")


def test_keys_of_many_types_come_back_in_order():
    numbers = [-(2**100), -65536, -256, -255, -1, 0, 1, 255, 256, 65535, 2**100]
    floats = [float("-inf"), -1.5, -1e-300, 1e-300, 0.1, 1.5, float("inf")]
    tuples = [(), ("a",), ("a", 1), ("a\0", 1), ("a\0b",), ("b",), (("x",), b"\0\xff", None)]
    with Cache(serializer="json") as cache:
        for key in numbers + floats + tuples:
            cache[key] = 0
        found = list(cache)
        assert set(found) == set(numbers + floats + tuples)
        assert [key for key in found if type(key) is int] == numbers
        assert [key for key in found if type(key) is float] == floats
        assert [key for key in found if type(key) is tuple] == tuples[:1] + tuples[1:]
        assert list(cache.prefix(("a",))) == [("a",), ("a", 1)]
        assert list(reversed(cache)) == found[::-1]


def test_reports_keys_of_other_types():
    deep = ()
    for _ in range(10_000):
        deep = (deep,)
    with Cache(serializer="json") as cache:
        for key, error in [(object(), TypeError), ([1], TypeError), ({}, TypeError), (2**200, OverflowError), (deep, ValueError)]:
            with pytest.raises(error):
                cache[key] = 1
        with pytest.raises(leafpress.InvalidOption):
            cache[float("nan")] = 1
        with pytest.raises(leafpress.KeyTooLong):
            cache["x" * 2000] = 1


def test_scans_go_both_ways_within_bounds(cache):
    cache.set_many({f"{n:04}": str(n) for n in range(1000)})
    keys = [f"{n:04}" for n in range(1000)]
    assert list(cache) == keys and list(reversed(cache)) == keys[::-1]
    assert list(cache.irange("0010", "0020")) == keys[10:21]
    assert list(cache.irange("0010", "0020", inclusive=(False, False), reverse=True)) == keys[19:10:-1]
    assert list(cache.irange(maximum="0003")) == keys[:4] and list(cache.irange("0998")) == keys[998:]
    assert list(cache.irange("5", "1")) == [] and list(cache.irange("0010", "0010", (False, False))) == []
    assert list(cache.prefix("09")) == keys[900:] and list(cache.prefix("09", reverse=True)) == keys[:899:-1]
    assert list(cache.items("0000", "0001")) == [("0000", "0"), ("0001", "1")]
    assert list(cache.items(prefix="099"))[0] == ("0990", "990")
    with pytest.raises(leafpress.InvalidOption):
        cache.items("a", prefix="b")


def test_a_scan_survives_writes(cache):
    cache.set_many({f"{n:04}": "x" for n in range(0, 2000, 2)})
    seen = []
    for key in cache:
        seen.append(key)
        if int(key) % 2 == 0:
            cache[f"{int(key) + 1:04}"] = "y"
            cache.delete(f"{int(key) - 4:04}")
    assert [key for key in seen if int(key) % 2 == 0] == [f"{n:04}" for n in range(0, 2000, 2)]


def test_counters(cache):
    assert cache.incr("n") == 1 and cache.incr("n", 10) == 11 and cache.decr("n", 2) == 9
    assert cache["n"] == "9" and cache.incr("big", 10**50) == 10**50 and cache.incr("big") == 10**50 + 1
    with pytest.raises(KeyError):
        cache.incr("absent", default=None)
    cache["text"] = "red"
    for key, delta in [("text", 1), ("n", 1.5), ("n", "1")]:
        with pytest.raises(TypeError):
            cache.incr(key, delta)
    with Cache(serializer="json") as other:
        assert other.incr("n", 0.5) == 0.5 and other["n"] == 0.5
    with Cache() as other:
        assert other.incr(b"n", 5) == 5 and other[b"n"] == b"5"


def test_threads_that_count_lose_no_step(cache):
    def count():
        for _ in range(500):
            cache.incr("n")
            cache.update_with("text", lambda old: old + "x", "")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache["n"] == "2000" and len(cache["text"]) == 2000


def test_update_with_leaves_all_as_it_was_when_it_raises(cache):
    cache["x"] = "1"
    with pytest.raises(ZeroDivisionError):
        cache.update_with("x", lambda old: 1 / 0)
    assert cache["x"] == "1" and cache.update_with("x", lambda old: old + "2") == "12"


def test_memory_is_bounded_and_can_be_changed():
    with Cache("16MiB") as cache:
        for n in range(40_000):
            cache[str(n).encode()] = RANDOM.randbytes(800)
            # A twentieth, and in a small cache 4 MiB, for what is under way.
            assert n % 1_000 or cache.currsize <= 16 * MIB * 1.05 + 4 * MIB
        cache.settle()
        assert 0 < cache.currsize <= 16 * MIB * 1.05 and cache.stats().evicted > 0
        cache.memory = "8MiB"
        assert cache.memory == 8 * MIB and cache.currsize <= 8 * MIB
        with pytest.raises(leafpress.InvalidOption):
            cache.memory = 5
        cache.clear()
        assert len(cache) == 0
        cache.validate()


def test_figures_have_names(cache):
    cache["a"] = "b"
    cache.get("a"), cache.get("b")
    stats = cache.stats()
    assert (stats.hits, stats.misses, stats.records, stats.hit_ratio) == (1, 1, 1, 0.5)
    assert stats.disk is None and stats._asdict()["memory_bytes"] == 8 * MIB
    assert cache.volume() == cache.currsize


def test_a_value_too_large_is_not_kept(cache):
    cache["x"] = "y" * (2 * MIB)
    assert "x" not in cache and cache.stats().too_large == 1
    assert len(cache.get_or_set("x", lambda: "y" * (2 * MIB))) == 2 * MIB


def test_every_operation_of_a_closed_cache_fails(cache):
    iterator = iter(cache)
    cache.close()
    cache.close()
    assert cache.closed and "closed" in repr(cache)
    calls = [
        lambda: cache["a"], lambda: cache.set("a", "b"), lambda: cache.get_many(["a"]), lambda: list(cache), lambda: next(iterator),
        lambda: cache.get_or_set("a", lambda: "b"), lambda: cache.stats(), lambda: len(cache), lambda: cache.incr("n"),
        lambda: cache.memory, lambda: cache.prefix("a"), lambda: "a" in cache, lambda: cache.clear(),
    ]
    for call in calls:
        with pytest.raises(leafpress.Closed):
            call()


def test_a_disk_tier_is_found_warm(tmp_path):
    path = tmp_path / "app.cache"
    options = {"disk": path, "disk_bytes": "64MiB", "serializer": "pickle"}
    with Cache("8MiB", **options) as cache:
        for n in range(20_000):
            cache[n] = value(n)
        cache.set("gone", 1)
        assert cache.delete("gone")
        cache.settle()
        assert cache.stats().disk.records > 0 and cache.volume() > cache.currsize
        assert cache.incr("counter", 5) == 5
    with Cache("8MiB", **options) as cache:
        found = [n for n in range(20_000) if cache.get(n) == value(n)]
        # A device that is slow does not take all.
        assert found
        assert "gone" not in cache
        assert cache.stats().disk_hits > 0
        assert cache.get_in_memory("nothing") is None
        assert cache.get_or_set(found[0], lambda: 1 / 0) == value(found[0])


KILLED = """
import os, signal, sys
from leafpress import Cache

cache = Cache("8MiB", disk=sys.argv[1], disk_bytes="64MiB", serializer="pickle", recover_after_crash=True)
for n in range(80_000):
    cache[n] = [n] * 20 + [os.urandom(200)]
cache.settle()
for n in range(0, 80_000, 100):
    cache[n] = "newer"
for n in range(50, 80_000, 100):
    # A record may be gone: where the disk cannot keep up, some are dropped.
    cache.delete(n)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_disk_tier_is_found_after_a_kill_without_what_was_replaced(tmp_path):
    path = str(tmp_path / "app.cache")
    assert subprocess.run([sys.executable, "-c", KILLED, path], timeout=120).returncode == -9
    with Cache("8MiB", disk=path, disk_bytes="64MiB", serializer="pickle", recover_after_crash=True) as cache:
        found = {n: found for n in range(80_000) if (found := cache.get(n)) is not None}
        assert all(found.get(n, "newer") == "newer" for n in range(0, 80_000, 100))
        assert not any(n in found for n in range(50, 80_000, 100))
        rest = [n for n in found if n % 50]
        assert rest and all(found[n][:20] == [n] * 20 for n in rest)
    with pytest.raises(leafpress.InvalidOption, match="disk="):
        Cache("8MiB", recover_after_crash=True)


def test_one_cache_at_a_time_uses_a_file(tmp_path):
    path = str(tmp_path / "app.cache")
    with Cache("8MiB", disk=path, disk_bytes="8MiB"):
        with pytest.raises(leafpress.DiskError):
            Cache("8MiB", disk=path, disk_bytes="8MiB")
    with pytest.raises(leafpress.DiskError):
        Cache(disk=str(tmp_path / "no" / "such" / "directory"))
    with pytest.raises(leafpress.InvalidOption):
        Cache(disk=path, disk_bytes=5)


def test_what_another_form_wrote_is_not_there(tmp_path):
    """Bytes from outside that were cached verbatim never reach pickle."""
    path = tmp_path / "app.cache"

    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("pickle was given bytes that were cached verbatim",))

    key = b"\x03victim"
    with Cache("8MiB", disk=path, disk_bytes="8MiB") as cache:
        cache[key] = pickle.dumps(Trap())
    with Cache("8MiB", disk=path, disk_bytes="8MiB", serializer="pickle") as cache:
        assert cache.get("victim") is None and cache.get_many(["victim"]) == [None] and list(cache.items()) == []
        assert cache.pop("victim", "default") == "default"
    with Cache("8MiB", disk=path, disk_bytes="8MiB") as cache:
        cache[key] = pickle.dumps(Trap())
    with Cache("8MiB", disk=path, disk_bytes="8MiB", serializer="pickle") as cache:
        assert cache.get_or_set("victim", lambda: "loaded") == "loaded"
        assert cache["victim"] == "loaded"


def test_damage_on_disk_is_a_miss(tmp_path):
    path = tmp_path / "app.cache"
    options = {"disk": path, "disk_bytes": "16MiB", "serializer": "pickle"}
    with Cache("8MiB", **options) as cache:
        for n in range(5_000):
            cache[n] = [n] * 100
    size = path.stat().st_size
    with open(path, "r+b") as file:
        for at in range(4096, size, 2048):
            file.seek(at)
            file.write(b"\x80\x05damage")
    with Cache("8MiB", **options) as cache:
        for n in range(5_000):
            assert cache.get(n) in (None, [n] * 100)


def test_a_cache_is_collected_with_what_it_calls():
    class Holder:
        def __init__(self):
            self.cache = Cache("8MiB", encoding="utf-8", on_removal=self.removed)

        def removed(self, key, value, cause):
            pass

    holder = Holder()
    watched = weakref.ref(holder)
    del holder
    gc.collect()
    assert watched() is None


def test_a_serializer_may_use_the_cache():
    """A value whose packing packs another one: each has a packer of its own, as each thread has."""
    with Cache("8MiB", serializer="msgpack") as cache:

        class Writes(dict):
            def items(self):
                cache["inner"] = [1, 2, 3]
                return super().items()

        cache["outer"] = [{"before": 1}, Writes(a=1), "after"]
        assert cache["outer"] == [{"before": 1}, {"a": 1}, "after"] and cache["inner"] == [1, 2, 3]


class Owner:
    """Has a cache that calls it."""

    def __init__(self, on_removal=False, serializer=False):
        options = {"on_removal": self.gone} if on_removal else {}
        options["serializer"] = (self.dumps, self.loads) if serializer else "pickle"
        self.cache = Cache("4MiB", **options)

    def gone(self, key, value, cause):
        pass

    def dumps(self, value):
        return value

    def loads(self, value):
        return value


@pytest.mark.parametrize("iterates", [False, True])
@pytest.mark.parametrize("options", [{}, {"on_removal": True}, {"serializer": True}, {"on_removal": True, "serializer": True}])
def test_what_a_cache_calls_is_collected_with_it(options, iterates):
    owner = Owner(**options)
    owner.cache["key"] = b"value"
    if iterates:
        owner.iterator = owner.cache.items()
        next(owner.iterator)
    seen = weakref.ref(owner)
    del owner
    gc.collect()
    assert seen() is None


def test_errors_of_the_disk_are_errors_of_the_system(tmp_path):
    path = tmp_path / "absent" / "x.cache"
    with pytest.raises(OSError) as caught:
        Cache("8MiB", disk=path, disk_bytes="16MiB")
    error = caught.value
    assert isinstance(error, leafpress.DiskError) and (error.errno, error.filename) == (errno.ENOENT, str(path))
    assert str(path) in str(error) and error.strerror == str(error)
    same = pickle.loads(pickle.dumps(error))
    assert (type(same), same.errno, same.filename, str(same)) == (leafpress.DiskError, error.errno, error.filename, str(error))
    assert str(leafpress.DiskError("a message")) == "a message"
    with Cache("8MiB", disk=tmp_path / "x.cache", disk_bytes="16MiB"):
        with pytest.raises(leafpress.DiskError) as caught:
            Cache("8MiB", disk=tmp_path / "x.cache", disk_bytes="16MiB")
    assert caught.value.filename == str(tmp_path / "x.cache")


@pytest.mark.parametrize("method", ["get_many", "delete_many"])
def test_a_signal_ends_a_call_about_many_keys(method):
    """Of an iterable that runs no Python code, which would see the signal itself."""
    before, after = range(5000), iter(range(5000, 300_000))
    signals = map(getattr(ctypes.CDLL(None), "raise"), [signal.SIGINT])
    with Cache("8MiB", serializer="json") as cache, pytest.raises(KeyboardInterrupt):
        getattr(cache, method)(itertools.chain(before, signals, after))
    assert next(after, 300_000) < 50_000


def texts(path):
    path.write_text("what somebody has written\n" * 1000)


def databases(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("create table t(a)")
        database.executemany("insert into t values(?)", [(f"row {n}",) for n in range(5000)])
        database.commit()


@pytest.mark.parametrize("write", [texts, databases])
@pytest.mark.parametrize("options", [{}, {"recover_after_crash": True}])
def test_a_file_that_no_cache_wrote_is_refused(tmp_path, write, options):
    path, link = tmp_path / "valued", tmp_path / "link"
    write(path)
    before, options = path.read_bytes(), {"disk_bytes": "16MiB", "serializer": "json", **options}
    link.symlink_to(path)
    for name in [path, link]:
        with pytest.raises(leafpress.DiskError, match="overwrite") as caught:
            Cache("8MiB", disk=name, **options)
        assert caught.value.filename == str(name) and path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [link, path]
    with Cache("8MiB", disk=path, overwrite=True, **options) as cache:
        cache["key"] = "value"
    with Cache("8MiB", disk=path, **options) as cache:
        assert cache["key"] == "value"
    with pytest.raises(leafpress.InvalidOption, match="disk="):
        Cache("8MiB", overwrite=True)


def moved(cache, count):
    """Records, of which most are on disk."""
    cache.set_many((f"{n:06}", value(n)) for n in range(count))
    cache.settle()
    stats = cache.stats()
    assert stats.records < count / 2 < stats.disk.records, stats
    return [f"{n:06}" for n in range(count)]


def test_len_and_iteration_cover_memory_and_disk(tmp_path):
    with Cache("4MiB", disk=tmp_path / "x.cache", disk_bytes="64MiB", serializer="pickle") as cache:
        assert not cache and len(cache) == 0 and list(cache) == []
        keys = moved(cache, 20_000)
        before = cache.stats()
        assert cache and len(cache) == 20_000
        assert list(cache) == keys and list(cache.keys()) == keys and list(reversed(cache)) == keys[::-1]
        assert all(found == value(n) for n, found in enumerate(cache.values()))
        assert all(key == keys[n] and found == value(n) for n, (key, found) in enumerate(cache.items()))
        assert list(cache.irange(keys[10], keys[15_000], (True, False))) == keys[10:15_000]
        assert list(cache.irange(keys[10], keys[15_000], reverse=True)) == keys[15_000:9:-1]
        assert list(cache.prefix("0123")) == keys[12_300:12_400]
        assert list(cache.irange("5", "1")) == []
        after = cache.stats()
        assert (after.hits, after.misses, after.promoted) == (before.hits, before.misses, before.promoted)
        # What was removed or replaced on disk is so in both tiers.
        for n in range(0, 20_000, 2):
            cache.delete(keys[n])
        cache[keys[1]] = "new"
        assert len(cache) == 10_000 and list(cache) == keys[1::2]
        assert next(iter(cache.items())) == (keys[1], "new")
        cache.clear()
        assert not cache and len(cache) == 0


def test_len_counts_what_an_earlier_cache_left_on_disk(tmp_path):
    options = {"disk": tmp_path / "x.cache", "disk_bytes": "64MiB", "encoding": "utf-8"}
    with Cache("4MiB", **options) as cache:
        cache.update({"a": "x", "b": "y"})
    with Cache("4MiB", **options) as cache:
        assert cache and len(cache) == 2 and dict(cache.items()) == {"a": "x", "b": "y"}


def test_threads_share_an_iterator_over_both_tiers(tmp_path):
    with Cache("4MiB", disk=tmp_path / "x.cache", disk_bytes="64MiB", serializer="pickle") as cache:
        keys = moved(cache, 20_000)
        shared, seen = iter(cache), [[] for _ in range(4)]
        threads = [threading.Thread(target=own.extend, args=(shared,)) for own in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(itertools.chain(*seen)) == keys


def test_invalidate_removes_without_a_read_of_the_disk(tmp_path):
    with Cache("4MiB", disk=tmp_path / "x.cache", disk_bytes="64MiB", serializer="pickle") as cache:
        keys = moved(cache, 20_000)
        before = cache.stats().disk.blocks_read
        assert all(cache.invalidate(key) is None for key in [*keys[:5_000], "nobody"])
        assert cache.stats().disk.blocks_read == before
        assert cache.get_many(keys[:5_000]) == [None] * 5_000 and cache[keys[5_000]] == value(5_000)
    with pytest.raises(leafpress.Closed):
        cache.invalidate("a")


def test_invalidate_reports_records_that_were_in_memory():
    seen = []
    with Cache("8MiB", encoding="utf-8", on_removal=lambda *removal: seen.append(removal)) as cache:
        cache["apple"] = "red"
        cache.invalidate("apple")
        cache.invalidate("apple")
        with pytest.raises(TypeError):
            cache.invalidate(1)
    assert seen == [("apple", "red", "removed")]


def test_popitem_takes_records_until_there_is_none(cache, tmp_path):
    cache.update(apple="red", pear="green")
    assert [cache.popitem(), cache.popitem()] == [("apple", "red"), ("pear", "green")] and not cache
    with pytest.raises(KeyError, match="empty") as caught:
        cache.popitem()
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    options = {"disk": tmp_path / "x.cache", "disk_bytes": "64MiB", "encoding": "utf-8"}
    with Cache("4MiB", **options) as left:
        left["apple"] = "red"
    with Cache("4MiB", **options) as found:
        assert found.popitem() == ("apple", "red") and not found
