"""Any sequence of operations gives what dict and SortedDict give."""

import copy
import pickle

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from leafpress import Tree
from sortedcontainers import SortedDict

KEYS = st.binary(max_size=3) | st.sampled_from([b"user:%d" % n for n in range(40)]) | st.binary(min_size=1020, max_size=1024)
VALUES = st.binary(max_size=20) | st.integers(0, 70_000).map(lambda n: b"value" * (n // 5))
ENDS = st.none() | KEYS
CODECS = st.sampled_from(["lz4", "zstd:1", "none", "deflate:1", "onpair", "trial", "auto"])


class Mapping(RuleBasedStateMachine):
    keys = Bundle("keys")

    @initialize(codec=CODECS, shards=st.sampled_from([1, 2]), records=st.dictionaries(KEYS, VALUES))
    def begin(self, codec, shards, records):
        self.tree, self.model = Tree(records, codec=codec, shards=shards), SortedDict(records)

    @rule(target=keys, key=KEYS)
    def a_key(self, key):
        return key

    @rule(key=keys, value=VALUES)
    def put(self, key, value):
        self.tree[key] = self.model[key] = value

    @rule(key=keys)
    def delete(self, key):
        if key in self.model:
            del self.tree[key]
            del self.model[key]
        else:
            with pytest.raises(KeyError):
                del self.tree[key]

    @rule(key=keys, value=VALUES)
    def read(self, key, value):
        assert (key in self.tree) == (key in self.model)
        assert self.tree.get(key, value) == self.model.get(key, value)
        assert self.tree.get_many([key, key], value) == [self.model.get(key, value)] * 2

    @rule(key=keys, value=VALUES)
    def set_default(self, key, value):
        assert self.tree.setdefault(key, value) == self.model.setdefault(key, value)

    @rule(key=keys, value=VALUES)
    def pop(self, key, value):
        assert self.tree.pop(key, value) == self.model.pop(key, value)

    @rule(index=st.integers(-3, 3))
    def pop_item(self, index):
        if -len(self.model) <= index < len(self.model):
            assert self.tree.peekitem(index) == self.model.peekitem(index)
            assert self.tree.popitem(index) == self.model.popitem(index)
        else:
            with pytest.raises((KeyError, IndexError)):
                self.tree.popitem(index)

    @rule(key=keys, value=VALUES, expected=st.none() | VALUES, new=st.none() | VALUES)
    def swap(self, key, value, expected, new):
        assert self.tree.swap(key, value) == self.model.get(key)
        self.model[key] = value
        if self.tree.compare_and_swap(key, expected, new):
            assert expected == value
            self.model.pop(key) if new is None else self.model.__setitem__(key, new)
        else:
            assert expected != value

    @rule(records=st.dictionaries(KEYS, VALUES))
    def update(self, records):
        self.tree.update(records)
        self.model.update(records)

    @rule(first=st.integers(0, 2000), count=st.integers(0, 2000))
    def put_run(self, first, count):
        records = {b"run:%06d" % n: b"record %d of a run" % n for n in range(first, first + count)}
        assert self.tree.put_many(records) == len(records.keys() - self.model.keys())
        self.model.update(records)

    @rule(low=ENDS, high=ENDS)
    def delete_range(self, low, high):
        del self.tree[low:high]
        for key in list(self.model.irange(low, high, (True, False))) if low is None or high is None or low < high else []:
            del self.model[key]

    @rule(low=ENDS, high=ENDS, inclusive=st.tuples(st.booleans(), st.booleans()), reverse=st.booleans())
    def ranges(self, low, high, inclusive, reverse):
        assert list(self.tree.irange(low, high, inclusive, reverse)) == list(self.model.irange(low, high, inclusive, reverse))
        inside = {key: self.model[key] for key in self.model.irange(low, high, (True, False))}
        view = self.tree[low:high]
        assert view == inside
        assert len(view) == len(inside)
        assert bool(view) == bool(inside)
        if low is not None:
            assert self.tree.bisect_left(low) == self.model.bisect_left(low)
            assert self.tree.bisect_right(low) == self.model.bisect_right(low)

    @rule(how=st.sampled_from(["settle", "compact", "train", "clear"]))
    def upkeep(self, how):
        getattr(self.tree, how)()
        if how == "clear":
            self.model.clear()

    @rule(how=st.sampled_from([Tree.copy, copy.copy, copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))]))
    def exchange_for_a_copy(self, how):
        self.tree = how(self.tree)

    @invariant()
    def it_is_as_the_model(self):
        if hasattr(self, "tree"):
            assert len(self.tree) == len(self.model)
            assert list(self.tree.items()) == list(self.model.items())
            assert list(reversed(self.tree)) == list(reversed(self.model))

    def teardown(self):
        if hasattr(self, "tree"):
            self.tree.validate()
            assert self.tree == self.model


TestMapping = Mapping.TestCase
TestMapping.settings = settings(stateful_step_count=25)
TestMapping = pytest.mark.long(TestMapping)
