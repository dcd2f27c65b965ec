"""Views of blocks: their rows after scaling, sampling, weighting or mapping, or with the labels of one class against the rest.

Nested views are merged, so that steps pass through one layer only. The memory of a block has what the last view made of it.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.data.column_statistics import ColumnRanges
from aucdist.data.label_sets import LabelSets
from aucdist.data.preprocess import Preprocessor
from aucdist.data.storage.scratch import MappedCopy, scratch
from aucdist.engine.blocks import BlockInfo, Blocks, StoredBlock
from aucdist.engine.steps import Step, Summary, first_argument, memory_and_summary, reads_rows_itself
from aucdist.parameters import frozen

BlockChange = Callable[[Block], Block]
"""A function that makes a block from a block. It is picklable and pure. It is sent to a worker once, and runs again if the worker
is lost."""


@frozen
class Mask:
    """A change for which each block keeps its own part. It sets the weight of rows outside a mask to 0, and scales the others.

    Attributes
    ----------
    inside : ndarray of bool
        Whether a row is inside, indexed by ``row_id``. The array is sent once, and each block keeps its own weights.
    """

    inside: ndarray
    prepare: Preprocessor | None = None

    def for_block(self, block: Block) -> BlockChange:
        """Return the change for one block."""
        return partial(_weighted, np.where(self.inside[block.row_id], block.weights(), 0.0), self.prepare)

    def describe(self, block: Block) -> BlockInfo:
        """Return the description of the rows inside."""
        weight = block.weights()
        counted = weight > 0
        positive = counted & (block.y > 0)
        return replace(
            BlockInfo.of(block), n_samples=int(counted.sum()), n_pos=int(positive.sum()),
            weight_pos=float(weight[positive].sum()), weight_neg=float(weight[counted & (block.y < 0)].sum()),
            has_weights=bool((weight[counted] != 1).any()),
        )  # fmt: skip


def _weighted(weight: ndarray, prepare: Preprocessor | None, block: Block) -> Block:
    """Return a block with other weights, scaled."""
    block = replace(block, weight=weight)
    return block if prepare is None else prepare.transform(block)


Keep = Literal["memory", "disk", "nowhere", "unread"]


@dataclass(eq=False)
class ChangedBlock:
    """The recipe of a block that is not kept in memory. Checkpoints store the recipe, from which the block is made again.

    Attributes
    ----------
    base : Block, ChangedBlock or None
        What the block is made of. None stands for the block that a step gets.
    change : callable
        The function that makes the block.
    on_disk : bool
        Whether the block is copied to the local disk if there is room. Otherwise, it is made each time.
    """

    base: "Block | ChangedBlock | None"
    change: BlockChange
    on_disk: bool

    def __post_init__(self) -> None:
        self._copy: MappedCopy | None = None  # not a field, so checkpoints do not contain it

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_copy": None}

    def block(self, source: Any) -> Block:
        """Return the block, given the original block, which may not have been read yet."""
        if self._copy is not None:
            return self._copy.read()
        return self.keep(self.change(_block_of(self.base, source)))

    def keep(self, made: Block) -> Block:
        """Return the new block, after copying it to the local disk if it is kept there."""
        if self.on_disk:
            self._copy = scratch().copy(made)
        return made


@frozen
class ViewMemory:
    """The memory of a block: the new block or its recipe, and the memory of the steps on it."""

    block: Block | ChangedBlock
    step_memory: Any


@frozen
class _Unread:
    """The argument of a step that reads its rows itself."""

    recipe: ChangedBlock
    source: Any

    @property
    def index(self) -> int:
        """The number of the block."""
        return int(self.source.index)

    def read(self) -> Block:
        """Return the block, which is made now."""
        return self.recipe.block(self.source)


class ViewBlocks(Blocks):
    """Blocks to which a function has been applied.

    Parameters
    ----------
    change : BlockChange or Mask
        The function that is applied to each block.
    keep : {"memory", "disk", "nowhere", "unread"}, default="memory"
        Where the new blocks are kept. "disk" means on the local disk if there is room. It is for blocks that take longer to
        make than to map, and whose source is not in memory. "nowhere" means that they are made again for each step that reads
        rows. "unread" means the same, but labels, weights and the number of columns stay, so that no rows are read to describe
        the blocks.
    ranges : ColumnRanges, optional
        The ranges of the columns of the new blocks, if they are known.
    same_features : bool, default=False
        Whether the features stay as they are.
    """

    def __init__(
        self, blocks: Blocks, change: BlockChange | Mask, *, keep: Keep = "memory",
        ranges: ColumnRanges | None = None, same_features: bool = False,
    ):  # fmt: skip
        over: ViewBlocks | None = blocks if isinstance(blocks, ViewBlocks) else None
        self._source: Blocks = blocks.without_memory() if over is None else over._source
        self._reads_source: bool = keep in ("nowhere", "unread") and (over is None or over._reads_source)
        self._after_change: Blocks = self._source.without_memory() if over is None else over._after_change.fork()
        infos = self._after_change.reduce(_view, change, keep)
        unread = [replace(info, lasting=False, ranges=None) for info in blocks.infos]
        super().__init__(infos or unread)
        if same_features:
            self.features_lasting |= blocks.features_lasting
        self._ranges, self.threads = ranges, blocks.threads
        self.feature_names = blocks.feature_names if self.n_features == blocks.n_features else None
        self._with_memory = self._after_change.fork()

    def without_memory(self) -> Self:
        """Return the same blocks with empty memory. They are not made again."""
        other = copy.copy(self)
        other._with_memory = self._after_change.fork()
        return other

    def fork(self) -> Self:
        """Return the same blocks with the memory they have now."""
        other = copy.copy(self)
        other._with_memory = self._with_memory.fork()
        return other

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on every new block."""
        on_view = _on_view_of_read if self._reads_source and first_argument(step) == "rows" else _on_view
        # The step is not the first item of a tuple, because Dask would treat the tuple as a task.
        return self._with_memory.reduce(on_view, step, args)


def _block_of(made: Block | ChangedBlock | None, source: Any) -> Block:
    if made is None:
        return source if isinstance(source, Block) else source.read()
    return made if isinstance(made, Block) else made.block(source)


@reads_rows_itself
def _view(
    source: Block | StoredBlock, memory: ViewMemory | None, change: Any, keep: Keep
) -> tuple[ViewMemory, Summary]:
    """Make the block, keep it where `keep` says, and describe it. With "unread", keep only its recipe and read nothing."""
    base = memory.block if isinstance(memory, ViewMemory) else None
    if keep == "unread":
        return ViewMemory(ChangedBlock(base, change, False), None), []
    before = _block_of(base, source)
    describe = BlockInfo.of
    if isinstance(change, Mask):
        change, describe = change.for_block(before), change.describe
    made = change(before)
    info = describe(made)
    if keep == "memory":
        return ViewMemory(made, None), [info]
    recipe = ChangedBlock(base, change, keep == "disk")
    recipe.keep(made)
    return ViewMemory(recipe, None), [replace(info, lasting=False)]


@reads_rows_itself
def _on_view(
    source: Block | StoredBlock, memory: ViewMemory, step: Step, args: tuple[Any, ...]
) -> tuple[ViewMemory, Summary]:
    """Run a step on the new block, which is made of a stored block."""
    block, argument = memory.block, first_argument(step)
    step_input: Any
    if argument == "number":
        step_input = source.index
    elif argument == "source" and isinstance(block, ChangedBlock):
        step_input = _Unread(block, source)
    else:
        step_input = _block_of(block, source)
    new_memory, summary = memory_and_summary(step(step_input, memory.step_memory, *args), memory.step_memory)
    # If the memory is the same object, the step changed nothing, and need not be repeated if a worker is lost.
    return (memory if new_memory is memory.step_memory else ViewMemory(block, new_memory)), summary


def _on_view_of_read(block: Block, memory: ViewMemory, step: Step, args: tuple[Any, ...]) -> tuple[ViewMemory, Summary]:
    """Run a step on the new block, which is made of a block that was read ahead."""
    return _on_view(block, memory, step, args)


# ---- several classes ---------------------------------------------------------------------------------------------------

AT_ONCE = 16
"""The largest number of classes that are fitted at the same time to rows on workers. While the workers compute for some
classes, the client computes for others."""

MAX_WEIGHTS = 2**21
"""The largest total number of weights of the classes that are fitted at the same time. This process keeps about 40
vectors for each class."""


@frozen
class OneVsRest:
    """Replaces the numbers of sets of classes by labels, -1 and +1.

    Attributes
    ----------
    labels : ndarray of shape (n_sets,), int8
        The label of each set.
    """

    labels: ndarray

    def __call__(self, block: Block) -> Block:
        """Return the block with labels."""
        assert block.code is not None  # None as an index would add an axis to `labels`
        return replace(block, y=self.labels[block.code], code=None)


class ClassView(ViewBlocks):
    """Rows with the labels of one class. Features, ids and weights are those of all classes.

    Parameters
    ----------
    blocks : Blocks
        The rows. `Block.code` has the number of each row's set of classes.
    labels : ndarray of shape (n_sets,), int8
        The label of each set.
    """

    def __init__(self, blocks: Blocks, labels: ndarray):
        super().__init__(blocks, OneVsRest(labels), keep="memory" if blocks.lasting else "nowhere", same_features=True)
        self._of_all_classes = blocks
        if blocks.unmapped is not blocks:
            self.set_feature_map(blocks.feature_map, ClassView(blocks.unmapped, labels))

    @property
    def ranges(self) -> ColumnRanges:
        """The range of each column, which is computed once for all classes."""
        return self._of_all_classes.ranges


@frozen
class ClassBlocks:
    """Rows with several classes, in blocks.

    Attributes
    ----------
    blocks : Blocks
        `Block.code` has the number of each row's set in `sets`.
    record_steps : callable, optional
        ``record_steps(k, blocks) -> Blocks`` returns the rows of the class at position `k` such that their steps are
        recorded, as for checkpoints.
    changes : tuple of callable
        Functions of blocks that are applied to the rows, such as the mask of a fold.
    """

    blocks: Blocks
    sets: LabelSets
    record_steps: Callable[[int, Blocks], Blocks] | None = None
    changes: tuple[Callable[[Blocks], Blocks], ...] = ()

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.blocks.n_samples

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.blocks.n_features

    @property
    def has_weights(self) -> bool:
        """Whether any row came with a sample weight."""
        return self.blocks.has_weights

    @property
    def threads(self) -> int:
        """The number of classes that are fitted at the same time: the threads of this process, or up to `AT_ONCE` on workers."""
        return self.blocks.threads or max(1, min(AT_ONCE, MAX_WEIGHTS // self.n_features))

    def of_class(self, k: int) -> Blocks:
        """Return the rows with the labels of the class at position `k`: +1 for its rows, -1 for all others."""
        blocks = ClassView(self.blocks, self.sets.labels_against_rest(k))
        return self._changed(blocks if self.record_steps is None else self.record_steps(k, blocks))

    def then(self, change: Callable[[Blocks], Blocks]) -> "ClassBlocks":
        """Return the same classes after applying `change` to the rows of each class."""
        return replace(self, changes=(*self.changes, change))

    def each_class(self) -> Iterator[Blocks]:
        """Yield the rows with the labels of each class against the rest."""
        yield from map(self.of_class, range(self.sets.n_classes))

    def all_blocks(self) -> Blocks:
        """Return the rows with the numbers of their sets of classes."""
        return self._changed(self.blocks)

    def with_negative_labels(self) -> Blocks:
        """Return the rows with the label -1, for steps that do not use the labels."""
        return self._changed(ClassView(self.blocks, np.full(self.sets.members.shape[0], -1, dtype=np.int8)))

    def _changed(self, blocks: Blocks) -> Blocks:
        for change in self.changes:
            blocks = change(blocks)
        return blocks


AnyBlocks = Blocks | ClassBlocks
"""Rows of two classes, or of several."""
