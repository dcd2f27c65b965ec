"""Blocks whose rows have several classes, and their views: one class against the rest, with the same rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.data.column_statistics import ColumnRanges
from aucdist.data.label_sets import LabelSets
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.engine.view import ViewBlocks

AT_ONCE = 16
"""So many classes at most are fitted at the same time to rows on workers: while these work for some, the client for others."""

MOST_WEIGHTS = 2**21
"""Classes that are fitted at the same time have so many weights together at most: this process keeps some 40 vectors for each."""


@dataclass(frozen=True, eq=False)
class OneAgainstRest:
    """Makes labels of places in a table of sets of classes: -1 and +1.

    Attributes
    ----------
    signs : ndarray of shape (n_sets,), int8
        For each set its label.
    """

    signs: np.ndarray
    same_rows = True

    def __call__(self, block: Block) -> Block:
        """Return the block with labels."""
        assert block.code is not None  # else `signs` would be taken whole
        return replace(block, y=self.signs[block.code], code=None)


class ClassView(ViewBlocks):
    """Rows with the labels of one class; features, ids and weights are those of all classes.

    Parameters
    ----------
    blocks : Blocks
        `Block.code` holds places in a table of sets of classes.
    signs : ndarray of shape (n_sets,), int8
    """

    def __init__(self, blocks: Blocks, signs: np.ndarray):
        super().__init__(blocks, OneAgainstRest(signs), keep="memory" if blocks.lasting else "nowhere")
        self._of_all_classes = blocks
        if blocks.unmapped is not blocks:
            self._unmapped, self.feature_map = ClassView(blocks.unmapped, signs), blocks.feature_map

    @property
    def ranges(self) -> ColumnRanges:
        """The range of each column: found once for all classes."""
        return self._of_all_classes.ranges


@dataclass(frozen=True, eq=False)
class ClassBlocks:
    """Rows with several classes, in blocks.

    Attributes
    ----------
    blocks : Blocks
        `Block.code` holds places in the table of `sets`.
    follow : callable, optional
        ``follow(k, blocks) -> Blocks`` gives the rows of the class at position `k` to what records its steps, as checkpoints do.
    changes : tuple of callable
        Functions of blocks that are made of the rows, those of a class or of all, such as the mask of a fold.
    """

    blocks: Blocks
    sets: LabelSets
    follow: Callable[[int, Blocks], Blocks] | None = None
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
        """How many classes are fitted at the same time: as many as this process has threads, or up to `AT_ONCE` on workers."""
        source = self.blocks._source if isinstance(self.blocks, ViewBlocks) else self.blocks
        if isinstance(source, LocalBlocks):
            return source._threads
        return max(1, min(AT_ONCE, MOST_WEIGHTS // self.n_features))

    def of_class(self, k: int) -> Blocks:
        """Return the rows with the labels of the class at position `k`: +1 for its rows, -1 for all others."""
        blocks = ClassView(self.blocks, self.sets.signs(k))
        return self._changed(blocks if self.follow is None else self.follow(k, blocks))

    def then(self, change: Callable[[Blocks], Blocks]) -> "ClassBlocks":
        """Return the same classes, whose rows are what `change` makes of those of each class."""
        return replace(self, changes=(*self.changes, change))

    def each_class(self) -> Iterator[Blocks]:
        """Yield the rows with the labels of each class against the rest."""
        yield from map(self.of_class, range(self.sets.n_classes))

    def of_all(self) -> Blocks:
        """Return the rows with the places of their sets of classes."""
        return self._changed(self.blocks)

    def unlabelled(self) -> Blocks:
        """Return the rows with the label -1 each, for what needs no classes."""
        return self._changed(ClassView(self.blocks, np.full(self.sets.members.shape[0], -1, dtype=np.int8)))

    def _changed(self, blocks: Blocks) -> Blocks:
        for change in self.changes:
            blocks = change(blocks)
        return blocks


AnyBlocks = Blocks | ClassBlocks
"""Rows of two classes, or of several."""
