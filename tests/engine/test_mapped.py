import numpy as np
import pytest

from aucdist.data.block import Block, partition
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks
from aucdist.engine.mapped import MappedBlocks


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


@pytest.mark.parametrize("there", [False, True])
def test_steps_see_what_was_made_and_keep_their_memory(there, request):
    blocks = DaskBlocks.load(request.getfixturevalue("client"), load, 3) if there else LocalBlocks(parts())
    made = MappedBlocks(blocks, even_rows_doubled)
    assert (made.n_blocks, made.n_samples, made.n_pos, made.n_features) == (3, 6, 2, 2)
    every = np.arange(24.0).reshape(12, 2)[::2]
    assert made.reduce(total, 1.0) == {"sum": 2 * every.sum(), "calls": [1, 1, 1], "index": [0, 1, 2]}
    assert made.reduce(total, 3.0)["calls"] == [2, 2, 2]
    assert made.without_memory().reduce(total, 1.0)["calls"] == [1, 1, 1]
    assert made.reduce(total, 1.0)["calls"] == [3, 3, 3]
    # What was made can be changed again, and the blocks it came from are as they were.
    again = MappedBlocks(made, even_rows_doubled)
    assert not isinstance(again._made, MappedBlocks)  # steps go through one layer
    assert again.reduce(total, 1.0)["sum"] == 4 * every.sum()
    assert again.without_memory().reduce(total, 1.0)["calls"] == [1, 1, 1]
    fork = again.fork()
    assert fork.reduce(total, 1.0)["calls"] == again.reduce(total, 1.0)["calls"] == [2, 2, 2]
    assert blocks.reduce(total, 1.0)["sum"] == 276.0
