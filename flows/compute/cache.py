"""Whether blocks are kept in the workers' memory or read again for every pass."""

from collections.abc import Sequence
from typing import Any, Literal

from aucdist.errors import InputError

Cache = Literal["auto", "memory", "stream"]

FOR_ROWS = 0.5
"""The share of a worker's memory that rows may take. Dask begins to put things on disk at 0.6, and solvers keep some too."""

AT_ONCE = 4
"""Blocks that a thread has in memory while it streams: one in work, and the next as a file, decompressed and as a block."""


def streams(cache: Cache, memory: int, largest: int, rooms: Sequence[tuple[int, int]]) -> tuple[bool, str]:
    """Decide, and say why.

    Parameters
    ----------
    cache : str
        ``auto``, ``memory`` or ``stream``.
    memory, largest : int
        Bytes that all blocks take, and the largest of them.
    rooms : sequence of (int, int)
        Of each worker: its memory limit in bytes (0: none), and its threads.

    Returns
    -------
    stream : bool
    why : str

    Raises
    ------
    InputError
        If a worker has not even room to stream.
    """
    limited = all(limit for limit, _ in rooms)
    room = sum(limit for limit, _ in rooms)
    text = (
        f"{_size(memory)} of rows, {_size(room) if limited else 'no limit'} of memory on {_count(len(rooms), 'worker')}"
    )
    if cache == "memory" or (cache == "auto" and (not limited or memory <= FOR_ROWS * room)):
        return False, f"are kept in memory ({text})"
    tightest, threads = min(rooms, key=lambda one: (one[0] or float("inf")) / one[1])
    needed = AT_ONCE * largest * threads
    if tightest and needed > FOR_ROWS * tightest:
        raise InputError(
            f"blocks of up to {_size(largest)} are too large to be read one ahead by {_count(threads, 'thread')} in "
            f"{_size(tightest)} of memory, of which rows may take {FOR_ROWS:.0%}: write smaller shards (rows_per_shard), or give "
            "the workers more memory"
        )
    return True, f"are read again for every pass ({text})"


def rooms_of(client: Any) -> list[tuple[int, int]]:
    """Return memory limit and threads of each worker, or (None) of this process."""
    from aucdist.engine.dask import memory_here, memory_of_workers

    return [(memory_here(), 1)] if client is None else memory_of_workers(client)


def _size(n_bytes: int) -> str:
    power = min(max(n_bytes.bit_length() - 1, 0) // 10, 4)
    return f"{n_bytes / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
