"""Blocks made from other blocks where they lie: scaled, sampled, or turned into other features."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from aucdist.data.block import Block
from aucdist.data.ranges import ColumnRanges
from aucdist.engine.blocks import BlockInfo, Blocks, Step, StoredBlock, Summary, reads_rows_itself
from aucdist.engine.scratch import Copy, scratch


@dataclass(frozen=True)
class _Call:
    """A function and what it gets besides the block. Dask would call a function that it finds at the head of a tuple."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()


class MadeBlock:
    """What was made of a block that is not kept in memory: copied to the local disk where there is room, else made each time.

    Parameters
    ----------
    changes : tuple of _Call
        Which make it of the block, one after the other.
    made : Block
    """

    def __init__(self, changes: tuple[_Call, ...], made: Block):
        self.changes = changes
        self._copy: Copy | None = scratch().copy(made)

    def __getstate__(self) -> tuple[_Call, ...]:
        return self.changes

    def __setstate__(self, changes: tuple[_Call, ...]) -> None:
        self.changes, self._copy = changes, None

    def block(self, source: Block | StoredBlock) -> Block:
        """Return it, given the block that it was made of."""
        if self._copy is not None:
            return self._copy.block()
        made = source if isinstance(source, Block) else source.read()
        for change in self.changes:
            made = change.function(made)
        self._copy = scratch().copy(made)
        return made


class MappedBlocks(Blocks):
    """What a function makes of each block. It is kept beside the block it was made from, in the memory of that one's steps.

    What is made of such blocks in turn takes their place there: however many changes, steps go through one layer.

    Parameters
    ----------
    blocks : Blocks
    change : callable
        ``change(block) -> Block``, picklable and pure; it travels once, and runs again where a worker was lost.
    ranges : ColumnRanges, optional
        Of the columns of what it makes, if they are known.
    on_disk : bool, default=False
        Whether it is kept on the local disk and not in memory: for what is made of rows that are not in memory either, and is
        itself made of `MappedBlocks` on disk.
    """

    def __init__(
        self,
        blocks: Blocks,
        change: Callable[[Block], Block],
        ranges: ColumnRanges | None = None,
        *,
        on_disk: bool = False,
    ):
        if isinstance(blocks, MappedBlocks):
            self._made: Blocks = blocks._made.fork()
            infos = self._made.reduce(_make_again, _Call(change))["infos"]
        else:
            self._made = blocks.without_memory()
            infos = self._made.reduce(_make, _Call(change), on_disk)["infos"]
        super().__init__(infos)
        self._ranges = ranges
        self._now = self._made.fork()

    def without_memory(self) -> Self:
        """Return the same blocks with empty memory; they are not made again."""
        other = copy.copy(self)
        other._now = self._made.fork()
        return other

    def fork(self) -> Self:
        """Return the same blocks with the memory they have now."""
        other = copy.copy(self)
        other._now = self._now.fork()
        return other

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on what was made of every block."""
        return self._now.reduce(_on_made, _Call(step, args))


Kept = tuple[Block | MadeBlock, Any]
"""The memory of a block's steps: what was made of it, and the memory of the steps on that."""


def _make(block: Block, memory: None, change: _Call, on_disk: bool) -> tuple[Kept, Summary]:
    made = change.function(block)
    info = BlockInfo.of(made)
    if on_disk:
        return (MadeBlock((change,), made), None), {"infos": [replace(info, lasting=False)]}
    return (made, None), {"infos": [info]}


@reads_rows_itself
def _make_again(source: Block | StoredBlock, memory: Kept, change: _Call) -> tuple[Kept, Summary]:
    before, _ = memory
    if isinstance(before, Block):
        return _make(before, None, change, on_disk=False)
    made = change.function(before.block(source))
    info = replace(BlockInfo.of(made), lasting=False)
    return (MadeBlock((*before.changes, change), made), None), {"infos": [info]}


@reads_rows_itself
def _on_made(source: Block | StoredBlock, memory: Kept, step: _Call) -> tuple[Kept, Summary]:
    made, kept = memory
    on: Any = source.index
    if not getattr(step.function, "without_rows", False):
        on = made if isinstance(made, Block) else made.block(source)
    kept, summary = step.function(on, kept, *step.args)
    return (made, kept), summary


class PassingBlocks(Blocks):
    """What a function makes of each block, made anew for every step that reads rows: for rows that must not be in memory twice.

    Parameters
    ----------
    blocks : Blocks
    change : callable
        ``change(block) -> Block``, picklable and pure, which leaves labels, weights and the number of columns as they are. It
        travels with every step.
    ranges : ColumnRanges, optional
        Of the columns of what it makes, if they are known.
    """

    def __init__(self, blocks: Blocks, change: Callable[[Block], Block], ranges: ColumnRanges | None = None):
        super().__init__([replace(info, lasting=False, ranges=None) for info in blocks.infos])
        self._blocks, self._change, self._ranges = blocks.without_memory(), change, ranges

    def without_memory(self) -> Self:
        """Return the same blocks with empty memory."""
        other = copy.copy(self)
        other._blocks = self._blocks.without_memory()
        return other

    def fork(self) -> Self:
        """Return the same blocks with the memory they have now."""
        other = copy.copy(self)
        other._blocks = self._blocks.fork()
        return other

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on what is made of every block."""
        if getattr(step, "without_rows", False):
            return self._blocks.reduce(step, *args)
        return self._blocks.reduce(_on_changed, _Call(self._change), _Call(step, args))

    def exchange(self, cut: Step, join: Callable[..., Block], n_blocks: int) -> Blocks:
        """Return new blocks, each made of one piece of what is made of every block."""
        return self._blocks.exchange(partial(_cut_changed, self._change, cut), join, n_blocks)


def _on_changed(block: Block, memory: Any, change: _Call, step: _Call) -> tuple[Any, Summary]:
    return step.function(change.function(block), memory, *step.args)


def _cut_changed(
    change: Callable[[Block], Block], cut: Step, block: Block, memory: None, n_blocks: int
) -> tuple[None, Summary]:
    return cut(change(block), memory, n_blocks)
