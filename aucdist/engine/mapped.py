"""Blocks made from other blocks where they lie: scaled, sampled, or turned into other features."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from aucdist.data.block import Block
from aucdist.data.ranges import ColumnRanges
from aucdist.engine.blocks import BlockInfo, Blocks, Step, Summary, without_rows


@dataclass(frozen=True)
class _Call:
    """A function and what it gets besides the block. Dask would call a function that it finds at the head of a tuple."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()


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
    """

    def __init__(self, blocks: Blocks, change: Callable[[Block], Block], ranges: ColumnRanges | None = None):
        if isinstance(blocks, MappedBlocks):
            self._made: Blocks = blocks._made.fork()
            make = _make_again
        else:
            self._made = blocks.without_memory()
            make = _make
        super().__init__(self._made.reduce(make, _Call(change))["infos"])
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


def _make(block: Block, memory: None, change: _Call) -> tuple[tuple[Block, None], Summary]:
    made = change.function(block)
    return (made, None), {"infos": [BlockInfo.of(made)]}


@without_rows
def _make_again(block: int, memory: tuple[Block, None], change: _Call) -> tuple[tuple[Block, None], Summary]:
    return _make(memory[0], None, change)


@without_rows
def _on_made(block: int, memory: tuple[Block, Any], step: _Call) -> tuple[tuple[Block, Any], Summary]:
    made, kept = memory
    kept, summary = step.function(made, kept, *step.args)
    return (made, kept), summary


class PassingBlocks(Blocks):
    """What a function makes of each block, made anew for every step that reads rows: for rows that must not be in memory twice.

    Parameters
    ----------
    blocks : Blocks
    change : callable
        ``change(block) -> Block``, picklable and pure. It travels with every step.
    ranges : ColumnRanges, optional
        Of the columns of what it makes, if they are known.
    same_columns : bool, default=True
        Whether it leaves labels, weights and the number of columns as they are. If not, one reduction describes the blocks.
    """

    def __init__(
        self,
        blocks: Blocks,
        change: Callable[[Block], Block],
        ranges: ColumnRanges | None = None,
        *,
        same_columns: bool = True,
    ):
        infos = blocks.infos
        if not same_columns:
            infos = blocks.without_memory().reduce(_describe_changed, _Call(change))["infos"]
        super().__init__([replace(info, lasting=False, ranges=None) for info in infos])
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


def _describe_changed(block: Block, memory: Any, change: _Call) -> tuple[Any, Summary]:
    return memory, {"infos": [BlockInfo.of(change.function(block))]}


def _on_changed(block: Block, memory: Any, change: _Call, step: _Call) -> tuple[Any, Summary]:
    return step.function(change.function(block), memory, *step.args)


def _cut_changed(
    change: Callable[[Block], Block], cut: Step, block: Block, memory: None, n_blocks: int
) -> tuple[None, Summary]:
    return cut(change(block), memory, n_blocks)
