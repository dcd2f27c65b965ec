import copy
import pickle

import numpy as np
import pytest
from support.scratch_room import start_anew

from aucdist.data.block import Block, partition
from aucdist.engine.blocks import LocalBlocks, StoredBlock, without_rows
from aucdist.engine.dask import DaskBlocks
from aucdist.engine.view import ChangedBlock, ViewBlocks


def parts():
    X = np.arange(24.0).reshape(12, 2)
    return partition(Block.of(X, np.where(np.arange(12) < 4, 1, -1)), 3)


def load(index):
    return parts()[index]


def even_rows_doubled(block):
    return block.take(np.flatnonzero(block.row_id % 2 == 0), index=block.index).with_X(
        2 * block.X[block.row_id % 2 == 0]
    )


def total(block, memory, factor):
    memory = 1 if memory is None else memory + 1
    return memory, {"sum": factor * block.X.sum(), "calls": [memory], "index": [block.index]}


@pytest.fixture
def room():
    """Copies within a limit, which the test sets."""
    yield start_anew
    start_anew()


@pytest.mark.parametrize("limit", [None, 0])
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_steps_see_what_was_made_and_keep_their_memory(there, on_disk, limit, request, room):
    room(limit)
    if there:
        blocks = DaskBlocks.load(request.getfixturevalue("client"), load, 3, stream=on_disk)
    else:
        blocks = LocalBlocks.load(load, 3, stream=on_disk)
    made = ViewBlocks(blocks, even_rows_doubled, keep="disk" if on_disk else "memory")
    assert made.lasting != on_disk
    assert (made.n_blocks, made.n_samples, made.n_pos, made.n_features) == (3, 6, 2, 2)
    every = np.arange(24.0).reshape(12, 2)[::2]
    assert made.reduce(total, 1.0) == {"sum": 2 * every.sum(), "calls": [1, 1, 1], "index": [0, 1, 2]}
    assert made.reduce(total, 3.0)["calls"] == [2, 2, 2]
    assert made.without_memory().reduce(total, 1.0)["calls"] == [1, 1, 1]
    assert made.reduce(total, 1.0)["calls"] == [3, 3, 3]
    # What was made can be changed again, and the blocks it came from are as they were.
    again = ViewBlocks(made, even_rows_doubled)
    assert not isinstance(again._source, ViewBlocks)  # steps go through one layer
    assert again.reduce(total, 1.0)["sum"] == 4 * every.sum()
    assert again.without_memory().reduce(total, 1.0)["calls"] == [1, 1, 1]
    fork = again.fork()
    assert fork.reduce(total, 1.0)["calls"] == again.reduce(total, 1.0)["calls"] == [2, 2, 2]
    assert blocks.reduce(total, 1.0)["sum"] == 276.0


N_MADE = []


def counted(block):
    N_MADE.append(block.index)
    return even_rows_doubled(block)


@without_rows
def number_of(number, memory):
    return memory, {"numbers": [number]}


@pytest.mark.parametrize(("limit", "times"), [(None, 1), (0, 3)])
def test_what_is_made_of_stored_blocks_is_made_once_where_the_disk_has_room(limit, times, room):
    room(limit)
    N_MADE.clear()
    made = ViewBlocks(LocalBlocks.load(load, 3, stream=True), counted, keep="disk")
    for fit in (made, made.without_memory()):
        assert fit.reduce(total, 1.0)["calls"] == [1, 1, 1]
    assert sorted(N_MADE) == sorted(times * [0, 1, 2])
    assert made.reduce(number_of)["numbers"] == [0, 1, 2]
    assert len(N_MADE) == 3 * times  # a step without rows has none made


def test_a_made_block_that_travels_is_made_again_where_it_arrives(room):
    N_MADE.clear()
    stored = StoredBlock.first_read(load, 0)
    made = ChangedBlock(None, counted, True)
    made.block(stored)
    for here in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        N_MADE.clear()
        for _ in range(2):
            np.testing.assert_array_equal(here.block(stored).X, made.block(stored).X)
        assert N_MADE == [0]
