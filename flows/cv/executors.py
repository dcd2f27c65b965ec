"""Where the jobs of a search run: one after the other here, as tasks on workers, or several at a time on shared blocks."""

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
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

        def submit(i: int) -> Future[list[Result]]:
            return pool.submit(attempt, work, jobs[i], sides_of(jobs[i]), *args)

        waiting = list(range(len(jobs)))[::-1]
        running = {submit(i): (i, False) for i in _pop(waiting, CONCURRENT_FITS)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                i, retried = running.pop(future)
                results = future.result()
                if not retried and _can_retry(results):
                    running[submit(i)] = (i, True)
                    continue
                yield i, results
                running |= {submit(k): (k, False) for k in _pop(waiting, 1)}


def _pop(waiting: list[int], n: int) -> list[int]:
    return [waiting.pop() for _ in range(min(n, len(waiting)))]


def run_on_workers(
    jobs: Sequence[FitJob], sides_of: SidesOf, work: Callable[..., list[Result]], *args: Any, client: Any
) -> JobResults:
    """Do jobs as tasks on the workers of a Dask client; a failed job is retried once, on another worker if there is one.

    A job whose worker dies is given to another one by Dask itself. Parameters and results are those of `run_here`.
    """
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    running: dict[str, tuple[int, Any, bool]] = {}

    def submit(i: int, retried: bool, **options: Any) -> None:
        future = client.submit(work, jobs[i], sides_of(jobs[i]), *args, pure=False, **options)
        running[future.key] = (i, future, retried)
        future.add_done_callback(lambda f: done.put(f.key))

    try:
        for i in range(len(jobs)):
            submit(i, False)
        while running:
            i, future, retried = running.pop(done.get())
            try:
                results = future.result()
            except Exception as e:  # its workers died again and again, or the cluster is gone
                results = failed(jobs[i], e)
            if not retried and _can_retry(results):
                submit(i, True, workers=_other_workers(client, future) or None, allow_other_workers=True)
                continue
            yield i, results
    finally:
        client.cancel([future for _, future, _ in running.values()])


def _other_workers(client: Any, future: Any) -> list[str]:
    """Return the addresses of the workers that did not run a task."""
    (used,) = client.who_has([future]).values()
    return [address for address in client.scheduler_info(n_workers=-1)["workers"] if address not in used]


def _can_retry(results: Sequence[Result]) -> bool:
    return any(result.get("again", False) for result in results)
