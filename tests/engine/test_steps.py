"""Threads over blocks: the same bits for any number of them, and errors that do not depend on them."""

import threading

import numpy as np
import pytest

from aucdist.data.block import partition
from aucdist.data.shards.simulate import simulate
from aucdist.engine.blocks import LocalBlocks, StoredBlock
from aucdist.engine.steps import Interrupted, in_threads, number_of_threads, run_step, without_rows
from aucdist.errors import InputError
from aucdist.estimators.scores import count_scores
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.cutting_planes import AllPairs

N_BLOCKS = 11
ROWS = simulate(3000, 6, 0.1, seed=2)
JOBS = (1, 2, 3, 16)


def load(index):
    return partition(ROWS, N_BLOCKS)[index]


def blocks(n_jobs, stream=False):
    return LocalBlocks.load(load, N_BLOCKS, stream=stream, n_jobs=n_jobs)


@pytest.mark.parametrize("stream", [False, True])
def test_any_number_of_threads_same_bits(stream):
    found = set()
    for n_jobs in JOBS:
        data = blocks(n_jobs, stream)
        fit = solve(AllPairs().rounds(data, 1e-2), tol=1e-4, max_passes=100)
        counts = count_scores(data, fit.w)
        found.add((fit.w.tobytes(), fit.certificate, fit.passes, counts.values.tobytes(), counts.pos.tobytes()))
    assert len(found) == 1


def remember(block, memory, add):
    return (memory or 0) + add + block.index, {"memory": [(memory or 0) + add + block.index], "index": [block.index]}


@without_rows
def recall(number, memory):
    return memory, {"memory": [memory], "number": [number]}


@pytest.mark.parametrize("stream", [False, True])
def test_memory_stays_with_its_block(stream):
    data = blocks(4, stream)
    for total in (3, 6):
        assert data.reduce(remember, 3)["index"] == list(range(N_BLOCKS))
        expected = {"memory": [total + i * (total // 3) for i in range(N_BLOCKS)], "number": list(range(N_BLOCKS))}
        assert data.reduce(recall) == expected


def test_blocks_are_worked_on_at_once():
    meeting = threading.Barrier(3)

    def step(block, memory):
        meeting.wait(60)  # three threads have to be here, or it breaks
        return None, {"n": 1}

    data = LocalBlocks(partition(ROWS, 3), n_jobs=3)
    assert data.reduce(step) == {"n": 3}


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
        run_step(lambda b, m: (None, {"n": 1}), [Reader(i) for i in range(N_BLOCKS)], [None] * N_BLOCKS, (), range(N_BLOCKS),
                 threads=threads)  # fmt: skip
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
            in_threads(work, N_BLOCKS, 4)


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

    with pytest.raises(Interrupted):
        in_threads(work, 5, 1, stop)
    assert seen == [0]
    in_threads(seen.append, 0, 1, stop)  # nothing is left to stop


def test_ctrl_c_in_a_step_arrives():
    def work(i):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_threads(work, 5, 2)


def test_a_step_may_reduce_other_blocks_by_threads():
    """Helpers never wait for helpers that have not begun."""
    inner = LocalBlocks(partition(ROWS, 3), n_jobs=3)

    def outer(block, memory):
        return None, inner.without_memory().reduce(lambda b, m: (None, {"n": b.n_samples}))

    assert LocalBlocks(partition(ROWS, 64), n_jobs=64).reduce(outer)["n"] == 64 * 3000


def test_what_cannot_be_read_is_an_error_for_any_number_of_threads():
    def failing(index):
        if index >= 4:
            raise InputError(f"shard {index} is altered")
        return load(index)

    for n_jobs in JOBS:
        with pytest.raises(InputError, match="shard 4 is altered"):
            LocalBlocks.load(failing, N_BLOCKS, stream=True, n_jobs=n_jobs)
        stored = [StoredBlock(failing, i, None) for i in range(N_BLOCKS)]
        with pytest.raises(InputError, match="shard 4 is altered"):
            run_step(remember, stored, [None] * N_BLOCKS, (1,), range(N_BLOCKS), threads=n_jobs)


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 1), (1, 1), (3, 3), (-1, 8), (-2, 7), (-20, 1)])
def test_n_jobs_counts_as_scikit_learn_does(n_jobs, threads, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    assert number_of_threads(n_jobs) == threads


@pytest.mark.parametrize("wrong", [0, 1.5, "all", True, np.float64(2)])
def test_other_n_jobs_are_refused(wrong):
    with pytest.raises(InputError, match="n_jobs is"):
        number_of_threads(wrong)
