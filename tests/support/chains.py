"""Chains of steps whose sums depend on the order of adding, so that equal bits mean the same order."""

import numpy as np

from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks

N_BLOCKS = 6


def rows():
    r = np.random.default_rng(0)
    y = np.where(r.random(300) < 0.2, 1, -1)
    return Block.of(r.normal(size=(300, 3)), y)


def load(index):
    return into_blocks(rows(), N_BLOCKS)[index]


def add(block, memory, value):
    """Leave the sum of all values so far, to which 1e16 and 1 do not add up in any order."""
    total = (0.0 if memory is None else memory) + value * (block.index + 1)
    return total, {"totals": [total], "sum": total, "index": [block.index]}


VALUES = (1e16, 1.0, -1e16, 0.1, 7.0)


def chain_of(blocks, values=VALUES):
    return [blocks.reduce(add, value) for value in values]


EXPECTED = chain_of(LocalBlocks(into_blocks(rows(), N_BLOCKS)))
