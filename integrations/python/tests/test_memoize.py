"""Functions whose results come from a cache."""

import asyncio
import collections
import concurrent.futures
import copy
import datetime
import decimal
import enum
import functools
import inspect
import itertools
import multiprocessing
import pathlib
import pickle
import re
import threading
import time
import uuid
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leafpress
from leafpress import Cache


@pytest.fixture(params=[{"serializer": "pickle"}, {"serializer": "json", "encoding": "utf-8"}, {"encoding": (None, None), "serializer": "json"}])
def cache(request):
    with Cache("8MiB", **request.param) as cache:
        yield cache


def counted(cache, name="counted", **options):
    calls = []

    @cache.memoize(name=name, **options)
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


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Bits(enum.IntFlag):
    ONE = 1


class Text(str):
    pass


class Number(int):
    pass


def zone(hours, name=None):
    return datetime.timezone(datetime.timedelta(hours=hours), *[name] if name else [])


MIDNIGHT = datetime.datetime(2026, 1, 1)
DIFFERENT = [
    "1", 1, b"1", 1.5, None, ..., (1,), [1], (1, 2), ("1",), ((1,),), ((1,), 2), {1: 2}, {1: 3}, {(1, 2)}, {1}, {2}, (), [], {}, set(), "",
    "1,2", "a)", "'", "i1:1", "s1:a", ("s1:a",), "a','b", ["a", "b"], ["a','b"], "\udc80", "\\udc80", "\0", "é", "x" * 5000, "x" * 5001, 10**400,
    10**5000, -(10**5000), -1, float("inf"), float("nan"), 1j, -1j, 0.1, 1e300,
    Colour.RED, Colour.BLUE, Access(0), Access.READ, Access.READ | Access.WRITE, Access.READ | Access.RUN, Access.WRITE | Access.RUN,
    Bits(0), Bits(64), Bits(128), Bits.ONE, Bits.ONE | 64, re.I | re.M, re.I | re.S, re.RegexFlag(0),
    datetime.date(2026, 1, 1), MIDNIGHT, MIDNIGHT.replace(fold=1), MIDNIGHT.replace(tzinfo=zone(1)), MIDNIGHT.replace(tzinfo=zone(5)),
    MIDNIGHT.replace(tzinfo=zone(1, "UTC+05:00")), MIDNIGHT.replace(tzinfo=zoneinfo.ZoneInfo("UTC")), datetime.time(), datetime.time(fold=1),
    datetime.time(tzinfo=zone(1)), datetime.timedelta(1), datetime.timedelta(seconds=1), zone(1), decimal.Decimal("1.5"),
    decimal.Decimal("1.50"), pathlib.PurePosixPath("/x"), pathlib.PurePosixPath("/y"), pathlib.PureWindowsPath("/x"), uuid.UUID(int=1),
    range(3), range(1, 3), slice(1), slice("1"), slice(1, 2), int, str, Colour, Access,
]


@pytest.mark.parametrize("typed", [False, True])
def test_different_arguments_are_different_calls(cache, typed):
    function, _ = counted(cache, typed=typed)
    for wrap in [lambda argument: argument, lambda argument: [argument], lambda argument: {"a": argument}, lambda argument: (0, argument)]:
        keys = {}
        for argument in DIFFERENT:
            assert keys.setdefault(function.cache_key(wrap(argument)), argument) is argument


def test_equal_arguments_are_one_call(cache):
    function, _ = counted(cache)
    for one, other in [({1: 2, 3: 4}, {3: 4, 1: 2}), ({1, 2, 3}, frozenset([3, 2, 1])), (2**60, float(2**60)), ((1, True), (True, 1.0))]:
        assert one == other and function.cache_key(one) == function.cache_key(other)


def test_distinguishes_keyword_arguments_from_values(cache):
    function, calls = counted(cache)
    ways = [dict(a=1), {"a": 1, "z": 2}, {"a": 1, "z,y": 2}, {"a": 1, "z=2,y": 2}, {"a": 1, "z": 2, "y": 2}, {"a": "1", "z": 2}, {"a": 1, "é": 2}, {"a": 1, "z": {"y": 2}}]
    for words in ways:
        function(**words)
    function(1, 2, "k"), function(1, 2, "kz", 2)
    assert len(calls) == len(ways) + 2


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-3, 3), st.floats(allow_nan=False), st.text("ab:,()1s'\\", max_size=3), st.text(max_size=2),
    st.binary(max_size=2), st.sampled_from(Colour), st.sampled_from(Access), st.builds(Access, st.integers(0, 7)), st.builds(Bits, st.integers(0, 9)),
    st.dates(), st.datetimes(timezones=st.none() | st.just(zone(1)) | st.just(zone(2))), st.timedeltas(), st.decimals(allow_nan=False), st.uuids(),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple), st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)),
    max_leaves=5,
)
CALLS = st.tuples(st.lists(VALUES, max_size=3).map(tuple), st.dictionaries(st.text("ab=,:1", min_size=1, max_size=3), VALUES, max_size=2))
ANY = Cache("4MiB", encoding="utf-8", serializer="pickle").memoize(lambda *args, **kwargs: None, name="any")


@pytest.mark.long
@settings(max_examples=30)
@given(st.lists(CALLS, min_size=2, max_size=6))
def test_calls_of_one_key_are_equal(calls):
    keys = [ANY.cache_key(*args, **kwargs) for args, kwargs in calls]
    for (one, one_key), (other, other_key) in itertools.combinations(zip(calls, keys), 2):
        assert one_key != other_key or one == other
    for (args, kwargs), key in zip(calls, keys):
        assert ANY.cache_key(*copy.deepcopy(args), **dict(reversed(kwargs.items()))) == key and key.isascii()


class Zone(datetime.tzinfo):
    """A zone that shows nothing of what it is."""

    def utcoffset(self, when):
        return datetime.timedelta(0)

    def __repr__(self):
        return "Zone"


class Shown:
    def __repr__(self):
        return "the same"


def enumeration(value):
    class Local(enum.Enum):
        X = value

    return Local


def nameless_zone():
    path = next(pathlib.Path(folder) / "UTC" for folder in zoneinfo.TZPATH if (pathlib.Path(folder) / "UTC").exists())
    with open(path, "rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key="Europe/Berlin")


@pytest.mark.parametrize(
    "argument",
    [object(), Text("1"), Number(1), print, slice(Shown()), MIDNIGHT.replace(tzinfo=Zone()), datetime.time(tzinfo=Zone()), Zone(),
     enumeration(1).X, enumeration(1), collections.OrderedDict(), bytearray(b"1"), lambda: 1],
    ids=lambda argument: type(argument).__name__,
)
def test_rejects_arguments_that_cannot_be_distinguished(cache, argument):
    function, calls = counted(cache)
    for wrapped in [argument, [argument], {1: argument}]:
        with pytest.raises(TypeError, match="key="):
            function(wrapped)
        with pytest.raises(TypeError, match="key="):
            function(1, z=wrapped)
    assert calls == []


@pytest.mark.skipif(not any((pathlib.Path(folder) / "UTC").exists() for folder in zoneinfo.TZPATH), reason="this system has no time zones")
def test_a_zone_with_another_name_is_refused(cache):
    function, _ = counted(cache)
    with pytest.raises(TypeError, match="key="):
        function(MIDNIGHT.replace(tzinfo=nameless_zone()))


def test_texts_fit_into_keys_of_any_encoding():
    for encoding in ["ascii", "latin-1", "utf-16", "utf-32", "shift_jis"]:
        with Cache("8MiB", encoding=encoding, serializer="pickle") as cache:
            function, calls = counted(cache, name="é")
            for argument in ["é" * 100, "語" * 340, "x" * 190, "\udc80"]:
                assert function(argument)[0] == function(argument)[0]
            assert len(calls) == 4


# Which function it is


def times(n):
    def multiply(x):
        return x * n

    return multiply


def plain():
    """A function that is defined in another, and has no variables of that."""

    def once(x):
        return [x]

    return once


def wrapping(n):
    @functools.wraps(abs)
    def wrapper(x):
        return abs(x) + n

    return wrapper


class Thing:
    def method(self, x):
        return id(self) * x

    @classmethod
    def of_class(cls):
        return cls.__name__


class Call:
    def __call__(self):
        return 1


@pytest.mark.parametrize(
    "function",
    [lambda x: x + 1, times(2), Thing().method, Thing.of_class, [].append, "a".join, functools.partial(max, 1), Call(), staticmethod(len), enumeration(1),
     functools.lru_cache(times(3))],
    ids=lambda function: type(function).__name__,
)
def test_what_has_no_name_is_refused(cache, function):
    with pytest.raises(leafpress.InvalidOption, match="(?s)name=.*key="):
        cache.memoize(function)


def test_accepts_functions_with_a_name_argument(cache):
    assert [cache.memoize(times(n), name=f"times {n}")(10) for n in (2, 3)] == [20, 30]
    assert cache.memoize(lambda x: x - 1, name="dec")(0) == -1
    assert cache.memoize(Thing.of_class, name="of")() == "Thing"
    key = (lambda x: f"six:{x}".encode()) if cache._keys_are_bytes else (lambda x: f"six:{x}")
    assert cache.memoize(times(6), key=key)(7) == 42
    for name in ["f(1", 5]:
        with pytest.raises((leafpress.InvalidOption, TypeError), match="name"):
            cache.memoize(times(2), name=name)


def test_two_functions_of_one_name_are_refused(cache):
    one = cache.memoize(wrapping(1))
    with pytest.raises(leafpress.InvalidOption, match="builtins.abs"):
        cache.memoize(wrapping(2))
    with pytest.raises(leafpress.InvalidOption, match="builtins.abs"):
        cache.memoize(abs)
    assert one(5) == 6
    one.cache_clear()
    assert cache.memoize(abs)(5) == 5
    # The same again, as when a cell of a notebook is run twice.
    assert cache.memoize(plain())(1) == cache.memoize(plain())(1) == [1]


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        kwargs.setdefault("b", 7)
        return function(*args, **kwargs)

    return wrapper


@decorated
def added(a, b=2):
    return a + b


def test_a_decorator_has_its_own_defaults(cache):
    function = cache.memoize(added)
    assert (function(1), function(1, b=2), function(1, b=7)) == (8, 3, 8)


KEPT = Cache("8MiB", serializer="pickle")


@KEPT.memoize
def cubed(x):
    return x**3


@KEPT.memoize
async def cubed_later(x):
    return x**3


class Cubes:
    @KEPT.memoize(key=lambda self, x: ("cubes", x))
    def cubed(self, x):
        return x**3


@pytest.mark.long
def test_memoized_functions_are_pickled_by_name():
    for function in [cubed, cubed_later]:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(function, protocol)) is function
        assert copy.copy(function) is copy.deepcopy(function) is function
    assert pickle.loads(pickle.dumps(Cubes().cubed))(3) == 27
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(cubed, [2, 3])) == [8, 27]


def test_calls_are_counted():
    with Cache("8MiB", serializer="json") as cache:
        function, _ = counted(cache)
        function(1), function(1), function(2)
        info = function.cache_info()
        assert (info.hits, info.misses, info.maxsize) == (1, 2, cache.maxsize) and 0 < info.currsize <= cache.maxsize
        assert function.cache_parameters() == {"maxsize": cache.maxsize, "typed": False, "ttl": None}


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

    @cache.memoize(name="function")
    def function():
        calls.append(1)

    assert function() is None and function() is None and len(calls) == 1


def test_exceptions_are_not_kept(cache):
    calls = []

    @cache.memoize(name="function")
    def function():
        calls.append(1)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            function()
    assert len(calls) == 2


def test_recursion(cache):
    @cache.memoize(name="fibonacci")
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

    @cache.memoize(name="slow", ttl=60)
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

    @cache.memoize(name="slow", ttl=60)
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


def test_rejects_functions_that_cannot_be_memoized(cache):
    def generator():
        yield 1

    for function in [generator, 5]:
        with pytest.raises(TypeError):
            cache.memoize()(function)
    assert cache.memoize(functools.partial(max, 1), name="max")(2) == 2


def test_results_on_disk_are_forgotten_by_function(tmp_path):
    def opened():
        return Cache("8MiB", disk=tmp_path / "x", disk_bytes="8MiB", serializer="json")

    with opened() as cache:
        function, calls = counted(cache, name="f")
        other, other_calls = counted(cache, name="g")
        function(1), other(1)
        function.cache_clear()
        function(1), other(1)
        assert len(calls) == 2 and len(other_calls) == 1
        assert function.cache_delete(1)
        function(2), other(2)
    with opened() as cache:
        function, calls = counted(cache, name="f")
        other, other_calls = counted(cache, name="g")
        function(2)
        assert not calls
        function.cache_clear()
        function(2), other(1), other(2)
        assert len(calls) == 1 and not other_calls
