"""Functions whose results come from a cache."""

import asyncio
import datetime
import enum
import functools
import inspect
import pathlib
import threading
import time
import uuid

import pytest

import leafpress
from leafpress import Cache


@pytest.fixture(params=[{"serializer": "pickle"}, {"serializer": "json", "encoding": "utf-8"}, {"encoding": (None, None), "serializer": "json"}])
def cache(request):
    with Cache("8MiB", **request.param) as cache:
        yield cache


def counted(cache, **options):
    calls = []

    @cache.memoize(**options)
    def function(a, b=2, *rest, c=3, **others):
        """What it does."""
        calls.append((a, b, rest, c, others))
        return [a, b, c]

    return function, calls


def test_a_result_is_computed_once(cache):
    function, calls = counted(cache)
    assert function(1) == function(1, 2) == function(a=1, b=2) == function(1, c=3) == [1, 2, 3]
    assert len(calls) == 1
    assert function(1, 2, c=4) == [1, 2, 4] and len(calls) == 2
    assert function(1, 2, 3) == [1, 2, 3] and len(calls) == 3
    assert function(1, x=1) == [1, 2, 3] and len(calls) == 4


def test_it_looks_as_the_function_does(cache):
    function, _ = counted(cache)
    assert function.__name__ == "function" and function.__doc__ == "What it does."
    assert inspect.signature(function) == inspect.signature(function.__wrapped__)
    assert function.__wrapped__(1) == [1, 2, 3]
    with pytest.raises(TypeError):
        function()


def test_results_are_forgotten_one_by_one_and_all(cache):
    function, calls = counted(cache, name="f")
    other, _ = counted(cache, name="fg")
    function(1), function(2), other(1)
    assert function.cache_delete(1) and not function.cache_delete(1)
    function.cache_clear()
    assert function.cache_key(1) not in cache and function.cache_key(2) not in cache and other.cache_key(1) in cache
    function(2)
    assert len(calls) == 3


def test_equal_numbers_are_one_call_unless_typed(cache):
    function, calls = counted(cache)
    function(3), function(3.0), function(True), function(1)
    assert len(calls) == 2
    function, calls = counted(cache, typed=True, name="typed")
    function(3), function(3.0), function(True), function(1)
    assert len(calls) == 4


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Text(str):
    pass


def test_different_arguments_are_different_calls(cache):
    arguments = [
        "1", 1, b"1", 1.5, None, (1,), [1], (1, 2), ("1",), ((1,),), {1: 2}, {1: 3}, {1}, {2}, Colour.RED, Colour.BLUE, "1,2", "a)", "'",
        datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1), datetime.timedelta(1), pathlib.PurePosixPath("/x"), uuid.UUID(int=1), 1j,
        "x" * 5000, "x" * 5001, "\udc80", (), "",
    ]
    function, calls = counted(cache)
    keys = [function.cache_key(argument) for argument in arguments]
    assert len(set(keys)) == len(arguments)
    assert function.cache_key({1: 2, 3: 4}) == function.cache_key({3: 4, 1: 2})
    for argument in [object(), Text("1"), print, [object()]]:
        with pytest.raises(TypeError, match="key="):
            function(argument)


def test_a_key_of_ones_own(cache):
    calls = []

    @cache.memoize(key=lambda thing: b"key" if cache._keys_are_bytes else f"key:{type(thing).__name__}")
    def function(thing):
        calls.append(thing)
        return 1

    assert function(object()) == function(object()) == 1 and len(calls) == 1
    with pytest.raises(leafpress.InvalidOption):
        function.cache_clear()


def test_none_is_a_result(cache):
    calls = []

    @cache.memoize
    def function():
        calls.append(1)

    assert function() is None and function() is None and len(calls) == 1


def test_exceptions_are_not_kept(cache):
    calls = []

    @cache.memoize
    def function():
        calls.append(1)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            function()
    assert len(calls) == 2


def test_recursion(cache):
    @cache.memoize
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    assert fibonacci(100) == 354224848179261915075


def test_methods_take_a_key(cache):
    class Thing:
        def __init__(self, number):
            self.number = number

        @cache.memoize(key=lambda self, x: f"{self.number}:{x}".encode() if cache._keys_are_bytes else f"{self.number}:{x}")
        def times(self, x):
            return self.number * x

        @cache.memoize
        def keyless(self):
            return 1

    assert Thing(2).times(3) == 6 and Thing(3).times(3) == 9
    assert Thing(2).times.cache_delete(3) and not Thing(2).times.cache_delete(3)
    with pytest.raises(TypeError, match="key="):
        Thing(2).keyless()


def test_threads_compute_once(cache):
    calls = []

    @cache.memoize(ttl=60)
    def slow(x):
        calls.append(x)
        time.sleep(0.2)
        return x

    threads = [threading.Thread(target=slow, args=(1,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]


def test_coroutine_functions(cache):
    calls = []

    @cache.memoize(ttl=60)
    async def slow(x, y=1):
        calls.append(x)
        await asyncio.sleep(0.05)
        return x + y

    async def main():
        return await asyncio.gather(slow(1), slow(1, 1), slow(x=1), slow(2))

    assert asyncio.run(main()) == [2, 2, 2, 3] and calls == [1, 2]
    assert slow.__name__ == "slow" and slow.cache_delete(1)
    with pytest.raises(TypeError):
        asyncio.run(slow())


def test_what_cannot_be_memoized_is_told(cache):
    def generator():
        yield 1

    for function in [generator, 5]:
        with pytest.raises(TypeError):
            cache.memoize()(function)
    with pytest.raises(leafpress.InvalidOption, match="name"):
        cache.memoize(functools.partial(max, 1))
    assert cache.memoize(functools.partial(max, 1), name="max")(2) == 2


def test_a_disk_tier_cannot_be_searched_by_function(tmp_path):
    with Cache("8MiB", disk=tmp_path / "x", disk_bytes="8MiB", serializer="json") as cache:
        function, calls = counted(cache)
        function(1)
        with pytest.raises(leafpress.InvalidOption, match="disk"):
            function.cache_clear()
        assert function.cache_delete(1)
