"""Nothing that a cache is given crashes it, and what it holds is what it was given."""

import datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import leafpress
from leafpress import Cache

EXPECTED = (leafpress.Error, TypeError, KeyError, OverflowError, UnicodeError, ValueError, RuntimeError, ZeroDivisionError)


class Odd:
    """An object of which every question raises."""

    def __hash__(self):
        raise ZeroDivisionError

    def __iter__(self):
        raise ZeroDivisionError

    def __eq__(self, other):
        raise ZeroDivisionError

    def __index__(self):
        raise ZeroDivisionError

    def __float__(self):
        raise ZeroDivisionError

    def __bool__(self):
        raise ZeroDivisionError

    def __buffer__(self, flags):
        raise ZeroDivisionError

    def total_seconds(self):
        raise ZeroDivisionError


ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters()),
        st.binary(),
        st.binary().map(bytearray),
        st.binary().map(memoryview),
        st.timedeltas(),
        st.builds(Odd),
        st.just(2**200),
        st.just(float("nan")),
        st.just("x" * 5000),
        st.builds(lambda: memoryview(bytearray(64))[::2]),
        st.just(print),
    ),
    lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner)),
    max_leaves=4,
)
METHODS = [
    "get", "set", "add", "pop", "delete", "invalidate", "touch", "incr", "decr", "update_with", "get_many", "set_many", "delete_many", "get_or_set", "irange",
    "prefix", "items", "get_in_memory", "memoize", "stats", "advice", "settle", "volume", "clear", "__getitem__", "__setitem__", "__delitem__",
    "__contains__", "_begin_load", "_find_before_load", "invalidate_tag", "setdefault", "update", "keys", "values",
]
CACHES = [
    Cache("4MiB"),
    Cache("4MiB", encoding="utf-8"),
    Cache("4MiB", encoding="utf-16"),
    Cache("4MiB", serializer="pickle"),
    Cache("4MiB", serializer="json", on_removal=lambda *record: None),
]


@given(st.sampled_from(CACHES), st.sampled_from(METHODS), st.lists(ANYTHING, max_size=4), st.dictionaries(st.sampled_from(["ttl", "default", "key", "tags"]), ANYTHING))
def test_a_method_takes_or_refuses_anything(cache, method, arguments, words):
    try:
        result = getattr(cache, method)(*arguments, **words)
        if hasattr(result, "__next__"):
            list(result)
    except EXPECTED:
        pass
    cache.validate()


@given(
    st.dictionaries(
        st.sampled_from(["memory", "disk_bytes", "ttl", "time_to_idle", "refresh_ahead", "stale_while_revalidate", "stale_if_error", "ttl_jitter", "codec", "share", "miss_cost", "serializer", "encoding", "name", "on_removal", "advice"]),
        ANYTHING.filter(lambda value: not isinstance(value, int) or value < 2**40),
    )
)
def test_a_constructor_takes_or_refuses_anything(options):
    try:
        Cache(**options).close()
    except EXPECTED:
        pass


KEYS = st.recursive(
    st.one_of(st.none(), st.integers(-(2**100), 2**100), st.floats(allow_nan=False), st.text(), st.binary(), st.booleans()),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


@given(st.dictionaries(KEYS, st.integers()))
def test_distinguishes_keys_as_dict_does(records):
    with Cache("4MiB", serializer="json") as cache:
        cache.set_many(records)
        assert dict(cache.items()) == records
        assert cache.get_many(records) == list(records.values())
        for key in records:
            if isinstance(key, tuple):
                assert set(cache.prefix(key)) == {other for other in records if isinstance(other, tuple) and other[: len(key)] == key}
            if isinstance(key, str):
                assert list(cache.prefix(key)) == sorted(other for other in records if isinstance(other, str) and other.startswith(key))


class Model(RuleBasedStateMachine):
    """A cache that has room for all is a dict."""

    def __init__(self):
        super().__init__()
        self.cache = Cache("8MiB", encoding="utf-8")
        self.model = {}

    keys = st.text("abc", max_size=3)
    values = st.text("xyz0", max_size=5)

    @rule(key=keys, value=values)
    def put(self, key, value):
        self.cache[key] = value
        self.model[key] = value

    @rule(key=keys, value=values)
    def add(self, key, value):
        assert self.cache.add(key, value) == (key not in self.model)
        self.model.setdefault(key, value)

    @rule(key=keys)
    def pop(self, key):
        assert self.cache.pop(key, None) == self.model.pop(key, None)

    @rule(key=keys)
    def delete(self, key):
        assert self.cache.delete(key) == (self.model.pop(key, None) is not None)

    @rule(key=keys, value=values)
    def update_with(self, key, value):
        new = self.model.get(key, "") + value
        assert self.cache.update_with(key, lambda old: old + value, "", datetime.timedelta(hours=1)) == new
        self.model[key] = new

    @rule(key=keys, value=values)
    def get_or_set(self, key, value):
        assert self.cache.get_or_set(key, lambda: value) == self.model.setdefault(key, value)

    @rule(low=st.none() | keys, high=st.none() | keys, inclusive=st.tuples(st.booleans(), st.booleans()), reverse=st.booleans())
    def irange(self, low, high, inclusive, reverse):
        def is_in(key):
            above = low is None or key > low or inclusive[0] and key == low
            return above and (high is None or key < high or inclusive[1] and key == high)

        assert list(self.cache.irange(low, high, inclusive, reverse)) == sorted(filter(is_in, self.model), reverse=reverse)

    @rule(key=keys)
    def touch(self, key):
        assert self.cache.touch(key, 1000) == (key in self.model)

    @invariant()
    def has_what_the_model_has(self):
        assert dict(self.cache.items()) == self.model and len(self.cache) == len(self.model)

    def teardown(self):
        self.cache.close()


Model.TestCase.settings = settings(stateful_step_count=30)
TestModel = Model.TestCase
