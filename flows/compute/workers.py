"""The workers of a run, and the one way to call a function on many items there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aucdist.data.shards.reading import ParallelMap
from aucdist.data.storage.faults import patient
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
