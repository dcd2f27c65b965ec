"""Some rows of blocks, such as those of a fold, without a copy of the rows."""

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
class MaskedMemory:
    """A block's memory for one fold: the weights of the rows, 0 for those outside, and the memory of the solver's steps."""

    weight: np.ndarray
    of_steps: Any


class MaskedBlocks(Blocks):
    """The rows of other blocks that are inside a mask. The others get weight 0, and rows of weight 0 are ignored.

    A solver that ignores rows of weight 0 adds up the same terms in the same order as on blocks of the rows inside alone, so that
    it gives the same bits.

    Parameters
    ----------
    blocks : Blocks
        All rows.
    inside : ndarray of bool
        Whether a row is inside, indexed by ``row_id``. It is sent once per fit, a byte per row.
    prepare : Preprocessor, optional
        The scaling of the fold. The rows are scaled for each step, which therefore takes several times as long.
    """

    def __init__(self, blocks: Blocks, inside: np.ndarray, prepare: Preprocessor | None = None):
        self._source, self._blocks = blocks.same_rows, blocks.without_memory()
        self._inside, self._prepare = inside, prepare
        self._sent = False
        super().__init__(self.reduce(_describe)["infos"])

    @property
    def same_rows(self) -> Blocks:
        """All rows, unless they are scaled."""
        return self._source if self._prepare is None else self

    def without_memory(self) -> "MaskedBlocks":
        """Return the same rows with empty memory."""
        other = object.__new__(MaskedBlocks)
        other.infos, other._ranges = self.infos, self._ranges
        other._inside, other._prepare = self._inside, self._prepare
        other._source = self._source
        other._blocks, other._sent = self._blocks.without_memory(), False
        return other

    def fork(self) -> "MaskedBlocks":
        """Return the same rows with the memory they have now."""
        other = copy.copy(self)
        other._blocks = self._blocks.fork()
        return other

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on the rows inside of every block."""
        inside = None if self._sent else self._inside
        self._sent = True
        # The step is not the first argument: Dask would take a tuple that begins with a function for a task.
        return self._blocks.reduce(_on_rows_inside, inside, self._prepare, step, args)

    def exchange(self, cut: Step, join: Callable[..., Block], n_blocks: int) -> Blocks:
        """Return new blocks of pieces of all rows, wherever those are."""
        return self._blocks.exchange(partial(_cut_rows_inside, self._inside, self._prepare, cut), join, n_blocks)


def _cut_rows_inside(
    inside: np.ndarray, prepare: Preprocessor | None, cut: Step, block: Block, memory: None, n_blocks: int
) -> tuple[None, Summary]:
    return None, _on_rows_inside(block, None, inside, prepare, cut, (n_blocks,))[1]


def _on_rows_inside(
    block: Block,
    memory: MaskedMemory | None,
    inside: np.ndarray | None,
    prepare: Preprocessor | None,
    step: Step,
    args: tuple[Any, ...],
) -> tuple[MaskedMemory, Summary]:
    if memory is None:
        assert inside is not None  # it comes with the first step
        memory = MaskedMemory(np.where(inside[block.row_id], block.weights(), 0.0), None)
    seen = replace(block, weight=memory.weight)
    of_steps, summary = step(seen if prepare is None else prepare.transform(seen), memory.of_steps, *args)
    return replace(memory, of_steps=of_steps), summary


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
