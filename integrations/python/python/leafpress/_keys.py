"""The text that stands for the arguments of a call in the keys of a cache: equal calls have one text, and different
calls have two.

Each value is a tag, the length of what follows, a colon, and what follows. No text is a prefix of another one, so the
texts of several values in a row can be distinguished whatever they contain. Only exact types are accepted: an instance
of a subclass may differ in what the base does not show.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import sys
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

_MOST_DECIMAL_BITS = 1024
"""Longer ints are written in base 16: Python refuses to write very long ones in base 10."""


class Unknown(TypeError):
    """An argument of a type whose objects cannot be distinguished."""


def escaped(text: str) -> str:
    """Any text in ASCII, lone surrogates included: whatever encoding a cache has for its keys can encode it."""
    return text.encode("unicode_escape").decode("ascii")


def text_of(value: Any, typed: bool) -> str:
    """The text of a value. Equal numbers of different types have one text unless `typed`.

    Raises Unknown, which names the type, for what it does not take.
    """
    encode = _ENCODERS.get(type(value))
    if encode is not None:
        return encode(value, typed)
    if isinstance(value, enum.Enum):
        return _of_enum(value, typed)
    if isinstance(value, type):
        return _tagged("C", _class_name(value))
    plain = plain_number(value)
    if plain is None:
        raise Unknown(type(value).__qualname__)
    return _tagged("N", _class_name(type(value)) + text_of(plain, True)) if typed else text_of(plain, False)


def plain_number(value: Any) -> Any:
    """The int, float or bool that a scalar of NumPy equals; None for anything else."""
    if type(value).__module__ != "numpy" or getattr(getattr(value, "dtype", None), "kind", "") not in ("b", "i", "u", "f"):
        return None
    if getattr(value, "shape", None) != () or not isinstance(getattr(value, "itemsize", None), int) or value.itemsize > 8:
        return None
    plain = value.item()
    return plain if type(plain) in (bool, int, float) else None


def _tagged(tag: str, payload: str) -> str:
    return f"{tag}{len(payload)}:{payload}"


def _of_bool(value: bool, typed: bool) -> str:
    return _tagged("B", str(value)) if typed else _of_int(int(value), False)


def _of_int(value: int, typed: bool) -> str:
    if value.bit_length() > _MOST_DECIMAL_BITS:
        return _tagged("x", format(value, "x"))
    return _tagged("i", str(value))


def _of_float(value: float, typed: bool) -> str:
    return _of_int(int(value), False) if not typed and value.is_integer() else _tagged("f", repr(value))


def _of_items(tag: str) -> Callable[[Any, bool], str]:
    return lambda items, typed: _tagged(tag, "".join([text_of(item, typed) for item in items]))


def _of_set(items: Any, typed: bool) -> str:
    # A set equals a frozenset with the same items.
    return _tagged("g" if typed and type(items) is frozenset else "e", "".join(sorted(text_of(item, typed) for item in items)))


def _of_dict(items: Any, typed: bool) -> str:
    return _tagged("d", "".join(sorted(text_of(key, typed) + text_of(item, typed) for key, item in items.items())))


def _of_time(tag: str) -> Callable[[Any, bool], str]:
    def encode(value: Any, typed: bool) -> str:
        naive = value.replace(tzinfo=None, fold=0).isoformat()
        return _tagged(tag, f"{naive}{value.fold}{text_of(value.tzinfo, typed)}")

    return encode


def _of_zone(zone: Any, typed: bool) -> str:
    try:
        # A zone that was read from a file has the name that it was given, whatever the file says, and cannot be
        # pickled.
        zone.__reduce__()
    except Exception:
        raise Unknown("ZoneInfo without a name") from None
    return _tagged("Z", str(zone.key))


def _of_enum(value: Any, typed: bool) -> str:
    name, kind = value._name_, type(value)
    if name is not None and kind.__members__.get(name) is value:
        return _tagged("E", _class_name(kind) + escaped(name))
    # A combination of flags is not a member, and may have no name.
    return _tagged("F", _class_name(kind) + text_of(value._value_, True))


def _class_name(kind: type) -> str:
    """The module and the qualified name of a class, which lead to it and to nothing else."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not kind:
        raise Unknown(f"{kind.__qualname__} (a class that its module and name do not lead to)")
    return _tagged("c", escaped(f"{kind.__module__}.{kind.__qualname__}"))


def _of_path(path: Any, typed: bool) -> str:
    return _tagged("p", f"{type(path).__name__},{escaped(str(path))}")


def _of_str(value: str, typed: bool) -> str:
    return _tagged("s", escaped(value))


_ENCODERS: dict[type, Callable[[Any, bool], str]] = {
    str: _of_str,
    int: _of_int,
    bool: _of_bool,
    float: _of_float,
    type(None): lambda value, typed: "n0:",
    type(...): lambda value, typed: "_0:",
    bytes: lambda value, typed: _tagged("b", value.hex()),
    complex: lambda value, typed: _tagged("j", f"{value.real!r},{value.imag!r}"),
    tuple: _of_items("t"),
    list: _of_items("l"),
    dict: _of_dict,
    set: _of_set,
    frozenset: _of_set,
    range: lambda value, typed: _of_items("r")((value.start, value.stop, value.step), False),
    slice: lambda value, typed: _of_items("S")((value.start, value.stop, value.step), typed),
    datetime.date: lambda value, typed: _tagged("D", value.isoformat()),
    datetime.datetime: _of_time("T"),
    datetime.time: _of_time("h"),
    datetime.timedelta: lambda value, typed: _tagged("P", f"{value.days},{value.seconds},{value.microseconds}"),
    datetime.timezone: lambda value, typed: _of_items("z")((value.utcoffset(None), value.tzname(None)), typed),
    zoneinfo.ZoneInfo: _of_zone,
    decimal.Decimal: lambda value, typed: _tagged("m", str(value)),
    uuid.UUID: lambda value, typed: _tagged("u", value.hex),
    pathlib.PurePosixPath: _of_path,
    pathlib.PosixPath: _of_path,
    pathlib.PureWindowsPath: _of_path,
    pathlib.WindowsPath: _of_path,
}
