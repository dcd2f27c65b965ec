"""Some rows of blocks that stay where they are: what a fold trains on, without a copy."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.preprocess import Preprocessor
from aucdist.engine.blocks import BlockInfo, Blocks, Step, Summary
from aucdist.kernels.codes import BinRows


@dataclass(frozen=True)
class Memory:
    """What a block keeps for one fold: the rows' weights, 0 for those outside, and the memory of the solver's own steps."""

    weight: np.ndarray
    own: Any


class MaskedBlocks(Blocks):
    """The rows of other blocks that a mask keeps. The others get weight 0, and a row of weight 0 counts as not there.

    A solver that reads the weights does the same sums in the same order as on blocks of the kept rows alone, so that it finds
    the same bits.

    Parameters
    ----------
    blocks : Blocks
        All rows.
    kept : ndarray of bool
        Whether a row is kept, at the place of its ``row_id``. It travels once per fit, a byte per row.
    prepare : Preprocessor, optional
        What is done to the features: the fold's own scaling. The scaled rows last for one step, which therefore takes several
        times as long.
    """

    def __init__(self, blocks: Blocks, kept: np.ndarray, prepare: Preprocessor | None = None):
        self._source, self._blocks = blocks.same_rows, blocks.without_memory()
        self._kept, self._prepare = kept, prepare
        self._sent = False
        super().__init__(self.reduce(_describe)["infos"])

    @property
    def same_rows(self) -> Blocks:
        """All rows, where no scaling changes them."""
        return self._source if self._prepare is None else self

    def without_memory(self) -> "MaskedBlocks":
        """Return the same rows with empty memory."""
        other = object.__new__(MaskedBlocks)
        other.infos, other._ranges = self.infos, self._ranges
        other._kept, other._prepare = self._kept, self._prepare
        other._source = self._source
        other._blocks, other._sent = self._blocks.without_memory(), False
        return other

    def fork(self) -> "MaskedBlocks":
        """Return the same rows with the memory they have now."""
        other = copy.copy(self)
        other._blocks = self._blocks.fork()
        return other

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on the kept rows of every block."""
        kept = None if self._sent else self._kept
        self._sent = True
        # Not the step first: Dask would take a tuple that begins with a function for a task.
        return self._blocks.reduce(_on_kept_rows, kept, self._prepare, step, args)

    def exchange(self, cut: Step, join: Callable[..., Block], n_blocks: int) -> Blocks:
        """Return new blocks of pieces of all rows, wherever those are."""
        return self._blocks.exchange(partial(_cut_kept_rows, self._kept, self._prepare, cut), join, n_blocks)


def _cut_kept_rows(
    kept: np.ndarray, prepare: Preprocessor | None, cut: Step, block: Block, memory: None, n_blocks: int
) -> tuple[None, Summary]:
    return None, _on_kept_rows(block, None, kept, prepare, cut, (n_blocks,))[1]


def _on_kept_rows(
    block: Block,
    memory: Memory | None,
    kept: np.ndarray | None,
    prepare: Preprocessor | None,
    step: Step,
    args: tuple[Any, ...],
) -> tuple[Memory, Summary]:
    if memory is None:
        assert kept is not None  # it comes with the first step
        memory = Memory(np.where(kept[block.row_id], block.weights(), 0.0), None)
    seen = replace(block, weight=memory.weight)
    own, summary = step(seen if prepare is None else prepare.transform(seen), memory.own, *args)
    return replace(memory, own=own), summary


def _describe(block: Block, memory: None) -> tuple[None, Summary]:
    weight = block.weights()
    there = weight > 0
    positive = there & (block.y > 0)
    info = BlockInfo(
        int(there.sum()), block.n_features, int(positive.sum()), float(weight[positive].sum()),
        float(weight[there & (block.y < 0)].sum()), bool((weight[there] != 1).any()),
        coded=isinstance(block.rows, BinRows), lasting=False,
    )  # fmt: skip
    return None, {"infos": [info]}
