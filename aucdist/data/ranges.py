"""Statistics of columns that merge over blocks: means, spreads, and ranges, which decide about shifts and bound rounding."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aucdist.data.block import Block, n_rows
from aucdist.kernels.codes import BinRows
from aucdist.kernels.row_statistics import csr_ranges, dense_ranges
from aucdist.kernels.rows import CsrRows, DenseRows


@dataclass(frozen=True, eq=False)
class ColumnRanges:
    """The least and the greatest value of each column over rows of weight above 0; ranges of several blocks merge by ``+``.

    `low` and `high`, of shape (n_features,), float64: values that a sparse row does not store are 0 and count as well.
        Without any row: inf and -inf.
    `width`: the most values that a row has: n_features, or the most that a sparse row stores.
    """

    low: np.ndarray
    high: np.ndarray
    width: int

    def __add__(self, other: "ColumnRanges") -> "ColumnRanges":
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return ColumnRanges(low, high, max(self.width, other.width))

    @classmethod
    def of(cls, block: Block) -> "ColumnRanges":
        """Return the ranges of a block's columns; one reading of its rows."""
        if not isinstance(block.rows, BinRows):
            return ranges_of(block.rows, None if block.weight is None else block.weight > 0)
        # They hold for any codes: a value is a sum over some of the cells that the column occurs in.
        basis, d = block.rows.basis, block.n_features
        parts = [np.bincount(basis.columns, np.maximum(sign * basis.values, 0.0), d) for sign in (-1.0, 1.0)]
        return cls(-parts[0], parts[1], len(basis.offsets) - 1 + block.rows.codes.shape[1])

    @cached_property
    def largest(self) -> np.ndarray:
        """The largest absolute value of each column, of shape (n_features,); 0 without any row."""
        return np.maximum(np.maximum(-self.low, self.high), 0.0)

    @property
    def constant(self) -> np.ndarray:
        """Whether all values of the column are equal, of shape (n_features,)."""
        return self.low >= self.high


def ranges_of(rows: DenseRows | CsrRows, there: np.ndarray | None = None) -> ColumnRanges:
    """Return the ranges of the values that are not missing.

    `there`, of shape (n_samples,), bool: which rows count; by default all.
    """
    there = np.ones(n_rows(rows), dtype=bool) if there is None else there
    d = rows.n_features if isinstance(rows, CsrRows) else rows.values.shape[1]
    low, high = np.full(d, np.inf, rows.values.dtype), np.full(d, -np.inf, rows.values.dtype)
    width = d
    if isinstance(rows, CsrRows):
        stored = np.zeros(d, dtype=np.int64)
        width = int(csr_ranges(rows.values, rows.indices, rows.offsets, there, low, high, stored))
        gaps = stored < there.sum()
        low[gaps], high[gaps] = np.minimum(low[gaps], 0.0), np.maximum(high[gaps], 0.0)
    else:
        dense_ranges(rows.values, there, low, high)
    return ColumnRanges(low.astype(np.float64), high.astype(np.float64), width)


CHUNK = 4096
"""Rows that are turned into float64 at a time."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Statistics of each column, which merge by ``+``. They are float64 whatever the data are.

    `mean` and `m2`, of shape (n_features,): the mean, and the sum of squared distances to it.
    """

    count: int
    mean: np.ndarray
    m2: np.ndarray
    ranges: ColumnRanges

    def __add__(self, other: "Moments") -> "Moments":
        """Return the statistics of both sets of rows (pairwise update of Chan, Golub and LeVeque)."""
        if 0 in (self.count, other.count):
            return self if other.count == 0 else other
        count = self.count + other.count
        delta = other.mean - self.mean
        return Moments(
            count,
            self.mean + delta * (other.count / count),
            self.m2 + other.m2 + delta * delta * (self.count * other.count / count),
            self.ranges + other.ranges,
        )


def moments(rows: DenseRows | CsrRows) -> Moments:
    """Return the statistics of the columns."""
    n, ranges = n_rows(rows), ranges_of(rows)
    d = len(ranges.low)
    found = Moments(0, np.zeros(d), np.zeros(d), ranges)
    if isinstance(rows, CsrRows):
        if n == 0:
            return found
        x = rows.values.astype(np.float64)
        zeros = n - np.bincount(rows.indices, minlength=d)
        mean = np.bincount(rows.indices, x, minlength=d) / n
        m2 = np.bincount(rows.indices, (x - mean[rows.indices]) ** 2, minlength=d) + zeros * mean**2
        return Moments(n, mean, m2, ranges)
    for start in range(0, n, CHUNK):
        x = rows.values[start : start + CHUNK].astype(np.float64)
        mean = x.mean(axis=0)
        found += Moments(len(x), mean, ((x - mean) ** 2).sum(axis=0), ranges)  # the ranges are those of all rows
    return found
