"""What can go wrong. All of it is a leafpress.Error, and what Python has a class for is that too."""


class Error(Exception):
    """What Leafpress raises, but for TypeError, KeyError and errors of encodings."""


class InvalidOption(Error, ValueError):
    """An option is out of its bounds, or unknown. The message says what is allowed."""


class KeyTooLong(Error, ValueError):
    """A key is longer than leafpress.MAX_KEY_BYTES."""


class ValueTooLong(Error, ValueError):
    """A value is longer than values may be."""


class OutOfMemory(Error, MemoryError):
    """The system has no more memory. What was there before is still there."""


class CorruptBlock(Error):
    """Compressed bytes are damaged, cut off, or need another codec or dictionary."""


class CodecUnavailable(Error):
    """The codec exists and cannot run here. The message says what is missing."""


class CodecFailed(Error):
    """A codec failed at what it should be able to do."""


class DiskError(Error, OSError):
    """The file or device of a cache's disk tier cannot be used: `filename` is which, `errno` what the system said, if
    it was the system."""

    def __str__(self) -> str:
        return self.strerror or super().__str__()


class BackgroundFailed(Error, RuntimeError):
    """A background thread cannot be started, or has ended."""


class Closed(Error, ValueError):
    """The cache has been closed."""


class ForkedProcess(Error, RuntimeError):
    """The object was made before this process was forked from another. The message says what to do."""


class LoadCycle(Error, RuntimeError):
    """A loader requested what cannot be available before it ends: its own key, or that of a loader that waits for
    it."""
