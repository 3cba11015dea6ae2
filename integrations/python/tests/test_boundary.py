"""No argument of any kind crashes: it is taken, or an exception says why not."""

import gc
import operator
import random

import leafpress
import pytest
from hypothesis import given
from hypothesis import strategies as st
from leafpress import Tree


class Liar:
    """Answers to everything, wrongly."""

    def __init__(self, tree):
        self.tree = tree

    def __len__(self):
        return -1

    def __hash__(self):
        self.tree.clear()
        return 5

    def __eq__(self, other):
        raise ZeroDivisionError

    def __index__(self):
        self.tree[b"index"] = b"1"
        return 10**100

    def __iter__(self):
        self.tree.popitem() if self.tree else None
        yield b"a", b"b"
        yield self

    def keys(self):
        return self

    def items(self):
        return self

    def __getitem__(self, key):
        return key

    def to_bytes(self):
        return self


class Number(int):
    pass


class Key(bytes):
    def __eq__(self, other):
        raise ZeroDivisionError

    __hash__ = bytes.__hash__


SIMPLE = (
    st.none() | st.booleans() | st.integers() | st.integers(-3, 3) | st.floats() | st.binary(max_size=2000) | st.text(max_size=5)
    | st.sampled_from([b"a", b"b", "a", 2**63, -(2**63), 2**64, 10**40, Number(5), Key(b"a"), object, bytearray(b"ab"), range(3), ..., NotImplemented, "\ud800", Tree, len])
    | st.integers(0, 2).map(lambda n: [memoryview(b"abc")[::2], memoryview(b"abcdefgh").cast("H"), memoryview(bytearray(b"xy"))][n])
)
ANY = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.builds(slice, inner, inner, inner)
    | st.dictionaries(st.text(max_size=2) | st.binary(max_size=2), inner, max_size=3) | inner.map(lambda value: iter([value, (value, value)])),
    max_leaves=6,
)
# What takes a slice of `None`s, or an empty iterable of pairs, for what it is.
METHODS = [name for name in dir(Tree) if not name.startswith("__")] + [
    "__getitem__", "__setitem__", "__delitem__", "__contains__", "__eq__", "__ne__", "__lt__", "__or__", "__ror__", "__ior__", "__init__", "__reduce_ex__",
    "__deepcopy__", "__class_getitem__", "__iter__", "__reversed__", "__sizeof__", "__len__", "__repr__", "__hash__", "__format__",
]
OPTIONS = ["codec", "encoding", "dictionary", "dictionary_bytes", "frame_bytes", "leaf_bytes", "landing_bytes", "shards", "background_threads",
           "load_threads", "other"]
# All that may be raised. SystemError and the panics of the extension are none of them.
EXPECTED = (TypeError, ValueError, KeyError, IndexError, OverflowError, AttributeError, BufferError, ZeroDivisionError, UnicodeError, MemoryError,
            NotImplementedError, leafpress.Error)


def consume(value):
    """Looks at what came of it."""
    if isinstance(value, (leafpress.TreeRange, leafpress.TreeIterator)):
        list(value)
    repr(value)


def attempt(call, *arguments, **keywords):
    try:
        consume(call(*arguments, **keywords))
    except EXPECTED:
        pass


@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-16", (None, "utf-8")])
@given(data=st.data())
def test_methods_take_anything(encoding, data):
    tree = Tree(encoding=encoding)
    attempt(tree.update, [(b"a", b"1"), (b"b", b"2")] if encoding is None else {"a": "1"})
    for _ in range(data.draw(st.integers(1, 6))):
        name = data.draw(st.sampled_from(METHODS))
        found = getattr(tree, name)
        arguments = [Liar(tree) if data.draw(st.integers(0, 9)) == 0 else data.draw(ANY) for _ in range(data.draw(st.integers(0, 4)))]
        keywords = data.draw(st.dictionaries(st.sampled_from(["index", "default", "reverse", "inclusive", "maximum", "x"]), ANY, max_size=1))
        attempt(found if callable(found) else operator.truth, *arguments, **keywords)
    tree.validate()


@given(records=ANY, options=st.dictionaries(st.sampled_from(OPTIONS), ANY | st.sampled_from(["lz4", "zstd:1", "utf-8", "auto", 1, 4096]), max_size=3))
def test_options_take_anything(records, options):
    # More of these would be allowed, and are slow.
    for name in ("background_threads", "load_threads", "shards"):
        if isinstance(options.get(name), int):
            options[name] %= 4
    attempt(Tree, records, **options)


@given(data=st.data())
def test_views_take_anything(data):
    tree = Tree({b"a": b"1", b"b": b"2"})
    view = data.draw(st.sampled_from([tree.keys(), tree.values(), tree.items(), tree[b"a":], tree[b"a":].items()]))
    for operation in [operator.contains, operator.eq, operator.and_, operator.or_, operator.sub, operator.xor, operator.le, operator.getitem]:
        attempt(operation, view, data.draw(ANY))


@given(options=ANY, blocks=ANY, cls=ANY | st.just(Tree) | st.just(dict))
def test_pickles_take_anything(options, blocks, cls):
    attempt(leafpress._leafpress._restore_tree, cls, options, blocks)
    attempt(leafpress._leafpress._restore_tree, Tree, {}, blocks)


def test_a_pickle_that_is_damaged():
    tree = Tree({b"%04d" % n: random.Random(n).randbytes(20) for n in range(3000)})
    _, (cls, options, blocks) = tree.__reduce__()[:2]
    random_bits = random.Random(5)
    for _ in range(200):
        damaged = bytearray(blocks[0])
        damaged[random_bits.randrange(len(damaged))] ^= 1 << random_bits.randrange(8)
        with pytest.raises(leafpress.CorruptBlock):
            leafpress._leafpress._restore_tree(cls, options, [bytes(damaged)])
        with pytest.raises(leafpress.CorruptBlock):
            leafpress._leafpress._restore_tree(cls, options, [blocks[0][: random_bits.randrange(len(damaged))]])


def test_iterators_that_advance_each_other():
    """Collections of garbage in the middle of everything: finalizers that use the tree."""
    tree = Tree((b"%05d" % n, b"value") for n in range(3000))
    items = iter(tree.items())

    class Greedy:
        def __del__(self):
            next(items, None)
            tree.get(b"00001")
            tree[b"00001"] = b"other"

    before = gc.get_threshold()
    gc.set_threshold(5)
    try:
        kept = []
        for item in items:
            knot = Greedy()
            knot.self = knot
            kept.append([item])
    finally:
        gc.set_threshold(*before)
    assert len(tree) == 3000


def test_unclosed_cycles_are_collected():
    import weakref

    class Holder(Tree):
        pass

    tree = Holder({b"a": b"1"})
    tree.iterator, tree.view, tree.me = iter(tree), tree[b"a":], tree
    gone = weakref.ref(tree)
    del tree
    gc.collect()
    assert gone() is None
