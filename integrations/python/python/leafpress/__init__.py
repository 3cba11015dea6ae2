"""Leafpress: a compressed key-value cache, and an ordered map that stays compressed in memory."""

from . import codec
from ._advise import Advice, advise
from ._cache_stats import CacheStats, DiskStats
from ._errors import (
    BackgroundFailed,
    Closed,
    CodecFailed,
    CodecUnavailable,
    CorruptBlock,
    DiskError,
    Error,
    ForkedProcess,
    InvalidOption,
    KeyTooLong,
    LoadCycle,
    OutOfMemory,
    ValueTooLong,
)
from ._leafpress import MAX_KEY_BYTES, MAX_VALUE_BYTES, CacheAdvice, Tree, TreeIterator, TreeRange, __version__
from ._stats import TreeStats
from ._views import TreeItemsView, TreeKeysView, TreeValuesView
from .cache import Cache
from .results import Results, load_results

__all__ = [
    "MAX_KEY_BYTES",
    "MAX_VALUE_BYTES",
    "Advice",
    "BackgroundFailed",
    "Cache",
    "CacheAdvice",
    "CacheStats",
    "Closed",
    "CodecFailed",
    "CodecUnavailable",
    "CorruptBlock",
    "DiskError",
    "DiskStats",
    "Error",
    "ForkedProcess",
    "InvalidOption",
    "KeyTooLong",
    "LoadCycle",
    "OutOfMemory",
    "Results",
    "Tree",
    "TreeItemsView",
    "TreeIterator",
    "TreeKeysView",
    "TreeRange",
    "TreeStats",
    "TreeValuesView",
    "ValueTooLong",
    "__version__",
    "advise",
    "codec",
    "load_results",
]
