"""Which rows are kept for the test: the same share of each class, in two readings of the labels and row ids.

Each row gets a random number from its row id and the seed; the rows of a class with the smallest numbers are the test rows. So
the choice depends neither on the order of the rows nor on the blocks that they lie in.

Where rows have groups, the number is one of the group, and whole groups of the smallest numbers are the test rows, so many that
they have the share of all rows.
"""

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError

N_BINS = 2**16  # of the histogram in which the last test row of a class is searched
LABELS = (-1, 1)


@dataclass(frozen=True)
class Split:
    """A choice of test rows, for whichever block they lie in.

    Attributes
    ----------
    seed : int
    limits : (int, int)
        The greatest random number of a test row, of the negative and of the positive class.
    n_test : (int, int)
        The number of test rows of either class.
    """

    seed: int
    limits: tuple[int, int]
    n_test: tuple[int, int]

    def is_test(self, block: Block) -> np.ndarray:
        """Return whether each row is a test row, bool of shape (n_samples,)."""
        limits = np.array(self.limits, dtype=np.uint64)[(block.y == 1).astype(np.intp)]
        return scrambled(block.row_id if block.group is None else block.group, self.seed) <= limits


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """How many rows of each class the groups have; ``+`` merges those of two blocks.

    Attributes
    ----------
    numbers : ndarray of shape (n_groups,), uint64
        The random numbers of the groups, ascending.
    rows : ndarray of shape (n_groups, 2), int64
        Of the negative and of the positive class.
    """

    numbers: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, rows: np.ndarray) -> "GroupCounts":
        """Return the counts of numbers that may be there several times."""
        found, at = np.unique(numbers, return_inverse=True)
        total = np.zeros((len(found), 2), dtype=np.int64)
        np.add.at(total, at, rows)
        return cls(found, total)

    def __add__(self, other: "GroupCounts") -> "GroupCounts":
        return GroupCounts.of(np.concatenate([self.numbers, other.numbers]), np.concatenate([self.rows, other.rows]))

    def split(self, test_fraction: float, seed: int) -> Split:
        """Return the split that takes the groups of the smallest numbers, of about this share of all rows."""
        if len(self.numbers) < 2:
            raise InputError("the rows are all of one group; a split into training and test rows needs at least two")
        below = np.cumsum(self.rows, axis=0)
        total = below.sum(axis=1)
        last = min(int(np.searchsorted(total, test_fraction * total[-1])), len(total) - 2)
        n_test = below[last]
        for side, n in (("test", n_test), ("training", below[-1] - n_test)):
            if 0 in n:
                raise InputError(
                    f"with whole groups the {side} rows are all of one class: take another seed or another share of test rows"
                )
        limit = int(self.numbers[last])
        return Split(seed, (limit, limit), (int(n_test[0]), int(n_test[1])))


def find_split(
    blocks: Sequence[Any],
    test_fraction: float,
    seed: int,
    *,
    load: Callable[[Any], Block] | None = None,
    each: Callable[..., Iterable[Any]] = map,
) -> Split:
    """Choose test rows.

    Parameters
    ----------
    blocks : sequence of Block, or of whatever `load` makes a block of
        All rows of the data set.
    test_fraction : float
        Share of each class, between 0 and 1. Of each class at least one row goes to either side.
    seed : int
        Any integer.
    load : callable, optional
        Makes a block, if the blocks are not there yet.
    each : callable
        ``each(function, items)`` yields the result for each item in order; by default here, one after the other.

    Raises
    ------
    InputError
        If the fraction is not between 0 and 1, or if a class has fewer than two rows.
    """
    if not 0 < test_fraction < 1:
        raise InputError(f"the share of test rows is {test_fraction}; it must lie between 0 and 1")
    histogram = functools.reduce(operator.add, each(functools.partial(_histogram, load, seed), blocks))
    if isinstance(histogram, GroupCounts):
        return histogram.split(test_fraction, seed)
    below = np.cumsum(histogram, axis=1)
    n_test, bins = [], []
    for of_class, called in zip(below, ("negative", "positive"), strict=True):
        n = int(of_class[-1])
        if n < 2:
            raise InputError(f"{n} {called} rows; a split into training and test rows needs at least two")
        n_test.append(min(max(round(test_fraction * n), 1), n - 1))
        bins.append(int(np.searchsorted(of_class, n_test[-1])))  # which has the last test row of the class
    parts = list(each(functools.partial(_numbers_in_bins, load, seed, bins), blocks))
    limits = []
    for k, bin_ in enumerate(bins):
        before = int(below[k][bin_ - 1]) if bin_ else 0
        numbers = np.sort(np.concatenate([part[k] for part in parts]))
        limits.append(int(numbers[n_test[k] - before - 1]))
    return Split(seed, (limits[0], limits[1]), (n_test[0], n_test[1]))


def split(block: Block, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training rows and of the test rows in a block that has all rows, ascending.

    Parameters and errors are those of `find_split`.
    """
    is_test = find_split([block], test_fraction, seed).is_test(block)
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def _histogram(load: Callable[[Any], Block] | None, seed: int, item: Any) -> np.ndarray | GroupCounts:
    """Return how many rows of each class have a random number in each bin, int64 of shape (2, N_BINS); or those of groups."""
    block = item if load is None else load(item)
    if block.group is not None:
        rows = np.column_stack([block.y == label for label in LABELS]).astype(np.int64)
        return GroupCounts.of(scrambled(block.group, seed), rows)
    bins = _bins(scrambled(block.row_id, seed))
    return np.stack([np.bincount(bins[block.y == label], minlength=N_BINS) for label in LABELS])


def _numbers_in_bins(
    load: Callable[[Any], Block] | None, seed: int, wanted: Sequence[int], item: Any
) -> list[np.ndarray]:
    """Return the random numbers of the rows in the wanted bin of each class."""
    block = item if load is None else load(item)
    numbers = scrambled(block.row_id, seed)
    bins = _bins(numbers)
    return [numbers[(block.y == label) & (bins == one)] for label, one in zip(LABELS, wanted, strict=True)]


def _bins(numbers: np.ndarray) -> np.ndarray:
    return (numbers >> np.uint64(48)).astype(np.intp)


def split_strata(
    row_id: np.ndarray, strata: np.ndarray, test_fraction: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training rows and of the test rows: the same share of each group of rows, ascending.

    Parameters
    ----------
    row_id : ndarray of shape (n_samples,), int64
    strata : ndarray of shape (n_samples,), int
        The group of each row, such as its class. A group of one row goes to the training rows.
    test_fraction, seed
        As for `find_split`, which chooses the same rows where the groups are the two classes.
    """
    number, is_test = scrambled(row_id, seed), np.zeros(len(row_id), dtype=bool)
    for group in np.unique(strata).tolist():
        rows = np.flatnonzero(strata == group)
        n_test = min(max(round(test_fraction * len(rows)), 1), len(rows) - 1)
        is_test[rows[np.argsort(number[rows], kind="stable")[:n_test]]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def scrambled(row_id: np.ndarray, seed: int) -> np.ndarray:
    """Return a random number for each row, uint64: the finisher of SplitMix64, so that no two ids share one."""
    return _mixed(row_id.astype(np.uint64) ^ _mixed(np.array([seed % 2**64], dtype=np.uint64)))


def _mixed(z: np.ndarray) -> np.ndarray:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
