"""Small sets of rows, and rows as blocks, for the tests of the solvers."""

import numpy as np

from aucdist.data.block import Block, partition
from aucdist.engine.blocks import LocalBlocks
from aucdist.papers.sdcd.kernels import PairPlaces


def small(n_pos=9, n_neg=23, d=4, seed=0, shift=0.7):
    """Return normal rows in random order, the positives moved by `shift`; rounded, so that float32 has the same numbers."""
    r = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    X = r.normal(size=(len(y), d)) + shift * (y[:, None] > 0)
    order = r.permutation(len(y))
    return X[order].astype(np.float32).astype(np.float64), y[order]


def blocks_of(X, y, n_blocks=1, weight=None):
    """Return the rows in so many blocks."""
    return LocalBlocks(partition(Block.of(X, y, weight=weight), n_blocks))


def all_pairs_of(n_minority, majority_rows):
    """Return where the pairs are of rows that are all of one group, as the kernels that draw pairs take it."""
    n = len(majority_rows)
    return PairPlaces(
        np.array([0, n_minority * n]), np.array([0, n]), np.array([0]), np.array([n_minority]), majority_rows
    )
