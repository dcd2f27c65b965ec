"""Blocks that are read again for every step: same numbers, two of them in memory, the next one read ahead."""

import os
import signal
import threading
import weakref

import numpy as np
import pytest

from aucdist.data.block import Block, into_blocks
from aucdist.data.storage import scratch
from aucdist.engine.blocks import LocalBlocks, StoredBlock
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.engine.steps import run_on_blocks
from aucdist.maps import BinExpander
from aucdist.maps.base import map_blocks
from aucdist.pairs.cutting_planes import AllPairs
from aucdist.solvers.base import solve

N_BLOCKS = 7


def data():
    r = np.random.default_rng(3)
    y = np.where(r.random(2000) < 0.1, 1, -1)
    return Block.of(r.normal(size=(2000, 6)) + 0.5 * (y[:, None] > 0), y)


def load(index):
    return into_blocks(data(), N_BLOCKS)[index]


def outcome(blocks, callback=None):
    solution = solve(AllPairs().rounds(blocks, 1e-2), tol=1e-4, max_passes=100, callback=callback)
    return solution.w.tobytes(), solution.certificate, solution.history.drop(columns="seconds").to_csv()


@pytest.fixture(scope="module")
def in_memory():
    return outcome(LocalBlocks.load(load, N_BLOCKS))


class Reader:
    """A loader that counts what it reads, and how many earlier blocks are alive when it is asked for one."""

    def __init__(self):
        self.read, self.made, self.most_alive = [], [], 0

    def __call__(self, index):
        self.read.append(index)
        self.most_alive = max(self.most_alive, sum(block() is not None for block in self.made))
        block = load(index)
        self.made.append(weakref.ref(block))
        return block


def count_rows(block, memory, add):
    total = (memory or 0) + add
    return total, {"rows": block.n_samples, "memory": [total], "ids": [block.row_id]}


@pytest.fixture(params=["copies", "no copies"])
def scratch_of(request, tmp_path, monkeypatch):
    """Copies on the local disk, and none."""
    monkeypatch.setattr(scratch, "SHARE_THAT_STAYS_FREE", 0.0)
    monkeypatch.setattr(scratch, "_is_memory", lambda folder: False)
    monkeypatch.setattr(scratch, "_scratch", scratch.Scratch(tmp_path, None if request.param == "copies" else 0))
    return request.param


def test_each_block_is_read_once_for_each_step_and_once_before_and_is_not_kept(scratch_of):
    reader = Reader()
    blocks = LocalBlocks.load(reader, N_BLOCKS, stream=True)
    assert (blocks.n_samples, blocks.n_features) == (2000, 6)
    for add, total in ((2, 2), (3, 5)):
        counted = blocks.reduce(count_rows, add)
        assert counted["rows"] == 2000
        assert counted["memory"] == [total] * N_BLOCKS
        assert [len(i) for i in counted["ids"]] == [i.n_samples for i in blocks.infos]
    assert reader.read == (1 if scratch_of == "copies" else 3) * list(range(N_BLOCKS))
    assert reader.most_alive <= 1  # the one that is worked on, while the next is read


def test_the_next_block_is_read_while_one_is_worked_on():
    asked = [threading.Event() for _ in range(3)]

    def loader(index):
        asked[index].set()
        return load(index)

    def step(block, memory):
        return None, {"overlap": [block.index == 2 or asked[block.index + 1].wait(10)]}

    stored = [StoredBlock(loader, i) for i in range(3)]
    assert run_on_blocks(step, stored, [None] * 3, (), range(3))[1].total() == {"overlap": [True] * 3}


def test_a_cluster_streams_the_same_fit_and_a_killed_worker_costs_time_only(in_memory):
    def kill(record):
        if record["round"] == 3:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    with local_client(2, memory_limit="1GiB") as client:
        blocks = DaskBlocks.load(client, load, N_BLOCKS, stream=True)
        parts = blocks._parts.futures
        assert len({holder for (holder,) in client.who_has(parts).values()}) == 2
        held = client.run_on_scheduler(lambda dask_scheduler: max(t.nbytes for t in dask_scheduler.tasks.values()))
        assert held < 2000 * 6 * 8 / N_BLOCKS
        assert outcome(blocks) == in_memory
        assert outcome(blocks, kill) == in_memory
        # Codes on the disk of a worker that was lost are made again elsewhere.
        fitted = BinExpander(bins=8).fit_blocks(LocalBlocks.load(load, N_BLOCKS))
        expected = outcome(map_blocks(LocalBlocks.load(load, N_BLOCKS), fitted))
        assert outcome(map_blocks(blocks, fitted), kill) == expected
