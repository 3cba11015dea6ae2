"""What a cache says of other sizes."""

import random

import pytest

import leafpress
from leafpress import Cache


def read(cache, keys=4000, reads=60_000, value="a value of some length, which differs by its number: "):
    draw = random.Random(1)
    for _ in range(reads):
        key = int(draw.paretovariate(0.6)) % keys
        if cache.get(f"key:{key}") is None:
            cache.set(f"key:{key}", f"{value}{key}" * 20)


def test_it_rises_with_the_memory_and_the_disk():
    with Cache("4MiB", encoding="utf-8", codec="none", advice=True) as cache:
        read(cache)
        advice = cache.advice()
        sizes = [advice.hit_ratio(size) for size in (1 << 20, "2MiB", "4MiB", 8 << 20, "64MiB")]
        assert sizes == sorted(sizes) and 0 < sizes[0] < sizes[-1] <= 1
        assert advice.hit_ratio("1MiB", "64MiB") > sizes[0]
        assert abs(sizes[2] - advice.memory_hit_ratio) < 0.1
        assert advice.memory == cache.memory and advice.sampled_keys > 0 and advice.reads > 0
        needed = advice.memory_for(sizes[3])
        assert needed <= 8.1 * (1 << 20) and advice.hit_ratio(needed) >= sizes[3]
        assert advice.memory_for(1.1) is None
        assert "with half the memory" in str(advice) and repr(advice).startswith("<leafpress.CacheAdvice: ")


def test_without_it_there_is_none():
    with Cache("4MiB", encoding="utf-8") as cache:
        read(cache, reads=1000)
        assert cache.advice() is None
    with pytest.raises(leafpress.Closed):
        cache.advice()
    with Cache("4MiB", advice=True) as cache:
        assert cache.advice() is None


def test_bad_sizes_are_refused():
    with Cache("4MiB", encoding="utf-8", advice=True) as cache:
        read(cache, reads=20_000)
        advice = cache.advice()
        for size in (-1, "many", 1 << 63):
            with pytest.raises(leafpress.InvalidOption, match="memory"):
                advice.hit_ratio(size)
        with pytest.raises(TypeError, match="disk"):
            advice.hit_ratio(1 << 20, 1.5)
