"""Many records at once."""

import pytest
from leafpress import Tree

RECORDS = {b"%06d" % n: b"value of %d" % n for n in range(10_000)}


@pytest.mark.parametrize("shuffled", [False, True])
def test_put_many_counts_new_keys(shuffled):
    items = sorted(RECORDS.items(), key=(lambda item: hash(item)) if shuffled else None)
    tree = Tree()
    assert tree.put_many(items) == len(RECORDS)
    assert tree.put_many(dict(items[:100]) | {b"new": b""}) == 1
    assert tree.put_many(iter([])) == 0
    tree.validate()
    del tree[b"new"]
    assert tree == RECORDS


def test_get_many_keeps_the_order_of_the_keys():
    tree = Tree(RECORDS)
    keys = [b"%06d" % (n * 7919 % 12_000) for n in range(5000)]
    assert tree.get_many(keys) == [RECORDS.get(key) for key in keys]
    assert tree.get_many(iter(keys), default=b"none")[:50] == [RECORDS.get(key, b"none") for key in keys[:50]]
    assert tree.get_many(dict.fromkeys(keys)) == tree.get_many(tuple(dict.fromkeys(keys)))
    assert tree.get_many([]) == []
    assert tree.get_many([bytearray(b"000001"), memoryview(b"000002")]) == [b"value of 1", b"value of 2"]
    for wrong in [5, None, ["a"], [b"a", 5], b"abc"]:
        with pytest.raises(TypeError):
            tree.get_many(wrong)


def test_remove_many():
    tree = Tree(RECORDS)
    assert tree.remove_many([b"000001", b"x", b"000001", b"000002"]) == 2
    assert len(tree) == len(RECORDS) - 2
    assert tree.remove_many(tree) == len(RECORDS) - 2
    with pytest.raises(TypeError):
        tree.remove_many([1])


def test_it_is_smaller_than_what_it_holds():
    text = b"the same words come again and again in a record of this kind, number %d"
    tree = Tree((b"%08d" % n, text % n) for n in range(50_000))
    tree.settle()
    stats = tree.stats()
    assert stats.records == len(tree) == 50_000
    assert stats.user_bytes == sum(8 + len(text % n) for n in range(50_000))
    assert stats.bytes_held < stats.user_bytes / 2
    assert stats.held_per_user_byte == stats.bytes_held / stats.user_bytes
    parts = [name for name in stats._fields[3:14] if name.endswith("_bytes")]
    assert len(parts) == 11
    assert sum(getattr(stats, name) for name in parts) == stats.bytes_held
    assert tree.train() in (True, False)
    tree.compact()
    assert tree.dictionary is None or len(tree.dictionary) > 100
    tree.validate()
