"""Many small tasks of one kind, here or on workers, with their progress."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aucdist.data.shards.block_reader import ParallelMap
from aucdist.data.storage.retries import patient
from flows.progress.console import RunObserver, Tasks


def parallel_map(client: Any, observer: RunObserver) -> ParallelMap:
    """Return what calls a function on many things: on the workers of `client`, or (None) in this process.

    `observer` hears how many are done.
    """

    def each(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        for i, result in enumerate(_results(client, function, items), 1):
            observer.tasks(Tasks(i, len(items), 0, "", None))
            yield result

    return each


def _results(client: Any, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    if client is None:
        for item in items:
            with patient():
                result = function(item)
            yield result
        return
    from aucdist.engine.dask import map_on_workers

    yield from map_on_workers(client, function, items)
