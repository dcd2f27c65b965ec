"""Choose the test rows: the same share of each class, whole groups, or the last rows.

Each row gets a random number from its row id and the seed. The rows of a class with the smallest numbers are the test rows. So
the choice depends neither on the order of the rows nor on the blocks.

If rows have groups, each group gets one number. The groups with the smallest numbers are the test rows, so many that they have
about the requested share of all rows.

With a column of times, the last rows are the test rows. If rows have groups, whole groups are taken.
"""

import functools
from dataclasses import dataclass, field

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, Columns, EachBlock, concatenate_columns, each_of
from aucdist.errors import InputError
from aucdist.kernels.random import hash_ids
from aucdist.parameters import frozen

Arrays = tuple[ndarray | None, ...]
MAX_DEVIATIONS = 8.0
"""Random numbers are gathered if they are within this number of standard deviations of the share of test rows. If the
limit lies outside, all are gathered."""
NOTED_DIFFERENCE = 0.1
"""A share of test rows is noted if it differs from the configured one by more than this part of it."""


@dataclass(frozen=True)
class Split:
    """A choice of test rows that can be applied to any block.

    Attributes
    ----------
    limits : tuple of int
        The largest random number of a test row in each stratum, or -1 for a stratum without test rows. With two classes, the
        strata are the negative and the positive class.
    n_test, n_train : tuple of int
        The numbers of test rows and of training rows of each stratum. If groups of rows of several classes are split, the
        strata are the rows outside the first class and those in it.
    n_classes : int or None
        As for `strata_of`.
    """

    seed: int
    limits: tuple[int, ...]
    n_test: tuple[int, ...]
    n_train: tuple[int, ...]
    n_classes: int | None = None

    def is_test(self, block: Block) -> ndarray:
        """Return whether each row is a test row, bool of shape (n_samples,)."""
        has_test = np.array([limit >= 0 for limit in self.limits])
        limits = np.array([max(limit, 0) for limit in self.limits], dtype=np.uint64)
        stratum = strata_of(block, self.n_classes)
        number = hash_ids(block.row_id if block.group is None else block.group, self.seed)
        return has_test[stratum] & (number <= limits[stratum])

    def is_train(self, block: Block) -> ndarray:
        """Return whether each row is a training row, bool of shape (n_samples,)."""
        return ~self.is_test(block)


def strata_of(block: Block, n_classes: int | None) -> ndarray:
    """Return the number of the stratum of each row, counted from 0. Rows are split within their stratum.

    Parameters
    ----------
    block : Block
        The rows.
    n_classes : int or None
        None for two classes. For several classes, their number, where `Block.code` is the class. 1 if a row may have several
        classes.
    """
    if n_classes == 1:
        return np.zeros(block.n_samples, dtype=np.intp)
    return np.asarray(block.y == 1 if n_classes is None else block.code).astype(np.intp)


@frozen
class TimeSplit:
    """A choice of the last rows as test rows.

    Attributes
    ----------
    column : int
        The feature that is the time. Rows without a time are training rows.
    start : float
        The time of the first test row.
    stop : float
        Training rows are earlier than `stop`. Rows from `stop` up to `start` are neither test rows nor training rows.
    n_test, n_train : tuple of int
        The numbers of negative and positive rows among the test rows and the training rows. With several classes, the second
        number is 0.
    groups, latest : ndarray of shape (n_groups,), or None
        The groups, ascending, and the time of the last row of each group, which counts for all of its rows.
    per_day : dict of str to float
        The numbers of ``test`` rows and of ``training`` rows for each unit of time, between the first and the last of them. For
        dates, the unit is a day. With groups, all rows count, because each side has only a part of the rows of a day.
    note : str
        A note if the share of test rows is far from what was requested, otherwise empty.
    """

    column: int
    start: float
    stop: float
    n_test: tuple[int, ...]
    n_train: tuple[int, ...]
    groups: ndarray | None = None
    latest: ndarray | None = None
    per_day: dict[str, float] = field(default_factory=dict)
    note: str = ""

    def is_test(self, block: Block) -> ndarray:
        """Return whether each row is a test row, bool of shape (n_samples,)."""
        return self._times(block) >= self.start

    def is_train(self, block: Block) -> ndarray:
        """Return whether each row is a training row, bool of shape (n_samples,)."""
        return ~(self._times(block) >= self.stop)

    def _times(self, block: Block) -> ndarray:
        if self.groups is None or self.latest is None or block.group is None:
            return Columns(block)[self.column]
        return np.asarray(self.latest[np.searchsorted(self.groups, block.group)])


def find_time_split(each: EachBlock, column: int, last: float, gap: float = 0.0) -> TimeSplit:
    """Choose the last rows as test rows. Rows with the same time stay together, and so do the rows of a group.

    Parameters
    ----------
    each : EachBlock
        As for `find_split`.
    column : int
        The feature that is the time.
    last : float
        The approximate share of the rows with a time that become test rows.
    gap : float
        Rows that are less than this time before the first test row are neither test rows nor training rows.

    Raises
    ------
    InputError
        If a side has no rows or, for two classes, rows of one class only.
    """
    own, y, group, coded = concatenate_columns(
        each(lambda block: (Columns(block)[column], block.y, block.group, block.code))
    )
    time, groups, latest = own, None, None
    if group is not None:
        groups, at = np.unique(group, return_inverse=True)
        latest = np.full(len(groups), -np.inf)
        np.maximum.at(latest, at, np.where(np.isnan(own), -np.inf, own))
        time = latest[at]
    ordered = np.sort(time[np.isfinite(time)])
    if len(ordered) == 0 or ordered[0] == ordered[-1]:
        raise InputError(
            f"the rows cannot be split by time, because {'all have the same time' if len(ordered) else 'no row has a time'}: "
            "name another column under `test.time`, or split by `fraction`"
        )
    n_last = round(last * len(ordered))
    starts = np.unique(ordered)[1:]
    start = float(starts[np.argmin(np.abs(len(ordered) - np.searchsorted(ordered, starts) - n_last))])
    sides = {"test": time >= start, "training": ~(time >= start - gap)}
    counts, per_day = {}, {}
    for side, rows in sides.items():
        # With whole groups, each side has only a part of the rows of its days.
        days = np.floor(own[(rows | (group is not None)) & np.isfinite(own)])
        per_day[side] = len(days) / float(np.ptp(days) + 1) if len(days) else 0.0
        counts[side] = tuple(np.bincount(y[rows] == 1, minlength=2).tolist())
        if not rows.any() or (coded is None and 0 in counts[side]):
            raise InputError(
                f"after the split by time, {'there is one class only in the' if rows.any() else 'there are no'} {side} rows: "
                f"use another share of `last` rows{', or a shorter `gap`' if gap and side == 'training' else ''}"
            )
    share, note = float(np.mean(ordered >= start)), ""
    if abs(share - last) > NOTED_DIFFERENCE * last:
        note = (
            f"the test rows are {share:.1%} of the rows with a time, and not {last:.1%} as configured, because rows of the same "
            f"time{'' if group is None else ' or group'} stay together"
        )
    return TimeSplit(column, start, start - gap, counts["test"], counts["training"], groups, latest, per_day, note)


def find_split(
    each: EachBlock,
    test_fraction: float,
    seed: int,
    *,
    n_classes: int | None = None,
    names: tuple[str, str] = ("negative", "positive"),
) -> Split:
    """Choose test rows.

    Parameters
    ----------
    each : EachBlock
        Calls a function on each block of the data set.
    test_fraction : float
        The share of each class, between 0 and 1. Both sides get at least one row of each class. With several
        classes, the row of a class with a single row becomes a training row.
    seed : int
        Any integer.
    n_classes : int, optional
        The number of classes, if rows are split within more than two; see `strata_of`.
    names : tuple of str
        The names of the rows of each of two classes in error messages.

    Raises
    ------
    InputError
        If the fraction is not between 0 and 1, or if a class has fewer than two rows.
    """
    if not 0 < test_fraction < 1:
        raise InputError(
            f"the share of test rows is {test_fraction}; it must lie between 0 and 1, as in test: {{fraction: 0.2}}"
        )
    for deviations in (MAX_DEVIATIONS, np.inf):
        parts = each(functools.partial(_numbers_near, test_fraction, seed, n_classes, deviations))
        columns, stratum_counts = zip(*parts, strict=True)
        number, stratum, positive = concatenate_columns(columns)
        if positive is not None:
            # The groups with the smallest numbers have about this share of all rows.
            groups, at = np.unique(number, return_inverse=True)
            if len(groups) < 2:
                raise InputError(
                    "the rows are all of one group, so they cannot be split: name another column of groups, or leave it out"
                )
            up_to = np.cumsum(np.bincount(2 * at + positive, minlength=2 * len(groups)).reshape(-1, 2), axis=0)
            total = up_to.sum(axis=1)
            last = min(int(np.searchsorted(total, test_fraction * total[-1])), len(total) - 2)
            sides = {"test": up_to[last], "training": up_to[-1] - up_to[last]}
            for side, n_of_side in sides.items():
                if n_classes is None and 0 in n_of_side:
                    raise InputError(
                        f"with whole groups, the {side} rows are of one class only: use another seed or share of test rows"
                    )
            of_test, of_train = (tuple(n_of_side.tolist()) for n_of_side in sides.values())
            return Split(seed, (int(groups[last]),) * (n_classes or 2), of_test, of_train, n_classes)
        n_rows, n_below, lows, highs = zip(*stratum_counts, strict=True)
        counts, below, low, high = sum(n_rows), sum(n_below), np.max(lows, axis=0), np.min(highs, axis=0)
        n_test, limits = [], []
        for k, n in enumerate(counts.tolist()):
            if n < 2 and n_classes is None:
                raise InputError(
                    f"there are fewer than two {names[k]} rows: a split into training and test rows needs two of each "
                    "class; add rows, or check `positive`"
                )
            n_test.append(max(min(max(round(test_fraction * n), 1), n - 1), 0))
            rank, numbers = n_test[k] - 1 - int(below[k]), number[stratum == k]
            if not n_test[k]:
                limits.append(-1)
            elif 0 <= rank < len(numbers):
                limits.append(int(np.partition(numbers, rank)[rank]))
        if len(limits) == len(counts) and all(
            limits[k] < 0 or low[k] <= limits[k] <= high[k] for k in range(len(limits))
        ):
            break
    return Split(seed, tuple(limits), tuple(n_test), tuple((counts - n_test).tolist()), n_classes)


def split(block: Block, test_fraction: float, seed: int) -> tuple[ndarray, ndarray]:
    """Return the positions of the training rows and of the test rows in a block that has all rows, ascending.

    The parameters and errors are those of `find_split`.
    """
    is_test = find_split(each_of([block]), test_fraction, seed).is_test(block)
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def _numbers_near(
    test_fraction: float, seed: int, n_classes: int | None, deviations: float, block: Block
) -> tuple[Arrays, ...]:
    """Return random numbers of a block that are near the limit of the test rows.

    There are about as many as the square root of its rows.

    Returns
    -------
    tuple
        The numbers and their strata. If rows have groups, all numbers are returned, and whether the rows are positive. Then for
        each stratum: the number of its rows, the number of its rows with smaller numbers than the returned ones, and the limits
        between which all numbers are returned.
    """
    if block.group is not None:
        return (hash_ids(block.group, seed), strata_of(block, 1), block.y == 1), ()
    number, stratum = hash_ids(block.row_id, seed), strata_of(block, n_classes).astype(np.int16)
    counts = np.bincount(stratum, minlength=n_classes or 2)
    nonzero = np.maximum(counts, 1)
    width = deviations * np.sqrt(test_fraction * (1.0 - test_fraction) / nonzero) + 2.0 / nonzero
    low, high = np.maximum(test_fraction - width, 0.0), test_fraction + width
    first = (low * 2.0**64).astype(np.uint64)
    last = np.where(high < 1.0, (np.minimum(high, 1.0 - 2.0**-53) * 2.0**64).astype(np.uint64), np.uint64(2**64 - 1))
    is_below = number < first[stratum]
    is_near = ~is_below & (number <= last[stratum])
    below = np.bincount(stratum[is_below], minlength=len(counts))
    return (number[is_near], stratum[is_near], None), (counts, below, first, last)
