"""What users write, for mypy --strict; the tests run it too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, MutableMapping

import leafpress
from leafpress import Tree, codec


def count_words(counts: MutableMapping[str, str], text: str) -> None:
    for word in text.split():
        counts[word] = str(int(counts.get(word, "0")) + 1)


def first_bytes(records: Mapping[bytes, bytes]) -> Iterator[int]:
    return (value[0] for value in records.values())


def cache_aside(cache: leafpress.Cache) -> str:
    cache.set("user:1", "Ada", ttl=60)
    loaded: str = cache.get_or_set("user:2", lambda: "Grace")
    stats: leafpress.CacheStats = cache.stats()
    block: bytes = codec.compress(loaded.encode(), "zstd:3")
    assert stats.disk is None and codec.decompress(block, max_bytes="1MiB") == b"Grace"
    return loaded


def memoized(cache: leafpress.Cache) -> None:
    @cache.memoize(ttl=60, name="length")
    def length(text: str, factor: int = 1) -> int:
        return len(text) * factor

    @cache.memoize(name="later")
    async def later(text: str) -> str:
        return text * 2

    class Words:
        @cache.memoize(key=lambda self, word: f"word:{word}")
        def first(self, word: str) -> str:
            return word[:1]

    number: int = length("abc", factor=2)
    letter: str = Words().first("abc")
    text: str = asyncio.run(later("ab"))
    assert (number, letter, text, length.cache_delete("abc", 2), length.cache_info().misses) == (6, "a", "abab", True, 1)
    # What is called wrongly is an error, which an unused "ignore" would be too.
    with contextlib.suppress(TypeError):
        length(5)  # type: ignore[arg-type]
    with contextlib.suppress(TypeError):
        Words().first()  # type: ignore[call-arg]


def main() -> None:
    with leafpress.Cache("16MiB", encoding="utf-8") as cache:
        assert cache_aside(cache) == "Grace"
    with leafpress.Cache("16MiB", serializer="json", encoding="utf-8") as cache:
        memoized(cache)
    raw = Tree({b"a": b"1", b"b": b"2"}, codec="zstd:3")
    value: bytes = raw[b"a"]
    some: Mapping[bytes, bytes] = raw[b"a":b"b"]
    maybe: bytes | None = raw.get(b"x")
    either: bytes | int = raw.get(b"x", 5)
    many: list[bytes | None] = raw.get_many([b"a", b"x"])
    all_there: list[bytes] = raw.get_many([b"a", b"x"], b"")
    assert (value, dict(some), maybe, either, many, all_there) == (b"1", {b"a": b"1"}, None, 5, [b"1", None], [b"1", b""])
    assert list(first_bytes(raw.prefix(b"b"))) == [50]

    words = Tree(encoding="utf-8")
    count_words(words, "to be or not to be")
    key: str
    for key, text in words.items():
        assert key in words and text.isdigit()
    pairs: Tree[str, bytes] = Tree({"a": b"1"}, encoding=("utf-8", None))
    pairs.update_with("a", lambda old: (old or b"") + b"!")
    pairs |= {"b": b"2"}
    last: tuple[str, bytes] = pairs.popitem()
    assert last == ("b", b"2")

    stats: leafpress.TreeStats = raw.stats()
    held: int = stats.bytes_held
    assert held > 0
    try:
        Tree(codec="unknown")
    except leafpress.InvalidOption as error:
        assert isinstance(error, ValueError)


main()
