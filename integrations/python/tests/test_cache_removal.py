"""Tests on_removal: removed records are reported by any thread until the interpreter ends; forks."""

import os
import multiprocessing
import random
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest

import leafpress
from leafpress import Cache

WAIT = 60


def run(script, *, timeout=WAIT):
    """The output of a program in an interpreter of its own, which must end well."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def until(condition):
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, "it never comes"
        time.sleep(0.02)


def test_the_callback_gets_removed_records_and_causes():
    seen = []
    with Cache("4MiB", serializer="json", on_removal=lambda *record: seen.append(record)) as cache:
        cache["a"] = 1
        cache["a"] = 2
        cache.delete("a")
        cache.set("b", [3], ttl=1)
        until(lambda: cache.settle() or len(seen) == 3)
        assert seen == [("a", 1, "replaced"), ("a", 2, "removed"), ("b", [3], "expired")]
        del seen[:]
        cache.set_many((n, random.Random(n).randbytes(300).hex()) for n in range(30_000))
        until(lambda: cache.settle() or seen)
        assert {cause for _, _, cause in seen} == {"evicted"}
        assert all(value == random.Random(key).randbytes(300).hex() for key, value, _ in seen[:100])


def test_what_it_raises_is_unraisable(monkeypatch):
    caught = []
    monkeypatch.setattr(sys, "unraisablehook", lambda hook: caught.append((hook.exc_type, hook.object)))

    def fail(key, value, cause):
        raise ZeroDivisionError

    with Cache("8MiB", encoding="utf-8", on_removal=fail) as cache:
        cache["a"] = "1"
        cache["a"] = "2"
        assert cache["a"] == "2" and caught == [(ZeroDivisionError, fail)]
        cache.set("b", "1", ttl=1)
        until(lambda: len(caught) == 2)


def test_it_may_use_the_cache_but_not_close_it():
    errors = []

    def removed(key, value, cause):
        cache.get_or_set(f"old:{key}", lambda: value)
        assert len(list(cache.prefix("old:"))) >= 1
        try:
            cache.close()
        except leafpress.Error as error:
            errors.append(str(error))

    cache = Cache("8MiB", serializer="json", on_removal=removed)
    cache["a"] = 1
    cache["a"] = 2
    assert cache["old:a"] == 1 and len(errors) == 1
    cache.set("b", 1, ttl=1)
    until(lambda: len(errors) == 2)
    cache.close()


def test_a_cache_is_let_go_of_while_its_thread_calls():
    """The thread wants the interpreter's lock, and is waited for."""
    calling, lets_go = threading.Event(), threading.Event()

    def removed(key, value, cause):
        calling.set()
        lets_go.wait(WAIT)

    for close in [lambda cache: cache.close(), lambda cache: None]:
        calling.clear(), lets_go.clear()
        cache = Cache("8MiB", encoding="utf-8", on_removal=removed)
        cache.set("a", "1", ttl=1)
        assert calling.wait(WAIT)
        threading.Timer(0.2, lets_go.set).start()
        close(cache)
        del cache


def test_the_last_to_have_a_cache_may_be_its_own_thread():
    held, seen = [], threading.Event()

    def removed(key, value, cause):
        held.clear()
        seen.set()

    held.append(Cache("8MiB", encoding="utf-8", on_removal=removed))
    gone = weakref.ref(held[0])
    held[0].set("a", "1", ttl=1)
    assert seen.wait(WAIT)
    until(lambda: gone() is None)


@pytest.mark.parametrize("ending", ["", "raise SystemExit", "cache.close()", "del cache", "threading.Thread(target=write, args=(10**9,), daemon=True).start()"])
def test_the_interpreter_ends_with_a_cache_that_calls(ending):
    output, _ = run(f"""
        import random, threading, time
        from leafpress import Cache
        seen = []
        def removed(*record):
            seen.append(record)
            time.sleep(0.0001)
        def write(last):
            for n in range(last):
                cache[n] = random.random()
        cache = Cache("4MiB", serializer="pickle", on_removal=removed, ttl=1)
        write(30_000)
        time.sleep(1.1)
        print("done", flush=True)
        {ending}
    """)
    assert output == "done\n"


def test_the_interpreter_ends_amid_a_call():
    output, _ = run("""
        import threading, time
        from leafpress import Cache
        calling = threading.Event()
        def removed(*record):
            calling.set()
            time.sleep(0.5)
        cache = Cache("4MiB", encoding="utf-8", on_removal=removed)
        cache.set("a", "1", ttl=1)
        calling.wait()
        print("done", flush=True)
    """)
    assert output == "done\n"


def test_the_interpreter_ends_amid_loads():
    output, _ = run("""
        import asyncio, threading, time
        from leafpress import Cache
        cache = Cache("4MiB", serializer="json")
        def load():
            time.sleep(100)
        for key in ["a", "a", "b"]:
            threading.Thread(target=cache.get_or_set, args=(key, load), daemon=True).start()
        time.sleep(0.3)
        print("done", flush=True)
    """)
    assert output == "done\n"


def child(cache, queue):
    try:
        cache.get("a")
    except leafpress.ForkedProcess as error:
        queue.put(str(error))
    with Cache("4MiB", encoding="utf-8", on_removal=lambda *record: queue.put(record)) as mine:
        mine["a"] = "1"
        del mine["a"]
        queue.put(mine.get_or_set("b", lambda: "2"))


def test_a_forked_process_makes_its_own():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with Cache("4MiB", encoding="utf-8", on_removal=print) as cache:
        cache["a"] = "1"
        process = context.Process(target=child, args=(cache, queue))
        process.start()
        assert "spawn" in queue.get(timeout=WAIT)
        assert queue.get(timeout=WAIT) == ("a", "1", "removed") and queue.get(timeout=WAIT) == "2"
        process.join(WAIT)
        assert process.exitcode == 0 and cache["a"] == "1"


def test_a_forked_process_ends_though_its_parent_was_busy():
    output, _ = run("""
        import os, random, threading
        from leafpress import Cache
        cache = Cache("4MiB", serializer="pickle", on_removal=lambda *record: None)
        def write():
            while True:
                cache[random.random()] = random.random()
                cache.get_or_set(random.random(), random.random)
        for _ in range(3):
            threading.Thread(target=write, daemon=True).start()
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                other = Cache("4MiB", serializer="pickle", on_removal=lambda *record: None)
                assert other.get_or_set(1, lambda: 2) == 2
                del cache, other
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        print("done", flush=True)
        os._exit(0)
    """)
    assert output == "done\n"
