"""A deadline on progress: a server that sends a byte now and then must not keep a run for ever."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

SLOWEST = 2**10
"""Bytes a second. What is slower than this on average since the first byte, after the grace, is given up."""
GRACE = 60.0
"""Seconds in which a transfer may be slower: connections start slowly, and servers wait for their disks."""
BETWEEN_CHECKS = 5.0
"""Seconds."""


class TooSlow(OSError):
    """A transfer makes too little progress."""


class Progress:
    """The bytes that have arrived, against a deadline.

    `clock`: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._start = clock()
        self._received = 0

    def add(self, n_bytes: int) -> None:
        """Count bytes.

        Raises TooSlow if fewer than `SLOWEST` a second have come on average, after the grace.
        """
        self._received += n_bytes
        if self._clock() - self._start > GRACE + self._received / SLOWEST:
            raise TooSlow


async def watched(transfer: Awaitable[T], progress: Progress) -> T:
    """Return what a transfer returns, and cancel it when its progress is too slow, even if nothing arrives at all.

    Raises TooSlow if it is.
    """
    task = asyncio.ensure_future(transfer)
    try:
        while not (await asyncio.wait({task}, timeout=BETWEEN_CHECKS))[0]:
            progress.add(0)
        return task.result()
    finally:
        task.cancel()
