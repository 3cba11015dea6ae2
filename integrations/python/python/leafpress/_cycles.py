"""Whether a thread that loads waits for this one, which waits for the load.

What runs inside of a load knows it by a context variable. A pool's threads do not inherit that, so a loader that waits
for a pool, one of whose threads waits for the loader, is found by what the loader's thread waits for: a future that
this thread is to complete, or this thread's end.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Optional

_WAITING = ("threading", "concurrent.futures._base", "concurrent.futures.thread")
"""The modules in whose functions a thread waits for futures or threads."""


def is_waited_for(threads: list[int]) -> bool:
    """Whether one of these threads, by their identifiers, waits for this thread without a limit of time."""
    mine = [threading.current_thread(), *_futures()]
    frames = sys._current_frames()
    return any(_waits_for(frames.get(thread), mine) for thread in threads)


def _futures() -> Iterator[Any]:
    """The futures that this thread completes when it returns from what it runs."""
    frame: Optional[FrameType] = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "concurrent.futures.thread" and frame.f_code.co_name == "run":
            future = getattr(frame.f_locals.get("self"), "future", None)
            if future is not None:
                yield future
        frame = frame.f_back


def _waits_for(frame: Optional[FrameType], mine: list[Any]) -> bool:
    found = False
    while frame is not None and frame.f_globals.get("__name__") in _WAITING:
        variables = dict(frame.f_locals)
        timeout = variables.get("timeout")
        # A negative one is none.
        if timeout is not None and not (isinstance(timeout, (int, float)) and timeout < 0):
            return False
        for value in variables.values():
            values = tuple(value) if type(value) in (list, tuple, set, frozenset, dict) else (value,)
            found = found or any(one is other for one in values for other in mine)
        frame = frame.f_back
    return found
