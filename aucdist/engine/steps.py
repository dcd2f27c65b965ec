"""Run a step on blocks, by the threads of one process, and add up what it returns in a fixed binary tree.

**BLAS has one thread while a fit runs.** BLAS divides long products among its threads and adds up the parts in another order,
so the bits of a fit would depend on the number of cores. Its threads also wait for each other by spinning. If several fits or
other programs run at the same time, this takes many times as long as the product. So only `n_jobs` and the workers decide how
many threads a fit has.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from aucdist.data.block import Block
from aucdist.data.storage.scratch import Stored
from aucdist.parameters import Number

T = TypeVar("T")

Summary = Any
"""The value that a step returns for a block: one that supports ``+``, or a dict of such values, but not a tuple."""

MergedNode = tuple[int, int, Summary]
"""The level and the index of a node of the tree, and the merged summary of the blocks below it."""
N_JOBS = Number("other than 0 (-1: one thread for each core)", lambda n: n != 0, whole=True, optional=True)
MAX_HELPERS = 1024
"""The largest number of helper threads. Threads are started as they are needed and never wait for each other. A helper
that has not started is cancelled."""
Step = Callable[..., tuple[Any, Summary] | Summary]
BlockFunction = Callable[..., Summary]
"""``function(block, *args)``: a step that needs no memory and leaves none."""


class MergeTree:
    """Adds up summaries in the shape of a binary tree over the numbers of the blocks.

    The node at (level, index) stands for the blocks ``index * 2**level, ..., (index + 1) * 2**level - 1``. A node is
    added to its sibling as soon as both exist. The shape depends only on the number of blocks. So the sum has the
    same bits whether one process, its threads or many workers add up the summaries, and in whatever order they arrive.
    If summaries grow as they are added up, as counts of scores do, the sum of n of them costs n log n instead of n**2.
    """

    def __init__(self, nodes: Iterable[MergedNode] = ()):
        self._nodes: dict[tuple[int, int], Summary] = {}
        self._lock = threading.Lock()
        for node in nodes:
            self.add(*node)

    def add(self, level: int, index: int, summary: Summary) -> None:
        """Add a node, and merge it upwards as far as siblings exist. Any thread may call this."""
        while True:
            with self._lock:
                sibling = self._nodes.pop((level, index ^ 1), None)
                if sibling is None:
                    self._nodes[level, index] = summary
                    return
            summary = _sum(sibling, summary) if index & 1 else _sum(summary, sibling)
            level, index = level + 1, index >> 1

    def nodes(self) -> list[MergedNode]:
        """Return the nodes without siblings, in the order of their blocks: at most 2 log2(n) for n adjacent blocks."""
        ordered = sorted(self._nodes, key=lambda node: node[1] << node[0])
        return [(level, index, self._nodes[level, index]) for level, index in ordered]

    def total(self) -> Summary:
        """Return the sum over all blocks, which have to be numbered 0, 1, 2, ... without a gap."""
        *rest, (_, _, total) = self.nodes()
        for _, _, summary in reversed(rest):  # a node without a right sibling is treated as its parent
            total = _sum(summary, total)
        return total


def _sum(left: Summary, right: Summary) -> Summary:
    return {key: value + right[key] for key, value in left.items()} if isinstance(left, dict) else left + right


def without_rows(step: T) -> T:
    """Mark a step that uses only the memory of blocks.

    It gets the number of a block instead of the block, and no rows are read.
    """
    step.first_argument = "number"  # type: ignore[attr-defined]
    return step


def reads_rows_itself(step: T) -> T:
    """Mark a step that rarely needs the rows. It gets the stored block, which it can read if necessary."""
    step.first_argument = "source"  # type: ignore[attr-defined]
    return step


def first_argument(step: Step) -> str:
    """Return the first argument of a step: "rows", or "number" or "source" if the step is marked."""
    return getattr(step, "first_argument", "rows")


def memory_and_summary(result: tuple[Any, Summary] | Summary, before: Any) -> tuple[Any, Summary]:
    """Return the new memory of a block and the summary. If the step returned only its summary, the memory did not change."""
    return result if isinstance(result, tuple) else (before, result)


def number_of_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`, as in scikit-learn: None is 1, -1 is one for each core, -2 is one less.

    Raises
    ------
    InputError
        If `n_jobs` is 0 or not an integer.
    """
    N_JOBS.check("n_jobs", n_jobs)
    if n_jobs is None or n_jobs > 0:
        return n_jobs or 1
    from joblib import cpu_count  # type: ignore[import-untyped]  # imported here, because it loads asyncio

    return max(1, cpu_count() + 1 + n_jobs)


def run_on_blocks(
    step: Step,
    blocks: Sequence[Block | Stored[Block]],
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
    blocks : sequence of Block or Stored
        The blocks. Stored ones are read ahead, at most two for each thread.
    memories : sequence
        The memory of each block.
    args : sequence
        The other arguments of the step.
    numbers : sequence of int
        The numbers of the blocks in the data set.
    threads : int, default=1
        The number of blocks that are worked on at the same time. It does not change the result.
    stop : threading.Event, optional
        Once it is set, no further blocks are started.

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
    tree = MergeTree()
    instead: Sequence[Any] | None = None
    argument = first_argument(step)
    if argument == "number":
        instead = numbers
    elif argument == "source" or all(isinstance(block, Block) for block in blocks):
        instead = blocks
    with _blocks_in_turn(blocks, threads) if instead is None else nullcontext(instead.__getitem__) as take:

        def work(i: int) -> Any:
            """Run the step on a block. No variable refers to the block, so that its memory is freed before the next one."""
            memory, summary = memory_and_summary(step(take(i), memories[i], *args), memories[i])
            tree.add(0, numbers[i], summary)
            return memory

        return in_threads(work, len(blocks), threads, stop), tree


@contextmanager
def _blocks_in_turn(blocks: Sequence[Block | Stored[Block]], threads: int) -> Iterator[Callable[[int], Block]]:
    """Yield a function that returns a block by its position. Meanwhile, the next blocks are read ahead, one for each thread."""
    to_read = [i for i, block in enumerate(blocks) if not isinstance(block, Block)]
    reader, lock = ThreadPoolExecutor(min(threads, len(to_read)), "aucdist-read"), threading.Lock()
    upcoming, reads = iter(to_read), dict[int, Future[Block]]()

    def take(i: int) -> Block:
        """Return the block at a position once it has been read."""
        block = blocks[i]
        if isinstance(block, Block):
            return block
        with lock:
            while len(reads) <= threads and (ahead := next(upcoming, None)) is not None:
                reads[ahead] = reader.submit(blocks[ahead].read)  # type: ignore[union-attr]
            pending_read = reads.pop(i)
        return pending_read.result()

    try:
        yield take
    finally:
        reader.shutdown(wait=False, cancel_futures=True)


class Interrupted(Exception):
    """The work was stopped from outside before it was done."""


def in_threads(work: Callable[[int], T], n: int, threads: int, stop: threading.Event | None = None) -> list[T]:
    """Return the results of ``work(0)``, ..., ``work(n - 1)``, which this thread and ``threads - 1`` helpers call.

    The calls start in ascending order. After an error, no further calls start. If several calls fail, the error of the lowest
    number is raised, so that it does not depend on the threads.

    Raises
    ------
    Interrupted
        If `stop` was set before all calls had started.
    """
    turns, lock = iter(range(n)), threading.Lock()
    results: list[Any] = [None] * n
    errors: list[tuple[int, Exception]] = []
    ended = threading.Event()

    def work_on() -> None:
        """Call `work` for one number after the other, until there are none left, or there was an error."""
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
                results[i] = work(i)
            except Exception as error:
                errors.append((i, error))
                ended.set()

    helpers = [_helpers.submit(work_on) for _ in range(min(threads, n) - 1)]
    try:
        work_on()
    except BaseException:  # after Ctrl-C, the helpers are not awaited, because they end after their block
        ended.set()
        raise
    for helper in helpers:
        if not helper.cancel():  # a helper that has not started is cancelled instead of awaited
            helper.result()
    if errors:
        raise min(errors, key=lambda error: error[0])[1]
    return results


def _new_helpers() -> None:
    """Create the threads. A forked process has none of the threads of its parent."""
    global _helpers
    _helpers = ThreadPoolExecutor(MAX_HELPERS, "aucdist")


_helpers: ThreadPoolExecutor
_new_helpers()
os.register_at_fork(after_in_child=_new_helpers)


class _OneBlasThread:
    """A context in which BLAS has one thread in this process. Several threads may be in it, and the last one restores BLAS."""

    def __init__(self) -> None:
        self._users, self._lock = 0, threading.Lock()
        self._libraries: list[Any] | None = None
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            if self._libraries is None:  # finding the BLAS libraries of the process takes 10 ms, so it is done once
                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._before = [library.num_threads for library in self._libraries]
            self._set([1] * len(self._before))

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._set(self._before)

    def _set(self, threads: list[int]) -> None:
        for library, n in zip(self._libraries or (), threads, strict=True):
            # Since threadpoolctl 3.8, `set_num_threads` has an effect only in the thread that called it first, so that threads
            # do not undo each other's limits. Here `_users` ensures this, so the original function is called.
            getattr(library, "_real_set_num_threads", library.set_num_threads)(n)


one_blas_thread = _OneBlasThread()
