import numpy as np
from support.rounds import rounds_of

from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks
from aucdist.papers.sdcd.dual import SDCD

N_BLOCKS = 3


def dealt_blocks():
    r = np.random.default_rng(0)
    y = np.where(r.random(2000) < 0.1, 1, -1)
    X = r.normal(size=(2000, 7)) * (r.random((2000, 7)) < 0.5) + 0.5 * (y[:, None] > 0)
    return into_blocks(Block.of(X, y), N_BLOCKS)


def load_block(index):
    return dealt_blocks()[index]


def test_dual_variables_stay_on_workers(client):
    sdcd, states = rounds_of(SDCD), []
    for blocks in (LocalBlocks(dealt_blocks()), DaskBlocks.load(client, load_block, N_BLOCKS)):
        *_, state = sdcd(blocks, 1e-1, seed=0, epochs=3)
        states.append((state.w.tobytes(), state.dual))
    assert states[0] == states[1]
