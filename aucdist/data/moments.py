"""Mean, spread and range of each column, as statistics that merge over blocks."""

import functools
import operator
from dataclasses import dataclass

import numpy as np

from aucdist.data.block import n_rows
from aucdist.kernels.rows import CsrRows, Rows

CHUNK = 4096
"""Rows that are turned into float64 at a time."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Statistics of each column, which merge by ``+``. They are float64 whatever the data are.

    Attributes
    ----------
    count : int
        Number of rows.
    mean, m2 : ndarray of shape (n_features,)
        The mean, and the sum of squared distances to it.
    low, high : ndarray of shape (n_features,)
        The least and the greatest value; inf and -inf where there are no rows.
    """

    count: int
    mean: np.ndarray
    m2: np.ndarray
    low: np.ndarray
    high: np.ndarray

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
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def moments(rows: Rows) -> Moments:
    """Return the statistics of the columns."""
    n = n_rows(rows)
    if isinstance(rows, CsrRows):
        return _csr_moments(rows, n) if n else _no_moments(rows.n_features)
    parts = (_dense_moments(rows.values[i : i + CHUNK]) for i in range(0, n, CHUNK))
    return functools.reduce(operator.add, parts, _no_moments(rows.values.shape[1]))


def _no_moments(d: int) -> Moments:
    return Moments(0, np.zeros(d), np.zeros(d), np.full(d, np.inf), np.full(d, -np.inf))


def _dense_moments(part: np.ndarray) -> Moments:
    x = part.astype(np.float64)
    mean = x.mean(axis=0)
    return Moments(len(x), mean, ((x - mean) ** 2).sum(axis=0), x.min(axis=0), x.max(axis=0))


def _csr_moments(rows: CsrRows, n: int) -> Moments:
    d, x = rows.n_features, rows.values.astype(np.float64)
    zeros = n - np.bincount(rows.indices, minlength=d)
    mean = np.bincount(rows.indices, x, minlength=d) / n
    m2 = np.bincount(rows.indices, (x - mean[rows.indices]) ** 2, minlength=d) + zeros * mean**2
    low, high = np.where(zeros, 0.0, np.inf), np.where(zeros, 0.0, -np.inf)
    np.minimum.at(low, rows.indices, x)
    np.maximum.at(high, rows.indices, x)
    return Moments(n, mean, m2, low, high)
