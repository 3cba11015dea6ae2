"""Functions whose results come from a cache."""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import hashlib
import inspect
import pathlib
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional, cast

from ._errors import InvalidOption

if TYPE_CHECKING:
    from .cache import Cache, Time

_LONGEST_TEXT = 400
"""Longer keys end in a hash: a key of a cache has 1,024 bytes at most."""

_ALIKE = (
    str,
    bytes,
    complex,
    type(None),
    type(...),
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    decimal.Decimal,
    pathlib.PurePath,
    range,
    slice,
    uuid.UUID,
)
"""Types of which equal values have one repr, and different values different ones."""


def _text(value: Any, typed: bool) -> str:
    """The same text for the same arguments, and for no others."""
    kind = type(value)
    if kind is bool or kind is int or kind is float:
        if typed:
            return f"{kind.__name__}:{value!r}"
        whole = int(value) if kind is bool or kind is float and value.is_integer() else value
        return repr(whole)
    if kind is tuple or kind is list:
        inner = ",".join(_text(item, typed) for item in value)
        return f"({inner})" if kind is tuple else f"[{inner}]"
    if kind is dict:
        return "{" + ",".join(sorted(f"{_text(k, typed)}:{_text(v, typed)}" for k, v in value.items())) + "}"
    if kind is set or kind is frozenset:
        return "set{" + ",".join(sorted(_text(item, typed) for item in value)) + "}"
    if isinstance(value, enum.Enum):
        return f"{kind.__module__}.{kind.__qualname__}.{value.name}"
    if kind.__module__ in _MODULES and isinstance(value, _ALIKE):
        return repr(value)
    raise TypeError(
        f"memoize cannot tell {kind.__qualname__} objects apart: give key=, a function of the arguments that returns a key"
    )


_MODULES = {kind.__module__ for kind in _ALIKE} | {"pathlib._local", "zoneinfo"}


class Memoized:
    """A function whose results come from a cache: what Cache.memoize returns.

    It is called as the function is, and has its name and documentation. `__wrapped__` is the function itself.
    """

    def __init__(
        self,
        cache: Cache,
        function: Callable[..., Any],
        *,
        ttl: Optional[Time],
        typed: bool,
        name: Optional[str],
        key: Optional[Callable[..., Any]],
    ) -> None:
        functools.update_wrapper(cast("Callable[..., Any]", self), function)
        self.cache = cache
        """The cache that results come from."""
        self._function = function
        self._ttl = ttl
        self._typed = typed
        self._name = name if name is not None else _name_of(function)
        self._key = key
        self._signature = _signature_of(function)
        self._keys_are_bytes = cache._keys_are_bytes

    def cache_key(self, *args: Any, **kwargs: Any) -> Any:
        """The key that the result of a call has in the cache.

        >>> from leafpress import Cache
        >>> cache = Cache("16MiB", serializer="json")
        >>> @cache.memoize(name="add")
        ... def add(a, b=1):
        ...     return a + b
        >>> add.cache_key(1, 2), add.cache_key(1), add.cache_key(b=1, a=1)
        ('add(1,2)', 'add(1,1)', 'add(1,1)')
        """
        if self._key is not None:
            return self._key(*args, **kwargs)
        if self._signature is not None and (kwargs or len(args) != len(self._signature.parameters)):
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        texts = [_text(value, self._typed) for value in args]
        texts += [f"{word}={_text(kwargs[word], self._typed)}" for word in sorted(kwargs)]
        text = ",".join(texts)
        if len(text) > _LONGEST_TEXT:
            text = "#" + hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
        text = f"{self._name}({text})"
        return text.encode() if self._keys_are_bytes else text

    def cache_delete(self, *args: Any, **kwargs: Any) -> bool:
        """Forget the result of a call; whether it was there.

        >>> from leafpress import Cache
        >>> cache = Cache("16MiB", serializer="json")
        >>> @cache.memoize
        ... def double(number):
        ...     return 2 * number
        >>> double(21)
        42
        >>> double.cache_delete(21), double.cache_delete(21)
        (True, False)
        """
        return self.cache.delete(self.cache_key(*args, **kwargs))

    def cache_clear(self) -> None:
        """Forget all results of this function.

        Not with key=, and not where the cache has a disk tier, which cannot be searched by function: clear the cache, give the results a
        ttl, or change the name that memoize is given.

        >>> from leafpress import Cache
        >>> cache = Cache("16MiB", serializer="json")
        >>> @cache.memoize
        ... def double(number):
        ...     return 2 * number
        >>> double(21), double(4)
        (42, 8)
        >>> double.cache_clear()
        >>> len(cache)
        0
        """
        if self._key is not None:
            raise InvalidOption("cache_clear: with key= the function's results cannot be told from others: use cache_delete")
        if self.cache.has_disk:
            raise InvalidOption(
                "cache_clear: a disk tier cannot be searched by function: clear the cache, give the results a ttl, or change the "
                "name that memoize is given"
            )
        prefix = f"{self._name}("
        self.cache.delete_many(list(self.cache.prefix(prefix.encode() if self._keys_are_bytes else prefix)))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else _Bound(self, instance)

    def __repr__(self) -> str:
        return f"<memoized {self._name}>"


class _Bound:
    """A memoized method of an object."""

    def __init__(self, memoized: Memoized, instance: Any) -> None:
        functools.update_wrapper(self, memoized._function)
        self.__self__ = instance
        self._memoized = memoized

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._memoized(self.__self__, *args, **kwargs)  # type: ignore[operator]

    def cache_key(self, *args: Any, **kwargs: Any) -> Any:
        """See Memoized.cache_key."""
        return self._memoized.cache_key(self.__self__, *args, **kwargs)

    def cache_delete(self, *args: Any, **kwargs: Any) -> bool:
        """See Memoized.cache_delete."""
        return self._memoized.cache_delete(self.__self__, *args, **kwargs)


class MemoizedFunction(Memoized):
    """A memoized function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.cache.get_or_set(
            self.cache_key(*args, **kwargs), lambda: self._function(*args, **kwargs), self._ttl
        )


class MemoizedCoroutineFunction(Memoized):
    """A memoized coroutine function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        inspect.markcoroutinefunction(self) if hasattr(inspect, "markcoroutinefunction") else None

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        async def load() -> Any:
            return await self._function(*args, **kwargs)

        return await self.cache.aget_or_set(self.cache_key(*args, **kwargs), load, self._ttl)


def _name_of(function: Callable[..., Any]) -> str:
    try:
        return f"{function.__module__}.{function.__qualname__}"
    except AttributeError:
        raise InvalidOption("memoize: the function has no name: give one, by name=") from None


def _signature_of(function: Callable[..., Any]) -> Optional[inspect.Signature]:
    """What arguments may be left out or named; None where that is not known, and arguments count as they are given."""
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def memoized(cache: Cache, function: Callable[..., Any], **options: Any) -> Memoized:
    """A function whose results come from the cache."""
    if not callable(function):
        raise TypeError(f"memoize must be given a function, not {type(function).__qualname__}")
    if inspect.iscoroutinefunction(function):
        return MemoizedCoroutineFunction(cache, function, **options)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("a generator cannot be memoized: it is used up once; return a list")
    return MemoizedFunction(cache, function, **options)
