"""Run a step on blocks, by the threads of one process."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
from typing import Any, Protocol

import joblib  # type: ignore[import-untyped]

from aucdist.data.block import Block
from aucdist.engine.merge import MergeTree, Summary
from aucdist.errors import InputError

Step = Callable[..., tuple[Any, Summary]]


class Readable(Protocol):
    """A block that is read each time a step needs it."""

    def read(self) -> Block:
        """Read the block."""


def without_rows(step: Step) -> Step:
    """Mark a step that works on the blocks' memory alone: it gets each block's number in its place, and nothing is read."""
    step.without_rows = True  # type: ignore[attr-defined]
    return step


def reads_rows_itself(step: Step) -> Step:
    """Mark a step that seldom needs the rows: it gets a stored block as it is, to read it or not, in place of its rows."""
    step.reads_rows_itself = True  # type: ignore[attr-defined]
    return step


def number_of_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for, as scikit-learn counts: None is 1, -1 is one for each core, -2 one less.

    Raises
    ------
    InputError
        If it is 0, or no integer.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise InputError(
            f"n_jobs is {n_jobs!r}; None or an integer other than 0 is needed (-1: one thread for each core)"
        )
    return n_jobs if n_jobs > 0 else max(1, joblib.cpu_count() + 1 + n_jobs)


def run_step(
    step: Step,
    blocks: Sequence[Block | Readable],
    memories: Sequence[Any],
    args: Sequence[Any],
    numbers: Sequence[int],
    *,
    threads: int = 1,
    stop: threading.Event | None = None,
) -> tuple[list[Any], MergeTree]:
    """Run a step on some blocks of a data set.

    Parameters
    ----------
    blocks : sequence of Block or Readable
        Those that are read are read ahead: there are at most two in memory for each thread.
    memories : sequence
        The memory of each block.
    args : sequence
        The other arguments of the step.
    numbers : sequence of int
        The numbers of the blocks in the data set.
    threads : int, default=1
        How many blocks are worked on at once. It does not change the bits.
    stop : threading.Event, optional
        Once set, no more blocks are started.

    Returns
    -------
    memories : list
        The new memory of each block.
    tree : MergeTree
        The summaries, merged as far as the numbers are neighbours.

    Raises
    ------
    Interrupted
        If `stop` was set before all blocks were started.
    """
    after: list[Any] = [None] * len(blocks)
    tree = MergeTree()
    instead: Sequence[Any] | None = None
    if getattr(step, "without_rows", False):
        instead = numbers
    elif getattr(step, "reads_rows_itself", False) or all(isinstance(block, Block) for block in blocks):
        instead = blocks
    with _blocks_in_turn(blocks, threads) if instead is None else nullcontext(instead.__getitem__) as take:

        def work(i: int) -> None:
            # No name for the block: it has to be gone when the next one is waited for.
            after[i], summary = step(take(i), memories[i], *args)
            tree.add(0, numbers[i], summary)

        in_threads(work, len(blocks), threads, stop)
    return after, tree


@contextmanager
def _blocks_in_turn(blocks: Sequence[Block | Readable], threads: int) -> Iterator[Callable[[int], Block]]:
    """Give a function that returns a block by its position; as many as there are threads are read ahead of the last one taken."""
    to_read = [i for i, block in enumerate(blocks) if not isinstance(block, Block)]
    reader, lock = ThreadPoolExecutor(min(threads, len(to_read)), "aucdist-read"), threading.Lock()
    upcoming, reads = iter(to_read), dict[int, Future[Block]]()

    def take(i: int) -> Block:
        block = blocks[i]
        if isinstance(block, Block):
            return block
        with lock:
            while len(reads) <= threads and (ahead := next(upcoming, None)) is not None:
                reads[ahead] = reader.submit(blocks[ahead].read)  # type: ignore[union-attr]
            mine = reads.pop(i)
        return mine.result()

    try:
        yield take
    finally:
        reader.shutdown(wait=False, cancel_futures=True)


class Interrupted(Exception):
    """The work was stopped from outside before it was done."""


def in_threads(work: Callable[[int], None], n: int, threads: int, stop: threading.Event | None = None) -> None:
    """Call ``work(0)``, ..., ``work(n - 1)``, by this thread and as many helpers as make `threads`.

    The numbers are handed out in ascending order. After an error no more are, and of several errors the one of the lowest number
    is raised, so that it does not depend on the threads.

    Raises
    ------
    Interrupted
        If `stop` was set before all were started.
    """
    if min(threads, n) == 1:  # nothing to share: a step on few rows takes less than the locks would
        for i in range(n):
            if stop is not None and stop.is_set():
                raise Interrupted
            work(i)
        return
    turns, lock = iter(range(n)), threading.Lock()
    errors: list[tuple[int, Exception]] = []
    ended = threading.Event()

    def work_on() -> None:
        while not ended.is_set():
            with lock:
                i = next(turns, None)
            if i is None:
                return
            if stop is not None and stop.is_set():
                errors.append((i, Interrupted()))
                ended.set()
                return
            try:
                work(i)
            except Exception as error:
                errors.append((i, error))
                ended.set()

    helpers = [_helpers.submit(work_on) for _ in range(min(threads, n) - 1)]
    try:
        work_on()
    except BaseException:  # Ctrl-C: nobody waits for the helpers, which end after their block
        ended.set()
        raise
    for helper in helpers:
        if not helper.cancel():  # one that has not started is not needed any more
            helper.result()
    if errors:
        raise min(errors, key=lambda found: found[0])[1]


class _Helpers:
    """Threads that help, started as they are needed. They never wait for each other.

    In place of a `ThreadPoolExecutor`, whose threads the interpreter waits for when it ends: a signal whose handler raises while
    one is being started leaves a thread there that nobody wakes, and the process never ends. These are daemons.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Future[None], Callable[[], None]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Let a thread call a function."""
        future: Future[None] = Future()
        self._tasks.put((future, work))
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._work, name="aucdist", daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            future, work = self._tasks.get()
            if future.set_running_or_notify_cancel():
                try:
                    work()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)
            del future, work  # what they hold must not live until the next task
            self._idle.release()


_helpers = _Helpers()


def _forget_threads() -> None:
    """A forked process has none of its parent's threads."""
    global _helpers
    _helpers = _Helpers()


os.register_at_fork(after_in_child=_forget_threads)
