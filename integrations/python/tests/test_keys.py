"""Keys of several types: which are one key, which come first, and which are none."""

import array
import datetime
import decimal
import enum
import fractions
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sortedcontainers import SortedDict

import leafpress
from leafpress import Cache

NUMBERS = st.one_of(
    st.integers(-(2**127), 2**127 - 1),
    st.integers(-300, 300),
    st.integers(-300, 300).map(lambda n: n / 8),
    st.floats(allow_nan=False),
    st.sampled_from([0, 0.0, -0.0, 5e-324, -5e-324, math.inf, -math.inf, 2.0**127, -(2.0**127), -(2**127), 2**127 - 1, 2.0**53, 2**53 + 1, 1e308, 255, 256, 255.5]),
)
CACHE = Cache("8MiB", serializer="json")


@given(st.lists(NUMBERS, max_size=30), st.none() | NUMBERS, st.none() | NUMBERS, st.tuples(st.booleans(), st.booleans()), st.booleans())
def test_numbers_have_one_order_whatever_their_types(numbers, low, high, inclusive, reverse):
    CACHE.clear()
    expected = SortedDict((number, str(number)) for number in numbers)
    CACHE.set_many((number, str(number)) for number in numbers)
    assert list(CACHE) == list(expected)
    assert list(reversed(CACHE)) == list(reversed(expected))
    assert dict(CACHE.items()) == expected
    if low is None or high is None or low <= high:
        within = list(expected.irange(low, high, inclusive, reverse))
        assert list(CACHE.irange(low, high, inclusive, reverse)) == within
        assert list(CACHE.items(low, high, inclusive, reverse)) == [(number, expected[number]) for number in within]
    for number in numbers:
        assert list(CACHE.prefix(number)) == [number]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=20), NUMBERS)
def test_numbers_have_their_order_in_tuples(pairs, first):
    CACHE.clear()
    CACHE.set_many((pair, 1) for pair in pairs)
    CACHE.set_many(((first, number), 1) for _, number in pairs)
    expected = sorted({*pairs, *((first, number) for _, number in pairs)})
    assert list(CACHE) == expected
    assert list(CACHE.prefix((first,))) == [pair for pair in expected if pair[0] == first]


def test_numbers_come_back_unchanged():
    CACHE.clear()
    for number in [0.5, -0.5, 1e300, -1e300, 5e-324, -5e-324, math.inf, -math.inf, 2**100, -(2**100), 1.5, 2**53 + 1, -255.5]:
        CACHE[number] = number
        assert next(CACHE.irange(number, number)) == number
        assert isinstance(next(CACHE.irange(number, number)), type(number))


class Text(str, enum.Enum):
    A = "a"


def test_equal_keys_are_one_and_others_are_refused():
    CACHE.clear()
    CACHE["a"] = CACHE[b"b"] = CACHE[7] = 1
    assert CACHE[Text.A] == CACHE[bytearray(b"b")] == CACHE[memoryview(b"b")] == CACHE[7.0] == 1
    # These have bytes as well, which others may have that are not equal.
    for key in [array.array("i", [1]), array.array("B", b"b"), memoryview(array.array("i", [1])), memoryview(b"b").cast("c")]:
        with pytest.raises(TypeError, match="key must be"):
            CACHE[key] = 2
    for key in [decimal.Decimal(7), fractions.Fraction(7), 7 + 0j, datetime.date(2026, 1, 1), [7], {7}, object()]:
        with pytest.raises(TypeError, match="key must be"):
            CACHE[key]
    with pytest.raises(leafpress.InvalidOption, match="NaN"):
        CACHE[math.nan]
    with pytest.raises(OverflowError):
        CACHE[2**127]
    assert len(CACHE) == 3


def test_numbers_of_numpy_are_the_numbers_that_they_equal():
    numpy = pytest.importorskip("numpy")
    CACHE.clear()
    CACHE[5], CACHE[0.5], CACHE[1] = "int", "float", "one"
    for kind in ["int8", "uint8", "int16", "uint32", "int64", "uint64", "longlong", "float16", "float32", "float64"]:
        assert CACHE[getattr(numpy, kind)(5)] == "int"
        assert CACHE.get((getattr(numpy, kind)(5),)) is None
    for kind in ["float16", "float32", "float64"]:
        assert CACHE[getattr(numpy, kind)(0.5)] == "float"
    assert CACHE[numpy.True_] == CACHE[numpy.array(1)] == "one"
    CACHE["x"] = "text"
    assert CACHE[numpy.str_("x")] == "text"
    assert CACHE.get(numpy.float32(0.1)) is None and CACHE.get(0.1) is None
    for key in [numpy.array([5]), numpy.datetime64("2026-01-01"), numpy.timedelta64(5, "s"), numpy.complex64(5), numpy.longdouble(5)]:
        with pytest.raises(TypeError, match="key must be"):
            CACHE[key]

    @CACHE.memoize(name="kinds")
    def kind(x):
        return type(x).__name__

    assert kind(numpy.int64(3)) == kind(3) == "int64" and kind.cache_key(numpy.float32(0.1)) != kind.cache_key(0.1)
    with pytest.raises(TypeError, match="key="):
        kind(numpy.datetime64(5, "s"))
    with pytest.raises(TypeError, match="key="):
        kind(numpy.array([1]))
