"""The columns of a data set in blocks: the form for solvers that work along features."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks, Summary

_MADE: WeakKeyDictionary[Blocks, Blocks] = WeakKeyDictionary()
"""What was made of which blocks, for as long as those live."""


def columns_of(blocks: Blocks) -> Blocks:
    """Return the columns of the rows, each row multiplied by its label, dealt out to as many blocks.

    What is returned has a block for each of `blocks`, or for each feature if there are fewer. Its block b holds features b,
    b + n_blocks, b + 2 n_blocks, ... as rows: ``X`` has the shape (features of the block, n_samples), and ``row_id`` says which
    features they are. The samples are in the order of the blocks and, within a block, of its rows. The labels mean nothing.

    It is made once for each object `blocks`, or for all masks of it together, and takes as much memory. On workers the pieces go
    from one to another directly.
    """
    rows = blocks.same_rows
    if rows not in _MADE:
        _MADE[rows] = rows.exchange(cut, join, min(rows.n_blocks, rows.n_features))
    return _MADE[rows].without_memory()


def cut(block: Block, memory: None, n_blocks: int) -> tuple[None, Summary]:
    """Cut the block's columns into pieces, one for each block to come."""
    if isinstance(block.X, np.ndarray):
        # Transposed one by one, so that no more than a piece is held twice.
        pieces: list[Any] = [
            np.ascontiguousarray((block.X[:, first::n_blocks] * block.y[:, np.newaxis]).T) for first in range(n_blocks)
        ]
    else:
        columns = block.X.tocsc()
        columns.data *= block.y[columns.indices]
        pieces = [columns[:, first::n_blocks].T for first in range(n_blocks)]
    return None, {"pieces": [pieces]}


def join(pieces: list[Any], index: int, n_blocks: int) -> Block:
    """Return the block of these columns, given what each block of rows has of them."""
    X = np.hstack(pieces) if isinstance(pieces[0], np.ndarray) else sp.hstack(pieces, format="csr")
    n = X.shape[0]
    return Block.of(X, np.ones(n, dtype=np.int8), row_id=index + n_blocks * np.arange(n), index=index)
