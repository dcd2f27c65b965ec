"""Views: what a function makes of each block, where it lies: rows scaled, sampled, weighted or turned into other features.

However many views lie one over the other, steps go through one layer: the memory of a block holds what was made of it last.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

from aucdist.data.block import Block
from aucdist.data.column_statistics import ColumnRanges
from aucdist.data.storage.scratch import Copy, scratch
from aucdist.engine.blocks import BlockInfo, Blocks, Step, StoredBlock, Summary, reads_rows_itself

Change = Callable[[Block], Block]
"""Makes a block of a block: picklable and pure. It travels once, and runs again where a worker was lost. It may have

* ``at(block)``, which returns a change for this block alone, so that each block keeps its own part;
* ``info(block)``, which describes what it made, in place of `BlockInfo.of`;
* ``rows_only = True``: labels, weights and number of columns stay, so that nothing is read to describe what it makes;
* ``same_rows = True``: the features stay, so that what is made of the rows alone is made once for all such views.
"""

Keep = Literal["memory", "disk", "nowhere"]


@dataclass(eq=False)
class ChangedBlock:
    """How a block is made that is not kept in memory. Checkpoints hold it, and the copy is made again where it is read.

    Attributes
    ----------
    base : Block, ChangedBlock or None
        What it is made of; None for the block that a step gets.
    change : callable
    on_disk : bool
        Whether it is copied to the local disk where there is room, or made each time.
    """

    base: "Block | ChangedBlock | None"
    change: Change
    on_disk: bool

    def __post_init__(self) -> None:
        self._copy: Copy | None = None  # no field: it is no part of a checkpoint

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_copy": None}

    def block(self, source: Any) -> Block:
        """Return it, given the block that a step gets, which need not have been read."""
        if self._copy is not None:
            return self._copy.read()
        return self.keep(self.change(_block_of(self.base, source)))

    def keep(self, made: Block) -> Block:
        """Copy what was made to the local disk, if that is its place, and return it."""
        if self.on_disk:
            self._copy = scratch().copy(made)
        return made


@dataclass(frozen=True, eq=False)
class ViewMemory:
    """A block's memory: what was made of it (None: nothing yet), and what steps left there."""

    made: Block | ChangedBlock
    of_steps: Any


@dataclass(frozen=True, eq=False)
class _Unread:
    """What a step gets that reads its rows itself."""

    made: ChangedBlock
    source: Any

    @property
    def index(self) -> int:
        """The number of the block."""
        return int(self.source.index)

    def read(self) -> Block:
        """Make the block."""
        return self.made.block(self.source)


class ViewBlocks(Blocks):
    """What a function makes of each block.

    Parameters
    ----------
    change : callable
        ``change(block) -> Block``; see `Change`.
    keep : {"memory", "disk", "nowhere"}, default="memory"
        Where it is kept. On the local disk, where there is room: for what costs more to make than to map, of rows that are not in
        memory either. Nowhere: it is made for each step that reads rows.
    ranges : ColumnRanges, optional
        The ranges of the columns of what it makes, if they are known.
    """

    def __init__(self, blocks: Blocks, change: Change, *, keep: Keep = "memory", ranges: ColumnRanges | None = None):
        over: ViewBlocks | None = blocks if isinstance(blocks, ViewBlocks) else None
        self._source: Blocks = blocks.without_memory() if over is None else over._source
        self._changes: tuple[Change, ...] = (change,) if over is None else (*over._changes, change)
        self._reads_source: bool = keep == "nowhere" and (over is None or over._reads_source)
        self._same_rows = blocks.same_rows if getattr(change, "same_rows", False) else None
        self._made: Blocks = self._source.without_memory() if over is None else over._made.fork()
        if keep == "nowhere" and getattr(change, "rows_only", False):
            self._made.reduce(_view_unread, change)
            infos = [replace(info, lasting=False, ranges=None) for info in blocks.infos]
        else:
            infos = self._made.reduce(_view, change, keep)["infos"]
        super().__init__(infos)
        self._ranges = ranges
        self.feature_names = blocks.feature_names if self.n_features == blocks.n_features else None
        self._now = self._made.fork()

    @property
    def same_rows(self) -> Blocks:
        """The blocks that hold these rows, whatever the rows weigh."""
        return self if self._same_rows is None else self._same_rows

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
        seldom = getattr(step, "without_rows", False) or getattr(step, "reads_rows_itself", False)
        on_view = _on_view_of_read if self._reads_source and not seldom else _on_view
        # The step is not the head of a tuple: Dask would take that for a task.
        return self._now.reduce(on_view, step, args)

    def exchange(self, cut: Step, join: Callable[..., Block], n_blocks: int) -> Blocks:
        """Return new blocks, each made of one piece of what is made of every block."""
        return self._source.exchange(partial(_cut_view, self._changes, cut), join, n_blocks)


def _block_of(made: Block | ChangedBlock | None, source: Any) -> Block:
    if made is None:
        return source if isinstance(source, Block) else source.read()
    return made if isinstance(made, Block) else made.block(source)


@reads_rows_itself
def _view(
    source: Block | StoredBlock, memory: ViewMemory | None, change: Change, keep: Keep
) -> tuple[ViewMemory, Summary]:
    """Make the block, keep it in its place, and describe it."""
    base = memory.made if isinstance(memory, ViewMemory) else None
    before = _block_of(base, source)
    own = change.at(before) if hasattr(change, "at") else change
    made = own(before)
    info = change.info(made) if hasattr(change, "info") else BlockInfo.of(made)
    if keep == "memory":
        return ViewMemory(made, None), {"infos": [info]}
    recipe = ChangedBlock(base, own, keep == "disk")
    recipe.keep(made)
    return ViewMemory(recipe, None), {"infos": [replace(info, lasting=False)]}


@reads_rows_itself
def _view_unread(source: Block | StoredBlock, memory: ViewMemory | None, change: Change) -> tuple[ViewMemory, Summary]:
    """Keep how the block is made, and read nothing."""
    return ViewMemory(ChangedBlock(memory.made if isinstance(memory, ViewMemory) else None, change, False), None), {}


@reads_rows_itself
def _on_view(
    source: Block | StoredBlock, memory: ViewMemory, step: Step, args: tuple[Any, ...]
) -> tuple[ViewMemory, Summary]:
    """Run a step on what is kept of the block."""
    made = memory.made
    on: Any
    if getattr(step, "without_rows", False):
        on = source.index
    elif isinstance(made, ChangedBlock) and getattr(step, "reads_rows_itself", False):
        on = _Unread(made, source)
    else:
        on = _block_of(made, source)
    return _ran(step, on, memory, args)


def _on_view_of_read(block: Block, memory: ViewMemory, step: Step, args: tuple[Any, ...]) -> tuple[ViewMemory, Summary]:
    """Run a step on what is made of a block that was read ahead."""
    return _ran(step, _block_of(memory.made, block), memory, args)


def _ran(step: Step, on: Any, memory: ViewMemory, args: tuple[Any, ...]) -> tuple[ViewMemory, Summary]:
    """Run a step; the same memory shows that it left none: it then need not be repeated where a worker is lost."""
    of_steps, summary = step(on, memory.of_steps, *args)
    return (memory if of_steps is memory.of_steps else ViewMemory(memory.made, of_steps)), summary


def _cut_view(
    changes: tuple[Change, ...], cut: Step, block: Block, memory: None, n_blocks: int
) -> tuple[None, Summary]:
    for change in changes:
        block = change(block)
    return cut(block, memory, n_blocks)
