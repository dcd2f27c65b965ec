"""Assign rows to folds by their ids, classes and a seed, and find groups of rows that must stay in one fold.

The rows may be stored anywhere. A group has rows with the same value of a column, or equal rows.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, as_dense, n_rows
from aucdist.data.dataset import Schema
from aucdist.errors import InputError, counted, unknown
from aucdist.kernels.random import hash_ids
from aucdist.kernels.rows import CsrRows, csr_digests, dense_digests
from aucdist.parameters import frozen

CLASSES = ((1, "positive"), (-1, "negative"))


@frozen
class Partition:
    """A partition of rows into parts, which says for each fold the training rows and the held-out rows.

    Attributes
    ----------
    part : ndarray of shape (n_samples,), int64
        The part of each row.
    forward : bool
        If False, fold k holds out part k and trains on all other parts. If True, there is one part more than folds. Fold k then
        trains on the parts up to k and holds out the next one, so that no later row is in the training set.
    in_gap : ndarray of shape (n_folds, n_samples), bool, or None
        The rows that a fold does not train on because they come too shortly before its held-out rows. None if there are no such
        rows.
    """

    part: ndarray
    n_folds: int
    forward: bool = False
    in_gap: ndarray | None = None

    def train(self, fold: int) -> ndarray:
        """Return which rows a fold trains on, bool of shape (n_samples,)."""
        if not self.forward:
            return self.part != fold
        earlier = self.part <= fold
        return earlier if self.in_gap is None else earlier & ~self.in_gap[fold]

    def held_out(self, fold: int) -> ndarray:
        """Return which rows a fold is scored on, bool of shape (n_samples,)."""
        return self.part == (fold + 1 if self.forward else fold)


def partition(
    row_id: ndarray,
    y: ndarray,
    n_folds: int,
    seed: int,
    *,
    groups: ndarray | None = None,
    time: ndarray | None = None,
    gap_rows: int = 0,
    gap_time: float = 0.0,
    strata: ndarray | None = None,
    group_names: Sequence[str] | None = None,
) -> Partition:
    """Partition rows into folds: at random within each class, by groups, or in the order of time.

    Parameters
    ----------
    row_id : ndarray of shape (n_samples,), int64
        The ids of all rows, each once.
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.
    n_folds : int
        At least 2.
    seed : int
        Another seed gives another partition; in the order of time there is only one.
    groups : ndarray of shape (n_samples,), int64, optional
        Rows with the same number are in the same part.
    time : ndarray of shape (n_samples,), float64, optional
        Rows with the same time are in the same part. With `groups`, no group may have both training rows and held-out rows
        of a fold.
    gap_rows : int
        With `time`: the number of rows directly before the held-out rows of a fold that are left out of training, like `gap` of
        scikit-learn's ``TimeSeriesSplit``. Rows with the same time are left out together.
    gap_time : float
        With `time`, in its unit: a training row lies at least this long before the first held-out row of the fold.
    strata : ndarray of shape (n_samples,), int, optional
        For rows with several classes: the number of each row's set of classes. Without `groups` and `time`, rows are divided
        within these, and `y` is ignored. The caller checks that each fold has the classes that it needs.
    group_names : sequence of str, optional
        The names of the groups in errors. Groups are then numbered from 0.

    Returns
    -------
    Partition
        Its methods `train` and `held_out` say which rows a fold trains on, and which it is scored on.

    Raises
    ------
    InputError
        If there are fewer than two folds, a fold would train on one class only or be scored on one, a group is on both sides of a
        fold, or a gap is negative or given without `time`.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.selection import partition
    >>> folds = partition(np.arange(6), np.array([-1, 1, -1, 1, -1, 1]), 2, 0, time=np.arange(6.0))
    >>> folds.train(0).tolist()  # what came first
    [True, True, False, False, False, False]
    >>> folds.held_out(0).tolist()  # what came next
    [False, False, True, True, False, False]
    """
    if gap_rows < 0 or not 0.0 <= gap_time < np.inf:
        raise InputError(f"`gap_rows` and `gap_time` must be finite and at least 0; got {gap_rows} and {gap_time}")
    if time is None and (gap_rows or gap_time):
        raise InputError("`gap_rows` and `gap_time` need `time`: random folds have no order in time")
    if time is not None:
        part = time_parts(time, n_folds)
        folds = Partition(part, n_folds, True, _gaps(time, part, n_folds, gap_rows, gap_time))
        if groups is not None and folds.in_gap is None:
            check_groups_whole(groups, part, "the parts of time", group_names)
        elif groups is not None:
            for fold in range(n_folds):
                held_out = folds.held_out(fold)
                either = folds.train(fold) | held_out
                gap_name = f"the gap of fold {fold + 1} of {n_folds}"
                check_groups_whole(groups[either], held_out[either], gap_name, group_names)
    elif groups is not None:
        folds = Partition(fold_numbers_of_groups(row_id, y, groups, n_folds, seed), n_folds)
    elif strata is None:
        return Partition(fold_numbers(row_id, y, n_folds, seed), n_folds)
    else:
        return Partition(stratified_numbers(row_id, strata, n_folds, seed), n_folds)
    if strata is not None:
        return folds
    for fold in range(n_folds):
        for rows, called in ((folds.train(fold), "training rows"), (folds.held_out(fold), "held-out rows")):
            for label, class_name in CLASSES:
                if not (y[rows] == label).any():
                    raise InputError(
                        f"fold {fold + 1} of {n_folds} has no {class_name} {called}: use fewer folds"
                        f"{'' if folds.in_gap is None else ', or a shorter gap'}"
                    )
    return folds


def fold_numbers(row_id: ndarray, y: ndarray, n_folds: int, seed: int) -> ndarray:
    """Return the fold of each row, such that each class is divided evenly among the folds.

    Each row gets a random number from its id and the seed; the rows of a class are assigned to the folds in turn, in the order of
    these numbers. So neither the order of the rows nor their blocks change a row's fold, and another seed gives another
    partition. The folds' sizes differ by one row at most, and so do their rows of each class.

    Parameters
    ----------
    row_id : ndarray of shape (n_samples,), int64
        The ids of all rows, each once.
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.
    n_folds : int
        At least 2.
    seed : int
        Any integer.

    Returns
    -------
    ndarray of shape (n_samples,), int64
        0 to n_folds - 1 for each row.

    Raises
    ------
    InputError
        If there are fewer than two folds, or fewer rows of a class than folds.

    Examples
    --------
    >>> import numpy as np
    >>> from aucdist.selection import fold_numbers
    >>> y = np.repeat([-1, 1], [90, 10])
    >>> folds = fold_numbers(np.arange(100), y, n_folds=5, seed=0)
    >>> np.bincount(folds).tolist(), np.bincount(folds[y == 1]).tolist()
    ([20, 20, 20, 20, 20], [2, 2, 2, 2, 2])
    """
    for label, called in CLASSES:
        n = int((y == label).sum())
        if n < n_folds:
            raise InputError(
                f"{counted(n, f'{called} row')} cannot be divided into {n_folds} folds: ask for fewer folds, add rows, or name "
                "the settings yourself, such as `features: bins`"
            )
    return stratified_numbers(row_id, y != 1, n_folds, seed)


def stratified_numbers(row_id: ndarray, strata: ndarray, n_folds: int, seed: int) -> ndarray:
    """Return the fold of each row, such that each stratum is divided evenly among the folds.

    Each stratum starts at the fold where the one before it ended: otherwise the first folds would get the remainder of every
    stratum. So the folds' sizes differ by one row at most, and so do their rows of each stratum.

    Parameters
    ----------
    row_id : ndarray of shape (n_samples,), int64
        The ids of the rows.
    strata : ndarray of shape (n_samples,), int or bool
        The stratum of each row.
    n_folds : int
        At least 2.

    Returns
    -------
    ndarray of shape (n_samples,), int64
        0 to n_folds - 1 for each row.

    Raises
    ------
    InputError
        If there are fewer than two folds.
    """
    _check_number_of_folds(n_folds)
    fold = np.empty(len(strata), dtype=np.int64)
    fold[np.lexsort((hash_ids(row_id, seed), strata))] = np.arange(len(strata)) % n_folds
    return fold


def fold_numbers_of_groups(row_id: ndarray, y: ndarray, groups: ndarray, n_folds: int, seed: int) -> ndarray:
    """Return the fold of each row, such that groups stay together and the folds have about as many rows of each class.

    Groups are assigned one after the other. A group with positives goes to the fold with the fewest positives so far, and,
    among such folds, to the one with the fewest rows. A group without positives goes to the fold with the fewest rows. Groups
    with many positives, or else with many rows, come first, because later groups are too small to balance them. Groups whose
    sizes have the same power of two come in a random order, which depends on the smallest row id of each group and on the seed.
    So the order of the rows does not matter.

    Parameters
    ----------
    row_id, y, groups, n_folds, seed
        As for `partition`.

    Returns
    -------
    ndarray of shape (n_samples,), int64
        0 to n_folds - 1 for each row.

    Raises
    ------
    InputError
        If there are fewer than two folds.
    """
    _check_number_of_folds(n_folds)
    first = np.argsort(row_id)
    names, at, group = np.unique(groups[first], return_index=True, return_inverse=True)
    group = group[np.argsort(first)]
    n_rows, n_pos = np.bincount(group), np.bincount(group, y == 1).astype(np.int64)
    size_pos, size = np.log2(n_pos + 1).astype(np.int64), np.log2(n_rows).astype(np.int64)
    order = np.lexsort((hash_ids(row_id[first][at], seed), -size, -size_pos))
    loads = [[0, 0] for _ in range(n_folds)]
    number = np.empty(len(names), dtype=np.int64)
    for g in order.tolist():
        pos, rows = int(n_pos[g]), int(n_rows[g])
        to = min(range(n_folds), key=loads.__getitem__ if pos else lambda k: loads[k][1])
        loads[to][0] += pos
        loads[to][1] += rows
        number[g] = to
    return number[group]


def time_parts(time: ndarray, n_folds: int) -> ndarray:
    """Return the part of each row in the order of time: one part more than there are folds. Equal times stay together.

    The parts have about the same size.

    Parameters
    ----------
    time : ndarray of shape (n_samples,), float64
        The time of each row.
    n_folds : int
        At least 2.

    Returns
    -------
    ndarray of shape (n_samples,), int64
        0 to n_folds for each row. Later times never have lower numbers.

    Raises
    ------
    InputError
        If there are fewer than two folds, or a time is not a number.
    """
    _check_number_of_folds(n_folds)
    if not np.isfinite(time).all():
        raise InputError(
            f"the time of row {int(np.argmin(np.isfinite(time)))} (counted from 0) is not a number: correct it, or "
            "leave the row out"
        )
    earlier = np.searchsorted(np.sort(time), time, side="left")
    return earlier * (n_folds + 1) // max(len(time), 1)


def _gaps(time: ndarray, part: ndarray, n_folds: int, gap_rows: int, gap_time: float) -> ndarray | None:
    """Return which rows are in the gap of each fold, as in `Partition.in_gap`."""
    if not gap_rows and not gap_time:
        return None
    in_gap = np.zeros((n_folds, len(time)), dtype=bool)
    ordered = np.sort(time)
    later = len(time) - np.searchsorted(ordered, time, side="right")
    for fold in range(n_folds):
        held_out = part > fold
        if not held_out.any():
            continue  # a fold without rows, which `partition` refuses
        # A row is in the gap if fewer than `gap_rows` of the rows before the held-out ones are later than it.
        in_gap[fold] = ~held_out & (later - np.count_nonzero(held_out) < gap_rows)
        in_gap[fold] |= ~held_out & (time + gap_time > time[held_out].min())
    return in_gap


def check_groups_whole(groups: ndarray, part: ndarray, sides: str, names: Sequence[str] | None = None) -> None:
    """Raise an InputError if the rows of a group are not all in the same part.

    Parameters
    ----------
    groups : ndarray of shape (n_samples,)
        The group of each row.
    part : ndarray of shape (n_samples,)
        The part of each row, such as its fold.
    sides : str
        The name of the parts in the message.
    names : sequence of str, optional
        The names of the groups in the message. Groups are then numbered from 0.
    """
    order = np.lexsort((part, groups))
    g, p = groups[order], part[order]
    torn = np.unique(g[1:][(g[1:] == g[:-1]) & (p[1:] != p[:-1])])
    if len(torn):
        first = torn[0] if names is None else names[torn[0]]
        raise InputError(
            f"{len(torn)} groups straddle {sides}, such as group {first}: its rows must stay together. Split training "
            "and test rows by the same groups, or leave `time` out"
        )


def _check_number_of_folds(n_folds: int) -> None:
    if n_folds < 2:
        raise InputError(f"n_folds must be at least 2; got {n_folds}")


def shuffled_order(row_id: ndarray, seed: int) -> ndarray:
    """Return a random order of the rows that depends only on their ids and the seed. Online solvers see the rows in this order.

    Parameters
    ----------
    row_id : ndarray of shape (n_samples,), int64
        The ids of the rows.

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    return np.argsort(hash_ids(row_id, seed))


def take_column(block: Block, schema: Schema, name: str) -> tuple[ndarray, Block, Schema]:
    """Take a column out of the features, because a column that groups or orders the rows must not be used as a feature.

    Parameters
    ----------
    block : Block
        The rows.
    schema : Schema
        The schema of the block.
    name : str
        The name of a feature, or of a column of categories.

    Returns
    -------
    values : ndarray of shape (n_samples,), float64
        The values of the feature. For a column of categories, the position of the category in the schema, and -1 for a row
        without any of them.
    block : Block
        The rows with the other features.
    schema : Schema
        The schema of these rows.

    Raises
    ------
    InputError
        If the column does not exist, or is the only one.
    """
    names = [f"{name}={value}" for value in schema.categories[name]] if name in schema.categories else [name]
    at = np.flatnonzero(np.isin(schema.feature_names, names))
    if not len(at):
        plain = [feature for feature in schema.feature_names if feature.partition("=")[0] not in schema.categories]
        raise unknown("column", name, [*schema.categories, *plain])
    if len(at) == block.n_features:
        raise InputError(f"{name!r} is the only column, so nothing would be left to learn from: name another column")
    values = as_dense(block.X[:, at]).astype(np.float64)
    if name in schema.categories:
        taken = np.where(values.any(axis=1), np.argmax(values != 0, axis=1), -1).astype(np.float64)
    else:
        taken = values[:, 0]
    rest = block.with_X(block.X[:, np.setdiff1d(np.arange(block.n_features), at)])
    categories = {key: value for key, value in schema.categories.items() if key != name}
    return taken, rest, replace(schema.without(names), categories=categories)


def factorize(values: ndarray) -> ndarray:
    """Return a number for each row, which is the same for equal values. Each row with NaN is a group of its own.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        The value of each row.

    Returns
    -------
    ndarray of shape (n_samples,), int64
        Counted from 0.
    """
    return np.unique(values, return_inverse=True, equal_nan=False)[1].astype(np.int64)


def names_of_numbers(values: ndarray, schema: Schema, name: str) -> list[str]:
    """Return the names of the values of a column, indexed by the numbers that `factorize` gives them.

    Parameters
    ----------
    values : ndarray of shape (n_samples,), float64
        As `take_column` returns them for this column and schema.
    """
    distinct = np.unique(values, equal_nan=False).tolist()
    if name not in schema.categories:
        return [f"{value:.17g}" for value in distinct]
    return ["of an unknown category" if value < 0 else schema.categories[name][int(value)] for value in distinct]


def duplicates(block: Block) -> ndarray:
    """Return a number for each row, which is the same for rows with equal features, whatever their labels.

    Rows are compared by digests of 64 bits. Among a million different rows, two have the same digest with a probability of
    3e-8.

    Parameters
    ----------
    block : Block
        The rows.

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    return factorize(digests_of(block))


def digests_of(block: Block) -> ndarray:
    """Return the digest of the features of each row, which does not depend on the layout or the dtype of the block.

    Parameters
    ----------
    block : Block
        The rows.

    Returns
    -------
    ndarray of shape (n_samples,), uint64
    """
    rows = block.rows
    out = np.empty(n_rows(rows), dtype=np.uint64)
    bits = np.ascontiguousarray(rows.values, dtype=np.float64).view(np.uint64)
    if isinstance(rows, CsrRows):
        csr_digests(bits, rows.indices, rows.offsets, out)
    else:
        dense_digests(bits, out)
    return out
