"""A tree is a mapping: what dict does, it does."""

import collections.abc
import sys

import pytest
from leafpress import InvalidOption, KeyTooLong, MAX_KEY_BYTES, Tree, ValueTooLong


@pytest.fixture
def tree():
    return Tree({b"a": b"1", b"b": b"2", b"c": b"3"})


def test_it_is_a_mutable_mapping(tree):
    assert isinstance(tree, collections.abc.MutableMapping)
    assert isinstance(tree[b"a":], collections.abc.Mapping)
    assert not isinstance(tree, collections.abc.Sequence)
    assert isinstance(tree.keys(), collections.abc.KeysView)
    assert isinstance(tree.items(), collections.abc.Set)
    match tree:
        case {b"a": value}:
            assert value == b"1"
        case _:
            pytest.fail("a tree does not match a pattern of mappings")


@pytest.mark.parametrize(
    "records",
    [
        {b"b": b"2", b"a": b"1"},
        [(b"a", b"0"), (b"b", b"2"), (b"a", b"1")],
        ([key, value] for key, value in [(b"a", b"1"), (b"b", b"2")]),
        Tree({b"a": b"1", b"b": b"2"}),
        Tree({b"a": b"1", b"b": b"2", b"c": b"3"})[:b"c"],
        collections.UserDict({b"a": b"1", b"b": b"2"}),
        [(bytearray(b"a"), memoryview(b"1")), (memoryview(b"xb")[1:], b"2")],
    ],
)
def test_it_is_made_of_what_dict_is_made_of(records):
    assert dict(Tree(records)) == {b"a": b"1", b"b": b"2"}


def test_what_has_keys_is_a_mapping():
    class Keyed:
        def keys(self):
            return iter([b"a", b"b"])

        def __getitem__(self, key):
            return key * 2

    assert dict(Tree(Keyed())) == {b"a": b"aa", b"b": b"bb"}


@pytest.mark.parametrize(
    ("records", "error"),
    [(5, TypeError), ([5], TypeError), ([(b"a",)], ValueError), ([(b"a", b"b", b"c")], ValueError), ([("a", b"b")], TypeError),
     ({b"a": 1}, TypeError), ({b"a": None}, TypeError), ([b"a"], ValueError), ({b"a": [1, 2]}, TypeError)],
)
def test_rejects_invalid_records(records, error):
    with pytest.raises(error):
        Tree(records)


def test_one_record(tree):
    assert tree[b"a"] == b"1"
    tree[b"a"] = b"9"
    assert tree[b"a"] == b"9"
    del tree[b"a"]
    with pytest.raises(KeyError) as raised:
        tree[b"a"]
    assert raised.value.args == (b"a",)
    with pytest.raises(KeyError) as raised:
        del tree[b"a"]
    assert raised.value.args == (b"a",)
    assert b"a" not in tree
    assert b"b" in tree
    assert len(tree) == 2
    assert tree
    assert not Tree()


def test_get_setdefault_and_pop(tree):
    marker = object()
    assert tree.get(b"x") is None
    assert tree.get(b"x", marker) is marker
    assert tree.get(b"a", marker) == b"1"
    assert tree.setdefault(b"x", b"7") == b"7"
    assert tree.setdefault(b"x", b"8") == b"7"
    assert tree.pop(b"x") == b"7"
    assert tree.pop(b"x", marker) is marker
    assert tree.pop(b"x", None) is None
    with pytest.raises(KeyError) as raised:
        tree.pop(b"x")
    assert raised.value.args == (b"x",)
    with pytest.raises(TypeError):
        tree.pop()
    with pytest.raises(TypeError):
        tree.pop(b"x", 1, 2)


def test_popitem_takes_from_either_end(tree):
    assert tree.popitem() == (b"c", b"3")
    assert tree.popitem(0) == (b"a", b"1")
    assert tree.popitem(index=-1) == (b"b", b"2")
    with pytest.raises(KeyError):
        tree.popitem()
    with pytest.raises(KeyError):
        tree.popitem(0)


def test_update_takes_mappings_pairs_and_keywords(tree):
    tree.update([(b"d", b"4")])
    tree.update({b"a": b"0"})
    tree.update()
    tree.update(tree)
    assert dict(tree) == {b"a": b"0", b"b": b"2", b"c": b"3", b"d": b"4"}
    text = Tree(encoding="utf-8")
    text.update({"a": "1"}, b="2", records="3")
    assert dict(text) == {"a": "1", "b": "2", "records": "3"}


def test_an_update_that_raises_keeps_what_came_before(tree):
    def records():
        yield b"x", b"1"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tree.update(records())
    assert tree[b"x"] == b"1"


def test_an_update_whose_iterator_changes_the_tree(tree):
    def records():
        for n in range(3000):
            tree.clear() if n == 1500 else None
            yield b"%05d" % n, b"value"

    tree.update(records())
    tree.validate()
    assert tree[b"02999"] == b"value"


def test_unions(tree):
    assert tree | {b"c": b"9", b"d": b"4"} == {b"a": b"1", b"b": b"2", b"c": b"9", b"d": b"4"}
    assert {b"c": b"9", b"d": b"4"} | tree == {b"a": b"1", b"b": b"2", b"c": b"3", b"d": b"4"}
    assert isinstance({} | tree, Tree)
    before = tree
    tree |= [(b"d", b"4")]
    assert tree is before
    assert tree[b"d"] == b"4"
    with pytest.raises(TypeError):
        tree | [(b"d", b"4")]
    with pytest.raises(TypeError):
        tree | 5


def test_equality_is_of_items(tree):
    records = {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert tree == records
    assert records == tree
    assert tree == Tree(records, codec="zstd:1")
    assert tree != Tree(records | {b"c": b"4"})
    assert tree != Tree(records | {b"d": b"4"})
    assert tree != Tree({"a": "1", "b": "2", "c": "3"}, encoding="utf-8")
    assert tree != {}
    assert tree != 5
    assert tree != list(records.items())
    assert tree[b"b":] == {b"b": b"2", b"c": b"3"}
    assert tree[b"b":] != tree
    with pytest.raises(TypeError):
        hash(tree)


def test_views_are_sets_that_change_with_the_tree(tree):
    keys, values, items = tree.keys(), tree.values(), tree.items()
    assert list(keys) == [b"a", b"b", b"c"]
    assert list(reversed(keys)) == [b"c", b"b", b"a"]
    assert list(values) == [b"1", b"2", b"3"]
    assert list(reversed(values)) == [b"3", b"2", b"1"]
    assert list(items) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    assert list(reversed(items)) == [(b"c", b"3"), (b"b", b"2"), (b"a", b"1")]
    assert keys & {b"a", b"x", 5, "a"} == {b"a"}
    assert keys | {5} == {b"a", b"b", b"c", 5}
    assert keys - {b"a"} == {b"b", b"c"}
    assert keys ^ {b"a"} == {b"b", b"c"}
    assert keys == {b"a", b"b", b"c"}
    assert keys < {b"a", b"b", b"c", b"d"}
    assert not keys.isdisjoint([b"a"])
    assert (b"a", b"1") in items
    assert (b"a", b"2") not in items
    assert b"a" not in items
    assert 5 not in keys
    assert items & {(b"a", b"1"), (b"b", b"1"), (1, 2)} == {(b"a", b"1")}
    assert b"1" in values
    assert b"9" not in values
    tree[b"d"] = b"4"
    assert len(keys) == len(values) == len(items) == 4
    assert b"d" in keys
    assert repr(tree[b"d":].keys()) == "TreeKeysView(TreeRange({b'd': b'4'}))"


def test_repr_shows_the_first_records():
    assert repr(Tree({b"a": b"1"})) == "Tree({b'a': b'1'})"
    assert repr(Tree({"a": "1"}, encoding="utf-8")) == "Tree({'a': '1'}, encoding='utf-8')"
    large = repr(Tree((b"%06d" % n, b"v" * 10_000) for n in range(100)))
    assert len(large) < 1000
    assert "..." in large


def test_fromkeys_and_copies(tree):
    assert dict(Tree.fromkeys([b"b", b"a"], b"1")) == {b"a": b"1", b"b": b"1"}
    assert dict(Tree.fromkeys("ba", encoding="utf-8")) == {"a": "", "b": ""}
    other = tree.copy()
    other[b"a"] = b"9"
    assert tree[b"a"] == b"1"
    assert type(other) is Tree
    tree.clear()
    assert len(tree) == 0
    assert len(other) == 3


def test_subclasses_and_types():
    class Named(Tree):
        pass

    named = Named({b"a": b"1"})
    named.name = "x"
    assert type(named.copy()) is Named
    assert type(named | {}) is Named
    assert type(Named.fromkeys([b"a"])) is Named
    assert Tree[bytes, bytes]
    assert sys.getsizeof(named) > 1000


def test_limits_are_errors_of_their_own(tree):
    with pytest.raises(KeyTooLong, match="limit of 1024"):
        tree[b"k" * (MAX_KEY_BYTES + 1)] = b""
    with pytest.raises(ValueTooLong):
        tree[b"k"] = bytes((64 << 20) + 1)
    assert issubclass(KeyTooLong, ValueError)
    assert tree.get(b"k" * 5000) is None
    tree[b""] = b""
    assert tree[b""] == b""


@pytest.mark.parametrize(
    ("options", "error"),
    [({"codec": "lz5"}, InvalidOption), ({"codec": 5}, TypeError), ({"codec": None}, TypeError), ({"shards": 0}, InvalidOption),
     ({"shards": -1}, InvalidOption), ({"shards": 10**30}, InvalidOption), ({"shards": 1.5}, TypeError), ({"frame_bytes": 10**9}, InvalidOption),
     ({"dictionary": "none"}, InvalidOption), ({"dictionary": 5}, TypeError), ({"encoding": "latin-7000"}, InvalidOption),
     ({"encoding": 5}, TypeError), ({"encoding": ("utf-8",)}, InvalidOption), ({"encodings": None}, TypeError),
     ({"dictionary_bytes": 1}, InvalidOption), ({"background_threads": 1000}, InvalidOption)],
)
def test_option_errors_have_a_message(options, error):
    with pytest.raises(error) as raised:
        Tree(**options)
    assert str(raised.value)


def test_options_that_are_allowed():
    records = {b"%04d" % n: b"value %d" % n for n in range(2000)}
    for options in [{"codec": "zstd:3"}, {"codec": "none"}, {"codec": "auto"}, {"shards": 4, "background_threads": 1}, {"dictionary": None},
                    {"dictionary": b"value 1" * 100}, {"frame_bytes": 1, "leaf_bytes": 2048, "landing_bytes": 0, "shards": None},
                    {"load_threads": 2, "dictionary_bytes": 4096}]:
        tree = Tree(records, **options)
        tree.settle()
        tree.validate()
        assert tree == records
        assert list(tree) == sorted(records)


def test_an_update_from_the_tree_itself(tree):
    tree.update(tree.items())
    tree.update(tree[b"b":])
    tree.update((key + b"x", value) for key, value in tree.items() if len(key) == 1)
    assert sorted(tree) == [b"a", b"ax", b"b", b"bx", b"c", b"cx"]
