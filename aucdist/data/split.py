"""Which rows are kept for the test: the same share of each class, in two readings of the labels and row ids.

Each row gets a random number from its row id and the seed; the rows of a class with the smallest numbers are the test rows. So
the choice depends neither on the order of the rows nor on the blocks that they lie in.

Where rows have groups, the number is one of the group, and whole groups of the smallest numbers are the test rows, so many that
they have the share of all rows.

Or the last rows by a column of times are the test rows, whole groups where there are some.
"""

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from aucdist.data.block import Block
from aucdist.errors import InputError

N_BINS = 2**16  # of the histogram in which the last test row of a class is searched
LABELS = (-1, 1)


@dataclass(frozen=True)
class Strata:
    """What rows are split within: the two classes, or one of several classes each.

    Attributes
    ----------
    n : int or None
        Of rows with several classes their number, `Block.code` being the class; 1 for rows of which each may have several. None
        for two classes.
    """

    n: int | None = None

    def of(self, block: Block) -> np.ndarray:
        """Return the number of each row's stratum, from 0: int of shape (n_samples,)."""
        if self.n == 1:
            return np.zeros(block.n_samples, dtype=np.intp)
        return np.asarray(block.y == 1 if self.n is None else block.code).astype(np.intp)

    @property
    def n_bins(self) -> int:
        """Bins of each histogram: those of all strata take a megabyte at most."""
        return max(2, N_BINS >> max((self.n or 1) - 1, 0).bit_length())

    def bins(self, numbers: np.ndarray) -> np.ndarray:
        """Return the bin of each random number."""
        return (numbers >> np.uint64(65 - self.n_bins.bit_length())).astype(np.intp)


@dataclass(frozen=True)
class Split:
    """A choice of test rows, for whichever block they lie in.

    Attributes
    ----------
    limits : tuple of int
        The greatest random number of a test row of each stratum, of two classes of the negative and of the positive one; -1 for a
        stratum without test rows.
    n_test : tuple of int
        The number of test rows of each stratum; where groups of rows of several classes are split, those outside the first
        class and in it.
    """

    seed: int
    limits: tuple[int, ...]
    n_test: tuple[int, ...]
    strata: Strata = Strata()

    def is_test(self, block: Block) -> np.ndarray:
        """Return whether each row is a test row, bool of shape (n_samples,)."""
        some = np.array([limit >= 0 for limit in self.limits])
        limits = np.array([max(limit, 0) for limit in self.limits], dtype=np.uint64)
        stratum = self.strata.of(block)
        number = scrambled(block.row_id if block.group is None else block.group, self.seed)
        return some[stratum] & (number <= limits[stratum])

    def is_train(self, block: Block) -> np.ndarray:
        """Return whether each row is a training row, bool of shape (n_samples,)."""
        return ~self.is_test(block)


@dataclass(frozen=True, eq=False)
class TimeSplit:
    """A choice of the last rows as test rows.

    Attributes
    ----------
    column : int
        The feature that is the time. Rows without one are training rows.
    start : float
        The time of the first test row.
    stop : float
        Training rows come before it; rows between the two are neither.
    n_test, n_train : tuple of int
        Negative and positive rows of either side; of several classes the latter are none.
    groups, latest : ndarray of shape (n_groups,), or None
        The groups, ascending, and the time of the last row of each, which counts for all of its rows.
    """

    column: int
    start: float
    stop: float
    n_test: tuple[int, int]
    n_train: tuple[int, int]
    groups: np.ndarray | None = None
    latest: np.ndarray | None = None

    def is_test(self, block: Block) -> np.ndarray:
        """Return whether each row is a test row, bool of shape (n_samples,)."""
        return self._times(block) >= self.start

    def is_train(self, block: Block) -> np.ndarray:
        """Return whether each row is a training row, bool of shape (n_samples,)."""
        return ~(self._times(block) >= self.stop)

    def _times(self, block: Block) -> np.ndarray:
        if self.groups is None or self.latest is None or block.group is None:
            return _times(block, self.column)
        return np.asarray(self.latest[np.searchsorted(self.groups, block.group)])


def find_time_split(
    blocks: Sequence[Any],
    column: int,
    last: float,
    gap: float = 0.0,
    *,
    load: Callable[[Any], Block] | None = None,
    each: Callable[..., Iterable[Any]] = map,
) -> TimeSplit:
    """Choose the last rows as test rows. Rows of the same time stay together, and so do those of a group.

    Parameters
    ----------
    blocks, load, each
        As of `find_split`.
    column : int
        The feature that is the time.
    last : float
        About this share of the rows that have a time are test rows.
    gap : float
        Rows that lie less than this before the first test row are on neither side.

    Raises
    ------
    InputError
        If a side has no rows, or of two classes rows of one only.
    """
    parts = list(each(functools.partial(_times_of, load, column), blocks))
    time, y, group, coded = (None if part[0] is None else np.concatenate(part) for part in zip(*parts, strict=True))
    assert time is not None
    assert y is not None
    groups = latest = None
    if group is not None:
        groups, at = np.unique(group, return_inverse=True)
        latest = np.full(len(groups), -np.inf)
        np.maximum.at(latest, at, np.where(np.isnan(time), -np.inf, time))
        time = latest[at]
    ordered = np.sort(time[np.isfinite(time)])
    if len(ordered) == 0 or ordered[0] == ordered[-1]:
        raise InputError(
            "the rows cannot be split by time: " + ("they have the same one" if len(ordered) else "none has one")
        )
    n_last = round(last * len(ordered))
    starts = np.unique(ordered)[1:]
    n_after = len(ordered) - np.searchsorted(ordered, starts)
    start = float(starts[np.argmin(np.abs(n_after - n_last))])
    sides = {"test": time >= start, "training": ~(time >= start - gap)}
    counts = {}
    for side, rows in sides.items():
        counts[side] = (int(np.count_nonzero(rows & (y != 1))), int(np.count_nonzero(rows & (y == 1))))
        if not rows.any() or (coded is None and 0 in counts[side]):
            raise InputError(
                f"split by time, the {side} rows are {'all of one class' if rows.any() else 'none'}: take another share of "
                "`last` rows" + (", or a shorter `gap`" if gap and side == "training" else "")
            )
    return TimeSplit(column, start, start - gap, counts["test"], counts["training"], groups, latest)


def _times_of(
    load: Callable[[Any], Block] | None, column: int, item: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    block = item if load is None else load(item)
    return _times(block, column), block.y, block.group, block.code


def _times(block: Block, column: int) -> np.ndarray:
    values: Any = block.X[:, [column]]
    return np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)[:, 0]


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

    def split(self, test_fraction: float, seed: int, both: bool = True) -> Split:
        """Return the split that takes the groups of the smallest numbers, of about this share of all rows.

        With `both`, either side needs rows of both classes.
        """
        if len(self.numbers) < 2:
            raise InputError("the rows are all of one group; a split into training and test rows needs at least two")
        below = np.cumsum(self.rows, axis=0)
        total = below.sum(axis=1)
        last = min(int(np.searchsorted(total, test_fraction * total[-1])), len(total) - 2)
        n_test = below[last]
        for side, n in (("test", n_test), ("training", below[-1] - n_test)):
            if both and 0 in n:
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
    strata: Strata = Strata(),
    load: Callable[[Any], Block] | None = None,
    each: Callable[..., Iterable[Any]] = map,
) -> Split:
    """Choose test rows.

    Parameters
    ----------
    blocks : sequence of Block, or of whatever `load` makes a block of
        All rows of the data set.
    test_fraction : float
        Share of each class, between 0 and 1. Of each class at least one row goes to either side; of several classes, one that has
        a single row goes to the training rows.
    seed : int
        Any integer.
    strata : Strata
        What rows are split within.
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
    histogram = functools.reduce(operator.add, each(functools.partial(_histogram, load, seed, strata), blocks))
    if isinstance(histogram, GroupCounts):
        found = histogram.split(test_fraction, seed, strata.n is None)
        return replace(found, limits=found.limits[:1] * (strata.n or 2), strata=strata)
    below = np.cumsum(histogram, axis=1)
    n_test, bins = [], []
    for k, of_class in enumerate(below):
        n = int(of_class[-1])
        if n < 2 and strata.n is None:
            raise InputError(
                f"{n} {('negative', 'positive')[k]} rows; a split into training and test rows needs at least two"
            )
        n_test.append(max(min(max(round(test_fraction * n), 1), n - 1), 0))
        bins.append(int(np.searchsorted(of_class, n_test[-1])))  # which has the last test row of the class
    parts = list(each(functools.partial(_numbers_in_bins, load, seed, strata, bins), blocks))
    limits = []
    for k, bin_ in enumerate(bins):
        before = int(below[k][bin_ - 1]) if bin_ else 0
        numbers = np.sort(np.concatenate([part[k] for part in parts]))
        limits.append(int(numbers[n_test[k] - before - 1]) if n_test[k] else -1)
    return Split(seed, tuple(limits), tuple(n_test), strata)


def split(block: Block, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the training rows and of the test rows in a block that has all rows, ascending.

    Parameters and errors are those of `find_split`.
    """
    is_test = find_split([block], test_fraction, seed).is_test(block)
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def _histogram(load: Callable[[Any], Block] | None, seed: int, strata: Strata, item: Any) -> np.ndarray | GroupCounts:
    """Return how many rows of each stratum have a random number in each bin, int64 of shape (n_strata, n_bins); or of groups."""
    block = item if load is None else load(item)
    if block.group is not None:
        rows = np.column_stack([block.y == label for label in LABELS]).astype(np.int64)
        return GroupCounts.of(scrambled(block.group, seed), rows)
    n, n_bins = strata.n or 2, strata.n_bins
    at = strata.of(block) * n_bins + strata.bins(scrambled(block.row_id, seed))
    return np.bincount(at, minlength=n * n_bins).reshape(n, n_bins)


def _numbers_in_bins(
    load: Callable[[Any], Block] | None, seed: int, strata: Strata, wanted: Sequence[int], item: Any
) -> list[np.ndarray]:
    """Return the random numbers of the rows in the wanted bin of each stratum."""
    block = item if load is None else load(item)
    numbers, stratum = scrambled(block.row_id, seed), strata.of(block)
    there = strata.bins(numbers) == np.asarray(wanted)[stratum]
    numbers, stratum = numbers[there], stratum[there]
    return [numbers[stratum == k] for k in range(len(wanted))]


def scrambled(row_id: np.ndarray, seed: int) -> np.ndarray:
    """Return a random number for each row, uint64: the finisher of SplitMix64, so that no two ids share one."""
    return _mixed(row_id.astype(np.uint64) ^ _mixed(np.array([seed % 2**64], dtype=np.uint64)))


def _mixed(z: np.ndarray) -> np.ndarray:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
