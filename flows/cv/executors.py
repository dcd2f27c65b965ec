"""Where the jobs of a search run: one after the other here, as tasks on workers, or several at a time on shared blocks."""

import itertools
import queue
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aucdist.search.choice import Result
from aucdist.search.folds import Sides
from aucdist.search.schedule import FitJob
from flows.cv.jobs import attempt, failed

CONCURRENT_FITS = 4
"""Fits at a time that share the blocks: while one waits for the network, others compute."""

JobResults = Iterator[tuple[int, list[Result]]]
SidesOf = Callable[[FitJob], Sides]


def run_here(jobs: Sequence[FitJob], sides_of: SidesOf, work: Callable[..., list[Result]], *args: Any) -> JobResults:
    """Do jobs one after the other in this process.

    `sides_of`: returns the rows of a job.
    `work`: ``work(job, sides, *args)``.
    Yields (int, list of dict): the position of a job and its results, as they are done.
    """
    for i, job in enumerate(jobs):
        yield i, attempt(work, job, sides_of(job), *args)


def run_in_threads(
    jobs: Sequence[FitJob], sides_of: SidesOf, work: Callable[..., list[Result]], *args: Any
) -> JobResults:
    """Do several jobs at a time in threads of this process, whose steps run on the workers; a failed job is retried once.

    Parameters and results are those of `run_here`.
    """
    with ThreadPoolExecutor(CONCURRENT_FITS) as pool:

        def submit(i: int, before: Any) -> Any:
            return pool.submit(attempt, work, jobs[i], sides_of(jobs[i]), *args)

        yield from _as_done(jobs, submit, CONCURRENT_FITS)


def run_on_workers(
    jobs: Sequence[FitJob], sides_of: SidesOf, work: Callable[..., list[Result]], *args: Any, client: Any
) -> JobResults:
    """Do jobs as tasks on the workers of a Dask client; a failed job is retried once, on another worker if there is one.

    A job whose worker dies is given to another one by Dask itself. Parameters and results are those of `run_here`.
    """

    def submit(i: int, before: Any) -> Any:
        options: dict[str, Any] = {}
        if before is not None:
            (used,) = client.who_has([before]).values()
            others = [address for address in client.scheduler_info(n_workers=-1)["workers"] if address not in used]
            options = {"workers": others or None, "allow_other_workers": True}
        return client.submit(work, jobs[i], sides_of(jobs[i]), *args, pure=False, **options)

    yield from _as_done(jobs, submit, len(jobs), client.cancel)


def _as_done(
    jobs: Sequence[FitJob],
    submit: Callable[[int, Any], Any],
    most: int,
    cancel: Callable[[list[Any]], Any] = lambda futures: None,
) -> JobResults:
    """Yield the results of jobs as they are done, `most` of them at a time.

    `submit`: ``submit(i, before)`` returns a future of the job at position i; `before` is that of its first attempt, or None.
    """
    done: queue.SimpleQueue[int] = queue.SimpleQueue()
    running: dict[int, tuple[int, Any, bool]] = {}
    waiting, numbers = deque(range(len(jobs))), itertools.count()

    def start(i: int, before: Any) -> None:
        number, future = next(numbers), submit(i, before)
        running[number] = (i, future, before is not None)
        future.add_done_callback(lambda _: done.put(number))

    try:
        while waiting or running:
            while waiting and len(running) < most:
                start(waiting.popleft(), None)
            i, future, retried = running.pop(done.get())
            try:
                results: list[Result] = future.result()
            except Exception as e:  # its workers died again and again, or the cluster is gone
                results = failed(jobs[i], e)
            if not retried and any(result.get("again", False) for result in results):
                start(i, future)
            else:
                yield i, results
    finally:
        cancel([future for _, future, _ in running.values()])
