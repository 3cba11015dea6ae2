"""One loader a key, among threads and tasks; no loader waits for itself."""

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import leafpress
from leafpress import Cache

WAIT = 60


@pytest.fixture
def cache():
    with Cache("8MiB", serializer="pickle") as cache:
        yield cache


def in_threads(*functions):
    """What each gives or raises."""
    results = [None] * len(functions)

    def run(at):
        try:
            results[at] = functions[at]()
        except BaseException as error:
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive(), "it hangs"
    return results


def test_one_loads_and_the_others_get_it(cache):
    calls, all_start = [], threading.Barrier(8)

    def load():
        calls.append(1)
        time.sleep(0.2)
        return "value"

    def request():
        all_start.wait(WAIT)
        return cache.get_or_set("key", load, ttl=60)

    assert in_threads(*[request] * 8) == ["value"] * 8
    assert len(calls) == 1


def test_all_waiters_get_the_exception(cache):
    all_start = threading.Barrier(4)

    def load():
        time.sleep(0.2)
        raise ZeroDivisionError("no")

    def request():
        all_start.wait(WAIT)
        return cache.get_or_set("key", load)

    results = in_threads(*[request] * 4)
    assert all(isinstance(result, ZeroDivisionError) for result in results)
    assert cache.get_or_set("key", lambda: "later") == "later"


def test_what_ends_a_thread_ends_no_other(cache):
    begun, may_end = threading.Event(), threading.Event()

    def load():
        begun.set()
        may_end.wait(WAIT)
        raise SystemExit

    def leads():
        return cache.get_or_set("key", load)

    def waits():
        begun.wait(WAIT)
        threading.Timer(0.1, may_end.set).start()
        return cache.get_or_set("key", lambda: "mine")

    ended, value = in_threads(leads, waits)
    assert isinstance(ended, SystemExit) and value == "mine"


def test_a_write_during_a_load_wins(cache):
    def load():
        cache["key"] = "written"
        return "loaded"

    assert cache.get_or_set("key", load) == "loaded"
    assert cache["key"] == "written"

    def load_deleted():
        cache.delete("other")
        return "loaded"

    assert cache.get_or_set("other", load_deleted) == "loaded"
    assert "other" not in cache


def test_a_loader_that_requests_its_own_key_is_refused(cache):
    with pytest.raises(leafpress.LoadCycle):
        cache.get_or_set("key", lambda: cache.get_or_set("key", lambda: 1))
    with pytest.raises(leafpress.LoadCycle):
        cache.get_or_set("a", lambda: cache.get_or_set("b", lambda: cache.get_or_set("a", lambda: 1)))
    with Cache("8MiB", serializer="json") as other, pytest.raises(leafpress.LoadCycle):
        cache.get_or_set("a", lambda: other.get_or_set("a", lambda: cache.get_or_set("a", lambda: 1)))
    assert cache.get_or_set("a", lambda: cache.get_or_set("b", lambda: 2)) == 2


def test_threads_that_wait_for_one_another_are_refused(cache):
    both_load = threading.Barrier(2)

    def request(mine, other):
        def load():
            both_load.wait(WAIT)
            return cache.get_or_set(other, lambda: "never")

        return lambda: cache.get_or_set(mine, load)

    results = in_threads(request("a", "b"), request("b", "a"))
    refused = [isinstance(result, leafpress.LoadCycle) for result in results]
    # If one was refused before the other requested its key, the other loads both.
    assert any(refused) and all(is_refused or result == "never" for is_refused, result in zip(refused, results)), results
    assert cache.get_or_set("c", lambda: 1) == 1


@pytest.mark.parametrize("way", ["result", "map", "wait", "as_completed", "join", "with"])
def test_a_loader_that_waits_for_a_thread_that_waits_for_it_is_refused(cache, way):
    """The threads know nothing of the load that they run for."""
    asked = []

    def request():
        try:
            return cache.get_or_set("key", lambda: 0)
        except leafpress.LoadCycle:
            asked.append("refused")
            raise

    def load():
        if way == "join":
            thread = threading.Thread(target=lambda: in_threads_end(request))
            thread.start()
            thread.join()
            return 1
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            if way == "map":
                return sum(pool.map(lambda n: request(), range(3)))
            futures = [pool.submit(request)]
            if way == "result":
                return futures[0].result()
            if way == "wait":
                return len(concurrent.futures.wait(futures).done)
            if way == "as_completed":
                return len(list(concurrent.futures.as_completed(futures)))
        return 1

    [result] = in_threads(lambda: cache.get_or_set("key", load))
    if way in ("result", "map"):
        assert isinstance(result, leafpress.LoadCycle)
    else:
        assert result == cache["key"] == 1
    assert set(asked) == {"refused"}


def in_threads_end(function):
    with contextlib.suppress(leafpress.LoadCycle):
        function()


def test_a_thread_that_nobody_waits_for_forever_is_not_refused(cache):
    """It waits for the load, and gets its value."""
    requested, may_end, got = threading.Event(), threading.Event(), []

    def request():
        requested.set()
        got.append(cache.get_or_set("key", lambda: 0))

    def load():
        with concurrent.futures.ThreadPoolExecutor(2) as other:
            thread = threading.Thread(target=request)
            thread.start()
            requested.wait(WAIT)
            thread.join(0.3)
            # Another future than the thread's is waited for as well.
            other.submit(time.sleep, 0.3).result()
        may_end.set()
        return 1

    assert in_threads(lambda: cache.get_or_set("key", load)) == [1]
    deadline = time.monotonic() + WAIT
    while not got and time.monotonic() < deadline:
        time.sleep(0.01)
    assert got == [1]


def test_stale_values_need_no_wait():
    with Cache("8MiB", serializer="json", ttl=1, stale_while_revalidate=600) as cache:
        cache["key"] = "old"
        while "key" in cache:
            time.sleep(0.05)
        begun, may_end = threading.Event(), threading.Event()

        def load():
            begun.set()
            may_end.wait(WAIT)
            return "new"

        def waits():
            begun.wait(WAIT)
            try:
                return cache.get_or_set("key", load)
            finally:
                may_end.set()

        assert in_threads(lambda: cache.get_or_set("key", load), waits) == ["new", "old"]
        assert cache.stats().stale == 1


def test_a_record_is_loaded_anew_before_it_expires():
    """One caller loads; the others get the present value, and so does that caller if its load fails."""
    with Cache("8MiB", serializer="json", ttl=1000, refresh_ahead=500) as cache:
        cache["key"] = "old"
        assert cache.get_or_set("key", lambda: "new") == "old"
        cache.touch("key", 400)
        begun, may_end = threading.Event(), threading.Event()

        def load():
            begun.set()
            may_end.wait(WAIT)
            return "new"

        def reads():
            begun.wait(WAIT)
            try:
                return cache.get_or_set("key", load), cache.get("key"), asyncio.run(cache.aget_or_set("key", load))
            finally:
                may_end.set()

        assert in_threads(lambda: cache.get_or_set("key", load), reads) == ["new", ("old", "old", "old")]
        assert cache.get_or_set("key", lambda: "newer") == "new"

        def fails():
            raise ValueError("no backend")

        cache.touch("key", 400)
        assert cache.get_or_set("key", fails) == "new"

        async def task():
            return await cache.aget_or_set("key", lambda: "newest")

        assert asyncio.run(task()) == "newest" and cache["key"] == "newest"


def test_a_cache_that_is_closed_ends_its_loads(cache):
    begun, may_end = threading.Event(), threading.Event()

    def load():
        begun.set()
        may_end.wait(WAIT)
        return "late"

    def close():
        begun.wait(WAIT)
        time.sleep(0.1)
        cache.close()
        may_end.set()

    def waits():
        begun.wait(WAIT)
        return cache.get_or_set("key", load)

    leads, waited, _ = in_threads(lambda: cache.get_or_set("key", load), waits, close)
    assert isinstance(leads, leafpress.Closed) and isinstance(waited, leafpress.Closed)


def test_a_thread_that_waits_can_be_interrupted():
    script = """
        import _thread, threading, time
        from leafpress import Cache
        cache = Cache("8MiB", serializer="json")
        begun = threading.Event()
        def load():
            begun.set()
            time.sleep(60)
        threading.Thread(target=lambda: cache.get_or_set("key", load), daemon=True).start()
        begun.wait()
        threading.Timer(0.2, _thread.interrupt_main).start()
        try:
            cache.get_or_set("key", load)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        import os; os._exit(0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=WAIT)
    assert done.stdout == "interrupted\n", done.stderr


# Tasks


def test_tasks_share_a_load(cache):
    calls = []

    async def load():
        calls.append(1)
        await asyncio.sleep(0.05)
        return {"value": 1}

    async def main():
        return await asyncio.gather(*(cache.aget_or_set("key", load, ttl=60) for _ in range(20)))

    assert asyncio.run(main()) == [{"value": 1}] * 20 and len(calls) == 1


def test_tasks_and_threads_share_a_load(cache):
    calls = []

    begun = threading.Event()

    def slow():
        calls.append(1)
        begun.set()
        time.sleep(0.3)
        return "thread's"

    async def main():
        thread = asyncio.to_thread(cache.get_or_set, "key", slow)
        task = asyncio.ensure_future(thread)
        await asyncio.to_thread(begun.wait, WAIT)
        async def mine():
            return "task's"
        return await asyncio.gather(task, cache.aget_or_set("key", mine))

    assert asyncio.run(main()) == ["thread's"] * 2 and len(calls) == 1


def test_a_callable_runs_in_another_thread(cache):
    async def main():
        here = threading.get_ident()
        assert await cache.aget_or_set("plain", threading.get_ident) != here

        async def fetched():
            return "fetched"

        assert await cache.aget_or_set("awaitable", lambda: fetched()) == "fetched"
        with pytest.raises(TypeError):
            await cache.aget_or_set("none", 5)

    asyncio.run(main())


def test_all_tasks_get_the_exception(cache):
    async def load():
        await asyncio.sleep(0.05)
        raise ZeroDivisionError

    async def main():
        asked = [cache.aget_or_set("key", load) for _ in range(3)]
        return await asyncio.gather(*asked, return_exceptions=True)

    assert all(isinstance(result, ZeroDivisionError) for result in asyncio.run(main()))
    assert "key" not in cache


def test_a_cancelled_waiter_concerns_no_other(cache):
    async def main():
        may_end = asyncio.Event()

        async def load():
            await may_end.wait()
            return "value"

        tasks = [asyncio.ensure_future(cache.aget_or_set("key", load)) for _ in range(4)]
        await asyncio.sleep(0.05)
        tasks[2].cancel()
        may_end.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(main())
    assert isinstance(results.pop(2), asyncio.CancelledError) and results == ["value"] * 3


def test_when_the_loader_is_cancelled_another_loads(cache):
    loads = []

    async def load():
        loads.append(1)
        await asyncio.sleep(WAIT if len(loads) == 1 else 0)
        return len(loads)

    async def main():
        tasks = [asyncio.ensure_future(cache.aget_or_set("key", load)) for _ in range(4)]
        await asyncio.sleep(0.05)
        tasks[0].cancel()
        return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), WAIT)

    results = asyncio.run(main())
    assert isinstance(results.pop(0), asyncio.CancelledError) and results == [2] * 3


def test_a_time_out_ends_a_load(cache):
    async def load():
        await asyncio.sleep(WAIT)

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(cache.aget_or_set("key", load), 0.05)
        async def quick():
            return "quick"
        return await cache.aget_or_set("key", quick)

    assert asyncio.run(main()) == "quick"


def test_a_task_that_requests_its_own_key_is_refused(cache):
    async def own():
        return await cache.aget_or_set("key", own)

    async def through_others():
        async def inner():
            return await cache.aget_or_set("outer", through_others)
        return (await asyncio.gather(cache.aget_or_set("x", inner), cache.aget_or_set("y", inner)))[0]

    async def blocks_its_own_loop():
        may_end = asyncio.Event()

        async def load():
            await may_end.wait()
            return 1

        task = asyncio.ensure_future(cache.aget_or_set("slow", load))
        await asyncio.sleep(0.01)
        try:
            return cache.get_or_set("slow", lambda: 2)
        finally:
            may_end.set()
            await task

    async def main(request):
        return await asyncio.wait_for(request, WAIT)

    for request in [lambda: cache.aget_or_set("key", own), lambda: cache.aget_or_set("outer", through_others),
    blocks_its_own_loop]:
        with pytest.raises(leafpress.LoadCycle):
            asyncio.run(main(request()))


def test_a_task_that_a_loader_does_not_wait_for_may_request_its_key(cache):
    async def main():
        tasks = []

        async def refresh():
            return await cache.aget_or_set("key", lambda: "alone")

        async def other():
            async def load():
                return await cache.aget_or_set("key", lambda: "alone")
            return await cache.aget_or_set("other", load)

        async def load():
            tasks.extend(map(asyncio.ensure_future, [refresh(), other()]))
            # When both tasks have ended, both have sent their requests.
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0.01)
            return "loaded"

        assert await asyncio.wait_for(cache.aget_or_set("key", load), WAIT) == "loaded"
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == ["alone", "alone"]
    assert (cache["key"], cache["other"]) == ("loaded", "alone")


def test_tasks_use_the_disk_without_stopping_the_loop(tmp_path):
    options = {"disk": tmp_path / "app.cache", "disk_bytes": "32MiB", "serializer": "pickle"}
    values = {n: os.urandom(400) for n in range(30_000)}

    async def fill():
        with Cache("8MiB", **options) as cache:
            await cache.aset_many(values)
            await cache.aset("set", 1)
            await cache.aset("deleted", 1)
            assert await cache.adelete("deleted")

    async def read():
        with Cache("8MiB", **options) as cache:
            assert await cache.aget("deleted", "gone") == "gone"
            found = await cache.aget_many(range(0, 30_000, 1000))
            assert all(value in (None, values[n]) for n, value in zip(range(0, 30_000, 1000), found))
            async def load():
                return "loaded"
            got = await asyncio.gather(*(cache.aget_or_set(n, load) for n in range(0, 30_000, 100)))
            assert all(value in ("loaded", values[n]) for n, value in zip(range(0, 30_000, 100), got))
            assert cache.stats().disk_hits > 0
            one = await cache.aget(0)
            assert one in (None, "loaded", values[0])

    asyncio.run(fill())
    asyncio.run(read())


def test_a_loop_that_ended_is_not_woken_to_no_avail(cache):
    """A task that waits for a thread's load goes with its loop; the thread goes on."""
    begun, may_end = threading.Event(), threading.Event()

    def load():
        begun.set()
        may_end.wait(WAIT)
        return "value"

    def leads():
        return cache.get_or_set("key", load)

    def waits():
        begun.wait(WAIT)

        async def main():
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(cache.aget_or_set("key", load), 0.05)

        asyncio.run(main())
        may_end.set()

    assert in_threads(leads, waits)[0] == "value"
