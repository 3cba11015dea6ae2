"""A tree is sorted: what SortedDict does with order, it does."""

import pytest
from leafpress import Tree
from sortedcontainers import SortedDict

RECORDS = {b"%05d" % n: b"value of %d" % n for n in range(0, 20_000, 2)}


@pytest.fixture(scope="module", params=[1, 3], ids=["one shard", "three shards"])
def both(request):
    return Tree(RECORDS, shards=request.param), SortedDict(RECORDS)


@pytest.mark.parametrize("ends", [(None, None), (b"00010", b"00020"), (b"00011", None), (None, b"00009"), (b"5", b"4"), (b"", b""), (b"04000", b"16001")])
@pytest.mark.parametrize("inclusive", [(True, True), (False, False), (True, False), (False, True)])
@pytest.mark.parametrize("reverse", [False, True])
def test_irange(both, ends, inclusive, reverse):
    tree, sorted_dict = both
    assert list(tree.irange(*ends, inclusive, reverse)) == list(sorted_dict.irange(*ends, inclusive, reverse))


def test_bisect_counts_keys(both):
    tree, sorted_dict = both
    for key in [b"", b"00000", b"00001", b"09998", b"1", b"19998", b"2", *list(RECORDS)[::997]]:
        assert tree.bisect_left(key) == sorted_dict.bisect_left(key)
        assert tree.bisect_right(key) == sorted_dict.bisect_right(key)
        assert tree.bisect(key) == sorted_dict.bisect(key)


def test_peekitem(both):
    tree, sorted_dict = both
    for index in [0, -1, 1, -2, 4999, 5000, 5001, 9999, -10_000, -7000]:
        assert tree.peekitem(index) == sorted_dict.peekitem(index)
    assert tree.peekitem() == sorted_dict.peekitem()
    for index in [10_000, -10_001, 10**30, -(10**30)]:
        with pytest.raises(IndexError):
            tree.peekitem(index)
    with pytest.raises(TypeError):
        tree.peekitem(1.5)
    with pytest.raises(IndexError):
        Tree().peekitem()


def test_popitem_by_index():
    tree, sorted_dict = Tree(list(RECORDS.items())[:100]), SortedDict(list(RECORDS.items())[:100])
    for index in [3, -3, 50, 0, -1]:
        assert tree.popitem(index) == sorted_dict.popitem(index)
    assert tree == sorted_dict
    with pytest.raises(IndexError):
        tree.popitem(1000)


def test_slices_are_live_views(both):
    tree, _ = both
    inside = {key: value for key, value in RECORDS.items() if b"00100" <= key < b"01000"}
    view = tree[b"00100":b"01000"]
    assert dict(view) == inside
    assert len(view) == len(inside)
    assert list(reversed(view)) == sorted(inside, reverse=True)
    assert list(view.values()) == [inside[key] for key in sorted(inside)]
    assert b"00100" in view
    assert b"01000" not in view
    assert view[b"00998"] == b"value of 998"
    with pytest.raises(KeyError):
        view[b"01000"]
    assert view.get(b"01000") is None
    assert view == inside
    narrower = view[b"00050":b"00104"]
    assert list(narrower) == [b"00100", b"00102"]
    assert len(view[b"00104":b"00100"]) == 0
    assert not view[b"2":]
    assert view[:]
    assert len(tree[:]) == len(RECORDS)


def test_a_view_changes_with_the_tree():
    tree = Tree(RECORDS)
    view = tree.prefix(b"0000")
    assert len(view) == 5
    tree[b"00001"] = b"new"
    assert len(view) == 6
    assert list(view)[1] == b"00001"
    del tree[b"00001":b"00005"]
    assert list(view) == [b"00000", b"00006", b"00008"]
    del tree[:]
    assert len(tree) == 0
    assert not view


def test_prefixes():
    tree = Tree.fromkeys([b"a", b"ab", b"ab\xff", b"ab\xff\xff", b"ac", b"\xff", b"\xff\xff"], b"")
    assert list(tree.prefix(b"ab")) == [b"ab", b"ab\xff", b"ab\xff\xff"]
    assert list(tree.prefix(b"ab\xff")) == [b"ab\xff", b"ab\xff\xff"]
    assert list(tree.prefix(b"\xff")) == [b"\xff", b"\xff\xff"]
    assert len(tree.prefix(b"")) == 7


def test_slices_that_are_none():
    tree = Tree(RECORDS)
    for wrong in [slice(None, None, 1), slice(1, 2), slice("a", "b")]:
        with pytest.raises(TypeError):
            tree[wrong]
        with pytest.raises(TypeError):
            del tree[wrong]
    with pytest.raises(TypeError):
        tree[b"a":b"b"] = b""
    assert len(tree) == len(RECORDS)


def test_iteration_survives_changes():
    tree = Tree(RECORDS)
    seen = []
    for key in tree:
        seen.append(key)
        del tree[key]
    assert seen == sorted(RECORDS)
    assert len(tree) == 0

    tree = Tree(RECORDS)
    stays = [key for key in sorted(RECORDS) if key[-1:] in b"02"]
    seen = []
    for n, key in enumerate(tree):
        seen.append(key)
        tree[key + b"x"] = b"new"
        tree.pop(b"%05d" % (4 + 10 * n), None)
        if n == 5000:
            tree.compact()
    assert [key for key in seen if key in set(stays)] == stays
    assert seen == sorted(set(seen))


def test_an_iterator_that_is_taken_from_by_several():
    from concurrent.futures import ThreadPoolExecutor

    tree = Tree(RECORDS)
    items = iter(tree.items())
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda _: list(items), range(4)))
    assert sorted(item for part in parts for item in part) == sorted(RECORDS.items())


def test_long_values_do_not_pile_up_in_an_iterator():
    tree = Tree({b"%03d" % n: bytes([n]) * 300_000 for n in range(100)})
    assert [value[0] for value in tree.values()] == list(range(100))
    assert [value[0] for value in reversed(tree.values())] == list(range(99, -1, -1))
    assert tree[b"007"] == b"\x07" * 300_000
    assert tree.get_many([b"007", b"008"])[1] == b"\x08" * 300_000
