"""Views of trees and of their ranges, as dict.keys(), dict.values() and dict.items() are."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from itertools import islice
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# What repr() shows of a tree, so that a million records are not printed.
_SHOWN_RECORDS = 8
_SHOWN_CHARACTERS = 60
_MISSING = object()


class TreeKeysView(KeysView[K]):
    """The keys of a tree, in their order: a set that changes with the tree."""

    __slots__ = ()
    _mapping: Any

    def __contains__(self, key: object) -> bool:
        try:
            return key in self._mapping
        except (TypeError, UnicodeError):
            # What cannot be a key is not among them.
            return False

    def __iter__(self) -> Iterator[K]:
        return self._mapping._iterate("keys", False)  # type: ignore[no-any-return]

    def __reversed__(self) -> Iterator[K]:
        return self._mapping._iterate("keys", True)  # type: ignore[no-any-return]


class TreeItemsView(ItemsView[K, V]):
    """The keys and values of a tree, in the order of the keys: a set of pairs that changes with the tree."""

    __slots__ = ()
    _mapping: Any

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        key, value = item
        try:
            return bool(self._mapping.get(key, _MISSING) == value)
        except (TypeError, UnicodeError):
            return False

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._mapping._iterate("items", False)  # type: ignore[no-any-return]

    def __reversed__(self) -> Iterator[tuple[K, V]]:
        return self._mapping._iterate("items", True)  # type: ignore[no-any-return]


class TreeValuesView(ValuesView[V]):
    """The values of a tree, in the order of their keys."""

    __slots__ = ()
    _mapping: Any

    def __contains__(self, value: object) -> bool:
        return any(value == other for other in self)

    def __iter__(self) -> Iterator[V]:
        return self._mapping._iterate("values", False)  # type: ignore[no-any-return]

    def __reversed__(self) -> Iterator[V]:
        return self._mapping._iterate("values", True)  # type: ignore[no-any-return]


def equal(mapping: Any, other: Mapping[Any, Any]) -> bool:
    """Whether a tree, or a range of one, has the items of any mapping."""
    if len(mapping) != len(other):
        return False
    for key, value in mapping.items():
        try:
            if other.get(key, _MISSING) != value:
                return False
        except TypeError:
            # Keys of another kind.
            return False
    return True


def represent(mapping: Any) -> str:
    """The repr() of a tree, or of a range of one: its first records."""
    first = list(islice(mapping.items(), _SHOWN_RECORDS + 1))
    shown = [f"{_short(key)}: {_short(value)}" for key, value in first[:_SHOWN_RECORDS]]
    if len(first) > _SHOWN_RECORDS:
        shown.append("...")
    encoding = getattr(mapping, "encoding", None)
    tail = f", encoding={encoding!r}" if encoding is not None else ""
    return f"{type(mapping).__name__}({{{', '.join(shown)}}}{tail})"


def _short(text: bytes | str) -> str:
    if len(text) <= _SHOWN_CHARACTERS:
        return repr(text)
    return f"{text[:_SHOWN_CHARACTERS]!r}..."
