"""The folds of a search: the rows on which each fold trains, and those on which it is scored."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from aucdist.data.block import Block, concatenate_columns
from aucdist.data.label_sets import LabelSets
from aucdist.data.preprocess import Preprocessor
from aucdist.engine.blocks import Blocks, Summary, block_seed
from aucdist.engine.view import Mask, ViewBlocks
from aucdist.errors import InputError
from aucdist.parameters import frozen
from aucdist.selection import Partition, partition

MIN_ROWS = 2
"""The smallest number of training rows of a class and of all other rows. Other classes are left out."""


class Fold(NamedTuple):
    """A fold, or a fold of the training rows of a fold."""

    repeat: int
    fold: int
    inner: int | None = None


class FoldMasks(NamedTuple):
    """The rows on which a fold trains and on which it is scored, as bool arrays indexed by row id."""

    train: np.ndarray
    held_out: np.ndarray


@frozen
class Folds:
    """All folds of a search. The fold of a row depends on its id, its class and the seed, but not on its block.

    Attributes
    ----------
    row_id : ndarray of shape (n_samples,), int64
        The distinct ids of the rows, which are not negative.
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.
    n_inner : int or None
        The number of folds of the training rows of each fold, for nested cross-validation.
    groups : ndarray of shape (n_samples,), int64, or None
        As for `aucdist.selection.partition`.
    time : ndarray of shape (n_samples,), float64, or None
        As for `aucdist.selection.partition`.
    strata : ndarray of shape (n_samples,), int, or None
        As for `aucdist.selection.partition`.
    group_names : sequence of str or None
        As for `aucdist.selection.partition`.
    """

    row_id: np.ndarray
    y: np.ndarray
    n_folds: int
    repeats: int = 1
    seed: int = 0
    n_inner: int | None = None
    groups: np.ndarray | None = None
    time: np.ndarray | None = None
    gap_rows: int = 0
    gap_time: float = 0.0
    strata: np.ndarray | None = None
    group_names: Sequence[str] | None = None
    _made: dict[tuple[int, int | None], Partition] = field(default_factory=dict)

    def outer(self) -> list[Fold]:
        """Return the folds, repeat by repeat."""
        return [Fold(repeat, fold) for repeat in range(self.repeats) for fold in range(self.n_folds)]

    def inner(self, fold: Fold) -> list[Fold]:
        """Return the folds of the training rows of a fold."""
        return [Fold(fold.repeat, fold.fold, inner) for inner in range(self.n_inner or 0)]

    def masks(self, fold: Fold) -> FoldMasks:
        """Return the rows on which a fold trains, and those on which it is scored."""
        outer, row_id, k = self._partition(fold.repeat, None), self.row_id, fold.fold
        if fold.inner is not None:
            train = outer.train(k)
            outer, row_id, k = self._partition(fold.repeat, k, train), row_id[train], fold.inner
        masks = np.zeros((2, int(self.row_id.max()) + 1), dtype=bool)
        for side, rows in zip(masks, (outer.train(k), outer.held_out(k)), strict=True):
            side[row_id[rows]] = True
        return FoldMasks(*masks)

    def sizes(self, fold: Fold) -> tuple[int, int]:
        """Return the number of training rows and of held-out rows."""
        train, held_out = self.masks(fold)
        return int(train.sum()), int(held_out.sum())

    @property
    def fewest(self) -> int:
        """The number of independent units: rows of the smaller class, or groups if there are fewer of them."""
        rows = int(min((self.y == label).sum() for label in (-1, 1)))
        return rows if self.groups is None else min(rows, len(np.unique(self.groups)))

    def check(self) -> None:
        """Compute all folds, so that an error is raised before any fit.

        Raises
        ------
        InputError
            If one of them is impossible: see `aucdist.selection.partition`.
        """
        for fold in self.all():
            self.masks(fold)

    def all(self) -> Iterator[Fold]:
        """Yield the folds, each followed by the folds of its training rows."""
        for fold in self.outer():
            yield fold
            yield from self.inner(fold)

    def _partition(self, repeat: int, fold: int | None, rows: np.ndarray | None = None) -> Partition:
        if (repeat, fold) not in self._made:
            at = slice(None) if rows is None else rows
            groups, time, strata = (
                None if column is None else column[at] for column in (self.groups, self.time, self.strata)
            )
            self._made[repeat, fold] = partition(
                self.row_id[at], self.y[at], self.n_folds if fold is None else self.n_inner or 0,
                block_seed(self.seed, repeat, 0 if fold is None else 1 + fold),
                groups=groups, time=time, gap_rows=self.gap_rows, gap_time=self.gap_time, strata=strata,
                group_names=self.group_names,
            )  # fmt: skip
        return self._made[repeat, fold]


def gather_columns(blocks: Blocks, *names: str) -> tuple[Any, ...]:
    """Return attributes of all rows, such as row_id, label and group, block by block.

    Return None for attributes that rows do not have.
    """
    return concatenate_columns(blocks.sum(_attributes, names))


def _attributes(block: Block, names: tuple[str, ...]) -> Summary:
    values = (getattr(block, name) for name in names)
    return [tuple(None if value is None else np.array(value) for value in values)]


def masked_blocks(blocks: Blocks, inside: np.ndarray, prepare: Preprocessor | None = None) -> Blocks:
    """Return the rows of blocks that are inside a mask. The others get weight 0, and rows of weight 0 are ignored.

    A solver that ignores rows of weight 0 adds up the same terms in the same order as for blocks that have only the rows
    inside. So the result has the same bits.

    Parameters
    ----------
    blocks : Blocks
        All rows.
    inside : ndarray of bool
        Whether a row is inside, indexed by ``row_id``. It is sent once, with one byte for each row.
    prepare : Preprocessor, optional
        The scaling of the fold. The rows are scaled for each step, which therefore takes several times as long.
    """
    return ViewBlocks(blocks, Mask(inside, prepare), keep="nowhere", same_features=prepare is None)


# ---- several classes ------------------------------------------------------------------------------------------------------


def smallest_class(sets: LabelSets, set_numbers: np.ndarray, least: int) -> tuple[int, int]:
    """Return the numbers of rows of the smallest class and of all other classes.

    Classes with fewer than `least` rows are ignored if there are larger ones. The result decides which maps are tried for all
    classes.
    """
    n_pos, n = sets.counts(set_numbers), len(set_numbers)
    rows = np.minimum(n_pos, n - n_pos)
    enough = np.flatnonzero(rows >= least)
    k = enough[np.argmin(rows[enough])] if len(enough) else np.argmax(rows)
    return int(n_pos[k]), int(n - n_pos[k])


class SearchedClasses(NamedTuple):
    """The classes over which a search takes means.

    Attributes
    ----------
    sets : LabelSets
        The sets of classes of the rows, restricted to these classes.
    n_rows : ndarray of shape (n_classes,), int64
        The number of training rows of each class.
    left_out : tuple of str
        Classes that have too few rows for the folds.
    """

    sets: LabelSets
    n_rows: np.ndarray
    left_out: tuple[str, ...]


def searched_classes(
    sets: LabelSets, set_numbers: np.ndarray, folds: Folds, note: Callable[[str], None]
) -> SearchedClasses:
    """Return the classes on which every fold can train and be scored.

    Parameters
    ----------
    sets : LabelSets
        The sets of classes of the rows.
    set_numbers : ndarray of shape (n_samples,), int
        The index of the set of each row, in the order of the rows of `folds`.
    folds : Folds
        The folds.
    note : callable
        Called with a sentence about each class that is left out.

    Returns
    -------
    SearchedClasses

    Raises
    ------
    InputError
        If no class is left.
    """
    n = len(folds.row_id)
    enough, n_rows, names = np.ones(sets.n_classes, dtype=bool), sets.counts(set_numbers), sets.names()
    for fold in folds.all():
        for side, least in zip(folds.masks(fold), (MIN_ROWS, 1), strict=True):
            n_pos = sets.counts(set_numbers[side[folds.row_id]])
            enough &= np.minimum(n_pos, int(side.sum()) - n_pos) >= least
    left_out = np.flatnonzero(~enough).tolist()
    for k in left_out:
        note(f"class {names[k]!r} has {n_rows[k]} of {n} training rows, too few for the folds: the means leave it out")
    chosen = np.flatnonzero(enough).tolist()
    if not chosen:
        raise InputError("no class has rows on both sides of every fold: use fewer folds")
    return SearchedClasses(sets.only(chosen), n_rows[chosen], tuple(names[k] for k in left_out))
