"""Run algorithms that take steps along single rows: steps on every block, and then the average of the blocks' weights.

With one block, this is the algorithm as its paper prints it. With several blocks, each block takes steps along its own rows
from the same weights. The weights that the blocks reach are averaged in proportion to their numbers of rows.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.kernels.random import shuffle
from aucdist.kernels.rows import Rows


class LabelledRows(NamedTuple):
    """The rows of a block in the form that kernels read, with labels -1 or +1 (int8) and weights (float64)."""

    rows: Rows
    y: ndarray
    weight: ndarray

    @classmethod
    def of(cls, block: Block) -> "LabelledRows":
        """Return the rows of a block."""
        return cls(block.rows, block.y, block.weights())


Epoch = Callable[[Block, Any, ndarray, int], tuple[Any, ndarray, Summary]]
"""The steps of an epoch on a block, a function that is sent to the blocks with its settings (`functools.partial`).

``epoch(block, memory, w, seed)`` returns the block's memory, its weights after the steps, and the other sums of the summary. The
memory of the epoch before is not changed, and the weights to start from may be; `seed` is of all that is drawn at random."""


def run_epoch(
    block: Block, memory: Any, epoch: Epoch, w: ndarray, n_samples: int, seeds: tuple[int, int]
) -> tuple[Any, Summary]:
    """Take the steps of an epoch on a block, and return the block's part of the averaged weights."""
    memory, w, summary = epoch(block, memory, w.copy(), block_seed(*seeds, block.index))
    return memory, {"w": block.n_samples / n_samples * w, **summary}


def epochs(blocks: Blocks, epoch: Epoch, w: ndarray, seed: int, *, first: int = 1) -> Iterator[Summary]:
    """Yield the sum of the blocks' summaries after each epoch, in which `w` is the averaged weights. The iterator is endless.

    Parameters
    ----------
    blocks : Blocks
        The rows. No other fit may use the memories of these blocks.
    epoch : Epoch
        The steps of an epoch on a block.
    w : ndarray of shape (n_weights,), float64
        The weights to start from.
    seed : int
        The seed of the random numbers.
    first : int, default=1
        The number of the first epoch, on which the random numbers depend.

    Yields
    ------
    Summary
    """
    for number in count(first):
        summary = blocks.reduce(run_epoch, epoch, w, blocks.n_samples, (seed, number))
        w = summary["w"]
        yield summary


def random_order(seed: int, n: int) -> ndarray:
    """Return a random permutation of 0, ..., n - 1, int64."""
    order = np.empty(n, dtype=np.int64)
    shuffle(seed, order)
    return order
