"""Run a step on every block of a data set, and add up the summaries that it returns: `blocks.reduce(step, *args)`."""

import copy
import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from aucdist.data.block import Block, stacked
from aucdist.data.column_statistics import ColumnRanges
from aucdist.data.label_sets import LabelSets
from aucdist.data.labels import group_numbers
from aucdist.data.storage.faults import long_retries
from aucdist.data.storage.scratch import Stored
from aucdist.engine.steps import (
    BlockFunction,
    MergeTree,
    Step,
    Summary,
    first_argument,
    in_threads,
    memory_and_summary,
    number_of_threads,
    reads_rows_itself,
    run_on_blocks,
    without_rows,
)
from aucdist.errors import InputError
from aucdist.kernels.codes import BinRows
from aucdist.parameters import between

__all__ = [
    "BlockFunction", "BlockInfo", "Blocks", "Loader", "LocalBlocks", "Step", "StoredBlock", "Summary", "block_seed", "info_of",
    "load", "reads_rows_itself", "without_rows",
]  # fmt: skip

T = TypeVar("T")
Loader = Callable[[Any], Block]
"""A function ``loader(item)`` that reads a block. The item is the number of the block, or a reference to a copy of it
(`aucdist.data.storage.scratch.Stored`)."""

MAX_RANGES = 10_000
"""The client keeps the column ranges of a stored block if it has at most this many columns, which take 160 kB."""


@dataclass(frozen=True)
class BlockInfo:
    """The sizes and weights of a block, which the client knows without its rows.

    Attributes
    ----------
    weight_pos, weight_neg : float
        The total weight of the rows of each class.
    lasting : bool
        Whether the rows stay in memory from step to step. Those of a stored block do not.
    ranges : ColumnRanges or None
        The ranges of a stored block's columns, so that it need not be read again for them.
    copied : bool
        Whether a stored block has a copy on the local disk, which is memory-mapped for each step. Otherwise, the block is read
        and decoded for each step.
    pair_columns : tuple of str
        The columns besides the label that decide which rows make pairs: ``group`` and ``grade``.
    """

    n_samples: int
    n_features: int
    n_pos: int
    weight_pos: float
    weight_neg: float
    has_weights: bool
    pair_columns: tuple[str, ...] = ()
    coded: bool = False
    lasting: bool = True
    ranges: ColumnRanges | None = None
    copied: bool = False

    @classmethod
    def of(cls, block: Block) -> "BlockInfo":
        """Return the description of a block."""
        positive, weight = block.y > 0, block.weight
        n, n_pos = block.n_samples, int(np.count_nonzero(positive))
        weight_pos, weight_neg = float(n_pos), float(n - n_pos)
        if weight is not None:
            weight_pos, weight_neg = float(weight[positive].sum()), float(weight[~positive].sum())
        pair_columns = tuple(name for name in ("group", "grade") if getattr(block, name) is not None)
        coded = isinstance(block.rows, BinRows)
        return cls(n, block.n_features, n_pos, weight_pos, weight_neg, weight is not None, pair_columns, coded)


class StoredBlock(Stored[Block]):
    """A block that is not kept in memory: each step reads it, or maps a copy on the local disk.

    Parameters
    ----------
    loader : callable
        ``loader(item) -> Block``, picklable, and always the same block.
    item : object, optional
        The argument of the loader; by default the index.
    """

    info: BlockInfo
    """The information that the first reading of the blocks has given."""

    def __init__(self, loader: Loader, index: int, item: Any = None):
        super().__init__(functools.partial(_read_block, loader), index if item is None else item)
        self.index = index

    @classmethod
    def first_read(cls, loader: Loader, index: int, item: Any = None) -> "StoredBlock":
        """Read the block once, so that errors in it are reported before the work begins."""
        stored = cls(loader, index, item)
        block = stored.read()
        ranges = ColumnRanges.of(block.rows, block.weight) if block.n_features <= MAX_RANGES else None
        stored.info = replace(BlockInfo.of(block), lasting=False, ranges=ranges, copied=stored.copied)
        if stored.copied and isinstance(stored.item, Stored):
            # Keep the item without its copy on the disk, as if it had been pickled, because the original item owns that copy.
            stored.item = copy.copy(stored.item)
        return stored


def _read_block(loader: Loader, item: Any) -> Block:
    block = load(loader, item)
    # Otherwise the pool keeps three times the memory of decompressing a block.
    pa.default_memory_pool().release_unused()
    return block


def load(loader: Callable[[Any], T], item: Any) -> T:
    """Call a loader of blocks or another function. If a store does not answer, try again for a while."""
    with long_retries():
        return loader(item)


def load_all(
    loader: Loader, numbers: Sequence[int], items: Sequence[Any], stream: bool, threads: int
) -> list[Block | StoredBlock]:
    """Load the blocks of these numbers. With `stream`, read them once and keep only what is needed to read them again."""
    return in_threads(
        lambda i: StoredBlock.first_read(loader, numbers[i], items[i]) if stream else load(loader, items[i]),
        len(numbers),
        threads,
    )


def info_of(block: Block | StoredBlock) -> BlockInfo:
    """Return the description of a block, whether or not it is in memory."""
    return block.info if isinstance(block, StoredBlock) else BlockInfo.of(block)


class Blocks(ABC):
    """The rows of a data set in blocks, in this process or on workers.

    A step is a module-level function ``step(block, memory, *args) -> (memory, summary)``. `memory` is what the block keeps
    until the next step (None before the first); it stays where the block is. A step that does not change it returns only the
    summary. `summary` supports ``+``, or is a dict of values that do: arrays and numbers add up, lists concatenate in the order
    of the blocks, other objects define ``__add__``. A summary must not be a tuple, which would be taken for memory and
    summary. Summaries are added up in a fixed binary tree over the numbers of the blocks (`aucdist.engine.steps`). A step must be
    pure: it changes neither its inputs nor anything else, and its result depends on its inputs only. So it may run in any thread,
    and again on another worker.

    Attributes
    ----------
    infos : list of BlockInfo
        A description of each block.
    n_blocks, n_samples, n_features, n_pos, n_neg : int
        Numbers of blocks, rows, columns, positive and negative rows.
    weight_pos, weight_neg : float
        The total weight of the positive and of the negative rows.
    has_weights : bool
        Whether any row came with a sample weight.
    has_groups, has_grades : bool
        Whether rows have a group, so that pairs are within groups; and a grade, so that a pair is two rows with different
        grades.
    has_codes : bool
        Whether the rows are codes of a feature map, instead of numbers.
    lasting : bool
        Whether all rows stay in memory from step to step, so that values computed from them may stay there as well.
    features_lasting : bool
        Whether the features stay in memory, even if weights or labels are made for each step.
    """

    _unmapped: "Blocks | None" = None
    sets: LabelSets | None = None
    """The table of sets of classes, which only `aucdist.engine.view.ClassBlocks` has."""
    feature_map: Any = None
    """The fitted feature map that made these rows from other rows, see `unmapped`."""
    feature_names: tuple[str, ...] | None = None
    """The names of the columns, if they are known."""
    threads: int = 0
    """The number of threads of this process that run the steps. It is 0 if workers run them."""

    def __init__(self, infos: Sequence[BlockInfo]):
        if not infos:
            raise InputError("there are no blocks: give at least one")
        widths = sorted({i.n_features for i in infos})
        if len(widths) > 1:
            raise InputError(
                f"the blocks have different numbers of features ({', '.join(map(str, widths))}): give all the same columns"
            )
        self.infos = list(infos)
        self.n_blocks, self.n_features = len(infos), infos[0].n_features
        self.n_samples, self.n_pos = sum(i.n_samples for i in infos), sum(i.n_pos for i in infos)
        self.n_neg = self.n_samples - self.n_pos
        self.weight_pos, self.weight_neg = sum(i.weight_pos for i in infos), sum(i.weight_neg for i in infos)
        pair_columns = {name for i in infos for name in i.pair_columns}
        self.has_weights, self.has_groups = any(i.has_weights for i in infos), "group" in pair_columns
        self.has_grades = "grade" in pair_columns
        self.has_codes, self.lasting = infos[0].coded, all(i.lasting for i in infos)
        self.features_lasting = self.lasting
        self._ranges: Any = None  # ColumnRanges, once they have been computed

    @property
    def ranges(self) -> ColumnRanges:
        """The range of each column. It is computed by one reduction, unless it was found when the blocks were read."""
        if self._ranges is None:
            known = [info.ranges for info in self.infos if info.ranges is not None]
            if len(known) == self.n_blocks:
                self._ranges = functools.reduce(ColumnRanges.__add__, known)
            else:
                self._ranges = self.reduce(lambda block, memory: ColumnRanges.of(block.rows, block.weight))
        assert self._ranges is not None
        return self._ranges

    @property
    def unmapped(self) -> "Blocks":
        """The blocks of the original rows, before any feature map."""
        return self if self._unmapped is None else self._unmapped

    def set_feature_map(self, feature_map: Any, unmapped: "Blocks") -> Self:
        """Record which feature map made these rows, and of which rows, and return these blocks."""
        self.feature_map, self._unmapped = feature_map, unmapped
        return self

    @abstractmethod
    def without_memory(self) -> Self:
        """Return the same blocks with empty memory, for a fit that must not share memory with another."""

    def fork(self) -> Self:
        """Return the same blocks with a copy of their memory, so that steps on one do not change the other."""
        return copy.copy(self)

    @abstractmethod
    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on every block and return the sum of the summaries.

        Parameters
        ----------
        step : callable
            A module-level function, as the class describes it.
        *args
            Sent to every block: arrays, numbers, tuples of them.
        """

    def sum(self, function: BlockFunction, *args: Any) -> Summary:
        """Call a module-level function, ``function(block, *args)``, on each block and return the sum of the results."""
        return self.reduce(_WithoutMemory(function), *args)

    # `aucdist.engine.view.ClassBlocks` has these methods as well, so that callers need not distinguish the number of classes:

    def then(self, change: "Callable[[Blocks], Blocks]") -> "Blocks":
        """Return the rows after applying a function to each block."""
        return change(self)

    def each_class(self) -> "Iterator[Blocks]":
        """Yield the rows once, with the labels they have."""
        yield self

    def all_blocks(self) -> "Blocks":
        """Return the rows."""
        return self


class LocalBlocks(Blocks):
    """Blocks that this process works on, with one thread or several.

    Parameters
    ----------
    blocks : sequence of Block or StoredBlock
        Stored blocks are read again for each step and not kept.
    n_jobs : int or None, default=None
        The number of threads that work on blocks at the same time. None means 1, and -1 means one for each core. The results
        have the same bits for any number. More threads than blocks have no effect.
    """

    def __init__(self, blocks: Sequence[Block | StoredBlock], *, n_jobs: int | None = None):
        super().__init__([info_of(b) for b in blocks])
        for number, block in enumerate(blocks):
            if block.index != number:
                raise InputError(
                    f"block {number} has index {block.index}, but indices must be 0, 1, 2, ... in the order of the blocks: use "
                    f"Block.of(X, y, index={number})"
                )
        self._blocks, self.threads = list(blocks), number_of_threads(n_jobs)
        self._memory: list[Any] = [None] * len(self._blocks)

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        n_blocks: int,
        n_jobs: int | None = None,
    ) -> "LocalBlocks":
        """Divide rows in memory into blocks of adjacent rows of nearly equal size, without copying the features.

        Parameters
        ----------
        X : ndarray or scipy sparse matrix or array of shape (n_samples, n_features)
            Copied only if it is not of floats, C-contiguous or CSR with int32 indices.
        y : array of shape (n_samples,)
            Labels, -1 or +1.
        sample_weight : array of shape (n_samples,), optional
            The weights of the rows. By default all are 1.
        groups : array of shape (n_samples,), optional
            Numbers or strings: a pair is then two rows with the same one.
        n_blocks : int
            From 1 to n_samples. Another number changes the last bits of a fit.
        n_jobs : int or None, default=None
            As the class describes it. It does not change the result.

        Raises
        ------
        InputError
            For too few or too many blocks, and as `Block.of`.
        """
        rows = Block.of(X, y, weight=sample_weight, group=group_numbers(groups))
        between(1, rows.n_samples).check("n_blocks", n_blocks)
        return cls.split(rows, int(n_blocks), n_jobs)

    @classmethod
    def split(cls, rows: Block, n_blocks: int, n_jobs: int | None = None) -> "LocalBlocks":
        """Divide a block into blocks of adjacent rows. The parameters are those of `of`."""
        if n_blocks == 1:
            return cls([rows], n_jobs=n_jobs)
        ends = [rows.n_samples * number // n_blocks for number in range(n_blocks + 1)]
        parts = enumerate(itertools.pairwise(ends))
        return cls([rows.between(*part, index=index) for index, part in parts], n_jobs=n_jobs)

    @classmethod
    def load(
        cls,
        loader: Loader,
        n_blocks: int,
        *,
        stream: bool = False,
        n_jobs: int | None = None,
        items: Sequence[Any] | None = None,
    ) -> "LocalBlocks":
        """Load all blocks. With `stream`, they are read again for each step. The results are the same.

        Parameters
        ----------
        loader : callable
            ``loader(item) -> Block``; with `n_jobs` called by several threads.
        n_blocks : int
            The number of blocks.
        stream : bool, default=False
            Whether to read the blocks again for each step instead of keeping them in memory.
        n_jobs : int or None, default=None
            As the class describes it.
        items : sequence, optional
            The argument of the loader for each block; by default its index.
        """
        numbers = range(n_blocks)
        blocks = load_all(loader, numbers, numbers if items is None else items, stream, number_of_threads(n_jobs))
        return cls(blocks, n_jobs=n_jobs)

    def without_memory(self) -> "LocalBlocks":
        """Return the same blocks with empty memory."""
        other = copy.copy(self)
        other._memory = [None] * len(self._blocks)
        return other

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Run the step on the blocks."""
        numbers = range(self.n_blocks)
        if self.threads > 1 or not self.lasting:
            after, tree = run_on_blocks(step, self._blocks, self._memory, args, numbers, threads=self.threads)
        else:  # With one thread and blocks in memory, locks would cost more than a step on few rows.
            tree, after = MergeTree(), []
            for number, argument in enumerate(numbers if first_argument(step) == "number" else self._blocks):
                before = self._memory[number]
                memory, summary = memory_and_summary(step(argument, before, *args), before)
                after.append(memory)
                tree.add(0, number, summary)
        self._memory = after
        return tree.total()


class _WithoutMemory:
    """A step that calls a function and leaves the memory unchanged. Errors and journals show the function's name."""

    def __init__(self, function: BlockFunction):
        self.function, self.__name__ = function, getattr(function, "__name__", type(function).__name__)

    def __call__(self, block: Block, memory: Any, *args: Any) -> Summary:
        """Return what the function returns."""
        return self.function(block, *args)


def all_rows(blocks: Blocks) -> Block:
    """Return the rows of all blocks as one block, for which this process must have the memory."""
    return stacked(blocks.sum(lambda block: [block]))


def gather_sample(blocks: Blocks, draw: BlockFunction, *args: Any) -> Block:
    """Return the rows that a function draws from each block, in the order of their ids. The function returns a list of blocks."""
    drawn = stacked(blocks.sum(draw, *args))
    in_order = (drawn.row_id[1:] >= drawn.row_id[:-1]).all()
    return drawn if in_order else drawn.take(np.argsort(drawn.row_id, kind="stable"))


def block_seed(seed: int, round_: int, index: int) -> int:
    """Return the seed of a block in a round, below 2**63. A step may use no other source of randomness.

    Parameters
    ----------
    seed, round_, index : int
        The seed of the run, the number of the round, and the index of the block. None of them is negative.

    Returns
    -------
    int
    """
    return int(np.random.SeedSequence((seed, round_, index)).generate_state(1, np.uint64)[0] >> 1)
