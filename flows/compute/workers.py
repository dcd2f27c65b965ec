"""The workers of a run: a function on many items there, and whether blocks stay in their memory or are streamed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aucdist.data.shards.reading import ParallelMap
from aucdist.data.storage.faults import patient
from aucdist.engine.steps import number_of_threads
from aucdist.errors import InputError
from flows.config.data import CacheMode
from flows.progress.console import RunObserver, Tasks


@dataclass(frozen=True)
class Workers:
    """Where a run does its work.

    `client`: None: this process does everything.
    `scratch`: a folder or URL that every worker can read and write; empty without a client.
    `n_jobs`: threads that work on blocks in this process, where there is no client; -1: one for each core.
    """

    client: Any = None
    scratch: str = ""
    n_jobs: int = 1

    def parallel_map(self, observer: RunObserver | None = None) -> ParallelMap:
        """Return a `map` over the workers (or in this process): results come in order.

        `observer`: is called with the number of finished items after each.
        """

        def parallel_map(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
            for i, result in enumerate(_results(self.client, function, items), 1):
                if observer is not None:
                    observer.tasks(Tasks(i, len(items), 0, "", None))
                yield result

        return parallel_map

    def hold(self, items: Sequence[Any]) -> Sequence[Any]:
        """Put small objects on the workers, and return what `parallel_map` takes in place of each; here they stay."""
        if self.client is None:
            return list(items)
        from aucdist.engine.dask import place_items

        return place_items(self.client, items)


def _results(client: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    if client is None:
        for item in items:
            with patient():
                result = function(item)
            yield result
        return
    from aucdist.engine.dask import map_on_workers

    yield from map_on_workers(client, function, items)


# ---- memory or streaming -----------------------------------------------------------------------------------------------


SHARE_FOR_ROWS = 0.5
"""The share of a worker's memory that rows may take. Dask spills to disk from 0.6 on, and solvers need some memory too."""

BLOCKS_WHILE_STREAMING = 4
"""Blocks that a thread has in memory while it streams: the current one, and the next as a file, decompressed and as a block."""


def choose_cache(
    mode: CacheMode, n_bytes: int, largest_block: int, worker_memory: Sequence[tuple[int, int]]
) -> tuple[bool, str]:
    """Decide whether blocks are streamed, and say why.

    `mode`: {"auto", "memory", "stream"}.
    `n_bytes` and `largest_block`: bytes that all blocks take in memory, and the largest of them.
    `worker_memory`: of each worker: its memory limit in bytes (0: none), and its threads.
    Returns `stream`; `why`, the rest of a sentence whose subject is the rows.
    Raises InputError if a worker has too little memory even to stream.
    """
    limited = all(limit for limit, _ in worker_memory)
    total = sum(limit for limit, _ in worker_memory)
    text = (
        f"{_size(n_bytes)} of rows, {_size(total) if limited else 'no limit'} of memory on "
        f"{_count(len(worker_memory), 'worker')}"
    )
    if mode == "memory" or (mode == "auto" and (not limited or n_bytes <= SHARE_FOR_ROWS * total)):
        return False, f"are kept in memory ({text})"
    tightest, threads = min(worker_memory, key=lambda one: (one[0] or float("inf")) / one[1])
    needed = BLOCKS_WHILE_STREAMING * largest_block * threads
    if tightest and needed > SHARE_FOR_ROWS * tightest:
        raise InputError(
            f"blocks of up to {_size(largest_block)} are too large to be read one ahead by {_count(threads, 'thread')} in "
            f"{_size(tightest)} of memory, of which rows may take {SHARE_FOR_ROWS:.0%}: write smaller shards (rows_per_shard), "
            "or give the workers more memory"
        )
    return True, f"are streamed ({text})"


def worker_memory(client: Any) -> list[tuple[int, int]]:
    """Return memory limit (bytes; 0: none) and threads of each worker, or (client None) of this process."""
    from aucdist.engine.dask import memory_here, memory_of_workers

    return [(memory_here(), 1)] if client is None else memory_of_workers(client)


def threads_that_fit(n_jobs: int, largest_block: int) -> int:
    """Return the number of threads that `n_jobs` means, or as many fewer as this process has memory for while it streams."""
    from aucdist.engine.dask import memory_here

    fit = int(SHARE_FOR_ROWS * memory_here() // (BLOCKS_WHILE_STREAMING * max(largest_block, 1)))
    return max(1, min(number_of_threads(n_jobs), fit))


def _size(n_bytes: int) -> str:
    power = min(max(n_bytes.bit_length() - 1, 0) // 10, 4)
    return f"{n_bytes / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
