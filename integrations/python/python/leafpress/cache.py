"""A cache: compressed records within a memory bound, optionally with a disk tier."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Optional, TypeVar, Union, overload

from . import _memoize
from ._errors import LoadCycle
from ._leafpress import CacheBase
from ._memoize import Memoized, P, R

_Self = TypeVar("_Self", bound="Cache")
Time = Union[int, float, timedelta]
Tags = Union[str, bytes, Iterable[Union[str, bytes]]]
"""Seconds, or a timedelta."""

_MISSING: Any = object()


class Cache(CacheBase):
    """Cache(memory="64MiB", *, disk=None, disk_bytes="1GiB", ttl=None, ..., serializer=None, encoding=None,
    on_removal=None)

    A map with a memory bound: it keeps its records compressed, and evicts the least used.

    Threads may share it. Keys are bytes, or str with encoding="utf-8". With a serializer, values are what it takes, and
    keys may be str, bytes, int, float, None and tuples of these.

    >>> cache = Cache("16MiB", serializer="json")
    >>> cache["user:42"] = {"name": "Ada"}
    >>> cache.get("user:42")
    {'name': 'Ada'}
    >>> cache.get("user:43") is None
    True
    >>> cache.get_or_set("user:43", lambda: {"name": "Grace"}, ttl=60)
    {'name': 'Grace'}
    >>> list(cache.prefix("user:"))
    ['user:42', 'user:43']

    memory is the bound of all memory, index and dictionaries included: 4 MiB or more, as a number of bytes or as
    "512MB".

    disk is a file (or block device) for records that leave memory, disk_bytes its size. A file that is not empty and
    that no cache wrote is refused with DiskError, and left unchanged, unless overwrite=True. A cache that is closed
    leaves its records there for the next one with the same file and options. With recover_after_crash=True (Linux, no
    device) the records on disk are also recovered after the process was killed, by two more files next to it. len() and
    iteration cover both memory and disk, and read the disk for that.

    ttl is the time to live of records without their own; time_to_idle, of records that are not read. Within
    refresh_ahead of its expiry a record is loaded anew by one caller of get_or_set, and others get the present value.
    For stale_while_revalidate after its expiry a value is still returned to callers of get_or_set while another one
    loads it, for stale_if_error if the loader raises. From 1 ms (time_to_idle: 1 s) to 10 years, in seconds or as
    timedelta.
    ttl_jitter, 0 to 90, shortens each ttl by a random part of up to that percentage.

    codec is "zstd:1", "lz4", "auto" and others that codec.available() lists. dictionary is one to begin with, from
    dictionary() of a cache of similar records, or its bytes: otherwise the first records are compressed without one.

    share is the part of the memory for uncompressed copies of the most read records: "adaptive", which weighs faster
    hits against more misses, or "fixed:PERCENT" from 0 to 75. miss_cost is what a miss costs, in seconds or as
    timedelta; without it the loaders of get_or_set are timed.

    serializer is "pickle", "json", "msgpack" or a pair of callables (dumps, loads); encoding is the name of one for
    keys and values, or a pair for keys and for values.

    advice=True samples the reads, for advice(): what hit ratio other sizes of memory and disk would have.

    on_removal(key, value, cause) is called for removed records, with "evicted", "expired", "removed" or "replaced",
    often by a thread of the cache. Its exceptions go to sys.unraisablehook.
    """

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def popitem(self) -> tuple[Any, Any]:
        """Remove the record of the first key and return its key and value. Raises KeyError if there is none, as dict
        does.

        >>> cache = Cache("16MiB", encoding="utf-8")
        >>> cache.update(apple="red", pear="green")
        >>> cache.popitem()
        ('apple', 'red')
        """
        for key in CacheBase.__iter__(self):
            value = CacheBase.pop(self, key, _MISSING)
            if value is not _MISSING:
                return key, value
        raise KeyError("popitem(): the cache is empty") from None

    async def aget(self, key: Any, default: Any = None) -> Any:
        """get for tasks. Values in memory are returned at once; the disk is read in another thread.

        >>> import asyncio
        >>> async def main():
        ...     with Cache("16MiB", encoding="utf-8") as cache:
        ...         await cache.aset("apple", "red", ttl=60)
        ...         return await cache.aget("apple")
        >>> asyncio.run(main())
        'red'
        """
        if not self.has_disk:
            return self.get(key, default)
        found = self.get_in_memory(key, _MISSING)
        if found is not _MISSING:
            return found
        return await asyncio.to_thread(self.get, key, default)

    async def aget_many(self, keys: Iterable[Any], default: Any = None) -> list[Any]:
        """get_many for tasks, in another thread.

        >>> import asyncio
        >>> async def main():
        ...     with Cache("16MiB", encoding="utf-8") as cache:
        ...         cache["apple"] = "red"
        ...         return await cache.aget_many(["apple", "pear"])
        >>> asyncio.run(main())
        ['red', None]
        """
        return await asyncio.to_thread(self.get_many, list(keys), default)

    async def aset(
        self,
        key: Any,
        value: Any,
        ttl: Optional[Time] = None,
        tags: Tags = (),
        time_to_idle: Optional[Time] = None,
    ) -> None:
        """set for tasks, in another thread if there is a disk tier.

        >>> import asyncio
        >>> async def main():
        ...     with Cache("16MiB", encoding="utf-8") as cache:
        ...         await cache.aset("apple", "red")
        ...         return "apple" in cache
        >>> asyncio.run(main())
        True
        """
        if self.has_disk:
            await asyncio.to_thread(self.set, key, value, ttl, tags, time_to_idle)
        else:
            self.set(key, value, ttl, tags, time_to_idle)

    async def aset_many(
        self,
        records: Union[Mapping[Any, Any], Iterable[tuple[Any, Any]]],
        ttl: Optional[Time] = None,
        tags: Tags = (),
        time_to_idle: Optional[Time] = None,
    ) -> None:
        """set_many for tasks, in another thread.

        >>> import asyncio
        >>> async def main():
        ...     with Cache("16MiB", encoding="utf-8") as cache:
        ...         await cache.aset_many({"apple": "red", "pear": "green"})
        ...         return len(cache)
        >>> asyncio.run(main())
        2
        """
        await asyncio.to_thread(self.set_many, dict(records), ttl, tags, time_to_idle)

    async def adelete(self, key: Any) -> bool:
        """delete for tasks, in another thread if there is a disk tier.

        >>> import asyncio
        >>> async def main():
        ...     with Cache("16MiB", encoding="utf-8") as cache:
        ...         return await cache.adelete("apple")
        >>> asyncio.run(main())
        False
        """
        if self.has_disk:
            return await asyncio.to_thread(self.delete, key)
        return self.delete(key)

    async def aget_or_set(
        self,
        key: Any,
        load: Union[Callable[[], Awaitable[Any]], Callable[[], Any]],
        ttl: Optional[Time] = None,
        tags: Tags = (),
        time_to_idle: Optional[Time] = None,
    ) -> Any:
        """The key's value, or else the one that load() gives, which is inserted: what get_or_set does, for tasks.

        load is a coroutine function, or a callable, which is called in another thread; what it returns is awaited if it
        can be. One loads at a time for a key, among tasks and threads; but for a request of a task that the loader itself has
        started load() is called separately, since the two might wait for each other. If the task that loads is
        cancelled, one of the waiting tasks loads; that one of them is cancelled concerns no other.

        >>> import asyncio
        >>> async def load():
        ...     return "red"
        >>> async def main():
        ...     with Cache("16MiB", encoding="utf-8") as cache:
        ...         return await asyncio.gather(*(cache.aget_or_set("apple", load) for _ in range(3)))
        >>> asyncio.run(main())
        ['red', 'red', 'red']
        """
        found = self._find_before_load(key, _MISSING)
        if found is not _MISSING:
            return found
        task = asyncio.current_task()
        request = self._begin_load(key, task)
        if request is None:
            return await _loaded_alone(load)
        loop = asyncio.get_running_loop()
        loaded: Any = _MISSING
        try:
            while True:
                event = asyncio.Event()

                def wake(event: asyncio.Event = event) -> None:
                    # The loop may be closed by now: no task waits there.
                    with contextlib.suppress(RuntimeError):
                        loop.call_soon_threadsafe(event.set)

                # To look at the disk may take long.
                state, value = await asyncio.to_thread(request.step, wake) if self.has_disk else request.step(wake)
                if state == "ready":
                    return value if loaded is _MISSING else loaded
                if state == "waits":
                    await event.wait()
                    continue
                if state == "again":
                    request.end()
                    another = self._begin_load(key, task)
                    if another is None:
                        return await _loaded_alone(load)
                    request = another
                    continue
                token = request.enter()
                try:
                    loaded = await _called(load)
                    request.give(loaded, ttl, tags, time_to_idle)
                except Exception as error:
                    request.fail(error)
                finally:
                    request.leave(token)
        finally:
            request.end()

    @overload
    def memoize(
        self,
        function: Callable[P, R],
        *,
        ttl: Optional[Time] = None,
        typed: bool = False,
        name: Optional[str] = None,
        key: Optional[Callable[..., Any]] = None,
    ) -> Memoized[P, R]: ...
    @overload
    def memoize(
        self,
        function: None = None,
        *,
        ttl: Optional[Time] = None,
        typed: bool = False,
        name: Optional[str] = None,
        key: Optional[Callable[..., Any]] = None,
    ) -> Callable[[Callable[P, R]], Memoized[P, R]]: ...
    def memoize(
        self,
        function: Optional[Callable[..., Any]] = None,
        *,
        ttl: Optional[Time] = None,
        typed: bool = False,
        name: Optional[str] = None,
        key: Optional[Callable[..., Any]] = None,
    ) -> Any:
        """A decorator: results of a function come from the cache. See the class Memoized for what it makes of a
        function.

        Arguments may be str, bytes, numbers, None, and tuples, lists, dicts and sets of these, members of enumerations,
        dates and times with zones of the standard library, paths, UUIDs, and classes; for others, give key=, which is
        called with the arguments and returns a key of the cache. ttl is how long results live. With typed=True, f(3)
        and f(3.0) are two calls.

        name stands for the function in keys: by default its module and qualified name. A lambda, a function that a
        factory makes with variables of its own, a method of an object and what else these do not identify must be given
        one, or key=. Two functions may not have one such name in a cache; two that are given the same name share their
        results.

        Of threads and tasks that call with the same arguments one computes. Exceptions are not kept. A None is kept,
        where the serializer has it.

        >>> cache = Cache("16MiB", serializer="pickle")
        >>> @cache.memoize(ttl=60)
        ... def power(base, exponent=2):
        ...     print("computing")
        ...     return base**exponent
        >>> power(3), power(3, exponent=2)
        computing
        (9, 9)
        >>> power.cache_delete(3)
        True

        It serves `async def` functions as well, and is used with or without parentheses.
        """

        def decorate(function: Callable[P, R]) -> Memoized[P, R]:
            return _memoize.memoized(self, function, ttl=ttl, typed=typed, name=name, key=key)

        return decorate if function is None else decorate(function)

    @functools.cached_property
    def _memoized(self) -> dict[str, Callable[..., Any]]:
        """The functions that are memoized here by their own names."""
        return {}


_alone: contextvars.ContextVar[bool] = contextvars.ContextVar("leafpress_alone", default=False)
"""Whether a loader runs whose load is not shared."""


async def _loaded_alone(load: Callable[[], Any]) -> Any:
    """What a loader gives to a task that another loader has started, and may wait for: the task cannot wait for that
    one."""
    if _alone.get():
        raise LoadCycle(
            "a loader requested a key that cannot be available before it ends, in a task that it started: load what both need under a third key, "
            "or outside of the cache"
        )
    token = _alone.set(True)
    try:
        return await _called(load)
    finally:
        _alone.reset(token)


async def _called(load: Callable[[], Any]) -> Any:
    """What a loader gives."""
    if _is_coroutine_function(load):
        return await load()
    value = await asyncio.to_thread(load)
    return await value if inspect.isawaitable(value) else value


def _is_coroutine_function(function: Any) -> bool:
    while hasattr(function, "func") and hasattr(function, "keywords"):
        function = function.func
    call = getattr(type(function), "__call__", None)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
