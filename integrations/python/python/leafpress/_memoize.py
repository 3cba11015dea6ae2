"""Functions whose results come from a cache."""

from __future__ import annotations

import functools
import hashlib
import inspect
import threading
from collections.abc import Awaitable, Callable
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Optional, TypeVar, cast, overload

from . import _keys
from ._errors import InvalidOption

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Self

    from .cache import Cache, Time
else:
    from typing import Concatenate, ParamSpec

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
S = TypeVar("S")

_LONGEST_TEXT = 200
"""Longer texts of arguments are replaced by a hash: with the function's name they fit into the 1,024 bytes of a key in
any encoding."""
_MOST_WRAPPED = 8
"""So deep are closures compared that hold functions."""


class CacheInfo(NamedTuple):
    """What functools.lru_cache says of a function, with sizes in bytes: those of the cache, which other functions may
    use as well."""

    hits: int
    """Calls that got a result which another call had computed."""
    misses: int
    """Calls that computed it."""
    maxsize: int
    """Bytes of memory that the cache may hold."""
    currsize: int
    """Bytes of memory that it holds."""


class Memoized(Generic[P, R]):
    """A function whose results come from a cache: what Cache.memoize returns.

    It is called as the function is, and has its name and documentation. `__wrapped__` is the function itself. It is
    pickled as a function is: by its module and name.
    """

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        cache: Cache,
        function: Callable[P, R],
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
        self._key = key
        self._name = "" if key is not None and name is None else _checked_name(name) if name is not None else _own_name(cache, function)
        self._signature = _signature_of(function)
        self._positional = _number_of_positional(self._signature)
        self._keys_are_bytes = cache._keys_are_bytes
        self._counting = threading.Lock()
        self._calls = 0
        self._misses = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        def load() -> R:
            self._count(computed=True)
            return self._function(*args, **kwargs)

        key = self.cache_key(*args, **kwargs)
        self._count()
        return cast("R", self.cache.get_or_set(key, load, self._ttl, self._tags()))

    def _tags(self) -> tuple[str, ...]:
        # In memory the results are found by their keys' prefix.
        return (f"memoize:{self._name}",) if self.cache.has_disk and self._key is None else ()

    def _count(self, computed: bool = False) -> None:
        with self._counting:
            if computed:
                self._misses += 1
            else:
                self._calls += 1

    def cache_key(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """The key that the result of a call has in the cache.

        >>> from leafpress import Cache
        >>> cache = Cache("16MiB", serializer="json")
        >>> @cache.memoize(name="add")
        ... def add(a, b=1):
        ...     return a + b
        >>> add.cache_key(1, 2), add.cache_key(1), add.cache_key(b=1, a=1)
        ('add(i1:1i1:2)', 'add(i1:1i1:1)', 'add(i1:1i1:1)')
        """
        if self._key is not None:
            return self._key(*args, **kwargs)
        values: tuple[Any, ...] = args
        words: dict[str, Any] = kwargs
        if self._signature is not None and (kwargs or len(args) != self._positional):
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            values, words = bound.args, bound.kwargs
        try:
            texts = [_keys.text_of(value, self._typed) for value in values]
            if words:
                texts.append("k")
                texts += [_keys.text_of(word, False) + _keys.text_of(words[word], self._typed) for word in sorted(words)]
        except _keys.Unknown as error:
            raise TypeError(
                f"memoize cannot distinguish {error} objects: give key=, a function of the arguments that returns a key"
            ) from None
        text = "".join(texts)
        if len(text) > _LONGEST_TEXT:
            text = "#" + hashlib.blake2b(text.encode("ascii"), digest_size=32).hexdigest()
        text = f"{self._name}({text})"
        return text.encode() if self._keys_are_bytes else text

    def cache_info(self) -> CacheInfo:
        """How often the function was called and computed, and what the cache may hold and holds.

        >>> from leafpress import Cache
        >>> cache = Cache("16MiB", serializer="json")
        >>> @cache.memoize
        ... def double(number):
        ...     return 2 * number
        >>> double(21), double(21), double(4)
        (42, 42, 8)
        >>> double.cache_info()[:3]
        (1, 2, 16777216)
        """
        with self._counting:
            calls, misses = self._calls, self._misses
        return CacheInfo(max(calls - misses, 0), misses, self.cache.maxsize, self.cache.currsize)

    def cache_parameters(self) -> dict[str, Any]:
        """The parameters that the function was memoized with, as functools.lru_cache has it.

        >>> from leafpress import Cache
        >>> Cache("16MiB", serializer="json").memoize(lambda x: x, name="same", ttl=60).cache_parameters()
        {'maxsize': 16777216, 'typed': False, 'ttl': 60}
        """
        return {"maxsize": self.cache.maxsize, "typed": self._typed, "ttl": self._ttl}

    def cache_delete(self, *args: P.args, **kwargs: P.kwargs) -> bool:
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
        """Forget all results of this function, in memory and on disk. Not with key=.

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
            raise InvalidOption("cache_clear: with key= the function's results cannot be distinguished from others: use cache_delete")
        if self.cache.has_disk:
            for tag in self._tags():
                self.cache.invalidate_tag(tag)
        else:
            prefix = f"{self._name}("
            self.cache.delete_many(list(self.cache.prefix(prefix.encode() if self._keys_are_bytes else prefix)))
        # Another function of this name finds nothing of this one.
        if self.cache._memoized.get(self._name) is self._function:
            del self.cache._memoized[self._name]

    @overload
    def __get__(self, instance: None, owner: Optional[type] = None) -> Self: ...
    @overload
    def __get__(
        self: Memoized[Concatenate[S, Q], R], instance: S, owner: Optional[type] = None
    ) -> _Bound[Q, R]: ...
    def __get__(self, instance: Any, owner: Optional[type] = None) -> Any:
        return self if instance is None else _Bound(self, instance)

    def __reduce__(self) -> str:
        return cast("str", self.__qualname__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<memoized {self._name or self._function!r}>"


class _Bound(Generic[P, R]):
    """A memoized method of an object."""

    def __init__(self, memoized: Memoized[Any, R], instance: Any) -> None:
        functools.update_wrapper(cast("Callable[..., Any]", self), memoized._function)
        self.__self__ = instance
        self._memoized = memoized

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._memoized(self.__self__, *args, **kwargs)

    def cache_key(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """See Memoized.cache_key."""
        return self._memoized.cache_key(self.__self__, *args, **kwargs)

    def cache_delete(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """See Memoized.cache_delete."""
        return self._memoized.cache_delete(self.__self__, *args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, self._memoized.__name__)  # type: ignore[attr-defined]


class MemoizedFunction(Memoized[P, R]):
    """A memoized function."""


class MemoizedCoroutineFunction(Memoized[P, R]):
    """A memoized coroutine function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        inspect.markcoroutinefunction(self) if hasattr(inspect, "markcoroutinefunction") else None

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:  # type: ignore[override]
        async def load() -> Any:
            self._count(computed=True)
            return await cast("Awaitable[Any]", self._function(*args, **kwargs))

        key = self.cache_key(*args, **kwargs)
        self._count()
        return await self.cache.aget_or_set(key, load, self._ttl, self._tags())


def _checked_name(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name must be str, not {type(name).__qualname__}")
    if "(" in name:
        raise InvalidOption("name: it ends in keys at the first parenthesis, and cannot contain one")
    return _keys.escaped(name)


def _own_name(cache: Cache, function: Callable[..., Any]) -> str:
    """The module and the qualified name of a function, where they say which function it is."""
    why = _why_unnamed(function)
    if why is not None:
        raise InvalidOption(
            f"memoize: {why}, so its results could be taken for those of another function: give name=, a name that no other function "
            "has in this cache, or key=, a function of the arguments that returns a key"
        )
    name = _checked_name(f"{function.__module__}.{function.__qualname__}")
    known = cache._memoized.setdefault(name, function)
    if not _are_same(known, function, _MOST_WRAPPED):
        raise InvalidOption(
            f"memoize: another function is memoized in this cache as {name}, and one of them would get the results of the other: give "
            "name=, or call cache_clear() of the one that is replaced first"
        )
    cache._memoized[name] = function
    return name


def _why_unnamed(function: Any) -> Optional[str]:
    if isinstance(function, (staticmethod, classmethod)):
        return f"a {type(function).__name__} object is not called itself (put @cache.memoize below it)"
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or isinstance(function, functools.partial):
        return f"a {type(function).__qualname__} object has no name of its own"
    if isinstance(function, MethodType) or not isinstance(getattr(function, "__self__", None), (type(None), ModuleType)):
        return f"{name} is bound to an object"
    if "<lambda>" in name:
        return "a lambda has no name"
    if "<locals>" in name and not (isinstance(function, FunctionType) and not function.__closure__):
        return f"{name} is made anew by each call of what it is defined in, with variables of that call"
    return None


def _are_same(one: Any, other: Any, depth: int) -> bool:
    """Whether two functions do the same for the same arguments: one definition was executed twice, as in a cell of a
    notebook."""
    if one is other:
        return True
    if not isinstance(one, FunctionType) or not isinstance(other, FunctionType) or depth == 0:
        return False
    if one.__code__ != other.__code__ or one.__globals__ is not other.__globals__:
        return False
    ones, others = one.__closure__ or (), other.__closure__ or ()
    try:
        return all(_are_same(a.cell_contents, b.cell_contents, depth - 1) for a, b in zip(ones, others))
    except ValueError:
        # A variable that has no value yet.
        return False


def _signature_of(function: Callable[..., Any]) -> Optional[inspect.Signature]:
    """Returns which arguments may be omitted or named; None where that is not known, and arguments are compared in the
    given form."""
    try:
        # What a decorator wraps may have other defaults than what the decorator returns.
        return inspect.signature(function, follow_wrapped=False)
    except ValueError:
        return None


def _number_of_positional(signature: Optional[inspect.Signature]) -> int:
    """The number of arguments with which a call by position leaves nothing out; -1 where there is no such number."""
    kinds = {parameter.kind for parameter in signature.parameters.values()} if signature is not None else set()
    if signature is None or kinds - {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}:
        return -1
    return len(signature.parameters)


def memoized(cache: Cache, function: Callable[P, R], **options: Any) -> Memoized[P, R]:
    """A function whose results come from the cache."""
    if not callable(function):
        raise TypeError(f"memoize must be given a function, not {type(function).__qualname__}")
    if inspect.iscoroutinefunction(function):
        return MemoizedCoroutineFunction(cache, function, **options)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("a generator cannot be memoized: it is used up once; return a list")
    return MemoizedFunction(cache, function, **options)
