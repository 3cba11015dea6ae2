"""Trees of str."""

import pytest
from leafpress import Tree

TEXTS = {"": "empty", "apple": "Äpfel", "zwölf": "12", "日本": "語", "🦀": "crab", "\x00": "\x00"}


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-16-le", "utf-32"])
def test_str_in_and_out(encoding):
    tree = Tree(TEXTS, encoding=encoding)
    assert dict(tree) == TEXTS
    assert tree == TEXTS
    assert tree["日本"] == "語"
    assert tree.get_many(["apple", "no"]) == ["Äpfel", None]
    assert sorted(reversed(tree.items())) == sorted(TEXTS.items())
    assert tree.popitem() in TEXTS.items()
    assert tree.copy() == tree
    assert tree.setdefault("new", "ö") == "ö"
    assert tree.pop("new") == "ö"


def test_utf_8_keeps_the_order_of_str():
    assert list(Tree(TEXTS, encoding="utf-8")) == sorted(TEXTS)


def test_keys_and_values_apart():
    tree = Tree({"a": b"\xff"}, encoding=("utf-8", None))
    assert list(tree.items()) == [("a", b"\xff")]
    assert tree.encoding == ("utf-8", None)
    assert list(tree.prefix("a")) == ["a"]
    assert list(tree["a":"b"]) == ["a"]
    tree = Tree({b"a": "ä"}, encoding=(None, "latin-1"))
    assert list(tree.items()) == [(b"a", "ä")]
    assert tree.stats().user_bytes == 2


def test_kinds_do_not_mix():
    text, raw = Tree(encoding="utf-8"), Tree()
    for tree, wrong in [(text, b"a"), (raw, "a"), (text, 5), (raw, 5), (raw, None), (raw, [1]), (text, bytearray())]:
        with pytest.raises(TypeError, match="a key must be"):
            tree[wrong]
        with pytest.raises(TypeError):
            tree.get(wrong)
        with pytest.raises(TypeError):
            wrong in tree
        with pytest.raises(TypeError):
            tree[wrong] = b""
        with pytest.raises(TypeError):
            tree.pop(wrong, None)
        assert wrong not in tree.keys()
        assert (wrong, wrong) not in tree.items()


def test_rejects_text_that_an_encoding_cannot_represent():
    with pytest.raises(UnicodeEncodeError):
        Tree(encoding="utf-8")["\ud800"]
    with pytest.raises(UnicodeEncodeError):
        Tree(encoding="ascii")["a"] = "ö"
    assert "\ud800" not in Tree(encoding="utf-8").keys()
