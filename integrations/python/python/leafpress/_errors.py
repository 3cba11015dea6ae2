"""The exceptions. All are leafpress.Error, and also the matching Python class if there is one."""


class Error(Exception):
    """The base of all exceptions of Leafpress, except TypeError, KeyError and errors of encodings."""


class InvalidOption(Error, ValueError):
    """An option is out of its bounds, or unknown. The message says what is allowed."""


class KeyTooLong(Error, ValueError):
    """A key is longer than leafpress.MAX_KEY_BYTES."""


class ValueTooLong(Error, ValueError):
    """A value is longer than values may be."""


class OutOfMemory(Error, MemoryError):
    """The system has no more memory. Existing records are unchanged."""


class CorruptBlock(Error):
    """Compressed bytes are damaged, truncated, or need another codec or dictionary."""


class CodecUnavailable(Error):
    """The codec exists and cannot run here. The message says what is missing."""


class CodecFailed(Error):
    """A codec failed unexpectedly."""


class DiskError(Error, OSError):
    """A cache's disk tier cannot use its file or device `filename`; `errno` is the system's error, if there is one."""

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class BackgroundFailed(Error, RuntimeError):
    """A background thread cannot be started, or has ended."""


class Closed(Error, ValueError):
    """The cache has been closed."""


class ForkedProcess(Error, RuntimeError):
    """The object was made before this process was forked from another. The message says what to do."""


class LoadCycle(Error, RuntimeError):
    """A loader requested a key that cannot be available before it ends: its own, or that of a loader that waits for
    it."""
