"""Small sets of rows, the forms that they may have, and rows as blocks, for the tests of the solvers."""

import numpy as np
import scipy.sparse as sp
from numba import config

from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.papers.sdcd.kernels import PairPlaces

ALL_FORMS = {
    "dense64": lambda X: X,
    "dense32": lambda X: X.astype(np.float32),
    "csr64": sp.csr_matrix,
    "csr32": lambda X: sp.csr_array(X.astype(np.float32)),
}
# A kernel is compiled for each form, for seconds. Rows of all forms are read by tests/kernels/test_rows.py, by plain Python
# and by the slow seeds of tests/test_hunt.py; fits of float32 are in tests/estimators/test_contracts.py.
FORMS = ALL_FORMS if config.DISABLE_JIT else {name: ALL_FORMS[name] for name in ("dense64", "csr64")}


def small(n_pos=9, n_neg=23, d=4, seed=0, shift=0.7):
    """Return normal rows in random order, the positives moved by `shift`; rounded, so that float32 has the same numbers."""
    r = np.random.default_rng(seed)
    y = np.repeat([1, -1], [n_pos, n_neg])
    X = r.normal(size=(len(y), d)) + shift * (y[:, None] > 0)
    order = r.permutation(len(y))
    return X[order].astype(np.float32).astype(np.float64), y[order]


CASES = {
    "few positives": small(),
    "few negatives": small(n_pos=19, n_neg=6),
    "one of each": small(n_pos=1, n_neg=1),
    "ties and duplicates": (np.array([[0.0], [0.0], [1.0], [1.0], [2.0], [2.0]]), np.array([1, -1, 1, -1, 1, -1])),
    "identical rows in both classes": (np.ones((6, 2)), np.array([1, -1, -1, 1, -1, -1])),
    "separable": small(shift=9.0),
    "a grid of thirds": (np.random.default_rng(5).integers(-4, 5, (24, 3)) / 3.0, np.tile([1, -1, -1], 8)),
}
"""Problems that are special for solvers over pairs."""


def blocks_of(X, y, n_blocks=1, weight=None, group=None):
    """Return the rows in so many blocks."""
    return LocalBlocks(into_blocks(Block.of(X, y, weight=weight, group=group), n_blocks))


def all_pairs_of(n_minority, majority_rows):
    """Return where the pairs are of rows that are all of one group, as the kernels that draw pairs take it."""
    n = len(majority_rows)
    return PairPlaces(
        np.array([0, n_minority * n]), np.array([0, n]), np.array([0]), np.array([n_minority]), majority_rows
    )
