"""Distances between two histograms of the same bins, with p-values for the hypothesis that both are samples of one population."""

import math

import numpy as np
from scipy.special import bdtrc, chdtrc, kolmogorov

SMOOTHED = 0.5
"""Added to each bin for the PSI, which would be infinite where one of the two has no rows."""
FEWEST = 5.0
"""Expected rows below which bins are joined for the chi-squared test."""


def psi(reference: np.ndarray, counts: np.ndarray) -> float:
    """Return the population stability index, the sum over bins of ``(q - p) log(q / p)``.

    Where both are samples of one population of n and m rows, its mean is about ``(n_bins - 1) (1/n + 1/m)``: it is not 0.

    Parameters
    ----------
    reference, counts : ndarray of shape (n_bins,)
        Rows of each bin.
    """
    p, q = ((c + SMOOTHED) / (c.sum() + SMOOTHED * len(c)) for c in (np.asarray(reference), np.asarray(counts)))
    return float(((q - p) * np.log(q / p)).sum())


def kolmogorov_smirnov(reference: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Return the largest difference of the distribution functions at the ends of the bins, and its asymptotic p-value.

    On bins the distance is at most that of the values, so that the p-value is on the safe side.

    Parameters
    ----------
    reference, counts : ndarray of shape (n_bins,)
        Rows of each bin, of ascending values.
    """
    n, m = float(np.sum(reference)), float(np.sum(counts))
    if n == 0 or m == 0:
        return 0.0, 1.0
    distance = float(np.abs(np.cumsum(reference) / n - np.cumsum(counts) / m).max())
    return distance, float(kolmogorov(math.sqrt(n * m / (n + m)) * distance))


def total_variation(reference: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Return half the sum of the differences of shares, and the p-value of the chi-squared test of homogeneity.

    Bins of fewer than 5 expected rows are joined for the test.

    Parameters
    ----------
    reference, counts : ndarray of shape (n_bins,)
        Rows of each category.
    """
    first, second = np.asarray(reference, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    n, m = float(first.sum()), float(second.sum())
    if n == 0 or m == 0:
        return 0.0, 1.0
    distance = 0.5 * float(np.abs(first / n - second / m).sum())
    both = first + second
    small = both * min(n, m) / (n + m) < FEWEST
    table = np.stack([np.append(column[~small], column[small].sum()) for column in (first, second)])
    table = table[:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / (n + m)
    freedom = table.shape[1] - 1
    if freedom < 1:
        return distance, 1.0
    return distance, float(chdtrc(freedom, ((table - expected) ** 2 / expected).sum()))


def more_than(count: int, n: int, before: int, n_before: int) -> float:
    """Return the p-value for the hypothesis that a share is no higher than before.

    The number of rows is binomial with the share ``(before + 1) / (n_before + 2)``, or the normal test of two shares decides
    where that gives a larger p-value: the share before is an estimate, too.

    Parameters
    ----------
    count, n : int
        Of the new rows.
    before, n_before : int
        Of the rows before.
    """
    if n == 0 or n_before == 0 or count == 0:
        return 1.0
    share = (before + 1) / (n_before + 2)
    exact = float(bdtrc(count - 1, n, min(share, 1.0)))
    pooled = (count + before) / (n + n_before)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / n_before))
    normal = 0.5 * math.erfc((count / n - before / n_before) / spread / math.sqrt(2)) if spread > 0 else 1.0
    return max(exact, normal)
