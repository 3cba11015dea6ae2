"""Reading and writing a record as one."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from leafpress import Tree


def test_swap_and_compare_and_swap():
    tree = Tree()
    assert tree.swap(b"a", b"1") is None
    assert tree.swap(b"a", b"2") == b"1"
    assert not tree.compare_and_swap(b"a", None, b"3")
    assert not tree.compare_and_swap(b"a", b"1", b"3")
    assert tree.compare_and_swap(b"a", b"2", b"3")
    assert tree[b"a"] == b"3"
    assert tree.compare_and_swap(b"x", None, None)
    assert tree.compare_and_swap(b"x", None, b"")
    assert not tree.compare_and_swap(b"x", None, b"")
    assert tree.compare_and_swap(b"x", b"", None)
    assert b"x" not in tree
    for wrong in [("a", b"", b""), (b"a", 5, b""), (b"a", b"", "x")]:
        with pytest.raises(TypeError):
            tree.compare_and_swap(*wrong)


def test_update_with():
    tree = Tree(encoding="utf-8")
    assert tree.update_with("a", lambda old: f"{old}!") == "None!"
    assert tree.update_with("a", lambda old: f"{old}!") == "None!!"
    assert tree.update_with("a", lambda _: None) is None
    assert "a" not in tree
    assert tree.update_with("b", lambda _: tree.setdefault("b", "other")) == "other"
    with pytest.raises(ZeroDivisionError):
        tree.update_with("a", lambda _: 1 / 0)
    with pytest.raises(TypeError):
        tree.update_with("a", lambda _: 5)
    with pytest.raises(TypeError):
        tree.update_with("a", 5)
    assert dict(tree) == {"b": "other"}


def test_threads_that_count_lose_nothing():
    tree = Tree()

    def count(_):
        for n in range(500):
            tree.update_with(b"n%d" % (n % 3), lambda old: b"%d" % (int(old or 0) + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert sum(map(int, tree.values())) == 2000


def test_threads_agree_on_the_first_value():
    tree = Tree()
    with ThreadPoolExecutor(4) as pool:
        for n in range(200):
            got = set(pool.map(lambda me, key=b"%d" % n: tree.setdefault(key, b"%d" % me), range(4)))
            assert got == {tree[b"%d" % n]}
            popped = list(pool.map(lambda _, key=b"%d" % n: tree.pop(key, None), range(4)))
            assert sorted(popped, key=str) == sorted([got.pop(), None, None, None], key=str)
