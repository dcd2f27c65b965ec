"""Where jobs run: here one after the other, as tasks on workers, or taking turns on blocks that all workers hold."""

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from aucdist.search.choice import Result
from aucdist.search.schedule import Job
from aucdist.search.splits import Sides
from flows.cv.jobs import attempt, failed

TURNS = 4  # so many fits at a time share the blocks: while one waits for the network, others compute
Done = Iterator[tuple[int, list[Result]]]
SidesOf = Callable[[Job], Sides]


def here(jobs: Sequence[Job], sides_of: SidesOf, work: Callable[..., list[Result]], *args: Any) -> Done:
    """Do jobs one after the other in this process.

    Parameters
    ----------
    jobs : sequence of Job
    sides_of : callable
        Returns the rows of a job.
    work : callable
        ``work(job, sides, *args)``
    *args

    Yields
    ------
    (int, list of dict)
        The position of a job and its results, as they come.
    """
    for i, job in enumerate(jobs):
        yield i, attempt(work, job, sides_of(job), *args)


def in_turns(jobs: Sequence[Job], sides_of: SidesOf, work: Callable[..., list[Result]], *args: Any) -> Done:
    """Do several jobs at a time in threads of this process, whose steps run on the workers; a failed one is tried again once.

    Parameters and results are those of `here`.
    """
    with ThreadPoolExecutor(TURNS) as pool:

        def submit(i: int) -> Future[list[Result]]:
            return pool.submit(attempt, work, jobs[i], sides_of(jobs[i]), *args)

        left = list(range(len(jobs)))[::-1]
        running = {submit(i): (i, False) for i in _take(left, TURNS)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                i, tried = running.pop(future)
                results = future.result()
                if not tried and _worth_another(results):
                    running[submit(i)] = (i, True)
                    continue
                yield i, results
                running |= {submit(k): (k, False) for k in _take(left, 1)}


def _take(left: list[int], n: int) -> list[int]:
    return [left.pop() for _ in range(min(n, len(left)))]


def on_workers(
    jobs: Sequence[Job], sides_of: SidesOf, work: Callable[..., list[Result]], *args: Any, client: Any
) -> Done:
    """Do jobs as tasks on the workers of a Dask client; a failed one is tried again once, on another worker if there is one.

    A job whose worker dies is given to another one by Dask itself. Parameters and results are those of `here`.
    """
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    running: dict[str, tuple[int, Any, bool]] = {}

    def submit(i: int, tried: bool, **where: Any) -> None:
        future = client.submit(work, jobs[i], sides_of(jobs[i]), *args, pure=False, **where)
        running[future.key] = (i, future, tried)
        future.add_done_callback(lambda f: done.put(f.key))

    try:
        for i in range(len(jobs)):
            submit(i, False)
        while running:
            i, future, tried = running.pop(done.get())
            try:
                results = future.result()
            except Exception as e:  # its workers died again and again, or the cluster is gone
                results = failed(jobs[i], e)
            if not tried and _worth_another(results):
                submit(i, True, workers=_others(client, future) or None, allow_other_workers=True)
                continue
            yield i, results
    finally:
        client.cancel([future for _, future, _ in running.values()])


def _others(client: Any, future: Any) -> list[str]:
    """Return the workers that did not do this task."""
    (mine,) = client.who_has([future]).values()
    return [address for address in client.scheduler_info(n_workers=-1)["workers"] if address not in mine]


def _worth_another(results: Sequence[Result]) -> bool:
    return any(result.get("again", False) for result in results)
