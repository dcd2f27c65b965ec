"""Statistics of columns that can be merged over blocks: ranges, means, spreads and medians, and values for missing ones.

The ranges are used to shift columns that are far from 0 and to bound rounding errors.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy import ndarray

from aucdist.data.block import Block, n_columns, n_rows
from aucdist.errors import InputError
from aucdist.kernels.codes import BinRows
from aucdist.kernels.rows import CsrRows, DenseRows, Rows, csr_ranges, dense_ranges
from aucdist.parameters import frozen

ROWS_AT_ONCE = 4096
KEPT_BITS = 10
MEDIAN_ERROR = 2.0**-KEPT_BITS
"""The largest relative error of a median, which is never larger in size than the true one. Integers up to 2**11 are exact.
Numbers below the smallest normal one (2.2e-308) have fewer bits, and their error is at most this share of 2.2e-308."""

DROPPED_BITS = 52 - KEPT_BITS  # the bits that are dropped of the 52 bits of a float64's mantissa
VALUES_AT_ONCE = 2**20  # number of values in a chunk
N_KEYS = 1 << (64 - DROPPED_BITS)


@frozen
class ColumnRanges:
    """The smallest and largest value of each column over rows with a weight above 0. Ranges of several blocks merge by ``+``.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,), float64
        Values that a sparse row does not store count as 0. Without any row, they are inf and -inf.
    width : int
        The largest number of values of a row: n_features, or the largest number that a sparse row stores.
    """

    low: ndarray
    high: ndarray
    width: int

    def __add__(self, other: "ColumnRanges") -> "ColumnRanges":
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return ColumnRanges(low, high, max(self.width, other.width))

    @classmethod
    def of(cls, rows: Rows, weight: ndarray | None = None) -> "ColumnRanges":
        """Return the ranges of the values that are not missing, by reading the rows once.

        Parameters
        ----------
        rows : Rows
            The rows.
        weight : ndarray of shape (n_samples,), optional
            Rows of weight 0 do not count. By default, all rows do.
        """
        d = n_columns(rows)
        if isinstance(rows, BinRows):
            # These ranges are valid for any codes, because a value is a sum over some of the cells in which the column occurs.
            basis = rows.basis
            parts = [np.bincount(basis.columns, np.maximum(sign * basis.values, 0.0), d) for sign in (-1.0, 1.0)]
            return cls(-parts[0], parts[1], len(basis.offsets) - 1 + rows.codes.shape[1])
        counted = np.ones(n_rows(rows), dtype=bool) if weight is None else weight > 0
        low, high, width = np.full(d, np.inf, rows.values.dtype), np.full(d, -np.inf, rows.values.dtype), d
        if isinstance(rows, CsrRows):
            stored = np.zeros(d, dtype=np.int64)
            width = int(csr_ranges(rows.values, rows.indices, rows.offsets, counted, low, high, stored))
            gaps = stored < counted.sum()
            low[gaps], high[gaps] = np.minimum(low[gaps], 0.0), np.maximum(high[gaps], 0.0)
        else:
            dense_ranges(rows.values, counted, low, high)
        return cls(low.astype(np.float64), high.astype(np.float64), width)

    @cached_property
    def largest(self) -> ndarray:
        """The largest absolute value of each column, of shape (n_features,). It is 0 without any row."""
        return np.maximum(np.maximum(-self.low, self.high), 0.0)

    @property
    def constant(self) -> ndarray:
        """Whether all values of the column are equal, of shape (n_features,)."""
        return self.low >= self.high


def _chunks(rows: DenseRows) -> Iterator[ndarray]:
    """Yield the rows as float64 in chunks."""
    for start in range(0, n_rows(rows), ROWS_AT_ONCE):
        yield rows.values[start : start + ROWS_AT_ONCE].astype(np.float64)


@frozen
class Means:
    """The mean of the values of each column that are not missing. Means of several blocks merge by ``+``.

    Parameters
    ----------
    count : ndarray of shape (n_features,), int64
        The number of values that are not missing. Zeros that CSR rows omit are counted.
    mean : ndarray of shape (n_features,), float64
        The mean of these values. It is 0 if there are none.
    """

    count: ndarray
    mean: ndarray

    def __add__(self, other: "Means") -> "Means":
        count = self.count + other.count
        fraction = other.count / np.maximum(count, 1)
        # The difference of the means is not computed, because it might overflow.
        return Means(count, self.mean * (1.0 - fraction) + other.mean * fraction)

    @classmethod
    def of(cls, block: Block) -> "Means":
        """Return the means of a block's columns."""
        rows, d = block.rows, block.n_features
        if isinstance(rows, CsrRows):
            present = ~np.isnan(rows.values)
            x, column = rows.values[present].astype(np.float64), rows.indices[present]
            count = n_rows(rows) - np.bincount(rows.indices, minlength=d) + np.bincount(column, minlength=d)
            mean = np.bincount(column, x / np.maximum(count, 1)[column], minlength=d)
            # Without values, the type would be int64.
            return cls(count, mean.astype(np.float64))
        total = cls(np.zeros(d, dtype=np.int64), np.zeros(d))
        for x in _chunks(rows):
            present = ~np.isnan(x)
            count = present.sum(axis=0)
            # Values are divided before they are added, so that the sum of very large floats does not overflow.
            total += cls(count, (np.where(present, x, 0.0) / np.maximum(count, 1)).sum(axis=0))
        return total

    def fill(self) -> ndarray:
        """Return the mean of each column. It is NaN if the column has no value."""
        return np.where(self.count > 0, self.mean, np.nan)


NO_RANGES = ColumnRanges(np.zeros(0), np.zeros(0), 0)


@frozen
class Moments:
    """Statistics of each column, which merge by ``+``. They are float64 whatever the data are.

    Parameters
    ----------
    weight : float
        The number of rows, or the sum of their weights.
    mean : ndarray of shape (n_features,)
        The mean of each column.
    scatter : ndarray
        The sum of squared distances to the mean, of shape (n_features,), or the sum of the outer products of the centred rows, of
        shape (n_features, n_features).
    ranges : ColumnRanges
        The ranges of the columns, or empty arrays if they are not needed.
    """

    weight: float
    mean: ndarray
    scatter: ndarray
    ranges: ColumnRanges = NO_RANGES

    def __add__(self, other: "Moments") -> "Moments":
        """Return the statistics of both sets of rows together (pairwise update of Chan, Golub and LeVeque)."""
        if 0 in (self.weight, other.weight):
            return self if other.weight == 0 else other
        weight = self.weight + other.weight
        shift = other.mean - self.mean
        squares = np.outer(shift, shift) if self.scatter.ndim == 2 else shift * shift
        scatter = self.scatter + other.scatter
        scatter += squares * (self.weight * other.weight / weight)
        return Moments(weight, self.mean + shift * (other.weight / weight), scatter, self.ranges + other.ranges)

    @property
    def deviation(self) -> ndarray:
        """The standard deviation of each column, of shape (n_features,). It is 1 if all values are equal."""
        # The values themselves are compared, because by rounding a constant column may have a variance slightly above 0.
        return np.where(self.ranges.constant, 1.0, np.sqrt(self.scatter / self.weight))


def moments(rows: DenseRows | CsrRows) -> Moments:
    """Return the statistics of the columns."""
    n, ranges = n_rows(rows), ColumnRanges.of(rows)
    d = len(ranges.low)
    total = Moments(0, np.zeros(d), np.zeros(d), ranges)
    if isinstance(rows, CsrRows):
        if n == 0:
            return total
        x = rows.values.astype(np.float64)
        zeros = n - np.bincount(rows.indices, minlength=d)
        mean = np.bincount(rows.indices, x, minlength=d) / n
        m2 = np.bincount(rows.indices, (x - mean[rows.indices]) ** 2, minlength=d) + zeros * mean**2
        return Moments(n, mean, m2, ranges)
    for x in _chunks(rows):
        mean = x.mean(axis=0)
        # The ranges of all rows have been computed before.
        total += Moments(len(x), mean, ((x - mean) ** 2).sum(axis=0), ranges)
    return total


@frozen
class Medians:
    """A histogram of each column over intervals of equal relative width. Histograms can be merged by ``+`` in any order.

    An interval, called a cell, has the floats that agree in sign, exponent and the first `KEPT_BITS` bits of the fraction. Only
    cells that occur are stored. A column rarely has more than some thousands.

    Parameters
    ----------
    cell : ndarray of shape (n_cells,), int64
        The number of the column times `N_KEYS`, plus the number of the cell in the order of the reals, ascending.
    count : ndarray of shape (n_cells,), int64
        The number of values in each cell.
    n_features : int
        The number of columns.
    """

    cell: ndarray
    count: ndarray
    n_features: int

    def __add__(self, other: "Medians") -> "Medians":
        cells, place = np.unique(np.concatenate([self.cell, other.cell]), return_inverse=True)
        count = np.zeros(len(cells), dtype=np.int64)
        np.add.at(count, place, np.concatenate([self.count, other.count]))
        return Medians(cells, count, self.n_features)

    @classmethod
    def of(cls, block: Block) -> "Medians":
        """Return the histograms of a block's rows."""
        rows, d = block.rows, block.n_features
        zeros, step = np.zeros(d, dtype=np.int64), max(1, VALUES_AT_ONCE // max(1, d))
        if isinstance(rows, CsrRows):  # zeros that are not stored are added
            zeros, step = n_rows(rows) - np.bincount(rows.indices, minlength=d), VALUES_AT_ONCE
        with_zeros = np.flatnonzero(zeros)
        cells_of_all = cls(_cell_of_key(with_zeros, np.zeros(len(with_zeros), dtype=np.int64)), zeros[with_zeros], d)
        for i in range(0, len(rows.values), step):
            part = rows.values[i : i + step]
            value = part.reshape(-1)
            column = rows.indices[i : i + step] if isinstance(rows, CsrRows) else np.tile(np.arange(d), len(part))
            present = ~np.isnan(value)
            column, value = column[present], value[present].astype(np.float64)
            size = np.abs(value).view(np.int64) >> DROPPED_BITS
            cells, count = np.unique(_cell_of_key(column, np.where(value < 0, -size, size)), return_counts=True)
            cells_of_all += cls(cells, count, d)
        return cells_of_all

    def fill(self) -> ndarray:
        """Return the median of each column, rounded towards zero (see `MEDIAN_ERROR`). It is NaN if the column has no value."""
        filled, column = np.full(self.n_features, np.nan), self.cell // N_KEYS
        edges = np.searchsorted(column, np.arange(self.n_features + 1))
        for j in range(self.n_features):
            column_bins = slice(edges[j], edges[j + 1])
            below = np.cumsum(self.count[column_bins])
            if len(below):
                n = below[-1]
                middle = np.searchsorted(below, [(n - 1) // 2, n // 2], side="right")
                # These are the bits of the number in the cell that is nearest to zero.
                key = self.cell[column_bins][middle] % N_KEYS - N_KEYS // 2
                filled[j] = (np.sign(key) * (np.abs(key) << DROPPED_BITS).view(np.float64)).mean()
        return filled


STATISTICS: dict[str, type[Means] | type[Medians]] = {"mean": Means, "median": Medians}


def _cell_of_key(column: ndarray, key: ndarray) -> ndarray:
    return column.astype(np.int64) * N_KEYS + key + N_KEYS // 2


def first_missing(rows: Rows) -> tuple[int, int] | None:
    """Return the row and the column of the first missing value, or None if no value is missing."""
    if not has_missing(rows):
        return None
    return entry_at(rows, int(np.argmax(np.isnan(rows.values.reshape(-1)))))


def check_finite(rows: Rows, first: int, *, may_miss: bool) -> None:
    """Raise an InputError unless all values are finite. If `may_miss` is true, values may also be missing.

    The error names the row and the column of the first invalid value, where rows are counted from `first`.
    """
    unsound = np.isinf(rows.values) if may_miss else ~np.isfinite(rows.values)
    if unsound.any():
        k = int(np.argmax(unsound))
        (row, column), value = entry_at(rows, k), rows.values.reshape(-1)[k]
        hint = "; features='bins' accepts missing values" if np.isnan(value) else ""
        raise InputError(
            f"X has {value} in row {first + row}, column {column} (both from 0): fill it in, or leave the row out{hint}"
        )


def entry_at(rows: Rows, k: int) -> tuple[int, int]:
    """Return the row and the column of the k-th stored value."""
    if isinstance(rows, CsrRows):
        return int(np.searchsorted(rows.offsets, k, "right")) - 1, int(rows.indices[k])
    row, column = divmod(k, rows.values.shape[1])
    return row, column


def has_missing(rows: Rows) -> bool:
    """Return whether a value is missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum avoids an array of flags. The sum of infinite values may also be NaN.
        suspect = np.isnan(rows.values.sum())
    return bool(suspect) and bool(np.isnan(rows.values).any())


def filled(rows: Rows, fill: ndarray) -> Rows:
    """Return the rows with missing values replaced by `fill`, of shape (n_features,)."""
    if not has_missing(rows):
        return rows
    values = rows.values.copy()
    at = np.nonzero(np.isnan(values))
    values[at] = fill[rows.indices[at[0]] if isinstance(rows, CsrRows) else at[1]]
    return rows._replace(values=values)
