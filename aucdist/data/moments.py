"""Mean, spread and range of each column, as statistics that merge over blocks."""

from dataclasses import dataclass

import numpy as np

from aucdist.data.block import n_rows
from aucdist.data.ranges import ColumnRanges, ranges_of
from aucdist.kernels.rows import CsrRows, DenseRows

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
