"""The dual variables that a solver keeps on the blocks, read from the copy of the blocks on which it works."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import n_rows
from aucdist.engine.blocks import LocalBlocks


def watched(blocks: LocalBlocks) -> LocalBlocks:
    """Return the blocks, which from now on keep the copy that a solver makes of them as `working`."""
    make = blocks.without_memory

    def keep() -> LocalBlocks:
        blocks.working = working = make()  # type: ignore[attr-defined]
        vars(working).pop("without_memory")  # further copies, on which the objective is evaluated, are not kept
        return working

    blocks.without_memory = keep  # type: ignore[method-assign]
    return blocks


def pair_duals(blocks: Any, sign: int | None = None) -> sp.coo_array:
    """Return the dual variables of pairs that are not 0, of shape (n_pos, n_neg); the rows of each class as they are in pairs.

    `sign`: 1 where the smaller class is positive; by default it is taken from the numbers of rows.
    """
    i, j, values, before = [], [], [], 0
    memories = blocks.working._memory
    for memory in memories:
        if memory.state is not None:
            table = memory.state.table[memory.state.table["value"] != 0.0]
            of_minority, of_majority = np.divmod(table["number"] - 1, len(memory.majority))
            i, j, values = [*i, of_minority], [*j, of_majority + before], [*values, table["value"]]
        before += len(memory.majority)
    shape = n_rows(memories[0].minority), before
    duals = sp.coo_array((np.concatenate(values), (np.concatenate(i), np.concatenate(j))), shape)
    positive = blocks.n_pos <= blocks.n_neg if sign is None else sign > 0
    return duals if positive else duals.T


def row_duals(blocks: Any) -> list[np.ndarray]:
    """Return the dual variables of the rows of each block."""
    from aucdist.papers.scd.kernels import DUAL

    return [memory.table[:, DUAL].copy() for memory in blocks.working._memory]
