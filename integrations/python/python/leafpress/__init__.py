"""Leafpress: a compressed key-value cache, and an ordered map that stays compressed in memory."""

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
    OutOfMemory,
    ValueTooLong,
)
from ._leafpress import __version__

__all__ = [
    "BackgroundFailed",
    "Closed",
    "CodecFailed",
    "CodecUnavailable",
    "CorruptBlock",
    "DiskError",
    "Error",
    "ForkedProcess",
    "InvalidOption",
    "KeyTooLong",
    "OutOfMemory",
    "ValueTooLong",
    "__version__",
]
