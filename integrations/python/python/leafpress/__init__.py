"""Leafpress: a compressed key-value cache, and an ordered map that stays compressed in memory."""

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
from ._leafpress import __version__
from .cache import Cache

__all__ = [
    "BackgroundFailed",
    "Cache",
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
    "ValueTooLong",
    "__version__",
]
