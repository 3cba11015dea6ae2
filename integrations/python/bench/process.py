"""What a process takes of memory."""

from __future__ import annotations

import ctypes
import gc
import os


def resident_bytes() -> int:
    """Resident memory, after what is free has been given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
