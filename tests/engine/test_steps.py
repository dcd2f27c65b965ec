"""Threads over blocks: the same bits for any number of them, and errors that do not depend on them."""

import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import into_blocks
from aucdist.data.shards.sharding import simulate
from aucdist.engine import steps
from aucdist.engine.blocks import LocalBlocks, StoredBlock
from aucdist.errors import InputError
from aucdist.metrics.counts import ScoreCounts
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve

N_BLOCKS = 11
ROWS = simulate(3000, 6, 0.1, seed=2)
JOBS = (1, 2, 3, 16)


def load(index):
    return into_blocks(ROWS, N_BLOCKS)[index]


def blocks(n_jobs, stream=False):
    return LocalBlocks.load(load, N_BLOCKS, stream=stream, n_jobs=n_jobs)


def remember(block, memory, add):
    return (memory or 0) + add + block.index, {"memory": [(memory or 0) + add + block.index], "index": [block.index]}


@steps.without_rows
def recall(number, memory):
    return memory, {"memory": [memory], "number": [number]}


def test_blocks_are_worked_on_at_once():
    meeting = threading.Barrier(3)

    def step(block, memory):
        meeting.wait(60)  # three threads have to be here, or it breaks
        return None, {"n": 1}

    assert LocalBlocks(into_blocks(ROWS, 3), n_jobs=3).reduce(step) == {"n": 3}


def test_no_more_blocks_are_in_memory_than_two_for_each_thread():
    alive, most, lock = set(), [0], threading.Lock()

    class Tracked:
        """Stands for the memory of a block that was read."""

        def __init__(self, block):
            self.block = block
            with lock:
                alive.add(id(self))
                most[0] = max(most[0], len(alive))

        def __del__(self):
            alive.discard(id(self))

    class Reader:
        def __init__(self, index):
            self.index = index

        def read(self):
            return Tracked(load(self.index))

    for threads in (1, 3):
        most[0] = 0
        readers = [Reader(i) for i in range(N_BLOCKS)]
        steps.run_on_blocks(
            lambda b, m: (None, {"n": 1}), readers, [None] * N_BLOCKS, (), range(N_BLOCKS), threads=threads
        )
        assert 1 <= most[0] <= 2 * threads + 1  # and the one that a thread is about to let go
        assert not alive


def test_the_error_of_the_first_block_is_raised_whatever_the_threads():
    begun = threading.Barrier(4)

    def work(i):
        if i < 4:
            begun.wait(60)
            raise ValueError(f"block {i}")

    for _ in range(10):
        with pytest.raises(ValueError, match="block 0"):
            steps.in_threads(work, N_BLOCKS, 4)


def test_after_an_error_no_more_blocks_are_begun_and_memory_is_as_it_was():
    seen = []

    def fails(block, memory):
        seen.append(block.index)
        if block.index == 2:
            raise ValueError("no more")
        return 7, {"n": 1}

    data = blocks(1)
    data.reduce(remember, 1)
    before = data.reduce(recall)
    with pytest.raises(ValueError, match="no more"):
        data.reduce(fails)
    assert seen == [0, 1, 2]
    assert data.reduce(recall) == before


def test_an_interrupted_step_ends_with_the_block_it_is_at():
    stop, seen = threading.Event(), []

    def work(i):
        seen.append(i)
        stop.set()

    with pytest.raises(steps.Interrupted):
        steps.in_threads(work, 5, 1, stop)
    assert seen == [0]
    steps.in_threads(seen.append, 0, 1, stop)  # nothing is left to stop


def test_ctrl_c_in_a_step_arrives():
    def work(i):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        steps.in_threads(work, 5, 2)


def test_a_step_may_reduce_other_blocks_by_threads():
    """Helpers never wait for helpers that have not begun."""
    inner = LocalBlocks(into_blocks(ROWS, 3), n_jobs=3)

    def outer(block, memory):
        return None, inner.without_memory().reduce(lambda b, m: (None, {"n": b.n_samples}))

    assert LocalBlocks(into_blocks(ROWS, 64), n_jobs=64).reduce(outer)["n"] == 64 * 3000


def test_what_cannot_be_read_is_an_error_for_any_number_of_threads():
    def failing(index):
        if index >= 4:
            raise InputError(f"shard {index} is altered")
        return load(index)

    for n_jobs in JOBS:
        with pytest.raises(InputError, match="shard 4 is altered"):
            LocalBlocks.load(failing, N_BLOCKS, stream=True, n_jobs=n_jobs)
        stored = [StoredBlock(failing, i) for i in range(N_BLOCKS)]
        with pytest.raises(InputError, match="shard 4 is altered"):
            steps.run_on_blocks(remember, stored, [None] * N_BLOCKS, (1,), range(N_BLOCKS), threads=n_jobs)


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 1), (1, 1), (3, 3), (-1, 8), (-2, 7), (-20, 1)])
def test_n_jobs_counts_as_scikit_learn_does(n_jobs, threads, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    assert steps.number_of_threads(n_jobs) == threads


# ---- summaries are added up in one shape, in any process and order ----------------------------


HUGE_AND_SMALL = [1e16, 1.0, -1e16, 1.0, 3.0, 1e-3, 7e15]


def by_definition(summaries):
    """Split at the largest power of two below the number of blocks, and add the sums of both sides."""
    if len(summaries) == 1:
        return summaries[0]
    half = 1
    while 2 * half < len(summaries):
        half *= 2
    left, right = by_definition(summaries[:half]), by_definition(summaries[half:])
    return {key: left[key] + right[key] for key in left}


def merge(summaries):
    """Return the sum of the summaries of blocks 0, 1, 2, ... in the shape of the tree."""
    tree = steps.MergeTree()
    for number, summary in enumerate(summaries):
        tree.add(0, number, summary)
    return tree.total()


def of(n):
    return [{"x": HUGE_AND_SMALL[i % 7] * (i + 1), "order": [i]} for i in range(n)]


@given(st.integers(1, 70), st.integers(1, 6), st.randoms(use_true_random=False))
def test_neither_order_nor_workers_change_a_bit(n, n_workers, random):
    numbers = list(range(n))
    random.shuffle(numbers)
    nodes = []
    for worker in range(n_workers):
        tree = steps.MergeTree()
        for number in numbers[worker::n_workers]:
            tree.add(0, number, of(n)[number])
        nodes += tree.nodes()
    random.shuffle(nodes)
    assert steps.MergeTree(nodes).total() == by_definition(of(n))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 100, 1000])
def test_adjacent_blocks_come_as_few_nodes(n):
    for first in (0, 1, 5, 511):
        tree = steps.MergeTree((0, number, {"n": 1}) for number in range(first, first + n))
        assert len(tree.nodes()) <= max(1, 2 * np.log2(n))
        assert sum(summary["n"] for _, _, summary in tree.nodes()) == n


def test_any_thread_may_add():
    tree, n = steps.MergeTree(), 400
    start = threading.Barrier(4)

    def add(first):
        start.wait()
        for number in range(first, n, 4):
            tree.add(0, number, of(n)[number])

    threads = [threading.Thread(target=add, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tree.total() == by_definition(of(n))


class Counted(ScoreCounts):
    """Notes how many values were added up."""

    added = 0

    def __add__(self, other):
        Counted.added += len(self.values) + len(other.values)
        merged = super().__add__(other)
        return Counted(merged.values, merged.pos, merged.neg, merged.rows_pos, merged.rows_neg)


def test_counts_of_scores_cost_n_log_n():
    n_blocks, rows = 64, 10
    scores = np.random.default_rng(0).permutation(n_blocks * rows).reshape(n_blocks, rows).astype(float)
    counts = [ScoreCounts.from_scores(np.ones(rows), s) for s in scores]
    total = merge([{"counts": Counted(c.values, c.pos, c.neg, c.rows_pos, c.rows_neg)} for c in counts])["counts"]
    np.testing.assert_array_equal(total.values, np.arange(n_blocks * rows))
    assert Counted.added == n_blocks * rows * 6  # log2(64); from the left it would be 32.5 times n_blocks * rows


# ---- BLAS has one thread while a fit runs, so that no bit depends on the number of cores ------


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS takes no number of threads")
        yield


def test_one_thread_while_the_context_lasts(two_threads):
    with steps.one_blas_thread:
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with pytest.raises(ValueError, match="stop"), steps.one_blas_thread:
        raise ValueError("stop")
    assert blas_threads() == {2}


def test_the_last_of_several_threads_sets_it_back(two_threads):
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with steps.one_blas_thread:
            inside.set()
            leave.wait(60)

    other = threading.Thread(target=stay)
    with steps.one_blas_thread:
        other.start()
        assert inside.wait(60)
    assert blas_threads() == {1}  # the first to come has left
    leave.set()
    other.join()
    assert blas_threads() == {2}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("y", ["two classes", "three classes"])
def test_a_fit_of_long_vectors_has_the_same_bits_for_any_number_of_threads(y):
    """Vectors of more than 10 000 numbers, and products of fewer rows of them, are split up by OpenBLAS."""
    X = np.random.default_rng(0).normal(size=(60, 20_001))
    labels = np.arange(60) % (2 if y == "two classes" else 3)
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            models.append(PairwiseHingeClassifier(lam=1e-3, max_passes=8, tol=1e-9).fit(X, labels))
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes()
    if y == "two classes":
        assert models[0].certificate_ == models[1].certificate_
    else:
        assert models[0].certificates_ == models[1].certificates_


def test_rounds_have_one_thread(two_threads):
    rng = np.random.default_rng(1)
    blocks = LocalBlocks.of(rng.normal(size=(50, 3)), np.where(np.arange(50) % 3, -1, 1), n_blocks=2)
    seen = []

    def watched():
        for state in AllPairs().rounds(blocks, 1e-2):
            seen.append(blas_threads())
            yield state

    solve(watched(), tol=1e-3, max_passes=20)
    assert seen
    assert all(threads == {1} for threads in seen)
