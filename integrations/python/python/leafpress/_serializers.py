"""How a cache's values become bytes: pairs of dumps and loads, by the names that Cache(serializer=...) takes."""

from __future__ import annotations

import functools
import json as _json
import pickle as _pickle
from typing import Any, Callable

Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def pickle() -> Pair:
    """Any object. What is loaded may run code: see what the documentation says of trusting a file."""
    return functools.partial(_pickle.dumps, protocol=_pickle.HIGHEST_PROTOCOL), _pickle.loads


def json() -> Pair:
    """What JSON has. Tuples come back as lists, keys of dicts as str."""
    return _json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode, _json.JSONDecoder().decode


def msgpack() -> Pair:
    """What MessagePack has: as JSON, and bytes."""
    try:
        import msgpack as module  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError('serializer="msgpack" needs the package msgpack: pip install msgpack') from error
    # A packer for each value: a Packer is not for several threads, nor for a value whose packing packs another one.
    return module.packb, functools.partial(module.unpackb, strict_map_key=False)
