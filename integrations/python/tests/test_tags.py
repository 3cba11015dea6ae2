"""Tags of records, values that stay usable when a loader fails, and the jitter of times to live."""

import asyncio
from datetime import timedelta

import leafpress
import pytest
from leafpress import Cache


@pytest.fixture(params=["memory", "disk"])
def cache(request, tmp_path):
    options = {"disk": tmp_path / "cache", "disk_bytes": "8MiB"} if request.param == "disk" else {}
    with Cache("8MiB", encoding="utf-8", **options) as cache:
        yield cache


def test_all_records_with_a_tag_are_removed_at_once(cache):
    cache.set("a", "1", tags="red")
    cache.set("b", "2", ttl=60, tags=["red", b"green"])
    cache.set("c", "3", tags={"green"})
    cache.set_many({"d": "4", "e": "5"}, tags=("blue",))
    assert cache.add("f", "6", tags=b"blue") and not cache.add("f", "7", tags="another")
    cache["plain"] = "0"
    cache.invalidate_tag("red")
    assert list(cache) == ["c", "d", "e", "f", "plain"]
    cache.invalidate_tag("blue")
    cache.invalidate_tag("nobody has it")
    assert cache.get_many("cdef") == ["3", None, None, None]
    # A str and its UTF-8 are one tag, and what is set afterwards is there.
    cache.set("a", "1", tags="green")
    cache.invalidate_tag(b"green")
    assert "a" not in cache and "c" not in cache
    cache.set("a", "1", tags="green")
    assert dict(cache.items()) == {"a": "1", "plain": "0"}
    cache.validate()


def test_a_new_value_or_ttl_keeps_the_tags(cache):
    cache.set("a", "1", tags="tag")
    cache.set("b", "1", tags="tag")
    cache.set("c", "1", tags="tag")
    assert cache.incr("a") == 2 and cache.touch("b", ttl=60) and cache.touch("b")
    cache.set("c", "2")
    cache.invalidate_tag("tag")
    assert list(cache) == ["c"]


def test_loaded_records_have_tags(cache):
    async def load():
        return "new"

    async def main():
        return await cache.aget_or_set("b", load, tags="tag"), await cache.aset("c", "1", tags="tag"), await cache.aset_many({"d": "1"}, tags="tag")

    assert cache.get_or_set("a", lambda: "old", tags=["tag"]) == "old"
    assert asyncio.run(main())[0] == "new"
    assert list(cache) == ["a", "b", "c", "d"]
    cache.invalidate_tag("tag")
    assert list(cache) == []

    def invalidates():
        cache.invalidate_tag("tag")
        return "outdated"

    assert cache.get_or_set("a", invalidates, tags="tag") == "outdated"
    assert "a" not in cache


def test_tags_that_cannot_be_are_refused(cache):
    cache.set("a", "1", tags=[f"tag {n % 8}" for n in range(16)])
    for tags in ([f"tag {n}" for n in range(9)],):
        with pytest.raises(leafpress.InvalidOption, match="8 tags"):
            cache.set("a", "2", tags=tags)
        with pytest.raises(leafpress.InvalidOption, match="8 tags"):
            cache.get_or_set("b", lambda: "2", tags=tags)
    for tags in (5, [5], ["a", None], [["a"]]):
        with pytest.raises(TypeError):
            cache.set("a", "2", tags=tags)
    for tag in (5, None, ["a"]):
        with pytest.raises(TypeError, match="str or bytes"):
            cache.invalidate_tag(tag)
    assert cache["a"] == "1"
    cache.close()
    with pytest.raises(leafpress.Closed):
        cache.invalidate_tag("tag")


def test_an_expired_value_serves_if_the_loader_fails():
    with Cache("8MiB", encoding="utf-8", ttl=0.001, stale_if_error=timedelta(hours=1)) as cache:
        cache["a"] = "old"
        while "a" in cache:
            pass
        assert cache.get_or_set("a", lambda: 1 / 0) == "old"
        assert cache.get("a") is None
        with pytest.raises(ZeroDivisionError):
            cache.get_or_set("b", lambda: 1 / 0)
        assert cache.stats().stale == 1


def test_jitter_is_a_percentage():
    with Cache("8MiB", ttl=1000, ttl_jitter=10) as cache:
        cache[b"a"] = b"1"
        assert cache[b"a"] == b"1"
    for jitter in (91, -1, 1000):
        with pytest.raises(leafpress.InvalidOption, match="ttl_jitter"):
            Cache("8MiB", ttl_jitter=jitter)
    for jitter in (1.5, "10", True):
        with pytest.raises(TypeError, match="ttl_jitter"):
            Cache("8MiB", ttl_jitter=jitter)
